"""``callsheet conformance run -- COMMAND`` and ``serve``: the kit against any implementation.

Owns how outcomes are printed and the exit code: 0 nothing failed, 1 something did, 2 no kit or no
implementation.

Must never know: the cases, the protocol (``callsheet.testing.conformance`` does).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import click

from callsheet.errors import UsageError
from callsheet.faces.cli.validate import printable


@click.group()
def conformance() -> None:
    """Hold an implementation against the conformance cases."""


@conformance.command()
@click.option(
    "--kit", type=click.Path(path_type=Path), help="Folder of the kit, if not the one that came along."
)
@click.option("--only", metavar="RULE", multiple=True, help="Only the cases of this rule (ASR-263, P-SEQ).")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for each answer.")
@click.option("--json", "as_json", is_flag=True, help="One outcome a line, as JSON.")
@click.argument("command", nargs=-1, required=True)
def run(
    kit: Path | None, only: tuple[str, ...], timeout: float, as_json: bool, command: tuple[str, ...]
) -> None:
    """Start COMMAND and put every case to it, over its standard input and output.

    Exit code 0: nothing failed; 1: something did; 2: no kit, or COMMAND cannot be started.
    """
    from callsheet.testing.conformance import find_kit, load_kit, run_kit

    states: Counter[str] = Counter()
    try:
        files = [file for file in load_kit(find_kit(kit)) if not only or file.rule in only]
        if not files:
            raise UsageError(f"the kit has no rule {', '.join(only)}")
        for outcome in run_kit(command, files, timeout):
            states[outcome.state] += 1
            if as_json:
                click.echo(json.dumps(outcome._asdict()))
            elif outcome.state == "failed":
                click.echo(printable(f"{outcome.name}: {outcome.task}: {outcome.why}"))
    except UsageError as error:
        click.echo(printable(f"callsheet: {error}"), err=True)
        sys.exit(2)
    if not as_json:
        click.echo(f"{states['passed']} passed, {states['failed']} failed, {states['skipped']} skipped")
    sys.exit(1 if states["failed"] else 0)


@conformance.command()
def serve() -> None:
    """Be callsheet's own side of the protocol: requests on standard input, answers on standard output."""
    from callsheet.testing.conformance_server import serve as answer

    answer(sys.stdin.buffer, sys.stdout.buffer)
