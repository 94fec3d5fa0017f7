"""What a fold has seen of one stream's calls (the questions of ``claude_code.seen``).

Owns: which call ids stand on several calls so far, where each call stands and what tool it names, the input of the
calls that start processes, MCP servers and tools as frames name them, and whether the model has replied since.
A fold knows only what came before; what a later frame changes is a revision.

Must never know: records.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, items_of, members_of, text_of, value_of
from callsheet.harness.claude_code.deliveries import Delivery
from callsheet.harness.claude_code.mcp_servers import PREFIX, Servers, composite_name
from callsheet.harness.claude_code.replies import CallPlace
from callsheet.harness.claude_code.shapes import NativeBlock
from callsheet.records import Ref

STARTERS = frozenset({"Bash", "PowerShell", "Monitor"})
"""Tools that start what may outlive the call."""
INPUTS = 1024
"""Inputs of theirs that are kept."""
WORDS = ("command", "description")


class _NoRequests:
    """Frames never show what was sent."""

    present = False

    def delivery(self, offset: int, index: int) -> Delivery | None:
        """None: no request is recorded."""
        del offset, index
        return None


class Call:
    """One native call id: how many calls have it, the tool, the inference that made the (first) one."""

    __slots__ = ("count", "inference", "name", "offset")

    def __init__(self, name: str | None, inference: str | None, offset: int) -> None:
        self.count = 1
        self.name = name
        self.inference = inference
        self.offset = offset


class FrameSeen:
    """Calls of one stream, as far as the frames have told.

    Attributes:
        replied: For the result at hand: the model has replied since.
        servers: Names of the MCP servers that are configured.
        denials: Frames that record the refusal of a call.
    """

    evidence = _NoRequests()

    def __init__(self) -> None:
        self.mcp = Servers()
        self.mcp_calls: dict[str, tuple[str, str] | None] = {}
        self.replied = False
        self.servers: list[str] = []
        self.denials: dict[str, tuple[Ref, ...]] = {}
        self._calls: dict[str, Call] = {}
        self._tool_of: dict[str, str] = {}
        self._inputs: OrderedDict[str, dict[str, Any]] = OrderedDict()

    # -- what frames tell ---------------------------------------------------------------------------------------

    def add(self, block: NativeBlock, inference: str | None, offset: int) -> bool:
        """Takes note of a call; True if another one has its id already."""
        name = block.name if isinstance(block.name, str) else None
        if not isinstance(block.id, str):
            return False
        known = self._calls.get(block.id)
        if known is None:
            self._calls[block.id] = Call(name, inference, offset)
            if name in STARTERS:
                asked = value_of(block.input)
                asked = asked if isinstance(asked, dict) else {}
                self._inputs[block.id] = {word: asked[word] for word in WORDS if word in asked}
                if len(self._inputs) > INPUTS:
                    self._inputs.popitem(last=False)
            return False
        known.count += 1
        known.name = known.name if known.name == name else None
        self._inputs.pop(block.id, None)
        return True

    def configured(self, servers: Raw) -> None:
        """The MCP servers that ``init`` lists."""
        named = (text_of(members_of(one).get("name", ABSENT)) for one in items_of(servers))
        self.servers = [name for name in named if name]

    def tools(self, meta: Raw) -> dict[str, str]:
        """Display names by call id, from ``tool_use_meta``; takes note of the MCP tools that it names.

        The tool's name is exact. The server is the one that makes the call's name with it, if only one does.
        """
        titles: dict[str, str] = {}
        for one in items_of(meta):
            told = members_of(one)
            call_id = text_of(told.get("id", ABSENT))
            if call_id is None:
                continue
            title, tool = text_of(told.get("display_name", ABSENT)), text_of(told.get("tool_name", ABSENT))
            if title:
                titles[call_id] = title
            if tool is not None:
                self._tool_of[call_id] = tool
        return titles

    def identify(self, block: NativeBlock) -> None:
        """Settles server and tool of an MCP call (registry, ``[[provider]]``)."""
        name, call_id = block.name, block.id
        if not (isinstance(name, str) and isinstance(call_id, str) and name.startswith(PREFIX)):
            return
        tool = self._tool_of.pop(call_id, None)
        if tool is None:
            return
        fitting = [server for server in self.servers if composite_name(server, tool) == name]
        if len(fitting) == 1:
            self.mcp_calls[call_id] = (fitting[0], tool)

    # -- what writers ask ---------------------------------------------------------------------------------------

    def call(self, call_id: str | None) -> Call | None:
        """The call with a native id; of several, what they have in common."""
        return self._calls.get(call_id) if call_id is not None else None

    def input_of(self, call_id: str) -> dict[str, Any]:
        """Command and description of a call that starts a process."""
        return self._inputs.get(call_id, {})

    def duplicates(self, call_id: str) -> Sequence[Any]:
        """Something, when several calls have this id."""
        known = self._calls.get(call_id)
        return range(known.count) if known is not None and known.count > 1 else ()

    def sole(self, call_id: str | None) -> str | None:
        """The native id, unless it stands on several calls."""
        return None if call_id is not None and self.duplicates(call_id) else call_id

    def derived_id(self, call_id: str, uuid: str | None) -> str | None:
        """None: an append-only recording never derives ids."""
        del call_id, uuid
        return None

    def free_id(self, wanted: str) -> str:
        """An id for a call without one."""
        while wanted in self._calls:
            wanted = f"#{wanted}"
        return wanted

    def is_taken(self, call_id: str) -> bool:
        """Whether an id that no call has may be one made for a call."""
        return call_id.startswith("#") and call_id not in self._calls

    def answered(self, call_id: str, uuid: str | None) -> CallPlace | None:
        """The call, or what several with its id have in common."""
        del uuid
        known = self._calls.get(call_id)
        return None if known is None else CallPlace(known.offset, known.name)

    def contradicts(self, call_id: str, call: CallPlace, uuid: str | None) -> bool:
        """Never: frames name no record of a call."""
        del call_id, call, uuid
        return False

    def reply_follows(self, line: int, sidechain: bool, call: CallPlace | None) -> bool:
        """Whether the model has replied since the result at hand."""
        del line, sidechain, call
        return self.replied
