"""The client of an app server: handshake, turns, requests, controls; and captures played to it again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from callsheet.harness.codex import CODEX_AGENT
from callsheet.seam import (
    Accepted,
    Answer,
    Answered,
    CallPreview,
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
    Lost,
    MessagePreview,
    Noted,
    NotStarted,
    Opened,
    OutputPreview,
    Permission,
    Questions,
    Rejected,
    RequestClosed,
    RequestOpened,
    Send,
    ThoughtPreview,
    TurnChanged,
    Unusable,
    UrlAsked,
    UrlOpened,
    Wish,
)
from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES
from tests.native.codex.frames import CWD, THREAD, TURN
from tests.native.codex.server import COMMAND, ELICITATION, QUESTIONS, Server
from tests.native.peers import sent

# -- opening ------------------------------------------------------------------------------------------------------


def test_a_thread_is_opened_with_raw_events_and_nothing_else_set() -> None:
    server = Server()
    (opened,) = server.opened()
    assert [frame["method"] for frame in server.sent] == ["initialize", "initialized", "thread/start"]
    assert server.sent[2]["params"] == {"cwd": CWD, "experimentalRawEvents": True}
    assert server.sent[0]["params"]["capabilities"] == {"experimentalApi": True}
    assert isinstance(opened, Opened)
    assert (opened.session, opened.version, opened.model) == (THREAD, "0.163.0", "demo")
    assert [switch.rsplit(" = ")[0] for switch in server.client.launch().switches] == [
        "initialize: capabilities.experimentalApi",
        "thread/start: experimentalRawEvents",
    ]


@pytest.mark.parametrize(
    ("mode", "member"),
    [("never", "approvalPolicy"), ("read-only", "sandbox"), ("on-request", "approvalPolicy")],
)
def test_what_is_wished_for_is_asked_for(mode: str, member: str) -> None:
    server = Server(Wish(cwd=CWD, model="m", mode=mode, resume=THREAD))
    server.reply(userAgent="x/0.163.0")
    assert server.sent[-1]["method"] == "thread/resume"
    wanted = {"cwd": CWD, "model": "m", member: mode, "threadId": THREAD, "excludeTurns": True}
    assert server.sent[-1]["params"] == wanted
    assert len(server.client.launch().switches) == 1


def test_a_mode_that_there_is_not() -> None:
    server = Server(Wish(cwd=CWD, mode="yolo"))
    (ended,) = server.reply(userAgent="x/0.163.0")
    assert isinstance(ended, Ended)
    assert isinstance(ended.result, NotStarted)
    assert "no mode yolo" in ended.result.reason


def test_a_version_without_raw_events_is_asked_again() -> None:
    server = Server()
    server.reply(userAgent="x/0.50.0")
    server.say(id=server.sent[-1]["id"], error={"code": -32600, "message": "unknown field"})
    assert server.sent[-1]["params"] == {"cwd": CWD}
    (opened,) = server.reply(thread={"id": THREAD})
    assert isinstance(opened, Opened)
    assert len(server.client.launch().switches) == 1


def test_no_thread() -> None:
    server = Server(Wish(cwd=CWD, resume="gone"))
    server.reply(userAgent="x/0.163.0")
    (ended,) = server.say(id=server.sent[-1]["id"], error={"code": -32600, "message": "no rollout found"})
    assert ended == Ended(NotStarted("the agent did not go on with the thread: no rollout found"))
    assert server.client.gone(0, None) == []


def test_what_is_installed() -> None:
    found = CODEX_AGENT.qualify(("codex",), "codex-cli 0.163.0\n")
    assert isinstance(found, Installed)
    assert (found.version, type(found.abilities[0]).__name__) == ("0.163.0", "Can")
    old, new = (CODEX_AGENT.qualify(("codex",), f"codex-cli {version}") for version in ("0.20.0", "1.0.0"))
    assert isinstance(old, Installed)
    assert isinstance(new, Installed)
    assert {type(one.abilities[0]).__name__ for one in (old, new)} == {"Untried"}
    assert isinstance(CODEX_AGENT.qualify(("codex",), "segfault"), Unusable)


# -- turns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error", "result"),
    [
        ("completed", None, Completed("completed")),
        ("interrupted", None, Interrupted("interrupted")),
        ("failed", {"message": "bad", "codexErrorInfo": "other"}, Failed("bad", "other")),
        (
            "failed",
            {"message": "bad", "codexErrorInfo": {"httpConnectionFailed": {}}},
            Failed("bad", "httpConnectionFailed"),
        ),
        ("failed", None, Failed(None, "failed")),
        ("paused", None, Lost("the agent ended the turn with a word that is not known: paused")),
    ],
)
def test_how_a_turn_ends(status: str, error: Any, result: Any) -> None:
    server = Server()
    server.begun()
    assert server.ended(status, error) == [TurnChanged("settled"), Ended(result)]
    assert server.ended(status, error) == []


def test_a_turn_that_never_started() -> None:
    server = Server()
    server.opened()
    server.start()
    steps = server.say(id=server.sent[-1]["id"], error={"code": -1, "message": "busy"})
    assert steps[-1] == Ended(NotStarted("busy"))


def test_the_end_of_another_thread_s_turn_ends_nothing() -> None:
    server = Server()
    server.begun()
    assert server.tell("turn/completed", threadId="other", turn={"id": "t9", "status": "completed"}) == []
    assert server.tell("turn/completed", turn={"id": "an earlier one", "status": "completed"}) == []


def test_interrupting_counts_when_the_server_says_so() -> None:
    server = Server()
    server.opened()
    assert isinstance(server.client.interrupt().receipt, Rejected)
    server.start()
    start = server.sent[-1]["id"]
    reply = server.client.interrupt()
    assert reply.receipt == Accepted()
    assert sent(reply.steps) == []  # the server has not named the turn yet
    (asked,) = sent(server.say(id=start, result={"turn": {"id": TURN}}))
    assert (asked["method"], asked["params"]) == ("turn/interrupt", {"threadId": THREAD, "turnId": TURN})
    assert isinstance(server.client.interrupt().receipt, Rejected)
    assert server.tell("turn/started", turn={"id": TURN}) == []
    assert server.ended("interrupted")[-1] == Ended(Interrupted("interrupted"))


def test_steering() -> None:
    server = Server()
    server.begun()
    reply = server.client.steer("also this")
    (frame,) = sent(reply.steps)
    assert frame["method"] == "turn/steer"
    assert frame["params"]["expectedTurnId"] == TURN
    (noted,) = server.say(id=frame["id"], error={"code": -1, "message": "too late"})
    assert noted == Noted("the agent did not take the words: too late")
    server.ended("completed")
    assert isinstance(server.client.steer("more").receipt, Rejected)


# -- requests -----------------------------------------------------------------------------------------------------


def test_a_command_may_be_answered_by_more_than_is_listed() -> None:
    server = Server()
    server.begun()
    amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "/x"]}}
    asked = server.ask(
        0,
        COMMAND,
        itemId="c",
        command="touch /x",
        reason="why",
        availableDecisions=["accept", amendment, "cancel"],
    )
    assert isinstance(asked, Permission)
    assert (asked.call, asked.command, asked.reason) == ("c", "touch /x", "why")
    assert [(one.option_id, one.kind) for one in asked.options] == [
        ("accept", "allow_once"),
        ("acceptWithExecpolicyAmendment", "allow_always"),
        ("acceptForSession", "allow_session"),
        ("decline", "reject_once"),
        ("cancel", "cancel"),
    ]
    assert asked.options[1].name == "touch /x"
    reply = server.client.answer("0", Chosen("acceptWithExecpolicyAmendment"))
    assert sent(reply.steps) == [{"id": 0, "result": {"decision": amendment}}]
    assert reply.steps[1:] == (
        RequestClosed("0", "answered", "acceptWithExecpolicyAmendment"),
        TurnChanged("running"),
    )
    assert isinstance(server.client.answer("0", Chosen("accept")).receipt, Rejected)


def test_typing_into_a_terminal_names_the_call_that_types() -> None:
    server = Server()
    server.begun()
    asked = server.ask(0, COMMAND, kind="writeStdin", itemId="first", approvalId="second", command="x")
    assert asked.call == "second"


Given = tuple[str, dict[str, Any], Answer, dict[str, Any]]
ASKED = {"permissions": {"network": {"enabled": True}}, "itemId": "c"}
QUESTION = {"id": "q", "header": "H", "question": "Which?", "isSecret": False, "options": [{"label": "A"}]}
TOOL = {
    "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["session"]},
    "message": "Run?",
    "mode": "form",
}
FORM = {
    "_meta": None,
    "message": "Name?",
    "mode": "form",
    "requestedSchema": {"type": "object", "properties": {}},
}
URL = {"_meta": None, "message": "Sign in", "mode": "url", "url": "https://x.invalid"}
PATCH = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"


@pytest.mark.parametrize(
    ("method", "params", "answer", "result"),
    [
        (COMMAND, {"itemId": "c"}, Chosen("acceptForSession"), {"decision": "acceptForSession"}),
        (PATCH, {"itemId": "c"}, Chosen("decline"), {"decision": "decline"}),
        (PATCH, {"itemId": "c"}, Cancelled(), {"decision": "cancel"}),
        (PERMISSIONS, ASKED, Chosen("accept"), {"permissions": ASKED["permissions"], "scope": "turn"}),
        (
            PERMISSIONS,
            ASKED,
            Chosen("acceptForSession"),
            {"permissions": ASKED["permissions"], "scope": "session"},
        ),
        (PERMISSIONS, ASKED, Chosen("decline"), {"permissions": {}, "scope": "turn"}),
        (ELICITATION, TOOL, Chosen("accept"), {"action": "accept", "content": {}, "_meta": None}),
        (
            ELICITATION,
            TOOL,
            Chosen("acceptForSession"),
            {"action": "accept", "content": {}, "_meta": {"persist": "session"}},
        ),
        (ELICITATION, TOOL, Chosen("decline"), {"action": "decline", "content": None, "_meta": None}),
        (
            ELICITATION,
            FORM,
            FormFilled(Raw(b'{"a":1}')),
            {"action": "accept", "content": {"a": 1}, "_meta": None},
        ),
        (ELICITATION, FORM, Declined(), {"action": "decline", "content": None, "_meta": None}),
        (ELICITATION, URL, UrlOpened(), {"action": "accept", "content": None, "_meta": None}),
        (ELICITATION, URL, Cancelled(), {"action": "cancel", "content": None, "_meta": None}),
        (
            QUESTIONS,
            {"itemId": "c", "questions": [QUESTION]},
            Answered({"q": (("A",), "and more")}),
            {"answers": {"q": {"answers": ["A", "and more"]}}},
        ),
        (QUESTIONS, {"itemId": "c", "questions": [QUESTION]}, Declined(), {"answers": {}}),
    ],
)
def test_every_kind_of_request_and_its_answers(
    method: str, params: dict[str, Any], answer: Answer, result: dict[str, Any]
) -> None:
    server = Server()
    server.begun()
    asked = server.ask("r1", method, **params)
    assert isinstance(asked, Permission | Questions | FormAsked | UrlAsked)
    for wrong in (Chosen("nothing"), Answered({"z": ((), None)}), FormFilled(Raw(b"[]"))):
        assert isinstance(server.client.answer("r1", wrong).receipt, Rejected)
    reply = server.client.answer("r1", answer)
    assert reply.receipt == Accepted()
    assert sent(reply.steps) == [{"id": "r1", "result": result}]


def test_several_requests_at_once_and_one_that_goes_away() -> None:
    server = Server()
    server.begun()
    for number in (0, 1):
        server.ask(number, COMMAND, itemId=f"c{number}")
    again = {"threadId": THREAD, "turnId": TURN, "itemId": "c1"}
    assert server.say(id=1, method=COMMAND, params=again) == []  # delivered again
    assert server.client.answer("0", Chosen("accept")).steps[1:] == (
        RequestClosed("0", "answered", "accept"),
    )
    steps = server.tell("serverRequest/resolved", requestId=1)
    assert steps == [RequestClosed("1", "withdrawn", "resolved"), TurnChanged("running")]
    assert server.tell("serverRequest/resolved", requestId=0) == []


def test_a_request_of_another_agent_of_the_connection_opens_too() -> None:
    server = Server()
    server.begun()
    opened = server.say(id=5, method=COMMAND, params={"threadId": "child", "itemId": "c"})
    assert isinstance(opened[-1], RequestOpened)


@pytest.mark.parametrize("method", ["item/tool/call", "account/chatgptAuthTokens/refresh", "something/new"])
def test_what_we_do_not_serve_is_refused(method: str) -> None:
    server = Server()
    server.begun()
    (frame,) = sent(server.say(id=3, method=method, params={}))
    assert frame == {"id": 3, "error": {"code": -32601, "message": f"method not found: {method}"}}


# -- previews -----------------------------------------------------------------------------------------------------


def test_what_is_shown_while_it_runs() -> None:
    server = Server()
    server.begun()
    command = {"type": "commandExecution", "id": "c", "command": "make", "status": "inProgress"}
    assert server.tell("item/started", item=command) == [CallPreview(call="c", title="make", running=True)]
    server.tell("item/commandExecution/outputDelta", itemId="c", delta="a\n")
    (shown,) = server.tell("item/commandExecution/outputDelta", itemId="c", delta="b\n")
    assert shown == OutputPreview(call="c", text="a\nb\n")
    server.tell("item/agentMessage/delta", itemId="m", delta="Hel")
    assert server.tell("item/agentMessage/delta", itemId="m", delta="lo") == [
        MessagePreview(key="m", text="Hello")
    ]
    (thought,) = server.tell("item/reasoning/summaryTextDelta", itemId="r", delta="**Look**", summaryIndex=0)
    assert thought == ThoughtPreview(key="r 0", text="**Look**")
    assert server.tell("item/reasoning/textDelta", itemId="r", delta="private") == []
    assert server.tell("account/rateLimits/updated", rateLimits={}) == []
    assert server.tell("error", error={"message": "Reconnecting"}, willRetry=True) == [Noted("Reconnecting")]


def test_a_preview_stays_within_its_budget() -> None:
    server = Server()
    server.begun()
    last: Any = None
    for number in range(5_000):
        (last,) = server.tell(
            "item/commandExecution/outputDelta", itemId="c", delta=f"line {number} " + "x" * 300 + "\n"
        )
    assert len(last.text.encode()) <= OUTPUT_BYTES
    assert last.text.count("\n") <= OUTPUT_LINES
    assert last.text.endswith("x\n")
    assert last.omitted_bytes > 0


# -- what may be written ------------------------------------------------------------------------------------------


def test_a_secret_and_raw_reasoning_are_masked_before_they_are_written() -> None:
    server = Server()
    server.begun()
    secret = {**QUESTION, "isSecret": True}
    asked = {
        "id": 0,
        "method": QUESTIONS,
        "params": {"threadId": THREAD, "itemId": "c", "questions": [secret]},
    }
    data = json.dumps(asked).encode()
    assert server.client.mask(data, from_agent=True) == data
    server.client.receive(data)
    (step, *_) = server.client.answer("0", Answered({"q": ((), "hunter2")})).steps
    assert isinstance(step, Send)
    assert b"hunter2" in step.frame
    kept = server.client.mask(step.frame, from_agent=False)
    assert b"hunter2" not in kept
    assert len(kept) == len(step.frame)
    echo = json.dumps({"method": "x", "params": {"a": 'said {"t":"hunter2"}'}}).encode()
    assert b"hunter2" not in server.client.mask(echo, from_agent=True)
    item = {"type": "reasoning", "id": "r", "summary": ["fine"], "content": ["private"]}
    frame = json.dumps({"method": "item/completed", "params": {"threadId": THREAD, "item": item}}).encode()
    clean = server.client.mask(frame, from_agent=True)
    assert b"private" not in clean
    assert b"fine" in clean
