"""``callsheet watch [SOURCE]``: sessions that agents started elsewhere are writing, row by row as they come.

Owns how a change is printed: as text the row in its new state, under a line that names its session; as JSON a row a
line, with what changed of it. Ends by Ctrl-C.

Must never know: how a change is found.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import closing
from pathlib import Path
from typing import Any, assert_never

import click
import msgspec

from callsheet.errors import SourceError, UsageError, reason_of
from callsheet.faces.cli.named import Named
from callsheet.faces.cli.opening import check_workbench
from callsheet.faces.cli.terminal import Printer, complain, sheet_width, write_json
from callsheet.library.follow import follow
from callsheet.library.importing import adapter_for, places_of
from callsheet.library.news import Change, Followed, RowsGone, RowTold, Settled
from callsheet.library.opening import Reading
from callsheet.library.watching import Began, Happened
from callsheet.paint import Line, Look, Notes, Span, paint_noted, visible
from callsheet.paint.cells import cut
from callsheet.paint.row import NARROWEST, look_with_folders
from callsheet.rows import View
from callsheet.rows.text import counted

TAIL = 20
"""Rows that are drawn of a session that was there already; the rest is counted."""


@click.command()
@click.argument("source", required=False, type=Named())
@click.option(
    "--json", "as_json", is_flag=True, help="A row a line in its new state, and what changed of it."
)
@click.option("--from", "kind", metavar="KIND", help="What the source is, where it is not to be guessed.")
@click.option("--plain", is_flag=True, help="Lines instead of the workbench.")
@click.option("--width", type=int, metavar="N", help="Cells of a line (default: the terminal, or 80).")
@click.option("--thoughts", is_flag=True, help="Also reasoning that is raw, or of a kind that is not stated.")
def watch(
    source: str | None, as_json: bool, kind: str | None, plain: bool, width: int | None, thoughts: bool
) -> int:
    """Follow sessions that agents started elsewhere are writing.

    SOURCE is a file, a database or a folder as an agent stores it; new files below a folder are followed
    too. Without SOURCE, whatever the agents installed for this user store.

    On a terminal this is the workbench. With --json, --plain or an option about lines, and where there is no
    terminal, a row is printed when it is new and again when it changes; a line that is half written waits for
    its end, and Ctrl-C ends it.

    \b
    Examples:
      callsheet watch
      callsheet watch ~/.codex/sessions --json | jq 'select(.state == "failed")'

    Exit code 2: nothing can be followed there; 130: Ctrl-C ended it.
    """  # noqa: D301
    if width is not None and width < NARROWEST:
        raise UsageError(f"--width {width}: a sheet takes {NARROWEST} cells at least")
    if source == "-":
        raise UsageError("standard input cannot be followed: it is read once (callsheet show -)")
    if kind is not None:
        adapter_for(kind)
    roots = [(_followable(Path(source)), kind)] if source is not None else _installed(kind)
    lines = as_json or plain or thoughts or width is not None
    if not lines and sys.stdin.isatty() and sys.stdout.isatty():
        check_workbench("--plain prints lines instead")
        from callsheet.faces.tui.app import watch_workbench

        return watch_workbench(roots)
    reading = Reading(near=None if as_json else Path.cwd(), view=View(thoughts=thoughts, harness=as_json))
    tell = _json if as_json else _Text(sheet_width(width)).tell
    with closing(follow(roots, reading)) as changes:
        for change in changes:
            tell(change)
            if isinstance(change, Settled | Began | Happened):
                sys.stdout.flush()
    return 0


def _followable(path: Path) -> Path:
    """A path that may be followed, or is not there yet."""
    if path.is_dir():
        try:
            next(path.iterdir(), None)
        except OSError as error:
            raise SourceError(reason_of(error), path=str(path)) from None
    elif path.exists() and not path.is_file():
        raise SourceError("is no regular file", path=str(path))
    return path


def _installed(kind: str | None) -> list[tuple[Path, str | None]]:
    found = [(path, one) for path, one in places_of(os.environ, Path.home()) if kind in (None, one)]
    if not found:
        raise SourceError(
            "no agent has stored sessions here (see: callsheet harnesses); name a file or a folder"
        )
    return list(found)


# -- JSON -----------------------------------------------------------------------------------------------------------


def _json(change: Change) -> None:
    """A row with a member ``watch``; of anything else that member alone."""
    encode = msgspec.json.encode
    match change:
        case RowTold():
            told: dict[str, Any] = {
                "event": "row",
                "session": change.session,
                "key": change.key,
                "change": "new" if change.is_new else "changed",
            }
            if change.members is not None:
                told["members"] = change.members
            write_json(encode(change.row)[:-1] + b',"watch":' + encode(told) + b"}")
        case Began():
            write_json(encode({"watch": {"event": "began", **msgspec.structs.asdict(change)}}))
        case Followed():
            told = {"session": change.session, "kind": change.kind, "path": change.path, "anew": change.anew}
            write_json(encode({"watch": {"event": "session", **told}}))
        case RowsGone():
            write_json(encode({"watch": {"event": "gone", **msgspec.structs.asdict(change)}}))
        case Happened():
            told = {"session": change.session, "path": change.path, "message": change.message}
            write_json(encode({"watch": {"event": change.what, **told}}))
        case Settled():
            pass  # the lines themselves were all there is
        case _:
            assert_never(change)


# -- text -----------------------------------------------------------------------------------------------------------


class _Text:
    """Prints changes as a sheet that grows."""

    def __init__(self, width: int) -> None:
        self._out = Printer(sys.stdout)
        self._width = width
        self._look = Look(width=width)
        self._notes = Notes()
        self._under: str | None = None
        self._held: deque[RowTold] | None = None
        self._skipped = 0

    def tell(self, change: Change) -> None:
        """Prints one change."""
        match change:
            case Began():
                places = ", ".join(map(visible, change.places))
                words = f"following {counted(change.sessions, 'session')} in {places}; Ctrl-C ends"
                self._out.line([Span(cut(words, self._width), "quiet")])
            case Followed():
                self._begin(change)
            case RowTold():
                self._row(change)
            case Settled():
                self._release()
            case RowsGone():
                self._out.line([Span(f"{counted(change.count, 'row')} no longer there", "open")])
            case Happened():
                complain(f"{change.path}: {change.message}")
            case _:
                assert_never(change)

    def _begin(self, change: Followed) -> None:
        self._look = look_with_folders(Look(width=self._width), change.head)
        self._held, self._skipped = (deque(maxlen=TAIL) if change.anew else None), 0
        if self._under == change.session:
            return
        self._under = change.session
        agent = change.head.agent if change.head is not None else None
        named = " ".join(word for word in (agent.name, agent.version) if word) if agent else change.kind
        words = visible(f"── {named}  {change.session}  {change.path} ")
        line = cut(words, self._width)
        self._out.line([])
        self._out.line([Span(line, "label")])

    def _row(self, change: RowTold) -> None:
        if self._held is not None:
            self._skipped += len(self._held) == TAIL
            self._held.append(change)
        else:
            self._draw(change)

    def _release(self) -> None:
        """Draws the last rows of a session that is told anew."""
        held, self._held = self._held, None
        if self._skipped:
            words = f"{counted(self._skipped, 'earlier row')}: callsheet show shows them"
            self._out.line([Span(cut(words, self._width), "quiet")])
        for change in held or ():
            self._draw(change)

    def _draw(self, change: RowTold) -> None:
        lines: list[Line] = list(paint_noted(change.row, self._look, self._notes, change.depth))
        if change.members:
            words = f"  ↻ {', '.join(change.members)}"
            self._out.line([Span(cut(words, self._width), "quiet")])
        for line in lines:
            self._out.line(line)
