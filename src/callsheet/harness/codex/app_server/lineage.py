"""Who started whom among the threads of a connection.

Owns: the frames that say so, wherever they stand: the description of a thread names the one above it, and an item of
a thread names an agent that it started. An agent may speak before either comes. The first frame that says it counts;
an import knows all of them beforehand (``survey``), a live fold completes the head that it has settled
(``harness._port.fold``).

Must never know: streams, records other than refs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness._port.rpc import Frame
from callsheet.harness.codex.app_server.shapes import ITEM
from callsheet.records import Ref

CHILDREN_MOST = 1000
"""Threads of which it is kept in mind who started them."""
ROLE = "parent"
"""Role of the ref in the head of a stream."""


class Start(NamedTuple):
    """That a thread started another one, and the part of the frame that says so."""

    child: str
    parent: str
    pointer: str


class Origin(NamedTuple):
    """The thread that started one, with its evidence."""

    parent: str
    ref: Ref


class Lineage:
    """Follows the frames of one connection."""

    def __init__(self) -> None:
        self.origins: dict[str, Origin] = {}

    def take(self, frame: Frame, ref: Callable[[str, str], Ref]) -> list[str]:
        """The threads of which a frame is the first to say who started them.

        Args:
            frame: The frame.
            ref: Makes the ref to a part of it, of its role and its pointer.
        """
        found = []
        for child, parent, pointer in starts_in(frame):
            if (
                len(self.origins) < CHILDREN_MOST
                and child not in self.origins
                and not self._is_above(child, parent)
            ):
                self.origins[child] = Origin(parent, ref(ROLE, pointer))
                found.append(child)
        return found

    def _is_above(self, thread: str, below: str | None) -> bool:
        """Whether a thread started another one, also by way of others: nobody's ancestor is its own."""
        while below is not None and below != thread:
            origin = self.origins.get(below)
            below = origin.parent if origin is not None else None
        return below is not None


def starts_in(frame: Frame) -> Iterator[Start]:
    """What a frame says of who started whom."""
    if not frame.from_agent:
        return
    if frame.method == "item/completed":
        params = members_of(frame.params)
        parent = text_of(params.get("threadId", ABSENT))
        for child in _agents_of(members_of(params.get("item", ABSENT))) if parent else ():
            if isinstance(child, str) and child:
                yield Start(child, parent or "", frame.pointer + ITEM)
    elif frame.method in (None, "thread/started"):
        part, name = (frame.result, "result") if frame.method is None else (frame.params, "params")
        thread = members_of(members_of(part).get("thread", ABSENT))
        child, above = text_of(thread.get("id", ABSENT)), text_of(thread.get("parentThreadId", ABSENT))
        if child and above:
            yield Start(child, above, f"{frame.pointer}/{name}/thread")


def _agents_of(item: dict[str, Raw]) -> list[object]:
    """The agents that an item starts."""
    kind = text_of(item.get("type", ABSENT))
    if kind == "subAgentActivity" and text_of(item.get("kind", ABSENT)) == "started":
        return [text_of(item.get("agentThreadId", ABSENT))]
    if kind == "collabAgentToolCall" and text_of(item.get("tool", ABSENT)) == "spawnAgent":
        receivers = value_of(item.get("receiverThreadIds", ABSENT))
        return receivers if isinstance(receivers, list) else []
    return []
