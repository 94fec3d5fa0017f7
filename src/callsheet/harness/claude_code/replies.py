"""Whether a reply of the model follows a result: evidence that the result was sent (decision 7b).

Owns the stretches of a conversation, each with the place of its last reply: a few numbers a stretch.

Must never know: what a line says beside that.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class CallPlace(NamedTuple):
    """Where a call stands: byte offset of its unit and the tool's name; ``by`` marks its record's id, 0 without one."""

    offset: int
    name: str | None
    by: int = 0


class Replies:
    """Where the model's last reply stands in each stretch of one conversation.

    A stretch ends where the context begins anew: at a compaction, or at a message that follows nothing (a rewound
    conversation). An agent's lines within the same file are a conversation of their own.
    """

    def __init__(self) -> None:
        self._starts = [0]
        self._last = [(0, 0)]
        self._message: str | None = None

    def begin(self, line: int) -> None:
        """The context begins anew at a line."""
        self._starts.append(line)
        self._last.append((0, 0))
        self._message = None

    def add(self, line: int, offset: int, message_id: str | None) -> None:
        """A line of a model message; the message counts from its first line on."""
        if message_id is not None and message_id == self._message:
            offset = self._last[-1][1]
        self._message = message_id
        self._last[-1] = (line, offset)

    def follow(self, line: int, call: CallPlace | None) -> bool:
        """Whether a message later than the one that made the call stands after a line, in its stretch."""
        last, offset = self._last[bisect_right(self._starts, line) - 1]
        return last > line and (call is None or call.offset < offset)
