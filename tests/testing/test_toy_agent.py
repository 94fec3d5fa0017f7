"""The toy agent plays its scripts, and our client lives through all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from tests.audit.telling import bundles_of
from tests.native.acp.conftest import sheet_of
from tests.native.acp.toys import first_of_all, run_toy

from callsheet.audit import audit_bundle
from callsheet.seam import (
    Completed,
    Ended,
    Failed,
    FormFilled,
    Interrupted,
    Lost,
    Permission,
    RequestClosed,
    RequestOpened,
    Waiting,
    Wish,
)
from callsheet.testing.toy_agent import load, names
from callsheet.testing.toy_agent.script import BadScript

ENDS: dict[str, dict[int, Any]] = {
    "turn": dict.fromkeys((1, 2), Completed("end_turn")),
    "everything": dict.fromkeys((1, 2), Completed("end_turn")),
    "bad": dict.fromkeys((1, 2), Completed("end_turn")),
    "slow": dict.fromkeys((1, 2), Interrupted("cancelled")),
    "lost": dict.fromkeys((1, 2), Lost("the agent ended with 3 before the turn did")),
    "secret": dict.fromkeys((1, 2), Completed("end_turn")),
    "single": {2: Completed("end_turn")},  # only version 2 can
    "failing": {
        1: Failed("Internal error: cannot connect", "-32603"),
        2: Failed("Internal error: cannot connect", "error"),
    },
}
SECRET = "correct-horse-battery"


def test_every_script_is_known_here() -> None:
    assert set(names()) == set(ENDS)
    for name in names():
        script = load(name)
        assert script.about
        assert set(script.steps) == set(ENDS[name])


@pytest.mark.parametrize(("script", "version"), [(one, each) for one in sorted(ENDS) for each in ENDS[one]])
def test_a_whole_turn(script: str, version: int, tmp_path: Path) -> None:
    def answers(waiting: Waiting) -> Any:
        if script == "secret":
            return FormFilled(Raw(json.dumps({"user": "me", "token": SECRET}).encode()))
        return first_of_all(waiting)

    play = run_toy(
        version,
        script,
        tmp_path,
        answers=answers,
        cancel_at=b"sleep 600" if script == "slow" else None,
        cancels=("c1", "c2") if script == "single" else (),
    )
    (end,) = play.of(Ended)
    assert end.result == ENDS[script][version]
    assert play.open == []
    assert len(play.of(RequestOpened)) == len(play.of(RequestClosed))
    sheet = sheet_of(play.data)  # holds the reading to the kit's promises
    wanted = {"Completed": "completed", "Interrupted": "interrupted", "Failed": "failed", "Lost": "running"}
    assert [one["status"] for one in sheet.last("turn")] == [wanted[type(end.result).__name__]]
    asked = {one.request.request_id: one.request for one in play.of(RequestOpened)}
    recorded = {one["requestId"]: one for kind in ("permission", "input_request") for one in sheet.last(kind)}
    assert set(asked) <= set(recorded)
    for name, request in asked.items():
        if isinstance(request, Permission) and request.options:
            assert recorded[name]["selectedOptionId"] == request.options[0].option_id
    assert SECRET.encode() not in play.data
    if script == "secret":
        assert SECRET in json.dumps(play.sent)
    (tmp_path / "log.jsonl").write_bytes(play.data)
    for bundle in bundles_of("acp", [tmp_path / "log.jsonl"], tmp_path / "out") if script != "secret" else ():
        # (In a log that was masked before it was imported, the mask looks like the answer to the secret.)
        assert [(one.path, one.value, one.message) for one in audit_bundle(bundle)] == []


@pytest.mark.parametrize(
    ("newest", "asked", "answer"), [(2, 1, 1), (1, 2, 1), (2, 2, 2), (2, 9, 2), (2, 0, 1)]
)
def test_the_newest_version_that_both_speak(newest: int, asked: int, answer: int) -> None:
    ask = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": asked}}
    done = subprocess.run(
        [sys.executable, "-m", "callsheet.testing.toy_agent", "--version", str(newest), "turn"],
        input=json.dumps(ask) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == answer


def test_a_session_is_loaded_with_its_history(tmp_path: Path) -> None:
    play = run_toy(
        1, "turn", tmp_path, wish=Wish(cwd=str(tmp_path), resume="old", mode="plan", model="large")
    )
    sheet = sheet_of(play.data)
    before = [one for one in sheet.of("message") if "inherited" in one["native"]]
    assert [one["content"][0]["text"] for one in before] == ["Before.", "It was so."]
    assert sheet.main == "old"


def test_a_script_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    say = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "$prompt"}}
    own.write_text(json.dumps({"1": [{"update": say}, {"answer": {"stopReason": "end_turn"}}]}))
    play = run_toy(1, str(own), tmp_path, prompt="Say this.")
    assert sheet_of(play.data).texts("model") == ["Say this."]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"1": [{"no": "step"}]}', '{"1": [{"update": {}, "sleep": 1}]}']
)
def test_a_bad_script_is_said_in_one_line(text: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    with pytest.raises(BadScript):
        load(str(bad))
    told = subprocess.run(
        [sys.executable, "-m", "callsheet.testing.toy_agent", str(bad)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 2
    assert told.stderr.startswith("toy_agent: ")
    assert told.stderr.count("\n") == 1
    with pytest.raises(BadScript, match="no such script"):
        load(str(tmp_path / "none.json"))
