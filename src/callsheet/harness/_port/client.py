"""Our half of a connection to a live agent, as far as it is the same for every protocol (``seam.Driver``).

Owns: the turn that runs and its state, its one end, the open requests and who answers them, the receipts of controls,
the answers to our own requests, and what is left when the process is gone. A request that comes when no turn runs, or
when the turn is being broken off, or that still waits when the turn ends, is refused at once in the protocol's own way
of saying that nobody decides: no person is bothered, and no agent is left waiting. An adapter adds the handshake, what
a frame means, and what is sent.

Must never know: the protocol, records, files, clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct

from callsheet.harness._port.asking import Ask, Asking
from callsheet.seam import (
    Accepted,
    Answer,
    Ended,
    Lost,
    Noted,
    NotStarted,
    Rejected,
    Reply,
    RequestClosed,
    RequestOpened,
    Send,
    Step,
    TurnChanged,
    TurnResult,
    TurnState,
    Wish,
)

OPEN_MOST = 200
"""Requests of the agent that wait at once; more are refused."""
TOO_MANY = f"{OPEN_MOST} requests wait already"
UNDECIDED = "nobody decides: no turn is running, or it is being broken off"
"""What an agent is told where its protocol wants words."""
NOBODY = "policy"
"""Who answers a request that nobody decides: a rule of ours, and no person (decision 16)."""


class Turn(Struct):
    """The turn that runs; an adapter adds what it has to know.

    Attributes:
        interrupted: We asked, or will ask, the agent to break it off.
        state: What was last said of it.
    """

    interrupted: bool = False
    state: TurnState = "starting"


class Over(Protocol):
    """What the end of a turn clears: previews."""

    def over(self) -> None:
        """The turn has ended."""


class Masking(Protocol):
    """What may be written of a connection's frames."""

    def masked(self, frame: bytes, /, *, from_agent: bool) -> bytes:
        """A frame as it may be written."""


T = TypeVar("T", bound=Turn)


class Client(Generic[T]):
    """The driver of one connection.

    Args:
        wish: What is wanted of the session.
    """

    session_word: ClassVar[str] = "a session"
    """What the agent opens, in its protocol's word."""

    _requests: Asking
    _previews: Over
    _masks: Masking

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self._count = 0
        self._pending: dict[Hashable, Callable[[Any], list[Step]]] = {}
        self._opened = False
        self._over = False
        self._turn: T | None = None

    # -- what an adapter says -----------------------------------------------------------------------------------

    def open(self) -> list[Step]:
        """The handshake."""
        raise NotImplementedError

    def _break_off(self, turn: T) -> list[Step]:
        """What asks the agent to break the turn off; nothing where that has to wait."""
        raise NotImplementedError

    def _unended(self, turn: T, why: str) -> TurnResult:
        """The result of a turn whose agent is gone."""
        del turn
        return Lost(why)

    # -- turns --------------------------------------------------------------------------------------------------

    def _changed(self, state: TurnState) -> list[Step]:
        turn = self._turn
        if turn is None or turn.state == state or (turn.interrupted and state != "settled"):
            return []
        turn.state = state
        return [TurnChanged(state)]

    def _end(self, result: TurnResult) -> list[Step]:
        """The turn has ended: whoever still asks is told that nobody decides."""
        steps: list[Step] = []
        for ask in self._requests.all():
            if not self._over:
                steps.append(Send(ask.unanswered, answered_by=NOBODY))
            steps.append(RequestClosed(ask.key, "ended"))
        steps += [*self._changed("settled"), Ended(result)]
        self._turn = None
        self._previews.over()
        return steps

    def _no_session(self, why: str) -> list[Step]:
        """The session cannot be opened, or not as it was wished for: nothing has run."""
        self._over = True
        return [Ended(NotStarted(why))]

    # -- what the agent sends -----------------------------------------------------------------------------------

    def _expect(self, key: Hashable, then: Callable[[Any], list[Step]]) -> None:
        """What to do when our own request is answered."""
        self._pending[key] = then

    def _heard(self, key: Hashable, told: Any) -> list[Step]:
        """An answer to a request of ours; nothing for one to none."""
        then = self._pending.pop(key, None)
        return then(told) if then is not None and not self._over else []

    def _asks(self, ask: Ask) -> list[Step]:
        """The agent asks: a person sees it while a turn runs, and nobody else decides."""
        if ask.key in self._requests.open:
            return []  # delivered again
        if self._turn is None or self._turn.interrupted:
            return [Send(ask.unanswered, answered_by=NOBODY)]
        self._requests.keep(ask)
        return [*self._changed("waiting"), RequestOpened(ask.waiting)]

    def _withdrawn(self, is_it: Callable[[Ask], bool], said: str, *, answers: bool = False) -> list[Step]:
        """The agent takes a request back; some protocols want an answer all the same."""
        ask = self._requests.withdrawn(is_it)
        if ask is None:
            return []
        sent = [Send(ask.unanswered)] if answers else []
        return [*sent, RequestClosed(ask.key, "withdrawn", said), *self._goes_on()]

    def _goes_on(self) -> list[Step]:
        return self._changed("running") if not self._requests.open else []

    @staticmethod
    def _unless(failed: str, why: str | None) -> list[Step]:
        """Says that a control did not do what it should."""
        return [Noted(f"{failed}: {why or 'no reason given'}")]

    # -- controls -----------------------------------------------------------------------------------------------

    def answer(self, request_id: str, answer: Answer) -> Reply:
        """Answers an open request."""
        given = self._requests.answer(request_id, answer)
        if isinstance(given, Rejected):
            return Reply(given)
        return Reply(Accepted(), (Send(given.frame), given.closed, *self._goes_on()))

    def interrupt(self) -> Reply:
        """Asks the agent to break the turn off; it counts only when the agent says so."""
        turn = self._turn
        if turn is None:
            return Reply(Rejected("no turn is running"))
        if turn.interrupted:
            return Reply(Rejected("the agent has been asked to stop already"))
        steps = [*self._break_off(turn), *self._changed("interrupting")]
        turn.interrupted = True
        return Reply(Accepted(), tuple(steps))

    def close(self) -> list[Step]:
        """Nothing: the end of the pipe ends the connection."""
        return []

    def gone(self, exit_code: int | None, signal: str | None) -> list[Step]:
        """The agent's process has ended."""
        how = f"with {exit_code}" if exit_code is not None else "without an exit code"
        why = f"the agent ended {f'by {signal}' if signal else how} before"
        opened, over = self._opened, self._over
        self._over = True
        self._pending.clear()
        if self._turn is not None:
            return self._end(self._unended(self._turn, f"{why} the turn did"))
        return [] if opened or over else [Ended(NotStarted(f"{why} it opened {self.session_word}"))]

    def mask(self, frame: bytes, *, from_agent: bool) -> bytes:
        """The frame as it may be written: without answers to secrets, and raw chain of thought."""
        return self._masks.masked(frame, from_agent=from_agent)
