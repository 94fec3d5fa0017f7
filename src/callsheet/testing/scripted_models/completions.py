"""A scripted model that speaks the OpenAI Chat Completions API: ``POST …/chat/completions``, ``GET …/models``.

Owns: the chunks in which such a model says something. ``scripts`` picks it; a request without tools asks for a title.
What is said is written as for ``responses``: words, thoughts (their summary), calls. Every request is kept.

Must never know: sockets, files, any one agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from callsheet.testing.scripted_models import scripts
from callsheet.testing.scripted_models.responses import PIECE, USAGE, Call, Response, Say, Think, respond
from callsheet.testing.scripted_models.scripts import Scripted
from callsheet.testing.scripted_models.serving import Pause, Served, json_answer

ASIDE = respond(Say("A title"))
"""What the model says to a request that offers no tools."""


class Asked(scripts.Asked, frozen=True):
    """A request that came: which script answered it, and its body."""

    @property
    def outputs(self) -> dict[str, Any]:
        """Results of tools that it carries, by call id."""
        told = self.body.get("messages") or ()
        return {str(one.get("tool_call_id")): one.get("content") for one in told if one.get("role") == "tool"}


class CompletionsModel(Scripted):
    """A model with a script for each conversation.

    Attributes:
        names: Names of the models that it claims to be.
    """

    names: tuple[str, ...] = ("demo",)

    def serve(self, method: str, path: str, data: bytes) -> Served | None:
        """Answers a request; None for a path that is not ours."""
        path = path.partition("?")[0]
        if method == "GET" and path.endswith("/models"):
            listed = [{"id": name, "object": "model", "owned_by": "scripted"} for name in self.names]
            return json_answer(200, {"object": "list", "data": listed})
        if method != "POST" or not path.endswith("/chat/completions"):
            return None
        try:
            body = json.loads(data)
        except ValueError:
            return json_answer(
                400, {"error": {"message": "the body is no JSON", "type": "invalid_request_error"}}
            )
        said = [one.get("content") for one in body.get("messages") or () if one.get("role") == "user"]
        answer, number = self.answer(Asked(self.mark_in(said), body), ASIDE)
        return Served(200, "text/event-stream", chunks(answer, number, str(body.get("model", self.names[0]))))


def chunks(response: Response, number: int, model: str) -> Iterator[bytes | Pause]:
    """A response as server-sent chunks; items of other APIs are left out."""
    head = {"id": f"chatcmpl-{number:04}", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: dict[str, Any], end: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"

    if response.wait:
        yield Pause(response.wait)
    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for item in response.items:
        if isinstance(item, Say):
            for start in range(0, len(item.text), PIECE):
                yield chunk({"content": item.text[start : start + PIECE]})
        elif isinstance(item, Think):
            for words in item.summary:
                yield chunk({"reasoning_content": words})
        elif isinstance(item, Call):
            arguments = item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments)
            function = {"name": item.name, "arguments": arguments}
            yield chunk(
                {"tool_calls": [{"index": calls, "id": item.id, "type": "function", "function": function}]}
            )
            calls += 1
    if response.stall:
        yield Pause(response.stall)
    yield chunk({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": USAGE["input"], "completion_tokens": USAGE["output"]}
    usage["total_tokens"] = USAGE["input"] + USAGE["output"]
    yield b"data: " + json.dumps({**head, "choices": [], "usage": usage}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"
