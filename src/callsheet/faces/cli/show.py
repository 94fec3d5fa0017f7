"""``callsheet show SOURCE``: the sheet of a session as text, or its rows as JSON.

Owns what goes where: the sheet to stdout, everything else to stderr. On a terminal the first rows of a
large native file are drawn at once, marked provisional, and taken back when the sheet is there. JSON and
redirected output get final rows only.

Must never know: what a row says.
"""

from __future__ import annotations

import click

from callsheet.faces.cli.named import Named


@click.command()
@click.argument("source", type=Named())
@click.option("--json", "as_json", is_flag=True, help="One row a line, as JSON; final rows only.")
@click.option("--width", type=int, metavar="N", help="Cells of a line (default: the terminal, or 80).")
@click.option(
    "--audit-view",
    "audit",
    is_flag=True,
    help="A row for every record, when and where it was recorded, and all that is known to be loose.",
)
@click.option("--thoughts", is_flag=True, help="Also reasoning that is raw, or of a kind that is not stated.")
@click.option("--stream", metavar="ID", help="Only this stream of a bundle, and the agents below it.")
@click.option("--full", is_flag=True, help="Collapse nothing.")
def show(
    source: str,
    as_json: bool,
    width: int | None,
    audit: bool,
    thoughts: bool,
    stream: str | None,
    full: bool,
) -> int:
    """Print the sheet of a session.

    SOURCE is a bundle (a folder or a .zip of one), a stream (.jsonl), or a file or folder as an agent
    stored it; - is standard input. Of a folder with several sessions, a list is printed.

    On a terminal, the first rows of a large stored file are shown at once, marked provisional, and are
    replaced by the sheet when the whole file is read. With --json, and when output goes elsewhere, only
    final rows are written.

    \b
    Examples:
      callsheet show ~/.claude/projects/-home-you-app/5dd2e94d.jsonl
      callsheet show BUNDLE --audit-view --full | less
      callsheet show - --json < session.jsonl

    Exit code 0: shown; 2: nothing could be read.
    """  # noqa: D301
    from callsheet.errors import UsageError
    from callsheet.faces.cli.sheets import Wanted, print_sheets
    from callsheet.paint.row import NARROWEST

    if width is not None and width < NARROWEST:
        raise UsageError(f"--width {width}: a sheet takes {NARROWEST} cells at least")
    return print_sheets(
        source,
        Wanted(as_json=as_json, width=width, audit=audit, thoughts=thoughts, stream=stream, full=full),
    )
