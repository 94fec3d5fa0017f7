"""Importing from the command line: which sources, where to, and what to say.

Must never know: native shapes, records.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from itertools import chain
from pathlib import Path

import msgspec

from callsheet.errors import SourceError
from callsheet.faces.cli.terminal import Bar, Printer, complain, write_json
from callsheet.library.briefs import Brief, brief_of_bundle
from callsheet.library.importing import Failure, Imported, Providers, adapter_for, discover, import_sources
from callsheet.library.places import bundles_folder
from callsheet.library.workbench import printable
from callsheet.records.bundle import Bundle
from callsheet.rows.text import counted


def import_all(
    sources: list[str],
    *,
    out: Path | None,
    kind: str | None,
    native: bool,
    with_provider: bool = False,
    as_json: bool,
) -> int:
    """Imports sources and says what became of each session.

    Returns:
        0 if any session was written, else 2.

    Raises:
        UsageError: No such kind.
        SourceError: No sources were named and none were found.
    """
    if kind is not None:
        adapter_for(kind)
    folder = out if out is not None else bundles_folder()
    bar = Bar()
    printer = Printer(sys.stdout)
    written = failed = 0
    named = [Path(source) for source in sources if source != "-"] if sources else _stored(kind)
    providers = Providers(os.environ, Path.home()) if with_provider else None
    found = import_sources(named, folder, kind=kind, native=native, progress=bar.advance, providers=providers)
    with ExitStack() as stack:
        if "-" in sources:
            found = chain(found, _of_stdin(folder, kind, native, bar, stack))
        for one in found:
            bar.clear()
            if isinstance(one, Failure):
                failed += 1
                complain(str(SourceError(one.message, path=one.path, line=one.line)))
                continue
            written += 1
            if as_json:
                write_json(msgspec.json.encode(one, enc_hook=lambda path: printable(str(path))))
            else:
                printer.words(_told(one))
    if not as_json and written + failed > 1:
        words = f"{counted(written, 'session')} written to {folder}"
        printer.words(words + (f", {failed:,} not read" if failed else ""))
    return 0 if written else 2


def _of_stdin(
    folder: Path, kind: str | None, native: bool, bar: Bar, stack: ExitStack
) -> Iterator[Imported | Failure]:
    """Imports standard input as a file that is called ``-``: so it is named in the bundle and in messages."""
    out = folder.absolute()
    stack.enter_context(chdir(stack.enter_context(tempfile.TemporaryDirectory(prefix="callsheet-"))))
    with Path("-").open("xb") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
    yield from import_sources([Path("-")], out, kind=kind, native=native, progress=bar.advance)


def _stored(kind: str | None) -> list[Path]:
    found = [place for place in discover(os.environ, Path.home()) if kind in (None, place.kind)]
    if not any(place.sessions for place in found):
        raise SourceError("no stored sessions of a known agent were found for this user")
    return [place.path for place in found if place.sessions]


def _told(one: Imported) -> str:
    words = [counted(one.calls, "call"), *([counted(one.gaps, "gap")] if one.gaps else [])]
    codes: Counter[str] = Counter()
    for diagnostic in one.diagnostics:
        codes[diagnostic.code] += diagnostic.count or 1
    words += [code if count == 1 else f"{code} ({count:,})" for code, count in sorted(codes.items())]
    try:
        brief = brief_of_bundle(Bundle(one.bundle))
    except (OSError, SourceError):
        brief = Brief()  # the bundle is written: that its head cannot be read again is no reason to say less
    return " · ".join([f"{one.bundle}: {', '.join(words)}", *brief.words()])
