"""How a turn ends, and what became of a control.

Owns the closed set of turn results and the receipts. A result says no more than was seen: ``Lost`` is an end that
nobody saw, whose effects may have begun. A race (an answer to a request that is gone) gives ``Rejected``, never an
exception.
"""

from __future__ import annotations

from msgspec import Struct


class NotStarted(Struct, frozen=True, tag=True):
    """The agent never took the prompt: nothing of this turn ran.

    Attributes:
        reason: Why, in the words of the agent or of the system.
    """

    reason: str


class Completed(Struct, frozen=True, tag=True):
    """The agent says that the turn is complete.

    Attributes:
        reason: The agent's own word for the end (``end_turn``, ``max_turns``, …), if it gives one.
    """

    reason: str | None = None


class Failed(Struct, frozen=True, tag=True):
    """The agent says that the turn failed.

    Attributes:
        message: Its error, as it words it.
        reason: Its own word for the end.
    """

    message: str | None = None
    reason: str | None = None


class Interrupted(Struct, frozen=True, tag=True):
    """The agent confirms that the turn was broken off.

    Attributes:
        reason: Its own word for the end.
    """

    reason: str | None = None


class Lost(Struct, frozen=True, tag=True):
    """Nobody saw the end: the agent is gone, or does not answer any more. Effects may have begun.

    Attributes:
        reason: What was seen instead of an end (a signal, a closed pipe).
    """

    reason: str


TurnResult = NotStarted | Completed | Failed | Interrupted | Lost
"""How a turn ended; there is nothing after it."""


class Accepted(Struct, frozen=True, tag=True):
    """The control was passed to the agent. Whether it worked, later events tell."""


class Rejected(Struct, frozen=True, tag=True):
    """The control was not passed on.

    Attributes:
        reason: Why, in a few words for a person: the request is gone, the turn has ended,
            the agent has no such control.
    """

    reason: str


Receipt = Accepted | Rejected
"""What became of a control."""
