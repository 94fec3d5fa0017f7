"""Our half of a live connection, the same for every protocol: turns and their one end, requests, controls, ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from callsheet.harness._port.client import OPEN_MOST
from callsheet.seam import (
    Accepted,
    Cancelled,
    Chosen,
    Completed,
    Ended,
    FormAsked,
    FormFilled,
    Interrupted,
    Lost,
    NotStarted,
    Opened,
    Permission,
    Rejected,
    RequestClosed,
    RequestOpened,
    Send,
    TurnChanged,
)
from tests.native.acp.playing import Play
from tests.native.claude_code.agent import Agent
from tests.native.codex.server import Server
from tests.native.held import held
from tests.native.peers import Peer

SECRET = "hunter2-hunter2"
PEERS: dict[str, Callable[[], Peer]] = {
    "acp-1": lambda: Play(version=1),
    "acp-2": lambda: Play(version=2),
    "claude-code": Agent,
    "codex": Server,
}


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> Peer:
    return PEERS[request.param]()


@pytest.fixture(params=[name for name in PEERS if name != "claude-code"])
def rpc(request: pytest.FixtureRequest) -> Any:
    return PEERS[request.param]()


# -- opening ------------------------------------------------------------------------------------------------------


def test_a_refused_handshake_is_no_session(peer: Peer) -> None:
    (ended,) = peer.refuse()
    assert ended == Ended(NotStarted("the agent refused the handshake: no such thing"))
    assert peer.client.gone(0, None) == []


def test_an_agent_that_ends_before_it_opens_a_session_started_nothing(peer: Peer) -> None:
    (ended,) = peer.client.gone(127, None)
    assert ended == Ended(NotStarted(f"the agent ended with 127 before it opened {peer.opens}"))
    assert peer.client.gone(127, None) == []


def test_an_agent_that_ends_between_turns_ends_nothing(peer: Peer) -> None:
    peer.opened()
    assert len(peer.of(Opened)) == 1
    assert peer.client.gone(0, None) == []


# -- turns --------------------------------------------------------------------------------------------------------


def test_a_turn_ends_once_and_there_is_nothing_after_it(peer: Peer) -> None:
    peer.begun()
    assert [one.state for one in peer.of(TurnChanged)] == ["starting", "running"]
    settled, ended = peer.end()
    assert settled == TurnChanged("settled")
    assert isinstance(ended, Ended)
    assert isinstance(ended.result, Completed)
    assert peer.end() == []
    assert peer.taken() == [] or not peer.of(TurnChanged)[3:]


def test_a_second_turn(peer: Peer) -> None:
    peer.begun()
    peer.end()
    peer.start("More.")
    assert len(peer.of(Ended)) == 1
    assert peer.of(TurnChanged)[-1] == TurnChanged("starting")


def test_an_end_with_half_a_character_is_an_end(peer: Peer) -> None:
    peer.begun()
    ended = peer.end(said="\ud83d")
    assert isinstance(ended[-1], Ended)


def test_an_agent_that_dies_is_a_lost_turn(peer: Peer) -> None:
    peer.begun()
    name = peer.may(7)
    frames = len(peer.sent)
    assert peer.take(peer.client.gone(None, "SIGKILL")) == [
        RequestClosed(name, "ended"),
        TurnChanged("settled"),
        Ended(Lost("the agent ended by SIGKILL before the turn did")),
    ]
    assert len(peer.sent) == frames, "nobody is there to be answered"
    assert peer.client.gone(None, None) == []
    assert isinstance(peer.answer(name, peer.allow), Rejected)


def test_an_interrupt_counts_when_the_agent_says_so(peer: Peer) -> None:
    peer.opened()
    assert peer.interrupt() == Rejected("no turn is running")
    peer.start()
    peer.taken()
    assert peer.interrupt() == Accepted()
    assert peer.of(TurnChanged)[-1] == TurnChanged("interrupting")
    assert peer.interrupt() == Rejected("the agent has been asked to stop already")
    assert peer.of(Ended) == []
    peer.broken_off()
    (ended,) = peer.of(Ended)
    assert isinstance(ended.result, Interrupted)
    assert peer.interrupt() == Rejected("no turn is running")


def test_words_for_no_turn_are_rejected(peer: Peer) -> None:
    peer.opened()
    assert isinstance(peer.control(peer.client.steer("Left!")), Rejected)
    peer.start()
    peer.taken()
    peer.interrupt()
    assert isinstance(peer.control(peer.client.steer("Left!")), Rejected)


# -- requests -----------------------------------------------------------------------------------------------------


def test_a_request_is_answered_once(peer: Peer) -> None:
    peer.begun()
    name = peer.may(7)
    (asked,) = peer.open
    assert isinstance(asked, Permission)
    assert (asked.request_id, asked.call) == (name, "c7")
    assert peer.of(TurnChanged)[-1] == TurnChanged("waiting")
    for wrong in (Chosen("no such option"), FormFilled(Raw(b"{}"))):
        assert isinstance(peer.answer(name, wrong), Rejected)
    assert peer.open == [asked]
    assert peer.answer(name, peer.allow) == Accepted()
    assert not peer.undecided(peer.last)
    assert peer.steps[-1] == TurnChanged("running")
    assert peer.answer(name, peer.allow) == Rejected("the request is not open any more")


def test_one_request_while_another_is_open_and_one_taken_back(peer: Peer) -> None:
    peer.begun()
    one, other = peer.may(1), peer.may(2)
    assert peer.answer(one, peer.allow) == Accepted()
    assert peer.of(TurnChanged)[-1] == TurnChanged("waiting")
    assert peer.withdraw(1) == []
    steps = [step for step in peer.withdraw(2) if not isinstance(step, Send)]
    closed, running = steps
    assert isinstance(closed, RequestClosed)
    assert (closed.request_id, closed.how) == (other, "withdrawn")
    assert running == TurnChanged("running")
    assert isinstance(peer.answer(other, peer.allow), Rejected)


def test_requests_that_wait_are_bounded(peer: Peer) -> None:
    peer.begun()
    for number in range(OPEN_MOST):
        peer.may(number)
    assert len(peer.open) == OPEN_MOST
    frames = len(peer.sent)
    peer.may(OPEN_MOST)
    assert len(peer.open) == OPEN_MOST
    assert f"{OPEN_MOST} requests wait already" in json.dumps(peer.sent[frames:])
    peer.answer(peer.open[0].request_id, peer.allow)
    peer.may(OPEN_MOST + 1)
    assert len(peer.open) == OPEN_MOST


def test_a_secret_is_masked_wherever_it_is_written(peer: Peer) -> None:
    peer.begun()
    name = peer.form(7)
    (asked,) = peer.open
    assert isinstance(asked, FormAsked)
    assert asked.secret
    assert peer.answer(name, FormFilled(Raw(json.dumps({"key": SECRET}).encode()))) == Accepted()
    assert SECRET in json.dumps(peer.last)
    peer.hear({"type": "system", "subtype": "x", "method": "x/y", "params": {"said": f"It is {SECRET}."}})
    assert SECRET.encode() not in peer.data


def test_a_secret_beside_half_a_character_is_masked_too(peer: Peer) -> None:
    peer.begun()
    peer.spoilt = True
    name = peer.form(7)
    assert peer.answer(name, FormFilled(Raw(json.dumps({"key": SECRET}).encode()))) == Accepted()
    assert SECRET.encode() not in peer.data


# -- requests that nobody can decide ------------------------------------------------------------------------------


def before(peer: Peer) -> None:
    peer.opened()


def after(peer: Peer) -> None:
    peer.begun()
    peer.end()


def stopping(peer: Peer) -> None:
    peer.begun()
    peer.interrupt()


@pytest.mark.parametrize("when", [before, after, stopping])
@pytest.mark.parametrize("what", ["may", "form"])
def test_a_request_that_nobody_can_decide_is_refused_at_once(
    peer: Peer, when: Callable[[Peer], None], what: str, tmp_path: Path
) -> None:
    when(peer)
    steps = len(peer.steps)
    name = getattr(peer, what)(7)
    (refused,) = peer.steps[steps:]
    assert isinstance(refused, Send)
    assert refused.answered_by == "policy"
    assert peer.undecided(peer.last)
    assert peer.of(RequestOpened) == []
    assert isinstance(peer.answer(name, peer.allow), Rejected)
    assert_undecided(peer, tmp_path)


@pytest.mark.parametrize("what", ["may", "form"])
def test_a_request_that_still_waits_when_the_turn_ends_is_refused(peer: Peer, what: str, tmp_path: Path) -> None:
    peer.begun()
    name = getattr(peer, what)(7)
    refused, closed, settled, ended = peer.end()
    assert isinstance(refused, Send)
    assert peer.undecided(peer.last)
    assert closed == RequestClosed(name, "ended")
    assert (settled, type(ended)) == (TurnChanged("settled"), Ended)
    assert_undecided(peer, tmp_path)


def assert_undecided(peer: Peer, folder: Path) -> None:
    """The record says that nobody gave leave, and who answered where it says that somebody did."""
    path = folder / "log.jsonl"
    path.write_bytes(peer.data)
    asked = [one for one in held(path, folder / "out") if one["type"] in ("permission", "input_request")]
    assert asked[-1]["native"]["refs"][1]["role"] == "decision"
    for one in asked[1:]:
        if one["type"] == "permission":
            told = (one.get("status"), one.get("decision"), one.get("decidedBy"))
            assert told in (("resolved", "cancelled", "policy"), ("pending", None, None), (None, None, None))
        else:
            assert (one["status"], one["answeredBy"]["name"]) == ("cancelled", "policy")


# -- ids of JSON-RPC ----------------------------------------------------------------------------------------------


def test_the_text_5_and_the_number_5_are_two_requests(rpc: Any, tmp_path: Path) -> None:
    rpc.begun()
    rpc.may(5)
    rpc.may("5")
    one, other = [asked.request_id for asked in rpc.open]
    assert (one, other) == ("5", "5#2")
    rpc.answer(other, rpc.allow)
    assert rpc.last["id"] == "5"
    rpc.withdraw("5")
    assert [asked.request_id for asked in rpc.open] == [one]
    rpc.answer(one, rpc.allow)
    assert rpc.last["id"] == 5
    path = tmp_path / "log.jsonl"
    path.write_bytes(rpc.data)
    asked = [record for record in held(path, tmp_path / "out") if record["type"] == "permission"]
    assert {record["requestId"] for record in asked if record.get("decision") == "allow_once"} == {one, other}


def test_an_answer_with_the_text_of_our_id_is_none(rpc: Any) -> None:
    before = len(rpc.sent)
    rpc.hear({"jsonrpc": "2.0", "id": str(rpc.last["id"]), "result": {"protocolVersion": 1, "userAgent": "x/0.1"}})
    assert len(rpc.sent) == before
    rpc.opened()
    assert len(rpc.of(Opened)) == 1


def test_ids_of_both_directions_count_apart(rpc: Any) -> None:
    rpc.begun()
    number = max(one["id"] for one in rpc.sent if "method" in one and "id" in one)
    name = rpc.may(number)
    assert rpc.answer(name, rpc.allow) == Accepted()
    rpc.end()
    (ended,) = rpc.of(Ended)
    assert isinstance(ended.result, Completed)


@pytest.mark.parametrize("number", [5.5, 1e300, -3, 2**70, 5.0])
def test_any_number_is_an_id(rpc: Any, number: Any, tmp_path: Path) -> None:
    rpc.begun()
    rpc.may(number)
    (asked,) = rpc.open
    assert rpc.answer(asked.request_id, rpc.allow) == Accepted()
    assert rpc.last["id"] == number
    path = tmp_path / "log.jsonl"
    path.write_bytes(rpc.data)
    held(path, tmp_path / "out")


# -- anything at all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"nonsense", b"null", b"[]", b"5", b"{", b"\xff\xfe", b"[" * 5000, b'{"type":5}', b'{"id":9}'),
        *(b'{"method":1}', b'{"id":null,"method":"x"}', b'{"id":{},"result":1}', b'{"type":"result"}'),
        b'{"id":0,"method":"item/tool/requestUserInput"}',
        b'{"type":"stream_event","event":{"index":{}}}',
        b'{"type":"control_request","request_id":7,"request":[]}',
        b'{"type":"control_response","response":{}}',
    ],
)
def test_nothing_that_an_agent_may_send_raises(peer: Peer, line: bytes) -> None:
    peer.begun()
    for _ in range(2):
        peer.hear(line)
    assert peer.of(RequestOpened) == []
    assert peer.answer("7", Cancelled()) == Rejected("the request is not open any more")
