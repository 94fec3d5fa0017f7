"""What one reader gets of one turn: every record in order, the latest of each preview, then one result.

Owns the promise that putting never waits and that memory stays bounded however slow the reader is: records beyond a
window are remembered by their place in a file without a name and read from the bundle again; of previews the latest
with a key is kept, in the place of its latest coming, and a preview that a record has made moot goes. An open request
is never dropped.

Must never know: processes, the protocol.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import Callable
from struct import Struct as Layout
from typing import BinaryIO, NamedTuple, cast

from callsheet.live.limits import Limits
from callsheet.live.streams import Spot, Written
from callsheet.records import Message, Reasoning, Record, ToolCall, ToolResult, decode
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
    TurnResult,
)

Key = tuple[str, str]
_SPOT = Layout("<QQIQ")
BATCH = 64
"""Records that are read from the disk at once."""


def key_of(event: Event) -> Key:
    """What a preview replaces: the one before with the same key."""
    match event:
        case CallPreview():
            return ("call", event.call)
        case OutputPreview():
            return ("output", event.call)
        case ThoughtPreview():
            return ("thought", event.key)
        case MessagePreview():
            return ("message", event.key)
        case RequestOpened():
            return ("request", event.request.request_id)
        case RequestClosed():
            return ("request", event.request_id)
        case TurnChanged():
            return ("turn", "")
        case Noted():
            return ("note", "")
        case Recorded():
            return ("record", event.record.id)


class _Late:
    """Places of records that wait on the disk, first in first out."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._names: list[str] = []
        self._read = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, number: int, spot: Spot) -> None:
        if self._file is None:
            self._file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 (kept open)
        if spot.stream not in self._names:
            self._names.append(spot.stream)
        self._file.seek(0, 2)
        self._file.write(_SPOT.pack(number, spot.offset, spot.size, self._names.index(spot.stream)))
        self._count += 1

    def take(self) -> list[tuple[int, Spot]]:
        if self._file is None or not self._count:
            return []
        self._file.seek(self._read)
        data = self._file.read(_SPOT.size * min(BATCH, self._count))
        self._read += len(data)
        out = [
            (number, Spot(self._names[name], offset, size))
            for number, offset, size, name in _SPOT.iter_unpack(data)
        ]
        self._count -= len(out)
        if not self._count:
            self.close()
        return out

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._read, self._count = None, 0, 0


class _Held(NamedTuple):
    number: int
    event: Event


class Channel:
    """The events of one turn for one reader.

    Args:
        limits: How much is held.
        read: Reads a record's line again.
    """

    def __init__(self, limits: Limits, read: Callable[[Spot], bytes]) -> None:
        self._limits = limits
        self._read = read
        self._records: deque[_Held] = deque()
        self._late = _Late()
        self._previews: dict[Key, _Held] = {}
        self._number = 0
        self._wake = asyncio.Event()
        self._done = False
        self._result: TurnResult | None = None
        self._ended = asyncio.Event()

    def record(self, written: Written) -> None:
        """A record that is written."""
        if self._done:
            return
        self._settle(written.record)
        self._number += 1
        if self._late or len(self._records) >= self._limits.window:
            self._late.put(self._number, written.spot)
        else:
            self._records.append(_Held(self._number, Recorded(written.spot.stream, written.record)))
        self._wake.set()

    def _settle(self, record: Record) -> None:
        """Drops the previews that a record makes moot."""
        match record:
            case ToolCall():
                self._previews.pop(("call", record.call_id), None)
            case ToolResult():
                for kind in ("call", "output"):
                    self._previews.pop((kind, record.call_id or ""), None)
            case Message() | Reasoning():
                kind = "message" if isinstance(record, Message) else "thought"
                for key in [key for key in self._previews if key[0] == kind]:
                    del self._previews[key]
            case _:
                pass

    def preview(self, event: Event) -> None:
        """A preview; it replaces the one before with the same key."""
        if self._done:
            return
        key = key_of(event)
        self._previews.pop(key, None)
        if len(self._previews) >= self._limits.previews:
            oldest = next((one for one in self._previews if one[0] not in ("request", "turn")), None)
            if oldest is not None:
                del self._previews[oldest]
        self._number += 1
        self._previews[key] = _Held(self._number, event)
        self._wake.set()

    def finish(self, result: TurnResult | None) -> None:
        """The end: what waits may still be read, nothing is added any more."""
        if self._done:
            return
        self._done = True
        self._result = result
        self._wake.set()
        self._ended.set()

    async def result(self) -> TurnResult | None:
        """Waits for the end; whether anybody read the events does not matter."""
        await self._ended.wait()
        return self._result

    async def next(self) -> Event | None:
        """The next event; None after the last one."""
        while True:
            event = self._next()
            if event is not None:
                return event
            if self._done:
                return None
            self._wake.clear()
            await self._wake.wait()

    def _next(self) -> Event | None:
        if not self._records:
            for number, spot in self._late.take():
                record = decode(self._read(spot).rstrip(b"\n"))
                if isinstance(record, Record):
                    self._records.append(_Held(number, Recorded(spot.stream, record)))
        key = next(iter(self._previews), None)
        if self._records and (key is None or self._records[0].number < self._previews[key].number):
            return self._records.popleft().event
        return self._previews.pop(key).event if key is not None else None

    def close(self) -> None:
        """Lets go of what waits on the disk."""
        self._late.close()
