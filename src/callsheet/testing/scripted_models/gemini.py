"""A scripted model that speaks the Gemini API: ``POST …/models/MODEL:streamGenerateContent`` and ``:generateContent``.

Owns: the chunks in which such a model says something. ``scripts`` picks it; a request without tools asks which model
fits, or who speaks next. What is said is written as for ``responses``: words, thoughts (their summary), calls. Every
request is kept.

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

ASIDE = respond(
    Say('{"next_speaker": "user", "model_choice": "flash", "complexity_score": 1, "reasoning": "Short."}')
)
"""What the model says to a request that offers no tools."""
_SIGNATURE = "c2ln"


class Asked(scripts.Asked, frozen=True):
    """A request that came: which script answered it, and its body."""

    @property
    def outputs(self) -> dict[str, Any]:
        """Responses of functions that it carries, by call id."""
        parts = [part for one in self.body.get("contents") or () for part in one.get("parts") or ()]
        told = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return {str(one.get("id")): one.get("response") for one in told}


class GeminiModel(Scripted):
    """A model with a script for each conversation."""

    def serve(self, method: str, path: str, data: bytes) -> Served | None:
        """Answers a request; None for a path that is not ours."""
        model, _, verb = path.partition("?")[0].rpartition("/")[2].partition(":")
        if method != "POST" or verb not in ("generateContent", "streamGenerateContent", "countTokens"):
            return None
        try:
            body = json.loads(data)
        except ValueError:
            return json_answer(400, {"error": {"code": 400, "message": "the body is no JSON"}})
        if verb == "countTokens":
            return json_answer(200, {"totalTokens": USAGE["input"]})
        said = [one.get("parts") for one in body.get("contents") or () if one.get("role") == "user"]
        answer, number = self.answer(Asked(self.mark_in(said), body), ASIDE)
        if verb == "generateContent":
            return json_answer(200, whole(answer, number, model))
        return Served(200, "text/event-stream", chunks(answer, number, model))


def _parts(response: Response) -> Iterator[list[dict[str, Any]]]:
    """The parts of each chunk; calls come together, as the API sends them."""
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, Say):
            for start in range(0, len(item.text), PIECE):
                yield [{"text": item.text[start : start + PIECE]}]
        elif isinstance(item, Think):
            for words in item.summary:
                yield [{"text": words, "thought": True}]
        elif isinstance(item, Call):
            call = {"id": item.id, "name": item.name, "args": item.arguments}
            calls.append({"functionCall": call, "thoughtSignature": _SIGNATURE})
    if calls:
        yield calls


def _content(parts: list[dict[str, Any]], number: int, model: str, end: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if end is not None:
        candidate["finishReason"] = end
    usage = {
        "promptTokenCount": USAGE["input"],
        "cachedContentTokenCount": USAGE["cached"],
        "candidatesTokenCount": USAGE["output"],
        "thoughtsTokenCount": USAGE["reasoning"],
        "totalTokenCount": USAGE["input"] + USAGE["output"] + USAGE["reasoning"],
    }
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": model,
        "responseId": f"response-{number:04}",
    }


def whole(response: Response, number: int, model: str) -> dict[str, Any]:
    """A response in one piece; items of other APIs are left out."""
    return _content([part for parts in _parts(response) for part in parts], number, model, "STOP")


def chunks(response: Response, number: int, model: str) -> Iterator[bytes | Pause]:
    """A response as server-sent chunks; items of other APIs are left out."""
    if response.wait:
        yield Pause(response.wait)
    told = list(_parts(response))
    for place, parts in enumerate(told):
        last = place == len(told) - 1
        if last and response.stall:
            yield Pause(response.stall)
        data = _content(parts, number, model, "STOP" if last else None)
        yield b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"
