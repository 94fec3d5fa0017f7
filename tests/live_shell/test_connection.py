"""Agents at an address: the same contract as for agents that are started, and nothing ended but the connection."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.live_shell.conftest import Started
from tests.live_shell.test_kit import ACP, COMMANDS

from callsheet.errors import UsageError
from callsheet.harness import LIVE
from callsheet.harness._port.live import LiveAgent
from callsheet.live import Address, Policy, Session, Unopened, open_session
from callsheet.records.bundle import Bundle
from callsheet.seam import (
    Completed,
    Event,
    Interrupted,
    Lost,
    Recorded,
    Wish,
)
from callsheet.testing.check_live import PLAYS, check_live_harness
from callsheet.testing.fake import FAKE, fake_command
from callsheet.testing.listener import listening
from callsheet.testing.live_run import QUICK, run_turn
from callsheet.wire.inflate import inflate

CALL = {"call": "c1", "title": "ls", "input": {"command": "ls"}}
WRONG_ACCEPT = b"\r\n".join(
    [
        b"HTTP/1.1 101 Switching",
        b"Upgrade: websocket",
        b"Connection: upgrade",
        b"Sec-WebSocket-Accept: no",
        b"",
        b"",
    ]
)
TOKEN = "t0ken-9f3c-hunter22"


@pytest.fixture(params=["ws", "tcp", "unix"])
def scheme(request: pytest.FixtureRequest) -> str:
    if request.param == "ws":
        pytest.importorskip("websockets", reason="needs the extra: address")
    return str(request.param)


@pytest.mark.parametrize("agent", [FAKE, ACP], ids=["fake", "acp"])
@pytest.mark.parametrize("play", PLAYS)
def test_the_fake_agent_passes_at_an_address(
    agent: LiveAgent, play: str, scheme: Any, tmp_path: Path
) -> None:
    commands = dict.fromkeys(PLAYS, "one at a time") | {play: COMMANDS[play]}
    at = partial(listening, scheme=scheme, folder=tmp_path)
    assert check_live_harness(agent, commands, tmp_path / "plays", at=at) == []


def log_of(bundle: Path) -> list[dict[str, Any]]:
    packed = Bundle(bundle).read("native/s0.zst")
    return [json.loads(line) for line in b"".join(inflate([packed])).splitlines()]


def test_what_is_recorded_of_an_address(scheme: Any, tmp_path: Path) -> None:
    with listening(fake_command(turn=[{"say": "hi"}]), scheme, folder=tmp_path) as text:
        address = Address.parse(text)
        one = asyncio.run(run_turn(FAKE, address, tmp_path / "out"))
    assert one.result == Completed("end_turn")
    assert one.closed is not None
    assert (one.closed.how, one.closed.exit_code, one.closed.signal) == ("kept", None, None)
    first, *_, last = log_of(one.bundle)
    assert {name: value for name, value in first["launch"].items() if value} == {
        "address": address.shown,
        "cwd": str(tmp_path),
    }
    assert last["hangup"]["by"] == "client"


def test_the_agent_is_left_running(scheme: Any, tmp_path: Path) -> None:
    with listening(fake_command(turn=[{"say": "hi"}]), scheme, folder=tmp_path) as text:
        for name in ("first", "second"):
            one = asyncio.run(run_turn(FAKE, Address.parse(text), tmp_path / name))
            assert one.result == Completed("end_turn")


def test_a_turn_is_broken_off_before_we_go(scheme: Any, tmp_path: Path) -> None:
    """What is not ours goes on when we leave: so it is asked not to."""

    async def go(address: Address) -> tuple[Any, Any]:
        wish = Wish(cwd=str(tmp_path))
        session = await open_session(FAKE, address, wish, out=tmp_path / "out", limits=QUICK)
        assert isinstance(session, Session)
        turn = session.start("Do it.")
        async for event in turn:
            if isinstance(event, Recorded) and event.record.seq >= 2:
                break
        closed = await session.close()
        return closed, await turn.result()

    with listening(fake_command(turn=[CALL, {"await": "cancel"}]), scheme, folder=tmp_path) as text:
        closed, result = asyncio.run(go(Address.parse(text)))
    assert result == Interrupted("cancelled")
    assert closed.how == "kept"
    assert closed.problems == ()


def test_an_agent_at_an_address_gets_none_of_our_files(tmp_path: Path) -> None:
    with listening(fake_command(turn=[{"say": "hi"}])) as text:
        one = asyncio.run(run_turn(ACP, Address.parse(text), tmp_path / "out"))
    asked = next(
        line["frame"] for line in log_of(one.bundle) if line.get("frame", {}).get("method") == "initialize"
    )
    said = json.dumps(asked)
    assert '"terminal": false' in said
    assert '"readTextFile": false' in said


# -- trouble ----------------------------------------------------------------------------------------------------


@contextmanager
def peer(play: Callable[[socket.socket], None]) -> Iterator[int]:
    """A listener that does one thing to whoever connects, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as one:
                play(one)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def silent(one: socket.socket) -> None:
    """Takes everything, says nothing."""
    while one.recv(1 << 16):
        pass


def opened(address: str, tmp_path: Path, **limits: Any) -> Session | Unopened:
    async def go() -> Session | Unopened:
        bounds = msgspec.structs.replace(QUICK, **limits)
        wish = Wish(cwd=str(tmp_path))
        found = await open_session(FAKE, Address.parse(address), wish, out=tmp_path / "out", limits=bounds)
        if isinstance(found, Session):
            await found.close()
        return found

    return asyncio.run(go())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("kind", ["ws", "tcp"])
def test_nobody_listens(kind: str, tmp_path: Path) -> None:
    if kind == "ws":
        pytest.importorskip("websockets")
    address = f"{kind}://127.0.0.1:{free_port()}"
    found = opened(address, tmp_path)
    assert found == Unopened(reason=f"{address} cannot be reached: Connection refused")
    assert list((tmp_path / "out").iterdir()) == []  # nothing was said: nothing is kept


def test_no_such_socket(tmp_path: Path) -> None:
    found = opened(f"unix://{tmp_path}/none.sock", tmp_path)
    assert isinstance(found, Unopened)
    assert found.reason.endswith("none.sock cannot be reached: No such file or directory")


def test_a_peer_that_says_nothing(tmp_path: Path) -> None:
    pytest.importorskip("websockets")
    with peer(silent) as port:
        found = opened(f"ws://127.0.0.1:{port}", tmp_path, connect=0.3)
    assert isinstance(found, Unopened)
    assert found.reason.endswith("cannot be reached: no connection after 0.3 s")


def test_an_agent_that_does_not_answer_the_handshake(tmp_path: Path) -> None:
    with peer(silent) as port:
        found = opened(f"tcp://127.0.0.1:{port}", tmp_path, handshake=0.3)
    assert isinstance(found, Unopened)
    assert found.reason == "no session after 0.3 s"
    assert found.bundle is not None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it does not speak HTTP"),
        (b"", "it does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "no WebSocket is opened here (HTTP 200)"),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "it wants a token, or another one"),
        (b"HTTP/1.1 302 Found\r\nLocation: ws://elsewhere/\r\nContent-Length: 0\r\n\r\n", "not followed"),
        (
            WRONG_ACCEPT,
            "no WebSocket",
        ),
    ],
)
def test_a_peer_that_is_no_websocket(said: bytes, why: str, tmp_path: Path) -> None:
    pytest.importorskip("websockets")

    def play(one: socket.socket) -> None:
        one.recv(1 << 16)
        one.sendall(said)

    with peer(play) as port:
        found = opened(f"ws://127.0.0.1:{port}", tmp_path)
    assert isinstance(found, Unopened)
    assert why in found.reason
    assert found.bundle is None


def test_a_token(tmp_path: Path) -> None:
    """It opens the door, and stands nowhere afterwards, though the agent repeats it."""
    pytest.importorskip("websockets")
    with listening(fake_command(turn=[{"say": f"your token is {TOKEN}"}]), "ws", token=TOKEN) as text:
        refused = opened(text, tmp_path)
        assert isinstance(refused, Unopened)
        assert "it wants a token" in refused.reason
        one = asyncio.run(run_turn(FAKE, Address.parse(text, token=TOKEN), tmp_path / "out"))
    assert one.result == Completed("end_turn")
    everything = b"".join(json.dumps(line).encode() for line in log_of(one.bundle))
    everything += b"".join(path.read_bytes() for path in one.bundle.rglob("*.jsonl"))
    assert b"your token is" in everything
    assert TOKEN.encode() not in everything


def test_an_agent_that_leaves_in_mid_turn(scheme: Any, tmp_path: Path) -> None:
    script = fake_command(turn=[CALL, {"output": "c1", "text": "half"}, {"kill": int(signal.SIGKILL)}])
    with listening(script, scheme, folder=tmp_path) as text:
        one = asyncio.run(run_turn(FAKE, Address.parse(text), tmp_path / "out"))
    assert isinstance(one.result, Lost)
    assert "the agent closed the connection" in one.result.reason
    assert [line["hangup"]["by"] for line in log_of(one.bundle) if "hangup" in line] == ["agent"]


def test_a_connection_that_breaks(tmp_path: Path) -> None:
    """A reset is no word of the agent's; and it may go on with the prompt, though it was not seen to take it."""

    def play(one: socket.socket) -> None:
        file = one.makefile("rwb")
        for reply in ({"protocolVersion": 1}, {"sessionId": "s"}, None):
            asked = json.loads(file.readline())
            if reply is not None:
                file.write(
                    json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": reply}).encode() + b"\n"
                )
                file.flush()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    with peer(play) as port:
        one = asyncio.run(run_turn(FAKE, Address.parse(f"tcp://127.0.0.1:{port}"), tmp_path / "out"))
    assert isinstance(one.result, Lost)
    assert one.result.reason == "the connection was lost (Connection reset by peer)"
    hangups = [line["hangup"] for line in log_of(one.bundle) if "hangup" in line]
    assert hangups == [{"reason": "Connection reset by peer"}]


def test_a_message_that_is_too_long(tmp_path: Path) -> None:
    pytest.importorskip("websockets")
    limits = msgspec.structs.replace(QUICK, line=100_000)
    with listening(fake_command(turn=[{"say": "hi"}, {"long": 1 << 20}]), "ws") as text:
        one = asyncio.run(run_turn(FAKE, Address.parse(text), tmp_path / "out", limits=limits))
    assert one.result == Lost("the connection was closed (a message had more than 100,000 bytes)")


def test_a_line_that_is_too_long_costs_that_line(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(QUICK, line=100_000)
    with listening(fake_command(turn=[{"long": 1 << 20}, {"say": "still here"}])) as text:
        one = asyncio.run(run_turn(FAKE, Address.parse(text), tmp_path / "out", limits=limits))
    assert one.result == Completed("end_turn")


def test_a_large_message_is_whole(scheme: Any, tmp_path: Path) -> None:
    with listening(fake_command(turn=[{"long": 5 << 20}]), scheme, folder=tmp_path) as text:
        one = asyncio.run(run_turn(FAKE, Address.parse(text), tmp_path / "out"))
    assert one.result == Completed("end_turn")
    frames = [line["frame"] for line in log_of(one.bundle) if "frame" in line]
    texts = [
        frame["params"]["update"]["content"]["text"]
        for frame in frames
        if frame.get("method") == "session/update"
    ]
    assert [len(one) for one in texts] == [5 << 20]


def test_agents_that_listen_nowhere(tmp_path: Path) -> None:
    claude = next(agent for agent in LIVE if agent.name == "claude-code")
    codex = next(agent for agent in LIVE if agent.name == "codex")
    wish = Wish(cwd=str(tmp_path))
    for agent, address, why in (
        (claude, "tcp://localhost:1", "can only be started"),
        (codex, "tcp://localhost:1", "possible: ws://, wss://, unix://"),
    ):
        with pytest.raises(UsageError, match=why):
            asyncio.run(open_session(agent, Address.parse(address), wish, out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


# -- the command line -------------------------------------------------------------------------------------------


def test_run_at_an_address(start: Started, scheme: Any, tmp_path: Path) -> None:
    with listening(fake_command(turn=[CALL, {"ask": "c1"}, {"done": "c1"}]), scheme, folder=tmp_path) as text:
        process = start(
            "run",
            "fake",
            "--at",
            text,
            "--json",
            "--answer",
            "allow",
            "--out",
            str(tmp_path / "o"),
            "--",
            "Do.",
        )
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[-1]["result"] == "completed"
    assert lines[0]["native"]["extra"]["launch"]["address"] == Address.parse(text).shown
    assert "was left running" in err.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--at", "tcp://localhost"], 2, "name the port"),
        (["--at", "ws://me:hunter22@example.org"], 2, "to this machine only"),
        (["--at", "tcp://localhost:1", "--agent", "x"], 2, "either it is to be started"),
        (["--agent", "ws://me:hunter22@localhost:1"], 2, "an address is given with --at"),
        (["--at", "tcp://127.0.0.1:1", "--token-env", "NO_SUCH_VARIABLE"], 2, "there is no such variable"),
        (["--token-env", "HOME"], 2, "goes with --at"),
        ([], 2, "needs --agent COMMAND or --at ADDRESS"),
        (["--at", "tcp://127.0.0.1:1"], 4, "cannot be reached: Connection refused"),
        (["--at", "tcp://127.0.0.1:1", "--cwd", "/no/such/folder/here"], 4, "cannot be reached"),
        (["--agent", "x", "--cwd", "/no/such/folder/here"], 2, "is no folder"),
    ],
)
def test_options_that_do_not_fit(
    start: Started, arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    process = start("run", "fake", *arguments, "--out", str(tmp_path / "o"), "--", "Do.")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, said in err.decode()) == (code, True), err
    assert b"hunter22" not in err


def test_a_second_interrupt_leaves_the_agent_alone(start: Started, scheme: Any, tmp_path: Path) -> None:
    script = fake_command(turn=[CALL, {"sleep": 30}], deaf=["cancel"])
    with listening(script, scheme, folder=tmp_path) as text:
        process = start("run", "fake", "--at", text, "--json", "--out", str(tmp_path / "o"), "--", "Do.")
        assert process.stdout is not None
        while b'"tool_call"' not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert b"leaves the agent alone" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out.splitlines()[-1])["result"] == "lost"
    assert b"was left running" in err


def test_events_come_while_the_turn_runs(scheme: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    async def during(session: Session, event: Event) -> None:
        seen.append(type(event).__name__)

    with listening(
        fake_command(turn=[CALL, {"output": "c1", "text": "a\n", "times": 50}]), scheme, folder=tmp_path
    ) as text:
        asyncio.run(
            run_turn(FAKE, Address.parse(text), tmp_path / "out", during=during, port=Policy("reject"))
        )
    assert "OutputPreview" in seen


def test_a_listener_leaves_nothing_behind(tmp_path: Path) -> None:
    """Though its program takes no notice, and its connection has just been closed."""
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with listening([sys.executable, "-c", code]) as text:
        host, port = text.removeprefix("tcp://").split(":")
        with socket.create_connection((host, int(port))):
            while not note.exists() or not note.read_text():
                time.sleep(0.02)
    stat = Path(f"/proc/{note.read_text()}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
