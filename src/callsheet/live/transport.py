"""How frames come from an agent and go to it, whatever is in between: a process that we started, or a connection.

Owns ``Transport``, what comes out of one (``Cut`` stands for a frame that is too long to be held), and how lines are
cut out of bytes.

Must never know: what a frame means, how an agent is started or reached.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, NamedTuple, Protocol

from callsheet.harness._port.attested import Exit, Hangup
from callsheet.live.guard import Reach

CHUNK = 1 << 18
How = Literal["left", "asked", "killed", "kept"]
"""How an agent went: by itself when its input was closed, when it was asked to, by force; or not at all: it is not
ours, and only the connection to it was closed."""


class NotRead(Exception):
    """The agent does not read what is sent to it any more, and asks for more and more."""


class Unreachable(Exception):
    """No connection to the agent comes about."""


class Cut(NamedTuple):
    """The beginning of a line that was longer than a line may be, and its length."""

    head: bytes
    size: int


class Transport(Protocol):
    """The way to one agent and back.

    Attributes:
        ours: We started the agent, and end it with all that it started.
    """

    ours: bool

    @property
    def pid(self) -> int | None:
        """Process id of an agent that is ours, and of its process group."""

    @property
    def stderr(self) -> str:
        """The tail of what it wrote to its standard error, where that is heard."""

    @property
    def reach(self) -> Reach | None:
        """What ``end`` ends for certain; None for an agent that is not ours."""

    def chunks(self) -> AsyncIterator[list[bytes | Cut]]:
        """The frames that it sends, as many at a time as have come, until no more will come."""

    def send(self, frame: bytes) -> None:
        """Sends a frame; nothing happens when nobody is there any more.

        Raises:
            NotRead: More waits to be read than may wait.
        """

    async def wait(self) -> None:
        """Waits until the agent is gone."""

    async def end(self) -> How:
        """Ends it, or the connection to it. Bounded, idempotent."""

    def outcome(self) -> Exit | Hangup:
        """How it ended, as far as that was seen by now."""


class LineCutter:
    """Cuts chunks into lines, whatever the chunks are.

    Args:
        most: Bytes of the longest line.
    """

    HEAD = 4096

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[bytes] = []
        self._size = 0
        self._cut: bytes | None = None

    def feed(self, chunk: bytes) -> list[bytes | Cut]:
        """The lines that are complete now."""
        pieces = chunk.split(b"\n")
        out: list[bytes | Cut] = []
        for number, piece in enumerate(pieces):
            self._size += len(piece)
            if self._cut is None:
                self._held.append(piece)
                if self._size > self._most:
                    self._cut = b"".join(self._held)[: self.HEAD]
                    self._held.clear()
            if number < len(pieces) - 1:
                out += self.rest(ended=True)
        return out

    def rest(self, *, ended: bool = False) -> list[bytes | Cut]:
        """The line at hand: the last one, which has no line end, or (``ended``) one that has it."""
        size, held, cut = self._size, b"".join(self._held), self._cut
        self._held.clear()
        self._size, self._cut = 0, None
        if cut is not None:
            return [Cut(cut, size)]
        return [held] if held or ended else []
