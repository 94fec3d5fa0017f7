"""What every record of one file needs: its evidence, its time, its captures.

Owns the current native unit, refs to it (role, pointer, digest), the rule that a value which does not fit goes to a
blob with a capture state (ASR-032, ASR-035), and the chain of revisions (``revise``). One ``Pen`` writes one stream.

Must never know: what a native line means.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256 as _sha256
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port import INLINE_MOST, Desk, Stream
from callsheet.harness._port.units import Unit
from callsheet.harness.claude_code.survey import Copy
from callsheet.records import BlobRef, Capture, Inherited, Native, PathRef, Record, Ref, SourceEntry
from callsheet.registry.when import MISSING, follow
from callsheet.wire import lossless
from callsheet.wire.blobs import digest

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")
_is_utc = _UTC.fullmatch


def utc(value: Any) -> str | None:
    """A native time as RFC 3339 UTC: the text itself where it is one, converted where it names another offset."""
    if not isinstance(value, str):
        return None
    if _UTC.fullmatch(value):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return None  # before the year 1 or after 9999


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


class Pen:
    """Writes the records of one source file into one stream.

    Attributes:
        unit: The native unit at hand.
        written: Records written for it.
    """

    unit: Unit[Any]

    def __init__(self, desk: Desk, source: SourceEntry, stream: Stream, roots: dict[str, str]) -> None:
        self.desk = desk
        self.source = source
        self.stream = stream
        self._write = stream.write
        self.written = 0
        self.ts: str | None = None
        self.inherited: Inherited | None = None
        self._copies: list[Copy] | None = None
        self._sha: str | None = None
        self._roots = sorted(roots.items(), key=lambda item: -len(item[1]))
        self._last: dict[str, str] = {}
        self._digests: dict[int, str] = {}

    def take(
        self, unit: Unit[Any], ts: Any = None, session: str | None = None, copies: list[Copy] | None = None
    ) -> None:
        """Turns to the next native unit."""
        self.unit = unit
        self.written = 0
        self.ts = ts if type(ts) is str and _is_utc(ts) else utc(ts)
        self.inherited = Inherited(session=session) if session else None
        self._copies = copies
        self._sha = None

    # -- evidence -----------------------------------------------------------------------------------------------

    def ref(self, role: str, pointer: str | None = None) -> Ref:
        """A ref to the unit at hand."""
        unit = self.unit
        if self._sha is None:
            self._sha = digest(unit.data)
        return Ref(
            source=self.source.id,
            line=unit.line.number,
            offset=unit.line.offset + unit.start,
            bytes=len(unit.data),
            sha256=self._sha,
            role=role,
            pointer=pointer,
        )

    def place(self, line: int, offset: int, size: int, role: str, pointer: str | None = None) -> Ref:
        """A ref to another unit of the same source, read again for its digest."""
        sha = self._digests.get(offset)
        if sha is None:
            sha = self._digests[offset] = digest(self.desk.read(self.source, offset, size))
            if len(self._digests) > 64:
                del self._digests[next(iter(self._digests))]
        return Ref(
            source=self.source.id,
            line=line,
            offset=offset,
            bytes=size,
            sha256=sha,
            role=role,
            pointer=pointer,
        )

    def native(self, role: str, pointer: str | None = None) -> Native:
        """Provenance with a ref to the unit at hand, and to every unit that repeats it (decision 2)."""
        unit = self.unit
        line = unit.line
        sha = self._sha
        if sha is None:
            sha = self._sha = _sha256(unit.data).hexdigest()
        ref = Ref(
            source=self.source.id,
            line=line.number,
            offset=line.offset + unit.start,
            bytes=len(unit.data),
            sha256=sha,
            role=role,
            pointer=pointer,
        )
        if self._copies is None and self.inherited is None:
            return Native(refs=[ref])
        repeats = [
            Ref(
                source=self.source.id,
                line=copy.line,
                offset=copy.offset,
                bytes=copy.size,
                sha256=copy.sha256,
                role=role,
                pointer=pointer,
            )
            for copy in self._copies or ()
        ]
        return Native(refs=[ref, *repeats], inherited=self.inherited)

    # -- writing ------------------------------------------------------------------------------------------------

    def write(self, record: Record) -> str:
        """Writes a record at the unit's time; returns its id."""
        if record.ts is None:
            record.ts = self.ts
        self.written += 1
        return self._write(record)

    def revise(self, key: str, record: Record) -> str:
        """Writes the next state of the entity ``key``; it supersedes the one written before under that key."""
        record.supersedes = self._last.get(key)
        self._last[key] = self.write(record)
        return self._last[key]

    def has(self, key: str) -> bool:
        """Whether a state of the entity was written."""
        return key in self._last

    # -- values that may not fit --------------------------------------------------------------------------------

    def exact(self, pointer: str) -> str | None:
        """The exact JSON text at a pointer of a unit with unpaired surrogates; None for every other unit."""
        found = MISSING if self.unit.exact is None else follow(self.unit.exact, pointer)
        return None if found is MISSING else lossless.exact_text(found)

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


def raw_json(value: Any) -> Raw:
    """A decoded value as JSON text for a record."""
    return Raw(msgspec.json.encode(value))
