"""What a session gives back: a turn to read, why it did not open, how it was closed.

Must never know: processes, the protocol.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from msgspec import Struct

from callsheet.live.channel import Channel
from callsheet.live.guard import Reach
from callsheet.live.process import How
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
        how: How the agent's process went.
        exit_code: Its exit code, when it ended by itself.
        signal: The signal that ended it.
        stderr: The tail of what it wrote to its standard error.
        reach: What of the agent's was ended for certain: its whole ``tree``, or its process ``group``, where the
            system does not show what left that.
        problems: What went wrong on our side, one line each.
    """

    bundle: Path
    how: How
    exit_code: int | None = None
    signal: str | None = None
    stderr: str = ""
    reach: Reach = "tree"
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


def end_of(code: int | None, signal: str | None) -> str:
    """The end of the agent's process, in words."""
    if signal is not None:
        return f"the agent was ended by {signal}"
    return "the agent is gone" if code is None else f"the agent ended with exit code {code}"
