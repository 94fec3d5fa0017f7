"""A scripted model that speaks the OpenAI Responses API: ``POST /v1/responses`` as events, ``GET /v1/models``.

Owns: what such a model may say in one response (words, thoughts, calls), the events in which it says it, and which
script answers a request: the first whose mark stands in a user's words, so that each agent of several has a script of
its own. Nothing is generated: the same requests get the same answers. Every request is kept, as evidence of what
reached the model.

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
USAGE = {"input": 120, "cached": 40, "output": 30, "reasoning": 8}


class Say(Struct, frozen=True):
    """Words for the person."""

    text: str


class Think(Struct, frozen=True):
    """Reasoning: a summary that the provider shows, and the raw chain of thought, where there is one."""

    summary: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()


class Call(Struct, frozen=True):
    """A call of a function, with its arguments as JSON (or as text that is none)."""

    id: str
    name: str
    arguments: Any
    namespace: str | None = None


class Custom(Struct, frozen=True):
    """A call of a tool that takes free text."""

    id: str
    name: str
    input: str


class Search(Struct, frozen=True):
    """A search that the provider made itself."""

    id: str
    query: str


Item = Say | Think | Call | Custom | Search


class Response(Struct, frozen=True):
    """One response: its items in order.

    Attributes:
        items: What the model says.
        wait: Seconds before it begins.
        stall: Seconds that it stays open after the last item: an interrupt finds it running.
    """

    items: tuple[Item, ...]
    wait: float = 0
    stall: float = 0


class Refusal(Struct, frozen=True):
    """A request that the provider refuses."""

    status: int
    message: str


Answer = Response | Refusal


def respond(*items: Item, wait: float = 0, stall: float = 0) -> Response:
    """A response, written short."""
    return Response(items, wait, stall)


class Asked(Struct, frozen=True):
    """A request that came: which script answered it, and its body."""

    script: str
    body: dict[str, Any]

    @property
    def outputs(self) -> dict[str, Any]:
        """Results of tools that it carries, by call id."""
        found = {}
        for item in self.body.get("input") or ():
            if isinstance(item, dict) and str(item.get("type", "")).endswith("_output"):
                found[str(item.get("call_id"))] = item.get("output")
        return found


Script = Sequence[Answer | Callable[[Asked], Answer]]
"""Answers in order; one that depends on what a tool gave back is made of the request."""


class ResponsesModel(Struct):
    """A model with a script for each kind of request.

    Attributes:
        scripts: Mark to script; the mark that stands in a user's words, the empty one for all others.
        names: Names of the models that it claims to be.
        asked: Every request, in order.
    """

    scripts: Mapping[str, Script]
    names: tuple[str, ...] = ("demo",)
    asked: list[Asked] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)
    _serial: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: Any = field(default_factory=threading.Lock)

    def serve(self, method: str, path: str, data: bytes) -> Served | None:
        """Answers a request; None for a path that is not ours."""
        path = path.partition("?")[0]
        if method == "GET" and path.endswith("/models"):
            listed = [{"id": name, "object": "model", "owned_by": "scripted"} for name in self.names]
            return json_answer(200, {"object": "list", "data": listed, "models": []})
        if method == "POST" and path.endswith("/responses"):
            return self._respond(data)
        return None

    def _respond(self, data: bytes) -> Served:
        try:
            body = json.loads(data)
        except ValueError:
            return json_answer(
                400, {"error": {"message": "the body is no JSON", "type": "invalid_request_error"}}
            )
        with self._lock:
            asked = self._taken(body)
            answer = self._next(asked)
            serials = itertools.islice(
                self._serial, len(answer.items) + 1 if isinstance(answer, Response) else 0
            )
            numbers = list(serials)
        if isinstance(answer, Refusal):
            return json_answer(answer.status, {"error": {"message": answer.message, "type": "scripted"}})
        return Served(
            200, "text/event-stream", events(answer, numbers, str(body.get("model", self.names[0])))
        )

    def _taken(self, body: dict[str, Any]) -> Asked:
        told = _said_by_users(body.get("input"))
        asked = Asked(next((mark for mark in self.scripts if mark and mark in told), ""), body)
        self.asked.append(asked)
        return asked

    def _next(self, asked: Asked) -> Answer:
        name = asked.script
        script = self.scripts.get(name, ())
        at = self._positions.get(name, 0)
        self._positions[name] = at + 1
        if at >= len(script):
            return respond(Say(f"(the script {name!r} has no response {at + 1})"))
        answer = script[at]
        return answer if isinstance(answer, Response | Refusal) else answer(asked)


def _said_by_users(items: Any) -> str:
    """The words of users in a request; a call that hands words on to another agent says nothing here."""
    listed = items if isinstance(items, list) else []
    said = [one.get("content") for one in listed if isinstance(one, dict) and one.get("role") == "user"]
    return "\n".join(json.dumps(content, ensure_ascii=False) for content in said)


# -- the events of a response -------------------------------------------------------------------------------------


def events(response: Response, serials: Sequence[int], model: str) -> Iterator[bytes | Pause]:
    """A response as server-sent events.

    Args:
        response: What is said.
        serials: A number for each item, and one for the response.
        model: The model that it comes from.
    """
    number = itertools.count()

    def event(kind: str, **members: Any) -> bytes:
        data = json.dumps({"type": kind, "sequence_number": next(number), **members}, ensure_ascii=False)
        return f"event: {kind}\ndata: {data}\n\n".encode()

    head = {
        "id": f"resp_{serials[-1]:04}",
        "object": "response",
        "model": model,
        "status": "in_progress",
        "output": [],
    }
    if response.wait:
        yield Pause(response.wait)
    yield event("response.created", response=head)
    items = [_item(item, serial) for item, serial in zip(response.items, serials, strict=False)]
    for index, item in enumerate(items):
        yield event("response.output_item.added", output_index=index, item=_blank(item))
        for kind, members in _deltas(item):
            yield event(kind, output_index=index, item_id=item["id"], **members)
        yield event("response.output_item.done", output_index=index, item=item)
    if response.stall:
        yield Pause(response.stall)
    yield event(
        "response.completed", response={**head, "status": "completed", "output": items, "usage": _usage()}
    )


def _usage() -> dict[str, Any]:
    return {
        "input_tokens": USAGE["input"],
        "input_tokens_details": {"cached_tokens": USAGE["cached"]},
        "output_tokens": USAGE["output"],
        "output_tokens_details": {"reasoning_tokens": USAGE["reasoning"]},
        "total_tokens": USAGE["input"] + USAGE["output"],
    }


def _item(item: Item, serial: int) -> dict[str, Any]:
    """An item as the API words it."""
    match item:
        case Say():
            part = {"type": "output_text", "text": item.text, "annotations": []}
            name = f"msg_{serial:04}"
            return {
                "type": "message",
                "id": name,
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        case Think():
            made: dict[str, Any] = {"type": "reasoning", "id": f"rs_{serial:04}", "encrypted_content": None}
            made["summary"] = [{"type": "summary_text", "text": words} for words in item.summary]
            if item.raw:
                made["content"] = [{"type": "reasoning_text", "text": words} for words in item.raw]
            return made
        case Call():
            arguments = item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments)
            made = {
                "type": "function_call",
                "id": f"fc_{serial:04}",
                "call_id": item.id,
                "status": "completed",
            }
            made |= {"name": item.name, "arguments": arguments}
            return made if item.namespace is None else {**made, "namespace": item.namespace}
        case Custom():
            made = {
                "type": "custom_tool_call",
                "id": f"ctc_{serial:04}",
                "call_id": item.id,
                "status": "completed",
            }
            return made | {"name": item.name, "input": item.input}
        case Search():
            action = {"type": "search", "query": item.query}
            return {"type": "web_search_call", "id": item.id, "status": "completed", "action": action}
        case _:
            assert_never(item)


def _blank(item: dict[str, Any]) -> dict[str, Any]:
    """The item before any of it was sent."""
    begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
    for member in ("content", "summary"):
        if member in begun:
            begun[member] = []
    for member in ("arguments", "input"):
        if member in begun:
            begun[member] = ""
    return begun


def _pieces(words: str) -> Iterator[str]:
    for start in range(0, len(words), PIECE):
        yield words[start : start + PIECE]


def _deltas(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events that bring an item piece by piece."""
    match item["type"]:
        case "message":
            for index, part in enumerate(item["content"]):
                blank = {**part, "text": ""}
                yield "response.content_part.added", {"content_index": index, "part": blank}
                for piece in _pieces(part["text"]):
                    yield "response.output_text.delta", {"content_index": index, "delta": piece}
                yield "response.output_text.done", {"content_index": index, "text": part["text"]}
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                blank = {**part, "text": ""}
                yield "response.reasoning_summary_part.added", {"summary_index": index, "part": blank}
                for piece in _pieces(part["text"]):
                    yield "response.reasoning_summary_text.delta", {"summary_index": index, "delta": piece}
                yield "response.reasoning_summary_text.done", {"summary_index": index, "text": part["text"]}
            for index, part in enumerate(item.get("content", ())):
                for piece in _pieces(part["text"]):
                    yield "response.reasoning_text.delta", {"content_index": index, "delta": piece}
        case "function_call":
            for piece in _pieces(item["arguments"]):
                yield "response.function_call_arguments.delta", {"delta": piece}
        case "custom_tool_call":
            for piece in _pieces(item["input"]):
                yield "response.custom_tool_call_input.delta", {"call_id": item["call_id"], "delta": piece}
        case _:
            return  # a search comes whole
