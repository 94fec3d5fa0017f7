"""Stored chats of the Gemini CLI: which files are some, and the session record of each.

Owns the folder layout: ``chats/session-*.jsonl`` (older: ``.json``), agents of a session in ``chats/<session
id>/``. A chat file is a bundle; agents whose session's file lies beside their folder are streams of its bundle.

Must never know: what an entry means.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from callsheet.harness._port import Desk, Folder, Session
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.units import Hole, Unit
from callsheet.harness._port.veil import Veil, original_of
from callsheet.harness.gemini.chat import Chat
from callsheet.harness.gemini.shapes import ChatLine, is_document, is_head, recognises, session_of, units_of
from callsheet.harness.gemini.survey import Survey
from callsheet.records import FORMAT, Agent, Native, Parent, Ref, SourceEntry
from callsheet.records import Session as SessionRecord
from callsheet.registry import load
from callsheet.wire.blobs import digest

KIND = "gemini"
AGENT = "gemini-cli"
HEAD = 1 << 16


class File(NamedTuple):
    """One chat file."""

    path: str
    name: str
    document: bool


class Gemini:
    """The adapter (``harness._port.Stored``)."""

    kind = KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file's first bytes are those of a chat."""
        del name  # any name will do
        return recognises(head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """A file is one session, with its agents; of a folder, every chat that is no agent of another."""
        if folder.is_file(path):
            return [self._session(self._file(path, folder), self._agents(path, folder))]
        files: dict[str, File] = {}
        for pattern in ("**/*.jsonl", "**/*.json"):
            for found in folder.files(path, pattern):
                if recognises(folder.head(found, HEAD)):
                    files[found] = self._file(found, folder)
        by_place = {(str(PurePosixPath(file.path).parent), file.name): file for file in files.values()}
        children: dict[str, list[File]] = {}
        mains: list[File] = []
        for file in files.values():
            above = PurePosixPath(file.path).parent
            owner = by_place.get((str(above.parent), above.name))
            if owner is not None and owner.path != file.path:
                children.setdefault(owner.path, []).append(file)
            else:
                mains.append(file)
        return [self._session(main, children.get(main.path, [])) for main in mains]

    def _file(self, path: str, folder: Folder) -> File:
        head = folder.head(path, HEAD)
        return File(path, session_of(head) or PurePosixPath(path).stem, is_document(head))

    def _agents(self, path: str, folder: Folder) -> list[File]:
        own = self._file(path, folder)
        below = str(PurePosixPath(path).parent / own.name)
        found = [*folder.files(below, "*.jsonl"), *folder.files(below, "*.json")]
        return [self._file(one, folder) for one in found if recognises(folder.head(one, HEAD))]

    def _session(self, main: File, agents: list[File]) -> Session:
        files = (main.path, *(agent.path for agent in agents))
        return Session(KIND, main.name, main.path, [main, *agents], files)

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """Where this user's chats lie."""
        del environ
        return [f"{home.rstrip('/')}/.gemini/tmp"]

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one chat and its agents."""
        main, *agents = session.parts
        self._read(main, session.native_id, None, desk)
        for agent in agents:
            name = PurePosixPath(agent.path).stem if agent.name == main.name else agent.name
            self._read(agent, name, session.native_id, desk)

    def _read(self, file: File, stream_name: str, parent: str | None, desk: Desk) -> None:
        source = desk.source(file.path, KIND)
        veil = Veil(desk)
        if file.document:
            desk.whole(source)
        survey = Survey(veil, source, file.document)
        if not survey.units:
            return
        registry = load(KIND)
        with desk.stream(stream_name, parent) as stream:
            pen = Pen(desk, veil, stream, {})
            chat = Chat(pen, survey, registry)
            units = units_of(veil, source, file.document)
            head = True
            for unit in units:
                if head:
                    line = None if isinstance(unit, Hole) else unit.native
                    cites = line is not None and (is_head(line) or bool(line.messages))
                    refs = [_ref(source, unit, "session" if cites else "member")]
                    named = survey.named
                    if named is not None and named.line.offset + named.start > unit.line.offset + unit.start:
                        refs.append(_ref(source, named, "member"))
                    stream.write(_head(survey.session, parent, source, refs))
                if isinstance(unit, Hole):
                    pen.gap(source, unit)
                else:
                    pen.take(source, unit, unit.native.timestamp if unit.native is not None else None)
                    if head and unit.native is not None and (is_head(unit.native) or unit.native.messages):
                        pen.cited()
                    chat.line(unit)
                head = False


def _ref(source: SourceEntry, unit: Unit[ChatLine] | Hole, role: str) -> Ref:
    """A ref to the first unit, or where that holds no record, to its bytes."""
    line, start = unit.line, unit.start
    data = unit.data if isinstance(unit, Unit) else original_of(line)[start : start + unit.size]
    return Ref(
        source=source.id,
        line=line.number,
        offset=line.offset + start,
        bytes=len(data),
        sha256=digest(data),
        role=role,
    )


def _head(name: str | None, parent: str | None, source: SourceEntry, refs: list[Ref]) -> SessionRecord:
    record = SessionRecord(format=FORMAT, agent=Agent(name=AGENT), native_session_id=name, sources=[source])
    record.parent = Parent(session=parent) if parent is not None else None
    record.native = Native(refs=refs) if refs else None
    return record


GEMINI = Gemini()
