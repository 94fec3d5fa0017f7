"""``callsheet tap -- AGENT…``: an agent behind a transparent recorder, for editors that start agents themselves.

Must never know: protocols, bytes.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

NOT_STARTED = 4


@click.command("tap", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where the bundle goes.")
@click.argument("agent", nargs=-1, required=True, type=click.UNPROCESSED)
def tap(out: Path | None, agent: tuple[str, ...]) -> int:
    """Record an agent of the Agent Client Protocol that an editor drives.

    Put it in front of the agent's command in the editor's settings. Every byte between the two passes as it is; signals
    and standard error are the agent's own. The conversation is recorded in a bundle, below the user's
    data folder unless --out says otherwise. If nothing can be recorded, that is said once, and the conversation
    goes on.

    \b
    Example:
      callsheet tap -- claude-agent-acp

    Exit code 4: the agent does not start; else the agent's own.
    """  # noqa: D301
    from callsheet.errors import reason_of
    from callsheet.faces.cli.terminal import complain
    from callsheet.library.places import bundles_folder
    from callsheet.live.tap import Tap, leave

    folder = (out or bundles_folder()).absolute()
    program = Path(agent[0]).name
    recorder = [sys.executable, "-m", "callsheet.live.tap_recorder", str(folder), program, str(Path.cwd())]
    if shutil.which(agent[0]) is None:
        there = Path(agent[0])
        why = "is a folder" if there.is_dir() else "cannot be executed" if there.exists() else "not found"
        complain(f"{agent[0]}: {why}")
        return NOT_STARTED
    sys.stdout.flush()
    try:
        code = Tap(agent, recorder, complain).run()
    except OSError as error:
        complain(f"{agent[0]}: cannot be started: {reason_of(error)}")
        return NOT_STARTED
    leave(code)
    return os.EX_OK
