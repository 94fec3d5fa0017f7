"""``callsheet open [SOURCE]``: the workbench.

Owns what is said when there is no terminal, or no Textual.

Must never know: what the workbench shows.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from callsheet.faces.cli.named import Named


@click.command("open")
@click.argument("source", required=False, type=Named())
@click.option("--stream", metavar="ID", help="Only this stream of a bundle, and the agents below it.")
def open_command(source: str | None, stream: str | None) -> int:
    """Open the workbench on a session.

    It shows the rows of the session, and where each fact of them stands.
    SOURCE is a bundle, a stream, or a file or folder as an agent stored it; of a folder with several
    sessions there is a list. Without SOURCE, the list is of the bundles in your data folder. ? shows the
    keys.

    \b
    Examples:
      callsheet open ~/.claude/projects/-home-you-app/5dd2e94d.jsonl
      callsheet open BUNDLE
      callsheet open

    Exit code 0: closed; 2: nothing could be read, no terminal, or no Textual.
    """  # noqa: D301
    from callsheet.errors import SourceError
    from callsheet.library.places import bundles_folder

    check_workbench()
    from callsheet.faces.cli.agents import finish_recording
    from callsheet.faces.tui.app import open_workbench

    if source is None:
        source = str(bundles_folder())
        if not Path(source).is_dir():
            words = "no bundles yet (callsheet import makes them of what your agents stored)"
            raise SourceError(words, path=source)
    else:
        finish_recording(Path(source))
    return open_workbench(source, stream=stream)


def check_workbench(instead: str = "callsheet show prints a sheet") -> None:
    """Makes sure that the workbench can be shown here.

    Args:
        instead: What does without it.

    Raises:
        UsageError: It cannot.
    """
    from callsheet.errors import UsageError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"the workbench needs a terminal ({instead})")
    if find_spec("textual") is None:
        raise UsageError(f"the workbench needs Textual: pip install 'callsheet[tui]' ({instead})")
