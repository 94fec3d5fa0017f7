"""Rows of a session that goes on: records settled so far, and previews of what has not settled.

Each call is one row that changes in place: announced, running with the end of its output, settled. Late results,
revisions, replayed records and records out of order end in the rows that a reader of the whole session gets; a preview
never outlives its turn. Owns the order over all streams, the identity of rows from preview to record, and what changed
since it was last asked. Bounded: the newest records are held, others are read again; previews are bounded by the seam,
and here in number.

Must never know: files, clocks, how rows are drawn.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from msgspec import Struct

from callsheet.pairing import Tally, tally
from callsheet.records import (
    ENCODER,
    InputRequest,
    Permission,
    Record,
    Session,
    Unknown,
    decode,
)
from callsheet.rows.context import View
from callsheet.rows.growing import Growing
from callsheet.rows.nested import Nested
from callsheet.rows.order import Order
from callsheet.rows.previews import Key, call_row, closed_row, moot, request_row, text_row, with_output
from callsheet.rows.roll import WHOLE
from callsheet.rows.row import Row, RowKind, State
from callsheet.rows.text import Blob
from callsheet.rows.usage import Reported
from callsheet.seam import (
    CallPreview,
    Event,
    MessagePreview,
    Noted,
    OutputPreview,
    Recorded,
    RequestClosed,
    RequestOpened,
    ThoughtPreview,
    TurnChanged,
    TurnState,
    Waiting,
)

HELD = 512
"""Records that are held in memory."""
OUTPUTS = 128
"""Running calls whose last output is held, each of them bounded by the seam."""
PREVIEWS = 512
"""Rows of what has not settled."""
AHEAD = 10_000
"""Records of one stream that came before others that belong in front of them."""

Fetch = Callable[[str, int], Record | Unknown]
"""Reads a record again by its stream and number."""


class LiveChange(Struct):
    """What changed since it was last asked.

    Attributes:
        changed: Positions of rows that say something else.
        added: Positions of new rows, ascending.
        anew: The order changed too: everything is to be drawn anew.
    """

    changed: list[int]
    added: list[int]
    anew: bool


class _Preview(Struct):
    key: int
    row: Row


class LiveRows:
    """The rows of a session that goes on (``rows.Rows``).

    Args:
        fetch: Reads a record again.
        blob: Reads blobs.
        view: What is drawn.

    Attributes:
        waiting: Requests that wait for an answer, by their ids.
        note: What the agent's shell noted last.
        turn: State of the turn.
        usage: What the session's own stream last reported of its use.
    """

    def __init__(self, fetch: Fetch, blob: Blob | None = None, view: View = View(harness=False)) -> None:  # noqa: B008
        self._fetch = fetch
        self._blob = blob
        self._view = view
        self._streams: list[Growing] = []
        self._numbers: dict[str, int] = {}
        self._recent: OrderedDict[tuple[str, int], Record] = OrderedDict()
        self._ahead: dict[str, dict[int, Record]] = {}
        self._previews: OrderedDict[Key, _Preview] = OrderedDict()
        self._outputs: OrderedDict[int, OutputPreview] = OrderedDict()
        self._aliases: dict[int, int] = {}
        self._origins: dict[int, int] = {}
        self._next = -1
        self._asked: set[str] = set()
        self._order = Order(self._streams, self._numbers, self._previews)
        self._changed: set[int] = set()
        self._added: set[int] = set()
        self._anew = False
        self.waiting: dict[str, Waiting] = {}
        self.note: str | None = None
        self.usage = Reported()
        self.turn: TurnState = "settled"

    # -- what comes ---------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Takes an event of the turn, or a record of what was before it."""
        match event:
            case Recorded():
                self._record(event.stream, event.record)
            case CallPreview():
                self._call_preview(event)
            case OutputPreview():
                self._output_preview(event)
            case ThoughtPreview() | MessagePreview():
                self._text_preview(event)
            case RequestOpened():
                self.waiting[event.request.request_id] = event.request
                self._preview(("request", event.request.request_id), request_row(event.request))
            case RequestClosed():
                self.waiting.pop(event.request_id, None)
                self._close_request(event)
            case TurnChanged():
                self._change_turn(event)
            case Noted():
                self.note = event.text

    def _change_turn(self, event: TurnChanged) -> None:
        was, self.turn = self.turn, event.state
        if event.state == "settled":
            self._anew |= bool(self._previews)
            self._previews.clear()
            self._outputs.clear()
            self.waiting.clear()
            self._order.forget()
            for number, stream in enumerate(self._streams):
                self._changed |= {self._key(number, first) for first in stream.end_turn()}
        elif was == "settled":
            self._asked.clear()
            for stream in self._streams:
                stream.begin_turn()

    def _record(self, stream: str, record: Record) -> None:
        number = self._numbers.get(stream)
        if number is None:
            number = self._begin(stream)
        growing = self._streams[number]
        known = len(growing.pairing)
        # What an adapter just made may hold texts as they stood in its frames; only the line says what they are.
        settled = decode(ENCODER.encode(record))
        record = settled if isinstance(settled, Record) else record
        if record.seq < known:
            return  # a replay: it is there already
        if record.seq > known:
            ahead = self._ahead.setdefault(stream, {})
            if len(ahead) < AHEAD:
                ahead[record.seq] = record
            return
        self._add(number, growing, record)
        ahead = self._ahead.get(stream, {})
        while (following := ahead.pop(len(growing.pairing), None)) is not None:
            self._add(number, growing, following)

    def _begin(self, stream: str) -> int:
        number = self._numbers[stream] = len(self._streams)
        growing = Growing(stream, lambda at: self._read(stream, at), self._blob, self._view)
        if self.turn != "settled":
            growing.begin_turn()
        self._streams.append(growing)
        self._anew |= number > 0
        self._order.forget()
        return number

    def _read(self, stream: str, number: int) -> Record | Unknown:
        found = self._recent.get((stream, number))
        return self._fetch(stream, number) if found is None else found

    def _add(self, number: int, growing: Growing, record: Record) -> None:
        self._recent[growing.name, len(growing.pairing)] = record
        if len(self._recent) > HELD:
            self._recent.popitem(last=False)
        touched = growing.add(record)
        if number == 0:
            self.usage.note(record)
        self._order.forget()
        if isinstance(record, Permission | InputRequest):
            self._asked.add(record.request_id)
        taken = moot(record, self._previews)
        own = growing.pairing.first(len(growing.pairing) - 1)
        for first in touched.added:
            if taken and first == own:
                self._become(number, first, taken.pop(0))
            else:
                self._added.add(self._key(number, first))
        for key in taken:
            self._drop(key)
        self._changed |= {self._key(number, first) for first in touched.changed}
        self._anew |= touched.moved or bool(touched.removed)

    # -- previews -----------------------------------------------------------------------------------------------

    def _become(self, stream: int, first: int, key: Key) -> None:
        """A record takes the place of its preview, and its identity."""
        before = next(iter(self._previews))
        preview = self._previews.pop(key)
        self._order.forget()
        index = self._streams[stream].index_of(first)
        # Where other rows stand between the preview and the record, they change their order.
        self._anew |= before != key or index is None or not self._order.is_last(stream, index)
        own = _own_key(stream, first)
        self._aliases[own] = preview.key
        self._origins[preview.key] = own
        if preview.key not in self._added:
            self._changed.add(preview.key)

    def _drop(self, key: Key) -> None:
        preview = self._previews.pop(key, None)
        if preview is not None:
            self._added.discard(preview.key)
            self._changed.discard(preview.key)
            self._anew = True
            self._order.forget()

    def _preview(self, key: Key, row: Row) -> None:
        held = self._previews.get(key)
        if held is not None:
            held.row = row
            if held.key not in self._added:
                self._changed.add(held.key)
            return
        if self._is_recorded(key):
            return
        if len(self._previews) >= PREVIEWS:
            self._drop(next(iter(self._previews)))
        self._previews[key] = _Preview(self._next, row)
        self._added.add(self._next)
        self._next -= 1
        self._order.forget()

    def _is_recorded(self, key: Key) -> bool:
        kind, name = key
        if kind == "call":
            return self._call(name) is not None
        return kind == "request" and name in self._asked

    def _call(self, call_id: str) -> tuple[int, int] | None:
        for number, stream in enumerate(self._streams):
            first = stream.pairing.call(call_id)
            if first is not None and first >= stream.context.open_from:
                return number, first
        return None

    def _call_preview(self, event: CallPreview) -> None:
        found = self._call(event.call)
        if found is not None:
            self._changed.add(self._key(*found))
            return
        context = self._streams[0].context if self._streams else None
        self._preview(("call", event.call), call_row(event, context))

    def _output_preview(self, event: OutputPreview) -> None:
        """Takes the end of a call's output so far; of a call that nobody announced there is no row to show it in."""
        found = self._call(event.call)
        held = self._previews.get(("call", event.call))
        if found is not None:
            key = self._key(*found)
        elif held is not None:
            key = held.key
        else:
            return
        self._outputs[key] = event
        self._outputs.move_to_end(key)
        if len(self._outputs) > OUTPUTS:
            self._outputs.popitem(last=False)
        if key not in self._added:
            self._changed.add(key)

    def _text_preview(self, event: MessagePreview | ThoughtPreview) -> None:
        row = text_row(event)
        self._preview((row.kind, event.key), row)

    def _close_request(self, event: RequestClosed) -> None:
        held = self._previews.get(("request", event.request_id))
        if held is not None:
            held.row = closed_row(held.row, event)
            self._changed.add(held.key)

    # -- where they stand ---------------------------------------------------------------------------------------

    def _key(self, stream: int, first: int) -> int:
        own = _own_key(stream, first)
        return self._aliases.get(own, own)

    def __len__(self) -> int:
        return len(self._order)

    def key(self, at: int) -> int:
        """The identity of the row at a position, from its preview on."""
        segment, inner = self._order.place(at)
        if segment.stream < 0:
            return self._preview_at(inner).key
        if segment.low < 0:
            return _own_key(segment.stream, -1)
        return self._key(segment.stream, self._streams[segment.stream].first_at(segment.low + inner))

    def position(self, key: int) -> int | None:
        """Where a row stands now; None when it is gone."""
        own = self._origins.get(key, key)
        if own < 0:
            inner = next((at for at, one in enumerate(self._previews.values()) if one.key == own), None)
            return None if inner is None else self._order.position(-1, inner)
        stream, first = divmod(own, _STREAM)
        index = -1 if first == _STREAM - 1 else self._streams[stream].index_of(first)
        return None if index is None else self._order.position(stream, index)

    def _preview_at(self, inner: int) -> _Preview:
        for at, preview in enumerate(self._previews.values()):
            if at == inner:
                return preview
        raise IndexError(inner)

    def nested(self, at: int, *, whole: bool = False) -> Nested:
        """The row at a position, and its depth."""
        segment, inner = self._order.place(at)
        if segment.stream < 0:
            preview = self._preview_at(inner)
            return Nested(0, with_output(preview.row, self._outputs.get(preview.key)))
        growing = self._streams[segment.stream]
        name = growing.name
        if segment.low < 0:
            title = f"agent {name}: no record says which call started it"
            return Nested(
                1,
                Row(
                    row=f"{name}/",
                    kind="notice",
                    state="completed",
                    title=title,
                    record=f"{name}/",
                    stream=name,
                ),
            )
        first = growing.first_at(segment.low + inner)
        row = growing.row(first, WHOLE if whole else None)
        row = with_output(row, self._outputs.get(self._key(segment.stream, first)))
        if segment.stream:
            row.row = f"{name}/{row.row}"
            row.parent = f"{name}/{row.parent}" if row.parent else self._parent(segment.stream)
            row.stream = name
        return Nested(segment.depth, row)

    def _parent(self, stream: int) -> str | None:
        """The row below which a stream of an agent stands."""
        name = self._streams[stream].name
        for number, growing in enumerate(self._streams):
            found = growing.agents.get(name)
            if found is not None and number != stream and growing.index_of(found[0]) is not None:
                own = growing.context.row_id(found[0])
                return f"{growing.name}/{own}" if number else own
        return f"{name}/"

    def kind(self, at: int) -> RowKind:
        """The kind of the row at a position."""
        segment, inner = self._order.place(at)
        if segment.stream < 0:
            return self._preview_at(inner).row.kind
        if segment.low < 0:
            return "notice"
        growing = self._streams[segment.stream]
        return growing.kind(growing.first_at(segment.low + inner))

    def state(self, at: int) -> State:
        """The state of the row at a position."""
        segment, inner = self._order.place(at)
        if segment.stream < 0:
            return self._preview_at(inner).row.state
        if segment.low < 0:
            return "completed"
        growing = self._streams[segment.stream]
        return growing.state(growing.first_at(segment.low + inner))

    # -- what changed -------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session | None:
        """The head of the session's own stream."""
        return self._streams[0].session if self._streams else None

    def counts(self) -> Tally:
        """Calls of all streams and how they stand, counted as they came; nothing else is counted here."""
        found = Tally()
        for stream in self._streams:
            found.add(stream.counts)
        return found

    def tally(self) -> Tally:
        """Counts of all streams, counted anew."""
        found = Tally()
        for stream in self._streams:
            found.add(tally(stream.pairing))
        return found

    def take(self) -> LiveChange:
        """What changed since it was last asked."""
        change = LiveChange([], [], self._anew)
        if not self._anew:
            change.changed = sorted(self._positions(self._changed - self._added))
            change.added = sorted(self._positions(self._added))
        self._changed.clear()
        self._added.clear()
        self._anew = False
        return change

    def _positions(self, keys: set[int]) -> Iterator[int]:
        for key in keys:
            at = self.position(key)
            if at is not None:
                yield at


_STREAM = 1 << 40


def _own_key(stream: int, first: int) -> int:
    """A key for an entity of a stream; previews have keys below 0."""
    return stream * _STREAM + first % _STREAM
