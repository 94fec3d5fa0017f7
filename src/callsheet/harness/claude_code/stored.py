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
from callsheet.harness._port.pen import Pen, Place
from callsheet.harness._port.units import Hole, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.claude_code import layout
from callsheet.harness.claude_code.asides import Asides
from callsheet.harness.claude_code.attached import Attached
from callsheet.harness.claude_code.events import Events, Lines
from callsheet.harness.claude_code.family import Family, File, subagent
from callsheet.harness.claude_code.results import Results
from callsheet.harness.claude_code.shapes import READING, NativeLine, text, value_of
from callsheet.harness.claude_code.talk import Talk
from callsheet.records import FORMAT, Agent, Gap, Native, Parent, Ref, SourceEntry
from callsheet.records import Session as SessionRecord
from callsheet.registry import Registry, load
from callsheet.registry.via import tags
from callsheet.wire import lossless
from callsheet.wire.lines import Line


class Reader:
    """Writes the stream of one file."""

    def __init__(
        self,
        desk: Desk,
        file: File,
        stream: Stream,
        registry: Registry,
        attached: Attached,
        agents: dict[str, str],
        sources: list[SourceEntry],
    ) -> None:
        survey = file.survey
        self.desk = desk
        self.file = file
        self.survey = survey
        self.sources = sources
        self.roots = {"project": survey.cwd} if survey.cwd else {}
        self.pen = Pen(desk, Veil(desk), stream, self.roots)
        lines = Lines(registry)
        self.events = Events(self.pen, survey, registry, lines)
        self.asides = Asides(self.pen, survey, registry)
        self.asides.known_agents = agents
        listed = frozenset(source.id for source in sources)
        self.results = Results(self.pen, survey, registry, attached, listed, self.asides.is_agent)
        self.talk = Talk(self.pen, survey, registry, lines, self.events, self.results, self.asides)
        self._repeated = 0
        self._begun = False
        self._stem = session_name(file)
        self._waiting: dict[str, tuple[dict[str, str], tuple[int, int, int], Any]] = {}

    def head(self, native_id: str, parent: Parent | None, refs: list[Ref]) -> None:
        """Writes the session record."""
        survey = self.survey
        record = _head(native_id, self.sources)
        record.agent = Agent(name="claude-code", version=survey.version)
        record.roots = self.roots or None
        record.title = survey.title
        record.parent = parent
        record.forked_from = survey.forked_from or next(iter(survey.inherited.values()), None)
        record.native = Native(refs=[*refs, *self._head_refs()])
        self.pen.stream.write(record)
        self._begun = True

    def _head_refs(self) -> list[Ref]:
        """Refs to the lines that say what the session record says, each once."""
        found: dict[tuple[str, int], Ref] = {}
        for name, spot in self.survey.spots.items():
            role = name if name in ("title", "fork") else "member"
            found.setdefault((role, spot.offset), self.pen.place(Place(self.file.source, *spot), role))
        return list(found.values()) or [Ref(source=self.file.source.id, role="member")]

    def agent(self, native_id: str, parent: Parent, refs: list[Ref]) -> None:
        """Writes the records of an agent's file; one that goes while it is read is a gap from there on."""
        source = self.file.source
        try:
            self.head(native_id, parent, refs)
            self.body()
        except OSError as error:
            if error.filename is None or str(error.filename) != self.file.path:
                raise
            self.desk.diagnose("missing_file", f"{self.file.path}: {error.strerror or error}", source)
            member = Ref(source=source.id, role="member")
            if not self._begun:
                record = _head(native_id, self.sources)
                record.parent, record.native = parent, Native(refs=[*refs, member])
                self.pen.stream.write(record)
            gap = Gap(reason="missing_file", source=source.id)
            gap.native = Native(refs=[member])
            self.pen.stream.write(gap)

    def body(self) -> None:
        """Writes the records of every unit."""
        survey = self.survey
        for doubt in survey.evidence.doubts:
            self.desk.diagnose(doubt.code, doubt.message, self.file.source, doubt.line)
        for unit in native_units(self.desk.lines(self.file.source), READING):
            if isinstance(unit, Hole):
                self.pen.gap(self.file.source, unit)
                continue
            first = survey.repeats.get((unit.line.number, unit.start)) if survey.repeats else None
            if first is not None:
                self.desk.diagnose(
                    "repeated_line", f"repeats line {first[0]}", self.file.source, unit.line.number
                )
                continue
            try:
                self._unit(unit)
            except (RecursionError, lossless.NotJson):
                # What could be read before this depth stands as records; the gap says that it is not all.
                self.pen.gap(self.file.source, Hole(unit.line, unit.start, len(unit.data), "too_deep"))
        self._late_notices()

    def _unit(self, unit: Unit[NativeLine]) -> None:
        line, pen, survey = unit.native, self.pen, self.survey
        if line is None:
            pen.take(self.file.source, unit)
            pen.unmapped(None, Raw(unit.data))
            return
        inherited = survey.inherited.get((unit.line.number, unit.start)) if survey.inherited else None
        if inherited is None and line.sessionId != self._stem and self._stem and text(line.sessionId):
            inherited = line.sessionId
        copies = self._copies((unit.line.number, unit.start)) if survey.copies else None
        pen.take(self.file.source, unit, line.timestamp, inherited, copies)
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
        if not pen.written:
            pen.unmapped(_native_type(line), Raw(unit.data))

    def _copies(self, place: tuple[int, int]) -> list[Place] | None:
        found = self.survey.copies.get(place)
        return [Place(self.file.source, *copy) for copy in found] if found else None

    def _progress(self, unit: Unit[NativeLine]) -> None:
        if b'"hook_progress"' not in unit.data and b'"agent_progress"' not in unit.data:
            return
        value = value_of(Raw(unit.data))
        data = value.get("data") if isinstance(value, dict) else None
        if not isinstance(data, dict):
            return
        if data.get("type") == "hook_progress":
            self.events.hook_progress(data, value.get("parentToolUseID"))
            return
        agent_id = text(data.get("agentId"))
        if data.get("type") == "agent_progress" and agent_id and not self.asides.wrote_agent(agent_id):
            call_id = self.survey.sole(text(value.get("parentToolUseID")))
            self.asides.agent(agent_id, call_id, None, "unknown", "progress")

    def _queued(self, unit: Unit[NativeLine], line: NativeLine) -> None:
        """A task notification in the queue counts only if none was delivered; that shows at the end."""
        if b"<task-notification>" not in unit.data:
            return
        words = value_of(line.content)
        if isinstance(words, str) and words.lstrip().startswith("<task-notification>"):
            found = tags(words)
            if found.get("task-id") and len(self._waiting) < 10_000:
                place = (unit.line.number, unit.line.offset + unit.start, len(unit.data))
                self._waiting.setdefault(found["task-id"], (found, place, line.timestamp))

    def _late_notices(self) -> None:
        for task, (found, (number, offset, size), ts) in self._waiting.items():
            if task not in self.talk.noticed:
                data = self.desk.read(self.file.source, offset, size)
                self.pen.take(self.file.source, Unit(Line(number, offset, data), 0, data, None), ts)
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
        return f"attachment/{kind}" if isinstance(kind, str) else "attachment"
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
        registry = load("claude-code")
        family = Family(desk, session.native_id, session.parts)
        attached = Attached(desk, session.parts.files)
        told: dict[str, str] = {}
        streams = family.streams()
        with desk.stream(session.native_id) as stream:
            sources = family.sources(None) + attached.sources
            if family.main is not None:
                reader = Reader(desk, family.main, stream, registry, attached, streams, sources)
                # No line that can be read names the session: then the file does.
                own = family.main.survey.session_id or _name_in(family.main.path)
                reader.head(own, None, [])
                reader.body()
                _agents(reader, family, None, told)
            else:
                desk.diagnose("missing_file", f"{session.native_id}.jsonl is not there, only files beside it")
                head = _head(session.native_id, sources)
                head.native = Native(refs=[Ref(source=source.id, role="member") for source in sources])
                stream.write(head)
                for record in family.without_main(attached.refs):
                    stream.write(record)
            for child in family.of(None):
                if child.file is None and child.meta.unread is not None:
                    stream.write(child.meta.unread)
            for lonely in attached.lonely():
                stream.write(lonely)
        for child in family.children.values():
            if child.file is None or child.stream is None:
                continue
            above = family.children[child.owner].stream if child.owner else family.stream
            with desk.stream(child.stream, above) as stream:
                sources = family.sources(child.agent_id)
                reader = Reader(desk, child.file, stream, registry, attached, streams, sources)
                parent = Parent(session=above or "", call_id=child.call_id or told.get(child.agent_id))
                own_id = child.file.survey.session_id or session.native_id
                reader.agent(own_id, parent, [child.meta.ref] if child.meta.ref else [])
                if child.meta.unread is not None:
                    stream.write(child.meta.unread)
                _agents(reader, family, child.agent_id, told)


def _name_in(path: str) -> str:
    """The session that a file's name names, as text: bytes that are no UTF-8 become U+FFFD."""
    name = PurePath(path).name.partition(".jsonl")[0]
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _head(native_id: str, sources: list[SourceEntry]) -> SessionRecord:
    agent = Agent(name="claude-code")
    return SessionRecord(format=FORMAT, agent=agent, native_session_id=native_id, sources=sources)


def _agents(reader: Reader, family: Family, owner: str | None, told: dict[str, str]) -> None:
    """Records of the agents that belong to this stream and that no result told of."""
    for agent_id in reader.asides.agents():
        call_id = reader.asides.call_of(agent_id)
        if call_id and agent_id in family.children:
            told[agent_id] = call_id
    for child in family.of(owner):
        if not reader.asides.wrote_agent(child.agent_id) and child.agent_id not in told:
            reader.asides.file_only(subagent(child, reader.file.source))


CLAUDE_CODE = ClaudeCode()
