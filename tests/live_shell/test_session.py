"""Sessions with the fake agent: what a reader gets, what controls do, how things end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness._port import Desk
from callsheet.harness._port.fold import Folding
from callsheet.harness._port.veil import Veil
from callsheet.live import Closed, Limits, Policy, Session, Unopened, open_session, prepare
from callsheet.records import Permission, Preview, SourceEntry, ToolCall, ToolResult, Turn, Unmapped
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import (
    Accepted,
    Chosen,
    Completed,
    Driver,
    Event,
    Failed,
    Installed,
    Interrupted,
    Lost,
    Missing,
    Noted,
    NotStarted,
    OutputPreview,
    Recorded,
    Rejected,
    RequestClosed,
    RequestOpened,
    TurnChanged,
    TurnResult,
    Unusable,
    Wish,
)
from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES
from callsheet.testing.check_live import imports_alike
from callsheet.testing.fake import FAKE, fake_command
from callsheet.testing.live_run import QUICK, Ran, kill_agent, run_turn

CALL = {"call": "c1", "title": "ls", "input": {"command": "ls"}}


def ran(tmp_path: Path, *turn: dict[str, Any], **options: Any) -> Ran:
    out = tmp_path / "out"
    script = options.pop("script", {})
    return asyncio.run(run_turn(FAKE, fake_command(turn=list(turn), **script), out, **options))


def records(ran: Ran, kind: type[Any]) -> list[Any]:
    events = [*ran.events, *ran.late]
    return [one.record for one in events if isinstance(one, Recorded) and isinstance(one.record, kind)]


async def opened(tmp_path: Path, *turn: dict[str, Any], limits: Limits = QUICK, **script: Any) -> Session:
    installed = Installed(command=fake_command(turn=list(turn), **script), version="1.0", evidence="test")
    wish = Wish(cwd=str(tmp_path), model="big", mode="careful")
    session = await open_session(FAKE, installed, wish, out=tmp_path / "out", limits=limits)
    assert isinstance(session, Session), session
    return session


def test_a_turn(tmp_path: Path) -> None:
    one = ran(tmp_path, {"say": "hello"}, CALL, {"done": "c1", "output": "x"}, {"say": "bye"})
    assert one.result == Completed("end_turn")
    assert one.unwritten == []
    assert one.events[-1] == TurnChanged("settled")
    assert [record.status for record in records(one, ToolResult)] == ["completed"]
    assert one.closed is not None
    assert (one.closed.how, one.closed.exit_code, one.closed.problems) == ("left", 0, ())


def test_the_session_record_says_what_was_asked_for(tmp_path: Path) -> None:
    async def go() -> Path:
        async with await opened(tmp_path, {"say": "hello"}) as session:
            assert (session.opened.agent, session.opened.session) == ("callsheet-fake", "fake-session")
            await session.start("Do.").result()
            assert session.main_stream == "fake-session"
        return session.bundle

    bundle = Bundle(asyncio.run(go()))
    head = json.loads(bundle.read(bundle.manifest.streams[0].file).splitlines()[0])
    wanted = {"program": Path(sys.executable).name, "version": "1.0", "cwd": str(tmp_path)}
    assert head["native"]["extra"]["launch"] == {**wanted, "model": "big", "mode": "careful"}
    assert head["native"]["refs"][-1]["role"] == "recorder"
    assert "model" not in head


@pytest.mark.parametrize(("way", "decision"), [("allow", "allow_once"), ("reject", "reject_once")])
def test_a_policy_answers_and_the_record_says_so(tmp_path: Path, way: Any, decision: str) -> None:
    ask = {"ask": "c1", "options": ["allow_always", "allow_once", "reject_always", "reject_once"]}
    one = ran(tmp_path, CALL, ask, {"done": "c1"}, port=Policy(way))
    asked = records(one, Permission)
    assert [(record.decision, record.decided_by) for record in asked] == [
        (None, None),
        (decision, "policy"),
    ]
    assert imports_alike(FAKE, one.bundle) == []


def test_a_policy_declines_what_it_cannot_answer(tmp_path: Path) -> None:
    one = ran(tmp_path, {"secret": "token"}, {"ask": "c1", "options": ["odd"]}, port=Policy("allow"))
    closed = [event.how for event in one.events if isinstance(event, RequestClosed)]
    assert closed == ["answered", "answered"]
    assert one.result == Completed("end_turn")


def test_answers_race(tmp_path: Path) -> None:
    async def go() -> None:
        async with await opened(tmp_path, CALL, {"ask": "c1"}, {"done": "c1"}) as session:
            assert session.answer("q1", Chosen("o-allow_once"), by="user") == Rejected(
                "the request is not open any more"
            )
            turn = session.start("Do.")
            async for event in turn:
                if isinstance(event, RequestOpened):
                    name = event.request.request_id
                    assert isinstance(session.answer(name, Chosen("no such"), by="user"), Rejected)
                    assert session.requests == [event.request]
                    assert session.answer(name, Chosen("o-allow_once"), by="user") == Accepted()
                    assert isinstance(session.answer(name, Chosen("o-allow_once"), by="user"), Rejected)
            assert await turn.result() == Completed("end_turn")
            assert isinstance(session.answer("q1", Chosen("o-allow_once"), by="user"), Rejected)
            assert isinstance(session.interrupt(), Rejected)

    asyncio.run(go())


def test_an_interrupt_counts_when_it_is_confirmed(tmp_path: Path) -> None:
    async def go() -> None:
        async with await opened(tmp_path, CALL, {"await": "cancel"}) as session:
            turn = session.start("Do.")
            states = []
            async for event in turn:
                if isinstance(event, TurnChanged):
                    states.append(event.state)
                if isinstance(event, Recorded) and isinstance(event.record, ToolCall):
                    assert session.interrupt() == Accepted()
            assert await turn.result() == Interrupted("cancelled")
            assert states[-2:] == ["interrupting", "settled"]

    asyncio.run(go())


def test_an_interrupt_that_nobody_confirms_is_none(tmp_path: Path) -> None:
    async def go() -> None:
        turn_of = (CALL, {"sleep": 60})
        session = await opened(tmp_path, *turn_of, deaf=["cancel", "eof", "term"])
        turn = session.start("Do.")
        said: list[str] = []

        async def read() -> None:
            async for event in turn:
                if isinstance(event, Recorded) and isinstance(event.record, ToolCall):
                    session.interrupt()
                if isinstance(event, Noted):
                    said.append(event.text)

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(1.5)
        assert not reading.done(), "the turn goes on"
        closed = await session.close()
        await reading
        assert said == ["the agent has not confirmed the interrupt after 0.3 s"]
        assert await turn.result() == Lost("SIGKILL")
        assert (closed.how, closed.signal) == ("killed", "SIGKILL")
        assert await session.close() is closed

    asyncio.run(go())


def test_a_crash_is_a_lost_turn(tmp_path: Path) -> None:
    one = ran(tmp_path, CALL, {"output": "c1", "text": "half\n"}, {"kill": int(signal.SIGSEGV)})
    assert one.result == Lost("SIGSEGV")
    turns = records(one, Turn)
    assert [(turn.status, turn.reason) for turn in turns] == [("running", None), ("lost", "SIGSEGV")]
    assert turns[1].supersedes == turns[0].id
    previews = records(one, Preview)
    assert [(preview.call_id, preview.output) for preview in previews] == [("c1", "half\n")]
    assert records(one, ToolResult) == []
    assert [one.native_type for one in records(one, Unmapped)][-1] == "recorder"
    assert list(check_bundle(Bundle(one.bundle))) == []
    assert imports_alike(FAKE, one.bundle) == []


def test_a_turn_that_nobody_took_did_not_start(tmp_path: Path) -> None:
    one = ran(tmp_path, {"exit": 3})
    assert one.result == NotStarted("exit code 3")
    assert [turn.status for turn in records(one, Turn)] == ["running", "unknown"]


def test_a_failed_turn(tmp_path: Path) -> None:
    assert ran(tmp_path, {"say": "hm"}, {"end": "refusal"}).result == Failed(None, "refusal")


def test_a_request_ends_with_its_turn(tmp_path: Path) -> None:
    async def go() -> None:
        async with await opened(tmp_path, CALL, {"ask": "c1"}) as session:
            turn = session.start("Do.")
            closed = []
            async for event in turn:
                if isinstance(event, RequestOpened):
                    kill_agent(session)
                if isinstance(event, RequestClosed):
                    closed.append(event.how)
            assert closed == ["ended"]
            assert isinstance(await turn.result(), Lost)
            assert session.requests == []

    asyncio.run(go())


def test_turns_follow_each_other(tmp_path: Path) -> None:
    async def go() -> None:
        async with await opened(tmp_path, {"say": "hello"}) as session:
            for _ in range(3):
                turn = session.start("Do.")
                assert await session.start("Too early.").result() == NotStarted("another turn is running")
                events = [event async for event in turn]
                assert await turn.result() == Completed("end_turn")
                assert [event async for event in turn] == [], "nothing after the end"
                assert events[-1] == TurnChanged("settled")

    asyncio.run(go())


@pytest.mark.parametrize("apart", [False, True], ids=["same group", "another group"])
def test_what_the_agent_started_goes_with_it(tmp_path: Path, apart: bool) -> None:
    note = tmp_path / "pid"
    child = [sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(60)"]
    spawn = {"spawn": child, "note": str(note), "apart": apart}

    async def go() -> None:
        async with await opened(tmp_path, spawn, CALL, {"sleep": 60}) as session:
            async for event in session.start("Do."):
                if isinstance(event, Recorded) and isinstance(event.record, ToolCall):
                    break

    asyncio.run(go())
    assert not lives(note)


def lives(note: Path) -> bool:
    """Whether the process lives that a file names."""
    stat = Path(f"/proc/{note.read_text()}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_an_agent_that_is_gone_is_seen_though_its_child_keeps_the_pipes(tmp_path: Path) -> None:
    """A child that left the group holds the agent's standard output and error; nobody but us waits for it."""
    child = [sys.executable, "-c", "import time; time.sleep(600)"]
    turn = {"spawn": child, "note": str(tmp_path / "pid"), "apart": True}

    async def go() -> tuple[TurnResult | None, Closed]:
        session = await opened(tmp_path, turn, CALL, {"exit": 3})
        result = await session.start("Do.").result()
        return result, await session.close()

    result, closed = asyncio.run(asyncio.wait_for(go(), 120))
    assert not lives(tmp_path / "pid"), "the child is found though its parent was gone before"
    assert isinstance(result, Lost)
    assert closed.problems == ()
    manifest = json.loads((closed.bundle / "manifest.json").read_bytes())
    assert "recording" not in manifest


def test_an_agent_that_closes_its_output_is_gone(tmp_path: Path) -> None:
    code = "import os, time; os.close(1); time.sleep(600)"
    installed = Installed(command=(sys.executable, "-c", code), version=None, evidence="test")

    async def go() -> None:
        session = await open_session(
            FAKE, installed, Wish(cwd=str(tmp_path)), out=tmp_path / "out", limits=QUICK
        )
        assert isinstance(session, Unopened)

    start = time.monotonic()
    asyncio.run(go())
    assert time.monotonic() - start < 120, "it did not wait for the agent's end"


def test_a_handshake_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    async def go() -> Session | Unopened:
        code = "import sys; sys.stdin.read()"
        installed = Installed(command=(sys.executable, "-c", code), version=None, evidence="test")
        limits = Limits(handshake=0.3, leave=1, drain=0.2)
        return await open_session(
            FAKE, installed, Wish(cwd=str(tmp_path)), out=tmp_path / "out", limits=limits
        )

    found = asyncio.run(go())
    assert isinstance(found, Unopened)
    assert found.reason == "no session after 0.3 s"


def test_standard_error_is_kept_as_a_tail(tmp_path: Path) -> None:
    one = ran(tmp_path, {"stderr": "x" * 1000, "times": 500}, {"stderr": "the end"})
    assert one.closed is not None
    assert one.closed.stderr.endswith("the end\n")
    assert len(one.closed.stderr) <= QUICK.stderr


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)

    async def go() -> None:
        installed = Installed(command=(str(program),), version=None, evidence="test")
        found = await open_session(FAKE, installed, Wish(cwd=str(tmp_path)), out=tmp_path / "out")
        assert isinstance(found, Unopened)
        assert found.reason == "agent cannot be started: no such file or folder"
        assert found.bundle is None
        assert isinstance(await prepare(FAKE, ["no-such-program"]), Missing)
        assert isinstance(await prepare(FAKE, [str(program)]), Installed)

    asyncio.run(go())
    assert list((tmp_path / "out").iterdir()) == [], "nothing of the agent: no bundle"


class Asked:
    """An adapter whose program is asked for its version."""

    name = "asked"
    kind = "acp"
    programs: tuple[str, ...] = ("no-such-program-here",)
    listens = FAKE.listens

    def driver(self, wish: Wish) -> Driver:
        return FAKE.driver(wish)

    def fold(self, desk: Desk, veil: Veil, sources: list[SourceEntry]) -> Folding:
        return FAKE.fold(desk, veil, sources)

    def ask_version(self) -> tuple[str, ...]:
        return ("--version",)

    def qualify(self, command: tuple[str, ...], printed: str) -> Installed:
        return Installed(command=command, version=printed, evidence=printed)


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("print('7.1')", "7.1"),
        ("import sys; print('8', file=sys.stderr)", "8"),
        ("import sys; sys.exit('broken')", "--version ended with exit code 1: broken"),
        ("import time; time.sleep(60)", "no answer to --version in 0.5 s"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "--version ended with SIGKILL"),
        ("print('x' * 10_000_000)", "x" * 65536),
    ],
)
def test_a_program_is_asked_for_its_version(code: str, want: str) -> None:
    async def go() -> None:
        limits = Limits(version=0.5 if "sleep" in code else 20, leave=0.5, drain=0.2)
        found = await prepare(Asked(), [sys.executable, "-c", code], limits=limits)
        if isinstance(found, Installed):
            assert found.version == want
        else:
            assert isinstance(found, Unusable)
            assert found.reason == want

    asyncio.run(go())


def test_a_program_in_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = asyncio.run(prepare(Asked()))
    assert missing == Missing(("no-such-program-here (in PATH)",))
    program = tmp_path / "no-such-program-here"
    program.write_text("#!/bin/sh\necho 9.9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = asyncio.run(prepare(Asked()))
    assert isinstance(found, Installed)
    assert (found.command, found.version) == ((str(program),), "9.9")


# -- readers ------------------------------------------------------------------------------------------------------


def test_a_reader_who_sleeps_gets_every_record_and_the_latest_previews(tmp_path: Path) -> None:
    async def go() -> tuple[list[Event], Path]:
        limits = Limits(window=16, previews=8, leave=2)
        turn_of = ({"ticks": 3000, "every": 0}, CALL, {"output": "c1", "text": "{n}\n", "times": 500})
        async with await opened(tmp_path, *turn_of, limits=limits) as session:
            turn = session.start("Do.")
            result = await turn.result()
            assert result == Completed("end_turn"), "the agent was drained though nobody read"
            return [event async for event in turn], session.bundle

    events, bundle = asyncio.run(go())
    given = [event.record for event in events if isinstance(event, Recorded)]
    assert [record.seq for record in given] == list(range(len(given)))
    assert len(given) > 3000
    lines = (bundle / "streams" / "fake-session.jsonl").read_bytes().splitlines()
    assert [record.id for record in given] == [json.loads(line)["id"] for line in lines[: len(given)]]
    outputs = [event.text for event in events if isinstance(event, OutputPreview)]
    assert len(outputs) == 1
    assert outputs[0].endswith("499\n")
    assert len(events) - len(given) < 12


def test_two_hundred_thousand_deltas(tmp_path: Path) -> None:
    deltas = 200_000
    text = "a line of some output, number {n}\n"
    whole = "".join(text.replace("{n}", str(number)) for number in range(deltas))
    seen = 0

    async def during(session: Session, event: Event) -> None:
        nonlocal seen
        if isinstance(event, OutputPreview):
            seen += 1
            assert len(event.text.encode()) <= OUTPUT_BYTES
            assert event.text.count("\n") <= OUTPUT_LINES
            assert event.omitted_bytes + len(event.text.encode()) <= len(whole)

    one = ran(
        tmp_path,
        CALL,
        {"output": "c1", "text": text, "times": deltas},
        {"done": "c1", "output": "all of it"},
        during=during,
    )
    assert one.result == Completed("end_turn")
    assert seen > 10
    (result,) = records(one, ToolResult)
    assert result.status == "completed"
    bundle = Bundle(one.bundle)
    terminals = [
        json.loads(line)
        for line in bundle.read(bundle.manifest.streams[0].file).splitlines()
        if line.startswith(b'{"type":"terminal"')
    ]
    name = terminals[-1]["output"]["blob"]["blob"]
    assert bundle.blob(name).decode() == whole
