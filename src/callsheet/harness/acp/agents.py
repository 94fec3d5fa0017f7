"""Agents that an agent started: what is told of each, and the stream that its own session has.

A log is surveyed before it is folded, so that an agent's first record names its stream. A live connection learns of the
stream when the agent's session first speaks: then what was told of the agent is written again, with its stream.

Must never know: calls, turns.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw, Struct
from msgspec.structs import replace

from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of
from callsheet.harness._port.pen import Pen
from callsheet.harness.acp.held import revise_at
from callsheet.harness.acp.parts import block_part
from callsheet.records import Message, Native, Subagent
from callsheet.records.bundle import stream_id
from callsheet.registry import Registry

AGENTS_MOST = 1000
"""Agents that are kept in mind; what is told of an older one stands without its title."""
_STATES = {"running": "running", "requires_action": "running"}


class Told(Struct):
    """What was told of an agent last.

    Attributes:
        record: As written.
        native: Its provenance.
        ts: When it was told.
    """

    record: Subagent
    native: Native
    ts: str | None


class Agents:
    """The agents of one session.

    Args:
        pen: Writes records.
        registry: Words for ends.
        has_stream: Whether a session has a stream, or is known to get one.
    """

    def __init__(self, pen: Pen, registry: Registry, has_stream: Callable[[str], bool]) -> None:
        self._pen = pen
        self._has_stream = has_stream
        self._ends = {
            row.value: row.then
            for row in registry.terminal_status
            if (row.entity, row.source) == ("subagent", "stopReason")
        }
        self._told: dict[str, Told] = {}

    def update(self, update: dict[str, Raw], pointer: str) -> bool:
        """``subagent_update``: an agent with a session of its own."""
        name = text_of(update.get("sessionId", ABSENT))
        if not name:
            return False
        state = members_of(update.get("state", ABSENT))
        word = text_of(state.get("state", ABSENT))
        status = _STATES.get(word or "")
        if word == "idle":
            status = self._ends.get(text_of(state.get("stopReason", ABSENT)), "unknown")
        record = Subagent(agent_id=name, status=status)
        record.stream = stream_id(name) if self._has_stream(name) else None
        record.name = text_of(update.get("title", ABSENT))
        before = self._told.pop(name, None)
        if record.name is None and before is not None:
            # An update may leave the title out; every record is the agent's whole state.
            record.name = before.record.name
        native = self._pen.native("agent", pointer)
        self._told[name] = Told(record, native, self._pen.ts)
        if len(self._told) > AGENTS_MOST:
            oldest = next(iter(self._told))
            del self._told[oldest]
            self._pen.forget(_key(oldest))
        self._write(name)
        return True

    def began(self, name: str) -> None:
        """A session has got a stream: if it is that of an agent, its record says so."""
        told = self._told.get(name)
        if told is not None and told.record.stream is None:
            told.record.stream = stream_id(name)
            self._write(name)

    def _write(self, name: str) -> None:
        told = self._told[name]
        revise_at(self._pen, _key(name), replace(told.record, native=told.native), told.ts)

    def message(self, session: str | None, update: dict[str, Raw], pointer: str) -> bool:
        """``session_message``: what one agent says to another."""
        content = update.get("content", ABSENT)
        if mark(content) != b"[":
            return False
        sender = text_of(update.get("senderSessionId", ABSENT))
        record = Message(author="model" if sender is not None and sender == session else "agent")
        record.content = [block_part(item, self._pen.desk) for item in items_of(content)]
        record.message_id = text_of(update.get("messageId", ABSENT))
        record.native = self._pen.native("message", pointer)
        self._pen.write(record)
        return True


def _key(name: str) -> str:
    return f"agent {name}"
