"""The second pass over a session's files: native units in, records out.

Owns: the order of files (the session's own first, then its agents'), the session record of each stream, the way of
each unit to its records, and the promise that every unit becomes at least one record, an ``unmapped`` or a ``gap``.

Must never know: pairing.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from msgspec import Raw

from callsheet.harness._port import Desk, Folder, Session, Stream
from callsheet.harness.claude_code import layout
from callsheet.harness.claude_code.asides import Asides
from callsheet.harness.claude_code.attached import Attached
from callsheet.harness.claude_code.events import Events, Lines, tags
from callsheet.harness.claude_code.pen import Pen
from callsheet.harness.claude_code.results import Results
from callsheet.harness.claude_code.shapes import NativeLine, line_decoder, text, value_of
from callsheet.harness.claude_code.survey import Survey
from callsheet.harness.claude_code.talk import Talk
from callsheet.harness.claude_code.units import Hole, Unit, native_units
from callsheet.records import (
    Agent,
    Gap,
    Native,
    Parent,
    Record,
    Ref,
    SourceEntry,
)
from callsheet.records import Session as SessionRecord
from callsheet.records.bundle import stream_id
from callsheet.registry import Registry, load
from callsheet.wire.blobs import digest

META_KIND = "claude-code-agent-meta"


class Meta:
    """An agent's ``.meta.json``: which call started it."""

    def __init__(self, desk: Desk, path: str | None) -> None:
        self.call_id: str | None = None
        self.name: str | None = None
        self.depth: int | None = None
        self.ref: Ref | None = None
        self.unread: Record | None = None
        if path is None:
            return
        try:
            source = desk.source(path, META_KIND)
            data = desk.whole(source)
        except OSError as error:
            desk.diagnose("missing_file", f"{path}: {error.strerror or error}")
            return
        value = value_of(Raw(data))
        self.ref = Ref(source=source.id, line=1, offset=0, bytes=len(data), sha256=digest(data), role="meta")
        if not isinstance(value, dict):
            desk.diagnose("bad_json", "no JSON object", source, 1)
            gap = Gap(reason="bad_json", source=source.id, line=1, offset=0, bytes=len(data))
            gap.native = Native(refs=[self.ref])
            self.unread = gap
            return
        self.call_id = text(value.get("toolUseId"))
        self.name = text(value.get("agentType"))
        depth = value.get("spawnDepth")
        self.depth = depth if isinstance(depth, int) and not isinstance(depth, bool) else None


class File:
    """One source file on its way into one stream."""

    def __init__(self, desk: Desk, path: str) -> None:
        self.path = path
        self.source = desk.source(path, layout.KIND)
        self.survey = Survey(lambda: desk.lines(self.source))


class Reader:
    """Writes the stream of one file."""

    def __init__(
        self,
        desk: Desk,
        file: File,
        stream: Stream,
        registry: Registry,
        attached: Attached,
        agents: frozenset[str],
    ) -> None:
        survey = file.survey
        self.desk = desk
        self.file = file
        self.survey = survey
        self.roots = {"project": survey.cwd} if survey.cwd else {}
        self.pen = Pen(desk, file.source, stream, self.roots)
        lines = Lines(registry)
        self.events = Events(self.pen, registry, lines)
        self.asides = Asides(self.pen, survey, registry)
        self.asides.known_agents = agents
        self.results = Results(self.pen, survey, registry, attached)
        self.talk = Talk(self.pen, survey, registry, lines, self.events, self.results, self.asides)
        self._repeated = 0
        self._stem = session_name(file)
        self._waiting: dict[str, tuple[dict[str, str], Unit[NativeLine], Any]] = {}

    def head(
        self, native_id: str, sources: list[SourceEntry], parent: Parent | None, refs: list[Ref]
    ) -> None:
        """Writes the session record."""
        survey = self.survey
        title_refs = list(refs)
        if survey.title is not None:
            title_refs.append(Ref(source=self.file.source.id, line=survey.title[1][0], role="title"))
        record = SessionRecord(
            format="callsheet/1",
            agent=Agent(name="claude-code", version=survey.version),
            native_session_id=native_id,
            sources=sources,
            roots=self.roots or None,
            title=survey.title[0] if survey.title else None,
            parent=parent,
            forked_from=survey.forked_from or next(iter(survey.inherited.values()), None),
            native=Native(refs=title_refs) if title_refs else None,
        )
        self.pen.stream.write(record)

    def body(self) -> None:
        """Writes the records of every unit."""
        survey = self.survey
        for doubt in survey.evidence.doubts:
            self.desk.diagnose(doubt.code, doubt.message, self.file.source, doubt.line)
        for unit in native_units(self.desk.lines(self.file.source), line_decoder):
            if isinstance(unit, Hole):
                self._gap(unit)
                continue
            place = (unit.line.number, unit.start)
            if place in survey.repeats:
                first = survey.repeats[place][0]
                self.desk.diagnose(
                    "repeated_line", f"repeats line {first}", self.file.source, unit.line.number
                )
                continue
            self._unit(unit, place)
        self._late_notices()

    def _gap(self, hole: Hole) -> None:
        offset = hole.line.offset + hole.start
        data = hole.line.data[hole.start : hole.start + hole.size]
        gap = Gap(
            reason=hole.reason,
            source=self.file.source.id,
            line=hole.line.number,
            offset=offset,
            bytes=hole.size,
            native=Native(
                refs=[
                    Ref(
                        source=self.file.source.id,
                        line=hole.line.number,
                        offset=offset,
                        bytes=hole.size,
                        sha256=digest(data),
                        role="gap",
                    )
                ]
            ),
        )
        self.pen.stream.write(gap)
        self.desk.diagnose(
            hole.reason,
            f"{hole.size} bytes from offset {offset} hold no record",
            self.file.source,
            hole.line.number,
        )

    def _unit(self, unit: Unit[NativeLine], place: tuple[int, int]) -> None:
        line = unit.native
        if line is None:
            self.pen.take(unit)
            self.events.unmapped(None, Raw(unit.data))
            return
        inherited = self.survey.inherited.get(place)
        if inherited is None and line.sessionId != self._stem and self._stem and text(line.sessionId):
            inherited = line.sessionId
        copies = self.survey.copies.get(place) if self.survey.copies else None
        self.pen.take(unit, line.timestamp, inherited, copies)
        kind = line.type
        if kind == "assistant":
            self.talk.assistant(line)
        elif kind == "user":
            self.talk.user(line)
        elif kind == "attachment":
            for notice in self.events.attachment(line):
                self.talk.notice(notice)
        elif kind == "system":
            self.events.system(line)
        elif kind == "progress":
            self._progress(unit)
        elif kind == "cost-state":
            self.events.cost_state()
        elif kind == "queue-operation":
            self._queued(unit, line)
        if not self.pen.written:
            self.events.unmapped(_native_type(line), Raw(unit.data))

    def _progress(self, unit: Unit[NativeLine]) -> None:
        if b'"hook_progress"' not in unit.data and b'"agent_progress"' not in unit.data:
            return
        value = value_of(Raw(unit.data))
        data = value.get("data") if isinstance(value, dict) else None
        if not isinstance(data, dict):
            return
        if data.get("type") == "hook_progress":
            self.events.hook_progress(data, value.get("parentToolUseID"))
        elif data.get("type") == "agent_progress" and text(data.get("agentId")):
            if not self.asides.wrote_agent(data["agentId"]):
                self.asides.agent(
                    data["agentId"], text(value.get("parentToolUseID")), None, "unknown", "progress"
                )

    def _queued(self, unit: Unit[NativeLine], line: NativeLine) -> None:
        """A task notification in the queue counts only if none was delivered; that shows at the end."""
        if b"<task-notification>" not in unit.data:
            return
        words = value_of(line.content)
        if isinstance(words, str) and words.lstrip().startswith("<task-notification>"):
            found = tags(words)
            if found.get("task-id") and len(self._waiting) < 10_000:
                light = unit._replace(line=unit.line._replace(data=b""), native=None)
                self._waiting.setdefault(found["task-id"], (found, light, line.timestamp))

    def _late_notices(self) -> None:
        for task, (found, unit, ts) in self._waiting.items():
            if task not in self.talk.noticed:
                self.pen.take(unit, ts)
                self.asides.notified(found)


def session_name(file: File) -> str | None:
    """The session id that a file's own records carry: its name where that is one, else the first it names."""
    stem = PurePath(file.path).name.removesuffix(".jsonl")
    return stem if stem == file.survey.session_id or layout.is_session_id(stem) else file.survey.session_id


def _native_type(line: NativeLine) -> str | None:
    if not isinstance(line.type, str):
        return None
    if line.type == "attachment":
        attached = value_of(line.attachment)
        kind = attached.get("type") if isinstance(attached, dict) else None
        return f"attachment/{kind}"
    return f"{line.type}/{line.subtype}" if isinstance(line.subtype, str) else line.type


class ClaudeCode:
    """The adapter (``harness._port.Stored``)."""

    kind = layout.KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file's first lines are those of a session file."""
        return layout.recognises(name, head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The sessions of a file or folder."""
        return layout.sessions(path, folder)

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """Where this user's sessions lie."""
        return layout.places(environ, home)

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one session: its own file, then its agents'."""
        parts: layout.Parts = session.parts
        registry = load("claude-code")
        main = File(desk, parts.main) if parts.main else None
        metas = {agent.agent_id: Meta(desk, agent.meta) for agent in parts.agents}
        files = {agent.agent_id: File(desk, agent.path) for agent in parts.agents}
        attached = Attached(desk, parts.files)
        known = frozenset(files)
        native_id = session.native_id
        links = _links(main, files, metas)
        sources = [file.source for file in ([main] if main else []) + list(files.values())]
        found: dict[str, str] = {}
        if main is not None:
            with desk.stream(native_id) as stream:
                reader = Reader(desk, main, stream, registry, attached, known)
                shared = [main.source] if files else sources
                reader.head(main.survey.session_id or native_id, shared, None, [])
                reader.body()
                self._agents(reader, None, links, metas, found)
                if not files:
                    for lonely in attached.lonely():
                        stream.write(lonely)
        parent = stream_id(native_id) if main is not None else None
        order = sorted(files, key=lambda agent: (metas[agent].depth or 1, agent))
        for index, agent_id in enumerate(order):
            owner, call_id = links.get(agent_id, (None, None))
            call_id = call_id or found.get(agent_id)
            with desk.stream(agent_id, owner or parent) as stream:
                reader = Reader(desk, files[agent_id], stream, registry, attached, known)
                meta = metas[agent_id]
                home = stream_id(owner) if owner else parent
                above = Parent(session=home, call_id=call_id) if home else None
                reader.head(
                    files[agent_id].survey.session_id or native_id,
                    [files[agent_id].source],
                    above,
                    [meta.ref] if meta.ref else [],
                )
                reader.body()
                if meta.unread is not None:
                    stream.write(meta.unread)
                self._agents(reader, agent_id, links, metas, found)
                if index == len(order) - 1:
                    for lonely in attached.lonely():
                        stream.write(lonely)

    @staticmethod
    def _agents(
        reader: Reader,
        owner: str | None,
        links: dict[str, tuple[str | None, str | None]],
        metas: dict[str, Meta],
        found: dict[str, str],
    ) -> None:
        """Records of the agents that belong to this stream and that no result told of."""
        for agent_id, meta in metas.items():
            linked_owner, call_id = links.get(agent_id, (None, None))
            if reader.asides.wrote_agent(agent_id):
                told = reader.asides.call_of(agent_id)
                if told:
                    found[agent_id] = told
            elif linked_owner == owner and agent_id not in found:
                reader.asides.file_only(agent_id, call_id, meta.name, meta.ref, reader.file.source)


def _links(
    main: File | None, files: dict[str, File], metas: dict[str, Meta]
) -> dict[str, tuple[str | None, str | None]]:
    """Which stream (None: the session's own) and call each agent was started from, where its meta file says so.

    The call id is looked up in the session's own file first, unless the meta names a deeper level, then in the other
    agents' files; an id that stands on several calls names none of them.
    """
    links: dict[str, tuple[str | None, str | None]] = {}
    for agent_id, meta in metas.items():
        if meta.call_id is None:
            continue
        homes: list[str | None] = []
        if main is not None and main.survey.call(meta.call_id):
            homes.append(None)
        homes += [
            other for other, file in files.items() if other != agent_id and file.survey.call(meta.call_id)
        ]
        if meta.depth == 1 and None in homes:
            homes = [None]
        if len(homes) == 1:
            home = homes[0]
            survey = main.survey if home is None and main is not None else files[str(home)].survey
            single = not survey.duplicates(meta.call_id)
            links[agent_id] = (home, meta.call_id if single else None)
    return links


CLAUDE_CODE = ClaudeCode()
