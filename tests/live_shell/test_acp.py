"""Agents of the Agent Client Protocol through the whole live shell, both versions."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.audit import audit_bundle
from callsheet.harness import HARNESSES, LIVE
from callsheet.library.folders import DiskFolder
from callsheet.library.importing import import_session
from callsheet.live import Policy, Session, Unopened, open_session
from callsheet.records.bundle import Bundle
from callsheet.seam import (
    Accepted,
    CallPreview,
    Completed,
    Event,
    Installed,
    Interrupted,
    MessagePreview,
    NotStarted,
    OutputPreview,
    Rejected,
    TurnChanged,
    Wish,
)
from callsheet.testing.check_live import PLAYS, check_live_harness
from callsheet.testing.live_run import QUICK, Ran, run_turn
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import inflate

ACP = next(agent for agent in LIVE if agent.name == "acp")
STORED = next(stored for stored in HARNESSES if stored.kind == "acp")
BOTH = pytest.mark.parametrize("version", [1, 2])
RUN = {"sessionUpdate": "state_update", "state": "running"}


def toy(version: int, script: str | Path) -> list[str]:
    return [sys.executable, "-m", "callsheet.testing.toy_agent", "--version", str(version), str(script)]


def own(folder: Path, name: str, *steps: Any) -> Path:
    """A script of a call that goes on, and these steps."""
    call: dict[str, Any] = {"toolCallId": "c1", "title": "make", "status": "in_progress", "kind": "execute"}
    said = [{"type": "content", "content": {"type": "text", "text": "half\n"}}]
    one: list[dict[str, Any]] = [{"update": {"sessionUpdate": "tool_call", **call, "content": said}}]
    two: list[dict[str, Any]] = [{"update": RUN}, {"answer": {"messageId": "u"}}]
    two += [{"update": {"sessionUpdate": "tool_call_update", **call, "content": said}}]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"1": [*one, *steps], "2": [*two, *steps]}))
    return path


def late(folder: Path) -> Path:
    """A script that asks when its turn has ended."""
    options = [{"optionId": "ok", "name": "Allow", "kind": "allow_once"}]
    params = {
        "sessionId": "$session",
        "toolCall": {"toolCallId": "c2"},
        "title": "May I?",
        "options": options,
    }
    ask = {"ask": "session/request_permission", "keep": "may", "params": params}
    two = [{"update": RUN}, {"answer": {"messageId": "u"}}]
    idle = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
    path = folder / "late.json"
    path.write_text(
        json.dumps({"1": [{"answer": {"stopReason": "end_turn"}}, ask], "2": [*two, {"update": idle}, ask]})
    )
    return path


@BOTH
@pytest.mark.parametrize("play", PLAYS)
def test_the_toy_passes_the_kit_of_live_adapters(version: int, play: str, tmp_path: Path) -> None:
    commands: dict[str, Sequence[str]] = {
        "completes": toy(version, "turn"),
        "asks": toy(version, "turn"),
        "interrupted": toy(version, "slow"),
        "deaf": toy(version, own(tmp_path, "deaf", {"sleep": 60})),
        "crashes": toy(version, own(tmp_path, "crashes", {"signal": "SIGKILL"})),
        "never_starts": [sys.executable, "-c", "raise SystemExit(3)"],
        "secret": toy(version, "secret"),
        "unknown": toy(version, "bad"),
        "late": toy(version, late(tmp_path)),
    }
    one: dict[str, Sequence[str] | str] = {**dict.fromkeys(PLAYS, "one at a time"), play: commands[play]}
    assert check_live_harness(ACP, one, tmp_path) == []


def ran(version: int, script: str, tmp_path: Path) -> Ran:
    out = tmp_path / "app" / "out"
    out.parent.mkdir(exist_ok=True)
    return asyncio.run(run_turn(ACP, toy(version, script), out, port=Policy("allow")))


def imported(bundle: Path, made: Path) -> list[dict[str, Any]]:
    """The records that an import of the recording's frame log gives."""
    opened = Bundle(bundle)
    log = made / "log.jsonl"
    with opened.open(opened.manifest.sources[0].native or "") as packed:
        log.write_bytes(b"".join(inflate(read_chunks(packed))))
    (session,) = STORED.sessions(str(log), DiskFolder(log))
    return records(import_session(STORED, session, made / "again").bundle)


def told(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What records say in the end, without their numbers, and where they were read."""
    old = {one.get("supersedes") for one in found if one["type"] == "subagent"}
    return [
        {name: value for name, value in one.items() if name not in ("id", "seq", "supersedes", "sources")}
        for one in found
        if not (one["type"] == "subagent" and one["id"] in old)
    ]


def records(bundle: Path) -> list[dict[str, Any]]:
    opened = Bundle(bundle)
    lines = [line for entry in opened.manifest.streams for line in opened.read(entry.file).splitlines()]
    return [msgspec.json.decode(line) for line in lines]


@BOTH
def test_everything_that_the_protocol_has(version: int, tmp_path: Path) -> None:
    run = ran(version, "everything", tmp_path)
    assert run.result == Completed("end_turn")
    assert run.closed is not None
    assert run.closed.problems == ()
    states = [event.state for event in run.events if isinstance(event, TurnChanged)]
    assert states[0] == "starting"
    assert states[-1] == "settled"
    assert "waiting" in states
    found = records(run.bundle)
    asked = [one for one in found if one["type"] == "permission" and one.get("decision")]
    assert asked
    assert {one["decidedBy"] for one in asked} == {"policy"}
    assert {one["decision"] for one in asked} == {"allow_once"}
    forms = [one["status"] for one in found if one["type"] == "input_request" and one["status"] != "pending"]
    assert forms == ["declined", "declined"]
    again = imported(run.bundle, tmp_path)
    assert [one["title"] for one in again if one["type"] == "session" and "title" in one] == ["Everything"]
    assert told(found) == told(again)
    agents = [one["stream"] for one in told(found) if one["type"] == "subagent"]
    assert len(agents) == 1
    heads = [[one.get("parent") for one in some if one["type"] == "session"] for some in (found, again)]
    assert heads[0] == heads[1] == [None, {"session": "toy-session"}]


@BOTH
def test_what_goes_on_is_shown_before_it_is_recorded(version: int, tmp_path: Path) -> None:
    say = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": "Hm."},
    }
    end = {"update": {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}}
    done = {"answer": {"stopReason": "end_turn"}} if version == 1 else end
    script = own(tmp_path, "slowly", {"sleep": 0.3}, {"update": say}, {"sleep": 0.3}, done)
    run = ran(version, str(script), tmp_path)
    assert run.result == Completed("end_turn")
    (output,) = [event for event in run.events if isinstance(event, OutputPreview)]
    assert (output.call, output.text) == ("c1", "half\n")
    (message,) = [event for event in run.events if isinstance(event, MessagePreview)]
    assert message.text == "Hm."
    # The call never ended: its last output is kept, and no result is made up.
    found = records(run.bundle)
    assert [one["callId"] for one in found if one["type"] == "preview"] == ["c1"]
    assert not [one for one in found if one["type"] == "tool_result"]


def one_by_one(receipts: list[Any]) -> Any:
    """Cancels each call as soon as it is shown."""
    asked: set[str] = set()

    async def during(session: Session, event: Event) -> None:
        if isinstance(event, CallPreview) and event.call not in asked:
            asked.add(event.call)
            receipts.append(session.cancel_call(event.call))

    return during


def test_a_call_is_cancelled_by_itself(tmp_path: Path) -> None:
    """Where the agent offers it: a call, and one whose terminal may be cancelled. The turn goes on."""
    receipts: list[Any] = []
    out = tmp_path / "out"
    run = asyncio.run(run_turn(ACP, toy(2, "single"), out, during=one_by_one(receipts)))
    assert receipts == [Accepted(), Accepted()]
    assert run.result == Completed("end_turn")
    assert run.closed is not None
    assert run.closed.problems == ()
    found = records(run.bundle)
    results = {one["callId"]: one["status"] for one in found if one["type"] == "tool_result"}
    assert results == {"c1": "cancelled", "c2": "failed"}
    (ended,) = (one for one in found if one["type"] == "terminal" and "signal" in one)
    assert ended["signal"] == "SIGTERM"
    assert told(found) == told(imported(run.bundle, tmp_path))
    assert [one.message for one in audit_bundle(Bundle(run.bundle))] == []


@BOTH
def test_a_call_that_is_not_offered_to_be_cancelled_is_not(version: int, tmp_path: Path) -> None:
    receipts: list[Any] = []
    during = one_by_one(receipts)
    run = asyncio.run(
        run_turn(ACP, toy(version, "turn"), tmp_path / "out", port=Policy("allow"), during=during)
    )
    assert run.result == Completed("end_turn")
    assert receipts
    assert {type(one) for one in receipts} == {Rejected}


IDS = {"tool_call": "callId", "message": "messageId", "terminal": "terminalId", "plan": "planId"}


async def two_turns(version: int, script: str, out: Path, *, stop: bool) -> tuple[list[Any], Path]:
    """Two turns of one session; with ``stop`` both are interrupted where they wait for the person."""
    installed = Installed(command=tuple(toy(version, script)), version=None, evidence="")
    port = None if stop else Policy("allow")
    session = await open_session(ACP, installed, Wish(cwd=str(out.parent)), out=out, port=port, limits=QUICK)
    assert not isinstance(session, Unopened)
    results = []
    try:
        for prompt in ("One.", "Two."):
            turn = session.start(prompt)
            async for event in turn:
                if stop and isinstance(event, TurnChanged) and event.state == "waiting":
                    assert isinstance(session.interrupt(), Accepted)
            results.append(await turn.result())
    finally:
        await session.close()
    return results, session.bundle


@BOTH
@pytest.mark.parametrize("script", ["turn", "everything"])
def test_a_second_turn_has_ids_of_its_own(version: int, script: str, tmp_path: Path) -> None:
    results, bundle = asyncio.run(two_turns(version, script, tmp_path / "out", stop=False))
    assert results == [Completed("end_turn")] * 2
    assert [(one.path, one.value, one.message) for one in audit_bundle(Bundle(bundle))] == []
    found = records(bundle)
    for kind, member in IDS.items():
        told = {one[member] for one in found if one["type"] == kind and member in one}
        if version == 1 and kind in ("terminal", "plan"):
            continue  # the client names terminals, and there is one plan
        first = {name for name in told if not name.endswith("-2")}
        assert {f"{name}-2" for name in first} == told - first, kind
    assert {"c1", "c1-2"} <= {one["callId"] for one in found if one["type"] == "tool_call"}


@BOTH
def test_a_turn_that_is_cancelled_ends_as_cancelled(version: int, tmp_path: Path) -> None:
    results, bundle = asyncio.run(two_turns(version, "turn", tmp_path / "out", stop=True))
    assert results == [Interrupted("cancelled")] * 2
    turns = {one["turnId"]: one["status"] for one in records(bundle) if one["type"] == "turn"}
    assert turns == {"t1": "interrupted", "t2": "interrupted"}
    assert [one.message for one in audit_bundle(Bundle(bundle))] == []


def test_v1_files_and_terminals_are_lent_inside_the_folder(tmp_path: Path) -> None:
    run = ran(1, "everything", tmp_path)
    assert (tmp_path / "app" / "toy.txt").read_text() == "one\ntwo\nthree\n"
    found = records(run.bundle)
    said = [
        "".join(part.get("text", "") for part in one["content"]) for one in found if one["type"] == "message"
    ]
    assert "two\n" in said  # what the agent read of the file
    *_, terminal = [one for one in found if one["type"] == "terminal"]
    assert (terminal["status"], terminal["exitCode"], terminal["output"]["text"]) == (
        "exited",
        0,
        "one\ntwo\n",
    )
    assert terminal["callId"] == "c2"
    run = ran(1, "bad", tmp_path)
    assert not (tmp_path / "escaped.txt").exists()
    assert "root:x" not in json.dumps(records(run.bundle))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"mode": "yolo"}, "no mode yolo; offered: ask, plan"),
        ({"model": "huge"}, "no model huge; offered: small, large"),
    ],
)
def test_a_session_that_cannot_be_as_wished_is_not_opened(
    wish: dict[str, str], words: str, tmp_path: Path
) -> None:
    async def run() -> Any:
        installed = Installed(command=tuple(toy(2, "turn")), version=None, evidence="")
        return await open_session(
            ACP, installed, Wish(cwd=str(tmp_path), **wish), out=tmp_path / "out", limits=QUICK
        )

    told = asyncio.run(asyncio.wait_for(run(), 60))
    assert isinstance(told, Unopened)
    assert told.reason == words


def test_an_agent_that_is_no_agent_of_this_protocol(tmp_path: Path) -> None:
    run = asyncio.run(run_turn(ACP, ["/bin/sh", "-c", "echo hello; echo oops >&2; exit 7"], tmp_path / "out"))
    assert run.result == NotStarted("the agent ended with 7 before it opened a session")
    assert run.unopened is not None
    assert "oops" in run.unopened.stderr
