"""What frames show of a turn before its records settle: a call in the making, half a message.

Owns the previews of one connection (``seam.events``): bounded, each replacing the one before with its key. Whether a
thought's text is a summary, no frame says: only that the model thinks is shown (decision 11). No frame carries the
output of a running command.

Must never know: records, requests, the end of a turn.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of, whole_number_of
from callsheet.harness._port.tails import last_words
from callsheet.seam import CallPreview, Event, MessagePreview, Noted, ThoughtPreview

BLOCKS_MOST = 64
"""Blocks in the making that are kept in mind."""
NOTE_MOST = 500
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class Block(Struct):
    """A block in the making."""

    kind: str
    key: str
    name: str | None = None
    parent: str | None = None
    text: str = ""


class Previews:
    """The previews of one connection."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str | None, int], Block] = {}

    def over(self) -> None:
        """A turn has ended."""
        self._blocks.clear()

    def piece(self, frame: dict[str, Raw]) -> list[Event]:
        """A ``stream_event``."""
        event = members_of(frame.get("event", ABSENT))
        parent = text_of(frame.get("parent_tool_use_id", ABSENT))
        index = whole_number_of(event.get("index", ABSENT))
        kind = text_of(event.get("type", ABSENT))
        if kind == "message_start":
            for place in [place for place in self._blocks if place[0] == parent]:
                del self._blocks[place]
        if index is None:
            return []
        if kind == "content_block_start":
            told = members_of(event.get("content_block", ABSENT))
            named = text_of(told.get("id", ABSENT))
            message = text_of(frame.get("api_message_id", ABSENT)) or text_of(frame.get("uuid", ABSENT)) or ""
            made = Block(
                text_of(told.get("type", ABSENT)) or "",
                named or f"{message}/{index}",
                text_of(told.get("name", ABSENT)),
                parent,
            )
            self._blocks[(parent, index)] = made
            while len(self._blocks) > BLOCKS_MOST:
                self._blocks.pop(next(iter(self._blocks)))
            return self._shown(made)
        if kind == "content_block_delta" and (block := self._blocks.get((parent, index))) is not None:
            delta = members_of(event.get("delta", ABSENT))
            words = text_of(delta.get("partial_json", ABSENT)) or text_of(delta.get("text", ABSENT))
            if words:
                block.text = last_words(block.text + words)
                return self._shown(block)
        if kind == "content_block_stop":
            self._blocks.pop((parent, index), None)
        return []

    def _shown(self, block: Block) -> list[Event]:
        if block.kind in CALLS:
            return [CallPreview(call=block.key, name=block.name, input=block.text, parent=block.parent)]
        if block.kind in ("thinking", "redacted_thinking"):
            return [ThoughtPreview(key=block.key, text="")]
        if block.kind == "text" and block.text and block.parent is None:
            return [MessagePreview(key=block.key, text=block.text)]
        return []

    def runs(self, frame: dict[str, Raw]) -> list[Event]:
        """A task in the foreground, or a heartbeat: the call runs."""
        if text_of(frame.get("type", ABSENT)) == "tool_progress":
            beat = value_of(frame.get("heartbeat", ABSENT)) is True
            call = text_of(frame.get("parent_tool_use_id" if beat else "tool_use_id", ABSENT))
            name = text_of(frame.get("tool_name", ABSENT))
        else:
            call, name = text_of(frame.get("tool_use_id", ABSENT)), None
        return [CallPreview(call=call, name=name, running=True)] if call else []

    def retries(self, frame: dict[str, Raw]) -> list[Event]:
        """A request to the model failed, and is made again."""
        words = text_of(frame.get("error", ABSENT)) or "no reason given"
        attempt, most = (value_of(frame.get(name, ABSENT)) for name in ("attempt", "max_retries"))
        return [Noted(f"the request to the model failed, attempt {attempt} of {most}: {words}"[:NOTE_MOST])]
