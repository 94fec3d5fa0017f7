"""What a session update shows while a turn runs: half a message, a call that goes on, the tail of an output.

Owns the previews of one session (``seam.events``): bounded, each replacing the one before with its key. They are made
from the same updates as the records, and prove nothing. The text of a thought is not shown: the protocol does not say
whether it is a summary or raw reasoning (decision 11).

Must never know: records, requests, the end of a turn.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw, Struct, field

from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, text_of
from callsheet.harness._port.tails import Tail, last_words
from callsheet.harness.acp.calls import FINAL
from callsheet.harness.acp.parts import terminals_in
from callsheet.harness.acp.terminals import decoded
from callsheet.seam import CallPreview, Event, MessagePreview, Noted, OutputPreview, ThoughtPreview
from callsheet.seam.events import TEXT_BYTES

CALLS_MOST = 256
"""Running calls that are kept in mind; the one that was heard of longest ago is forgotten first."""
TEXTS_MOST = 8
"""Messages that a later piece may still be added to."""
INPUT_MOST = 16 * 1024
"""Characters of arguments that are shown."""
NOTE_MOST = 200


class Shown(Struct):
    """What was last shown of a call."""

    name: str | None = None
    title: str | None = None
    input: str | None = None
    status: str | None = None
    parent: str | None = None
    text: bytes = b""
    terminals: list[str] = field(default_factory=list)
    call: CallPreview | None = None
    output: OutputPreview | None = None


class Previews:
    """The previews of one session."""

    def __init__(self) -> None:
        self.version = 1
        self._calls: dict[str, Shown] = {}
        self._ended: set[str] = set()
        self._tails: dict[str, Tail] = {}
        self._texts: dict[str, str] = {}
        self._speaker: str | None = None
        self._count = 0

    def update(self, name: str, update: dict[str, Raw]) -> list[Event]:
        """What an update shows; most show nothing that a record will not show at once."""
        handler = UPDATES.get(name)
        return handler(self, update) if handler is not None else []

    def over(self) -> None:
        """A turn has ended: the next one's messages are others."""
        self._speaker = None
        self._texts.clear()
        self._calls.clear()
        self._ended.clear()

    # -- talk ---------------------------------------------------------------------------------------------------

    def _key(self, author: str, update: dict[str, Raw]) -> tuple[str, bool]:
        """The key of what is being said, and whether it is new."""
        name = text_of(update.get("messageId", ABSENT))
        if name is None and self._speaker != author:
            self._count += 1
        self._speaker = author if name is None else None
        key = f"{author} {self._count}" if name is None else name
        new = key not in self._texts
        if new:
            self._texts[key] = ""
            while len(self._texts) > TEXTS_MOST:
                self._texts.pop(next(iter(self._texts)))
        return key, new

    def message(self, update: dict[str, Raw], whole: bool) -> list[Event]:
        """A piece of a message of the model, or (v2) what it is now."""
        key, _ = self._key("model", update)
        content = update.get("content", ABSENT)
        if whole:
            if not content:
                return []
            self._texts[key] = ""
        said = "".join(_text_in(item) for item in (items_of(content) if whole else [content]))
        self._texts[key] = last_words(self._texts[key] + said)
        return [MessagePreview(key=key, text=self._texts[key])]

    def thought(self, update: dict[str, Raw]) -> list[Event]:
        """The model thinks; said once for each thought."""
        key, new = self._key("thought", update)
        return [ThoughtPreview(key=key, text="")] if new else []

    def mode(self, update: dict[str, Raw]) -> list[Event]:
        """The agent changed its mode."""
        name = text_of(update.get("currentModeId", ABSENT))
        return [Noted(f"mode: {name[:NOTE_MOST]}")] if name else []

    # -- calls --------------------------------------------------------------------------------------------------

    def call(self, update: dict[str, Raw], begins: bool) -> list[Event]:
        """A call, as far as it is known; in v1 one ``begins`` anew, also under the id of one that has ended."""
        name = text_of(update.get("toolCallId", ABSENT))
        if name is None:
            return []
        self._speaker = None
        if name in self._ended and not begins:
            return []  # what comes later of a call that has ended, its records show
        self._ended.discard(name)
        shown = self._calls.pop(name, None) or Shown()
        self._take(shown, update)
        if shown.status in FINAL:
            self._ended.add(name)
            return []
        self._calls[name] = shown
        while len(self._calls) > CALLS_MOST:
            self._calls.pop(next(iter(self._calls)))
        return [*self._call(name, shown), *self._output(name, shown)]

    def _take(self, shown: Shown, update: dict[str, Raw]) -> None:
        for member in ("name", "title", "status"):
            if member in update:
                told = text_of(update[member])
                if told is not None or (self.version > 1 and is_null(update[member])):
                    setattr(shown, member, told[:TEXT_BYTES] if told is not None else None)
        if mark(update.get("rawInput", ABSENT)) == b"{":
            shown.input = bytes(update["rawInput"]).decode("utf-8", "replace")[:INPUT_MOST]
        if "content" in update and not (self.version == 1 and is_null(update["content"])):
            shown.terminals = terminals_in(update["content"])
            shown.text = "\n".join(
                text for item in items_of(update["content"]) if (text := _text_in_tool(item))
            ).encode("utf-8", "replace")
        for vendor in members_of(update.get("_meta", ABSENT)).values():
            parent = text_of(members_of(vendor).get("parentToolUseId", ABSENT))
            shown.parent = parent or shown.parent
        self._meta(shown, update.get("_meta", ABSENT))

    def _meta(self, shown: Shown, meta: Raw) -> None:
        """v1 display terminals."""
        for key, told in members_of(meta).items():
            name = (
                text_of(members_of(told).get("terminal_id", ABSENT)) if key.startswith("terminal_") else None
            )
            words = text_of(members_of(told).get("data", ABSENT)) if name else None
            if name and words is not None:
                if name not in shown.terminals:
                    shown.terminals.append(name)
                self._tail(name).put(words.encode("utf-8", "replace"))

    def chunk(self, update: dict[str, Raw]) -> list[Event]:
        """v2: one more item of a call's content."""
        name = text_of(update.get("toolCallId", ABSENT))
        shown = self._calls.get(name or "")
        if name is None or shown is None:
            return []
        item = update.get("content", ABSENT)
        told = text_of(members_of(item).get("terminalId", ABSENT))
        if told:
            shown.terminals.append(told)
        else:
            more = _text_in_tool(item).encode("utf-8", "replace")
            shown.text = (shown.text + b"\n" + more if shown.text else more)[-2 * TEXT_BYTES :]
        return self._output(name, shown)

    def _call(self, name: str, shown: Shown) -> list[Event]:
        preview = CallPreview(
            call=name,
            name=shown.name,
            title=shown.title,
            input=shown.input,
            running=shown.status == "in_progress",
            parent=shown.parent,
        )
        if preview == shown.call:
            return []
        shown.call = preview
        return [preview]

    def _output(self, name: str, shown: Shown) -> list[Event]:
        tails = [self._tails[one] for one in shown.terminals if one in self._tails]
        if tails:
            text, omitted = tails[-1].shown()
        else:
            tail = Tail()
            tail.put(shown.text)
            text, omitted = tail.shown()
        preview = OutputPreview(call=name, text=text, omitted_bytes=omitted)
        if preview == shown.output or (not text and shown.output is None):
            return []
        shown.output = preview
        return [preview]

    # -- terminals ----------------------------------------------------------------------------------------------

    def _tail(self, name: str) -> Tail:
        tail = self._tails.get(name)
        if tail is None:
            tail = self._tails[name] = Tail()
            while len(self._tails) > CALLS_MOST:
                self._tails.pop(next(iter(self._tails)))
        return tail

    def terminal(self, update: dict[str, Raw], appends: bool) -> list[Event]:
        """v2: output of a terminal, a piece or what it is now."""
        name = text_of(update.get("terminalId", ABSENT))
        data = (
            update.get("data", ABSENT)
            if appends
            else members_of(update.get("output", ABSENT)).get("data", ABSENT)
        )
        told = decoded(data)
        if name is None or told is None:
            return []
        if appends:
            self._tail(name).put(told)
        else:
            self._tail(name).replace(told)
        return self._of_terminal(name)

    def read(self, name: str, text: str) -> list[Event]:
        """v1: what the agent read of a terminal that its client owns."""
        self._tail(name).replace(text.encode("utf-8", "replace"))
        return self._of_terminal(name)

    def _of_terminal(self, name: str) -> list[Event]:
        return [
            event
            for call, shown in self._calls.items()
            if name in shown.terminals
            for event in self._output(call, shown)
        ]


def _text_in(block: Raw) -> str:
    members = members_of(block)
    return (
        (text_of(members.get("text", ABSENT)) or "") if text_of(members.get("type", ABSENT)) == "text" else ""
    )


def _text_in_tool(item: Raw) -> str:
    members = members_of(item)
    return (
        _text_in(members["content"])
        if text_of(members.get("type", ABSENT)) == "content" and "content" in members
        else ""
    )


UPDATES: dict[str, Callable[[Previews, dict[str, Raw]], list[Event]]] = {
    "agent_message_chunk": lambda at, update: at.message(update, False),
    "agent_message": lambda at, update: at.message(update, True),
    "agent_thought_chunk": lambda at, update: at.thought(update),
    "agent_thought": lambda at, update: at.thought(update),
    "tool_call": lambda at, update: at.call(update, True),
    "tool_call_update": lambda at, update: at.call(update, False),
    "tool_call_content_chunk": lambda at, update: at.chunk(update),
    "terminal_update": lambda at, update: at.terminal(update, False),
    "terminal_output_chunk": lambda at, update: at.terminal(update, True),
    "current_mode_update": lambda at, update: at.mode(update),
}
"""Updates that show something before their record settles."""
