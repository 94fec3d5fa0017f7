"""The contract of a live adapter: one protocol as a state machine, without I/O and without a clock.

Owns ``Driver``. The live shell owns the process: it passes every frame that the agent sends to ``receive``, sends
what the driver says (``Send``), and gives ``Event`` previews to readers. Records are not the driver's matter: both
directions of the conversation go, as lines of a frame log, through the same fold that imports such logs, so that a
live turn and an import of its log end in the same records.

A request that comes when no turn runs, or still waits when the turn ends, is answered at once with the protocol's own
word for 'nobody decides', never with leave: nobody could answer it any more, and an agent may wait for ever.

A driver holds what is bounded: open requests, one preview per running call, ids that wait for an answer.
An unknown frame gives no step and is kept in the frame log.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from msgspec import Raw, Struct

from callsheet.seam.agents import Ability, Launch, Wish
from callsheet.seam.events import Event
from callsheet.seam.requests import Answer
from callsheet.seam.turns import Receipt, TurnResult


class Send(Struct, frozen=True, tag=True):
    """A frame for the agent: one JSON value, without LF. It may hold a secret: only ``Driver.mask`` may be written.

    Attributes:
        answered_by: Of an answer that nobody was asked for: what gives it (``policy``: a rule of the driver's).
    """

    frame: bytes
    answered_by: str | None = None


class Opened(Struct, frozen=True, kw_only=True, tag=True):
    """The session is open.

    Attributes:
        session: Native session id, when the agent says one; it may come, or change, later.
        agent: What the agent calls itself.
        version: The version that it states.
        model: The effective model, as it reports it.
        abilities: What its handshake says.
    """

    session: str | None = None
    agent: str | None = None
    version: str | None = None
    model: str | None = None
    abilities: tuple[Ability, ...] = ()


class Ended(Struct, frozen=True, tag=True):
    """The turn has ended; nothing of it follows."""

    result: TurnResult


class Serve(Struct, frozen=True, kw_only=True, tag=True):
    """The agent wants to use files or terminals through its client; only drivers that are ``Serving`` say this.

    The shell carries it out inside the session's folder or refuses it, in its own time, and passes what came of it to
    ``Serving.served``. Meanwhile the turn goes on.

    Attributes:
        key: Names the request.
        method: What is wanted, in the protocol's word (``fs/read_text_file``, ``terminal/create``, …).
        params: With what, as the agent wrote it: any JSON value.
    """

    key: str
    method: str
    params: Raw


class Served(Struct, frozen=True, tag=True):
    """What came of a ``Serve``.

    Attributes:
        result: The answer's JSON object.
    """

    result: Raw


class NotServed(Struct, frozen=True, tag=True):
    """A ``Serve`` that was refused, or went wrong.

    Attributes:
        reason: Why, for the agent to read.
        kind: ``invalid``: the request itself is wrong; ``refused``: it leads out of the folder; ``missing``: there is
            no such thing; ``failed``: the system said no.
    """

    reason: str
    kind: Literal["invalid", "refused", "missing", "failed"] = "failed"


Step = Send | Opened | Ended | Serve | Event
"""What a driver wants done, in order."""


class Reply(Struct, frozen=True):
    """What a control leads to: its receipt at once, and steps."""

    receipt: Receipt
    steps: tuple[Step, ...] = ()


class Driver(Protocol):
    """One connection to one agent process. Made per session by the adapter's ``driver(wish)``."""

    wish: Wish

    def launch(self) -> Launch:
        """How the agent is to be started for this wish."""

    def open(self) -> list[Step]:
        """What to send when the process stands.

        ``Opened`` comes out of ``receive`` later, or of here if the protocol has no handshake of its own.
        """

    def start(self, prompt: str) -> list[Step]:
        """Starts a turn; only after ``Opened``, and when no turn runs."""

    def receive(self, frame: bytes) -> list[Step]:
        """One line that the agent sent, unmasked, JSON or not. Never raises for what an agent may send."""

    def answer(self, request_id: str, answer: Answer) -> Reply:
        """Answers exactly one open request. ``Rejected`` for one that is gone, or an answer that does not fit."""

    def steer(self, text: str) -> Reply:
        """Adds words to the running turn, where the agent natively can; else ``Rejected``."""

    def interrupt(self) -> Reply:
        """Asks the agent to break off. It counts only when the agent confirms it, by an ``Ended`` of its own."""

    def close(self) -> list[Step]:
        """What to send before the pipe is closed; may be nothing. May be called twice."""

    def gone(self, exit_code: int | None, signal: str | None) -> list[Step]:
        """The process has ended; open requests close.

        A turn that still ran ends ``Lost``, or ``NotStarted`` when the agent never took the prompt.
        """

    def mask(self, frame: bytes, *, from_agent: bool) -> bytes:
        """The frame as it may be written to disk: marked secrets and raw reasoning masked, JSON shape kept.

        Called once for every frame, in order, before the frame is written; for a sent frame after ``answer``.
        """


@runtime_checkable
class Cancelling(Driver, Protocol):
    """A driver whose agent may cancel one call, and go on with the turn."""

    def cancel_call(self, call: str) -> Reply:
        """Asks the agent to cancel a call; ``Rejected`` where it offers no such thing. The call's end tells more."""


@runtime_checkable
class Serving(Driver, Protocol):
    """A driver whose agent may use files and terminals of its client."""

    def served(self, key: str, outcome: Served | NotServed) -> list[Step]:
        """Passes on what came of a ``Serve``; nothing when the agent does not wait for it any more."""
