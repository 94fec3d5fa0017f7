"""The list of a folder's sessions, which stands for a sheet where there is more than one: a sheet is of one.

Must never know: native shapes, rows.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from callsheet.errors import SourceError, reason_of
from callsheet.faces.cli.terminal import Bar, Printer, complain
from callsheet.library.briefs import UNREADABLE, Brief, brief_of_bundle
from callsheet.paint import Line, Span, visible
from callsheet.paint.cells import cut, width
from callsheet.records.bundle import Bundle
from callsheet.rows.text import counted


class Listed(NamedTuple):
    """A session of a folder, and what to name to see it.

    Attributes:
        path: The bundle or the native file.
        stream: Its stream, where the file holds several sessions.
    """

    path: str
    brief: Brief
    stream: str | None = None


def list_sessions(folder: Path, bundles: list[Path], files: Counter[str], out: Printer, most: int) -> None:
    """Prints each session of a folder: when, how many calls, what was asked, and what to name to see it.

    Args:
        folder: The folder.
        bundles: The bundles in it; none: it holds native sessions.
        files: Files that hold native sessions, and how many each.
        out: Where to.
        most: Cells of a line.
    """
    bar = Bar()
    count = len(bundles) or files.total()
    out.words(f"{folder}: {counted(count, 'session')}. To see one of them: callsheet show PATH")
    found = _of_bundles(bundles) if bundles else _of_native(folder, files, bar)
    with closing(found):  # its temporary folder goes, even if nobody reads on
        for listed in found:
            bar.clear()
            for line in _lines(listed, most):
                out.line(line)


def _lines(listed: Listed, most: int) -> Iterator[Line]:
    brief = listed.brief
    head = (brief.when or "(no time)").ljust(16) + f"{counted(brief.calls, 'call'):>12}  "
    if brief.agent_calls:
        head += f"({brief.agent_calls:,} of subagents) "
    asked = " ".join(visible(brief.asked or "(no prompt)").split())
    yield [Span(visible(head), "quiet"), Span(cut(asked, max(most - width(visible(head)), 12)), "strong")]
    # What is to be named is never cut.
    option = f" --stream {visible(listed.stream)}" if listed.stream is not None else ""
    yield [Span(f"  {visible(listed.path)}{option}")]


def _of_bundles(bundles: list[Path]) -> Generator[Listed]:
    for path in bundles:
        try:
            brief = brief_of_bundle(Bundle(path), count=True)
            for name in brief.unread:
                complain(f"{path}: stream {name}: cannot be read")
            yield Listed(str(path), brief)
        except SourceError as error:
            complain(str(error))
        except UNREADABLE as error:
            complain(f"{path}: {reason_of(error)}")


def _of_native(folder: Path, files: Counter[str], bar: Bar) -> Generator[Listed]:
    from callsheet.library.folders import absolute
    from callsheet.library.importing import Failure, import_sources

    # The manifest names files from the root; the person is told the names they used.
    named = {absolute(file): file for file in files}

    with tempfile.TemporaryDirectory(prefix="callsheet-") as place:
        for one in import_sources([folder], Path(place), native=False, progress=bar.advance):
            if isinstance(one, Failure):
                bar.clear()
                complain(str(SourceError(one.message, path=one.path, line=one.line)))
                continue
            bundle = Bundle(one.bundle)
            brief = brief_of_bundle(bundle, count=True)
            paths = [source.path for source in bundle.manifest.sources]
            path = next((named[path] for path in paths if path in named), paths[0] if paths else str(folder))
            yield Listed(path, brief, one.stream if files[path] != 1 else None)
            shutil.rmtree(one.bundle, ignore_errors=True)
