"""Opening a session: a new bundle, the agent's process, the handshake; if any of them fails, what is left is cleared.

Must never know: the protocol, what a turn is.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from callsheet.errors import reason_of
from callsheet.harness._port.attested import Launch
from callsheet.harness._port.live import LiveAgent
from callsheet.live.answers import AnswerPort
from callsheet.live.limits import Limits
from callsheet.live.process import Process
from callsheet.live.recorder import Recorder
from callsheet.live.reports import Unopened
from callsheet.live.session import Session
from callsheet.seam import Installed, Wish


async def open_session(
    agent: LiveAgent,
    installed: Installed,
    wish: Wish,
    *,
    out: Path,
    port: AnswerPort | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Session | Unopened:
    """Starts an agent and opens a session, recorded into a new bundle below ``out``.

    Args:
        agent: The adapter.
        installed: What was found by ``prepare``.
        wish: What is wanted of the session.
        out: Folder for the bundle.
        port: Answers what the agent asks; without one, ``Session.answer`` does.
        limits: Bounds.

    Raises:
        OSError: Nothing can be written below ``out``.
    """
    driver = agent.driver(wish)
    launch = driver.launch()
    recorder = await asyncio.to_thread(Recorder.create, out, agent)
    program = Path(installed.command[0]).name
    recorder.own(
        Launch(
            program=program,
            version=installed.version,
            switches=launch.switches,
            cwd=wish.cwd,
            model=wish.model,
            mode=wish.mode,
            resume=wish.resume,
        )
    )
    try:
        process = await Process.start(
            (*installed.command, *launch.arguments),
            cwd=wish.cwd,
            environment=launch.environment,
            limits=limits,
        )
    except OSError as error:
        recorder.discard()
        return Unopened(reason=f"{program} cannot be started: {reason_of(error)}")
    session = Session(driver, recorder, process, limits=limits, port=port)
    try:
        why = await session.opening()
    except asyncio.CancelledError:
        await session.close()
        raise
    if why is None:
        return session
    closed = await session.close()
    return Unopened(reason=why, stderr=closed.stderr, bundle=closed.bundle)
