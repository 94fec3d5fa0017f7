"""Frames of an app server in the making, and what became of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.native.codex.conftest import Sheet

from callsheet.audit import audit_bundle
from callsheet.harness.codex import CODEX_APP_SERVER
from callsheet.library.importing import import_session
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, read_session

THREAD = "01a20000-0000-7000-8000-000000000001"
TURN = "01a20000-0000-7000-8000-0000000000aa"
CWD = "/home/dev/acme-app"
PATH = "/logs/frames.jsonl"


class Wire:
    """A frame log, line by line, with a thread and a turn that has begun."""

    def __init__(self, *, raw: bool = False, version: str = "0.163.0") -> None:
        self.lines: list[bytes] = []
        self._ids = 0
        self.send(1, "initialize", clientInfo={"name": "t", "version": "0"}, capabilities={})
        self.reply(1, userAgent=f"t/{version}", from_server=True)
        self.send(2, "thread/start", cwd=CWD, **({"experimentalRawEvents": True} if raw else {}))
        thread = {"id": THREAD, "cwd": CWD, "cliVersion": version}
        self.reply(2, thread=thread, model="demo", from_server=True)
        self.turn("started", "inProgress")

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def line(self, way: str, frame: Any) -> None:
        second = len(self.lines)
        ts = f"2026-11-30T10:{second // 60:02}:{second % 60:02}.000Z"
        self.lines.append(json.dumps({"dir": way, "ts": ts, "frame": frame}).encode())

    def send(self, number: Any, method: str, /, **params: Any) -> None:
        self.line("client", {"id": number, "method": method, "params": params})

    def reply(self, number: Any, /, *, from_server: bool = False, **result: Any) -> None:
        self.line("server" if from_server else "client", {"id": number, "result": result})

    def fail(self, number: Any) -> None:
        self.line("client", {"id": number, "error": {"code": -32603, "message": "no"}})

    def tell(self, method: str, /, *, thread: str = THREAD, turn: str = TURN, **params: Any) -> None:
        named = {"threadId": thread, "turnId": turn, **params}
        self.line("server", {"method": method, "params": named, "emittedAtMs": 1})

    def ask(self, number: Any, method: str, /, **params: Any) -> None:
        self.line(
            "server",
            {"id": number, "method": method, "params": {"threadId": THREAD, "turnId": TURN, **params}},
        )

    def turn(self, word: str, status: str, *, turn: str = TURN, **members: Any) -> None:
        told = {"id": turn, "status": status, "items": [], "error": None, **members}
        self.line("server", {"method": f"turn/{word}", "params": {"threadId": THREAD, "turn": told}})

    def item(
        self, word: str, kind: str, name: str, /, *, turn: str = TURN, times: Any = None, **members: Any
    ) -> None:
        self.tell(f"item/{word}", turn=turn, item={"type": kind, "id": name, **members}, **(times or {}))

    def command(
        self, word: str, name: str, /, command: str = "ls", *, turn: str = TURN, **members: Any
    ) -> None:
        running = {"status": "inProgress", "aggregatedOutput": None, "exitCode": None, "durationMs": None}
        done = {"status": "completed", "aggregatedOutput": "a\n", "exitCode": 0, "durationMs": 3}
        told = {"command": command, "cwd": CWD, "source": "agent", "processId": "7"}
        state = running if word == "started" else done
        times = {"startedAtMs": 1796076238000} if word == "started" else {"completedAtMs": 1796076239000}
        self.item(word, "commandExecution", name, turn=turn, times=times, **{**told, **state, **members})

    def raw(self, kind: str, /, *, turn: str = TURN, **members: Any) -> None:
        self.tell("rawResponseItem/completed", turn=turn, item={"type": kind, **members})

    def call(self, name: str, tool: str = "exec_command", **arguments: Any) -> None:
        self.raw("function_call", call_id=name, name=tool, arguments=json.dumps(arguments), id=f"fc_{name}")

    def output(self, name: str, words: Any) -> None:
        self.raw("function_call_output", call_id=name, output=words)

    def response(self, number: int) -> None:
        usage = {"inputTokens": 1, "outputTokens": 2}
        self.tell("rawResponse/completed", responseId=f"resp_{number}", usage=usage)


def sheet_of(data: bytes, tmp_path: Path, chunk: int = 1 << 18) -> Sheet:
    """Reads a log from bytes; holds the reading to the kit's promises, to the rules and to the audit."""
    tmp_path = Path(tempfile.mkdtemp(dir=tmp_path))
    files = Files({PATH: data})
    assert CODEX_APP_SERVER.recognises("frames.jsonl", files.head(PATH))
    (session,) = CODEX_APP_SERVER.sessions(PATH, files)
    reading = read_session(CODEX_APP_SERVER, session, files, chunk=chunk)
    assert check_reading(reading) == []
    path = tmp_path / "frames.jsonl"
    path.write_bytes(data)
    files = Files({str(path): data})
    (on_disk,) = CODEX_APP_SERVER.sessions(str(path), files)
    bundle = Bundle(import_session(CODEX_APP_SERVER, on_disk, tmp_path / "out").bundle)
    assert list(check_bundle(bundle)) == []
    assert list(audit_bundle(bundle)) == []
    return Sheet(reading)
