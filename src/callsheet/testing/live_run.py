"""Runs of live agents for tests: one turn from start to close, with all that a reader saw of it.

Owns ``run_turn`` and what it gives. Must never know: any one harness.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from callsheet.harness._port.live import LiveAgent
from callsheet.live import Address, Closed, Limits, Session, Unopened, open_session
from callsheet.live.answers import AnswerPort
from callsheet.records import decode
from callsheet.seam import Event, Installed, NotStarted, Recorded, TurnResult, Wish

QUICK = Limits(version=10, handshake=20, acknowledge=0.3, leave=1.0, drain=0.3, sync=0.05)
"""Bounds for agents that are programs of a few lines."""


class Ran(NamedTuple):
    """One turn.

    Attributes:
        events: What its reader got, in order.
        result: How it ended; ``NotStarted`` when the session did not open.
        late: What came after the turn.
        closed: How the session was closed; None when it did not open.
        unopened: Why it did not open.
        unwritten: Records that were given out before they stood in their stream, or as the stream does not say them.
    """

    events: list[Event]
    result: TurnResult
    late: list[Event]
    closed: Closed | None
    unopened: Unopened | None
    unwritten: list[str]

    @property
    def bundle(self) -> Path:
        """What was recorded."""
        found = self.closed.bundle if self.closed is not None else None
        found = found or (self.unopened.bundle if self.unopened is not None else None)
        assert found is not None, "nothing was recorded"
        return found


During = Callable[[Session, Event], Awaitable[None]]
"""Called with every event of the turn, before the next one is read."""
After = Callable[[Session], Awaitable[None]]
"""Called when the turn has ended."""


async def run_turn(
    agent: LiveAgent,
    command: Sequence[str] | Address,
    out: Path,
    *,
    prompt: str = "Do it.",
    cwd: Path | None = None,
    port: AnswerPort | None = None,
    during: During | None = None,
    after: After | None = None,
    limits: Limits = QUICK,
    version: str | None = None,
) -> Ran:
    """Starts an agent, runs one turn, closes.

    Args:
        agent: The adapter.
        command: What starts the agent, or where it listens.
        out: Where the bundle goes.
        prompt: The prompt.
        cwd: The agent's folder; the one that ``out`` is in, if not given.
        port: Answers what the agent asks.
        during: Does something while the turn runs.
        after: Does something between the turn's end and the close.
        limits: Bounds.
        version: The agent's version, as it would print it.
    """
    wish = Wish(cwd=str((cwd or out.parent).absolute()), version=version)
    session = await open_session(agent, found_at(command, version), wish, out=out, port=port, limits=limits)
    if isinstance(session, Unopened):
        return Ran([], NotStarted(session.reason), [], None, session, [])
    events: list[Event] = []
    unwritten: list[str] = []
    try:
        turn = session.start(prompt)
        async for event in turn:
            events.append(event)
            if isinstance(event, Recorded) and not _stands(session.bundle, event):
                unwritten.append(event.record.id)
            if during is not None:
                await during(session, event)
        result = await turn.result()
        if after is not None:
            await after(session)
    finally:
        closed = await session.close()
    late = [event async for event in session.rest()]
    return Ran(events, result, late, closed, None, unwritten)


def kill_agent(session: Session) -> None:
    """Kills an agent that we started, as a system that is out of memory does."""
    assert session.pid is not None, "the agent is not ours"
    os.kill(session.pid, signal.SIGKILL)


def found_at(command: Sequence[str] | Address, version: str | None = None) -> Installed | Address:
    """An agent as ``open_session`` takes it."""
    if isinstance(command, Address):
        return command
    return Installed(command=tuple(command), version=version, evidence="given by the test")


def _stands(bundle: Path, event: Recorded) -> bool:
    """Whether a record is in its stream now, and says there what it says here."""
    lines = (bundle / "streams" / f"{event.stream}.jsonl").read_bytes().split(b"\n")
    return len(lines) > event.record.seq + 1 and decode(lines[event.record.seq]) == event.record
