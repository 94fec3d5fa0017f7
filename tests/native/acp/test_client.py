"""The client's half of a connection: what it sends, what it makes of what an agent sends, and what it refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from callsheet.harness import LIVE
from callsheet.harness.acp.client import Client
from callsheet.seam import (
    Accepted,
    Can,
    Cannot,
    Completed,
    Ended,
    Failed,
    Installed,
    Interrupted,
    Lost,
    NotStarted,
    Opened,
    Rejected,
    RequestOpened,
    Serve,
    Serving,
    TurnChanged,
    Unusable,
    Wish,
)
from tests.native.acp.conftest import OPTIONS
from tests.native.acp.playing import CWD, Play, opened

BOTH = pytest.mark.parametrize("version", [1, 2])
PASSWORD = {"type": "object", "properties": {"who": {"type": "string"}, "word": {"format": "password"}}}
TEXT = {"type": "text", "text": "words"}


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
    assert play.last["method"] == "session/new"
    assert play.last["params"] == {"cwd": CWD, "mcpServers": []}
    (said,) = play.of(Opened)
    assert (said.session, said.agent, said.version, said.model) == ("s1", "toy", "0.1", None)
    assert Can("interrupt", f"version {version} of the protocol") in said.abilities
    assert isinstance(play.client, Serving)


def test_an_agent_that_refuses_version_2_is_asked_for_version_1() -> None:
    play = Play()
    play.reply(error={"code": -32022, "message": "Unsupported protocol version", "data": {"supported": [1]}})
    assert play.last["params"]["protocolVersion"] == 1
    assert "info" not in play.last["params"]
    play.reply({"protocolVersion": 1})
    play.reply({"sessionId": "s1"})
    assert len(play.of(Opened)) == 1


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([{"error": {"code": 1, "message": "no"}}, {"error": {"code": 1, "message": "never"}}], "refused the handshake: never"),
        (
            [{"error": {"code": 1, "message": "no server"}}, {"error": {"code": -32022, "message": "unsupported"}}],
            "refused the handshake: no server",
        ),
        ([{"result": {"protocolVersion": 3}}], "speaks version 3"),
        ([{"result": {"protocolVersion": 0}}], "speaks version 0"),
        ([{"result": {"protocolVersion": 2.0}}], "speaks version none"),
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
    assert isinstance(play.result, NotStarted)
    assert pytest.importorskip("re").search(words, play.result.reason)
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
    assert (play.last["method"], play.last["params"]["sessionId"]) == (method, "s1")
    assert play.update("agent_message_chunk", content=TEXT) == []  # the replay
    play.reply({})
    assert play.of(Opened)[0].session == "s1"


@pytest.mark.parametrize("handshake", [{"protocolVersion": 1}, {"protocolVersion": 2}])
def test_an_agent_that_cannot_go_on_is_not_asked_to(handshake: dict[str, Any]) -> None:
    play = Play(Wish(cwd=CWD, resume="s1"))
    play.reply(handshake)
    assert isinstance(play.result, NotStarted)
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
    assert (play.last["method"], play.last["params"]) == ("session/set_config_option", wanted)
    assert play.of(Opened) == []
    told = options(version)
    told[0]["currentValue"] = "large-but-other"
    play.reply({"configOptions": told})
    assert play.last["params"]["value"] == "plan"
    play.reply({"configOptions": told})
    (said,) = play.of(Opened)
    assert said.model == "large-but-other"  # as the agent reports it
    assert Can("mode", "its session offers a choice") in said.abilities


def test_v1_modes_and_models_have_requests_of_their_own() -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan"}]}
    models = {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}
    play = opened(1, Wish(cwd=CWD, model="b", mode="plan"), modes=modes, models=models)
    assert (play.last["method"], play.last["params"]["modelId"]) == ("session/set_model", "b")
    play.reply({})
    assert (play.last["method"], play.last["params"]["modeId"]) == ("session/set_mode", "plan")
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
    assert play.result == NotStarted(words)


def test_a_setting_that_the_agent_refuses_starts_nothing() -> None:
    play = opened(1, Wish(cwd=CWD, mode="plan"), configOptions=options(1))
    play.reply(error={"code": -32602, "message": "locked"})
    assert play.result == NotStarted("the agent did not set the mode plan: locked")
    assert play.of(Opened) == []
    assert (opened(1, Wish(cwd=CWD, mode="plan"))).result.reason == "the agent offers no choice of a mode"


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
    assert play.last["params"] == {"sessionId": "s1", "prompt": [{"type": "text", "text": "Go."}]}
    play.stopped(reason)
    assert play.result == wanted
    assert play.steps[-2] == TurnChanged("settled")
    assert play.steps[-1] == Ended(wanted)


def test_v2_an_error_comes_with_the_idle_state() -> None:
    play = opened(2)
    play.start()
    play.stopped("error", error={"code": 1, "message": "no model"})
    assert play.result == Failed("no model", "error")


def test_v2_a_state_of_before_the_prompt_ends_nothing() -> None:
    play = opened(2)
    play.start()
    assert play.update("state_update", state="idle", stopReason="end_turn", background=[]) == []
    play.reply({"messageId": "u1"})
    assert play.update("state_update", state="idle", background=[]) == []
    assert play.update("state_update", state="running") == [TurnChanged("running")]
    play.update("state_update", state="idle", stopReason="end_turn")
    assert play.result == Completed("end_turn")


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
    assert play.result == wanted


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
    assert play.last == {"jsonrpc": "2.0", "id": 8, "result": {"outcome": {"outcome": "cancelled"}}}
    assert len(play.of(RequestOpened)) == 2
    if version == 1:
        number = next(one["id"] for one in play.sent if one.get("method") == "session/prompt")
        play.hear({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "cancelled"}})
    else:
        play.update("state_update", state="running")
        play.update("state_update", state="idle", stopReason="cancelled")
    assert play.result == Interrupted("cancelled")
    assert [one.state for one in play.of(TurnChanged)][-2:] == ["interrupting", "settled"]


def test_the_protocol_has_no_steering() -> None:
    play = opened(2)
    play.start()
    assert isinstance(play.client.steer("Left!").receipt, Rejected)
    assert [one for one in play.of(Opened)[0].abilities if isinstance(one, Cannot) and one.name == "steer"]


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
        assert lent or play.last["error"]["code"] == -32601


def test_frames_are_single_lines() -> None:
    client = Client(Wish(cwd="/with\nbreak"))
    for step in client.open():
        frame = getattr(step, "frame", b"")
        assert b"\n" not in frame and msgspec.json.decode(frame)
