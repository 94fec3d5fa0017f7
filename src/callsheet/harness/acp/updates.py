"""``session/update`` by kind: which part of a session folds it.

Owns the table of updates that become records (every other one is kept unmapped), and which of them may stand between
two pieces of one message.

Must never know: what the fold does with a frame before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, text_of
from callsheet.harness.acp.calls import Version

if TYPE_CHECKING:
    from callsheet.harness.acp.fold import Fold, SessionFold


class Context(NamedTuple):
    """What a handler of an update works with."""

    fold: Fold
    session: SessionFold
    update: dict[str, Raw]
    pointer: str
    version: Version


Handler = Callable[[Context], bool]


def _chunk(author: str) -> Handler:
    return lambda at: at.session.talk.chunk(author, at.update, at.pointer)


def _whole(author: str) -> Handler:
    return lambda at: at.version.null_clears and at.session.talk.whole(author, at.update, at.pointer)


def _tool_call(at: Context) -> bool:
    if at.version.null_clears:
        return False  # v2 has no such update
    return at.session.calls.update(at.update, at.pointer, at.version, creates=True)


def _tool_call_update(at: Context) -> bool:
    if (text_of(at.update.get("toolCallId", ABSENT)) or "") not in at.session.calls:
        at.session.talk.flush()
    return at.session.calls.update(at.update, at.pointer, at.version, creates=False)


def _state(at: Context) -> bool:
    state = text_of(at.update.get("state", ABSENT))
    talk = at.session.talk
    if state in ("running", "requires_action"):
        talk.turn_started(at.pointer)
        return True
    if state != "idle":
        return False
    ended = talk.end(None, at.update, at.pointer)
    at.fold.turn_over(at.session)
    return ended


def _subagent(at: Context) -> bool:
    child, parent = text_of(at.update.get("sessionId", ABSENT)), at.session.id
    if child and parent and child != parent:
        at.fold.descends(child, parent)
    return at.session.agents.update(at.update, at.pointer)


def _session_message(at: Context) -> bool:
    return at.session.agents.message(at.session.id, at.update, at.pointer)


UPDATES: dict[str, Handler] = {
    "user_message_chunk": _chunk("user"),
    "agent_message_chunk": _chunk("model"),
    "agent_thought_chunk": _chunk("thought"),
    "user_message": _whole("user"),
    "agent_message": _whole("model"),
    "agent_thought": _whole("thought"),
    "tool_call": _tool_call,
    "tool_call_update": _tool_call_update,
    "tool_call_content_chunk": lambda at: at.session.calls.content_chunk(at.update, at.pointer),
    "terminal_update": lambda at: at.session.terminals.update(at.update, at.pointer),
    "terminal_output_chunk": lambda at: at.session.terminals.chunk(at.update, at.pointer),
    "plan": lambda at: at.session.talk.plan(at.update, at.pointer),
    "plan_update": lambda at: at.session.talk.plan_update(at.update, at.pointer),
    "usage_update": lambda at: at.session.talk.usage(at.update, at.pointer),
    "notice": lambda at: at.session.talk.notice(at.update, at.pointer),
    "compaction_update": lambda at: at.session.talk.compaction(at.update, at.pointer),
    "subagent_update": _subagent,
    "session_message": _session_message,
    "state_update": _state,
}
"""Updates that become records; every other one is kept unmapped."""

GOES_ON = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message",
        "agent_message",
        "agent_thought",
        "tool_call_update",
        "tool_call_content_chunk",
        "terminal_output_chunk",
        "usage_update",
    }
)
"""Updates that may stand between two pieces of one message."""
