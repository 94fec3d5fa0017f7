"""``callsheet validate PATH…``: what a stream or bundle does that a rule forbids.

Owns how findings are printed and the exit code: 0 clean, 1 findings, 2 nothing could be read. A PATH is a
stream, a bundle (folder or zip), a folder of bundles, or ``-`` for a stream on standard input.

Must never know: the rules; it only prints what ``callsheet.rules`` yields.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from callsheet.errors import SourceError
from callsheet.records.bundle import Bundle, is_bundle
from callsheet.records.stream import stream_lines
from callsheet.rules import ALL, Checked, Finding, check_bundle, check_stream

_DEPTH = 3
"""Folders below a PATH in which bundles are looked for."""


def _targets(path: Path) -> list[Path]:
    """The streams and bundles that a PATH means."""
    if not path.is_dir() or is_bundle(path):
        return [path]
    found: list[Path] = []
    folders = [path]
    for _ in range(_DEPTH):
        inner = [
            one for folder in folders for one in sorted(folder.iterdir()) if not one.name.startswith(".")
        ]
        bundles = [one for one in inner if is_bundle(one)]
        found += bundles
        folders = [one for one in inner if one.is_dir() and not one.is_symlink() and one not in bundles]
    if not found:
        raise SourceError("no stream and no bundle in this folder", path=str(path))
    return found


def _findings(target: Path, checked: Checked) -> Iterator[Finding]:
    if is_bundle(target):
        yield from check_bundle(Bundle(target), checked)
        return
    if zipfile.is_zipfile(target):
        raise SourceError("a zip without manifest.json is no bundle", path=str(target))
    with target.open("rb") as file:
        yield from check_stream(stream_lines(file), checked)


def _place(target: str, finding: Finding) -> str:
    stream = "" if finding.stream is None else f"/{finding.stream}"
    line = "manifest.json" if finding.line is None else str(finding.line)
    return f"{target}{stream}:{line}"


def printable(text: str) -> str:
    """The text with everything a terminal could obey written as an escape."""
    return (
        text
        if text.isprintable()
        else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    )


def _as_text(target: str, finding: Finding) -> str:
    record = "" if finding.record is None else f" (record {finding.record})"
    path = f" {finding.path}" if finding.path else ""
    return printable(f"{_place(target, finding)}: {finding.rule}{path}{record}: {finding.message}")


def _as_json(target: str, finding: Finding) -> str:
    return json.dumps({**msgspec.to_builtins(finding), "file": target})


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One finding a line, as JSON.")
def validate(paths: tuple[str, ...], as_json: bool) -> None:
    """Check streams and bundles against the rules.

    PATH is a stream, a bundle (a folder or a .zip), a folder of bundles, or - for a stream on standard input.
    Exit code 0: clean; 1: findings; 2: nothing could be read.
    """
    shape = _as_json if as_json else _as_text
    checked = Checked()
    seen: dict[str, int] = {}
    read = unreadable = 0
    for path in paths:
        try:
            for target in [Path(path)] if path == "-" else _targets(Path(path)):
                found = (
                    check_stream(stream_lines(sys.stdin.buffer), checked)
                    if path == "-"
                    else _findings(target, checked)
                )
                for finding in found:
                    seen[finding.rule] = seen.get(finding.rule, 0) + 1
                    click.echo(shape(str(target), finding))
                read += 1
        except (SourceError, OSError, zipfile.BadZipFile) as error:
            unreadable += 1
            what = (
                error.message
                if isinstance(error, SourceError)
                else (getattr(error, "strerror", None) or str(error))
            )
            click.echo(printable(f"callsheet: {path}: {what}"), err=True)
    if not as_json and read:
        _sum_up(seen, checked)
    if not read:
        sys.exit(2)
    sys.exit(1 if seen or unreadable else 0)


def _sum_up(seen: dict[str, int], checked: Checked) -> None:
    extent = f"{_counted(checked.streams, 'stream')}, {_counted(checked.records, 'record')}"
    if not seen:
        click.echo(f"No findings: {extent}.")
        return
    click.echo(f"\n{_counted(sum(seen.values()), 'finding')} in {extent}. What the rules ask:")
    for code in sorted(seen):
        click.echo(f"  {code:9} {seen[code]:>6,}  times  {ALL[code].asks}")
