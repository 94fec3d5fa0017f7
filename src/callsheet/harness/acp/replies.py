"""When the model has answered a result: it speaks anew after the call has ended, within the turn (decision 7).

Owns what counts as speaking anew: a message or a thought that does not go on with an older one. Used by the first pass
over a log, and by the fold of a live connection, which cannot look ahead.

Must never know: records.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, mark, text_of
from callsheet.harness.acp.calls import FINAL

SPEECH = frozenset({"agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought"})


class Replies:
    """The results of one session that wait for the model's next word."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._spoken: set[str] = set()

    def told(self, name: str, update: dict[str, Raw]) -> set[str]:
        """Takes an update; returns the calls whose results the model has answered with it."""
        if name in ("tool_call", "tool_call_update"):
            call = text_of(update.get("toolCallId", ABSENT))
            if call is not None and text_of(update.get("status", ABSENT)) in FINAL:
                self._waiting.add(call)
        elif name in SPEECH and mark(update.get("content", ABSENT)) in (b"{", b"["):
            return self._speech(text_of(update.get("messageId", ABSENT)))
        elif name == "state_update" and text_of(update.get("state", ABSENT)) == "idle":
            self.turn_over()
        return set()

    def _speech(self, message: str | None) -> set[str]:
        if message is not None:
            if message in self._spoken:
                return set()
            self._spoken.add(message)
        answered, self._waiting = self._waiting, set()
        return answered

    def turn_over(self) -> None:
        """The turn has ended: what the model says in the next one answers another prompt."""
        self._waiting.clear()
