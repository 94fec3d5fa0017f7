"""What is told of sessions that are being written, and the marks by which one knows what was told already.

Owns: the changes that ``follow`` yields, what names a row from one reading of a session to the next, and the marks of a
row: four bytes for each member that it has.

Must never know: files, when one looks.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct

from callsheet.library.watching import Began, Happened
from callsheet.records import Session as SessionRecord
from callsheet.rows import Row

PLACES = frozenset({"row", "record", "result", "folded", "parent", "native"})
"""Members of a row that name records or lines: they shift when a line before them is read otherwise."""


class Followed(Struct, kw_only=True, frozen=True):
    """A session whose rows follow: it changed, it is new, or it is the only one that was asked for.

    Attributes:
        session: Its native id.
        kind: Its source kind.
        path: Its file.
        head: Its session record, when it has one.
        anew: All its rows are told, none was before.
    """

    session: str
    kind: str
    path: str
    head: SessionRecord | None
    anew: bool


class RowTold(Struct, kw_only=True, frozen=True):
    """A row in its new state.

    Attributes:
        session: Native id of its session.
        key: What names the row as long as it is followed, also where its record is another one.
        row: The row; provisional, for the file may grow.
        depth: How deep it stands under agents.
        members: Of a row that was told before: which members changed.
    """

    session: str
    key: str
    row: Row
    depth: int
    members: tuple[str, ...] | None = None

    @property
    def is_new(self) -> bool:
        """Whether it was not told before."""
        return self.members is None


class RowsGone(Struct, kw_only=True, frozen=True):
    """Rows that were told, and are not there any more.

    Attributes:
        keys: The first of them.
        count: How many.
    """

    session: str
    keys: tuple[str, ...]
    count: int


class Settled(Struct, kw_only=True, frozen=True):
    """All that is new of a session was told; what is written from now on comes with a later look."""

    session: str


Change = Began | Followed | RowTold | RowsGone | Happened | Settled


# -- rows that were told ----------------------------------------------------------------------------------------------


def key_of(row: Row, seen: dict[str, int]) -> str:
    """What names a row from one reading to the next: its stream, and the place that it was made from.

    Several of one place are told apart by their order there. Call ids may change: one that turns up twice is derived.
    """
    place = row.native[0] if row.native else None
    where = row.row if place is None else [place.source, place.line, place.table, place.key]
    named = msgspec.json.encode([row.stream, where], order="sorted")
    key = hashlib.blake2b(named, digest_size=8).hexdigest()
    seen[key] = number = seen.get(key, 0) + 1
    return key if number == 1 else f"{key}.{number}"


_MEMBERS: tuple[tuple[str, str], ...] = tuple(
    (field.name, field.encode_name)
    for field in msgspec.structs.fields(Row)
    if field.encode_name not in PLACES
)


def marks_of_row(row: Row) -> bytes:
    """One byte for each member that a row has, and three of a digest of its value."""
    found = bytearray()
    for number, (name, _) in enumerate(_MEMBERS):
        value = getattr(row, name)
        if value is not None and value is not msgspec.UNSET:
            found.append(number)
            found += hashlib.blake2b(msgspec.json.encode(value), digest_size=3).digest()
    return bytes(found)


def members_between(before: bytes, now: bytes) -> tuple[str, ...]:
    """The members that are not the same in two sets of marks."""
    was, has = (
        {marks[at]: marks[at + 1 : at + 4] for at in range(0, len(marks), 4)} for marks in (before, now)
    )
    return tuple(
        _MEMBERS[number][1]
        for number in sorted(was.keys() | has.keys())
        if was.get(number) != has.get(number)
    )
