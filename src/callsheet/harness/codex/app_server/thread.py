"""The fold of one thread: which frame becomes what.

Owns the table of notifications, and what an item of each type is. A notification that is not here draws nothing and
is kept as it is.

Must never know: other threads, requests of the client.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, text_of
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.rpc import Frame
from callsheet.harness.codex.agents import Agents
from callsheet.harness.codex.app_server.asks import Asks
from callsheet.harness.codex.app_server.calls import Calls
from callsheet.harness.codex.app_server.shapes import ITEM, Item, item_of
from callsheet.harness.codex.app_server.talk import Talk
from callsheet.harness.codex.app_server.terminals import Terminals
from callsheet.harness.codex.talk import write_notice
from callsheet.registry import Registry

SAID = {"userMessage": "user", "agentMessage": "model", "hookPrompt": "hook"}
"""Items that are words, and whose."""
MODEL_ITEMS = frozenset({"reasoning"})
"""Raw response items of the model that are neither calls nor messages."""


class Thread:
    """One thread of the connection.

    Attributes:
        id: Its id; None for a log that names none.
        pen: Writes its stream.
        asks: Its requests.
        terminals: Its processes.
    """

    def __init__(
        self, name: str | None, pen: Pen, registry: Registry, version: str | None, streams: dict[str, str]
    ) -> None:
        self.id = name
        self.pen = pen
        self.terminals = Terminals(pen)
        self._agents = Agents(pen, registry, streams, self._known)
        self._calls = Calls(pen, registry, self.terminals, self._agents, version)
        self.asks = Asks(pen, self._calls, registry, version)
        self._talk = Talk(pen, registry)
        self._executions = frozenset(row.type for row in registry.item if row.execution)

    def _known(self, call_id: str) -> str | None:
        return self._calls.single(call_id) if self._calls.knows(call_id) else None

    def notice(self, frame: Frame) -> bool:
        """A notification of the server; False for one that nothing is made of."""
        handler = NOTIFICATIONS.get(frame.method or "")
        if handler is None:
            return False
        return handler(self, members_of(frame.params), f"{frame.pointer}/params")

    def close(self) -> None:
        """The connection is over."""
        self._calls.close()

    # -- items --------------------------------------------------------------------------------------------------

    def item_started(self, params: dict[str, Raw], pointer: str) -> bool:
        """``item/started``: the call, of an execution; of everything else the end counts."""
        item, where = self._item(params, pointer)
        if item is None or item.type not in self._executions:
            return False
        return self._calls.begun(item, where, params, text_of(params.get("turnId", ABSENT)))

    def completed(self, params: dict[str, Raw], pointer: str) -> bool:
        """``item/completed``."""
        item, where = self._item(params, pointer)
        kind = item.type if item is not None else None
        if item is None or not kind:
            return False
        if kind in self._executions:
            return self._calls.ended(item, where, params, text_of(params.get("turnId", ABSENT)))
        if kind in SAID:
            return self._talk.said(SAID[kind], item, where)
        if kind == "reasoning":
            self._talk.reasoned(item, where)
        elif kind == "plan":
            self._talk.planned(item, where)
        elif kind == "contextCompaction":
            self._talk.compacted(where)
        elif kind == "subAgentActivity":
            return self._agents.of_activity(item.agent_thread_id, item.agent_path, item.kind, item.id, where)
        return self.pen.written > 0

    @staticmethod
    def _item(params: dict[str, Raw], pointer: str) -> tuple[Item | None, str]:
        return item_of(params.get("item", ABSENT)), pointer.removesuffix("/params") + ITEM

    def raw_item(self, params: dict[str, Raw], pointer: str) -> bool:
        """``rawResponseItem/completed``: the exact calls and outputs, and what the harness told the model."""
        raw = params.get("item", ABSENT)
        members = members_of(raw)
        kind = text_of(members.get("type", ABSENT)) or ""
        by_model = text_of(members.get("role", ABSENT)) == "assistant" if kind == "message" else True
        if by_model and not kind.endswith("_output"):
            self._calls.spoke()
        where = f"{pointer}/item"
        if kind == "message":
            return self._talk.raw_message(raw, where)
        return self._calls.response_item(raw, where, text_of(params.get("turnId", ABSENT)))

    def response(self, params: dict[str, Raw], pointer: str) -> bool:
        """``rawResponse/completed``."""
        written = self._talk.response(params, pointer)
        self._calls.response_over()
        return written

    def printed(self, params: dict[str, Raw], pointer: str) -> bool:
        """A delta of output: shown while the call runs, kept unmapped."""
        self._calls.printed(text_of(params.get("itemId", ABSENT)), params.get("delta", ABSENT), pointer)
        return False

    # -- turns --------------------------------------------------------------------------------------------------

    def turn(self, params: dict[str, Raw], pointer: str) -> bool:
        """A turn begins or ends."""
        turn_id, over = self._talk.turn(params, pointer)
        if over:
            self._calls.turn_over(turn_id)
            self.terminals.turn_over(turn_id)
        return turn_id is not None

    def error(self, params: dict[str, Raw], pointer: str) -> bool:
        """An error, also of a request that is tried again: how the turn ended, the turn says."""
        words = members_of(params.get("error", ABSENT)).get("message", ABSENT)
        if text_of(words) is None:
            return False
        write_notice(self.pen, "error", words, f"{pointer}/error/message")
        return True

    def diff(self, params: dict[str, Raw], pointer: str) -> bool:
        """``turn/diff/updated``."""
        return self._talk.diff(params, pointer)

    def plan(self, params: dict[str, Raw], pointer: str) -> bool:
        """``turn/plan/updated``."""
        return self._talk.plan(params, pointer)

    def usage(self, params: dict[str, Raw], pointer: str) -> bool:
        """``thread/tokenUsage/updated``."""
        return self._talk.usage(params, pointer)

    def hook(self, params: dict[str, Raw], pointer: str) -> bool:
        """``hook/started``, ``hook/completed``."""
        return self._talk.hook(params, pointer)

    def reviewed(self, params: dict[str, Raw], pointer: str) -> bool:
        """``item/autoApprovalReview``."""
        return self.asks.reviewed(params, pointer)

    def touched(self, params: dict[str, Raw], pointer: str) -> bool:
        """``item/commandExecution/terminalInteraction``."""
        return self.terminals.touched(params, pointer)


NOTIFICATIONS: dict[str, Callable[[Thread, dict[str, Raw], str], bool]] = {
    "turn/started": Thread.turn,
    "turn/completed": Thread.turn,
    "turn/diff/updated": Thread.diff,
    "turn/plan/updated": Thread.plan,
    "item/started": Thread.item_started,
    "item/completed": Thread.completed,
    "item/commandExecution/outputDelta": Thread.printed,
    "item/commandExecution/terminalInteraction": Thread.touched,
    "item/autoApprovalReview/started": Thread.reviewed,
    "item/autoApprovalReview/completed": Thread.reviewed,
    "rawResponseItem/completed": Thread.raw_item,
    "rawResponse/completed": Thread.response,
    "thread/tokenUsage/updated": Thread.usage,
    "hook/started": Thread.hook,
    "hook/completed": Thread.hook,
    "error": Thread.error,
}
"""Notifications that say something of the session; every other one is noise and is kept unmapped."""
