"""What a session's stream last reported of its use: the context, and the newest numbers of each scope.

Owns which of many usage records is the newest of its sort, and the words for them: the source's own names and numbers.
Nothing is added up, and no share is computed: a percentage stands only where the source reports one.

Must never know: files, how rows are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

from callsheet.records import Record, Unknown, Usage

COUNTS = 100
"""Numbers of one report that are kept."""

_SCOPES: tuple[tuple[str, bool, str], ...] = (
    ("inference", False, "last response"),
    ("turn", False, "last turn"),
    ("session", False, "session"),
    ("turn", True, "turn so far"),
    ("session", True, "session so far"),
)
"""Scope, whether it counts from a beginning on, and what to call it; other scopes follow under their own words."""


class Reported:
    """The newest usage of each sort in a stream, as its records come."""

    def __init__(self) -> None:
        self._context: Usage | None = None
        self._counts: dict[tuple[str, bool], Usage] = {}

    def note(self, record: Record | Unknown | None) -> None:
        """Takes the next record of the stream."""
        if not isinstance(record, Usage):
            return
        if (record.context_used, record.context_window, record.percent) != (None, None, None):
            self._context = record
        if record.counts:
            self._counts[record.scope, bool(record.cumulative)] = record

    @property
    def context(self) -> str:
        """The context as last reported; empty where nothing is."""
        usage = self._context
        if usage is None:
            return ""
        if usage.context_used is not None and usage.context_window is not None:
            percent = f" {usage.percent:,}%" if usage.percent is not None else ""
            return f"context {usage.context_used:,}/{usage.context_window:,}{percent}"
        reported = (
            ("context", usage.context_used, ""),
            ("window", usage.context_window, ""),
            ("", usage.percent, "%"),
        )
        return " · ".join(
            f"{name} {value:,}{unit}".strip() for name, value, unit in reported if value is not None
        )

    @property
    def says_how_full(self) -> bool:
        """Whether the source says how much of the context is used."""
        usage = self._context
        return usage is not None and (usage.context_used, usage.percent) != (None, None)

    def counts(self) -> Iterator[tuple[str, list[str]]]:
        """For each scope what to call it, and its newest numbers under the source's own names."""
        known = [(scope, so_far) for scope, so_far, _ in _SCOPES]
        words = {(scope, so_far): word for scope, so_far, word in _SCOPES}
        for key in sorted(self._counts, key=lambda one: known.index(one) if one in known else len(known)):
            counts = (self._counts[key].counts or [])[:COUNTS]
            scope, so_far = key
            name = words.get(key) or f"{scope} so far" * so_far or scope
            yield name, [f"{count.name} {count.value:,}" for count in counts]
