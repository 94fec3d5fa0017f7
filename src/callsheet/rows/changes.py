"""Changed files of a row: paths under the session's roots, and patches as the source supplied them, bounded.

A patch is never computed: old and new text (``replace``) stay two texts. A patch beyond the limit is cut
and says so.

Must never know: how a diff is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from callsheet.records import FileChange, Patch
from callsheet.registry.when import MISSING
from callsheet.rows.context import Context
from callsheet.rows.row import ChangeShown
from callsheet.rows.text import raw_value


def changes_shown(context: Context, records: Iterable[FileChange]) -> tuple[list[ChangeShown], int]:
    """The changed files of some records.

    Returns:
        At most ``limits.items`` files, and how many more there are.
    """
    shown: list[ChangeShown] = []
    more = 0
    for record in records:
        for change in record.changes or ():
            if len(shown) == context.limits.items:
                more += 1
                continue
            patch, truncated = bounded_patch(change.patch, context.limits.patch)
            shown.append(
                ChangeShown(
                    path=context.path(change.path),
                    kind=change.change or "unknown",
                    old_path=context.path(change.old_path) if change.old_path else None,
                    patch=patch,
                    truncated=truncated,
                    state=record.state,
                )
            )
    return shown, more


def paths_of(shown: list[ChangeShown], more: int) -> str:
    """The changed files in a few words; empty where there are none."""
    paths = [one.path for one in shown[:3]]
    rest = len(shown) + more - len(paths)
    return ", ".join(paths) + (f" and {rest} more" if rest else "")


def bounded_patch(patch: Patch | None, most: int) -> tuple[Patch | None, bool]:
    """A patch of at most about ``most`` characters, and whether it was cut."""
    if patch is None or not isinstance(patch.value, Raw):
        return patch, False
    data = bytes(patch.value)
    if len(data) <= most:
        return Patch(format=patch.format, value=Raw(data)), False
    value = raw_value(patch.value)
    if value is MISSING:
        return Patch(format=patch.format, value=UNSET), True
    short, _ = _shortened(value, most)
    return Patch(format=patch.format, value=Raw(msgspec.json.encode(short))), True


def _shortened(value: Any, left: int, depth: int = 0) -> tuple[Any, int]:
    """A value whose texts have at most ``left`` characters together, lists cut where it is used up."""
    if isinstance(value, str):
        return value[: max(left, 0)], left - len(value) - 2
    if isinstance(value, list) and depth < 8:
        kept = []
        for item in value:
            if left <= 0:
                break
            short, left = _shortened(item, left, depth + 1)
            kept.append(short)
        return kept, left
    if isinstance(value, dict) and depth < 8:
        members = {}
        for name, item in value.items():
            members[name], left = _shortened(item, left - len(name), depth + 1)
        return members, left
    return (value, left - 8) if isinstance(value, (int, float, bool)) or value is None else (None, left)
