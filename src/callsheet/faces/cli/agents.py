"""Agents that can be run, by the word that a person writes; and unfinished recordings, finished before they are read.

Must never know: how a turn is shown.
"""

from __future__ import annotations

import os
from pathlib import Path

from callsheet.errors import DEBUG, SourceError, UsageError
from callsheet.harness._port.live import LiveAgent

FAKE_NAME = "fake"
"""The fake agent's word, for those who try things out; no list shows it."""


def agent_named(name: str) -> LiveAgent:
    """The agent of a name.

    Raises:
        UsageError: No such agent.
    """
    if name == FAKE_NAME:
        from callsheet.testing.fake import FAKE

        return FAKE
    from callsheet.harness import LIVE, live_agents

    for agent in live_agents():
        if agent.name == name:
            return agent
    known = ", ".join(agent.name for agent in LIVE)
    raise UsageError(f"no agent {name!r} can be run (known: {known})")


def finish_recording(path: Path) -> None:
    """If a recorder left this bundle unfinished, finishes it, and says so."""
    from callsheet.live.recovery import is_unfinished, recover

    if not is_unfinished(path):
        return
    from callsheet.faces.cli.terminal import complain

    try:
        found = recover(path)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        # What is there can be read all the same, up to the last whole line.
        complain(str(error) if isinstance(error, SourceError) else f"{path}: cannot be finished: {error!r}")
        return
    if found is not None:
        complain(f"{path}: its recorder did not finish; {found.added:,} records were made from its frame log")
