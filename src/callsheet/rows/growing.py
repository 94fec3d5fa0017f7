"""One stream that grows: which rows it has now, and which of them the next record changes.

A record may make a row, change one, or (a call that comes after its result) fold a row into another. What rows there
are, and in which order, is at every moment what a reader of the records so far would get; only the entities that a
record touches are looked at again. Holds a few numbers a record; records are read again through ``fetch``.

Must never know: previews, other streams, how rows are drawn.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple

from msgspec.structs import replace

from callsheet.pairing import Pairing, call_id_of
from callsheet.pairing.tally import CallState, Tally, state_of
from callsheet.records import (
    FileChange,
    InputRequest,
    Message,
    Permission,
    Reasoning,
    Record,
    Session,
    Subagent,
    Terminal,
    ToolCall,
    ToolResult,
    Turn,
    Unknown,
)
from callsheet.rows.calls import kind_of
from callsheet.rows.context import Context, Fetch, View
from callsheet.rows.events import is_quiet
from callsheet.rows.outline import KIND_CODES, KIND_OF, STATE_OF
from callsheet.rows.reduce import SILENT, row_at
from callsheet.rows.row import ROW_KINDS, Limits, Row, RowKind, State
from callsheet.rows.talk import why_hidden
from callsheet.rows.text import Blob

_MAY_RUN = (ToolCall, Terminal, Subagent, Permission, InputRequest)
"""Records of what may be running while a turn is open."""


class Touched(NamedTuple):
    """What a record did to the rows of its stream, by the first records of their entities.

    Attributes:
        added: New rows.
        changed: Rows that say something else now.
        removed: Rows that were folded into others, or stand elsewhere now.
        moved: Streams of agents stand elsewhere now.
    """

    added: list[int]
    changed: list[int]
    removed: list[int]
    moved: bool


class Growing:
    """The rows of one stream that grows.

    Args:
        name: Its id.
        fetch: Reads a record again by its number.
        blob: Reads blobs.
        view: What is drawn.

    Attributes:
        session: Its head, once it has one.
        places: For each row the number at which it stands, ascending.
        agents: Streams of agents, and the entity below whose row each stands.
        counts: Calls and how they stand, counted as they come.
    """

    def __init__(self, name: str, fetch: Fetch, blob: Blob | None, view: View) -> None:
        self.name = name
        self.session: Session | None = None
        self.places: list[int] = []
        self.agents: dict[str, tuple[int, int]] = {}
        self.counts = Tally()
        self.pairing = Pairing()
        self.context = Context(pairing=self.pairing, fetch=fetch, blob=blob, view=view)
        self._call_of: dict[int, str] = {}
        self._standing: dict[int, int] = {}
        self._hidden: set[int] = set()
        self._states: dict[str, tuple[CallState, int]] = {}
        self._streams: dict[int, str] = {}
        self._open: set[int] = set()
        self._kinds = bytearray()
        self._told_by_result: set[str] = set()

    def __len__(self) -> int:
        return len(self.places)

    def first_at(self, index: int) -> int:
        """The entity of a row by its place among the rows."""
        return self.pairing.first(self.places[index])

    def index_of(self, first: int) -> int | None:
        """Which of the rows is an entity's; None when it has none."""
        place = self._standing.get(first)
        return None if place is None else bisect_left(self.places, place)

    def row(self, first: int, limits: Limits | None = None) -> Row:
        """The row of an entity."""
        made = row_at(self.context if limits is None else replace(self.context, limits=limits), first)
        if made is None:
            raise RuntimeError(f"record {first} draws no row, and stands among those that do")
        return made

    def kind(self, first: int) -> RowKind:
        """The kind of an entity's row; the row is made only where nothing else tells."""
        kind = self.pairing.type_of(first)
        found = KIND_OF.get(kind)
        if kind is ToolCall and self._call_of[first] not in self._told_by_result:
            code = self._kinds[self.pairing.latest(first)]
            found = ROW_KINDS[code - 1] if code else None
        return found or self.row(first).kind

    def state(self, first: int) -> State:
        """The state of an entity's row; the row is made only where nothing else tells."""
        kind = self.pairing.type_of(first)
        if kind is ToolCall:
            call_id = self._call_of[first]
            if self.pairing.result(call_id) is not None or not self.context.may_run(first):
                return self._states[call_id][0]
        return STATE_OF.get(kind) or self.row(first).state

    def begin_turn(self) -> None:
        """A turn begins: what comes from here on may be running."""
        self.context.open_turn = True
        self.context.open_from = len(self.pairing)

    def end_turn(self) -> list[int]:
        """The turn has settled; returns the entities of those of its rows that may have been running."""
        self.context.open_turn = False
        found = [first for first in self._open if first in self._standing]
        self._open.clear()
        return found

    def add(self, record: Record | Unknown) -> Touched:
        """Takes the next record."""
        number = self.pairing.add(record)
        first = self.pairing.first(number)
        call_id = call_id_of(record)
        call_ids = {call_id, self._call_of.get(first)}
        if call_id is not None:
            self._call_of[first] = call_id
        self._note(number, first, record)
        found: dict[int, bool] = {first: True}
        moved = False
        for name in call_ids:
            if name is not None:
                folded = self._folded(name)
                found |= {one: one not in folded for one in self.pairing.named(name)}
                moved |= self._place_agents(name)
                self._count(name)
                if self.pairing.result(name) is not None:
                    self._open.difference_update(map(self.pairing.first, self.pairing.calls(name)))
        if isinstance(record, Subagent) and record.call_id is None:
            moved |= self._place_agent(number, first)
        return self._settle(found, moved)

    def _note(self, number: int, first: int, record: Record | Unknown) -> None:
        view = self.context.view
        hidden = False
        kind = 0
        if isinstance(record, _MAY_RUN):
            self._open.add(first)
        match record:
            case Session():
                if self.session is None:
                    self.session = record
                    self.context.take_session(record)
            case Message() | Reasoning():
                hidden = why_hidden(view, record) is not None
            case Turn():
                hidden = is_quiet(view, record)
            case Subagent():
                if record.stream is not None:
                    self._streams[number] = record.stream
            case ToolCall():
                if self.context.registry is not None:
                    tool = self.context.tool(record.name)
                    kind = KIND_CODES[kind_of(record, record.provider, tool)]
            case ToolResult():
                if record.provider is not None and record.call_id is not None:
                    self._told_by_result.add(record.call_id)
            case _:
                pass
        self._kinds.append(kind)
        if hidden:
            self._hidden.add(first)
        else:
            self._hidden.discard(first)

    def _folded(self, call_id: str) -> set[int]:
        """The entities that are drawn in the row of the one call of this id."""
        if self.pairing.call(call_id) is None:
            return set()
        answer = self.pairing.result(call_id)
        found = {self.pairing.first(answer)} if answer is not None else set()
        for kind in (FileChange, Subagent):
            found |= {self.pairing.first(number) for number in self.pairing.linked(call_id, kind)}
        return found

    def _count(self, call_id: str) -> None:
        pairing = self.pairing
        answer = pairing.result(call_id)
        state = state_of(pairing.status_of(answer) if answer is not None else None, pairing.verdict(call_id))
        was, many = self._states.get(call_id, ("unconfirmed", 0))
        now = len(pairing.calls(call_id))
        self._states[call_id] = (state, now)
        setattr(self.counts, was, getattr(self.counts, was) - many)
        setattr(self.counts, state, getattr(self.counts, state) + now)
        self.counts.calls += now - many

    def _place_agents(self, call_id: str) -> bool:
        call = self.pairing.call(call_id)
        moved = False
        for number in self.pairing.linked(call_id, Subagent):
            moved |= self._place_agent(number, self.pairing.first(number) if call is None else call)
        return moved

    def _place_agent(self, number: int, first: int) -> bool:
        stream = self._streams.get(number)
        if stream is None or self.agents.get(stream) == (first, number):
            return False
        was = self.agents.get(stream)
        self.agents[stream] = (first, number)
        return was is None or was[0] != first

    def _has_row(self, first: int) -> bool:
        kind = self.pairing.type_of(first)
        if self.context.view.audit:
            return True
        return kind not in SILENT and first not in self._hidden

    def _settle(self, found: dict[int, bool], moved: bool) -> Touched:
        touched = Touched([], [], [], moved)
        for first, stands_alone in found.items():
            was = self._standing.get(first)
            kind = self.pairing.type_of(first)
            folds = kind in (ToolResult, FileChange, Subagent) and not stands_alone
            now = None
            if not folds and self._has_row(first):
                now = self.pairing.latest(first) if kind is Turn else first
            if now == was:
                if now is not None:
                    touched.changed.append(first)
                continue
            if was is not None:
                del self.places[bisect_left(self.places, was)]
                del self._standing[first]
                touched.removed.append(first)
            if now is not None:
                insort(self.places, now)
                self._standing[first] = now
                touched.added.append(first)
        return touched
