"""A frame in its line, and under the names of stored lines.

Owns: the frame that a line of a frame log wraps, and the names that stored lines of the same agent have for its
members (``[[alias]]``), so that one set of tables speaks of both.

Must never know: records.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from callsheet.registry import Registry
from callsheet.registry.when import MISSING, follow, matches

WAYS = frozenset(
    {"agent_to_client", "client_to_agent", "agent", "client", "server", "recv", "send", "out", "in"}
)
"""Words for who sent a frame."""


def unwrapped(root: Any) -> Any:
    """The frame that a line wraps, or the line."""
    if not isinstance(root, dict) or not isinstance(root.get("frame"), dict):
        return root
    way = root.get("dir")
    return root["frame"] if isinstance(way, str) and way in WAYS else root


def aliased(registry: Registry, root: Any) -> Any:
    """A frame with the names of stored lines besides its own."""
    if not isinstance(root, dict):
        return root
    found = dict(root)
    for alias in registry.alias:
        value = follow(root, alias.pointer) if alias.pointer else root
        if value is MISSING or not matches(alias.when, root) or (alias.same and not _same(root, alias.same)):
            continue
        if alias.words and isinstance(value, dict):
            value = {alias.words.get(name, name): inner for name, inner in value.items()}
        found[alias.member] = value if alias.then is UNSET else alias.then
    return found


def _same(root: Any, pointers: list[str]) -> bool:
    first, second = (follow(root, pointer) for pointer in pointers)
    return isinstance(first, str) and first == second
