"""The second pass over a session's threads: native units in, records out.

Owns: the order (all first passes, then what must not be kept, then one stream for each thread, the session's own
first), the session record, the way of each unit to its records by the table ``_HANDLERS``, and the promise that every
unit becomes at least one record, is cited by one, or is a gap.

Must never know: pairing.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from callsheet.harness._port import Desk, Folder, Session, Stream
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.units import Hole, Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex import layout
from callsheet.harness.codex.asides import Asides
from callsheet.harness.codex.calls import Calls
from callsheet.harness.codex.calltable import CALL
from callsheet.harness.codex.executions import Execution, execution_of
from callsheet.harness.codex.lineage import Lineage, Shelf, lineage
from callsheet.harness.codex.results import Results
from callsheet.harness.codex.secrets import Answers, Asked
from callsheet.harness.codex.shapes import (
    BARE,
    LooseLine,
    Payload,
    RolloutLine,
    clean_data,
    decoded,
    item_head,
    kind_of,
    line_reading,
    members_of,
    payload_decoder,
    payload_text,
    text,
    text_of,
)
from callsheet.harness.codex.survey import Survey, collect_answers
from callsheet.harness.codex.talk import Talk
from callsheet.harness.codex.tape import Seen, Tape
from callsheet.harness.codex.trace import KIND as TRACE_KIND
from callsheet.harness.codex.trace import Trace
from callsheet.records import FORMAT, Agent, Gap, Native, Parent, Ref, SourceEntry, Subagent
from callsheet.records import Session as SessionRecord
from callsheet.records.bundle import stream_id
from callsheet.registry import Registry, load


class Thread:
    """One thread of a session: its files, and what the first pass found in them."""

    def __init__(
        self,
        desk: Desk,
        veil: Veil,
        shelf: Shelf,
        files: tuple[layout.RolloutFile, ...],
        parts: layout.Parts,
        registry: Registry,
    ) -> None:
        self.files = files
        self.lineage: Lineage = lineage(desk, veil, shelf, files, parts)
        self.tape = Tape(veil, self.lineage.stretches)
        self.survey = Survey(self.tape, veil, registry, keep_reasoning=desk.keep_reasoning)

    @property
    def id(self) -> str:
        """The thread's id, or a name for one that has none."""
        return self.files[0].thread or self.survey.head.text("id") or layout.stem(self.files[0].path)


class Reader:
    """Writes the stream of one thread."""

    def __init__(
        self,
        desk: Desk,
        veil: Veil,
        thread: Thread,
        stream: Stream,
        registry: Registry,
        agents: dict[str, str],
        trace: Trace | None,
    ) -> None:
        survey = thread.survey
        self.thread = thread
        self.survey = survey
        self.desk = desk
        self.version = survey.head.text("cli_version")
        self.roots = {"project": survey.cwd} if survey.cwd else {}
        self.pen = Pen(desk, veil, stream, self.roots)
        self.calls = Calls(self.pen, survey, registry, trace)
        self.results = Results(self.pen, thread.tape, survey, registry, self.version)
        self.talk = Talk(self.pen, survey, registry)
        self.asides = Asides(self.pen, survey, registry, agents)
        self._trace = trace
        self._position = 0
        self._boundary = 0
        self._cwd = survey.cwd

    # -- the session record -------------------------------------------------------------------------------------

    def head(self, native_id: str, parent: Parent | None, more: list[SourceEntry]) -> None:
        """Writes the session record, and a gap for each part of the history that is not there."""
        survey, lineage = self.survey, self.thread.lineage
        head = survey.head
        refs: list[Ref] = []
        if head.place is not None:
            refs.append(self.pen.place(head.place, "meta", head.pointer))
        if survey.cwd_place is not None:
            refs.append(self.pen.place(survey.cwd_place, "cwd", "/payload"))
        if survey.title is not None:
            refs.append(self.pen.place(survey.title[1], "title", "/payload/thread_name"))
        sources = list(self.thread.tape.sources)
        for extra in [*lineage.compared, *([self._trace.source] if self._trace else [])]:
            sources.append(extra)
            refs.append(_whole(self.desk, extra, "trace" if extra.kind == TRACE_KIND else "compared"))
        refs += [
            _whole(self.desk, stretch.source, "base")
            for stretch in lineage.stretches
            if stretch.session is not None
        ]
        if not refs:
            refs.append(Ref(source=sources[-1].id, role="member"))
        sources += [source for source in more if all(source.id != one.id for one in sources)]
        record = SessionRecord(
            format=FORMAT,
            agent=Agent(name="codex", version=self.version),
            native_session_id=native_id,
            sources=list({source.id: source for source in sources}.values()),
            roots=self.roots or None,
            title=survey.title[0] if survey.title else None,
            parent=parent,
            forked_from=head.text("forked_from_id"),
            native=Native(refs=refs),
        )
        self.pen.stream.write(record)
        for thread in lineage.missing:
            self._missing(thread)

    def _missing(self, thread: str) -> None:
        """The history goes on from a thread whose file is not there."""
        place = self.survey.head.place
        gap = Gap(reason="missing_session", source=place.source.id if place else None)
        if place is not None:
            gap.line = place.line
            head = self.survey.head
            told = f"{head.pointer}/history_base" if "history_base" in head.meta else head.pointer
            gap.native = Native(refs=[self.pen.place(place, "meta", told)])
        self.pen.stream.write(gap)
        self.desk.diagnose(
            "missing_session",
            f"its history begins in {thread}, which is not here",
            place.source if place else None,
            place.line if place else None,
        )

    # -- every unit ---------------------------------------------------------------------------------------------

    def body(self) -> None:
        """Writes the records of every unit."""
        survey, tape = self.survey, self.thread.tape
        for position, (number, unit, seen) in enumerate(tape.units(line_reading)):
            source = tape.stretches[number].source
            if isinstance(unit, Hole):
                self.pen.gap(source, unit)
                continue
            if position in survey.repeats:
                line = unit.line.number
                self.desk.diagnose("repeated_line", "repeats an earlier line", source, line)
                continue
            self._position = position
            self._unit(source, unit, seen)

    def _unit(self, source: SourceEntry, unit: Unit[RolloutLine], seen: Seen) -> None:
        pen = self.pen
        line = unit.native
        if line is None:
            pen.take(source, unit)
            pen.unmapped(None)
            return
        pen.take(source, unit, line.timestamp, seen.session, self.survey.copies.get(self._position))
        payload, pointer = line.payload, "/payload"
        kind = kind_of(line)
        if payload is None and line.type in BARE:
            payload, pointer = self._bare(), ""
            kind = f"response_item/{line.type}"
        if seen.dead:
            pen.unmapped(f"reverted/{_native_type(line, pointer)}")
            return
        handler = _HANDLERS.get(kind)
        if handler is not None and payload is not None:
            handler(self, payload, pointer)
        elif kind in self.talk.notices and payload is not None:
            self.talk.notice(payload, kind)
        elif line.type == "compacted" and payload is not None:
            self.talk.compacted(payload)
        elif line.type == "token_usage_record" and payload is not None:
            self.talk.usage_record(payload)
        elif line.type == "turn_context" and payload is not None:
            self._cwd = text(payload.cwd) or self._cwd
        if self.survey.is_boundary(kind, payload.role if payload is not None else None):
            self._boundary += 1
        if not pen.written and not self._is_head(source, unit):
            pen.unmapped(_native_type(line, pointer))

    def _is_head(self, source: SourceEntry, unit: Unit[RolloutLine]) -> bool:
        """Whether the session record cites a unit."""
        place = self.survey.head.place
        return place is not None and place.source is source and place.offset == unit.line.offset + unit.start

    def _bare(self) -> Payload | None:
        return decoded(payload_decoder, Raw(self._clean()))

    def _clean(self) -> bytes:
        """The unit's text in a form that every reader takes."""
        return clean_data(self.pen.unit)

    # -- response items -----------------------------------------------------------------------------------------

    def _call(self, payload: Payload, pointer: str) -> None:
        call_id = self.calls.of_model(payload, pointer)
        if payload.type == "function_call" or payload.type == "custom_tool_call":
            self.asides.after_call(payload, call_id, pointer, self._cwd)
        elif payload.type == "image_generation_call" and payload.result:
            self.results.hosted(payload, pointer, call_id, "exact")

    def _output(self, payload: Payload, pointer: str) -> None:
        self.results.output(payload, pointer, self._position, self._boundary)
        self.asides.after_output(payload, pointer)

    def _message(self, payload: Payload, pointer: str) -> None:
        written = self.talk.message(payload, pointer)
        if payload.role == "user" and written:
            self.asides.after_message(written)

    def _agent_message(self, payload: Payload, pointer: str) -> None:
        self.talk.agent_message(payload, pointer)

    def _reasoning(self, payload: Payload, pointer: str) -> None:
        self.talk.reasoning(payload, pointer)

    # -- events -------------------------------------------------------------------------------------------------

    def _turn(self, payload: Payload, _pointer: str) -> None:
        self.talk.turn(payload)

    def _token_count(self, payload: Payload, _pointer: str) -> None:
        self.talk.token_count(payload)

    def _item(self, payload: Payload, _pointer: str) -> None:
        kind, item_id = item_head(payload.item)
        if kind in _PLAIN and item_id is not None and self.results.waits(item_id):
            self.pen.cited()
            return
        if self.survey.is_execution(kind):
            self._execution(payload, _pointer)
            return
        members = members_of(payload.item)
        if kind == "SubAgentActivity":
            self._activity(members, item_id, "/payload/item")
        elif kind == "Plan":
            words = text_of(members.get("text", Raw()))
            if words is not None:
                self.asides.plan_item(item_id, words)

    def _activity(self, members: dict[str, Raw], call_id: str | None, pointer: str) -> None:
        asked = call_id is not None and self.survey.calls.count(CALL, call_id) == 1
        self.asides.agents.activity(members, call_id if asked else None, pointer)

    def _agent_event(self, _payload: Payload, pointer: str) -> None:
        members = members_of(payload_text(self._clean()))
        self._activity(members, text_of(members.get("event_id", Raw())), pointer)

    def _execution(self, _payload: Payload, _pointer: str) -> None:
        execution = execution_of(self._clean())
        if execution is None:
            return
        own = self.thread.id
        if self.pen.inherited is None and execution.thread is not None and execution.thread != own:
            self.pen.inherit(execution.thread)
        nested = False
        if execution.call_id is None or not self._asked_for(execution):
            nested = self.calls.of_execution(execution)
        result = self.results.execution(execution, nested)
        status = result.status if result is not None else self.results.statuses.of(execution.words)
        self.asides.after_execution(execution, status)

    def _asked_for(self, execution: Execution) -> bool:
        """Whether a response item asked for what an execution tells of."""
        call_id = execution.call_id
        assert call_id is not None
        return self.survey.calls.count(CALL, call_id) > 0 or self.survey.is_search_id(execution)

    def _assessment(self, _payload: Payload, _pointer: str) -> None:
        self.asides.assessment(self.version)


def _native_type(line: RolloutLine, pointer: str) -> str | None:
    """The type of a line that nothing maps; of an item, with the item's own."""
    if isinstance(line, LooseLine):
        return line.types or None
    payload = line.payload
    if not pointer or payload is None:
        named = line.type
    else:
        item = item_head(payload.item)[0] if payload.item else None
        named = "/".join(one for one in (line.type, payload.type, item) if one)
    if not named and isinstance(line.record_type, str):
        named = f"record_type={line.record_type}"
    return named or None


_PLAIN = frozenset({"CommandExecution", "McpToolCall", "DynamicToolCall", "ImageView"})
"""Items that tell nothing but how their call went."""

_HANDLERS: dict[str, Any] = {
    "response_item/function_call": Reader._call,
    "response_item/custom_tool_call": Reader._call,
    "response_item/local_shell_call": Reader._call,
    "response_item/web_search_call": Reader._call,
    "response_item/tool_search_call": Reader._call,
    "response_item/image_generation_call": Reader._call,
    "response_item/function_call_output": Reader._output,
    "response_item/custom_tool_call_output": Reader._output,
    "response_item/tool_search_output": Reader._output,
    "response_item/message": Reader._message,
    "response_item/agent_message": Reader._agent_message,
    "response_item/reasoning": Reader._reasoning,
    "event_msg/task_started": Reader._turn,
    "event_msg/task_complete": Reader._turn,
    "event_msg/turn_aborted": Reader._turn,
    "event_msg/token_count": Reader._token_count,
    "event_msg/item_completed": Reader._item,
    "event_msg/exec_command_end": Reader._execution,
    "event_msg/patch_apply_end": Reader._execution,
    "event_msg/mcp_tool_call_end": Reader._execution,
    "event_msg/web_search_end": Reader._execution,
    "event_msg/dynamic_tool_call_response": Reader._execution,
    "event_msg/view_image_tool_call": Reader._execution,
    "event_msg/image_generation_end": Reader._execution,
    "event_msg/collab_agent_spawn_end": Reader._execution,
    "event_msg/collab_agent_interaction_end": Reader._execution,
    "event_msg/collab_waiting_end": Reader._execution,
    "event_msg/collab_close_end": Reader._execution,
    "event_msg/collab_resume_end": Reader._execution,
    "event_msg/guardian_assessment": Reader._assessment,
    "event_msg/sub_agent_activity": Reader._agent_event,
}
"""What becomes of a line, by its type and its payload's type; what is not here is kept unmapped."""


def _whole(desk: Desk, source: SourceEntry, role: str) -> Ref:
    """A ref to a file as a whole; of one that was not read to its end, the digest is not known yet."""
    if source.sha256 is None:
        for _ in desk.lines(source):
            pass
    return Ref(source=source.id, line=1, offset=0, bytes=source.size, sha256=source.sha256, role=role)


class Codex:
    """The adapter of rollouts (``harness._port.Stored``)."""

    kind = layout.KIND

    def recognises(self, name: str, head: bytes) -> bool:  # noqa: ARG002 (the port has it)
        """Whether a file's first lines are those of a rollout."""
        return layout.recognises(head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The sessions of a file or folder."""
        return layout.sessions(path, folder)

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """Where this user's sessions lie."""
        return layout.places(environ, home)

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one session: its own thread, then the threads that it started."""
        parts: layout.Parts = session.parts
        registry = load("codex")
        veil = Veil(desk)
        paths = (file.path for group in (parts.files, *parts.agents) for file in group)
        shelf = Shelf(desk, frozenset(paths))
        main = Thread(desk, veil, shelf, parts.files, parts, registry)
        agents = _agents(desk, veil, shelf, parts, registry)
        trace = _trace(desk, veil, parts.trace)
        _keep_secrets(veil, [main, *agents.values()], trace)
        parents = {thread.files[0].thread: thread.files[0].parent for thread in agents.values()}
        streams = {name: stream_id(name) for name in agents}
        found: dict[str, str | None] = {}
        for thread in [main, *(agents[name] for name in _by_depth(agents, parents))]:
            own = thread is main
            name = session.native_id if own else thread.id
            parent = None if own else _parent(thread, found, main, session.native_id)
            if own:
                parent = _outer_parent(thread)
            children = [one for one in agents.values() if one.files[0].parent == thread.files[0].thread]
            with desk.stream(name, None if own else parent.session if parent else None) as stream:
                reader = Reader(desk, veil, thread, stream, registry, streams, trace)
                reader.head(name if own else thread.id, parent, [c.tape.sources[-1] for c in children])
                reader.body()
                for child in children:
                    found[child.id] = _told(reader, child, streams)


def _agents(
    desk: Desk, veil: Veil, shelf: Shelf, parts: layout.Parts, registry: Registry
) -> dict[str, Thread]:
    found: dict[str, Thread] = {}
    for group in parts.agents:
        try:
            thread = Thread(desk, veil, shelf, group, parts, registry)
        except OSError as error:
            desk.diagnose("missing_file", f"{group[0].path}: {error.strerror or error}")
            continue
        found[thread.id] = thread
    return found


def _trace(desk: Desk, veil: Veil, path: str | None) -> Trace | None:
    if path is None:
        return None
    try:
        return Trace(veil, desk.source(path, TRACE_KIND))
    except OSError as error:
        desk.diagnose("missing_file", f"{path}: {error.strerror or error}")
        return None


def _keep_secrets(veil: Veil, threads: list[Thread], trace: Trace | None) -> None:
    """Hides every answer to a secret question, in every file of the session."""
    asked: dict[str, Asked] = {}
    for thread in threads:
        asked.update(thread.survey.secrets)
    if not asked:
        return
    answers = Answers(asked)
    for thread in threads:
        collect_answers(thread.tape, veil, answers)
    sources = [source for thread in threads for source in thread.tape.sources]
    sources += [source for thread in threads for source in thread.lineage.compared]
    if trace is not None:
        sources.append(trace.source)
    for value in answers.values:
        veil.secret(value, list({source.id: source for source in sources}.values()))
    for thread in threads:
        thread.survey.secrets = asked
        thread.survey.secrets_given = answers.given


def _by_depth(agents: dict[str, Thread], parents: dict[str | None, str | None]) -> list[str]:
    def depth(name: str) -> int:
        steps, at = 0, parents.get(agents[name].files[0].thread)
        while at in parents and steps < len(parents):
            steps, at = steps + 1, parents[at]
        return steps

    return sorted(agents, key=lambda name: (depth(name), agents[name].files[0].started, name))


def _parent(thread: Thread, found: dict[str, str | None], main: Thread, native_id: str) -> Parent | None:
    above = thread.files[0].parent
    if above is None:
        return None
    home = native_id if above == main.files[0].thread else above
    return Parent(session=stream_id(home), call_id=found.get(thread.id))


def _outer_parent(thread: Thread) -> Parent | None:
    """The thread that started this one, when its own file is all there is."""
    above = thread.files[0].parent
    return (
        Parent(session=stream_id(above)) if above is not None and thread.files[0].agent is not None else None
    )


def _told(reader: Reader, child: Thread, streams: dict[str, str]) -> str | None:
    """The call that started an agent; an agent that no record tells of gets one from its own file."""
    known = reader.asides.agents.known(child.id)
    if known is not None:
        return known.call_id
    place = child.survey.head.place
    record = Subagent(
        agent_id=child.id, stream=streams.get(child.id), name=child.files[0].agent, status="unknown"
    )
    ref = (
        reader.pen.place(place, "meta", child.survey.head.pointer)
        if place
        else Ref(source=child.tape.sources[-1].id, role="member")
    )
    record.native = Native(refs=[ref])
    reader.pen.stream.write(record)
    return None


CODEX = Codex()
