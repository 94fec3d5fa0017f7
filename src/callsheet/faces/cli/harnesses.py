"""``callsheet harnesses``: what is supported, which versions were seen, what was found on this machine.

Must never know: native shapes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="A line per harness, as JSON.")
def harnesses(as_json: bool) -> int:
    """Say which agents are supported, and what of them is here.

    \b
    Example:
      callsheet harnesses --json | jq -r .storedAt
    """  # noqa: D301
    import msgspec

    from callsheet.faces.cli.terminal import Printer, sheet_width, write_json
    from callsheet.harness import LIVE
    from callsheet.library.importing import discover
    from callsheet.live.qualify import found_command
    from callsheet.paint import Span
    from callsheet.paint.cells import wrap
    from callsheet.registry import HARNESSES, load
    from callsheet.rows.text import counted

    found = discover(os.environ, Path.home())
    printer = Printer(sys.stdout)
    for name in HARNESSES:
        head = load(name).harness
        places = [place for place in found if place.kind in head.kinds]
        commands = {
            agent.name: found_command(agent, None) if agent.programs else None
            for agent in LIVE
            if agent.kind in head.kinds
        }
        if as_json:
            told = {
                "name": head.name,
                "title": head.title,
                "kinds": head.kinds,
                "versionsSeen": head.versions_seen,
                "storedAt": head.stored_at,
                "found": [
                    {"kind": place.kind, "path": str(place.path), "sessions": place.sessions}
                    for place in places
                ],
                "run": [
                    {"name": agent, "command": command if isinstance(command, tuple) else None}
                    for agent, command in commands.items()
                ],
            }
            write_json(msgspec.json.encode(told))
            continue
        printer.line([Span(head.title or head.name, "strong"), Span(f"  {', '.join(head.kinds)}", "quiet")])
        printer.words(f"  stored at: {', '.join(head.stored_at)}")
        for place in places:
            sessions = counted(place.sessions, "session")
            printer.words(f"  found here: {place.path}, {sessions}")
        if not places:
            printer.words("  found here: nothing")
        for agent, command in commands.items():
            here = command[0] if isinstance(command, tuple) else "not found" if command else "with --agent"
            printer.words(f"  callsheet run {agent}: {here}")
        for number, line in enumerate(wrap(", ".join(head.versions_seen), sheet_width(None) - 17)):
            printer.words(("  versions seen: " if number == 0 else " " * 17) + line)
    return 0
