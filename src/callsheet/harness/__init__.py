"""The adapters, one package per agent. ``HARNESSES`` and ``LIVE`` list them; adding one is one line here.

An adapter turns native facts into records with their evidence. It never pairs, never looks at another adapter.
A table is loaded when it is asked for, and ``live_agent`` loads no more than it has to: a person waits for an agent to
start, not for the adapters of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callsheet.harness._port import Stored
    from callsheet.harness._port.live import LiveAgent

    HARNESSES: tuple[Stored, ...]
    """Every adapter of stored files, in the order in which a file is offered to them."""
    LIVE: tuple[LiveAgent, ...]
    """Every agent that can be run through callsheet."""

_STORED = (
    "openclaw:OPENCLAW",
    "t3code:T3CODE",
    "acp:ACP",
    "gemini:GEMINI",
    "opencode:OPENCODE",
    "codex:CODEX",
    "codex:CODEX_EXEC",
    "codex:CODEX_APP_SERVER",
    "claude_code:CLAUDE_CODE_STREAM",
    "claude_code:CLAUDE_CODE",
)
_LIVE = (
    "claude_code:CLAUDE_CODE_AGENT",
    "codex:CODEX_AGENT",
    "acp:ACP_AGENTS",
)


def _loaded(place: str) -> tuple[Any, ...]:
    """The adapter at a place, or the adapters where it is a tuple of them."""
    package, _, name = place.partition(":")
    found = getattr(import_module(f"callsheet.harness.{package}"), name)
    return found if isinstance(found, tuple) else (found,)


def __getattr__(name: str) -> Any:
    places = {"HARNESSES": _STORED, "LIVE": _LIVE}.get(name)
    if places is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    table = globals()[name] = tuple(one for place in places for one in _loaded(place))
    return table


def live_agents() -> Iterator[LiveAgent]:
    """The agents of ``LIVE``, each loaded when it is its turn."""
    for place in _LIVE:
        yield from _loaded(place)
