"""``callsheet run HARNESS … -- PROMPT``: a live turn, recorded; headless, or in the workbench.

Owns the options, what of them does not fit together, and which face shows the turn. Exit codes: 0 the turn was
completed, 1 it failed or its end was not seen, 2 usage, 3 the agent confirmed an interrupt, 4 nothing ran: no such
agent, it does not start, or it never took the prompt; 130 the agent was stopped by a second Ctrl-C.

Must never know: protocols, processes.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from callsheet.faces.cli.headless import Run
    from callsheet.harness._port.live import LiveAgent
    from callsheet.live import Address

ANSWERS = ("ask", "allow", "reject")


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("harness")
@click.argument("prompt", required=False)
@click.option("--agent", "command", metavar="COMMAND", help="What starts the agent (default: found in PATH).")
@click.option("--at", metavar="ADDRESS", help="Where an agent listens that is running already.")
@click.option("--token-env", metavar="NAME", help="Variable with the token that the agent at ADDRESS wants.")
@click.option("--cwd", type=click.Path(path_type=Path), help="Where it works (default: here).")
@click.option("--model", metavar="M", help="The model to ask for (default: the agent's own setting).")
@click.option("--mode", metavar="M", help="The permission mode, in the agent's own word.")
@click.option("--resume", metavar="ID", help="A session of the agent to go on with.")
@click.option("--json", "as_json", is_flag=True, help="Records as they settle, one a line.")
@click.option("--plain", is_flag=True, help="Lines instead of the workbench.")
@click.option("--previews", is_flag=True, help="With --json: also what has not settled yet, marked as such.")
@click.option(
    "--answer",
    type=click.Choice(ANSWERS),
    help="What answers the agent's requests (default: ask on a terminal, else reject).",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where the bundle goes.")
def run(
    harness: str,
    prompt: str | None,
    command: str | None,
    at: str | None,
    token_env: str | None,
    cwd: Path | None,
    model: str | None,
    mode: str | None,
    resume: str | None,
    as_json: bool,
    plain: bool,
    previews: bool,
    answer: str | None,
    out: Path | None,
) -> int:
    """Run an agent's turn and record it.

    On a terminal this is the workbench, where the agent's requests are answered and further prompts are
    written. With --json or --plain, or where there is no terminal, it is one turn; then Ctrl-C asks the agent
    to break off and waits for its word, and a second one stops it.

    PROMPT is one argument; - reads it from standard input. The turn is recorded in a bundle, below the user's
    data folder unless --out says otherwise.

    \b
    Examples:
      callsheet run claude-code -- 'Why does the build fail?'
      callsheet run codex --json --answer allow -- 'Fix it.' | jq -c .type
      callsheet run acp --agent 'my-agent --acp' --plain -- 'What is here?'
      echo 'What is here?' | callsheet run claude-code --cwd ~/app -- -
      callsheet run codex --at ws://127.0.0.1:4500 -- 'Why does the build fail?'

    Exit code 0: the turn was completed; 1: it failed, or nobody saw its end; 2: wrong usage, and --answer ask
    without a terminal; 3: the agent confirmed an interrupt; 4: nothing ran; 130: a second Ctrl-C stopped the agent.
    """  # noqa: D301
    from callsheet.errors import UsageError
    from callsheet.faces.cli import headless
    from callsheet.faces.cli.agents import agent_named
    from callsheet.faces.cli.opening import check_workbench
    from callsheet.library.places import bundles_folder
    from callsheet.seam import Wish

    agent = agent_named(harness)
    if at is None and token_env is not None:
        raise UsageError("--token-env goes with --at")
    address = _address(agent, at, token_env) if at is not None else None
    words = _words(agent, command, at)
    if previews and not as_json:
        raise UsageError("--previews goes with --json")
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and prompt != "-"
    if answer == "ask" and not terminal:
        raise UsageError("--answer ask needs a terminal")
    shown = terminal and not as_json and not plain and sys.stdout.isatty()
    if shown:
        check_workbench("--plain prints lines instead")
    if prompt is None and not shown:
        raise UsageError("needs a PROMPT (- reads it from standard input)")
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if prompt == "-" else prompt
    if text is not None and not text.strip():
        raise UsageError("the prompt is empty")
    folder = (cwd or Path.cwd()).absolute()
    if at is None and not folder.is_dir():
        raise UsageError(f"--cwd {cwd}: is no folder")
    wanted = headless.Run(
        agent=agent,
        command=words,
        at=address,
        wish=Wish(cwd=str(folder), model=model, mode=mode, resume=resume),
        prompt=text or "",
        out=out or bundles_folder(),
        answer=answer or ("ask" if terminal else "reject"),
        as_json=as_json,
        previews=previews,
    )
    return _in_workbench(wanted) if shown else headless.run_headless(wanted)


def _words(agent: LiveAgent, command: str | None, at: str | None) -> tuple[str, ...] | None:
    """The command that starts the agent; None when it is to be looked for, or is running.

    Raises:
        UsageError: It cannot be read, or there is none.
    """
    from callsheet.errors import UsageError
    from callsheet.live.address import shown_address

    if command and at is not None:
        raise UsageError("--agent and --at: either it is to be started, or it is running")
    try:
        words = tuple(shlex.split(command)) if command else None
    except ValueError as error:
        raise UsageError(f"--agent {command}: {error}") from None
    if words and "://" in words[0]:
        raise UsageError(f"--agent {shown_address(words[0])}: an address is given with --at")
    if words is None and at is None and not agent.programs:
        raise UsageError(f"{agent.name}: needs --agent COMMAND or --at ADDRESS")
    return words


def _address(agent: LiveAgent, at: str, token_env: str | None) -> Address:
    """Where the agent listens.

    Raises:
        UsageError: Such agents do not listen there, or it is no address.
    """
    from callsheet.errors import UsageError
    from callsheet.live import Address
    from callsheet.live.opening import check_address

    token = os.environ.get(token_env) if token_env is not None else None
    if token_env is not None and token is None:
        raise UsageError(f"--token-env {token_env}: there is no such variable")
    address = Address.parse(at, token=token)
    check_address(agent, address)
    return address


def _in_workbench(wanted: Run) -> int:
    """Runs the turn, and those that follow it, in the workbench; the exit code is that of the last one."""
    from callsheet.faces.cli.headless import FAILED, NOTHING_RAN, code_of, say_closed
    from callsheet.faces.cli.terminal import complain
    from callsheet.faces.tui.app import run_workbench
    from callsheet.faces.tui.running import NotOpened, Running, Wanted
    from callsheet.live import Policy

    port = None if wanted.answer == "ask" else Policy("allow" if wanted.answer == "allow" else "reject")
    running = Running(
        Wanted(
            agent=wanted.agent,
            command=wanted.command,
            at=wanted.at,
            wish=wanted.wish,
            prompt=wanted.prompt or None,
            out=wanted.out,
            port=port,
        )
    )
    try:
        run_workbench(running)
    except NotOpened as error:
        complain(str(error))
        return NOTHING_RAN
    if running.closed is not None:
        say_closed(running.closed, wanted.at)
    if running.busy:
        return FAILED  # the person left while a turn ran: nobody saw its end
    return NOTHING_RAN if running.result is None else code_of(running.result)
