"""Our half of a connection that speaks JSON-RPC.

Owns the ids of our own requests, and which frame is an answer, a request or a notification of the agent. A method that
we do not know is refused as 'method not found', a notification that we do not know gives nothing.

Must never know: what a method means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from msgspec import Raw

from callsheet.harness._port.client import OPEN_MOST, TOO_MANY, Client, Turn
from callsheet.harness._port.parts import members_of
from callsheet.harness._port.rpc import INTERNAL, NOT_FOUND, Frame, Id, Rpc
from callsheet.seam import Send, Step

T = TypeVar("T", bound=Turn)


class RpcClient(Client[T]):
    """The driver of one JSON-RPC connection."""

    rpc: ClassVar[Rpc]
    """How its frames are written."""

    def _asked(self, frame: Frame) -> list[Step]:
        """A request of the agent that may wait."""
        raise NotImplementedError

    def _notified(self, method: str, params: dict[str, Raw]) -> list[Step]:
        """A notification of the agent."""
        raise NotImplementedError

    def _waiting(self) -> int:
        """How many requests of the agent wait."""
        return len(self._requests.open)

    def _request(self, method: str, params: dict[str, Any], then: Callable[[Frame], list[Step]]) -> Send:
        self._count += 1
        self._expect(Id(str(self._count)), then)
        return Send(self.rpc.request(self._count, method, params))

    def _frame(self, frame: Frame) -> list[Step]:
        """One frame of the agent."""
        if frame.method is None:
            return self._heard(frame.id, frame)
        if frame.id is None:
            return self._notified(frame.method, members_of(frame.params))
        if self._waiting() >= OPEN_MOST:
            return [self._refused(frame, INTERNAL, TOO_MANY)]
        return self._asked(frame)

    def _refused(self, frame: Frame, code: int, why: str) -> Send:
        return Send(self.rpc.refusal(frame.number, code, why))

    def _not_found(self, frame: Frame) -> Send:
        return self._refused(frame, NOT_FOUND, f"method not found: {frame.method}")
