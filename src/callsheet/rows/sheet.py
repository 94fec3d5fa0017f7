"""Sheet: the rows of one stream file, read twice.

The first pass feeds the pairing and keeps no record; the second makes the rows one at a time, reading what
belongs to a row again by its place. So memory grows by a few words a record, not with the records, and a
result may stand anywhere.

Owns the two passes. Must never know: where the file comes from, how rows are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import BinaryIO

from msgspec.structs import replace

from callsheet.errors import RecordError
from callsheet.pairing import Pairing, Place, Tally, tally
from callsheet.records import Record, Session, ToolCall, Unknown
from callsheet.records.stream import BadLine, read_at, read_stream
from callsheet.registry import Registry
from callsheet.rows.calls import kind_of
from callsheet.rows.context import Context, View
from callsheet.rows.everywhere import Silences
from callsheet.rows.outline import Outline
from callsheet.rows.reduce import row_at, rows_of
from callsheet.rows.row import Limits, Row
from callsheet.rows.text import Blob
from callsheet.rows.usage import Reported


class Sheet:
    """The rows of one stream.

    Args:
        file: The stream, open and seekable; stays open while rows are read.
        name: What to call it in errors.
        blob: Reads blobs of the bundle.
        registry: What is known of the agent; found by the session's agent when not given.
        view: What is drawn.
        limits: Bounds of a row.
        provisional: The stream is still being written: its rows say so, and a call without a result may be
        running. on_bad: Told of every line that is no legal record. on_bytes: Told how many bytes of the
        file the first pass has read. outlined: Note what rows there are, for a reader who makes them as they are
        looked at.

    Attributes:
        session: The head of the stream, if it has one.
        pairing: Pairing of the whole stream.
        hidden: After ``rows``: what was left out, in words, and how often.
        silences: What no record of the stream says of any call.
        outline: The rows without making them; empty unless ``outlined``.
        usage: What the stream last reported of its use.
    """

    def __init__(
        self,
        file: BinaryIO,
        *,
        name: str = "-",
        blob: Blob | None = None,
        registry: Registry | None = None,
        view: View = View(),  # noqa: B008 (frozen)
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        provisional: bool = False,
        on_bad: Callable[[RecordError], None] | None = None,
        on_bytes: Callable[[int], None] | None = None,
        outlined: bool = False,
    ) -> None:
        self._file = file
        self.name = name
        self.session: Session | None = None
        self.pairing = Pairing()
        self.usage = Reported()
        self._context = Context(
            pairing=self.pairing,
            fetch=self._fetch,
            blob=blob,
            registry=registry,
            limits=limits,
            view=view,
            open_turn=provisional,
            provisional=provisional,
        )
        self.outline = Outline(self._context)
        self._outlined = outlined
        self.silences = Silences()
        self._scan(on_bad, on_bytes)

    def _scan(
        self, on_bad: Callable[[RecordError], None] | None, on_bytes: Callable[[int], None] | None
    ) -> None:
        self._file.seek(0)
        for entry in read_stream(self._file, self.name):
            place = Place(entry.line.offset, len(entry.line.data))
            if isinstance(entry, BadLine):
                bad = self.pairing.add_bad(place)
                if self._outlined:
                    self.outline.note(bad, None)
                if on_bad is not None:
                    on_bad(entry.error)
                continue
            number = self.pairing.add(entry.record, place)
            self.usage.note(entry.record)
            if self.session is None and isinstance(entry.record, Session):
                self.session = entry.record
                self._context.take_session(entry.record)
            self.silences.add(entry.record, self._context.registry, self._is_command)
            if self._outlined:
                self.outline.note(number, entry.record)
            if on_bytes is not None:
                on_bytes(place.offset + place.size)
        if self._outlined:
            self.outline.close()

    def _is_command(self, call: ToolCall) -> bool:
        return kind_of(call, call.provider, self._context.tool(call.name)) == "command"

    def _fetch(self, number: int) -> Record | Unknown:
        place = self.pairing.place(number)
        return read_at(self._file, place.offset, place.size)

    @property
    def hidden(self) -> Counter[str]:
        """What ``rows`` left out so far."""
        return self._context.hidden

    def tally(self) -> Tally:
        """Counts of the whole stream."""
        return tally(self.pairing)

    def row(self, number: int, limits: Limits | None = None) -> Row | None:
        """The row of an entity by the number of its first record (``outline.numbers``).

        Args:
            number: The first record.
            limits: Other bounds than the sheet's own.

        Raises:
            RecordError: The record cannot be read again.
        """
        context = self._context
        return row_at(context if limits is None else replace(context, limits=limits), number)

    def row_id(self, number: int) -> str:
        """The row id of an entity by the number of its first record."""
        return self._context.row_id(number)

    def rows(self) -> Iterator[Row]:
        """The rows, in order; each is made when it is asked for."""
        return rows_of(self._context)
