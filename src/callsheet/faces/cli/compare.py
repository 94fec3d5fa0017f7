"""``callsheet compare LEFT RIGHT``: two readings of one run, call by call.

Owns how a comparison is printed and the exit code: 0 nothing contradicts, 1 something does, or the readings are of two
sessions, 2 a reading cannot be read.

Must never know: how calls are matched, what a fact is; it only prints what ``callsheet.compare`` yields.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from callsheet.compare import Compared, Side, Strangers, strangers
from callsheet.compare import compare as compared
from callsheet.errors import UsageError
from callsheet.faces.cli.agents import finish_recording
from callsheet.faces.cli.named import Named
from callsheet.faces.cli.terminal import Bar, Printer, complain, sheet_width, write_json
from callsheet.library.opening import Reading, bundles_in, native_files, open_sessions
from callsheet.paint import Line, Span, Style, visible
from callsheet.paint.cells import cut, wrap
from callsheet.paint.cells import width as cell_width
from callsheet.paint.span import packed
from callsheet.records.bundle import is_bundle

_SIDES = ("left", "right")


@click.command()
@click.argument("left", metavar="LEFT", type=Named())
@click.argument("right", metavar="RIGHT", type=Named())
@click.option("--json", "as_json", is_flag=True, help="A call a line, as JSON.")
def compare(left: str, right: str, as_json: bool) -> int:
    """Hold two readings of one run against each other.

    LEFT and RIGHT are bundles, or whatever else holds one session (a stream, a stored file, a frame log):
    a live run and the file that it left, say. Calls are matched by their ids, else by what was asked for,
    never by position. Said of each call is what only one reading has, and what contradicts; and before all,
    if they are not readings of one session.

    \b
    Examples:
      callsheet compare out/live out/stored
      callsheet compare frames.jsonl ~/.codex/sessions/…/rollout-….jsonl --json

    Exit code 0: nothing contradicts; 1: something does, or they are of two sessions; 2: a reading cannot be read.
    """  # noqa: D301
    if left == right == "-":
        raise UsageError("standard input can be read only once")
    bar = Bar()
    with ExitStack() as stack:
        sides = [_opened(stack, source, bar.advance) for source in (left, right)]
        bar.clear()
        seen: Counter[str] = Counter()
        printer = Printer(sys.stdout)
        width = sheet_width(None)
        apart = strangers(*sides)
        if apart is not None and as_json:
            complain(_apart(apart))
        if not as_json:
            for line in _head((left, right), sides, apart, width):
                printer.line(line)
        for call in compared(*sides):
            seen[_kind(call)] += 1
            seen["contradictions"] += len(call.contradicts)
            if as_json:
                write_json(msgspec.json.encode(call))
            else:
                for line in _call(call, width):
                    printer.line(line)
        if not as_json:
            for line in _foot(seen, sides, width):
                printer.line(line)
    return 1 if seen["contradictions"] or apart is not None else 0


def _opened(stack: ExitStack, source: str, progress: Any) -> Side:
    """The one session of a source, as a side.

    Raises:
        SourceError: Nothing can be read there, or a stream is damaged beyond reading.
        UsageError: It holds several sessions.
    """
    folder = Path(source)
    if source != "-" and folder.is_dir() and not is_bundle(folder):
        bundles = bundles_in(folder, complain)
        count = len(bundles) or native_files(folder).total()
        if count > 1:
            raise UsageError(
                f"{source}: holds {count:,} sessions; name one of them (callsheet show {source})"
            )
        source = str(bundles[0]) if bundles else source
    finish_recording(Path(source))
    sessions = stack.enter_context(open_sessions(source, Reading(progress=progress), on_failure=complain))
    session = next(sessions)
    return stack.enter_context(Side(session.files, session.open_file, session.blob))


# -- text -----------------------------------------------------------------------------------------------------------


def _head(names: tuple[str, str], sides: list[Side], apart: Strangers | None, width: int) -> Iterator[Line]:
    for which, name, side in zip(_SIDES, names, sides, strict=True):
        kinds = f" ({', '.join(side.head.kinds)})" if side.head.kinds else ""
        told = cut(visible(f"{side.head.agent}{kinds}"), width - 8)
        room = max(width - 8 - cell_width(told), 0)
        path = visible(name)
        path = path if cell_width(path) <= room else cut("…" + path[1 - room :], room) if room > 8 else ""
        yield [Span(f"{which:6}", "label"), Span(told, "strong"), Span("  "), Span(path, "place")]
    if apart is not None:
        for piece in wrap(visible(_apart(apart)), width):
            yield [Span(piece, "bad")]
    yield [Span("─" * width, "quiet")]


def _apart(apart: Strangers) -> str:
    """That two readings are of two sessions, and what shows it."""
    ids = [_named(ids) for ids in (apart.left, apart.right)]
    which = f" ({ids[0]} left, {ids[1]} right)" if all(ids) else ""
    return f"not two readings of one session{which}: {', '.join(apart.signs)}"


def _named(ids: tuple[str, ...]) -> str:
    return ids[0] + (f" and {len(ids) - 1:,} more" if len(ids) > 1 else "") if ids else ""


def _kind(call: Compared) -> str:
    if call.left is None or call.right is None:
        return "right" if call.left is None else "left"
    return "both"


_SIGNS: dict[str, tuple[str, Style]] = {"both": ("=", "good"), "left": ("<", "open"), "right": (">", "open")}


def _call(call: Compared, width: int) -> Iterator[Line]:
    """One call: a line of its own, then what differs."""
    kind = _kind(call)
    sign, style = _SIGNS[kind]
    if call.contradicts:
        sign, style = "!", "bad"
    elif call.lacks:
        sign, style = "+", "quiet"
    place = call.left or call.right or {}
    name = visible(call.name or "(no name)")
    told = " · ".join(_told(call, kind))
    room = max(width - 2 - len(told) - 2, 20)
    title = cut(f"{name}  {visible(place.get('nativeCallId', place['callId']))}", room)
    yield [Span(f"{sign} ", style), Span(title, "strong"), Span("  "), Span(told, "quiet")]
    for found in call.contradicts:
        yield from _pair(f"{found.path}:", [("left", found.left), ("right", found.right)], width)
    for which in _SIDES:
        other = "right" if which == "left" else "left"
        paths = [one.path + (" (whole)" if one.part else "") for one in call.lacks if one.by == other]
        if paths:
            yield from _listed(f"only {which}", paths, width)
    if call.forms:
        yield from _listed("other form", call.forms, width)


def _told(call: Compared, kind: str) -> Iterator[str]:
    if kind != "both":
        other = "right" if kind == "left" else "left"
        yield (
            f"only {kind}"
            if call.why == "not_there"
            else f"only {kind}: {other} has its id on other calls too"
        )
        return
    yield f"{call.agree:,} alike"
    if call.contradicts:
        number = len(call.contradicts)
        yield f"{number} contradict{'s' if number == 1 else ''}"
    if call.matched_by not in ("callId", "nativeCallId"):
        yield f"matched by {call.matched_by}"


def _pair(path: str, values: list[tuple[str, Any]], width: int) -> Iterator[Line]:

    yield [Span(cut(f"    {visible(path)}", width), "bad")]
    for which, value in values:
        text = value if isinstance(value, str) else "null" if value is None else str(value)
        yield [Span(f"      {which:6}", "label"), Span(cut(visible(text), width - 12))]


def _listed(title: str, paths: list[str], width: int) -> Iterator[Line]:

    for number, line in enumerate(packed([Span(visible(path)) for path in paths], width - 15)):
        yield [Span(f"    {title if not number else '':11}", "label"), *line]


def _foot(seen: Counter[str], sides: list[Side], width: int) -> Iterator[Line]:

    yield [Span("─" * width, "quiet")]
    number = seen["contradictions"]
    words = [
        f"{seen['both']:,} {'call' if seen['both'] == 1 else 'calls'} in both",
        f"{seen['left']:,} only left",
        f"{seen['right']:,} only right",
        f"{number:,} {'contradiction' if number == 1 else 'contradictions'}"
        if number
        else "nothing contradicts",
    ]
    yield from packed([Span(word, "bad" if number else "") for word in words], width)
    for which, side in zip(_SIDES, sides, strict=True):
        if side.bad:
            yield [Span(f"{which}: {side.bad:,} lines are no legal records", "bad")]
