"""Frame logs in the making, and what became of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from callsheet.harness.acp import ACP
from callsheet.pairing import Pairing, Tally, tally
from callsheet.records import decode
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, Reading, read_session

SESSION = "sess_1"
PATH = "/p/frames.jsonl"


class Log:
    """A frame log, line by line."""

    def __init__(self, version: int | None = None, ts: bool = True) -> None:
        self.lines: list[bytes] = []
        self._ts = ts
        self._prompts = 0
        if version is not None:
            self.client(id=0, method="initialize", params={"protocolVersion": version})
            info = {"name": "toy", "version": "0"}
            answer = {"protocolVersion": version, "agentInfo" if version == 1 else "info": info}
            self.agent(id=0, result=answer)
            self.client(id=1, method="session/new", params={"cwd": "/home/dev/acme-app", "mcpServers": []})
            self.agent(id=1, result={"sessionId": SESSION})

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def line(self, **members: Any) -> None:
        self.lines.append(json.dumps(members).encode())

    def frame(self, way: str, frame: Any) -> None:
        number = len(self.lines)
        time = {"ts": f"2026-11-30T10:00:{number % 60:02}.000Z"} if self._ts else {}
        self.line(dir=way, frame=frame, **time)

    def agent(self, **members: Any) -> None:
        self.frame("agent_to_client", {"jsonrpc": "2.0", **members})

    def client(self, **members: Any) -> None:
        self.frame("client_to_agent", {"jsonrpc": "2.0", **members})

    def update(self, name: str, /, in_session: Any = SESSION, **members: Any) -> None:
        params = {"sessionId": in_session, "update": {"sessionUpdate": name, **members}}
        self.agent(method="session/update", params=params)

    def prompt(self, text: str = "Go.", id: int = 2) -> None:
        prompt = [{"type": "text", "text": text}]
        self.client(id=id, method="session/prompt", params={"sessionId": SESSION, "prompt": prompt})

    def ask(self, id: Any, **params: Any) -> None:
        self.agent(id=id, method="session/request_permission", params={"sessionId": SESSION, **params})

    def answer(self, id: Any, **outcome: Any) -> None:
        self.client(id=id, result={"outcome": outcome})


OPTIONS = [
    {"optionId": "ok", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Sheet:
    """What became of a log."""

    def __init__(self, reading: Reading, name: str) -> None:
        self.reading = reading
        self.streams = {one.id: [msgspec.json.decode(line) for line in one.lines] for one in reading.streams}
        self.main = name if name in self.streams else reading.streams[0].id
        self.records: list[dict[str, Any]] = self.streams[self.main]

    def of(self, kind: str, stream: str | None = None) -> list[dict[str, Any]]:
        return [one for one in self.streams[stream or self.main] if one["type"] == kind]

    def last(self, kind: str, stream: str | None = None) -> list[dict[str, Any]]:
        records = self.streams[stream or self.main]
        old = {one.get("supersedes") for one in records}
        return [one for one in records if one["type"] == kind and one["id"] not in old]

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.last(kind)
        return found

    def texts(self, author: str) -> list[str]:
        return [
            "".join(str(part.get("text", "")) for part in one["content"])
            for one in self.last("message")
            if one["author"] == author
        ]

    @property
    def unmapped(self) -> Counter[str]:
        return Counter(str(one.get("nativeType")) for one in self.of("unmapped"))

    def tally(self) -> Tally:
        pairing = Pairing()
        for stream in self.reading.streams:
            for line in stream.lines if stream.id == self.main else ():
                pairing.add(decode(line))
        return tally(pairing)


def sheet_of(data: bytes, path: str = PATH, chunk: int = 1 << 18) -> Sheet:
    """Reads a log from bytes and holds the reading to the kit's promises."""
    files = Files({path: data})
    (session,) = ACP.sessions(path, files)
    reading = read_session(ACP, session, files, chunk=chunk)
    assert check_reading(reading) == []
    return Sheet(reading, session.native_id)


Read = Callable[[Log], Sheet]


@pytest.fixture
def read() -> Read:
    return lambda log: sheet_of(log.data)
