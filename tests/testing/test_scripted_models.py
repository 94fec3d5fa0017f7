"""Scripted models: what was written down is what an agent gets, and what it sent is kept."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from callsheet.testing.scripted_models.gemini import GeminiModel
from callsheet.testing.scripted_models.responses import (
    Call,
    Custom,
    Refusal,
    ResponsesModel,
    Say,
    Search,
    Think,
    respond,
)
from callsheet.testing.scripted_models.serving import Pause, serving


def asked(*items: Any) -> bytes:
    return json.dumps({"model": "demo", "stream": True, "input": list(items)}).encode()


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def events_of(model: ResponsesModel, data: bytes) -> list[dict[str, Any]]:
    served = model.serve("POST", "/v1/responses", data)
    assert served is not None
    assert (served.status, served.type) == (200, "text/event-stream")
    text = b"".join(part for part in served.parts if isinstance(part, bytes)).decode()
    return [json.loads(block.partition("data: ")[2]) for block in text.split("\n\n") if block]


def test_a_response_is_what_its_deltas_say() -> None:
    words = "A text of more than one piece, é included."
    items = (
        Think(("**Plan**\n\nFirst look.",), ("raw",)),
        Say(words),
        Call("c1", "exec_command", {"cmd": "ls"}, "ns"),
        Custom("c2", "apply_patch", "*** Begin Patch"),
        Search("w1", "rust"),
    )
    events = events_of(ResponsesModel({"": [respond(*items)]}), asked(user("go")))
    assert [one["sequence_number"] for one in events] == list(range(len(events)))
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    done = [one["item"] for one in events if one["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    assert [one["type"] for one in done] == [
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
        "web_search_call",
    ]
    assert len({one["id"] for one in done}) == 5

    def deltas(kind: str) -> str:
        return "".join(one["delta"] for one in events if one["type"] == kind)

    assert deltas("response.output_text.delta") == words
    assert json.loads(deltas("response.function_call_arguments.delta")) == {"cmd": "ls"}
    assert deltas("response.reasoning_summary_text.delta") == "**Plan**\n\nFirst look."
    assert deltas("response.reasoning_text.delta") == "raw"
    assert deltas("response.custom_tool_call_input.delta") == "*** Begin Patch"


def test_each_agent_has_its_script_and_a_script_has_an_end() -> None:
    model = ResponsesModel({"": [respond(Say("one"))], "look at": [respond(Say("child"))]})

    def said(data: bytes) -> str:
        return str(events_of(model, data)[-1]["response"]["output"][0]["content"][0]["text"])

    handed_on = {"type": "function_call", "name": "spawn", "arguments": "look at it"}
    assert said(asked(user("go"), handed_on)) == "one"
    assert said(asked(user("look at it"))) == "child"
    assert "has no response 2" in said(asked(user("go")))
    assert [one.script for one in model.asked] == ["", "look at", ""]


def test_an_answer_may_be_made_of_what_a_tool_gave_back() -> None:
    model = ResponsesModel({"": [lambda request: respond(Say(request.outputs["c1"]))]})
    output = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    events = events_of(model, asked(user("go"), output))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "42"
    assert model.asked[0].outputs == {"c1": "42"}


def test_refusals_pauses_and_paths_that_there_are_not() -> None:
    model = ResponsesModel(
        {"": [Refusal(429, "slow down"), respond(Say("x"), wait=1, stall=2)]}, names=("a", "b")
    )
    refused = model.serve("POST", "/v1/responses", asked(user("go")))
    assert refused is not None
    assert refused.status == 429
    served = model.serve("POST", "/v1/responses?x=1", asked(user("go")))
    assert served is not None
    assert [part.seconds for part in served.parts if isinstance(part, Pause)] == [1, 2]
    broken = model.serve("POST", "/v1/responses", b"{")
    assert broken is not None
    assert broken.status == 400
    listed = model.serve("GET", "/v1/models", b"")
    assert listed is not None
    assert [
        one["id"]
        for one in json.loads(b"".join(part for part in listed.parts if isinstance(part, bytes)))["data"]
    ] == ["a", "b"]
    assert model.serve("GET", "/v1/other", b"") is None


def test_a_server_answers_and_goes_away() -> None:
    model = ResponsesModel({"": [respond(Say("hello")), respond(Say("late"), wait=60)]})
    with serving(model) as base:
        assert base.startswith("http://127.0.0.1:")
        request = urllib.request.Request(f"{base}/v1/responses", data=asked(user("go")), method="POST")
        with urllib.request.urlopen(request, timeout=10) as reply:
            assert b"response.completed" in reply.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{base}/nothing", timeout=10)
        waiting = threading.Thread(target=_read, args=(request,), daemon=True)
        waiting.start()
        while len(model.asked) < 2:
            time.sleep(0.01)
        begun = time.monotonic()
    assert time.monotonic() - begun < 5  # a pause does not hold the server up
    waiting.join(5)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(request, timeout=2)


# -- the Gemini API -------------------------------------------------------------------------------------------------

GEMINI = "/v1beta/models/gemini-2.5-pro:"
TOOLS = [{"functionDeclarations": [{"name": "read_file"}]}]


def contents(*parts: dict[str, Any], tools: Any = TOOLS) -> bytes:
    return json.dumps({"contents": [{"role": "user", "parts": list(parts)}], "tools": tools}).encode()


def chunks_of(model: GeminiModel, data: bytes) -> list[dict[str, Any]]:
    served = model.serve("POST", f"{GEMINI}streamGenerateContent?alt=sse", data)
    assert served is not None
    assert (served.status, served.type) == (200, "text/event-stream")
    text = b"".join(part for part in served.parts if isinstance(part, bytes)).decode()
    return [json.loads(block.removeprefix("data: ")) for block in text.split("\n\n") if block]


def parts_of(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for one in chunks for part in one["candidates"][0]["content"]["parts"]]


def test_the_gemini_api_streams_what_was_written_down() -> None:
    words = "A text of more than one piece, é included."
    items = (
        Think(("First look.",)),
        Say(words),
        Call("c1", "read_file", {"file_path": "a"}),
        Call("c2", "x", {}),
    )
    model = GeminiModel({"": [respond(*items, stall=2)]})
    found = chunks_of(model, contents({"text": "go"}))
    ends = [one["candidates"][0].get("finishReason") for one in found]
    assert ends == [None] * (len(found) - 1) + ["STOP"]
    parts = parts_of(found)
    assert parts[0] == {"text": "First look.", "thought": True}
    assert "".join(part.get("text", "") for part in parts[1:]) == words
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert calls == [
        {"id": "c1", "name": "read_file", "args": {"file_path": "a"}},
        {"id": "c2", "name": "x", "args": {}},
    ]


def test_the_gemini_api_s_other_paths_and_requests() -> None:
    model = GeminiModel({"": [respond(Say("one"))], "child": [respond(Say("two"))]})
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "42"}}}
    assert parts_of(chunks_of(model, contents({"text": "go"}, response))) == [{"text": "one"}]
    assert model.asked[0].outputs == {"c1": {"output": "42"}}
    assert parts_of(chunks_of(model, contents({"text": "the child"}))) == [{"text": "two"}]
    (spent,) = parts_of(chunks_of(model, contents({"text": "child"})))[:1]
    assert spent["text"].startswith("(the script 'child' has ")

    def whole(verb: str, data: bytes) -> tuple[int, Any]:
        served = model.serve("POST", GEMINI + verb, data)
        assert served is not None
        return served.status, json.loads(b"".join(part for part in served.parts if isinstance(part, bytes)))

    # Without tools it is the agent's own question, and takes nothing from a script.
    _, told = whole("generateContent", contents({"text": "Who speaks next?"}, tools=[]))
    words = "".join(part["text"] for part in parts_of([told]))
    assert json.loads(words)["next_speaker"] == "user"
    assert whole("countTokens", contents({"text": "go"}))[1]["totalTokens"] > 0
    assert whole("generateContent", b"{")[0] == 400
    assert model.serve("GET", f"{GEMINI}generateContent", b"") is None
    assert model.serve("POST", "/v1beta/models/gemini-2.5-pro:embedContent", b"{}") is None


def _read(request: urllib.request.Request) -> None:
    with urllib.request.urlopen(request, timeout=10) as reply:
        reply.read()
