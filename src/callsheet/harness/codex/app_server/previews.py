"""What the server shows of a turn before its record settles: half a message, a summary, the tail of an output.

Owns the previews of one thread (``seam.events``): bounded, each replacing the one before with its key. They are made
from the same frames as the records, and prove nothing. Raw chain of thought is never shown (decision 11).

Must never know: records, requests, the end of a turn.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, text_of
from callsheet.harness._port.tails import Tail, last_words
from callsheet.harness.codex.app_server.shapes import item_of
from callsheet.harness.codex.shapes import text
from callsheet.registry import load
from callsheet.seam import CallPreview, Event, MessagePreview, Noted, OutputPreview, ThoughtPreview

CALLS_MOST = 256
"""Running calls whose output is kept in mind; the oldest is forgotten first."""
TEXTS_MOST = 16
"""Texts that a later piece may still be added to."""
TITLE_MOST = 2_000
NOTE_MOST = 500
NAMED = frozenset({"mcpToolCall", "dynamicToolCall"})
"""Items whose ``tool`` is the tool's own name."""


class Previews:
    """The previews of one thread."""

    def __init__(self) -> None:
        self._executions = frozenset(row.type for row in load("codex").item if row.execution)
        self._outputs: dict[str, Tail] = {}
        self._texts: dict[str, str] = {}

    def notice(self, method: str, params: dict[str, Raw]) -> list[Event]:
        """What a notification shows; most show nothing that a record will not show at once."""
        handler = NOTICES.get(method)
        return handler(self, params) if handler is not None else []

    def over(self) -> None:
        """A turn has ended."""
        self._texts.clear()

    def started(self, params: dict[str, Raw]) -> list[Event]:
        """An item begins."""
        item = item_of(params.get("item", ABSENT))
        name = text(item.id) if item is not None else None
        if item is None or name is None:
            return []
        if item.type == "reasoning":
            return [ThoughtPreview(key=name, text="")]
        if item.type not in self._executions:
            return []
        title = text(item.command) or text(item.query) or text(item.path)
        tool = text(item.tool) if item.type in NAMED else None
        return [CallPreview(call=name, name=tool, title=title[:TITLE_MOST] if title else None, running=True)]

    def ended(self, params: dict[str, Raw]) -> list[Event]:
        """An item is over: its record has all of it."""
        name = text_of(members_of(params.get("item", ABSENT)).get("id", ABSENT))
        if name is not None:
            self._outputs.pop(name, None)
            self._texts.pop(name, None)
        return []

    def printed(self, params: dict[str, Raw]) -> list[Event]:
        """A piece of a running command's output; the beginning may be missing."""
        name, piece = (text_of(params.get(member, ABSENT)) for member in ("itemId", "delta"))
        if not name or not piece:
            return []
        tail = self._outputs.pop(name, None) or Tail()
        self._outputs[name] = tail
        while len(self._outputs) > CALLS_MOST:
            self._outputs.pop(next(iter(self._outputs)))
        tail.put(piece.encode("utf-8", "replace"))
        shown, omitted = tail.shown()
        return [OutputPreview(call=name, text=shown, omitted_bytes=omitted)]

    def _text(self, params: dict[str, Raw], part: str) -> tuple[str, str] | None:
        name, piece = (text_of(params.get(member, ABSENT)) for member in ("itemId", "delta"))
        if not name or piece is None:
            return None
        key = f"{name} {part}" if part else name
        self._texts[key] = last_words(self._texts.pop(key, "") + piece)
        while len(self._texts) > TEXTS_MOST:
            self._texts.pop(next(iter(self._texts)))
        return key, self._texts[key]

    def message(self, params: dict[str, Raw]) -> list[Event]:
        """A piece of a message of the model."""
        found = self._text(params, "")
        return [MessagePreview(key=found[0], text=found[1])] if found else []

    def summary(self, params: dict[str, Raw]) -> list[Event]:
        """A piece of a summary of the model's reasoning."""
        found = self._text(params, bytes(params.get("summaryIndex", ABSENT)).decode("ascii", "replace"))
        return [ThoughtPreview(key=found[0], text=found[1])] if found else []

    def error(self, params: dict[str, Raw]) -> list[Event]:
        """Something went wrong, and may be tried again."""
        words = text_of(members_of(params.get("error", ABSENT)).get("message", ABSENT))
        return [Noted(words[:NOTE_MOST])] if words else []

    def server(self, params: dict[str, Raw]) -> list[Event]:
        """An MCP server did not start."""
        if text_of(params.get("status", ABSENT)) != "failed":
            return []
        name, words = (text_of(params.get(member, ABSENT)) or "" for member in ("name", "error"))
        return [Noted(f"the MCP server {name} did not start: {words}"[:NOTE_MOST])]


NOTICES: dict[str, Callable[[Previews, dict[str, Raw]], list[Event]]] = {
    "item/started": Previews.started,
    "item/completed": Previews.ended,
    "item/commandExecution/outputDelta": Previews.printed,
    "item/agentMessage/delta": Previews.message,
    "item/reasoning/summaryTextDelta": Previews.summary,
    "error": Previews.error,
    "mcpServer/startupStatus/updated": Previews.server,
}
"""Notifications that show something before its record settles."""
