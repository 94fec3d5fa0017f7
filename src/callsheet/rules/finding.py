"""What a check says: a finding is a value, never an exception.

Owns ``Finding`` (the shape that ``callsheet validate --json`` prints), ``Problem`` (what a rule function
yields) and the way values of a stream are shown inside a message: short, and with nothing in them that a
terminal would obey.

Must never know: which rules there are, how a stream is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Struct

Json = dict[str, Any]
"""A record as decoded JSON, any member of any type."""


class Problem(NamedTuple):
    """What is wrong with one record.

    Attributes:
        path: JSON pointer to the member (RFC 6901); of a missing member, where it should stand.
        message: What is wrong and what the rule asks, one line.
    """

    path: str
    message: str


Problems = Iterable[Problem]


class Finding(Struct, frozen=True, omit_defaults=True):
    """One thing that a stream does and a rule forbids.

    Attributes:
        rule: ``ASR-250`` … ``ASR-291``, or an envelope code (``P-SEQ`` …).
        record: The record's id; None when it has none or the line could not be read.
        line: 1-based physical line of the stream; None for a finding about a bundle's manifest.
        path: JSON pointer to the member inside the record (or manifest).
        message: What is wrong and what the rule asks.
        stream: Id of the stream inside a bundle.
    """

    rule: str
    record: str | None
    line: int | None
    path: str
    message: str
    stream: str | None = None


class Checked(Struct):
    """How much was checked, for those who ask: streams, and lines that are or should be records."""

    streams: int = 0
    records: int = 0


_MOST = 60


def shown(value: Any) -> str:
    """A value of the stream as it may stand in a message."""
    if isinstance(value, str):
        return repr(value if len(value) <= _MOST else value[:_MOST] + "…")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a number of more than 30 digits"
    if isinstance(value, float):
        return repr(value)
    return "an array" if isinstance(value, list) else "an object"


def step(path: str, name: str | int) -> str:
    """The pointer one member or element further down."""
    if isinstance(name, str):
        name = name.replace("~", "~0").replace("/", "~1")
    return f"{path}/{name}"
