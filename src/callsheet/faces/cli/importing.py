"""``callsheet import [SOURCE…]``: native sessions to bundles.

Owns what is said about each session, and the exit code: 0 if any was written, else 2.

Must never know: native shapes, records.
"""

from __future__ import annotations

from pathlib import Path

import click

from callsheet.faces.cli.named import Named


@click.command("import")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", type=Named())
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where bundles go.")
@click.option("--from", "kind", metavar="KIND", help="What the sources are (default: by their content).")
@click.option("--no-native", is_flag=True, help="Leave the copy of the source out of the bundle.")
@click.option("--with-provider", is_flag=True, help="With a session of T3 Code, that of the agent it drove.")
@click.option("--json", "as_json", is_flag=True, help="A line per session, as JSON.")
def import_command(
    sources: tuple[str, ...],
    out: Path | None,
    kind: str | None,
    no_native: bool,
    with_provider: bool,
    as_json: bool,
) -> int:
    """Read stored sessions and write a bundle per session.

    SOURCE is a session file or a folder of them; - is standard input. Without SOURCE, whatever the agents
    of this user have stored is read. Bundles go to the user's data folder, under callsheet/bundles, unless
    --out says otherwise. A bad file is a message, and the others go on.

    T3 Code drives other agents, and keeps less of a session than they do themselves. --with-provider puts the
    agent's own session, if it is on this machine, into the same bundle as a stream of its own.

    \b
    Examples:
      callsheet import
      callsheet import ~/.claude/projects/-home-you-app --out bundles
      callsheet import session.jsonl --no-native --json

    Exit code 0: a session was written; 2: none.
    """  # noqa: D301
    from callsheet.faces.cli.imports import import_all

    return import_all(
        list(sources),
        out=out,
        kind=kind,
        native=not no_native,
        with_provider=with_provider,
        as_json=as_json,
    )
