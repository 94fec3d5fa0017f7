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
from callsheet.library.importing import (
    UNFIT,
    Failure,
    Imported,
    Providers,
    adapter_for,
    discover,
    import_sources,
)
from callsheet.library.places import bundles_folder
from callsheet.library.workbench import printable
from callsheet.paint.doubts import SENTENCES, doubt_words
from callsheet.records.bundle import Bundle, Diagnostic
from callsheet.rows.text import counted, counted_calls

NAMED = 5
"""Files of no known kind that are named in the one line about all of them."""


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
    remarks = _Remarks()
    unfit: list[str] = []
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
                if one.message == UNFIT and not as_json:
                    unfit.append(one.path)
                    continue
                complain(str(SourceError(one.message, path=one.path, line=one.line)))
                continue
            written += 1
            if as_json:
                write_json(msgspec.json.encode(one, enc_hook=lambda path: printable(str(path))))
            else:
                printer.words(_told(one))
                remarks.add(one)
    if unfit:
        complain(_unfit(unfit))
    if not as_json and written + failed > 1:
        words = f"{counted(written, 'session')} written to {folder}"
        printer.words(words + (f", {failed:,} not read" if failed else ""))
    for line in remarks.lines():
        printer.words(line)
    return 0 if written else 2


def _unfit(paths: list[str]) -> str:
    """One line about the files of no known kind, however many they are."""
    if len(paths) == 1:
        return str(SourceError(UNFIT, path=paths[0]))
    named = ", ".join(paths[:NAMED] + ["…"] * (len(paths) > NAMED))
    return f"{counted(len(paths), 'file')} of no known kind (see: callsheet harnesses): {named}"


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
    words = [counted_calls(one.calls, one.agent_calls), *([counted(one.gaps, "gap")] if one.gaps else [])]
    remarks = sum(diagnostic.count or 1 for diagnostic in one.diagnostics)
    words += [counted(remarks, "remark")] if remarks else []
    try:
        brief = brief_of_bundle(Bundle(one.bundle))
    except (OSError, SourceError):
        brief = Brief()  # the bundle is written: that its head cannot be read again is no reason to say less
    return " · ".join([f"{one.bundle}: {words[0]}", *words[1:], *brief.words()])


class _Remarks:
    """What was worth saying about the sources of all sessions: what is the same of many is said once, and counted."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._sessions: Counter[str] = Counter()
        self._first: dict[str, tuple[Diagnostic, Path]] = {}

    def add(self, one: Imported) -> None:
        """Takes those of a session."""
        for diagnostic in one.diagnostics:
            self._times[diagnostic.code] += diagnostic.count or 1
            self._first.setdefault(diagnostic.code, (diagnostic, one.bundle))
        self._sessions.update({diagnostic.code for diagnostic in one.diagnostics})

    def lines(self) -> Iterator[str]:
        """One line for each kind of remark."""
        if not self._times:
            return
        yield "remarks on the sources (callsheet show BUNDLE --audit-view tells each):"
        for code, times in sorted(self._times.items()):
            sessions = self._sessions[code]
            if times == 1:
                yield f"  {_with_place(*self._first[code])}"
            else:
                where = f" in {counted(sessions, 'session')}" if sessions > 1 else ""
                yield f"  {SENTENCES.get(code, code)}: {times:,} times{where}"


def _with_place(diagnostic: Diagnostic, bundle: Path) -> str:
    try:
        paths = {source.id: source.path for source in Bundle(bundle).manifest.sources}
    except (OSError, SourceError):
        paths = {}
    return doubt_words(diagnostic, paths)
