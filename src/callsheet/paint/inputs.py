"""What was asked, below the title: the members of a call's input that nothing else of the sheet says.

One line each, a few of them; the task that an agent was given gets three. What an edit was to write, where no
patch says what it did write, is drawn as text that goes and text that comes, and called what it is: proposed,
or requested. Lines of the input stand behind ``▸``, where no word of ours stands.

Must never know: which tools exist; records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET, Raw, json

from callsheet.paint import cells
from callsheet.paint.block import WHOLE, Collapse, block, hidden, text_lines
from callsheet.paint.diff import patch_lines
from callsheet.paint.safe import output_line, visible
from callsheet.paint.span import Line, Span
from callsheet.records import Patch
from callsheet.registry.when import MISSING, follow
from callsheet.rows import Row
from callsheet.rows.inputs import NEW_KEYS, OLD_KEYS, TEXT_KEYS
from callsheet.rows.text import compact, counted, raw_value

MOST_MEMBERS = 4
"""Members that are drawn of a longer input."""
TASK = Collapse(3, 0)
"""How much is shown of what an agent was asked to do."""
PROPOSAL = Collapse(16, 0)
_KEY_CELLS = 40


def input_lines(row: Row, room: int, *, full: bool) -> Iterator[Line]:
    """The lines of a row's input, without a margin.

    Args:
        row: The row.
        room: Cells of a line.
        full: Nothing is collapsed.
    """
    pointers = row.more_input or []
    if not pointers:
        return
    if row.input_bytes is not None:
        more = "" if full else " (--full draws them)"
        yield _ours(f"… arguments of {counted(row.input_bytes, 'byte')} are not drawn{more}", room)
        return
    value = row.input_text if row.input is UNSET else raw_value(row.input)
    members = [(_name(pointer), follow(value, pointer)) for pointer in pointers]
    names, edits = _edits(row, dict(members))
    plain = [(name, one) for name, one in members if name not in names]
    shown = plain if full or len(plain) <= MOST_MEMBERS + 1 else plain[:MOST_MEMBERS]
    for name, one in shown:
        yield from _member(row, name, one, room, full=full)
    if len(plain) > len(shown):
        yield _ours(f"… {len(plain) - len(shown):,} more", room)
    if edits:
        yield from _proposal(row, edits, room, full=full)


def _ours(words: str, room: int) -> Line:
    return [Span("┆ ", "quiet"), *hidden(words, room - 2)]


def _name(pointer: str) -> str:
    return pointer[1:].replace("~1", "/").replace("~0", "~") if pointer else "input"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value if value.strip() else f'"{value}"'
    return "" if value is MISSING else compact(value)


def _member(row: Row, name: str, value: Any, room: int, *, full: bool) -> Iterator[Line]:
    label = f"{cells.cut(visible(name), min(_KEY_CELLS, room // 2))}: "
    text = _text(value)
    inner = room - 2
    if full or (row.kind == "subagent" and isinstance(value, str)):
        for line in block(f"{label}{text.strip()}", inner, WHOLE if full else TASK, style="quiet"):
            ours = line[0].style == "hidden"
            yield [Span("┆ " if ours else "▸ ", "quiet"), *line]
        return
    lines = text_lines(text.strip())
    first = output_line(lines[0][: room * 8]) if lines else ""
    mark = " …" if len(lines) > 1 else ""
    yield [Span("▸ ", "quiet"), Span(cells.cut(label + first, inner - len(mark)) + mark, "quiet")]


class _Edit(NamedTuple):
    """A text that goes and a text that comes; None where the input does not say one."""

    old: str | None
    new: str | None


def _edits(row: Row, members: dict[str, Any]) -> tuple[frozenset[str], list[_Edit]]:
    """Which members say what an edit was to write, where its row shows no patch; and what they say."""
    if row.kind != "file_change" or any(change.patch is not None for change in row.changes or ()):
        return frozenset(), []
    names: set[str] = set()
    found = []
    several = members.get("edits")
    for one in [members, *(several if isinstance(several, list) else ())]:
        edit, used = _edit(one)
        if edit is None:
            continue
        found.append(edit)
        names.update(used if one is members else ("edits",))
    return frozenset(names), found


def _edit(members: Any) -> tuple[_Edit | None, list[str]]:
    if not isinstance(members, dict):
        return None, []
    old = _first(members, OLD_KEYS)
    new = _first(members, NEW_KEYS) or _first(members, TEXT_KEYS)
    used = [name for name in (old, new) if name is not None]
    if not used:
        return None, []
    return _Edit(members[old] if old else None, members[new] if new else None), used


def _first(members: dict[str, Any], keys: frozenset[str]) -> str | None:
    return next((name for name, one in members.items() if name in keys and isinstance(one, str)), None)


def _proposal(row: Row, edits: list[_Edit], room: int, *, full: bool) -> Iterator[Line]:
    yield _ours("requested; no patch is recorded:" if row.state == "completed" else "proposed:", room)
    for edit in edits:
        value = Raw(json.encode({"oldText": edit.old, "newText": edit.new}))
        for line in patch_lines(Patch(format="replace", value=value), room - 2, WHOLE if full else PROPOSAL):
            ours = bool(line) and line[0].style == "hidden"
            yield [Span("┆ " if ours else "▸ ", "quiet"), *line]
