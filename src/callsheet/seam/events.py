"""What a reader of a live turn gets, in one order.

Owns the closed set of events. ``Recorded`` is durable: the record is on disk before the event is given out. All
others are previews: they live while the turn runs, are bounded by who makes them, and each replaces the one before
with the same key. A preview is no record and proves nothing. No event carries a duration made with a clock.

Must never know: files, how anything is drawn.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from callsheet.records import Record
from callsheet.seam.requests import Waiting

OUTPUT_BYTES = 64 * 1024
"""Bytes of an output preview (UTF-8); the tail is kept."""
OUTPUT_LINES = 200
"""Lines of an output preview."""
TEXT_BYTES = 64 * 1024
"""Bytes of a streaming message or thought; the tail is kept."""


class Recorded(Struct, frozen=True, tag=True):
    """A record that has settled, and stands on disk.

    Attributes:
        stream: Id of its stream in the bundle.
        record: The record, with seq and id.
    """

    stream: str
    record: Record


class CallPreview(Struct, frozen=True, kw_only=True, tag=True):
    """A call that was announced and has not settled yet, or a word of the agent that a settled one is running.

    Attributes:
        call: Its identity in the turn, opaque and stable; equal to the record's ``callId`` once there is one.
        name: The tool, as far as the agent says it.
        title: What the agent calls it.
        input: Arguments so far, as text; may be half of a JSON text.
        running: The agent says that it is running now.
        parent: The call that contains it.
    """

    call: str
    name: str | None = None
    title: str | None = None
    input: str | None = None
    running: bool = False
    parent: str | None = None


class OutputPreview(Struct, frozen=True, kw_only=True, tag=True):
    """The tail of a running call's output so far.

    Attributes:
        call: The call.
        text: The tail, at most ``OUTPUT_BYTES`` and ``OUTPUT_LINES``.
        omitted_bytes: Bytes (UTF-8) before it that are not shown.
    """

    call: str
    text: str
    omitted_bytes: int = 0


class ThoughtPreview(Struct, frozen=True, kw_only=True, tag=True):
    """A reasoning summary that is still being written; an empty text says only that the agent thinks.

    Raw reasoning never comes here (decision 11).
    """

    key: str
    text: str


class MessagePreview(Struct, frozen=True, kw_only=True, tag=True):
    """A message of the model that is still being written."""

    key: str
    text: str


class RequestOpened(Struct, frozen=True, tag=True):
    """The agent asks and waits; several may be open at once."""

    request: Waiting


class RequestClosed(Struct, frozen=True, tag=True):
    """A request is no longer open.

    Attributes:
        request_id: Which.
        how: ``answered`` here, ``withdrawn`` by the agent (answered elsewhere, expired, cancelled: as ``said`` tells),
            or ``ended`` with the turn.
        said: The agent's own word.
    """

    request_id: str
    how: Literal["answered", "withdrawn", "ended"]
    said: str | None = None


TurnState = Literal["starting", "running", "waiting", "interrupting", "settled"]
"""State of a turn.

``waiting``: at least one request is open. ``settled``: live indicators stop; a call without a result is unconfirmed.
"""


class TurnChanged(Struct, frozen=True, tag=True):
    """The state of the turn."""

    state: TurnState


class Noted(Struct, frozen=True, tag=True):
    """Something that a person may want to see now and that is no fact of the session: a retry, a slow start."""

    text: str


Event = (
    Recorded
    | CallPreview
    | OutputPreview
    | ThoughtPreview
    | MessagePreview
    | RequestOpened
    | RequestClosed
    | TurnChanged
    | Noted
)
"""Everything that can happen while a turn runs."""
