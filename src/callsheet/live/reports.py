"""What a session gives back: a turn to read, why it did not open, how it was closed.

Must never know: how an agent is started or reached, the protocol.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import assert_never

from msgspec import Struct

from callsheet.harness._port.attested import Exit, Hangup
from callsheet.live.channel import Channel
from callsheet.live.guard import Reach
from callsheet.live.transport import How
from callsheet.seam import Event, Lost, TurnResult


class Unopened(Struct, frozen=True, kw_only=True):
    """The session did not open.

    Attributes:
        reason: Why, one line.
        stderr: The tail of what the agent wrote to its standard error.
        bundle: What was recorded; None when the agent said nothing.
    """

    reason: str
    stderr: str = ""
    bundle: Path | None = None


class Closed(Struct, frozen=True, kw_only=True):
    """How a session was closed.

    Attributes:
        bundle: What was recorded.
        how: How the agent went; ``kept``: it is not ours, and was left running.
        exit_code: Its exit code, when it ended by itself.
        signal: The signal that ended it.
        stderr: The tail of what it wrote to its standard error.
        reach: What of the agent's was ended for certain: its whole ``tree``, or its process ``group``, where the
            system does not show what left that; None for one that is not ours.
        problems: What went wrong on our side, one line each.
    """

    bundle: Path
    how: How
    exit_code: int | None = None
    signal: str | None = None
    stderr: str = ""
    reach: Reach | None = "tree"
    problems: tuple[str, ...] = ()


class Turn:
    """One turn: iterate over its events, then ask for its result. One reader."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The events, in order; ends with the turn."""
        while (event := await self._channel.next()) is not None:
            yield event

    async def result(self) -> TurnResult:
        """How it ended; may be asked without reading the events."""
        result = await self._channel.result()
        return result if result is not None else Lost("the session was closed")


def end_of(how: Exit | Hangup) -> str:
    """How an agent, or the connection to it, ended, in words."""
    match how:
        case Exit(signal=str(name)):
            return f"the agent was ended by {name}"
        case Exit(code=int(code)):
            return f"the agent ended with exit code {code}"
        case Exit():
            return "the agent is gone"
        case Hangup(by=by, code=code, reason=reason):
            said = ": ".join(str(one) for one in (code, reason) if one is not None)
            return _HUNG_UP.get(by, "the connection was lost") + (f" ({said})" if said else "")
        case _:
            assert_never(how)


_HUNG_UP: dict[str | None, str] = {
    "agent": "the agent closed the connection",
    "client": "the connection was closed",
}
