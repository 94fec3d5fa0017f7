"""The tap: every byte passes as it came, whatever becomes of the recorder; and what passed is in a bundle."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.native.acp.conftest import sheet_of
from tests.native.acp.test_replay import facts
from tests.native.acp.toys import run_toy

from callsheet.live.recovery import is_unfinished, recover
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import Completed, Ended
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import inflate

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc to find the recorder")

ECHO = """
import os, sys
sent = 0
while chunk := os.read(0, 100_000):
    os.write(2, b"E")
    left = memoryview(chunk)
    while left:
        left = left[os.write(1, left):]
"""
"""An agent that says what it is told, and is noisy on its standard error."""
SAY = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"x"}}}\n'
)
GOES_ON = "the conversation goes on, and what follows of it is not recorded"


def tap(out: Path, agent: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "callsheet", "tap", "--out", str(out), "--", *agent]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


class Editor:
    """An editor's half: a tapped agent, and threads that read what comes of it."""

    def __init__(self, out: Path, agent: Sequence[str], reads: bool = True, **more: Any) -> None:
        self.process = subprocess.Popen(
            tap(out, agent),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **more,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.got = bytearray()
        self.errors = bytearray()
        self._threads = [threading.Thread(target=self._read, args=(self.process.stderr, self.errors))]
        if reads:
            self._threads.append(threading.Thread(target=self._read, args=(self.stdout, self.got)))
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream: Any, into: bytearray) -> None:
        while chunk := stream.read(1 << 16):
            into += chunk

    def say(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self.stdin.write(left) :]

    def until(self, done: Callable[[], bool], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, (bytes(self.got[-500:]), bytes(self.errors[-500:]))
            time.sleep(0.01)

    def leave(self) -> int:
        if not self.stdin.closed:
            self.stdin.close()
        code = self.process.wait(90)
        for thread in self._threads:
            thread.join(30)
        self.stdout.close()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    @property
    def said(self) -> str:
        """What the tap itself said."""
        return self.errors.decode().replace("E", "") if b"callsheet" in self.errors else ""

    def children(self) -> dict[str, int]:
        """The agent's and the recorder's process ids."""
        found: dict[str, int] = {}
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if words[1] == str(self.process.pid):
                found["recorder" if b"tap_recorder" in line else "agent"] = int(entry.name)
        return found

    def recorder(self) -> int:
        self.until(lambda: "recorder" in self.children())
        return self.children()["recorder"]


def bundle_in(out: Path, *, finished: bool = True) -> Path:
    """The bundle that was made; a recorder with much to write finishes after the conversation."""
    end = time.monotonic() + 60
    while not (found := next(out.glob("[!.]*"), None)):
        assert time.monotonic() < end
        time.sleep(0.05)
    while finished and is_unfinished(found):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def log_of(bundle: Path) -> list[dict[str, Any]]:
    opened = Bundle(bundle)
    with opened.open(opened.manifest.sources[0].native or "") as packed:
        return [json.loads(line) for line in b"".join(inflate(read_chunks(packed))).split(b"\n") if line]


def way(log: list[dict[str, Any]], name: str) -> list[Any]:
    return [line.get("frame", line.get("raw")) for line in log if line["dir"] == name]


# -- bytes ----------------------------------------------------------------------------------------------------------

BYTES = {
    "nothing": b"",
    "half a line": b'{"jsonrpc":"2.0","id":',
    "binary": random.Random(7).randbytes(700_000),
    "zeros": bytes(200_000),
    "line ends": b"\r\n\n\r\n\n",
    "no UTF-8": b'{"a":"\xff\xfe"}\n\xc3',
    "a long line": b'{"a":"' + b"x" * 9_000_000 + b'"}\n',
    "many lines": SAY * 20_000,
}


@pytest.mark.parametrize("name", BYTES)
def test_every_byte_passes_as_it_came(name: str, tmp_path: Path) -> None:
    data = BYTES[name]
    editor = Editor(tmp_path / "out", python(ECHO))
    editor.say(data)
    assert editor.leave() == 0
    assert bytes(editor.got) == data
    assert bytes(editor.errors).strip(b"E") == b""
    if not data.strip():
        editor.until(lambda: not any((tmp_path / "out").iterdir()))  # nothing was said
        return
    log = log_of(bundle_in(tmp_path / "out"))
    there, back = way(log, "client_to_agent"), way(log, "agent_to_client")
    assert there == back
    wanted = [line for line in data.split(b"\n") if line.strip(b" \t\r\n")]
    assert len(there) == len(wanted)
    for kept, line in zip(there, wanted, strict=True):
        if isinstance(kept, str):
            assert kept == line.strip(b" \t\r").decode("utf-8", "replace")
        else:
            assert kept == json.loads(line)


def test_the_splits_of_the_bytes_do_not_matter(tmp_path: Path) -> None:
    editor = Editor(tmp_path / "out", python(ECHO))
    for place in range(0, len(SAY * 3), 7):
        editor.say((SAY * 3)[place : place + 7])
        time.sleep(0.002)
    assert editor.leave() == 0
    assert bytes(editor.got) == SAY * 3
    assert way(log_of(bundle_in(tmp_path / "out")), "client_to_agent") == [json.loads(SAY)] * 3


def test_a_reader_that_does_not_read_holds_the_agent_up(tmp_path: Path) -> None:
    flood = "import os\nfor n in range(4000):\n os.write(1, b'x' * 9999 + b'\\n')\n os.write(2, b'.')"
    editor = Editor(tmp_path / "out", python(flood), reads=False)
    editor.until(lambda: len(editor.errors) > 5)
    time.sleep(0.5)
    held = len(editor.errors)
    time.sleep(0.3)
    assert len(editor.errors) == held < 100
    Editor._read(editor.stdout, editor.got)
    assert editor.leave() == 0
    assert len(editor.got) == 4000 * 10_000
    assert bytes(editor.errors) == b"." * 4000


# -- ends -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_is_the_agents(code: int, tmp_path: Path) -> None:
    editor = Editor(tmp_path / "out", python(f"import os; os.write(1, b'bye\\n'); os._exit({code})"))
    assert editor.leave() == code
    assert bytes(editor.got) == b"bye\n"
    assert log_of(bundle_in(tmp_path / "out"))[-1]["exit"] == {"code": code, "signal": None}


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM"])
def test_an_agent_that_dies_by_a_signal(name: str, tmp_path: Path) -> None:
    code = f"import os, signal; os.write(1, b'bye\\n'); os.kill(os.getpid(), signal.{name})"
    editor = Editor(tmp_path / "out", python(code))
    assert editor.leave() == -getattr(signal, name)
    assert log_of(bundle_in(tmp_path / "out"))[-1]["exit"] == {"code": None, "signal": name}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_signals_reach_the_agent(name: str, tmp_path: Path) -> None:
    code = f"""
import os, signal, time
def heard(number, frame):
    os.write(1, b"heard\\n")
    os._exit(7)
signal.signal(signal.{name}, heard)
os.write(1, b"ready\\n")
time.sleep(60)
"""
    editor = Editor(tmp_path / "out", python(code), start_new_session=True)
    editor.until(lambda: b"ready\n" in editor.got)
    editor.process.send_signal(getattr(signal, name))
    assert editor.process.wait(20) == 7
    editor.leave()
    assert bytes(editor.got) == b"ready\nheard\n"


def test_a_tap_that_is_killed_takes_the_agent_with_it_and_the_recording_ends(tmp_path: Path) -> None:
    stays = "import os, time\nos.write(1, os.read(0, 65536))\ntime.sleep(60)"
    editor = Editor(tmp_path / "out", python(stays))
    editor.say(SAY)
    editor.until(lambda: SAY in editor.got)
    agent = editor.children()["agent"]
    recorder = editor.recorder()
    editor.process.kill()
    assert editor.leave() == -signal.SIGKILL
    for pid in (agent, recorder):
        editor.until(lambda pid=pid: not Path(f"/proc/{pid}").exists())  # type: ignore[misc]
    assert way(log_of(bundle_in(tmp_path / "out")), "agent_to_client") == [json.loads(SAY)]


def test_an_editor_that_stops_reading_is_felt_by_the_agent(tmp_path: Path) -> None:
    code = """
import os, signal, time
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
try:
    while True:
        os.write(1, b"tick\\n")
        time.sleep(0.01)
except BrokenPipeError:
    os._exit(9)
"""
    editor = Editor(tmp_path / "out", python(code), reads=False)
    editor.stdout.read(5)
    editor.stdout.close()
    assert editor.process.wait(20) == 9
    editor.leave()


def test_an_agent_that_stops_reading_is_felt_by_the_editor(tmp_path: Path) -> None:
    code = "import os, sys; os.close(0); os.write(1, b'deaf\\n'); import time; time.sleep(2)"
    editor = Editor(tmp_path / "out", python(code))
    editor.until(lambda: b"deaf\n" in editor.got)
    with pytest.raises(BrokenPipeError):  # noqa: PT012
        for _ in range(300):
            editor.say(SAY)
            time.sleep(0.005)
    editor.leave()


def test_what_the_agent_left_behind_does_not_hold_the_end_up(tmp_path: Path) -> None:
    editor = Editor(tmp_path / "out", ["/bin/sh", "-c", "sleep 600 & echo $!"])
    began = time.monotonic()
    code = editor.process.wait(120)
    assert (code, time.monotonic() - began < 120) == (0, True)
    os.kill(int(bytes(editor.got).strip() or b"0") or 2**22, signal.SIGKILL)
    editor.leave()


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run(
        tap(tmp_path / "out", ["no-such-agent-anywhere"]), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "callsheet: no-such-agent-anywhere: not found\n"


# -- the recorder is not needed -------------------------------------------------------------------------------------


def test_a_recorder_that_is_killed_breaks_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    editor = Editor(out, python(ECHO))
    editor.say(SAY * 10)
    editor.until(lambda: bytes(editor.got) == SAY * 10)
    recorder = editor.recorder()
    editor.until(
        lambda: out.exists() and any(one.stat().st_size > 500 for one in out.glob("*/native/s0.jsonl"))
    )
    time.sleep(0.3)
    os.kill(recorder, signal.SIGKILL)
    editor.say(SAY * 500)
    editor.until(lambda: bytes(editor.got) == SAY * 510)
    assert editor.leave() == 0
    assert bytes(editor.got) == SAY * 510
    assert editor.said == f"callsheet: the recorder is gone (SIGKILL); {GOES_ON}\n"
    # What it had written is a bundle that can be finished.
    bundle = bundle_in(out, finished=False)
    assert is_unfinished(bundle)
    assert recover(bundle) is not None
    assert list(check_bundle(Bundle(bundle))) == []
    assert way(log_of(bundle), "client_to_agent") == [json.loads(SAY)] * 10


def test_a_recorder_that_hangs_breaks_nothing(tmp_path: Path) -> None:
    editor = Editor(tmp_path / "out", python(ECHO))
    editor.say(SAY)
    recorder = editor.recorder()
    editor.until(lambda: any((tmp_path / "out").glob("*/streams/*.jsonl")))
    os.kill(recorder, signal.SIGSTOP)
    editor.say(SAY * 5_000)
    editor.until(lambda: bytes(editor.got) == SAY * 5_001)
    began = time.monotonic()
    assert editor.leave() == 0
    assert time.monotonic() - began < 60
    os.kill(recorder, signal.SIGCONT)
    # It goes on by itself, and finishes what it was told.
    editor.until(lambda: not Path(f"/proc/{recorder}").exists())
    assert 300 < len(way(log_of(bundle_in(tmp_path / "out")), "client_to_agent")) <= 5_001


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    editor = Editor(tmp_path / "file" / "out", python(ECHO))
    for _ in range(40):
        editor.say(SAY)
        time.sleep(0.05)
    assert editor.leave() == 0
    assert bytes(editor.got) == SAY * 40
    assert editor.said == f"callsheet: {tmp_path}/file/out: Not a directory; {GOES_ON}\n"


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Told by a limit on the size of files, which only the recorder meets."""
    most = 300_000
    editor = Editor(
        tmp_path / "out",
        python(ECHO),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    for _ in range(60):
        editor.say(SAY * 100)
        time.sleep(0.02)
    assert editor.leave() == 0
    assert bytes(editor.got) == SAY * 6_000
    bundle = bundle_in(tmp_path / "out", finished=False)
    assert editor.said == f"callsheet: {bundle}: File too large; {GOES_ON}\n"
    assert recover(bundle) is not None
    kept = way(log_of(bundle), "client_to_agent")
    assert 100 < len(kept) < 6_000
    assert kept == [json.loads(SAY)] * len(kept)


@pytest.mark.parametrize("seed", range(4))
def test_a_recorder_that_is_killed_at_any_moment_breaks_nothing(seed: int, tmp_path: Path) -> None:
    """From before it has started up to the middle of a flood, both ways at once."""
    chance = random.Random(seed)
    editor = Editor(tmp_path / "out", python(ECHO))
    recorder = editor.recorder()
    said = b"".join(chance.randbytes(chance.randrange(200_000)) for _ in range(60))
    at = chance.randrange(len(said)) if seed else 0
    editor.say(said[:at])
    os.kill(recorder, signal.SIGKILL)
    editor.say(said[at:])
    editor.until(lambda: len(editor.got) == len(said))
    assert editor.leave() == 0
    assert bytes(editor.got) == said
    assert editor.said.endswith(f"{GOES_ON}\n")


def test_a_full_file_system(tmp_path: Path) -> None:
    out = tmp_path / "small"
    out.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", out], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        editor = Editor(out, python(ECHO))
        for _ in range(60):
            editor.say(SAY * 100)
            time.sleep(0.02)
        assert editor.leave() == 0
        assert bytes(editor.got) == SAY * 6_000
        assert "No space left on device" in editor.said
        assert editor.said.endswith(f"{GOES_ON}\n")
    finally:
        subprocess.run(["umount", "-l", out], check=True)


LATER = """
import os, sys, time
{first}
got = 0
while {reads} and (chunk := os.read(0, 65536)): got += len(chunk)
for _ in range({writes}): os.write(1, b"x" * 1000)
sys.stderr.write(f"[{{got}}]")
"""


@pytest.mark.parametrize(
    ("first", "reads", "writes"),
    [
        ("pass", True, 2_000),  # the editor closes its end first, and the agent still has much to say
        ("os.close(1)", True, 0),  # the agent says no more, and still listens
        ("os.close(0)", False, 2_000),  # the agent listens no more, and still talks
        ("os.close(0); os.close(1)", False, 0),
    ],
)
def test_ends_that_are_closed_in_any_order(first: str, reads: bool, writes: int, tmp_path: Path) -> None:
    editor = Editor(tmp_path / "out", python(LATER.format(first=first, reads=reads, writes=writes)))
    said = 0
    try:
        for _ in range(200):
            editor.say(SAY)
            said += len(SAY)
    except BrokenPipeError:
        assert not reads
    assert editor.leave() == 0
    assert bytes(editor.got) == b"x" * 1000 * writes
    assert f"[{said if reads else 0}]".encode() in editor.errors


@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1), (2,), (0, 1, 2)])
def test_streams_that_were_never_open(closed: tuple[int, ...], tmp_path: Path) -> None:
    """What the tap opens for itself must not take their numbers: the agent would talk to itself."""
    note = tmp_path / "note"
    code = f"""
import os, sys
os.write(1, b"MARK")
got = b""
while chunk := os.read(0, 65536): got += chunk
open({str(note)!r}, "wb").write(b"got " + got)
"""

    def close() -> None:
        for end in closed:
            os.close(end)

    run = subprocess.run(
        tap(tmp_path / "out", python(code)),
        input=b"hi",
        capture_output=True,
        preexec_fn=close,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0
    assert run.stdout == (b"" if 1 in closed else b"MARK")
    assert note.read_bytes() == (b"got " if 0 in closed else b"got hi")


# -- what is recorded -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("script", ["turn", "everything", "bad"])
def test_a_tapped_conversation_is_recorded_as_a_live_one(script: str, version: int, tmp_path: Path) -> None:
    app, out = tmp_path / "app", tmp_path / "out"
    app.mkdir()
    play = run_toy(version, script, app, before=tap(out, []))
    assert play.of(Ended)[0].result == Completed("end_turn")
    bundle = bundle_in(out)
    assert list(check_bundle(Bundle(bundle))) == []
    lines = [line for line in log_of(bundle) if line["dir"] != "recorder"]
    ours = [json.loads(line) for line in play.lines]
    for name in ("client_to_agent", "agent_to_client"):
        passed = [one for one in way(ours, name) if one != ""]
        assert way(lines, name)[: len(passed)] == passed  # what came after the turn, the client did not read
    if script == "bad":
        return  # which of two requests of one id an answer is for, its order alone would tell
    log = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    ours_again, passed_by = facts(sheet_of(play.data)), facts(sheet_of(log))
    assert [one for one in passed_by if one.get("terminalId") != "term2"] == ours_again
    launch = log_of(bundle)[0]["launch"]
    assert launch["program"] == Path(sys.executable).name
    # Nobody knows who answered: it was only seen to pass by.
    opened = Bundle(bundle)
    records = [
        msgspec.json.decode(line) for line in opened.read(opened.manifest.streams[0].file).splitlines()
    ]
    assert not [one for one in records if one.get("decidedBy") or one.get("answeredBy")]


def test_a_secret_that_passes_by_is_not_kept(tmp_path: Path) -> None:
    from msgspec import Raw

    from callsheet.seam import FormFilled

    secret = "correct-horse-battery"
    form = Raw(json.dumps({"user": "me", "token": secret}).encode())
    run_toy(2, "secret", tmp_path, answers=lambda _: FormFilled(form), before=tap(tmp_path / "out", []))
    bundle = bundle_in(tmp_path / "out")
    assert "accept" in json.dumps(log_of(bundle))
    for path in bundle.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            data = b"".join(inflate([data])) if path.suffix == ".zst" else data
            assert secret.encode() not in data, path
