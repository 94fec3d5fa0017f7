"""The fake agent passes the kit that every live adapter passes, through two drivers."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from callsheet.harness import LIVE
from callsheet.harness._port.live import LiveAgent
from callsheet.testing.check_live import PLAYS, check_live_harness
from callsheet.testing.fake import FAKE, fake_command

CALL = {"call": "c1", "title": "ls", "input": {"command": "ls"}}
DONE = {"done": "c1", "output": "a\nb"}
COMMANDS = {
    "completes": fake_command(turn=[{"say": "hello"}, CALL, {"output": "c1", "text": "a\n"}, DONE]),
    "asks": fake_command(turn=[CALL, {"ask": "c1"}, DONE]),
    "interrupted": fake_command(turn=[CALL, {"output": "c1", "text": "half"}, {"await": "cancel"}]),
    "deaf": fake_command(turn=[CALL, {"sleep": 60}], deaf=["cancel", "eof", "term"]),
    "crashes": fake_command(turn=[CALL, {"output": "c1", "text": "half"}, {"kill": int(signal.SIGKILL)}]),
    "never_starts": fake_command(before=[{"stderr": "no account"}, {"exit": 3}]),
    "secret": fake_command(turn=[{"secret": "token", "echo": True}, {"say": "done"}]),
    "late": fake_command(turn=[CALL, DONE], after=[{"ask": "c2"}]),
    "unknown": fake_command(
        turn=[
            {"frame": {"jsonrpc": "2.0", "method": "vendor/odd", "params": {"x": 1}}},
            {"frame": 7},
            {"raw": "not json \xff\xfe \x00 at all"},
            {"raw": '{"torn": '},
            {"raw": ""},
            {"say": "still here"},
        ]
    ),
}
ACP = next(agent for agent in LIVE if agent.name == "acp")


@pytest.mark.parametrize("agent", [FAKE, ACP], ids=["fake", "acp"])
@pytest.mark.parametrize("play", PLAYS)
def test_the_fake_agent_passes(agent: LiveAgent, play: str, tmp_path: Path) -> None:
    commands = dict.fromkeys(PLAYS, "one at a time") | {play: COMMANDS[play]}
    assert check_live_harness(agent, commands, tmp_path) == []


def test_every_play_needs_a_command_or_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no command and no reason for asks"):
        check_live_harness(FAKE, {name: "none" for name in PLAYS if name != "asks"}, tmp_path)
