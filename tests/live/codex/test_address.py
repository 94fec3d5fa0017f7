"""The real Codex where it listens: a WebSocket, on a port and on a socket of the file system."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.live.codex.house import DONE, TICKS, Answering, MakeHouse, held, once, outside, shell

from callsheet.harness.codex import CODEX_AGENT
from callsheet.live import Address, Session, Unopened, open_session
from callsheet.seam import Completed, Event, Interrupted, Lost, OutputPreview, Wish
from callsheet.testing.live_run import run_turn
from callsheet.testing.scripted_models.responses import respond
from callsheet.wire.inflate import inflate

pytest.importorskip("codex_cli_bin", reason="needs the extra `live` (openai-codex-cli-bin)")
pytest.importorskip("websockets", reason="needs the extra `live` (websockets)")
WS = "ws://127.0.0.1:0"
TOKEN = "t0ken-9f3c-hunter22"


@pytest.mark.parametrize("way", ["ws", "unix"])
def test_a_turn_at_an_address(house: MakeHouse, way: str, tmp_path: Path) -> None:
    commands = [shell("c1", "echo one"), shell("c2", "echo two >&2; exit 4"), outside("c3", "echo three")]
    asks = {"approval": "on-request", "sandbox": "workspace-write"}
    port = Answering("accept")
    with house([respond(*commands), DONE, DONE], **asks) as at:
        where = WS if way == "ws" else f"unix://{tmp_path}/codex.sock"
        with at.listening(where) as (text, server):
            address = Address.parse(text)
            ran = at.run(port, at=address)
            sheet = held(ran, at)
            assert server.poll() is None
            again = asyncio.run(run_turn(CODEX_AGENT, address, at.out / "again", cwd=at.cwd))
            assert server.poll() is None
    assert (ran.result, again.result) == (Completed("completed"), Completed("completed"))
    assert ran.closed is not None
    assert (ran.closed.how, ran.closed.exit_code, ran.closed.signal) == ("kept", None, None)
    results = sheet.results()
    assert [(results[name]["status"], results[name]["exec"]["exitCode"]) for name in ("c1", "c2", "c3")] == [
        ("completed", 0),
        ("failed", 4),
        ("completed", 0),
    ]
    assert all("content" in result for result in results.values())
    assert sheet.one("permission")["decidedBy"] == "user"
    launch = sheet.records[0]["native"]["extra"]["launch"]
    assert launch["address"] == address.shown
    assert "program" not in launch


def test_a_token_opens_the_door_and_stands_nowhere(house: MakeHouse, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(TOKEN, encoding="ascii")
    options = ("--ws-auth", "capability-token", "--ws-token-file", str(key))
    with house([respond(shell("c1", f"cat {key}")), DONE]) as at, at.listening(WS, *options) as (text, _):
        for token in (None, "another"):
            address = Address.parse(text, token=token)
            refused = asyncio.run(open_session(CODEX_AGENT, address, Wish(cwd=str(at.cwd)), out=at.out))
            assert isinstance(refused, Unopened)
            assert "it wants a token, or another one (HTTP 401)" in refused.reason
        ran = at.run(at=Address.parse(text, token=TOKEN))
    assert ran.result == Completed("completed")
    held_files = [path for path in ran.bundle.rglob("*") if path.is_file()]
    for path in held_files:
        data = path.read_bytes()
        whole = b"".join(inflate([data])) if path.suffix == ".zst" else data
        assert TOKEN.encode() not in whole, path
    assert any(b"c1" in path.read_bytes() for path in held_files)


def test_an_interrupt_at_an_address(house: MakeHouse) -> None:
    with house([respond(shell("i", TICKS, yield_time_ms=20000))]) as at, at.listening() as (text, _):
        ran = at.run(during=once(lambda session: session.interrupt()), at=Address.parse(text))
        sheet = held(ran, at)
    assert isinstance(ran.result, Interrupted)
    assert sheet.one("turn")["status"] == "interrupted"


def test_who_leaves_in_mid_turn_breaks_it_off(house: MakeHouse) -> None:
    """The server lives on: a turn that nobody watches any more would, too."""
    left: list[Any] = []

    async def leave(session: Session, event: Event) -> None:
        if not left and isinstance(event, OutputPreview) and "tick 3" in event.text:
            left.append(asyncio.ensure_future(session.close()))

    with house([respond(shell("i", TICKS, yield_time_ms=20000))]) as at, at.listening() as (text, server):
        ran = at.run(during=leave, at=Address.parse(text))
        sheet = held(ran, at)
        assert server.poll() is None
    assert isinstance(ran.result, Interrupted)
    assert sheet.one("turn")["status"] == "interrupted"


def test_a_server_that_is_killed_in_mid_call(house: MakeHouse) -> None:
    with house([respond(shell("k", TICKS, yield_time_ms=20000))]) as at, at.listening() as (text, server):
        ran = at.run(during=once(lambda _: server.send_signal(signal.SIGKILL)), at=Address.parse(text))
        sheet = held(ran, at)
    assert isinstance(ran.result, Lost)
    assert sheet.one("turn")["status"] == "lost"
    assert sheet.results() == {}
    assert "tick 3" in sheet.one("preview")["output"]
