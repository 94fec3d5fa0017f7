"""A turn without a workbench: records or rows to stdout as they settle, everything else to stderr.

Owns the order of a headless run (find, open, turn, close), what Ctrl-C does, and the exit code. What a line of
``--json`` is, docs/headless.md promises.

Must never know: protocols.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import msgspec
from msgspec import Struct

from callsheet.errors import SourceError, reason_of
from callsheet.faces.cli.lines import JsonLines, Lines
from callsheet.faces.cli.terminal import complain
from callsheet.harness._port.live import LiveAgent
from callsheet.live import Address, Closed, Policy, Session, Turn, Unopened, open_session, prepare
from callsheet.live.answers import AnswerPort
from callsheet.seam import (
    Accepted,
    Completed,
    Event,
    Failed,
    Installed,
    Interrupted,
    Lost,
    Missing,
    NotStarted,
    TurnResult,
    Unusable,
    Wish,
)

if TYPE_CHECKING:
    from callsheet.faces.cli.asking import InOrder

COMPLETED, FAILED, INTERRUPTED, NOTHING_RAN, STOPPED = 0, 1, 3, 4, 130


class Run(Struct, frozen=True, kw_only=True):
    """What was asked for on the command line."""

    agent: LiveAgent
    command: tuple[str, ...] | None
    at: Address | None = None
    wish: Wish
    prompt: str
    out: Path
    answer: str
    as_json: bool
    previews: bool


def run_headless(wanted: Run) -> int:
    """Runs one turn; returns the exit code.

    Raises:
        SourceError: The bundle cannot be written.
    """
    return asyncio.run(_run(wanted))


def code_of(result: TurnResult) -> int:
    """The exit code of a turn's result."""
    match result:
        case Completed():
            return COMPLETED
        case Interrupted():
            return INTERRUPTED
        case Failed() | Lost():
            return FAILED
        case NotStarted():
            return NOTHING_RAN
        case _:
            assert_never(result)


async def _run(wanted: Run) -> int:
    found = wanted.at or await prepare(wanted.agent, wanted.command)
    version = None
    match found:
        case Address():
            pass
        case Missing():
            complain(f"{wanted.agent.name}: not found: {', '.join(found.looked_for)}")
            return NOTHING_RAN
        case Unusable():
            complain(f"{wanted.agent.name}: {found.command[0]}: {found.reason}")
            return NOTHING_RAN
        case Installed():
            version = found.version
        case _:
            assert_never(found)
    wish = msgspec.structs.replace(wanted.wish, version=version)
    port, order = _port(wanted.answer)
    stop = _Stop()
    with stop.listening():
        opening = asyncio.ensure_future(open_session(wanted.agent, found, wish, out=wanted.out, port=port))
        try:
            session = await stop.or_done(opening)
        except OSError as error:
            place = str(error.filename or wanted.out)
            raise SourceError(f"nothing can be recorded: {reason_of(error)}", path=place) from None
        if session is None:
            return stop.code
        if isinstance(session, Unopened):
            _unopened(wanted.agent.name, session)
            return NOTHING_RAN
        out = _Out(_lines(wanted, session), session, order)
        try:
            code = await _turn(session, wanted.prompt, out, stop)
        finally:
            closed = await session.close()
        async for event in session.rest():
            await out.event(event)
        await out.print(out.lines.end, closed)
        say_closed(closed, wanted.at)
        return code


def say_closed(closed: Closed, at: Address | None) -> None:
    """Says what a person should know of a closed session."""
    for problem in closed.problems:
        complain(problem)
    if at is not None:
        complain(f"{at.shown}: the connection is closed; the agent is not callsheet's, and was left running")
    complain(f"recorded in {closed.bundle}")


def _port(answer: str) -> tuple[AnswerPort, InOrder | None]:
    """Who answers; and, where questions and lines stand on one terminal, what keeps them in order."""
    if answer != "ask":
        return Policy("allow" if answer == "allow" else "reject"), None
    from callsheet.faces.cli.asking import InOrder, TerminalPort

    if not sys.stdout.isatty():
        return TerminalPort(), None  # a slow reader of stdout holds up no question
    order = InOrder(TerminalPort())
    return order, order


def _lines(wanted: Run, session: Session) -> Lines:
    if wanted.as_json:
        return JsonLines(session, previews=wanted.previews)
    from callsheet.faces.cli.rowlog import TextLines

    return TextLines(session)


class _Out:
    """Where lines go: a slow reader holds up nothing but its own lines, and one that goes away ends the turn."""

    def __init__(self, lines: Lines, session: Session, order: InOrder | None) -> None:
        self.lines = lines
        self._order = order
        self._session = session
        self._gone = False

    async def event(self, event: Event) -> None:
        """Prints an event; on a terminal where questions are asked, between them."""
        if self._order is None:
            await self.print(self.lines.event, event)
            return
        async with self._order.terminal:
            await self.print(self.lines.event, event)
        self._order.printed(event)

    async def print(self, work: Callable[[Any], None], what: object) -> None:
        """Prints, in a thread: the agent is read on while somebody does not take what is printed."""
        if self._gone:
            return
        try:
            await asyncio.to_thread(work, what)
        except BrokenPipeError:
            self._gone = True
            # What is still buffered must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(self._session.interrupt(), Accepted):
                complain("nobody reads this any more: interrupting")


async def _turn(session: Session, prompt: str, out: _Out, stop: _Stop) -> int:
    turn = session.start(prompt)
    stop.during(session, turn)
    async for event in turn:
        await out.event(event)
    result = await turn.result()
    await out.print(out.lines.result, result)
    if isinstance(result, Failed | Lost | NotStarted):
        words = result.message if isinstance(result, Failed) else result.reason
        complain(f"the turn {_WORDS[type(result)]}" + (f": {words}" if words else ""))
    return stop.code if stop.forced else code_of(result)


_WORDS: dict[type[Any], str] = {
    Failed: "failed",
    Lost: "was lost: nobody saw its end",
    NotStarted: "did not start",
}


def _unopened(name: str, session: Unopened) -> None:
    tail = session.stderr.strip().splitlines()
    complain(f"{name}: did not start: {session.reason}" + (f" ({tail[-1][:200]})" if tail else ""))
    if session.bundle is not None:
        complain(f"recorded in {session.bundle}")


class _Stop:
    """Ctrl-C: the first asks the agent to break off, the second stops it. SIGTERM and SIGHUP stop it at once.

    Attributes:
        forced: The agent was stopped.
        code: The exit code that says so.
    """

    def __init__(self) -> None:
        self.forced = False
        self.code = STOPPED
        self._asked = False
        self._session: Session | None = None
        self._closing: asyncio.Task[Closed] | None = None
        self._early = asyncio.Event()

    def listening(self) -> _Listening:
        """While this is open, the signals mean this."""
        return _Listening(self._pressed, self._told)

    def during(self, session: Session, turn: Turn) -> None:
        """From now on there is something to interrupt."""
        del turn
        self._session = session

    async def or_done(self, opening: asyncio.Future[Session | Unopened]) -> Session | Unopened | None:
        """What was opened; None when it was broken off before."""
        early = asyncio.ensure_future(self._early.wait())
        both: set[asyncio.Future[Any]] = {opening, early}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        early.cancel()
        if opening.done():
            return opening.result()
        opening.cancel()
        await asyncio.wait({opening})
        if not opening.cancelled() and opening.exception() is None:
            session = opening.result()  # it was quicker
            if isinstance(session, Session):
                await session.close()
        return None

    def _pressed(self) -> None:
        session = self._session
        if session is None:
            self._early.set()
            return
        if self._asked:
            self._stop()
            return
        self._asked = True
        receipt = session.interrupt()
        if isinstance(receipt, Accepted):
            complain(f"interrupting; Ctrl-C again {_again(session)}")
        else:
            complain(f"cannot interrupt: {receipt.reason}; Ctrl-C again {_again(session)}")

    def _told(self, number: int) -> None:
        self.code = 128 + number
        self._stop()

    def _stop(self) -> None:
        self.forced = True
        self._early.set()
        if self._session is not None and self._closing is None:
            self._closing = asyncio.ensure_future(self._session.close())


def _again(session: Session) -> str:
    """What a second Ctrl-C does."""
    return "stops the agent" if session.ours else "leaves the agent alone with it"


class _Listening:
    def __init__(self, pressed: Callable[[], None], told: Callable[[int], None]) -> None:
        self._pressed = pressed
        self._told = told
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is None or signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.getsignal(number)
            if number == signal.SIGINT:
                loop.add_signal_handler(number, self._pressed)
            else:
                loop.add_signal_handler(number, self._told, int(number))

    def __exit__(self, *error: object) -> None:
        loop = asyncio.get_running_loop()
        for number, before in self._before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, before)
