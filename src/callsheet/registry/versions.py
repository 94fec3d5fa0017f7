"""Version ranges of registry entries.

Owns the little language: ``""`` (any), ``"2.1.332"`` (exactly), ``">=2.1.300"``, ``"<2.1.300"``, ``"2.1.120..2.1.200"``
(both ends included), several terms separated by a comma (all must hold), or a list of such texts (one must hold).
A missing or unreadable version fits only the empty range: what is unknown proves nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

Versions = str | list[str]
Key = tuple[int, ...]

_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9})*", re.ASCII)


@lru_cache(maxsize=4096)
def version_key(text: str) -> Key | None:
    """A comparable key of the leading dotted numbers (``2.1.300-beta`` compares as 2.1.300), or None."""
    found = _NUMBERS.match(text)
    return tuple(int(part) for part in found.group().split(".")) if found else None


def in_ranges(ranges: Versions, version: str | None) -> bool:
    """Whether a version lies in the ranges of an entry."""
    if isinstance(ranges, list):
        return any(in_ranges(one, version) for one in ranges)
    return _holds(ranges, version)


@lru_cache(maxsize=65536)
def _holds(ranges: str, version: str | None) -> bool:
    terms = [term.strip() for term in ranges.split(",") if term.strip()]
    if not terms:
        return True
    key = version_key(version) if version else None
    return key is not None and all(_term(term, key) for term in terms)


def _term(term: str, key: Key) -> bool:
    if ".." in term:
        low, high = term.split("..", 1)
        return _bound(low) <= key <= _bound(high)
    for sign in (">=", "<=", "==", ">", "<"):
        if term.startswith(sign):
            bound = _bound(term[len(sign) :])
            return {
                ">=": key >= bound,
                "<=": key <= bound,
                "==": key == bound,
                ">": key > bound,
                "<": key < bound,
            }[sign]
    return key == _bound(term)


def _bound(text: str) -> Key:
    key = version_key(text.strip())
    if key is None:
        raise ValueError(f"not a version: {text!r}")
    return key
