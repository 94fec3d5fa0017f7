"""A host of Claude Code: handshake, turns, requests, controls; and captures played to it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from callsheet.harness._port.frames import log_line
from callsheet.harness.claude_code import CLAUDE_CODE_AGENT, CLAUDE_CODE_STREAM
from callsheet.harness.claude_code.stream.client import Client
from callsheet.seam import (
    Accepted,
    Answer,
    Answered,
    CallPreview,
    Can,
    Cancelled,
    Chosen,
    Completed,
    Declined,
    Ended,
    Failed,
    FormAsked,
    FormFilled,
    Installed,
    Interrupted,
    MessagePreview,
    Noted,
    NotStarted,
    Opened,
    Permission,
    Questions,
    Rejected,
    RequestClosed,
    RequestOpened,
    Send,
    Step,
    ThoughtPreview,
    TurnChanged,
    Untried,
    Unusable,
    UrlAsked,
    UrlOpened,
    Wish,
)
from callsheet.seam.events import TEXT_BYTES
from callsheet.testing.desk import Files, read_session
from tests.audit.frames import QUESTION, SUGGESTIONS
from tests.native.claude_code.agent import SESSION, Agent
from tests.native.peers import CWD, lived, sent

# -- opening ------------------------------------------------------------------------------------------------------


def test_only_reporting_switches_are_set_and_each_is_listed() -> None:
    launch = CLAUDE_CODE_AGENT.driver(Wish(cwd=CWD, version="2.1.332")).launch()
    listed = " ".join(launch.switches).split()
    assert listed == [
        *("--verbose", "--include-partial-messages", "--include-hook-events"),
        *("--permission-prompt-tool", "stdio"),
    ]
    streaming = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"]
    assert list(launch.arguments) == [*streaming, *listed]
    assert launch.environment == {}


def test_a_wish_is_passed_on_and_an_older_version_is_not_asked_for_what_it_may_not_know() -> None:
    wish = Wish(cwd=CWD, version="2.1.200", model="opus", mode="plan", resume="s0")
    arguments = list(CLAUDE_CODE_AGENT.driver(wish).launch().arguments)
    assert arguments[-6:] == ["--model", "opus", "--permission-mode", "plan", "--resume", "s0"]
    assert "--include-hook-events" not in arguments


def test_the_handshake_opens_and_init_says_who_it_is() -> None:
    agent = Agent()
    assert agent.sent[0]["request"] == {"subtype": "initialize", "hooks": None}
    (opened,) = agent.reply(response={})
    assert isinstance(opened, Opened)
    assert opened.session is None
    agent.start()
    again, running = agent.init()
    assert isinstance(again, Opened)
    assert (again.session, again.version, again.model) == (SESSION, "2.1.332", "sonnet")
    assert running == TurnChanged("running")


@pytest.mark.parametrize(
    ("printed", "kind"),
    [("2.1.332 (Claude Code)\n", Installed), ("nonsense", Unusable), ("", Unusable), ("9.9.9", Installed)],
)
def test_what_is_installed(printed: str, kind: type) -> None:
    found = CLAUDE_CODE_AGENT.qualify(("claude",), printed)
    assert isinstance(found, kind)
    if isinstance(found, Installed):
        assert isinstance(found.abilities[0], Can if found.version == "2.1.332" else Untried)


# -- turns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "result"),
    [
        ({"terminal_reason": "completed"}, Completed("completed")),
        ({"subtype": "error_during_execution", "is_error": True, "errors": ["x"]}, Failed("x", "error_during_execution")),
        ({"is_error": True, "result": "API Error"}, Failed("API Error", "success")),
        ({"is_error": True, "terminal_reason": "aborted_tools"}, Interrupted("aborted_tools")),
        ({"subtype": "error_max_turns", "is_error": True}, Interrupted("error_max_turns")),
    ],
)
def test_how_a_turn_ends(told: dict[str, Any], result: Any) -> None:
    agent = Agent()
    agent.begun()
    assert agent.end(**told) == [TurnChanged("settled"), Ended(result)]
    assert agent.end(**told) == [], "there is nothing after it"


def test_a_turn_that_began_by_itself_does_not_end_ours() -> None:
    agent = Agent()
    agent.begun()
    assert agent.end(origin={"kind": "task-notification"}) == []
    assert agent.end(queued_turn_count=1) == []
    assert isinstance(agent.end()[-1], Ended)


def test_words_while_it_runs_and_an_interrupt() -> None:
    agent = Agent()
    assert isinstance(agent.client.steer("x").receipt, Rejected)
    assert isinstance(agent.client.interrupt().receipt, Rejected)
    agent.begun()
    (words,) = sent(agent.client.steer("also this").steps)
    assert words["message"] == {"role": "user", "content": "also this"}
    assert words["session_id"] == SESSION
    reply = agent.client.interrupt()
    assert reply.receipt == Accepted()
    (asked,) = sent(reply.steps)
    assert asked["request"] == {"subtype": "interrupt"}
    assert reply.steps[-1] == TurnChanged("interrupting")
    assert isinstance(agent.client.interrupt().receipt, Rejected)
    assert isinstance(agent.client.steer("x").receipt, Rejected)
    agent.sent.append(asked)
    assert agent.reply() == [], "it counts only when the turn's own end confirms it"
    assert agent.end(is_error=True, terminal_reason="aborted_tools")[-1] == Ended(Interrupted("aborted_tools"))


def test_a_process_that_ends_before_it_took_the_prompt_started_nothing() -> None:
    agent = Agent()
    agent.opened()
    agent.start()
    assert agent.client.gone(None, "SIGKILL")[-1] == Ended(
        NotStarted("the agent ended by SIGKILL before the turn did, and never took the prompt")
    )


# -- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "response"),
    [
        ("allow", {"behavior": "allow", "updatedInput": {"command": "ls"}}),
        ("allow:1", {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": SUGGESTIONS[1:]}),
        ("allow:*", {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": SUGGESTIONS}),
        ("deny", {"behavior": "deny", "message": "Not so."}),
    ],
)
def test_a_permission_and_its_answers(option: str, response: Any) -> None:
    agent = Agent()
    agent.begun()
    asked = agent.permission("q1", permission_suggestions=SUGGESTIONS, description="Lists", decision_reason="why")
    assert isinstance(asked, Permission)
    assert (asked.call, asked.title, asked.command, asked.reason) == ("c1", "Bash", "ls", "why")
    assert [one.option_id for one in asked.options] == ["allow", "allow:*", "allow:0", "allow:1", "deny"]
    assert asked.options[2].name == "Bash (localSettings)"
    assert asked.takes_words == {"deny"}
    words = "Not so." if option == "deny" else None
    assert isinstance(agent.client.answer("q1", Chosen("no such option")).receipt, Rejected)
    assert isinstance(agent.client.answer("q1", Declined()).receipt, Rejected)
    reply = agent.client.answer("q1", Chosen(option, words))
    assert reply.receipt == Accepted()
    (frame,) = sent(reply.steps)
    assert frame["response"] == {"subtype": "success", "request_id": "q1", "response": response}
    assert reply.steps[1:] == (RequestClosed("q1", "answered", option), TurnChanged("running"))
    assert isinstance(agent.client.answer("q1", Chosen("allow")).receipt, Rejected)


def test_a_cancelled_permission_breaks_the_turn_off() -> None:
    agent = Agent()
    agent.begun()
    agent.permission("q1")
    (frame,) = sent(agent.client.answer("q1", Cancelled()).steps)
    assert frame["request"] == {"subtype": "interrupt"}
    steps = agent.end(is_error=True, terminal_reason="aborted_tools")
    assert RequestClosed("q1", "ended") in steps


def test_questions() -> None:
    agent = Agent()
    agent.begun()
    told = {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "c1"}
    asked = agent.ask("q1", **told, input={"questions": [QUESTION]})
    assert isinstance(asked, Questions)
    assert [one.text for one in asked.questions] == ["Which?"]
    assert isinstance(agent.client.answer("q1", Answered({"9": (("One",), None)})).receipt, Rejected)
    (frame,) = sent(agent.client.answer("q1", Answered({"0": (("One",), "and more")})).steps)
    assert frame["response"]["response"] == {
        "behavior": "allow",
        "updatedInput": {"questions": [QUESTION], "answers": {"Which?": "One, and more"}},
    }
    agent.ask("q2", **told, input={"questions": [QUESTION]})
    (frame,) = sent(agent.client.answer("q2", Declined()).steps)
    assert frame["response"]["response"]["behavior"] == "deny"


def test_forms_and_urls() -> None:
    agent = Agent()
    agent.begun()
    schema = {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}}
    form = agent.ask("f1", subtype="elicitation", message="Key?", requested_schema=schema)
    assert isinstance(form, FormAsked)
    assert form.secret
    reply = agent.client.answer("f1", FormFilled(Raw(b'{"key":"hunter2-hunter2"}')))
    (frame,) = sent(reply.steps)
    assert frame["response"]["response"] == {"action": "accept", "content": {"key": "hunter2-hunter2"}}
    step = reply.steps[0]
    assert isinstance(step, Send)
    agent.client.mask(json.dumps(_asked("f1", schema)).encode(), from_agent=True)
    kept = agent.client.mask(step.frame, from_agent=False)
    assert b"hunter2" not in kept
    assert len(kept) == len(step.frame)
    echo = json.dumps({"type": "system", "subtype": "x", "said": "hunter2-hunter2"}).encode()
    assert b"hunter2" not in agent.client.mask(echo, from_agent=True)
    url = agent.ask("u1", subtype="elicitation", message="Sign in", url="https://example.test")
    assert isinstance(url, UrlAsked)
    (frame,) = sent(agent.client.answer("u1", UrlOpened()).steps)
    assert frame["response"]["response"] == {"action": "accept"}


def _asked(name: str, schema: Any) -> dict[str, Any]:
    request = {"subtype": "elicitation", "message": "Key?", "requested_schema": schema}
    return {"type": "control_request", "request_id": name, "request": request}


def test_what_we_have_no_answer_to_is_answered_with_an_error() -> None:
    agent = Agent()
    agent.begun()
    agent.ask("m1", subtype="mcp_message", server_name="x")
    assert agent.sent[-1]["response"] == {
        "subtype": "error",
        "request_id": "m1",
        "error": "callsheet has no answer to mcp_message",
    }


# -- previews -----------------------------------------------------------------------------------------------------


def test_previews_replace_each_other_and_are_bounded() -> None:
    agent = Agent()
    agent.begun()

    def piece(event: Any, **more: Any) -> list[Step]:
        told = {"parent_tool_use_id": None, "api_message_id": "m", **more}
        return agent.say(type="stream_event", event=event, **told)

    block = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    assert piece(start) == [CallPreview(call="c1", name="Bash", input="")]
    delta = {"type": "input_json_delta", "partial_json": '{"comm'}
    shown = piece({"type": "content_block_delta", "index": 0, "delta": delta})
    assert shown == [CallPreview(call="c1", name="Bash", input='{"comm')]
    piece({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}})
    message: Step | None = None
    for _ in range(30):
        delta = {"type": "text_delta", "text": "ä" * 3000}
        (message,) = piece({"type": "content_block_delta", "index": 1, "delta": delta})
    assert isinstance(message, MessagePreview)
    assert message.key == "m/1"
    assert len(message.text.encode()) <= TEXT_BYTES
    thought = {"type": "content_block_start", "index": 2, "content_block": {"type": "thinking", "thinking": ""}}
    assert piece(thought) == [ThoughtPreview(key="m/2", text="")]
    delta = {"type": "thinking_delta", "thinking": "private"}
    assert piece({"type": "content_block_delta", "index": 2, "delta": delta}) == []
    beat = {"tool_use_id": "c1-heartbeat-0", "parent_tool_use_id": "c1", "heartbeat": True}
    assert agent.say(type="tool_progress", **beat) == [CallPreview(call="c1", running=True)]
    (noted,) = agent.say(type="system", subtype="api_retry", attempt=1, max_retries=10, error="overloaded")
    assert isinstance(noted, Noted)


# -- captures, played again ---------------------------------------------------------------------------------------

TURNS = {"success": "completed", "error_during_execution": "interrupted", "error_max_turns": "interrupted"}


def answer_of(client: Client, name: str, response: dict[str, Any]) -> Answer | None:
    """The answer that stands for a captured one; None for one that no answer of ours makes."""
    ask = client._requests.open[name]
    match ask.waiting:
        case Questions(questions=questions):
            given = response.get("updatedInput", {}).get("answers")
            if given is None:
                return Declined()
            return Answered({one.id: ((given[one.text],), None) for one in questions if one.text in given})
        case FormAsked():
            return FormFilled(Raw(json.dumps(response.get("content", {})).encode()))
        case Permission():
            if response.get("behavior") == "deny":
                return None if response.get("interrupt") else Chosen("deny", response["message"])
            return Chosen("allow:*" if "updatedPermissions" in response else "allow")
        case _:
            return None


def played(client: Client, lines: list[dict[str, Any]]) -> Iterator[tuple[bool, bytes, list[Step]]]:
    """A captured conversation with our client in the place of the captured host; every frame, and what came of it."""

    def given(steps: Any) -> Iterator[tuple[bool, bytes, list[Step]]]:
        steps = list(steps)
        yield from ((False, step.frame, []) for step in steps if isinstance(step, Send))
        yield (False, b"", steps)

    yield from given(client.open())
    for line in lines:
        frame = line["frame"]
        if line["dir"] == "out":
            if frame.get("type") == "control_response":
                response = frame["response"]
                response["request_id"] = response["request_id"].replace("req_", "callsheet-")
            data = json.dumps(frame).encode()
            steps = client.receive(data)
            yield (True, data, [step for step in steps if not isinstance(step, Send)])
            yield from given(step for step in steps if isinstance(step, Send))
        elif frame["type"] == "user":
            words = frame["message"]["content"]
            yield from given(client.start(words) if client._turn is None else client.steer(words).steps)
        elif frame["type"] == "control_request" and frame["request"]["subtype"] == "interrupt":
            yield from given(client.interrupt().steps)
        elif frame["type"] == "control_response" and frame["response"]["request_id"] in client._requests.open:
            response = frame["response"]
            name = response["request_id"]
            answer = answer_of(client, name, response.get("response", {}))
            if answer is None:
                continue
            reply = client.answer(name, answer)
            assert reply.receipt == Accepted(), reply
            yield from given(reply.steps)


def test_captures_played_again_give_the_records_of_their_logs(shared: Path) -> None:
    folder = shared / "captures" / "claude-code" / "2.1.332"
    logs = sorted(folder.glob("*/stdio/stdio.jsonl"))
    assert len(logs) > 30
    for path in logs:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        client = CLAUDE_CODE_AGENT.driver(Wish(cwd=CWD))
        log, steps = b"", []
        for from_agent, frame, told in played(client, lines):
            steps += told
            if frame:
                kept = client.mask(frame, from_agent=from_agent)
                log += log_line(kept, from_agent=from_agent, ts="2026-11-30T10:00:00.000Z") + b"\n"
        where = path.parent.parent.name
        opened = {step.request.request_id for step in steps if isinstance(step, RequestOpened)}
        closed = {step.request_id for step in steps if isinstance(step, RequestClosed)}
        asked = {
            line["frame"]["request_id"]
            for line in lines
            if line["frame"]["type"] == "control_request"
            and line["frame"]["request"]["subtype"] in ("can_use_tool", "elicitation")
        }
        assert opened == asked, where
        assert closed == opened or where == "perm_pending_kill", where
        wanted = [
            TURNS[line["frame"]["subtype"]]
            for line in lines
            if line["frame"].get("type") == "result" and "origin" not in line["frame"]
        ]
        ends = [type(step.result).__name__.lower() for step in steps if isinstance(step, Ended)]
        assert ends == wanted, where
        files = Files({"/log.jsonl": log})
        (session,) = CLAUDE_CODE_STREAM.sessions("/log.jsonl", files)
        stored = read_session(CLAUDE_CODE_STREAM, session, files)
        assert lived(CLAUDE_CODE_AGENT, log, files) == {stream.id: list(stream.lines) for stream in stored.streams}, where
