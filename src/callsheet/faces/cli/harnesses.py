"""``callsheet harnesses``: what is supported, which versions were seen, what was found on this machine.

Owns how it is laid out: what can be done here comes first, and a path or a command has a line of its own.

Must never know: native shapes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from callsheet.library.importing import Found
    from callsheet.registry import Harness
    from callsheet.seam import Missing

    Commands = Mapping[str, tuple[str, ...] | Missing | None]
    """What starts each agent that can be run, if it is here; None where a person names it."""

_LABEL = 15


@click.command()
@click.option("--versions", is_flag=True, help="List every version that was seen.")
@click.option("--json", "as_json", is_flag=True, help="A line per harness, as JSON.")
def harnesses(versions: bool, as_json: bool) -> int:
    """Say which agents are supported, and what of them is here.

    Of each: sessions found on this machine, how to run it, the words for --from, where it stores sessions, and the
    versions whose files were seen. Other versions are read too, with the tables of those.

    \b
    Examples:
      callsheet harnesses
      callsheet harnesses --json | jq -r '.found[].path'

    Exit code 0: done.
    """  # noqa: D301
    import msgspec

    from callsheet.faces.cli.terminal import Printer, sheet_width, write_json
    from callsheet.harness import LIVE
    from callsheet.library.importing import discover
    from callsheet.live.qualify import found_command
    from callsheet.paint import Span
    from callsheet.registry import HARNESSES, load

    found = discover(os.environ, Path.home())
    printer = Printer(sys.stdout)
    for name in HARNESSES:
        head = load(name).harness
        places = [place for place in found if place.kind in head.kinds]
        commands: Commands = {
            agent.name: found_command(agent, None) if agent.programs else None
            for agent in LIVE
            if agent.kind in head.kinds
        }
        if as_json:
            write_json(msgspec.json.encode(_members(head, places, commands)))
            continue
        if printer.lines:
            printer.line([])
        printer.line([Span(head.title or head.name, "strong")])
        for label, values in _told(head, places, commands, sheet_width(None) - _LABEL - 2, versions=versions):
            for number, value in enumerate(values):
                printer.words(f"  {(label if number == 0 else '').ljust(_LABEL)}{value}")
    return 0


def _members(head: Harness, places: Sequence[Found], commands: Commands) -> dict[str, object]:
    return {
        "name": head.name,
        "title": head.title,
        "kinds": head.kinds,
        "versionsSeen": head.versions_seen,
        "storedAt": head.stored_at,
        "found": [
            {"kind": place.kind, "path": str(place.path), "sessions": place.sessions} for place in places
        ],
        "run": [
            {"name": agent, "command": command if isinstance(command, tuple) else None}
            for agent, command in commands.items()
        ],
    }


def _told(
    head: Harness, places: Sequence[Found], commands: Commands, room: int, *, versions: bool
) -> Iterator[tuple[str, list[str]]]:
    from callsheet.paint.cells import wrap
    from callsheet.rows.text import counted

    stored = [f"{place.path}  ({counted(place.sessions, 'session')})" for place in places]
    yield "found here", stored or ["nothing"]
    if commands:
        yield "to run", [_run_words(agent, command) for agent, command in commands.items()]
    yield "--from", [", ".join(head.kinds)]
    if head.stored_at:
        yield "stored at", head.stored_at
    seen = head.versions_seen
    if len(seen) <= 3 or versions:
        yield "versions seen", wrap(", ".join(seen) or "none is stated", room)
    else:
        yield "versions seen", [f"{len(seen)}, from {seen[0]} to {seen[-1]} (--versions lists them)"]


def _run_words(agent: str, command: tuple[str, ...] | Missing | None) -> str:
    match command:
        case tuple():
            return f"callsheet run {agent}  (here: {command[0]})"
        case None:
            return f"callsheet run {agent} --agent COMMAND"
        case _:
            return f"callsheet run {agent}  (not found here)"
