"""Which rows are shown: by kind and by state.

Must never know: the screen.
"""

from __future__ import annotations

from msgspec import Struct

from callsheet.paint.words import LABELS
from callsheet.rows import ROW_KINDS, RowKind, Rows, State
from callsheet.rows.row import STATES

CALLS: frozenset[RowKind] = frozenset(
    ("read", "search", "command", "file_change", "web", "mcp_tool", "subagent", "other")
)
"""Kinds that are calls of tools."""


class Filter(Struct, frozen=True):
    """Kinds and states that are shown; all of them unless some were chosen."""

    kinds: frozenset[RowKind] = frozenset(ROW_KINDS)
    states: frozenset[State] = frozenset(STATES)

    @property
    def is_all(self) -> bool:
        """Whether every row is shown."""
        return len(self.kinds) == len(ROW_KINDS) and len(self.states) == len(STATES)

    def shows(self, rows: Rows, at: int) -> bool:
        """Whether the row at a position is shown."""
        return rows.kind(at) in self.kinds and (
            len(self.states) == len(STATES) or rows.state(at) in self.states
        )

    def words(self) -> str:
        """What is shown, in a few words."""
        parts = []
        if len(self.kinds) < len(ROW_KINDS):
            parts.append(_few([LABELS[kind] for kind in ROW_KINDS if kind in self.kinds]))
        if len(self.states) < len(STATES):
            parts.append(_few([state for state in STATES if state in self.states]))
        return "; ".join(parts)


def _few(words: list[str]) -> str:
    return (
        ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "") if words else "none"
    )
