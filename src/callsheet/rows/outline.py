"""Outline: which rows a stream has, of what kind and in which state, before any of them is made.

A row of a large stream is made when somebody looks at it; how many there are, and where the next failed call stands,
is known from one pass over the records. Owns what is noted in that pass: two bytes a record, no text. What it says of
a row is what the row will say; where that would take the records themselves, it says nothing (0).

Must never know: files, how rows are drawn.
"""

from __future__ import annotations

from array import array
from collections import Counter

from callsheet.pairing.tally import state_of
from callsheet.records import (
    Compaction,
    FileChange,
    Gap,
    Hook,
    InputRequest,
    Message,
    Notice,
    Permission,
    Plan,
    Reasoning,
    Record,
    Subagent,
    Terminal,
    ToolCall,
    ToolResult,
    Turn,
    Unknown,
)
from callsheet.rows.calls import kind_of
from callsheet.rows.context import Context
from callsheet.rows.events import is_quiet
from callsheet.rows.reduce import row_numbers
from callsheet.rows.row import ROW_KINDS, STATES, RowKind, State
from callsheet.rows.talk import why_hidden

STATE_WORDS: tuple[State, ...] = tuple(STATES)
STATE_CODES: dict[State, int] = {state: code for code, state in enumerate(STATE_WORDS, 1)}
KIND_CODES: dict[RowKind, int] = {kind: code for code, kind in enumerate(ROW_KINDS, 1)}

KIND_OF: dict[type[Record] | None, RowKind] = {
    Permission: "request",
    InputRequest: "request",
    Terminal: "terminal",
    Hook: "hook",
    Message: "message",
    Reasoning: "thought",
    Plan: "plan",
    Subagent: "subagent",
    FileChange: "file_change",
    Compaction: "notice",
    Gap: "notice",
    Turn: "notice",
    Notice: "notice",
}
"""The kind of the row that an entity has of its own, where its type alone decides."""
STATE_OF: dict[type[Record] | None, State] = {
    Message: "completed",
    Reasoning: "completed",
    Plan: "completed",
    FileChange: "completed",
    Compaction: "completed",
    Notice: "completed",
    Gap: "failed",
    ToolResult: "unconfirmed",
}
"""The state of such a row, where its type alone decides."""
_HIDDEN = 0xFF


class Outline:
    """What is known of a stream's rows.

    Args:
        context: The stream's; its registry may become known while records are noted.

    Attributes:
        numbers: After ``close``: the first record of each row's entity, in the order of the rows.
        kinds: For each row the code of its kind (``KIND_CODES``), 0 where only the row can tell.
        states: For each row the code of its state (``STATE_CODES``), 0 where only the row can tell.
        hidden: Records of what has no row (``HIDDEN``), and how many.
        agents: Ids of the streams of agents whose rows stand below the row of an entity.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notes = bytearray()
        self._prompt = 0
        self._by_result: list[int] = []
        self._named: list[tuple[int, str | None, str]] = []
        self.numbers = array("I")
        self.kinds = bytearray()
        self.states = bytearray()
        self.agents: dict[int, list[str]] = {}
        self.hidden: Counter[str] = Counter()

    def note(self, number: int, record: Record | Unknown | None) -> None:
        """Notes a record of the stream, or (None) a line that is none; each once, in the order of the stream."""
        note = 0
        match record:
            case Message() | Reasoning():
                why = why_hidden(self._context.view, record)
                if why is not None:
                    note = _HIDDEN
                    self.hidden[why] += 1
                elif isinstance(record, Message) and record.author == "user":
                    self._prompt = number
            case Turn():
                note = _HIDDEN if is_quiet(self._context.view, record) else 0
            case ToolCall():
                if self._context.registry is not None:
                    tool = self._context.tool(record.name)
                    note = KIND_CODES[kind_of(record, record.provider, tool)]
            case ToolResult():
                if record.provider is not None:
                    self._by_result.append(number)
            case Subagent():
                if record.stream is not None:
                    self._named.append((number, record.call_id, record.stream))
            case _:
                pass
        self._notes.append(note)

    def close(self) -> None:
        """Knows the rows, once every record was noted.

        Of a stream that still grows, what began before the last prompt is not running any more.
        """
        self._context.open_from = self._prompt
        pairing = self._context.pairing
        told_by_result = {pairing.first(number) for number in self._by_result}
        states: dict[int, int] = {}
        for call_id in pairing.call_ids():
            answer = pairing.result(call_id)
            if answer is None and self._context.open_turn:
                continue  # it may be running
            state = state_of(
                pairing.status_of(answer) if answer is not None else None, pairing.verdict(call_id)
            )
            for number in pairing.calls(call_id):
                states[number] = STATE_CODES[state]
                if answer is not None and pairing.first(answer) in told_by_result:
                    self._notes[pairing.latest(number)] = 0
        self.numbers, self.kinds, self.states = array("I"), bytearray(), bytearray()
        for number in row_numbers(pairing, audit=self._context.view.audit):
            kind = None if pairing.is_bad(number) else pairing.type_of(number)
            note = self._notes[pairing.latest(number)]
            if note == _HIDDEN:
                continue
            if kind is ToolCall:
                code, state_code = note, states.get(number, 0)
            else:
                word, state_word = KIND_OF.get(kind), STATE_OF.get(kind)
                code = KIND_CODES[word] if word else 0
                state_code = STATE_CODES[state_word] if state_word else 0
            self.numbers.append(number)
            self.kinds.append(code)
            self.states.append(state_code)
        self._close_agents()

    def _close_agents(self) -> None:
        pairing = self._context.pairing
        self.agents = {}
        for number, call_id, stream in self._named:
            if pairing.latest(number) == number:
                call = pairing.call(call_id)
                self.agents.setdefault(pairing.first(number) if call is None else call, []).append(stream)
