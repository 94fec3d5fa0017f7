"""Usage as a source reports it: every number of an object, under the source's own name.

Must never know: what a number counts.
"""

from __future__ import annotations

from typing import Any

from callsheet.harness._port.pen import number
from callsheet.records import Count

WIDEST = 53
"""Bits of an integer that every reader keeps (ASR-032)."""
LONGEST = 200
"""Characters of the names that a nested object stands under, up to which its numbers are taken."""


def counts_of(value: Any) -> list[Count]:
    """Every number of a nested object under its own name, nested names joined with dots."""
    found: list[Count] = []
    if type(value) is dict:
        _count(value, "", found)
    return found


def _count(value: dict[str, Any], prefix: str, found: list[Count]) -> None:
    add = found.append
    for name, item in value.items():
        kind = type(item)
        if kind is int:
            if item.bit_length() <= WIDEST:
                add(Count(name=prefix + name, value=item))
        elif kind is float:
            if number(item) is not None:
                add(Count(name=prefix + name, value=item))
        elif kind is dict and len(prefix) < LONGEST:
            _count(item, f"{prefix}{name}.", found)
