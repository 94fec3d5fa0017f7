"""What every record of one stream needs: its evidence, its time, its captures.

Owns the current native unit and the source it stands in, refs to it (role, pointer, digest), the rule that a value
which does not fit goes to a blob with a capture state (ASR-032, ASR-035), and the chain of revisions (``revise``).
One ``Pen`` writes one stream; the stream may be made from several sources.

Must never know: what a native line means.
"""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import sha256 as _sha256
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from callsheet.harness._port import INLINE_MOST, Desk, Stream
from callsheet.harness._port.units import Hole, Unit
from callsheet.harness._port.veil import Veil, Veiled, original_of
from callsheet.records import (
    BlobRef,
    Capture,
    Gap,
    Inherited,
    Native,
    PathRef,
    Record,
    Ref,
    SourceEntry,
    Unmapped,
)
from callsheet.registry import via
from callsheet.wire import lossless
from callsheet.wire.blobs import digest

_is_plain = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z"
).fullmatch
"""Almost every time; the last days of a month and other spellings of UTC are looked at closely."""


def utc(value: Any) -> str | None:
    """A native time as RFC 3339 UTC, or None; a text of the right form that is no time is none."""
    if type(value) is not str:
        return None
    if _is_plain(value):
        return value
    found = via.utc(value)
    if not isinstance(found, str):
        return None
    try:
        datetime.fromisoformat(found)
    except ValueError:
        return None
    return found


def utc_of_ms(value: Any) -> str | None:
    """A count of milliseconds since 1970 as RFC 3339 UTC, or None."""
    if type(value) is not int or value < 0:
        return None
    found = via.ms_to_rfc3339(value)
    return found if isinstance(found, str) else None


def number(value: Any) -> int | float | None:
    """The value if it is a number that survives (ASR-032), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value if abs(value) <= lossless.MAX_SAFE else None
    return value if value == value and abs(value) != float("inf") else None


def amount(value: Any) -> int | float | None:
    """The value if it is a number that survives and can be an amount of anything; none is negative."""
    found = number(value)
    return found if found is not None and found >= 0 else None


def raw_json(value: Any) -> Raw:
    """A decoded value as JSON text for a record."""
    return Raw(msgspec.json.encode(value))


def verbatim(raw: Raw) -> str:
    """A JSON string as a value for a record, kept as its own text: the encoder writes it as it stands.

    Reading a string of several kilobytes only to write it again would cost more than all else together.
    """
    return cast(str, raw)


DIGESTS = 64
"""Digests of other units that are remembered."""


class Place(NamedTuple):
    """Where a unit stands: its source, line, offset and size."""

    source: SourceEntry
    line: int
    offset: int
    size: int


class Pen:
    """Writes the records of one stream.

    Attributes:
        unit: The native unit at hand.
        source: The source it stands in.
        written: Records written for it, and later ones that cite it.
        trail: Refs that every record of the unit at hand cites besides (pieces that it completes).
    """

    unit: Unit[Any]
    source: SourceEntry

    def __init__(self, desk: Desk, veil: Veil, stream: Stream, roots: dict[str, str]) -> None:
        self.desk = desk
        self.veil = veil
        self.stream = stream
        self.written = 0
        self.trail: list[Ref] = []
        self.ts: str | None = None
        self.inherited: Inherited | None = None
        self._copies: list[Place] | None = None
        self._here: Ref | None = None
        self._roots = sorted(roots.items(), key=lambda item: -len(item[1]))
        self._last: dict[str, str] = {}
        self._digests: dict[tuple[str, int, int], str] = {}

    def take(
        self,
        source: SourceEntry,
        unit: Unit[Any],
        ts: Any = None,
        session: str | None = None,
        copies: list[Place] | None = None,
    ) -> None:
        """Turns to the next native unit.

        Args:
            source: Where it stands.
            unit: The unit.
            ts: Its native time.
            session: The session that it was copied or inherited from.
            copies: Units that repeat it (decision 2).
        """
        self.source = source
        self.unit = unit
        self.written = 0
        self.ts = utc(ts)
        self.inherited = Inherited(session=session) if session else None
        self._copies = copies
        self._here = None

    def inherit(self, session: str) -> None:
        """Says that the unit at hand belongs to another session."""
        self.inherited = Inherited(session=session)

    # -- evidence -----------------------------------------------------------------------------------------------

    def ref(self, role: str, pointer: str | None = None) -> Ref:
        """A ref to the unit at hand."""
        here = self._here
        if here is None:
            here = self._here = self._ref_here()
        return replace(here, role=role, pointer=pointer)

    def _ref_here(self) -> Ref:
        """Where the unit at hand stands, and its digest: the same for every record of it."""
        unit = self.unit
        line, start, data = unit.line, unit.start, unit.data
        source, offset, size = self.source.id, line.offset + unit.start, len(data)
        # A record of a line before may have cited it already.
        sha256 = self._digests.get((source, offset, size)) if self._digests else None
        if sha256 is None:
            if isinstance(line, Veiled):
                data = line.original[start : start + size]
            sha256 = _sha256(data).hexdigest()
        return Ref(source=source, line=line.number, offset=offset, bytes=size, sha256=sha256)

    def place(self, place: Place, role: str, pointer: str | None = None, sha256: str | None = None) -> Ref:
        """A ref to another unit, read again for its digest unless that is given."""
        if sha256 is None:
            key = (place.source.id, place.offset, place.size)
            sha256 = self._digests.get(key)
            if sha256 is None:
                # Many results of one message cite one request.
                sha256 = self._digests[key] = self.veil.sha256(place.source, place.offset, place.size)
                if len(self._digests) > DIGESTS:
                    del self._digests[next(iter(self._digests))]
        return Ref(
            source=place.source.id,
            line=place.line,
            offset=place.offset,
            bytes=place.size,
            sha256=sha256,
            role=role,
            pointer=pointer,
        )

    def native(self, role: str, pointer: str | None = None) -> Native:
        """Provenance with a ref to the unit at hand, and to every unit that repeats it (decision 2)."""
        refs = [self.ref(role, pointer)]
        if self._copies is not None:
            refs += [self.place(copy, role, pointer) for copy in self._copies]
        if self.trail:
            refs += self.trail
        return Native(refs=refs, inherited=self.inherited)

    # -- writing ------------------------------------------------------------------------------------------------

    def write(self, record: Record) -> str:
        """Writes a record at the unit's time; returns its id."""
        if record.ts is None:
            record.ts = self.ts
        self.written += 1
        return self.stream.write(record)

    def revise(self, key: str, record: Record) -> str:
        """Writes the next state of the entity ``key``; it supersedes the one written before under that key."""
        record.supersedes = self._last.get(key)
        self._last[key] = self.write(record)
        return self._last[key]

    def has(self, key: str) -> bool:
        """Whether a state of the entity was written."""
        return key in self._last

    def forget(self, key: str) -> None:
        """Drops the memory of an entity that will not change any more."""
        self._last.pop(key, None)

    def cited(self) -> None:
        """Says that a record which is written later cites the unit at hand."""
        self.written += 1

    def unmapped(self, native_type: str | None, value: Raw | None = None, pointer: str | None = None) -> None:
        """Keeps the unit at hand, or a part of it, that nothing maps."""
        record = Unmapped(native_type=native_type, native=self.native("line", pointer))
        if value is None:
            value = Raw(self.unit.readable().strip(b"\r"))  # a line's CR is no part of the value
        if self.inline(record, "value", value, pointer or ""):
            record.value = value
        self.write(record)

    def gap(self, source: SourceEntry, hole: Hole) -> None:
        """Writes the gap of bytes that hold no record, and says so."""
        offset = hole.line.offset + hole.start
        data = original_of(hole.line)[hole.start : hole.start + hole.size]
        ref = Ref(
            source=source.id,
            line=hole.line.number,
            offset=offset,
            bytes=hole.size,
            sha256=digest(data),
            role="gap",
        )
        gap = Gap(reason=hole.reason, source=source.id, line=ref.line, offset=offset, bytes=hole.size)
        gap.native = Native(refs=[ref])
        self.stream.write(gap)
        self.desk.diagnose(
            hole.reason, f"{hole.size} bytes from offset {offset} hold no record", source, ref.line
        )

    # -- values that may not fit --------------------------------------------------------------------------------

    def exact(self, pointer: str) -> str | None:
        """The exact JSON text at a pointer of a unit with unpaired surrogates; None where there is none."""
        if self.unit.exact is None:
            return None
        data = self.unit.text_at(pointer)
        # A record is one line, and a line break in JSON only parts its tokens.
        return None if data is None else data.decode().replace("\n", " ")

    def inline(self, record: Record, member: str, value: Raw, pointer: str) -> bool:
        """Whether a value may stand in the record itself; if not, it goes to a blob and the capture says so."""
        exact = None if self.unit.exact is None else self.exact(pointer)
        if exact is None and len(value) <= INLINE_MOST and lossless.fits(value):
            return True
        if exact is not None and lossless.lossless(exact.encode()) and len(exact) <= INLINE_MOST:
            return True
        data = exact.encode() if exact is not None else bytes(value)
        self.capture(record, member, "external", blob=self.desk.blob(data, "application/json"))
        # With U+FFFD for unpaired surrogates the value is still worth reading where it stands.
        return exact is not None and len(value) <= INLINE_MOST and lossless.lossless(bytes(value))

    def readable(self, record: Record, member: str, pointer: str) -> None:
        """Keeps text with unpaired surrogates exactly in a blob, beside the readable form (ASR-035)."""
        exact = self.exact(pointer)
        if exact is not None and not lossless.lossless(exact.encode()):
            self.capture(record, member, "external", blob=self.desk.blob(exact.encode(), "application/json"))

    def capture(
        self,
        record: Record,
        member: str,
        state: str,
        *,
        reason: str | None = None,
        size: int | None = None,
        blob: BlobRef | None = None,
    ) -> None:
        """Gives a member of the record a capture state."""
        if record.capture is None:
            record.capture = {}
        record.capture[member] = Capture(state=state, reason=reason, original_bytes=size, blob=blob)

    def path(self, value: str) -> PathRef:
        """A native path under the longest of the session's roots; outside every root it is ``host``."""
        for name, root in self._roots:
            if value == root:
                return PathRef(root=name, path=".")
            for slash in ("/", "\\"):
                if value.startswith(root.rstrip(slash) + slash):
                    return PathRef(root=name, path=value[len(root.rstrip(slash)) + 1 :])
        return PathRef(root="host", path=value)
