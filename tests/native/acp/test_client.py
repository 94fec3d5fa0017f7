"""The client's half of a connection: what it sends, what it makes of what an agent sends, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from callsheet.harness import LIVE
from callsheet.harness._port.tails import ending
from callsheet.harness.acp.client import OPEN_MOST, Client
from callsheet.seam import (
    Accepted,
    Answer,
    Answered,
    CallPreview,
    Can,
    Cancelled,
    Cannot,
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
    NotServed,
    NotStarted,
    Opened,
    OutputPreview,
    Permission,
    Rejected,
    RequestClosed,
    RequestOpened,
    Serve,
    Served,
    Serving,
    ThoughtPreview,
    TurnChanged,
    Unusable,
    UrlAsked,
    UrlOpened,
    Wish,
)
from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES, TEXT_BYTES
from tests.native.acp.conftest import OPTIONS
from tests.native.acp.playing import CWD, Play, opened

BOTH = pytest.mark.parametrize("version", [1, 2])
SECRET = "hunter2-and-more"
PASSWORD = {"type": "object", "properties": {"who": {"type": "string"}, "word": {"format": "password"}}}
TEXT = {"type": "text", "text": "words"}


def last(play: Play) -> dict[str, Any]:
    return play.sent[-1]


def result(play: Play) -> Any:
    (end,) = play.of(Ended)
    return end.result


def end(play: Play, reason: str | None = "end_turn", **more: Any) -> None:
    """The agent ends the turn in its version's way."""
    if play.client._version == 1:
        play.reply({"stopReason": reason, **more})
    else:
        play.reply({"messageId": "u1"})
        play.update("state_update", state="running")
        play.update("state_update", state="idle", stopReason=reason, **more)


# -- opening --------------------------------------------------------------------------------------------------------


def test_one_handshake_asks_for_version_2_and_tells_version_1_what_it_needs() -> None:
    params = Play().sent[0]["params"]
    assert params["protocolVersion"] == 2
    assert params["info"]["name"] == params["clientInfo"]["name"] == "callsheet"
    assert params["clientCapabilities"]["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert params["clientCapabilities"]["terminal"] is True
    assert params["capabilities"]["elicitation"] == {"form": {}, "url": {}}


@BOTH
def test_a_session_is_opened_with_what_the_agent_says_of_itself(version: int) -> None:
    play = opened(version)
    assert last(play)["method"] == "session/new"
    assert last(play)["params"] == {"cwd": CWD, "mcpServers": []}
    (said,) = play.of(Opened)
    assert (said.session, said.agent, said.version, said.model) == ("s1", "toy", "0.1", None)
    assert Can("interrupt", f"version {version} of the protocol") in said.abilities
    assert isinstance(play.client, Serving)


def test_an_agent_that_refuses_version_2_is_asked_for_version_1() -> None:
    play = Play()
    play.reply(error={"code": -32022, "message": "Unsupported protocol version", "data": {"supported": [1]}})
    assert last(play)["params"]["protocolVersion"] == 1
    assert "info" not in last(play)["params"]
    play.reply({"protocolVersion": 1})
    play.reply({"sessionId": "s1"})
    assert len(play.of(Opened)) == 1


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([{"error": {"code": 1, "message": "no"}}, {"error": {"code": 1, "message": "never"}}], "refused the handshake: never"),
        ([{"result": {"protocolVersion": 3}}], "speaks version 3"),
        ([{"result": {"protocolVersion": "2"}}], "speaks version none"),
        ([{"result": None}], "speaks version none"),
        ([{"result": {"protocolVersion": 1}}, {"error": {"code": -32603, "message": "broken"}}], "opened no session: broken"),
        ([{"result": {"protocolVersion": 1}}, {"result": {}}], "without an id"),
        (
            [{"result": {"protocolVersion": 1, "authMethods": [{"id": "oauth"}]}}, {"error": {"code": -32000, "message": "Auth"}}],
            r"wants a login first \(oauth\): Auth",
        ),
        (
            [{"result": {"protocolVersion": 2, "authMethods": [{"methodId": "key"}]}}, {"error": {"code": -32000}}],
            r"wants a login first \(key\)",
        ),
    ],
)
def test_a_session_that_cannot_be_opened_is_said_in_one_line(answers: list[dict[str, Any]], words: str) -> None:
    play = Play()
    for answer in answers:
        play.reply(**answer)
    assert isinstance(result(play), NotStarted)
    assert pytest.importorskip("re").search(words, result(play).reason)
    assert play.hear({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "late"}}) == []
    assert play.client.gone(0, None) == []


@pytest.mark.parametrize(
    ("handshake", "method"),
    [
        ({"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}, "session/load"),
        ({"protocolVersion": 1, "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}, "session/resume"),
        ({"protocolVersion": 2, "capabilities": {"session": {}}}, "session/resume"),
    ],
)
def test_going_on_with_a_session(handshake: dict[str, Any], method: str) -> None:
    play = Play(Wish(cwd=CWD, resume="s1"))
    play.reply(handshake)
    assert (last(play)["method"], last(play)["params"]["sessionId"]) == (method, "s1")
    assert play.update("agent_message_chunk", content=TEXT) == []  # the replay
    play.reply({})
    assert play.of(Opened)[0].session == "s1"


@pytest.mark.parametrize("handshake", [{"protocolVersion": 1}, {"protocolVersion": 2}])
def test_an_agent_that_cannot_go_on_is_not_asked_to(handshake: dict[str, Any]) -> None:
    play = Play(Wish(cwd=CWD, resume="s1"))
    play.reply(handshake)
    assert isinstance(result(play), NotStarted)
    assert len(play.sent) == 1


def options(version: int) -> list[dict[str, Any]]:
    key = "configId" if version > 1 else "id"
    models = [{"value": "small"}, {"group": "more", "options": [{"value": "large"}]}]
    return [
        {key: "m", "category": "model", "type": "select", "currentValue": "small", "options": models},
        {key: "mode", "type": "select", "currentValue": "ask", "options": [{"value": "ask"}, {"value": "plan"}]},
        {key: "fast", "category": "mode", "type": "boolean", "currentValue": True},
    ]


@BOTH
def test_model_and_mode_are_set_before_the_session_is_called_open(version: int) -> None:
    play = opened(version, Wish(cwd=CWD, model="large", mode="plan"), configOptions=options(version))
    wanted = {"sessionId": "s1", "configId": "m", "value": "large"} | ({"type": "id"} if version > 1 else {})
    assert (last(play)["method"], last(play)["params"]) == ("session/set_config_option", wanted)
    assert play.of(Opened) == []
    told = options(version)
    told[0]["currentValue"] = "large-but-other"
    play.reply({"configOptions": told})
    assert last(play)["params"]["value"] == "plan"
    play.reply({"configOptions": told})
    (said,) = play.of(Opened)
    assert said.model == "large-but-other"  # as the agent reports it
    assert Can("mode", "its session offers a choice") in said.abilities


def test_v1_modes_and_models_have_requests_of_their_own() -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan"}]}
    models = {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}
    play = opened(1, Wish(cwd=CWD, model="b", mode="plan"), modes=modes, models=models)
    assert (last(play)["method"], last(play)["params"]["modelId"]) == ("session/set_model", "b")
    play.reply({})
    assert (last(play)["method"], last(play)["params"]["modeId"]) == ("session/set_mode", "plan")
    play.reply({})
    assert play.of(Opened)[0].model == "b"


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Wish(cwd=CWD, mode="yolo"), "no mode yolo; offered: ask, plan"),
        (Wish(cwd=CWD, model="huge"), "no model huge; offered: small, large"),
    ],
)
def test_what_is_not_offered_is_not_started_with(wish: Wish, words: str) -> None:
    play = opened(1, wish, configOptions=options(1))
    assert result(play) == NotStarted(words)


def test_a_setting_that_the_agent_refuses_starts_nothing() -> None:
    play = opened(1, Wish(cwd=CWD, mode="plan"), configOptions=options(1))
    play.reply(error={"code": -32602, "message": "locked"})
    assert result(play) == NotStarted("the agent did not set the mode plan: locked")
    assert play.of(Opened) == []
    assert result(opened(1, Wish(cwd=CWD, mode="plan"))).reason == "the agent offers no choice of a mode"


# -- turns ----------------------------------------------------------------------------------------------------------

ENDS = [
    ("end_turn", Completed("end_turn")),
    ("cancelled", Interrupted("cancelled")),
    ("max_tokens", Interrupted("max_tokens")),
    ("max_turn_requests", Interrupted("max_turn_requests")),
    ("refusal", Failed(None, "refusal")),
    ("_later", Lost("the agent ended the turn with a word that is not known: _later")),
    (None, Lost("the agent ended the turn with no word for it")),
]


@BOTH
@pytest.mark.parametrize(("reason", "wanted"), ENDS)
def test_a_turn_ends_with_the_agents_own_word(version: int, reason: str | None, wanted: Any) -> None:
    play = opened(version)
    assert play.start("Go.")[0] == TurnChanged("starting")
    assert last(play)["params"] == {"sessionId": "s1", "prompt": [{"type": "text", "text": "Go."}]}
    end(play, reason)
    assert result(play) == wanted
    assert play.steps[-2] == TurnChanged("settled")
    assert play.steps[-1] == Ended(wanted)


def test_v2_an_error_comes_with_the_idle_state() -> None:
    play = opened(2)
    play.start()
    end(play, "error", error={"code": 1, "message": "no model"})
    assert result(play) == Failed("no model", "error")


def test_v2_a_state_of_before_the_prompt_ends_nothing() -> None:
    play = opened(2)
    play.start()
    assert play.update("state_update", state="idle", stopReason="end_turn", background=[]) == []
    play.reply({"messageId": "u1"})
    assert play.update("state_update", state="idle", background=[]) == []
    assert play.update("state_update", state="running") == [TurnChanged("running")]
    play.update("state_update", state="idle", stopReason="end_turn")
    assert result(play) == Completed("end_turn")


@pytest.mark.parametrize(
    ("version", "code", "busy", "wanted"),
    [
        (1, -32602, False, NotStarted("no")),
        (1, -32602, True, Failed("no", "-32602")),
        (1, -32603, False, Failed("no", "-32603")),
        (1, -32800, True, Interrupted("-32800")),
        (2, -32603, False, NotStarted("no")),
        (2, -32603, True, Failed("no", "-32603")),
    ],
)
def test_a_prompt_that_is_answered_with_an_error(version: int, code: int, busy: bool, wanted: Any) -> None:
    play = opened(version)
    play.start()
    if busy:
        play.update("agent_message_chunk", content=TEXT)
        play.update("state_update", state="running")
    play.reply(error={"code": code, "message": "no"})
    assert result(play) == wanted


@BOTH
def test_a_second_turn(version: int) -> None:
    play = opened(version)
    for number in (1, 2):
        play.start(f"Turn {number}.")
        end(play)
        assert len(play.of(Ended)) == number
    assert [one.state for one in play.of(TurnChanged)] == ["starting", "running", "settled"] * 2 or version == 1


@BOTH
def test_an_agent_that_dies_is_a_lost_turn(version: int) -> None:
    play = opened(version)
    play.start()
    play.ask(7, "session/request_permission", toolCall={"toolCallId": "c"}, title="May I?", options=OPTIONS)
    steps = play.take(play.client.gone(None, "SIGKILL"))
    assert steps == [
        RequestClosed("7", "ended"),
        TurnChanged("settled"),
        Ended(Lost("the agent ended by SIGKILL before the turn did")),
    ]
    assert play.client.gone(None, None) == []
    assert isinstance(play.answer("7", Cancelled()), Rejected)


def test_an_agent_that_dies_before_it_opens_a_session_started_nothing() -> None:
    assert Play().client.gone(127, None) == [
        Ended(NotStarted("the agent ended with 127 before it opened a session"))
    ]
    assert opened(1).client.gone(0, None) == []


# -- breaking off ---------------------------------------------------------------------------------------------------


@BOTH
def test_a_cancelled_turn_answers_what_is_open_and_waits_for_the_agent(version: int) -> None:
    play = opened(version)
    assert play.client.interrupt().receipt == Rejected("no turn is running")
    play.start()
    play.ask(7, "session/request_permission", toolCall={"toolCallId": "c"}, title="May I?", options=OPTIONS)
    play.ask("e", "elicitation/create", mode="form", message="?", requestedSchema=PASSWORD)
    before = len(play.sent)
    reply = play.client.interrupt()
    play.take(reply.steps)
    assert reply.receipt == Accepted()
    assert play.sent[before:] == [
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}},
        {"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "cancelled"}}},
        {"jsonrpc": "2.0", "id": "e", "result": {"action": "cancel"}},
    ]
    assert play.open == []
    assert play.of(Ended) == []
    assert isinstance(play.client.interrupt().receipt, Rejected)
    # What it asks from now on is answered at once, and nobody is bothered.
    assert play.of(RequestOpened) == play.of(RequestOpened)[:2]
    play.ask(8, "session/request_permission", toolCall={"toolCallId": "d"}, title="May I?", options=OPTIONS)
    assert last(play) == {"jsonrpc": "2.0", "id": 8, "result": {"outcome": {"outcome": "cancelled"}}}
    assert len(play.of(RequestOpened)) == 2
    if version == 1:
        number = next(one["id"] for one in play.sent if one.get("method") == "session/prompt")
        play.hear({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "cancelled"}})
    else:
        play.update("state_update", state="running")
        play.update("state_update", state="idle", stopReason="cancelled")
    assert result(play) == Interrupted("cancelled")
    assert [one.state for one in play.of(TurnChanged)][-2:] == ["interrupting", "settled"]


def test_the_protocol_has_no_steering() -> None:
    play = opened(2)
    play.start()
    assert isinstance(play.client.steer("Left!").receipt, Rejected)
    assert [one for one in play.of(Opened)[0].abilities if isinstance(one, Cannot) and one.name == "steer"]


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
    assert steps[-1] == TurnChanged("waiting")
    assert play.answer("0", Chosen("ok")) == Accepted()
    assert last(play) == {"jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "ok"}}}
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
    assert last(play)["result"] == {"outcome": {"outcome": "cancelled"}}


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


def test_ids_of_both_directions_count_apart() -> None:
    play = opened(1)
    play.start()
    number = last(play)["id"]
    play.ask(number, "session/request_permission", toolCall={"toolCallId": "c"}, options=OPTIONS)
    assert play.answer(str(number), Chosen("ok")) == Accepted()
    assert play.of(Ended) == []
    play.hear({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
    assert result(play) == Completed("end_turn")


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
    assert last(play) == {"jsonrpc": "2.0", "id": 9, "result": {"outcome": {"outcome": "cancelled"}}}
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
    assert last(play) == {
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
        assert last(play)["result"] == wanted


def test_a_url_is_agreed_to_and_never_opened() -> None:
    play = opened(2)
    play.start()
    play.ask(1, "elicitation/create", mode="url", message="Sign in", url="https://example.invalid/x", elicitationId="e")
    (asked,) = play.open
    assert isinstance(asked, UrlAsked) and asked.url == "https://example.invalid/x"
    assert play.answer("1", UrlOpened()) == Accepted()
    assert last(play)["result"] == {"action": "accept"}


def test_the_answer_to_a_secret_is_in_nothing_that_is_written() -> None:
    play = opened(2)
    play.start()
    play.ask(1, "elicitation/create", mode="form", message="?", requestedSchema=PASSWORD)
    play.answer("1", FormFilled(Raw(json.dumps({"who": "me", "word": SECRET}).encode())))
    assert last(play)["result"]["content"] == {"who": "me", "word": SECRET}
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
    assert last(play)["result"]["content"]["word"] == "abc"


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
    assert last(play) == {"jsonrpc": "2.0", "id": 3, "result": {"output": "a\nb\n", "truncated": False}}
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
    assert last(play) == {"jsonrpc": "2.0", "id": 3, "error": {"code": code, "message": "outside"}}


def test_v1_the_agent_does_not_wait_for_a_terminal_any_more() -> None:
    play = opened(1)
    (serve,) = play.ask(3, "terminal/wait_for_exit", terminalId="t")
    assert isinstance(serve, Serve)
    play.hear({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}})
    assert last(play)["error"]["code"] == -32800
    assert play.client.served(serve.key, Served(Raw(b"{}"))) == []


@pytest.mark.parametrize(("version", "method"), [(2, "fs/read_text_file"), (2, "terminal/create"), (1, "later/x"), (2, "_x/y")])
def test_methods_that_are_not_known_are_refused(version: int, method: str) -> None:
    play = opened(version)
    play.ask("x", method, path=f"{CWD}/a")
    assert last(play)["error"]["code"] == -32601
    assert last(play)["id"] == "x"


# -- previews -------------------------------------------------------------------------------------------------------


@BOTH
def test_a_message_grows_and_a_thought_is_only_said_to_be_there(version: int) -> None:
    play = opened(version)
    play.start()
    key = {"messageId": "m"} if version > 1 else {}
    play.update("agent_thought_chunk", content={"type": "text", "text": "secretly"}, **({"messageId": "t"} if key else {}))
    play.update("agent_message_chunk", content={"type": "text", "text": "one "}, **key)
    play.update("agent_message_chunk", content={"type": "text", "text": "two"}, **key)
    (thought,) = play.of(ThoughtPreview)
    assert thought.text == ""
    first, second = play.of(MessagePreview)
    assert (first.text, second.text) == ("one ", "one two")
    assert first.key == second.key


def test_v2_a_whole_message_replaces_its_pieces() -> None:
    play = opened(2)
    play.start()
    play.update("agent_message_chunk", messageId="m", content=TEXT)
    play.update("agent_message", messageId="m", content=[{"type": "text", "text": "better"}])
    play.update("agent_message", messageId="m", content=None)
    assert [one.text for one in play.of(MessagePreview)] == ["words", "better", ""]


def test_v1_a_call_between_two_pieces_parts_the_message() -> None:
    play = opened(1)
    play.start()
    play.update("agent_message_chunk", content=TEXT)
    play.update("tool_call", toolCallId="c", title="x")
    play.update("agent_message_chunk", content=TEXT)
    one, two = play.of(MessagePreview)
    assert one.key != two.key and two.text == "words"


def test_null_leaves_or_clears_by_version() -> None:
    for version, title in ((1, "Run"), (2, None)):
        play = opened(version)
        play.start()
        play.update("tool_call_update", toolCallId="c", title="Run", name="sh", rawInput={"a": 1}, status="in_progress")
        play.update("tool_call_update", toolCallId="c", title=None, status="pending", _meta={"v": {"parentToolUseId": "p"}})
        first, second = play.of(CallPreview)
        assert first == CallPreview(call="c", name="sh", title="Run", input='{"a": 1}', running=True)
        assert (second.title, second.running, second.parent) == (title, False, "p")


def test_a_call_that_has_ended_is_not_shown_again() -> None:
    play = opened(1)
    play.start()
    play.update("tool_call", toolCallId="c", title="One")
    play.update("tool_call_update", toolCallId="c", status="completed")
    assert play.update("tool_call_update", toolCallId="c", title="Late") == []
    assert play.update("tool_call", toolCallId="c", title="Two") == [CallPreview(call="c", title="Two")]


def test_output_is_the_bounded_tail() -> None:
    play = opened(2)
    play.start()
    play.update("tool_call_update", toolCallId="c", status="in_progress", content=[{"type": "terminal", "terminalId": "t"}])
    base64 = pytest.importorskip("base64")
    whole = b"".join(b"line %d \xc3\xa9\n" % number for number in range(30_000))
    for start in range(0, len(whole), 5_001):
        play.update("terminal_output_chunk", terminalId="t", data=base64.b64encode(whole[start : start + 5_001]).decode())
    for output in play.of(OutputPreview):
        size = len(output.text.encode())
        assert size <= OUTPUT_BYTES and len(output.text.splitlines()) <= OUTPUT_LINES
        assert "\ufffd" not in output.text
    last_one = play.of(OutputPreview)[-1]
    shown = last_one.text.encode()
    assert whole.endswith(shown)
    assert last_one.omitted_bytes + len(shown) == len(whole)


def test_the_tail_of_one_long_line_begins_with_a_whole_character() -> None:
    for shift in range(4):
        text, omitted = ending(b"x" * shift + "\N{MUSICAL SYMBOL G CLEF}".encode() * 40_000)
        assert set(text) == {"\N{MUSICAL SYMBOL G CLEF}"}
        assert OUTPUT_BYTES - 4 < len(text.encode()) <= OUTPUT_BYTES
        assert omitted + len(text.encode()) == shift + 160_000


def test_half_a_character_at_the_end_waits_for_its_rest() -> None:
    for whole in ("é", "€", "\N{MUSICAL SYMBOL G CLEF}"):
        data = whole.encode()
        for cut in range(1, len(data)):
            assert ending(b"a" + data[:cut])[0] == "a"
        assert ending(b"a" + data)[0] == "a" + whole
    assert ending(b"a\xff")[0] == "a\ufffd"


def test_messages_are_bounded() -> None:
    play = opened(1)
    play.start()
    for _ in range(40):
        play.update("agent_message_chunk", content={"type": "text", "text": "é" * 5_000})
    assert all(len(one.text.encode()) <= TEXT_BYTES for one in play.of(MessagePreview))


def test_a_child_session_shows_no_previews_but_its_requests_do_open() -> None:
    play = opened(2)
    play.start()
    child = {"sessionId": "child", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "x", "title": "X"}}
    assert play.hear({"jsonrpc": "2.0", "method": "session/update", "params": child}) == []
    play.hear(
        {
            "jsonrpc": "2.0",
            "id": 4,
            "method": "session/request_permission",
            "params": {"sessionId": "child", "title": "May I?", "options": OPTIONS},
        }
    )
    assert [one.request_id for one in play.open] == ["4"]


def test_a_mode_that_changes_is_noted() -> None:
    play = opened(1)
    play.start()
    assert Noted("mode: plan") in play.update("current_mode_update", currentModeId="plan")


# -- anything at all ------------------------------------------------------------------------------------------------

KINDS = ["tool_call", "tool_call_update", "agent_message_chunk", "agent_message", "terminal_update", "state_update",
         "terminal_output_chunk", "tool_call_content_chunk", "config_option_update", "current_mode_update", "later"]
METHODS = ["session/update", "session/request_permission", "elicitation/create", "fs/read_text_file", "$/cancel_request", "x"]
NAMES = ["sessionUpdate", "toolCallId", "content", "status", "rawInput", "messageId", "terminalId", "data", "state", "options",
         "_meta", "output", "stopReason", "type", "text", "requestId", "url", "mode", "requestedSchema", "toolCall", "subject"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=5) | st.sampled_from([*KINDS, "s1", "idle", "running"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
updates = st.builds(
    lambda kind, more: {"method": "session/update", "params": {"sessionId": "s1", "update": {**more, "sessionUpdate": kind}}},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(NAMES), anything, max_size=6),
)
frames = st.one_of(
    st.builds(lambda value: json.dumps({"jsonrpc": "2.0", **value}).encode(), updates),
    st.builds(
        lambda method, number, params: json.dumps({"method": method, "id": number, "params": params}).encode(),
        st.sampled_from(METHODS), anything, anything,
    ),
    st.builds(lambda number, told: json.dumps({"id": number, **told}).encode(), st.integers(0, 4),
              st.fixed_dictionaries({}, optional={"result": anything, "error": anything})),
    anything.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=20),
)


@given(st.sampled_from([1, 2]), st.lists(frames, max_size=12))
def test_no_frame_breaks_the_client(version: int, many: list[bytes]) -> None:
    play = opened(version)
    play.start()
    for frame in many:
        play.hear(frame)
        if play.of(Ended):
            break
    for asked in play.open:
        play.answer(asked.request_id, Cancelled())
    play.take(play.client.gone(0, None))
    assert len(play.of(Ended)) == 1
    assert play.open == []


@given(st.lists(frames, max_size=6))
def test_no_handshake_breaks_the_client(many: list[bytes]) -> None:
    play = Play(Wish(cwd=CWD, mode="plan"))
    for frame in many:
        play.hear(frame)
    play.take(play.client.gone(0, None))
    ends = play.of(Ended)
    assert len(ends) == (0 if play.of(Opened) else 1)
    assert all(isinstance(one.result, NotStarted) for one in ends)


# -- agents that can be run -----------------------------------------------------------------------------------------


def test_every_agent_of_the_protocol_has_its_command() -> None:
    agents = {agent.name: agent for agent in LIVE if agent.kind == "acp"}
    wish = Wish(cwd=CWD)
    assert {name: (agent.programs, agent.driver(wish).launch().arguments) for name, agent in agents.items()} == {
        "acp": ((), ()),
        "claude-acp": (("claude-agent-acp",), ()),
        "codex-acp": (("codex-acp",), ()),
        "gemini": (("gemini",), ("--acp",)),
        "opencode": (("opencode",), ("acp",)),
    }
    old = agents["gemini"].driver(Wish(cwd=CWD, version="0.32.1")).launch()
    assert old.arguments == ("--experimental-acp",)
    assert old.switches == () and old.environment == {}


def test_what_an_agent_prints_for_its_version() -> None:
    agents = {agent.name: agent for agent in LIVE if agent.kind == "acp"}
    found = agents["gemini"].qualify(("gemini",), "0.61.0\n")
    assert isinstance(found, Installed) and found.version == "0.61.0"
    assert isinstance(agents["opencode"].qualify(("opencode",), "no idea"), Unusable)
    unknown = agents["acp"].qualify(("anything",), "")
    assert isinstance(unknown, Installed) and unknown.version is None
    assert agents["acp"].ask_version() == ()


def test_only_an_unknown_agent_is_offered_files_and_terminals() -> None:
    for agent in (one for one in LIVE if one.kind == "acp"):
        client = agent.driver(Wish(cwd=CWD))
        assert isinstance(client, Client)
        play = Play(client=client)
        abilities = play.sent[0]["params"]["clientCapabilities"]
        lent = agent.name == "acp"
        assert abilities["fs"] == {"readTextFile": lent, "writeTextFile": lent}
        assert abilities["terminal"] is lent
        play.reply({"protocolVersion": 1})
        play.reply({"sessionId": "s1"})
        play.ask(1, "fs/read_text_file", path="/x")
        assert len(play.of(Serve)) == lent
        assert lent or last(play)["error"]["code"] == -32601


def test_frames_are_single_lines() -> None:
    client = Client(Wish(cwd="/with\nbreak"))
    for step in client.open():
        frame = getattr(step, "frame", b"")
        assert b"\n" not in frame and msgspec.json.decode(frame)
