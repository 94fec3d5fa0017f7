"""The first pass over a thread: what can only be known when all of it was seen (design, law 2).

Owns, for one thread: the facts of its session record, what stands under each call id and where (one call, one output,
one execution make one result), which lines repeat earlier ones (decision 2), where the last response of the model
stands (decision 7), what the person typed, which idless searches their events name, where raw chain of thought stands
(decision 11), and which calls ask for a secret (decision 10). Memory: small integers per call and response.

Must never know: records, what becomes of a line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from callsheet.harness._port.counts import counts_of
from callsheet.harness._port.pen import Place
from callsheet.harness._port.units import Hole, Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.calltable import CALL, IDENTITY, ITEM, OUTPUT, CallTable
from callsheet.harness.codex.executions import Execution
from callsheet.harness.codex.secrets import Answers, Asked, asked
from callsheet.harness.codex.shapes import (
    ABSENT,
    FAILS,
    SurveyLine,
    SurveyPayload,
    clean_data,
    clean_value,
    json_in,
    kind_of,
    members_of,
    parts_of,
    payload_text,
    string,
    survey_reading,
    text,
    text_of,
    value_of,
)
from callsheet.harness.codex.tape import Seen, Tape
from callsheet.registry import Registry
from callsheet.wire.blobs import digest
from callsheet.wire.lossless import NotJson, decode

CALLS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "image_generation_call",
    }
)
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
ENDS = frozenset(
    {
        "exec_command_end",
        "patch_apply_end",
        "mcp_tool_call_end",
        "web_search_end",
        "dynamic_tool_call_response",
        "view_image_tool_call",
        "image_generation_end",
        "collab_agent_spawn_end",
        "collab_agent_interaction_end",
        "collab_waiting_end",
        "collab_close_end",
        "collab_resume_end",
    }
)
"""Events that end an execution and name its call (up to 0.146)."""
SEARCHES = frozenset({"web_search_end", "WebSearch"})
"""Executions of a search, which its call may not name."""
MODEL_ITEMS = CALLS | {"reasoning"}
"""Response items that only a response of the model makes, besides its messages."""
BETWEEN = frozenset(
    {"turn_context", "compacted", "token_usage_record", "record_type=state", "event_msg/token_count"}
)
"""Lines that stand between two responses, never inside one."""


LAST = 256
"""Items of the model that are remembered, to know the last one that repeats no other."""


class Head:
    """The facts of the session record, from the thread's own first ``session_meta``.

    Attributes:
        meta: The decoded payload (or the bare header of 0.20); empty when the file has none.
        place: Where it stands.
        pointer: Where in its line.
    """

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.place: Place | None = None
        self.pointer = "/payload"

    def text(self, name: str) -> str | None:
        """A member that is a non-empty text."""
        return text(self.meta.get(name))

    @property
    def spawn(self) -> dict[str, Any]:
        """How the thread was spawned, if it is an agent's."""
        source = self.meta.get("source")
        agent = source.get("subagent") if isinstance(source, dict) else None
        spawn = agent.get("thread_spawn") if isinstance(agent, dict) else None
        return spawn if isinstance(spawn, dict) else {}


class SearchEvent(NamedTuple):
    """The event that names a search: the call's id, where it stands, and where in its line."""

    call_id: str
    place: Place
    pointer: str


class Survey:
    """What the first pass found out about one thread.

    Attributes:
        head: Facts of the session record.
        cwd: The first working directory.
        cwd_place: The line that says it, where the thread's first line does not.
        title: The last name that the thread was given, and where.
        calls: What stands under each call id.
        repeats: Positions of units that repeat an earlier one, with that one's position.
        copies: Places of repeating units, by the position of the first.
        typed: Hashes of texts that the person typed, as events of older files tell.
        tells_typed: Whether there are such events.
        has_usage: Whether the thread has ``token_usage_record`` lines.
        searches: For each search: how many calls without id and how many events, and the last event.
        secrets: Calls that ask for a secret.
    """

    def __init__(self, tape: Tape, veil: Veil, registry: Registry, *, keep_reasoning: bool) -> None:
        self.head = Head()
        self.cwd: str | None = None
        self.cwd_place: Place | None = None
        self.title: tuple[str, Place] | None = None
        self.calls = CallTable()
        self.repeats: dict[int, int] = {}
        self.copies: dict[int, list[Place]] = {}
        self.typed: set[int] = set()
        self.tells_typed = False
        self.has_usage = False
        self.searches: dict[bytes, tuple[int, int, SearchEvent | None]] = {}
        self.secrets: dict[str, Asked] = {}
        self.secrets_given: dict[str, bool] = {}
        self._tape = tape
        self._veil = veil
        self._keep_reasoning = keep_reasoning
        self._items = {row.type for row in registry.item if row.execution}
        self._own = len(tape.stretches) - 1
        self._boundary = 0
        self._models: deque[tuple[int, int]] = deque(maxlen=LAST)
        self._last_usage = -1
        self._suspicious: set[tuple[int, str]] = set()
        self._first_pass()
        if self._suspicious:
            self._find_repeats()
        # A line that repeats another is no response of its own.
        known = (one for one in reversed(self._models) if one[0] not in self.repeats)
        self._last_model = next(known, (-1, -1))

    # -- what the second pass asks ------------------------------------------------------------------------------

    def answered(self, position: int, boundary: int) -> bool:
        """Whether a later response of the model is recorded: then this output was in its request.

        Args:
            position: The output's position.
            boundary: How many lines that stand between responses came before it.
        """
        if self.has_usage:
            return self._last_usage > position
        return self._last_model[0] > position and self._last_model[1] > boundary

    @staticmethod
    def is_boundary(kind: str, role: Any) -> bool:
        """Whether a line of this kind stands between two responses, never inside one."""
        return kind in BETWEEN or (kind == "response_item/message" and role == "user")

    def is_execution(self, kind: str | None) -> bool:
        """Whether an item of this type tells how a call was executed."""
        return kind in self._items

    def is_search_id(self, execution: Execution) -> bool:
        """Whether an event names the search of a call that has no id."""
        if execution.kind not in ("web_search_end", "WebSearch"):
            return False
        found = self.search_event(execution.fields.action)
        return found is not None and found.call_id == execution.call_id

    # -- first pass ---------------------------------------------------------------------------------------------

    def _first_pass(self) -> None:
        for position, (number, unit, seen) in enumerate(self._tape.units(survey_reading)):
            if isinstance(unit, Hole) or unit.native is None:
                continue
            line = unit.native
            payload = line.payload
            if line.type == "response_item" and payload is not None:
                if not seen.dead:
                    self._response_item(position, number, unit, payload, payload.type)
                self._reasoning(number, unit, payload.type)
            elif line.type == "event_msg" and payload is not None:
                self._event(position, number, unit, payload, seen)
            elif line.type == "token_usage_record":
                if not seen.dead:
                    self.has_usage = True
                    self._boundary += 1
                    if payload is not None and counts_of(value_of(payload.usage)):
                        self._last_usage = position  # one that tells of a response: another proves none
            else:
                self._other(position, number, unit, seen)

    def _other(self, position: int, number: int, unit: Unit[SurveyLine], seen: Seen) -> None:
        line = unit.native
        assert line is not None
        kind = kind_of(line)
        if kind in BETWEEN:
            self._boundary += not seen.dead
        if line.type == "session_meta" or (line.type is None and line.record_type is None):
            self._meta(number, unit, seen)
        elif line.type == "turn_context" and self.cwd is None:
            value = value_of(payload_text(clean_data(unit)))
            self.cwd = text(value.get("cwd")) if isinstance(value, dict) else None
            self.cwd_place = self._place(number, unit) if self.cwd is not None else None
        elif line.type == "compacted":
            self._reasoning(number, unit, "compacted")
        elif line.payload is None and line.record_type is None and line.type is not None:
            bare = SurveyPayload(
                type=line.type, id=line.id, call_id=line.call_id, role=line.role, action=line.action
            )
            if not seen.dead:
                self._response_item(position, number, unit, bare, line.type)
            self._reasoning(number, unit, line.type)

    def _meta(self, number: int, unit: Unit[SurveyLine], seen: Seen) -> None:
        """The first ``session_meta`` of the thread's own files is its own; others were copied along."""
        if self.head.place is not None or seen.session is not None or number not in self._first_own():
            return
        value = clean_value(unit.data)
        if not isinstance(value, dict):
            return
        bare = value if value.get("type") is None and "timestamp" in value else None
        meta = value.get("payload") if value.get("type") == "session_meta" else bare
        if not isinstance(meta, dict) or not isinstance(meta.get("id"), str):
            return
        inner = meta.get("meta")  # some exporters wrap it once more
        self.head.meta = inner if isinstance(inner, dict) else meta
        self.head.place = self._place(number, unit)
        self.head.pointer = "" if meta is value else "/payload"
        if self.head.text("cwd") is not None:
            self.cwd, self.cwd_place = self.head.text("cwd"), None

    def _first_own(self) -> range:
        first = next((at for at, one in enumerate(self._tape.stretches) if one.session is None), 0)
        return range(first, len(self._tape.stretches))

    def _place(self, number: int, unit: Unit[SurveyLine]) -> Place:
        source = self._tape.stretches[number].source
        return Place(source, unit.line.number, unit.line.offset + unit.start, len(unit.data))

    def _add(self, kind: int, call_id: str, position: int, number: int, unit: Unit[SurveyLine]) -> None:
        offset = unit.line.offset + unit.start
        count = self.calls.add(kind, call_id, position, number, unit.line.number, offset, len(unit.data))
        if count > 1:
            self._suspicious.add((kind, call_id))

    def _response_item(
        self, position: int, number: int, unit: Unit[SurveyLine], payload: SurveyPayload, kind: Any
    ) -> None:
        if kind in MODEL_ITEMS or (kind == "message" and payload.role == "assistant"):
            self._models.append((position, self._boundary))
        if kind in CALLS:
            call_id = call_id_of(payload)
            if call_id is not None:
                self._add(CALL, call_id, position, number, unit)
                if b"ecret" in unit.data or b"\\u" in unit.data:
                    self._secret(call_id, unit)
            elif kind == "web_search_call":
                self._search(payload.action, None)
        elif kind in OUTPUTS and isinstance(payload.call_id, str):
            self._add(OUTPUT, payload.call_id, position, number, unit)
        elif kind == "message" and payload.role == "user":
            self._boundary += 1

    def _secret(self, call_id: str, unit: Unit[SurveyLine]) -> None:
        """Notes a call that asks for a secret."""
        data = clean_data(unit)
        members = members_of(payload_text(data) or msgspec.Raw(data))
        arguments = members.get("arguments", ABSENT)
        words = text_of(arguments)
        found = asked(json_in(words) if words is not None else value_of(arguments))
        if found is not None:
            self.secrets[call_id] = found

    def _event(
        self, position: int, number: int, unit: Unit[SurveyLine], payload: SurveyPayload, seen: Seen
    ) -> None:
        kind = payload.type
        if kind == "item_completed":
            item = payload.item
            if item is None:
                return
            if item.type in self._items and isinstance(item.id, str) and not seen.dead:
                self._add(ITEM, item.id, position, number, unit)
                if item.type == "McpToolCall":
                    self.calls.flag(item.id, IDENTITY)
                elif item.type == "WebSearch":
                    self._search(
                        item.action, SearchEvent(item.id, self._place(number, unit), "/payload/item")
                    )
            elif item.type == "Reasoning":
                self._reasoning(number, unit, "Reasoning")
        elif kind == "token_count":
            self._boundary += not seen.dead
        elif kind in ENDS:
            if isinstance(payload.call_id, str) and not seen.dead:
                self._add(ITEM, payload.call_id, position, number, unit)
                if kind == "mcp_tool_call_end":
                    self.calls.flag(payload.call_id, IDENTITY)
                elif kind == "web_search_end":
                    self._search(
                        payload.action,
                        SearchEvent(payload.call_id, self._place(number, unit), "/payload"),
                    )
        elif kind == "user_message":
            if payload.kind is None or payload.kind == "plain":
                self.tells_typed = True
                self.typed.add(hash(text_of(payload.message)))
        elif kind == "agent_reasoning_raw_content":
            self._reasoning(number, unit, kind)
        elif kind == "thread_name_updated" and text(payload.thread_name):
            self.title = (payload.thread_name, self._place(number, unit))

    def _search(self, action: msgspec.Raw, event: SearchEvent | None) -> None:
        """Counts a search without id, or an event that names one, by what is searched for."""
        key = search_key(action)
        calls, events, known = self.searches.get(key, (0, 0, None))
        self.searches[key] = (calls + 1, events, known) if event is None else (calls, events + 1, event)

    def search_event(self, action: msgspec.Raw) -> SearchEvent | None:
        """The event that names the id of a search whose call has none.

        Only where one call and one event of the whole thread search for this very thing, and nothing else has the id.
        """
        calls, events, event = self.searches.get(search_key(action), (0, 0, None))
        if calls != 1 or events != 1 or event is None or self.calls.count(CALL, event.call_id):
            return None
        return event

    # -- raw chain of thought -----------------------------------------------------------------------------------

    def _reasoning(self, number: int, unit: Unit[SurveyLine], kind: Any) -> None:
        """Hides raw chain of thought, wherever a line keeps it in clear."""
        if self._keep_reasoning or kind not in _RAW_PLACES:
            return
        data = clean_data(unit)
        source = self._tape.stretches[number].source
        start = unit.line.offset + unit.start
        for value in _RAW_PLACES[kind](data):
            at = data.find(value)
            while at >= 0:
                self._veil.hide(source, start + at, len(value))
                at = data.find(value, at + len(value))

    # -- repeats ------------------------------------------------------------------------------------------------

    def _find_repeats(self) -> None:
        """Tells a line written twice from a second call with the same id (decision 2)."""
        firsts: dict[tuple[int, str, str], tuple[int, int, int, int, int]] = {}
        for position, (number, unit, seen) in enumerate(self._tape.units(survey_reading)):
            if isinstance(unit, Hole) or unit.native is None or seen.dead:
                continue
            key = self._key(unit.native)
            if key is None or key not in self._suspicious:
                continue
            offset = unit.line.offset + unit.start
            spot = (position, number, unit.line.number, offset, len(unit.data))
            first = firsts.setdefault((*key, _content_mark(unit)), spot)
            if first != spot:
                self.repeats[position] = first[0]
                self.copies.setdefault(first[0], []).append(self._place(number, unit))
                self.calls.less(*key, first)

    def _key(self, line: SurveyLine) -> tuple[int, str] | None:
        payload = line.payload
        if payload is None:
            if line.type in CALLS and isinstance(line.call_id or line.id, str):
                return CALL, line.call_id or line.id
            return (OUTPUT, line.call_id) if line.type in OUTPUTS and isinstance(line.call_id, str) else None
        if payload.type in CALLS:
            call_id = call_id_of(payload)
            return None if call_id is None else (CALL, call_id)
        if payload.type in OUTPUTS and isinstance(payload.call_id, str):
            return OUTPUT, payload.call_id
        if payload.type in ENDS and isinstance(payload.call_id, str):
            return ITEM, payload.call_id
        if payload.item is not None and isinstance(payload.item.id, str) and payload.item.type in self._items:
            return ITEM, payload.item.id
        return None


def call_id_of(payload: SurveyPayload) -> str | None:
    """The id that a call is known by: ``call_id``, or the item's own for calls that have no other."""
    if isinstance(payload.call_id, str):
        return payload.call_id
    if payload.type in ("local_shell_call", "web_search_call", "image_generation_call"):
        return string(payload.id)
    return None


def search_key(action: msgspec.Raw) -> bytes:
    """What is searched for, whatever the order of its members."""
    return msgspec.json.encode(value_of(action), order="sorted")


def _content_mark(unit: Unit[SurveyLine]) -> str:
    """Digest of what makes a line the same: its payload, and its time where the payload has no id of its own."""
    try:
        payload = payload_text(clean_data(unit)) or msgspec.Raw(clean_data(unit))
        value = decode(bytes(payload))
    except (*FAILS, NotJson):
        return digest(unit.data)
    mine = value.get("id") if isinstance(value, dict) else None
    if isinstance(mine, str) and mine:
        return digest(bytes(payload))
    return digest(unit.data)


def collect_answers(tape: Tape, veil: Veil, answers: Answers) -> None:
    """Finds the answers to secret questions in the lines of a thread, and hides their places."""
    for number, unit, _ in tape.units(survey_reading):
        data = unit.line.data if isinstance(unit, Hole) else clean_data(unit)
        if not answers.names_one(data):
            continue
        start = unit.line.offset + (0 if isinstance(unit, Hole) else unit.start)
        for at, size in answers.places(data):
            veil.hide(tape.stretches[number].source, start + at, size)


def _raw_content(data: bytes) -> Iterator[bytes]:
    payload = payload_text(data)
    content = members_of(payload or msgspec.Raw(data)).get("content", ABSENT)
    if parts_of(content):
        yield bytes(content)


def _raw_item(data: bytes) -> Iterator[bytes]:
    item = members_of(payload_text(data)).get("item", ABSENT)
    content = members_of(item).get("raw_content", ABSENT)
    if parts_of(content):
        yield bytes(content)


def _raw_text(data: bytes) -> Iterator[bytes]:
    words = members_of(payload_text(data)).get("text", ABSENT)
    if words:
        yield bytes(words)


def _raw_history(data: bytes) -> Iterator[bytes]:
    for part in parts_of(members_of(payload_text(data)).get("replacement_history", ABSENT)):
        members = members_of(part)
        if text_of(members.get("type", ABSENT)) == "reasoning" and parts_of(members.get("content", ABSENT)):
            yield bytes(members["content"])


_RAW_PLACES = {
    "reasoning": _raw_content,
    "Reasoning": _raw_item,
    "agent_reasoning_raw_content": _raw_text,
    "compacted": _raw_history,
}
