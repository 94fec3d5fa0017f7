"""Values that wait: what a frame said, kept until the record that it belongs to is written.

Owns ``Held`` (a value with the evidence it came with, and its exact text where unpaired surrogates had to be
replaced), the list of frames that the next record of an entity has to cite, and the bound on how often one
entity is revised.

Must never know: what a frame means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.pen import Pen
from callsheet.records import Native, Record, Ref
from callsheet.wire import lossless

REVISIONS_MOST = 100
"""After so many records an entity is written again only at the end: no log can make one grow without bound."""
CITED_MOST = 10_000
"""Frames that one record cites at most; then a record is written for them."""


class Held(NamedTuple):
    """A value of a frame.

    Attributes:
        raw: Its JSON text, readable by everyone.
        exact: Its JSON text with unpaired surrogates, where it has some.
        ref: The frame.
    """

    raw: Raw
    exact: str | None
    ref: Ref


def hold(pen: Pen, raw: Raw, role: str, pointer: str, name: str) -> Held:
    """Takes a member of the part at ``pointer``; the bytes are copied, so that the line is not kept alive."""
    exact = pen.exact(f"{pointer}/{name}" if name else pointer)
    if exact is not None and lossless.lossless(exact.encode()):
        exact = None
    return Held(Raw(bytes(raw)), exact, pen.ref(role, pointer))


def native_of(refs: Iterable[Ref], role: str | None = None) -> Native:
    """Provenance that cites each place once, in the order of the source."""
    seen: dict[tuple[str, int | None, str | None], Ref] = {}
    for ref in refs:
        key = (ref.source, ref.offset, ref.pointer)
        if key not in seen:
            seen[key] = ref if role is None or ref.role == role else replace(ref, role=role)
    return Native(refs=sorted(seen.values(), key=lambda ref: (ref.source, ref.offset or 0)))


def as_role(refs: Iterable[Ref], role: str) -> list[Ref]:
    """The same places, cited with a role."""
    return [ref if ref.role == role else replace(ref, role=role) for ref in refs]


def revise_at(pen: Pen, key: str, record: Record, ts: str | None) -> None:
    """Writes the next state of an entity at the time of its own frames, never at that of the frame at hand."""
    record.ts, now = ts, pen.ts
    pen.ts = ts
    pen.revise(key, record)
    pen.ts = now


def put_inline(pen: Pen, record: Record, member: str, held: Held, most: int | None = INLINE_MOST) -> bool:
    """Whether a held value may stand in the record itself; what may not is kept in a blob, and the capture says so.

    Args:
        pen: Keeps blobs.
        record: The record.
        member: Wire name of the member, for the capture.
        held: The value.
        most: Bytes up to which it stands inline; None for any size.
    """
    small = most is None or len(held.raw) <= most
    good = lossless.fits(bytes(held.raw))
    if held.exact is None and small and good:
        return True
    data = held.exact.encode() if held.exact is not None else bytes(held.raw)
    pen.capture(record, member, "external", blob=pen.desk.blob(data, "application/json"))
    # With U+FFFD for unpaired surrogates the value is still worth reading where it stands.
    return held.exact is not None and small and good
