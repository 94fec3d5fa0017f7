"""Real agents of both versions of the protocol against a scripted model, through the live shell and behind the tap."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.live.acp.agents import AGENTS
from tests.live.acp.house import TAP, agree, last, log_of, records

from callsheet.live import Policy, Session
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import (
    Accepted,
    Answer,
    CallPreview,
    Chosen,
    Completed,
    Event,
    Interrupted,
    MessagePreview,
    Noted,
    Permission,
    Receipt,
    RequestOpened,
    Waiting,
)
from callsheet.testing.scripted_models import completions

EACH = pytest.mark.parametrize("name", AGENTS)


class Answers:
    """Answers permissions in turn, as a person would."""

    by = "user"

    def __init__(self, *kinds: str) -> None:
        self._kinds = list(kinds)
        self.asked: list[Permission] = []

    async def answer(self, request: Waiting) -> Answer:
        """The option of the next kind."""
        assert isinstance(request, Permission)
        self.asked.append(request)
        kind = self._kinds.pop(0)
        return Chosen(next(one.option_id for one in request.options if one.kind == kind))


def test_the_models_are_there() -> None:
    assert completions.CompletionsModel({}).serve("GET", "/v1/models", b"") is not None


@EACH
def test_a_turn_with_calls(name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = AGENTS[name]
    file = str(tmp_path / "app" / "lib.py")
    script = agent.says(
        ["I will run it.", ("call_1", "run", {"command": "echo one; exit 3", "description": "Runs"})],
        [("call_2", "read", {"file": file})],
        [("call_3", "edit", {"file": file, "old": "a = 1", "new": "a = 2"})],
        ["Done."],
    )
    with agent.make(home, tmp_path, monkeypatch, *script) as house:
        answers = Answers("allow_once", "allow_once")
        ran = house.run(answers)
        assert ran.result == Completed("end_turn")
        assert (house.cwd / "lib.py").read_text() == "a = 2\n"
        handshake = log_of(ran.bundle, tmp_path / "log.jsonl").read_text().splitlines()[2]
        assert json.loads(handshake)["frame"]["result"]["protocolVersion"] == agent.version
        assert ran.opened.agent
        assert ran.opened.version
        assert ran.opened.model
        # Who answered is known, and every option stands in the record.
        asked = last(ran.bundle, "permission")
        assert [one["decision"] for one in asked] == ["allow_once", "allow_once"]
        assert {one["decidedBy"] for one in asked} == {"user"}
        assert [[option["optionId"] for option in one["options"]] for one in asked] == [
            [option.option_id for option in one.options] for one in answers.asked
        ]
        assert [one["subject"]["callId"] for one in asked] == [
            agent.call(1, "run"),
            agent.call(3, "edit"),
        ]
        results = {one["callId"]: one for one in last(ran.bundle, "tool_result")}
        assert set(results) == {agent.call(1, "run"), agent.call(2, "read"), agent.call(3, "edit")}
        ended = results[agent.call(1, "run")].get("exec") or {}
        assert ended.get("exitCode") == (3 if agent.exits else None)
        assert any(isinstance(event, CallPreview | MessagePreview) for event in ran.events)
        agree(ran, house)


@EACH
def test_a_refused_command(name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = AGENTS[name]
    script = agent.says([("call_1", "run", {"command": "touch made", "description": "Makes"})], ["So not."])
    with agent.make(home, tmp_path, monkeypatch, *script) as house:
        ran = house.run(Answers("reject_once"))
        assert not (house.cwd / "made").exists()
        (asked,) = last(ran.bundle, "permission")
        assert (asked["decision"], asked["decidedBy"]) == ("reject_once", "user")
        for one in last(ran.bundle, "tool_result"):
            assert one["status"] == "failed"  # the agent's word; the refusal stands on the request
        agree(ran, house, unstored=frozenset([agent.call(1, "run")] if agent.forgets else []))


@EACH
def test_a_turn_that_is_broken_off(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AGENTS[name]
    script = agent.says(
        [("call_1", "run", {"command": "touch begun; sleep 60", "description": "Waits"})], ["Late."]
    )
    receipts: list[Receipt] = []
    stopping: list[asyncio.Future[None]] = []
    with agent.make(home, tmp_path, monkeypatch, *script) as house:

        async def stop(session: Session) -> None:
            while not (house.cwd / "begun").exists():
                await asyncio.sleep(0.05)
            receipts.append(session.interrupt())

        async def during(session: Session, event: Event) -> None:
            if isinstance(event, RequestOpened):
                stopping.append(asyncio.ensure_future(stop(session)))

        ran = house.run(Policy("allow"), during)
        assert receipts == [Accepted()]
        assert ran.result == Interrupted("cancelled")
        (turn,) = last(ran.bundle, "turn")
        assert turn["status"] == "interrupted"
        (asked,) = last(ran.bundle, "permission")
        assert asked["decidedBy"] == "policy"
        agree(ran, house)


@EACH
def test_behind_the_tap(name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our client is the editor here: its own recording and the tap's are two readings of one run."""
    agent = AGENTS[name]
    script = agent.says([("call_1", "run", {"command": "touch made", "description": "Makes"})], ["Done."])
    with agent.make(home, tmp_path, monkeypatch, *script) as house:
        tapped = tmp_path / "tapped"
        ran = house.run(Answers("allow_once"), before=(*TAP, "--out", str(tapped), "--"))
        assert ran.result == Completed("end_turn")
        (bundle,) = tapped.iterdir()
        assert list(check_bundle(Bundle(bundle))) == []
        ours = [one for one in records(ran.bundle) if one["type"] in ("tool_call", "tool_result")]
        theirs = [one for one in records(bundle) if one["type"] in ("tool_call", "tool_result")]
        assert [one["callId"] for one in ours] == [one["callId"] for one in theirs]
        assert [one.get("decidedBy") for one in last(bundle, "permission")] == [None]
        agree(ran, house, bundle)


@EACH
def test_a_session_is_gone_on_with(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AGENTS[name]
    with agent.make(home, tmp_path, monkeypatch, *agent.says(["First."], ["Second."])) as house:
        first = house.run(Policy("reject"))
        if agent.aged is not None:
            agent.aged(house)
        again = house.run(Policy("reject"), resume=first.opened.session)
        assert again.result == Completed("end_turn")
        assert again.opened.session == first.opened.session
        said = [
            one["content"][0]["text"] for one in last(again.bundle, "message") if one["author"] == "model"
        ]
        assert said[-1] == "Second."


def test_a_process_that_was_left_running_is_cancelled(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 2: Claude Code offers to cancel the terminal of a command in the background."""
    agent = AGENTS["claude"]
    command = {"command": "touch begun; sleep 60", "description": "Waits", "run_in_background": True}
    script = agent.says([("call_1", "run", command)], [("call_2", "run", {"command": "sleep 3"})], ["Done."])
    accepted: list[Receipt] = []
    with agent.make(home, tmp_path, monkeypatch, *script) as house:

        async def during(session: Session, event: Event) -> None:
            if not accepted and isinstance(receipt := session.cancel_call("call_1"), Accepted):
                accepted.append(receipt)

        ran = house.run(Policy("allow"), during)
        assert accepted == [Accepted()]
        assert ran.result == Completed("end_turn")
        (ended,) = (one for one in last(ran.bundle, "terminal") if one["terminalId"] == "call_1")
        assert ended["status"] != "running"
        assert not [event for event in ran.events if isinstance(event, Noted)]
        agree(ran, house)
