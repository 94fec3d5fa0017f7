"""``callsheet conformance run -- COMMAND`` and ``serve``: the kit against any implementation.

Owns how outcomes are printed and the exit code: 0 some cases passed and none failed, 1 otherwise, 2 no kit or no
implementation.
What was skipped is counted by its reason, as the implementation gives it.

Must never know: the cases, the protocol (``callsheet.testing.conformance`` does).
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path

import click

_REASONS = 20
"""Reasons for skipping that are told one by one."""


@click.group()
def conformance() -> None:
    """Hold any implementation against the conformance cases.

    \b
    Examples:
      callsheet conformance run -- callsheet conformance serve
      callsheet conformance run --only ASR-263 -- node my-reader.js

    Exit code 0: some cases passed and none failed; 1: some failed, or none passed; 2: no kit, or the
    implementation cannot be started.
    """  # noqa: D301


@conformance.command()
@click.option(
    "--kit", type=click.Path(path_type=Path), help="Folder of the kit, if not the one that came along."
)
@click.option("--only", metavar="RULE", multiple=True, help="Only the cases of this rule (ASR-263, P-SEQ).")
@click.option(
    "--timeout", default=30.0, metavar="SECONDS", show_default=True, help="Seconds to wait for each answer."
)
@click.option("--json", "as_json", is_flag=True, help="An outcome a line, as JSON.")
@click.argument("command", nargs=-1, required=True)
def run(
    kit: Path | None, only: tuple[str, ...], timeout: float, as_json: bool, command: tuple[str, ...]
) -> int:
    """Start COMMAND and put every case to it.

    Requests go to its standard input, answers are read from its standard output.

    The protocol is described in the kit's README.

    \b
    Examples:
      callsheet conformance run -- callsheet conformance serve
      callsheet conformance run --only ASR-263 -- node my-reader.js

    Exit code 0: some cases passed and none failed; 1: some failed, or none passed; 2: no kit, or COMMAND
    cannot be started.
    """  # noqa: D301
    from callsheet.errors import UsageError
    from callsheet.faces.cli.terminal import Printer, complain
    from callsheet.testing.conformance import find_kit, load_kit, run_kit

    if not (math.isfinite(timeout) and timeout > 0):
        raise UsageError(f"--timeout {timeout:g}: a number of seconds above 0 is needed")
    printer = Printer(sys.stdout)
    states: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    files = [file for file in load_kit(find_kit(kit)) if not only or file.rule in only]
    if not files:
        raise UsageError(f"the kit has no rule {', '.join(only)}")
    for outcome in run_kit(command, files, timeout):
        states[outcome.state] += 1
        if outcome.state == "skipped":
            skipped[outcome.why] += 1
        if as_json:
            printer.words(json.dumps(outcome._asdict()))
        elif outcome.state == "failed":
            printer.words(f"{outcome.name}: {outcome.task}: {outcome.why} ({outcome.about})")
    if not as_json:
        for why, count in skipped.most_common(_REASONS):
            printer.words(f"{count} skipped: {why}")
        if len(skipped) > _REASONS:
            printer.words(f"and for {len(skipped) - _REASONS} other reasons")
        printer.words(f"{states['passed']} passed, {states['failed']} failed, {states['skipped']} skipped")
    if not states["passed"]:
        complain(f"{' '.join(command)}: nothing passed; does it speak the protocol of the kit's README?")
    return 1 if states["failed"] or not states["passed"] else 0


@conformance.command()
def serve() -> int:
    """Be callsheet's own side of the protocol.

    Requests on standard input, answers on standard output, a line each.

    \b
    Example:
      callsheet conformance run -- callsheet conformance serve

    Exit code 0: standard input ended.
    """  # noqa: D301
    from callsheet.testing.conformance_server import serve as answer

    answer(sys.stdin.buffer, sys.stdout.buffer)
    return 0
