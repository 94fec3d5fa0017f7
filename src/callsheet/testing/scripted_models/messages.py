"""A scripted model that speaks the Anthropic Messages API: ``POST /v1/messages``, and ``count_tokens`` below it.

Owns: what such a model may say in one message (words, thoughts, calls), the events in which it says it, and which
script answers a request: the first whose mark stands in the conversation's first user message, so that each agent of
several has a script of its own. A request that offers no tools is the agent's own business (a title, a summary) and
takes nothing from a script. Nothing is generated: the same requests get the same answers. Every request is kept, as
evidence of what reached the model.

Must never know: sockets, files, any one agent.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from msgspec import Struct, field

from callsheet.testing.scripted_models.serving import Pause, Served, json_answer

PIECE = 24
"""Characters that one delta carries."""
USAGE = {
    "input_tokens": 120,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 40,
    "output_tokens": 30,
}
ASIDE = "Noted."
"""What the model says to a request that offers no tools."""


class Say(Struct, frozen=True):
    """Words for the person."""

    text: str


class Think(Struct, frozen=True):
    """Thinking, with the signature that the provider puts under it."""

    text: str
    signature: str = "sig"


class Use(Struct, frozen=True):
    """A call of a tool, with its arguments as JSON (or as text that is none)."""

    id: str
    name: str
    input: Any


Block = Say | Think | Use


class Message(Struct, frozen=True):
    """One message: its blocks in order.

    Attributes:
        blocks: What the model says.
        wait: Seconds before it begins.
        pause: Seconds between two pieces of it: an interrupt finds it half said.
    """

    blocks: tuple[Block, ...]
    wait: float = 0
    pause: float = 0


class Refusal(Struct, frozen=True):
    """A request that the provider refuses."""

    status: int
    message: str
    type: str = "invalid_request_error"


Answer = Message | Refusal


def say(*blocks: Block | str, wait: float = 0, pause: float = 0) -> Message:
    """A message, written short; a text stands for words."""
    return Message(tuple(Say(one) if isinstance(one, str) else one for one in blocks), wait, pause)


class Asked(Struct, frozen=True):
    """A request that came: which script answered it, and its body."""

    script: str
    body: dict[str, Any]

    @property
    def results(self) -> dict[str, Any]:
        """Results of tools that it carries, by call id."""
        found = {}
        for message in self.body.get("messages") or ():
            content = message.get("content") if isinstance(message, dict) else None
            for block in content if isinstance(content, list) else ():
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    found[str(block.get("tool_use_id"))] = block.get("content")
        return found


Script = Sequence[Answer | Callable[[Asked], Answer]]
"""Answers in order; one that depends on what a tool gave back is made of the request."""


class MessagesModel(Struct):
    """A model with a script for each conversation.

    Attributes:
        scripts: Mark to script; the mark that stands in the first user message, the empty one for all others.
        asked: Every request, in order.
    """

    scripts: Mapping[str, Script]
    asked: list[Asked] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)
    _serial: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: Any = field(default_factory=threading.Lock)

    def serve(self, method: str, path: str, data: bytes) -> Served | None:
        """Answers a request; None for a path that is not ours."""
        path = path.partition("?")[0]
        if method != "POST" or not path.endswith(("/messages", "/messages/count_tokens")):
            return None
        try:
            body = json.loads(data)
        except ValueError:
            return _refused(Refusal(400, "the body is no JSON"))
        if path.endswith("/count_tokens"):
            return json_answer(200, {"input_tokens": USAGE["input_tokens"]})
        with self._lock:
            asked = Asked(self._script_of(body), body)
            self.asked.append(asked)
            answer = self._next(asked)
            number = next(self._serial)
        if isinstance(answer, Refusal):
            return _refused(answer)
        name = str(body.get("model", "scripted"))
        if not body.get("stream"):
            return json_answer(200, whole(answer, number, name))
        return Served(200, "text/event-stream", events(answer, number, name))

    def _script_of(self, body: dict[str, Any]) -> str:
        messages = body.get("messages")
        told = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
        first = next((one.get("content") for one in told if one.get("role") == "user"), "")
        words = json.dumps(first, ensure_ascii=False)
        return next((mark for mark in self.scripts if mark and mark in words), "")

    def _next(self, asked: Asked) -> Answer:
        if not asked.body.get("tools"):
            return say(ASIDE)
        name = asked.script
        script = self.scripts.get(name, ())
        at = self._positions.get(name, 0)
        self._positions[name] = at + 1
        if at >= len(script):
            return say(f"(the script {name!r} has no message {at + 1})")
        answer = script[at]
        return answer if isinstance(answer, Message | Refusal) else answer(asked)


def _refused(refusal: Refusal) -> Served:
    error = {"type": refusal.type, "message": refusal.message}
    return json_answer(refusal.status, {"type": "error", "error": error})


# -- a message as the API words it ----------------------------------------------------------------------------------


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Say():
            return {"type": "text", "text": block.text}
        case Think():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case Use():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case _:
            assert_never(block)


def whole(message: Message, number: int, model: str) -> dict[str, Any]:
    """A message in one piece."""
    calls = any(isinstance(block, Use) for block in message.blocks)
    return {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_block(block) for block in message.blocks],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": dict(USAGE),
    }


def events(message: Message, number: int, model: str) -> Iterator[bytes | Pause]:
    """A message as server-sent events.

    Args:
        message: What is said.
        number: Its number, for its id.
        model: The model that it comes from.
    """

    def event(kind: str, **members: Any) -> bytes:
        return (
            f"event: {kind}\ndata: {json.dumps({'type': kind, **members}, ensure_ascii=False)}\n\n".encode()
        )

    told = whole(message, number, model)
    begun = {**told, "content": [], "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
    if message.wait:
        yield Pause(message.wait)
    yield event("message_start", message=begun)
    for index, block in enumerate(message.blocks):
        yield event("content_block_start", index=index, content_block=_blank(block))
        for delta in _deltas(block):
            yield event("content_block_delta", index=index, delta=delta)
            if message.pause:
                yield Pause(message.pause)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": told["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": USAGE["output_tokens"]})
    yield event("message_stop")


def _blank(block: Block) -> dict[str, Any]:
    """The block before any of it was sent."""
    empty: dict[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, value) for name, value in _block(block).items()}


def _pieces(words: str) -> Iterator[str]:
    for start in range(0, len(words), PIECE):
        yield words[start : start + PIECE]


def _deltas(block: Block) -> Iterator[dict[str, Any]]:
    """The pieces that bring a block."""
    match block:
        case Say():
            for piece in _pieces(block.text):
                yield {"type": "text_delta", "text": piece}
        case Think():
            for piece in _pieces(block.text):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block.signature}
        case Use():
            words = (
                block.input if isinstance(block.input, str) else json.dumps(block.input, ensure_ascii=False)
            )
            for piece in _pieces(words):
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            assert_never(block)
