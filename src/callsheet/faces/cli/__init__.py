"""The command line: commands, exit codes, and the promise that an error is one line.

Owns the group and what happens to exceptions: a problem is ``callsheet: FILE:LINE: what is wrong`` on
stderr, never a traceback. Exit codes: 0 done; 1 done, and something is wrong with the input where saying so
is the command's job; 2 wrong usage, or nothing could be read; 130 interrupted, 129 or 143 told to stop.
Commands import what they need when they run, so that help is quick.

Must never know: how records become rows or lines.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click

from callsheet import __version__
from callsheet.errors import DEBUG, CallsheetError, SourceError
from callsheet.faces.cli.signals import stopping_tidily


class Command(NamedTuple):
    """Where a command lives, and its line in the help: the first of its own help text."""

    place: str
    summary: str


COMMANDS: dict[str, Command] = {
    "show": Command("callsheet.faces.cli.show:show", "Print the sheet of a session."),
    "open": Command(
        "callsheet.faces.cli.opening:open_command",
        "Open the workbench on a session.",
    ),
    "run": Command("callsheet.faces.cli.run:run", "Run an agent's turn and record it."),
    "watch": Command(
        "callsheet.faces.cli.watch:watch", "Follow sessions that agents started elsewhere are writing."
    ),
    "tap": Command(
        "callsheet.faces.cli.tap:tap", "Record an agent of the Agent Client Protocol that an editor drives."
    ),
    "import": Command(
        "callsheet.faces.cli.importing:import_command", "Read stored sessions and write a bundle per session."
    ),
    "validate": Command(
        "callsheet.faces.cli.validate:validate", "Check streams and bundles against the rules."
    ),
    "audit": Command("callsheet.faces.cli.audit:audit", "Hold a bundle against its native sources."),
    "compare": Command(
        "callsheet.faces.cli.compare:compare", "Hold two readings of one run against each other."
    ),
    "conformance": Command(
        "callsheet.faces.cli.conformance:conformance",
        "Hold any implementation against the conformance cases.",
    ),
    "schema": Command(
        "callsheet.faces.cli.schema:schema",
        "Print the JSON Schema of a record type, or of any line of a stream.",
    ),
    "harnesses": Command(
        "callsheet.faces.cli.harnesses:harnesses",
        "Say which agents are supported, and what of them is here.",
    ),
}
"""Every command, in the order of the help. A command is imported when it is called."""


class _Gone(Exception):
    """Nobody reads our output any more. Not an OSError, which click would turn into exit code 1."""


class _Group(click.Group):
    """A group that loads a command when it is called, not when it is listed."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _Gone from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="callsheet", message="%(prog)s %(version)s")
def cli() -> None:
    """An honest sheet of every tool call a coding agent made.

    Who asked, what ran, who allowed it, what came back, and what reached the model: as the agent recorded
    it, and no more.

    \b
    Examples:
      callsheet show ~/.claude/projects/-home-you-app/5dd2e94d.jsonl
      callsheet show session.jsonl --json | jq 'select(.state == "declined")'
      callsheet import
      callsheet harnesses

    Exit code 0: done; 1: done, and something is wrong with the input, where saying so is the command's job;
    2: wrong usage, or nothing could be read; 130: Ctrl-C. Each command's help says more.
    """  # noqa: D301


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits."""
    _open_closed()
    try:
        code = _run(argv)
        sys.stdout.flush()
    except (BrokenPipeError, _Gone):
        # The reader has what it wanted. What is still buffered must not fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _open_closed() -> None:
    """Gives a program that was started without standard streams (``>&-``) such that lead nowhere."""
    if sys.stdin is None:
        sys.stdin = _ClosedInput()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (open until the end)


class _ClosedInput(io.TextIOWrapper):
    """Standard input that was closed: not the same as an empty one."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())

    @property
    def buffer(self) -> BinaryIO:
        raise SourceError("is closed", path="-")


def _run(argv: Sequence[str] | None) -> int:
    try:
        with stopping_tidily():
            code = cli.main(args=argv, prog_name="callsheet", standalone_mode=False)
    except _Gone:
        raise
    except click.exceptions.NoArgsIsHelpError as error:
        # The message is the help, of many lines.
        click.echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "callsheet"
        return _complain(f"{error.format_message()} (see: {path} --help)")
    except click.ClickException as error:
        return _complain(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return 130
    except CallsheetError as error:
        return _complain(str(error))
    except OSError as error:
        from callsheet.errors import reason_of

        name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else None
        return _complain(": ".join(word for word in (name, reason_of(error)) if word))
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _complain(f"{type(error).__name__}: {error} (a bug in callsheet; {DEBUG}=1 shows where)")
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    from callsheet.faces.cli.terminal import complain

    complain(message)
    return 2
