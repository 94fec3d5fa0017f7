"""Captures of an app server played to our client again: the records are those of their logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from callsheet.harness._port.frames import log_line
from callsheet.harness.codex import CODEX_AGENT, CODEX_APP_SERVER
from callsheet.harness.codex.app_server.client import Client
from callsheet.seam import (
    Accepted,
    Answer,
    Answered,
    Chosen,
    Declined,
    Ended,
    FormAsked,
    FormFilled,
    Opened,
    Questions,
    RequestClosed,
    RequestOpened,
    Send,
    Step,
    Wish,
)
from callsheet.testing.desk import Files, read_session
from tests.native.codex.frames import Wire
from tests.native.peers import lived, sent

# -- captures, played again ---------------------------------------------------------------------------------------

PLAYED = (
    *(
        "approve_accept",
        "approve_decline",
        "approve_amend",
        "approve_untrusted_parallel",
        "approve_pending_interrupt",
    ),
    *(
        "patch_decline",
        "patch_session",
        "request_permissions",
        "mcp_approval",
        "user_input",
        "secret_question",
    ),
    *("interrupt_stream", "write_stdin_approval", "api_400", "shell_fail", "subagents_v2", "reasoning"),
)


def answer_of(client: Client, number: str, result: dict[str, Any]) -> Answer:
    """The answer that stands for a captured one."""
    asked = client._requests.open[number].waiting
    if isinstance(asked, Questions):
        return Answered({name: (tuple(one["answers"]), None) for name, one in result["answers"].items()})
    if isinstance(asked, FormAsked):
        return (
            FormFilled(Raw(json.dumps(result["content"]).encode()))
            if result["action"] == "accept"
            else Declined()
        )
    told = result.get("decision", result.get("action", "accept"))
    return Chosen(next(iter(told)) if isinstance(told, dict) else told)


def played(client: Client, frames: Iterator[tuple[str, Any]]) -> Iterator[tuple[bool, bytes, list[Step]]]:
    """A captured conversation with our client in the place of the captured one; every frame, and what came of it."""

    def given(steps: Any) -> Iterator[tuple[bool, bytes, list[Step]]]:
        steps = list(steps)
        yield from ((False, step.frame, []) for step in steps if isinstance(step, Send))
        yield (False, b"", steps)

    yield from given(client.open())
    opened = False
    for way, frame in frames:
        if way == "server":
            data = json.dumps(frame).encode()
            steps = client.receive(data)
            opened = opened or any(isinstance(step, Opened) for step in steps)
            yield (True, data, [step for step in steps if not isinstance(step, Send)])
            yield from given(step for step in steps if isinstance(step, Send))
        elif way != "client":
            continue
        elif frame.get("method") == "turn/start" and opened:
            yield from given(client.start(frame["params"]["input"][0]["text"]))
        elif frame.get("method") == "turn/interrupt":
            yield from given(client.interrupt().steps)
        elif "result" in frame and str(frame["id"]) in client._requests.open:
            reply = client.answer(str(frame["id"]), answer_of(client, str(frame["id"]), frame["result"]))
            assert reply.receipt == Accepted()
            (own,) = sent(reply.steps)
            assert own == frame  # what a real server took
            yield from given(reply.steps)


@pytest.mark.parametrize("name", PLAYED)
def test_a_capture_played_again_gives_the_records_of_its_log(name: str, shared: Path) -> None:
    path = shared / "captures" / "codex" / "0.163.0" / name / "app" / "frames.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    client = CODEX_AGENT.driver(Wish(cwd="/work-demo/acme-app2"))
    log, steps = b"", []
    for from_agent, frame, told in played(client, ((one["dir"], one["frame"]) for one in lines)):
        steps += told
        if frame:
            kept = client.mask(frame, from_agent=from_agent)
            log += log_line(kept, from_agent=from_agent, ts="2026-11-30T10:00:00.000Z") + b"\n"
    opened = [step.request.request_id for step in steps if isinstance(step, RequestOpened)]
    closed = [step.request_id for step in steps if isinstance(step, RequestClosed)]
    assert sorted(opened) == sorted(closed)
    turns = [
        one["frame"]["params"]["turn"]["status"]
        for one in lines
        if one["dir"] == "server"
        and one["frame"].get("method") == "turn/completed"
        and one["frame"]["params"]["threadId"] == client._thread
    ]
    results = [type(step.result).__name__.lower() for step in steps if isinstance(step, Ended)]
    assert results == turns
    assert turns

    files = Files({"/log.jsonl": log})
    (session,) = CODEX_APP_SERVER.sessions("/log.jsonl", files)
    stored = read_session(CODEX_APP_SERVER, session, files)
    assert lived(CODEX_AGENT, log, files) == {stream.id: list(stream.lines) for stream in stored.streams}


def test_the_wire_of_these_tests_is_a_log_of_this_protocol() -> None:
    assert CODEX_APP_SERVER.recognises("x", Wire().data)
