"""``callsheet validate PATH…``: what a stream or bundle does that a rule forbids.

Owns how findings are printed and the exit code: 0 clean, 1 findings, 2 nothing could be read. A PATH is a
stream, a bundle (folder or zip), a folder of bundles, or ``-`` for a stream on standard input.

Must never know: the rules; it only prints what ``callsheet.rules`` yields.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from callsheet.faces.cli.named import Named

if TYPE_CHECKING:
    from callsheet.faces.cli.terminal import Bar
    from callsheet.rules import Checked, Finding


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=Named())
@click.option("--json", "as_json", is_flag=True, help="A finding a line, as JSON.")
def validate(paths: tuple[str, ...], as_json: bool) -> int:
    """Check streams and bundles against the rules.

    PATH is a stream, a bundle (a folder or a .zip), a folder of bundles, or - for a stream on standard
    input. Every finding is named, with the rule's number and what the rule asks.

    \b
    Examples:
      callsheet validate out/5dd2e94d-807f-4903-b8e4-2497aa981da8
      callsheet validate stream.jsonl --json | jq -r .rule | sort | uniq -c

    Exit code 0: clean; 1: findings, or something could not be read; 2: nothing could be read.
    """  # noqa: D301
    from callsheet.errors import SourceError, reason_of
    from callsheet.faces.cli.terminal import Bar, Printer, complain
    from callsheet.rules import Checked

    printer, bar = Printer(sys.stdout), Bar()
    checked = Checked()
    seen: dict[str, int] = {}
    read = unreadable = 0

    def cannot_read(message: str) -> None:
        nonlocal unreadable
        unreadable += 1
        complain(message)

    for path in paths:
        try:
            for target in [Path(path)] if path == "-" else _targets(Path(path), cannot_read):
                for finding in _findings(target, checked, bar):
                    bar.clear()
                    seen[finding.rule] = seen.get(finding.rule, 0) + 1
                    printer.words(_as_json(target, finding) if as_json else _as_text(target, finding))
                read += 1
        except SourceError as error:
            cannot_read(str(error))
        except BrokenPipeError:
            raise  # nobody reads our output any more
        except (OSError, zipfile.BadZipFile) as error:
            cannot_read(f"{path}: {reason_of(error)}")
        bar.clear()
    if not read:
        return 2
    if not as_json:
        for line in _summary(seen, checked):
            printer.words(line)
    return 1 if seen or unreadable else 0


def _targets(path: Path, on_failure: Callable[[str], None]) -> list[Path]:
    """The streams and bundles that a PATH means."""
    from callsheet.errors import SourceError
    from callsheet.library.opening import bundles_in
    from callsheet.records.bundle import is_bundle

    if not path.exists():
        raise SourceError("no such file or folder", path=str(path))
    if not path.is_dir():
        if not path.is_file():
            raise SourceError("is no regular file (- is standard input)", path=str(path))
        return [path]
    if is_bundle(path):
        return [path]
    found = bundles_in(path, on_failure)
    if not found:
        raise SourceError("no bundle in this folder", path=str(path))
    return found


def _findings(target: Path, checked: Checked, bar: Bar) -> Iterator[Finding]:
    from callsheet.errors import SourceError
    from callsheet.faces.cli.agents import finish_recording
    from callsheet.records.bundle import Bundle, is_bundle
    from callsheet.rules import check_bundle

    if str(target) == "-":
        # A pipe cannot be read twice, and its beginning is looked at first.
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
            yield from _of_stream(spool, "-", checked, bar)
    elif is_bundle(target):
        finish_recording(target)
        yield from check_bundle(Bundle(target), checked, bar.advance)
    elif zipfile.is_zipfile(target):
        raise SourceError("a zip without manifest.json is no bundle", path=str(target))
    else:
        with target.open("rb") as file:
            yield from _of_stream(file, str(target), checked, bar)


def _of_stream(file: BinaryIO, name: str, checked: Checked, bar: Bar) -> Iterator[Finding]:
    from callsheet.errors import SourceError
    from callsheet.faces.cli.nature import HEAD, not_a_stream
    from callsheet.records.stream import stream_lines
    from callsheet.rules import check_stream, told

    size = file.seek(0, 2)
    if not size:
        raise SourceError("the file is empty", path=name)
    file.seek(0)
    why = not_a_stream(name, file.read(HEAD))
    if why is not None:
        raise SourceError(why, path=name)
    file.seek(0)
    yield from check_stream(told(stream_lines(file), name, size, bar.advance), checked)


def _as_text(target: Path, finding: Finding) -> str:
    stream = "" if finding.stream is None else f"/{finding.stream}"
    line = "manifest.json" if finding.line is None else finding.line
    record = "" if finding.record is None else f" (record {finding.record})"
    path = f" {finding.path}" if finding.path else ""
    return f"{target}{stream}:{line}: {finding.rule}{path}{record}: {finding.message}"


def _as_json(target: Path, finding: Finding) -> str:
    import msgspec

    return json.dumps({**msgspec.to_builtins(finding), "file": str(target)})


def _summary(seen: dict[str, int], checked: Checked) -> Iterator[str]:
    from callsheet.rows.text import counted
    from callsheet.rules import ALL

    extent = f"{counted(checked.streams, 'stream')}, {counted(checked.records, 'record')}"
    if not seen:
        yield f"No findings: {extent}."
        return
    yield ""
    yield f"{counted(sum(seen.values()), 'finding')} in {extent}. What the rules ask:"
    for code in sorted(seen):
        yield f"  {code:9} {seen[code]:>6,} times  {ALL[code].asks}"
