"""Opening a session: a new bundle, the agent's process or a connection to it, the handshake.

If any of them fails, what is left is cleared.

Must never know: the protocol, what a turn is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from callsheet.errors import UsageError, reason_of
from callsheet.harness._port.attested import Launch
from callsheet.harness._port.live import LiveAgent
from callsheet.live.address import Address
from callsheet.live.answers import AnswerPort
from callsheet.live.connection import Connection, check_framing
from callsheet.live.folders import plainly
from callsheet.live.limits import Limits
from callsheet.live.process import Process
from callsheet.live.recorder import Recorder
from callsheet.live.reports import Unopened
from callsheet.live.session import Session
from callsheet.live.transport import Transport, Unreachable
from callsheet.seam import Driver, Installed, Wish

Way = Callable[[], Coroutine[Any, Any, Transport]]


async def open_session(
    agent: LiveAgent,
    found: Installed | Address,
    wish: Wish,
    *,
    out: Path,
    port: AnswerPort | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Session | Unopened:
    """Starts an agent, or connects to one, and opens a session, recorded into a new bundle below ``out``.

    Args:
        agent: The adapter.
        found: What was found by ``prepare``, or where an agent listens that somebody else has started.
        wish: What is wanted of the session.
        out: Folder for the bundle.
        port: Answers what the agent asks; without one, ``Session.answer`` does.
        limits: Bounds.

    Raises:
        UsageError: Such agents do not listen at such addresses.
        OSError: Nothing can be written below ``out``.
    """
    wish = msgspec.structs.replace(wish, cwd=str(plainly(wish.cwd)))
    if isinstance(found, Address):
        check_address(agent, found)
        wish = msgspec.structs.replace(wish, at=found.shown)
    driver = agent.driver(wish)
    launch, way = (
        _at(agent, driver, found, limits) if isinstance(found, Address) else _started(driver, found, limits)
    )
    recorder = await asyncio.to_thread(Recorder.create, out, agent)
    recorder.own(launch)
    try:
        transport = await way()
    except (OSError, Unreachable) as error:
        recorder.discard()
        what = "cannot be reached" if isinstance(error, Unreachable) else "cannot be started"
        reason = str(error) if isinstance(error, Unreachable) else reason_of(error)
        return Unopened(reason=f"{launch.address or launch.program} {what}: {reason}")
    except BaseException:
        recorder.discard()
        raise
    secrets = found.secrets if isinstance(found, Address) else ()
    session = Session(driver, recorder, transport, limits=limits, port=port, secrets=secrets)
    try:
        why = await session.opening()
    except asyncio.CancelledError:
        await session.close()
        raise
    if why is None:
        return session
    closed = await session.close()
    return Unopened(reason=why, stderr=closed.stderr, bundle=closed.bundle)


def check_address(agent: LiveAgent, address: Address) -> None:
    """Makes sure that such agents listen at such addresses, and that we can speak there.

    Raises:
        UsageError: They do not, or we cannot.
    """
    if not agent.listens:
        raise UsageError(f"{address.shown}: {agent.name} listens nowhere; it can only be started")
    if address.scheme not in agent.listens:
        known = ", ".join(f"{scheme}://" for scheme in agent.listens)
        raise UsageError(f"{address.shown}: {agent.name} does not listen there (possible: {known})")
    check_framing(address, agent.listens[address.scheme])


def _asked_for(driver: Driver, **where: str | None) -> Launch:
    wish = driver.wish
    return Launch(
        switches=driver.launch().switches,
        cwd=wish.cwd,
        model=wish.model,
        mode=wish.mode,
        resume=wish.resume,
        **where,
    )


def _started(driver: Driver, installed: Installed, limits: Limits) -> tuple[Launch, Way]:
    launch, wish = driver.launch(), driver.wish

    def start() -> Coroutine[Any, Any, Transport]:
        return Process.start(
            (*installed.command, *launch.arguments),
            cwd=wish.cwd,
            environment=launch.environment,
            limits=limits,
        )

    return _asked_for(driver, program=Path(installed.command[0]).name, version=installed.version), start


def _at(agent: LiveAgent, driver: Driver, address: Address, limits: Limits) -> tuple[Launch, Way]:
    def connect() -> Coroutine[Any, Any, Transport]:
        return Connection.open(address, agent.listens[address.scheme], limits)

    return _asked_for(driver, address=address.shown), connect
