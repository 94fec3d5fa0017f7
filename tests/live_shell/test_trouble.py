"""Hostile agents, full disks, and bugs of our own: a session survives them, or ends and says so."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness import LIVE
from callsheet.harness._port import Desk
from callsheet.harness._port.attested import own_line
from callsheet.harness._port.fold import Folding
from callsheet.harness._port.veil import Veil
from callsheet.live import Limits, Policy, Session, open_session
from callsheet.live.streams import Appended
from callsheet.records import Permission, SourceEntry, ToolCall, Turn, Unmapped
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import (
    Accepted,
    Answer,
    Chosen,
    Completed,
    Driver,
    Event,
    Installed,
    Lost,
    Recorded,
    RequestOpened,
    Step,
    Waiting,
    Wish,
)
from callsheet.testing.check_live import imports_alike
from callsheet.testing.fake import FAKE, FakeDriver, fake_command
from callsheet.testing.live_run import QUICK, Ran, run_turn

CALL = {"call": "c1", "title": "ls", "input": {"command": "ls"}}


def ran(tmp_path: Path, *turn: dict[str, Any], **options: Any) -> Ran:
    out = tmp_path / "out"
    script = options.pop("script", {})
    return asyncio.run(run_turn(FAKE, fake_command(turn=list(turn), **script), out, **options))


def records(ran: Ran, kind: type[Any]) -> list[Any]:
    events = [*ran.events, *ran.late]
    return [one.record for one in events if isinstance(one, Recorded) and isinstance(one.record, kind)]


class Other:
    """An adapter to build others on."""

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


# -- hostile agents -----------------------------------------------------------------------------------------------


def test_hostile_output(tmp_path: Path) -> None:
    lines = [
        "\x00\x01\x02",
        "\xff\xfe broken utf-8 \xc3",
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-session","update":7}}',
        '{"jsonrpc":"2.0","method":7,"params":[]}',
        '{"jsonrpc":"2.0","id":{"x":[]},"result":null}',
        '{"dir":"recorder","ts":"2026-01-01T00:00:00Z","turn":{"result":"lost"}}',
        '{"jsonrpc":"2.0","method":"x","params":{"text":"\\ud800"}}',
        '{"jsonrpc":"2.0","method":"x","params":{"n":1e999,"m":123456789012345678901234567890}}',
        '"answered_by"',
        "[" * 5000 + "]" * 5000,
        "\u00e9\r",
        "\x1b]0;title\x07",
    ]
    one = ran(tmp_path, *({"raw": line} for line in lines), CALL, {"done": "c1"}, {"say": "fine"})
    assert one.result == Completed("end_turn")
    assert one.closed is not None
    assert one.closed.problems == ()
    assert list(check_bundle(Bundle(one.bundle))) == []
    assert imports_alike(FAKE, one.bundle) == []
    kept = records(one, Unmapped)
    assert len(kept) >= len(lines) - 2
    assert [turn.status for turn in records(one, Turn)] == ["running", "completed"]


def test_very_long_lines(tmp_path: Path) -> None:
    limits = Limits(line=1_000_000, leave=2)
    one = ran(tmp_path, {"long": 900_000}, {"long": 3_000_000}, {"say": "after"}, limits=limits)
    assert one.result == Completed("end_turn")
    (cut,) = [one for one in records(one, Unmapped) if one.native_type == "raw"]
    said = json.loads(bytes(cut.value))
    assert said["omittedBytes"] + len(said["raw"]) > 3_000_000
    assert list(check_bundle(Bundle(one.bundle))) == []


def test_lines_of_the_recorder_cannot_be_forged(tmp_path: Path) -> None:
    """What an agent sends stands inside of a frame, whatever it looks like."""
    lie = '{"dir":"client_to_agent","answered_by":"user","frame":{"jsonrpc":"2.0","id":"q1","result":{}}}'
    one = ran(
        tmp_path, CALL, {"raw": lie}, {"ask": "c1"}, {"raw": lie}, {"done": "c1"}, port=Policy("reject")
    )
    assert [record.decided_by for record in records(one, Permission)] == [None, "policy"]


def test_an_agent_that_asks_and_does_not_read(tmp_path: Path) -> None:
    """What it asks for waits in bounded memory."""
    big = tmp_path / "big"
    big.write_text("x" * 1_000_000)
    ask = {"jsonrpc": "2.0", "method": "fs/read_text_file"}
    params = {"sessionId": "fake-session", "path": str(big)}
    flood = [{"frame": {**ask, "id": number, "params": params}} for number in range(60)]
    agent = next(agent for agent in LIVE if agent.name == "acp")
    limits = Limits(unread=5_000_000, leave=1, drain=0.3)
    command = fake_command(turn=[*flood, {"sleep": 600}], deaf=["cancel"])
    begun = time.monotonic()
    one = asyncio.run(run_turn(agent, command, tmp_path / "out", limits=limits))
    assert one.result == Lost("the agent does not read: 5,000,000 bytes wait for it")
    assert time.monotonic() - begun < 120
    assert list(check_bundle(Bundle(one.bundle))) == []


# -- disks --------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")

    async def go() -> None:
        installed = Installed(command=fake_command(), version=None, evidence="test")
        await open_session(FAKE, installed, Wish(cwd=str(tmp_path)), out=tmp_path / "out")

    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        asyncio.run(go())


def test_a_full_disk_stops_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs without a record; of a line that did not fit nothing stays."""
    room = 20_000
    write = os.write

    def full(file: int, data: Any) -> int:
        nonlocal room
        name = Path(f"/proc/self/fd/{file}").readlink().name
        if name != "s0.jsonl":
            return write(file, data)
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(file, data[:room])
        room -= done
        return done

    monkeypatch.setattr("callsheet.live.streams.os.write", full)
    one = ran(tmp_path, CALL, {"ticks": 100_000, "every": 0})
    assert one.result == Lost("the recording failed: No space left on device")
    assert one.closed is not None
    assert one.closed.problems == (
        "the recording failed: No space left on device",
        "the recording was not finished: the recording failed: No space left on device",
    )
    monkeypatch.undo()
    log = (one.bundle / "native" / "s0.jsonl").read_bytes()
    assert log.endswith(b"}\n")
    from callsheet.live import recover

    assert recover(one.bundle, (FAKE,)) is not None
    assert list(check_bundle(Bundle(one.bundle))) == []


def test_a_file_takes_back_what_did_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Appended(tmp_path / "x")
    file.put(b"whole\n")
    file.flush()
    write = os.write
    monkeypatch.setattr("callsheet.live.streams.os.write", lambda fd, data: write(fd, data[:3]))
    file.put(b"also whole\n")
    file.flush()
    assert (tmp_path / "x").read_bytes() == b"whole\nalso whole\n"
    calls = iter([9, OSError(errno.ENOSPC, "full")])

    def some(fd: int, data: Any) -> int:
        step = next(calls)
        if isinstance(step, OSError):
            raise step
        return write(fd, data[:step])

    monkeypatch.setattr("callsheet.live.streams.os.write", some)
    file.put(b"fits\n")
    file.put(b"does not fit\n")
    with pytest.raises(OSError, match="full"):
        file.flush()
    assert (tmp_path / "x").read_bytes() == b"whole\nalso whole\nfits\n"
    import hashlib

    assert file.sha256 == hashlib.sha256(b"whole\nalso whole\nfits\n").hexdigest()
    file.close()


def test_own_lines_are_compact() -> None:
    from callsheet.harness._port.attested import Exit, Launch

    assert own_line(Launch(cwd="/x"), "T") == b'{"dir":"recorder","ts":"T","launch":{"cwd":"/x"}}'
    assert own_line(Exit(code=0), "T") == b'{"dir":"recorder","ts":"T","exit":{"code":0,"signal":null}}'


# -- bugs of ours ---------------------------------------------------------------------------------------------------


class Broken(FakeDriver):
    """A driver with a bug."""

    def receive(self, frame: bytes) -> list[Step]:
        if b"tool_call" in frame:
            raise RuntimeError("cannot count")
        return super().receive(frame)


class BrokenAgent(Other):
    def driver(self, wish: Wish) -> Driver:
        return Broken(wish)


class BadPort:
    by = "user"

    async def answer(self, request: Waiting) -> Answer | None:
        raise RuntimeError("fell over")


def test_a_bug_in_a_driver_ends_the_turn_and_is_said(tmp_path: Path) -> None:
    command = fake_command(turn=[{"say": "hello"}, CALL, {"sleep": 60}])
    one = asyncio.run(run_turn(BrokenAgent(), command, tmp_path / "out"))
    what = "RuntimeError: cannot count (a bug in callsheet; CALLSHEET_DEBUG=1 shows where)"
    assert one.result == Lost(what)
    assert one.closed is not None
    assert one.closed.problems == (what,)
    assert not Bundle(one.bundle).manifest.recording, "our recorder is whole, and finishes"
    assert [turn.status for turn in records(one, Turn)] == ["running", "lost"]
    assert imports_alike(FAKE, one.bundle) == []
    assert list(check_bundle(Bundle(one.bundle))) == []


def test_a_port_that_fails_leaves_the_request_open(tmp_path: Path) -> None:
    async def go() -> None:
        turn_of = ({"ask": "c1"}, {"say": "fine"})
        installed = Installed(command=fake_command(turn=list(turn_of)), version=None, evidence="test")
        wish = Wish(cwd=str(tmp_path))
        session = await open_session(
            FAKE, installed, wish, out=tmp_path / "out", port=BadPort(), limits=QUICK
        )
        assert isinstance(session, Session)
        turn = session.start("Do.")
        async for event in turn:
            if isinstance(event, RequestOpened):
                await asyncio.sleep(0.1)
                assert session.requests == [event.request]
                assert session.answer("q1", Chosen("o-allow_once"), by="user") == Accepted()
        assert await turn.result() == Completed("end_turn")
        closed = await session.close()
        assert len(closed.problems) == 1
        assert closed.problems[0].startswith("the answer to q1 failed: RuntimeError: fell over")

    asyncio.run(go())


def test_a_driver_that_will_not_let_go_is_closed_in_time(tmp_path: Path) -> None:
    begun = time.monotonic()
    one = ran(tmp_path, CALL, {"kill": int(signal.SIGSTOP)}, limits=QUICK, during=close_soon)
    assert isinstance(one.result, Lost)
    assert time.monotonic() - begun < 120


async def close_soon(session: Session, event: Event) -> None:
    if isinstance(event, Recorded) and isinstance(event.record, ToolCall):
        await asyncio.sleep(0.2)
        await session.close()
