"""The painter: a row to lines.

    ✗ command  cargo test -p parser                          Bash · exit 101 · 4.9 s
        ▸ timeout: 60000
        failed · allowed by policy (mode)
        │ test parse_empty ... FAILED
        ┆ … 12 more lines
        │ error: test failed

Line one has the state, the kind, the main input and, at the right edge, short facts. Then the rest of the
input, who allowed it and what is not recorded, the error, the patches, and the output, which is collapsed.
What was asked stands behind ``▸``, what came back behind ``│``; words about what is hidden behind ``┆``,
where no agent can write.

Owns layout. Must never know: records, files, terminals.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from callsheet.paint import cells
from callsheet.paint.block import WHOLE, Collapse, block, hidden, more_lines, text_lines
from callsheet.paint.diff import changed_lines, patch_lines
from callsheet.paint.inputs import input_lines
from callsheet.paint.notes import Signs
from callsheet.paint.safe import visible
from callsheet.paint.span import Line, Span, Style, line_width, packed
from callsheet.paint.words import LABELS, MARKS, detail_words, fact_words, place_words, state_words
from callsheet.records import Session
from callsheet.rows import ChangeShown, Everywhere, Output, Row
from callsheet.rows.text import counted

NARROWEST = 20
"""Cells below which nothing is laid out any narrower."""

COLLAPSES: dict[str, Collapse] = {
    "read": Collapse(3, 0),
    "search": Collapse(6, 0),
    "message": Collapse(10, 0),
    "thought": Collapse(1, 0),
    "hook": Collapse(2, 2),
    "notice": Collapse(3, 0),
    "request": Collapse(10, 0),
    "plan": Collapse(20, 0),
}
"""How much of a row's text is shown; ``TEN`` for other kinds."""
TEN = Collapse(5, 5)
PATCH = Collapse(16, 0)
RUNNING = Collapse(0, 10)
"""How much of the output of what is still running is shown: its end."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TITLE_LINES = 3

_INDENT = "    "
_LABEL_CELLS = 8
_DEEPEST = 6
_BELOW = frozenset({"hook", "terminal", "request", "plan"})
"""Kinds that are indented below the call they belong to."""


class Look(Struct, frozen=True, kw_only=True):
    """How a sheet is drawn.

    Attributes:
        width: Cells of a line.
        full: Nothing is collapsed.
        audit: Every caution is drawn, when it was, and where it stands in its sources.
        folders: Folders that paths are shortened by.
        everywhere: What is silent about every call of the sheet: its head says it, and no row does.
        tick: Where a sign that turns while a row is running stands; None for one that stands still.
    """

    width: int = 80
    full: bool = False
    audit: bool = False
    folders: tuple[str, ...] = ()
    everywhere: Everywhere = Everywhere()
    tick: int | None = None


def look_with_folders(look: Look, session: Session | None) -> Look:
    """The look, with a session's own folders to shorten paths by."""
    roots = (session.roots or {}) if session else {}
    folders = tuple(sorted((folder for folder in roots.values() if len(folder) > 1), key=len, reverse=True))
    return replace(look, folders=folders)


def paint_row(row: Row, look: Look, depth: int = 0, signs: Signs | None = None) -> list[Line]:
    """The lines of a row.

    Args:
        row: The row.
        look: How to draw.
        depth: Level of agents within agents.
        signs: Signs of the notes that stand elsewhere; None: the row tells them.
    """
    margin = _margin(depth)
    if row.kind in _BELOW and row.parent is not None:
        margin = [*margin, Span("  ")]
    width = max(look.width, NARROWEST) - line_width(margin)
    if width < NARROWEST:
        margin, width = [], max(look.width, NARROWEST)
    paint = _talk if row.kind in ("message", "thought") else _event
    return [[*margin, *line] for line in paint(row, look, width, signs)]


def _margin(depth: int) -> Line:
    return [Span("┊ " * min(depth, _DEEPEST), "quiet")] if depth else []


def is_small(row: Row, look: Look) -> bool:
    """Whether a row is a message that no person and no model wrote: it is drawn on one line."""
    return row.kind == "message" and row.author not in ("user", "model") and not (look.full or look.audit)


def _talk(row: Row, look: Look, width: int, signs: Signs | None) -> Iterator[Line]:
    mark, label, style = _talk_head(row, look)
    indent = _LABEL_CELLS + 3
    room = width - indent
    facts = visible(" · ".join(fact_words(row, signs)))
    for number, line in enumerate(_talk_lines(row, look, room)):
        if number:
            yield [Span(" " * indent), *line]
            continue
        gap = room - line_width(line) - cells.width(facts)
        beside = [Span(" " * gap + facts, "quiet")] if facts and gap > 1 else []
        yield [Span(f"{mark} {_label(label)} ", style), *line, *beside]
    if look.audit:
        for line in _places(row, room):
            yield [Span(" " * indent), *line]


def _talk_head(row: Row, look: Look) -> tuple[str, str, Style]:
    if row.state == "running":
        mark, style = _mark(row, look)
        return mark, "Thinking" if row.kind == "thought" else row.author or "message", style
    if row.kind == "thought":
        return "~", "thought", "quiet"
    author = row.author or "message"
    if author == "user":
        return ">", author, "strong"
    return ("*", author, "label") if author == "model" else ("·", author, "quiet")


def _talk_lines(row: Row, look: Look, room: int) -> list[Line]:
    if row.output is None:
        words = "; ".join(detail_words(row, audit=look.audit)) or row.title
        return [[Span(piece, "quiet")] for piece in cells.wrap(visible(words), room)]
    text = row.output.text
    if is_small(row, look):
        return [[Span(cells.cut(visible(" ".join(text[: room * 8].split())), room), "quiet")]]
    thought = row.kind == "thought"
    collapse = RUNNING if row.state == "running" and not thought else COLLAPSES[row.kind]
    collapse = WHOLE if look.full else collapse
    if row.state == "running" and not text.strip():
        return [[]]
    lines = _block(row.output, room, collapse, "quiet" if thought else "", text.lstrip() if thought else text)
    return lines or [hidden("(no text)", room)]


def _places(row: Row, room: int) -> list[Line]:
    return packed([Span(visible(words), "place") for words in place_words(row)], room)


def _mark(row: Row, look: Look) -> tuple[str, Style]:
    if row.state == "running" and look.tick is not None:
        return SPINNER[look.tick % len(SPINNER)], MARKS["running"][1]
    if row.kind == "notice" and row.state == "completed":
        return "·", "quiet"
    if row.kind == "terminal" and (row.state, row.status) == ("unconfirmed", "exited"):
        return "·", "quiet"  # it ended; how, the source does not say
    return MARKS[row.state]


def _event(row: Row, look: Look, width: int, signs: Signs | None) -> Iterator[Line]:
    mark, style = _mark(row, look)
    head = [Span(mark, style), Span(f" {_label(LABELS[row.kind])} ", "label")]
    yield from _title(row, look, width, head, signs)
    room = width - len(_INDENT)
    for line in input_lines(row, room, full=look.full):
        yield [Span(_INDENT), *line]
    state = state_words(row)
    everywhere = frozenset[str]() if look.audit else look.everywhere.members
    told = detail_words(row, audit=look.audit, everywhere=everywhere, signs=signs)
    details = [Span(visible(words), "quiet") for words in told]
    for line in packed([*([Span(visible(state), style)] if state else []), *details], room):
        yield [Span(_INDENT), *line]
    if look.audit:
        for line in _places(row, room):
            yield [Span(_INDENT), *line]
    yield from _body(row, look, room)


def _body(row: Row, look: Look, room: int) -> Iterator[Line]:
    inner = room - 2
    output = row.output
    if row.error is not None and not _says(output, row.error):
        for line in block(row.error, inner, WHOLE if look.full else Collapse(4, 0), style="bad"):
            yield _guttered(line)
    for change in row.changes or ():
        yield from _change(row, change, look, room)
    if row.omitted_changes:
        yield _guttered(hidden(f"… {counted(row.omitted_changes, 'more file')}", inner))
    if output is not None:
        yield from _output(row, output, look, inner)


def _says(output: Output | None, error: str) -> bool:
    """Whether the output holds the error's text, apart from a word before it (``Error: …``)."""
    head, colon, rest = error.partition(": ")
    core = (rest if colon and head.isalpha() else error).strip()[:200]
    return output is not None and core in output.text


def _output(row: Row, output: Output, look: Look, inner: int) -> Iterator[Line]:
    patched = any(change.patch is not None for change in row.changes or ())
    if patched and row.state == "completed" and not look.full:
        count = len(text_lines(output.text))
        words = f"… {counted(count, 'line')} of output" if count else ""
        lines = [hidden(words, inner)] if words else []
    else:
        collapse = RUNNING if row.state == "running" else COLLAPSES.get(row.kind, TEN)
        lines = _block(output, inner, WHOLE if look.full else collapse, "")
        if not lines and row.kind == "command":
            lines = [hidden("(no output)", inner)]
    if output.omitted_before:
        lines.insert(0, hidden(f"… {counted(output.omitted_before, 'byte')} before it", inner))
    if output.member == "preview":
        if row.state != "running":
            lines.append(hidden("(the last that was seen of it while it ran)", inner))
    elif output.truncated and output.omitted is None:
        size = (
            f"; {counted(output.original_bytes, 'byte')} in all" if output.original_bytes is not None else ""
        )
        what = "the model got a part of it" if output.member == "content" else "the source kept a part of it"
        lines.append(hidden(f"({what}{size})", inner))
    for line in lines:
        yield _guttered(line)


def _guttered(line: Line) -> Line:
    ours = bool(line) and line[0].style == "hidden"
    return [Span(_INDENT), Span("┆ " if ours else "│ ", "quiet"), *line]


def _block(
    output: Output, width: int, collapse: Collapse, style: Style, text: str | None = None
) -> list[Line]:
    return block(
        output.text if text is None else text,
        width,
        collapse,
        style=style,
        tail=output.tail or "",
        omitted=output.omitted or 0,
        omitted_lines=output.omitted_lines or 0,
    )


def _change(row: Row, change: ChangeShown, look: Look, room: int) -> Iterator[Line]:
    if not _is_title(row, change, look):
        moved = f"{short_path(change.old_path, look.folders)} -> " if change.old_path else ""
        kind = "change" if change.kind == "unknown" else change.kind
        words = " ".join([kind, moved + short_path(change.path, look.folders), *_change_facts(change)])
        yield [Span(_INDENT), Span(cells.cut(visible(words), room), "label")]
    if change.patch is not None:
        for line in patch_lines(change.patch, room - 2, WHOLE if look.full else PATCH):
            yield _guttered(line)
    if change.truncated:
        yield _guttered(hidden("… the rest of the patch is not drawn", room - 2))


def _is_title(row: Row, change: ChangeShown, look: Look) -> bool:
    """Whether the row's title already names this change, so that its facts stand at the right edge."""
    alone = len(row.changes or ()) == 1 and not row.omitted_changes and change.old_path is None
    return alone and row.title in (change.path, short_path(change.path, look.folders))


def _change_facts(change: ChangeShown) -> Iterator[str]:
    counted = changed_lines(change.patch) if not change.truncated else None
    if counted is not None:
        yield f"+{counted[0]} -{counted[1]}"
    if change.state == "unknown":
        yield "(whether it was applied: not recorded)"
    elif change.state not in (None, "applied"):
        yield f"({change.state})"


def short_path(path: str, folders: tuple[str, ...]) -> str:
    """The path without the first of these folders that it lies in."""
    for folder in folders:
        for mark in ("/", "\\"):
            if path.startswith(folder.rstrip(mark) + mark):
                return path[len(folder.rstrip(mark)) + 1 :]
    return path


def _title(row: Row, look: Look, width: int, head: Line, signs: Signs | None) -> Iterator[Line]:
    room = width - line_width(head)
    words = list(fact_words(row, signs))
    for change in row.changes or ():
        if _is_title(row, change, look):
            words += [*([change.kind] if change.kind == "add" else ()), *_change_facts(change)]
    facts = visible(" · ".join(words))
    facts_cells = cells.width(facts)
    beside = bool(facts) and facts_cells + 2 + min(cells.width(row.title[:room]), room // 2) <= room
    first = room - facts_cells - 2 if beside else room
    lines = _title_lines(row.title, first, look)
    for number, line in enumerate(lines):
        if number:
            yield [Span(" " * line_width(head)), *line]
        elif beside:
            gap = room - line_width(line) - facts_cells
            yield [*head, *line, Span(" " * gap), Span(facts, "quiet")]
        else:
            yield [*head, *line]
    if facts and not beside:
        for piece in cells.wrap(facts, width - len(_INDENT)):
            yield [Span(_INDENT), Span(piece, "quiet")]


def _title_lines(title: str, room: int, look: Look) -> list[Line]:
    pieces = [piece for line in title.strip("\n").split("\n") for piece in cells.wrap(visible(line), room)]
    if look.full or len(pieces) <= TITLE_LINES:
        return [[Span(piece, "strong")] for piece in pieces]
    kept = [[Span(piece, "strong")] for piece in pieces[: TITLE_LINES - 1]]
    return [*kept, hidden(more_lines(len(pieces) - TITLE_LINES + 1), room)]


def _label(label: str) -> str:
    text = cells.cut(visible(label), _LABEL_CELLS)
    return text + " " * (_LABEL_CELLS - cells.width(text))
