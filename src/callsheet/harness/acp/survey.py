"""The first pass over a frame log: what has to be known before the first record is written.

Owns: the protocol version of a log that does not show its negotiation, the agent, folders, titles and parents
of sessions, calls after whose end the model spoke again (a condition of ``content``, decision 7), and the
answers to secret questions, which the second pass must not see (ASR-283).

Must never know: records other than refs.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of, whole_number_of
from callsheet.harness._port.rpc import Frame, Id
from callsheet.harness._port.units import Hole, Unit, native_units
from callsheet.harness._port.veil import Veil, original_of
from callsheet.harness.acp.fold import SESSIONS_MOST, WAITING_MOST, Known, agent_of
from callsheet.harness.acp.replies import Replies
from callsheet.harness.acp.secrets import words_of
from callsheet.harness.acp.shapes import LogLine, frames_of, log_reading
from callsheet.harness.acp.titles import UPDATE, title_in
from callsheet.records import Ref, SourceEntry
from callsheet.wire.blobs import digest

MARKS: dict[str, int] = {
    "tool_call": 1,
    "plan": 1,
    "current_mode_update": 1,
    "state_update": 2,
    "terminal_update": 2,
    "terminal_output_chunk": 2,
    "tool_call_content_chunk": 2,
    "user_message": 2,
    "agent_message": 2,
    "agent_thought": 2,
    "session_message": 2,
    "fs/read_text_file": 1,
    "fs/write_text_file": 1,
    "terminal/create": 1,
    "session/load": 1,
    "session/set_mode": 1,
}
"""Updates and methods that only one version has."""


class Asked(NamedTuple):
    """A request that waits for its answer; ``ref`` where it may begin a session."""

    method: str
    params: dict[str, Raw]
    ref: Ref | None = None


NOBODY = Asked("", {})
"""What an answer answers whose request is not in the log."""


class Survey:
    """Collects ``Known`` from one log."""

    def __init__(self, veil: Veil, source: SourceEntry) -> None:
        self.known = Known(folders={}, titles={}, parents={}, places={}, sessions=set(), replied=set())
        self._veil = veil
        self._source = source
        self._negotiated: int | None = None
        self._offered: int | None = None
        self._marked: int | None = None
        self._requests: dict[tuple[bool, Id | None], Asked] = {}
        self._replies: dict[str, Replies] = {}
        self.units = 0

    def run(self) -> Known:
        """Reads the log."""
        for unit in native_units(self._veil.lines(self._source), log_reading):
            self.units += 1
            if isinstance(unit, Hole):
                continue
            for frame in frames_of(unit):
                self._frame(unit, frame)
        known = self.known
        for version in (self._negotiated, self._marked, self._offered):
            if version is not None:
                known.version = min(max(version, 1), 2)
                break
        return known

    def _frame(self, unit: Unit[LogLine], frame: Frame) -> None:
        if frame.method is None:
            self._answer(unit, frame)
            return
        params = members_of(frame.params)
        if frame.id is not None:
            while len(self._requests) >= WAITING_MOST:
                self._requests.pop(next(iter(self._requests)))
            kept = {name: Raw(bytes(raw)) for name, raw in params.items()}
            ref = self._ref(unit, frame.pointer, "start") if frame.method == "session/new" else None
            self._requests[(frame.from_agent, frame.id)] = Asked(frame.method, kept, ref)
        session = text_of(params.get("sessionId", ABSENT))
        if session is not None and len(self.known.sessions) < SESSIONS_MOST:
            self.known.sessions.add(session)
        if frame.method == "session/update" and session is not None:
            self._update(unit, frame, session, members_of(params.get("update", ABSENT)))
            return
        if frame.method == "initialize":
            self._offered = whole_number_of(params.get("protocolVersion", ABSENT)) or self._offered
        elif frame.method == "session/request_permission":
            self._mark(1 if "toolCall" in params else 2)
        elif frame.method in MARKS:
            self._mark(MARKS[frame.method])
        folder = text_of(params.get("cwd", ABSENT))
        if session is not None and folder and frame.method in ("session/load", "session/resume"):
            self._folder(session, folder, self._ref(unit, frame.pointer, "start"))

    def _folder(self, session: str, folder: str, ref: Ref) -> None:
        if session not in self.known.folders:
            self.known.folders[session] = folder
            self.known.places[session] = ref

    def _mark(self, version: int) -> None:
        if self._marked is None:
            self._marked = version

    def _answer(self, unit: Unit[LogLine], frame: Frame) -> None:
        asked = self._requests.pop((not frame.from_agent, frame.id), NOBODY)
        method, params = asked.method, asked.params
        result = members_of(frame.result)
        if method == "initialize" or (not method and "protocolVersion" in result):
            self._negotiated = whole_number_of(result.get("protocolVersion", ABSENT)) or self._negotiated
            told = agent_of(result)
            if told is not None:
                self.known.agent = told
                self.known.places[""] = self._ref(unit, frame.pointer, "start")
        elif method == "session/new":
            session, folder = text_of(result.get("sessionId", ABSENT)), text_of(params.get("cwd", ABSENT))
            if session is not None and folder and asked.ref is not None:
                self._folder(session, folder, asked.ref)
        elif method == "session/prompt" and "stopReason" in result:
            self._replies_in(text_of(params.get("sessionId", ABSENT)) or "").turn_over()
        elif method == "elicitation/create":
            self._secrets(unit, params, result.get("content", ABSENT))

    def _update(self, unit: Unit[LogLine], frame: Frame, session: str, update: dict[str, Raw]) -> None:
        name = text_of(update.get("sessionUpdate", ABSENT)) or ""
        known = self.known
        if name in MARKS:
            self._mark(MARKS[name])
        known.replied.update((session, call) for call in self._replies_in(session).told(name, update))
        if name == UPDATE:
            title = title_in(update)
            if title:
                known.titles[session] = (title, self._ref(unit, f"{frame.pointer}/params/update"))
            elif title is not None:
                known.titles.pop(session, None)
        elif name == "subagent_update":
            child = text_of(update.get("sessionId", ABSENT))
            if child and child != session:
                known.parents.setdefault(child, session)

    def _replies_in(self, session: str) -> Replies:
        return self._replies.setdefault(session, Replies())

    def _ref(self, unit: Unit[LogLine], pointer: str, role: str = "title") -> Ref:
        line = unit.line
        data = original_of(line)[unit.start : unit.start + len(unit.data)]
        return Ref(
            source=self._source.id,
            line=line.number,
            offset=line.offset + unit.start,
            bytes=len(data),
            sha256=digest(data),
            role=role,
            pointer=pointer,
        )

    def _secrets(self, unit: Unit[LogLine], params: dict[str, Raw], content: Raw) -> None:
        whole, names = secrets_of(params)
        answers = members_of(content)
        secret = [content] if whole and content else [answers[name] for name in names if name in answers]
        for raw in secret:
            at = unit.data.find(bytes(raw))
            if at >= 0:
                self._veil.hide(self._source, unit.line.offset + unit.start + at, len(raw))
            for word in words_of(value_of(raw)):
                self._veil.secret(word, [self._source])
