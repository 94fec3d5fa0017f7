"""What an agent asks of us: permissions, forms, URLs, files and terminals; and what is written of the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from callsheet.harness._port.client import OPEN_MOST
from callsheet.harness.acp.client import Client
from callsheet.seam import (
    Accepted,
    Answer,
    Answered,
    Cancelled,
    Chosen,
    Declined,
    FormAsked,
    FormFilled,
    NotServed,
    OutputPreview,
    Permission,
    Rejected,
    RequestClosed,
    RequestOpened,
    Serve,
    Served,
    TurnChanged,
    UrlAsked,
    UrlOpened,
    Wish,
)
from tests.native.acp.conftest import OPTIONS
from tests.native.acp.playing import CWD, opened

BOTH = pytest.mark.parametrize("version", [1, 2])
SECRET = "hunter2-and-more"
PASSWORD = {"type": "object", "properties": {"who": {"type": "string"}, "word": {"format": "password"}}}


# -- permissions ----------------------------------------------------------------------------------------------------


def test_v1_a_permission_shows_its_call_and_every_option() -> None:
    play = opened(1)
    play.start()
    call = {"toolCallId": "c1", "title": "Run it", "rawInput": {"command": "make", "n": 1}}
    steps = play.ask(0, "session/request_permission", toolCall=call, options=[*OPTIONS, {"name": "no id"}])
    (opened_one,) = [one for one in steps if isinstance(one, RequestOpened)]
    asked = opened_one.request
    assert isinstance(asked, Permission)
    assert (asked.request_id, asked.call, asked.title, asked.command) == ("0", "c1", "Run it", "make")
    assert [option.option_id for option in asked.options] == ["ok", "no"]
    assert asked.input is not None and json.loads(bytes(asked.input)) == {"command": "make", "n": 1}
    assert steps[0] == TurnChanged("waiting")
    assert play.answer("0", Chosen("ok")) == Accepted()
    assert play.last == {"jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "ok"}}}
    assert play.steps[-2:] == [RequestClosed("0", "answered", "ok"), TurnChanged("running")]
    assert play.answer("0", Chosen("ok")) == Rejected("the request is not open any more")


@pytest.mark.parametrize(
    ("subject", "call", "command"),
    [
        ({"type": "tool_call", "toolCall": {"toolCallId": "c1", "rawInput": {"command": "ls"}}}, "c1", "ls"),
        ({"type": "command", "command": "make", "cwd": "/", "toolCallId": "c2"}, "c2", "make"),
        ({"type": "command", "command": "make", "cwd": "/"}, None, "make"),
        ({"type": "_later", "x": 1}, None, None),
        (None, None, None),
    ],
)
def test_v2_a_permission_has_a_subject(subject: Any, call: str | None, command: str | None) -> None:
    play = opened(2)
    play.start()
    play.ask("a", "session/request_permission", title="May I?", description="Why", subject=subject, options=OPTIONS)
    (asked,) = play.open
    assert isinstance(asked, Permission)
    assert (asked.title, asked.description, asked.call, asked.command) == ("May I?", "Why", call, command)
    assert play.answer("a", Cancelled()) == Accepted()
    assert play.last["result"] == {"outcome": {"outcome": "cancelled"}}


def test_an_answer_that_does_not_fit_is_rejected_and_the_request_stays_open() -> None:
    play = opened(1)
    play.start()
    play.ask(1, "session/request_permission", toolCall={"toolCallId": "c"}, options=OPTIONS)
    play.ask(2, "elicitation/create", mode="form", message="?", requestedSchema=PASSWORD)
    play.ask(3, "elicitation/create", mode="url", message="?", url="https://example.invalid", elicitationId="e")
    sent = len(play.sent)
    unfit: dict[str, list[Answer]] = {
        "1": [Chosen("other"), Chosen("ok", "words"), Declined(), UrlOpened(), Answered({})],
        "2": [Chosen("ok"), UrlOpened(), FormFilled(Raw(b"[]")), FormFilled(Raw(b"{")), Answered({})],
        "3": [Chosen("ok"), FormFilled(Raw(b"{}"))],
        "4": [Cancelled()],
    }
    for request, answers in unfit.items():
        for answer in answers:
            assert isinstance(play.answer(request, answer), Rejected), answer
    assert len(play.sent) == sent
    assert len(play.open) == 3


def test_an_id_that_comes_again_is_told_apart_as_in_the_record() -> None:
    play = opened(1)
    play.start()
    for title in ("One", "Two"):
        play.ask(5, "session/request_permission", toolCall={"toolCallId": title}, options=OPTIONS)
        (asked,) = play.open
        play.answer(asked.request_id, Chosen("ok"))
    play.ask(5, "session/request_permission", toolCall={"toolCallId": "Two"}, options=OPTIONS)
    assert [one.request.request_id for one in play.of(RequestOpened)] == ["5", "5#2", "5#2"]


def test_the_agent_takes_a_request_back() -> None:
    play = opened(2)
    play.start()
    play.ask(9, "session/request_permission", title="May I?", options=OPTIONS)
    play.hear({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 9}})
    assert play.last == {"jsonrpc": "2.0", "id": 9, "result": {"outcome": {"outcome": "cancelled"}}}
    assert play.steps[-2] == RequestClosed("9", "withdrawn", "cancelled")
    assert play.hear({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 9}}) == []


def test_requests_that_wait_are_bounded() -> None:
    play = opened(1)
    play.start()
    for number in range(OPEN_MOST // 2):
        play.ask(number, "session/request_permission", toolCall={"toolCallId": "c"}, options=OPTIONS)
        play.ask(1000 + number, "fs/read_text_file", path="/x")
    assert len(play.open) == len(play.of(Serve)) == OPEN_MOST // 2
    play.ask("more", "session/request_permission", toolCall={"toolCallId": "c"}, options=OPTIONS)
    assert play.last == {
        "jsonrpc": "2.0",
        "id": "more",
        "error": {"code": -32603, "message": f"{OPEN_MOST} requests wait already"},
    }
    play.answer("0", Chosen("ok"))
    play.ask("again", "session/request_permission", toolCall={"toolCallId": "c"}, options=OPTIONS)
    assert len(play.open) == OPEN_MOST // 2


# -- forms, URLs, secrets -------------------------------------------------------------------------------------------


@BOTH
def test_a_form_is_filled_declined_or_cancelled(version: int) -> None:
    for answer, wanted in (
        (FormFilled(Raw(b'{"who":"me"}')), {"action": "accept", "content": {"who": "me"}}),
        (Declined(), {"action": "decline"}),
        (Cancelled(), {"action": "cancel"}),
    ):
        play = opened(version)
        play.start()
        play.ask(1, "elicitation/create", mode="form", message="Who?", requestedSchema={"type": "object"}, toolCallId="c")
        (asked,) = play.open
        assert isinstance(asked, FormAsked)
        assert (asked.title, asked.call, bytes(asked.schema), asked.secret) == ("Who?", "c", b'{"type": "object"}', False)
        assert play.answer("1", answer) == Accepted()
        assert play.last["result"] == wanted


def test_a_url_is_agreed_to_and_never_opened() -> None:
    play = opened(2)
    play.start()
    play.ask(1, "elicitation/create", mode="url", message="Sign in", url="https://example.invalid/x", elicitationId="e")
    (asked,) = play.open
    assert isinstance(asked, UrlAsked) and asked.url == "https://example.invalid/x"
    assert play.answer("1", UrlOpened()) == Accepted()
    assert play.last["result"] == {"action": "accept"}


def test_the_answer_to_a_secret_is_in_nothing_that_is_written() -> None:
    play = opened(2)
    play.start()
    play.ask(1, "elicitation/create", mode="form", message="?", requestedSchema=PASSWORD)
    play.answer("1", FormFilled(Raw(json.dumps({"who": "me", "word": SECRET}).encode())))
    assert play.last["result"]["content"] == {"who": "me", "word": SECRET}
    play.update("agent_message_chunk", messageId="m", content={"type": "text", "text": f"So it is {SECRET}."})
    play.update("tool_call_update", toolCallId="c", rawInput={"deep": json.dumps({"a": SECRET})}, status="completed")
    data = "c28gaXQgaXMgaHVudGVyMi1hbmQtbW9yZQo="  # base64 of a sentence with it
    play.update("terminal_output_chunk", terminalId="t", data=data)
    assert SECRET.encode() not in play.data
    assert data.encode() not in play.data
    assert b'"who"' in play.data and b'"me"' in play.data
    for line in play.lines:
        json.loads(line)
    # What was said before the answer is not rewritten, and other words stay as they were.
    assert b"So it is" in play.data


def test_a_short_secret_is_masked_where_it_is_sent() -> None:
    play = opened(1)
    play.start()
    play.ask(1, "elicitation/create", mode="form", message="?", requestedSchema=PASSWORD)
    play.answer("1", FormFilled(Raw(b'{"who":"me","word":"abc"}')))
    assert b'"abc"' not in play.lines[-1] and b'"me"' in play.lines[-1]
    assert play.last["result"]["content"]["word"] == "abc"


def test_a_recorder_that_only_watches_masks_the_same() -> None:
    watch = Client(Wish(cwd=CWD))
    params = {"sessionId": "s", "mode": "form", "message": "?", "requestedSchema": PASSWORD}
    ask = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "elicitation\\/create", "params": params})
    ask = ask.replace("\\\\/", "\\/")
    assert watch.mask(ask.encode(), from_agent=True) == ask.encode()
    content = '{"who":"me","word":"\\ud83d half hunter2 \\ud83d"}'
    answer = f'{{"jsonrpc":"2.0","id":"x","result":{{"action":"accept","content":{content}}}}}'.encode()
    masked = watch.mask(answer, from_agent=False)
    assert b"hunter2" not in masked
    assert b'"me"' in masked
    assert json.loads(masked)["result"]["action"] == "accept"
    # Of another id nothing is masked, and an answer counts once.
    plain = b'{"jsonrpc":"2.0","id":"y","result":{"action":"accept","content":{"word":"other words"}}}'
    assert watch.mask(plain, from_agent=False) == plain


# -- files and terminals --------------------------------------------------------------------------------------------


def test_v1_files_and_terminals_are_the_shells_matter() -> None:
    play = opened(1)
    play.start()
    play.update("tool_call", toolCallId="c", title="ls", status="in_progress", content=[{"type": "terminal", "terminalId": "t"}])
    (serve,) = play.ask(3, "terminal/output", terminalId="t")
    assert isinstance(serve, Serve)
    assert (serve.method, json.loads(bytes(serve.params))) == ("terminal/output", {"sessionId": "s1", "terminalId": "t"})
    steps = play.take(play.client.served(serve.key, Served(Raw(b'{"output":"a\\nb\\n","truncated":false}'))))
    assert play.last == {"jsonrpc": "2.0", "id": 3, "result": {"output": "a\nb\n", "truncated": False}}
    assert steps[1] == OutputPreview(call="c", text="a\nb\n", omitted_bytes=0)
    assert play.client.served(serve.key, Served(Raw(b"{}"))) == []


@pytest.mark.parametrize(
    ("kind", "code"), [("invalid", -32602), ("refused", -32602), ("missing", -32002), ("failed", -32603)]
)
def test_v1_what_was_not_served_is_an_error_that_says_why(kind: Any, code: int) -> None:
    play = opened(1)
    (serve,) = play.ask(3, "fs/read_text_file", path="/etc/passwd")
    assert isinstance(serve, Serve)
    play.take(play.client.served(serve.key, NotServed("outside", kind)))
    assert play.last == {"jsonrpc": "2.0", "id": 3, "error": {"code": code, "message": "outside"}}


def test_v1_the_agent_does_not_wait_for_a_terminal_any_more() -> None:
    play = opened(1)
    (serve,) = play.ask(3, "terminal/wait_for_exit", terminalId="t")
    assert isinstance(serve, Serve)
    play.hear({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}})
    assert play.last["error"]["code"] == -32800
    assert play.client.served(serve.key, Served(Raw(b"{}"))) == []


@pytest.mark.parametrize(("version", "method"), [(2, "fs/read_text_file"), (2, "terminal/create"), (1, "later/x"), (2, "_x/y")])
def test_methods_that_are_not_known_are_refused(version: int, method: str) -> None:
    play = opened(version)
    play.ask("x", method, path=f"{CWD}/a")
    assert play.last["error"]["code"] == -32601
    assert play.last["id"] == "x"
