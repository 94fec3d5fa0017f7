"""Made-up sessions, and readings of real ones.

``made`` is an empty session file to add lines to; ``read`` runs the adapter over bytes, without a disk.
``capture`` is one run of a real agent at a time (one test per version), from the folder given as --shared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.pairing import Pairing, Tally, tally
from callsheet.records import ToolCall, ToolResult, decode
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, Reading, read_session

SESSION = "5e551011-0000-4000-8000-000000000001"
FOLDER = "/p/-home-dev-acme-app"


class Made:
    """A session file in the making; records follow each other by ``parentUuid``, a second apart."""

    def __init__(self, version: str = "2.1.200", session: str = SESSION) -> None:
        self.version = version
        self.session = session
        self.lines: list[bytes] = []
        self.calls: dict[str, str] = {}
        self._last: str | None = None

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def record(self, kind: str, **members: Any) -> dict[str, Any]:
        number = len(self.lines) + 1
        record = {
            "parentUuid": self._last,
            "isSidechain": False,
            "cwd": "/home/dev/acme-app",
            "sessionId": self.session,
            "version": self.version,
            "type": kind,
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            "timestamp": f"2026-11-30T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
            **members,
        }
        self._last = record["uuid"]
        return record

    def add(self, kind: str, **members: Any) -> dict[str, Any]:
        record = self.record(kind, **members)
        self.lines.append(json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        return record

    def raw(self, line: bytes) -> None:
        self.lines.append(line)

    def prompt(self, content: Any = "Go on.", **members: Any) -> dict[str, Any]:
        return self.add("user", message={"role": "user", "content": content}, **members)

    def said(self, *blocks: dict[str, Any] | str, message: str = "msg_1", **members: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        body = {"id": message, "type": "message", "role": "assistant", "model": "m", "content": content}
        return self.add("assistant", message=body, **members)

    def call(self, call_id: str, name: str = "Bash", input: Any = None, **members: Any) -> dict[str, Any]:
        asked = {"command": f"echo {call_id}"} if input is None else input
        record = self.said({"type": "tool_use", "id": call_id, "name": name, "input": asked}, **members)
        self.calls[call_id] = record["uuid"]
        return record

    def result(
        self, call_id: str, content: Any = "done", *, error: bool = False, **members: Any
    ) -> dict[str, Any]:
        """A result, linked to the last call of this id unless ``sourceToolAssistantUUID`` says otherwise."""
        block = {"tool_use_id": call_id, "type": "tool_result", "content": content, "is_error": error}
        members.setdefault("sourceToolAssistantUUID", self.calls.get(call_id))
        return self.add("user", message={"role": "user", "content": [block]}, **members)


class Sheet:
    """What became of a session: its records, decoded, and how they pair."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.streams = {
            stream.id: [msgspec.json.decode(line) for line in stream.lines] for stream in reading.streams
        }
        self.main = reading.streams[0].id
        self.records: list[dict[str, Any]] = self.streams[self.main]

    def of(self, kind: str, stream: str | None = None) -> list[dict[str, Any]]:
        records = self.streams[stream] if stream else self.records
        return [record for record in records if record["type"] == kind]

    def last(self, kind: str) -> list[dict[str, Any]]:
        """Records of a type that no other supersedes."""
        old = {record.get("supersedes") for record in self.records}
        return [record for record in self.of(kind) if record["id"] not in old]

    @property
    def codes(self) -> Counter[str]:
        return Counter(told.code for told in self.reading.diagnostics)

    def pairing(self, stream: str | None = None) -> Pairing:
        pairing = Pairing()
        for written in self.reading.streams:
            if written.id == (stream or self.main):
                for line in written.lines:
                    pairing.add(decode(line))
        return pairing

    def tally(self, stream: str | None = None) -> Tally:
        return tally(self.pairing(stream))

    def pairs(self) -> list[tuple[str, str | None]]:
        """Each call's command (or name) with the text of the result that pairing gives it."""
        pairing = self.pairing()
        found = []
        for number in pairing.numbers(ToolCall):
            call = self.records[number]
            at = pairing.result(call["callId"])
            said = str(call.get("input", {}).get("command") or call.get("name"))
            found.append((said, None if at is None else text_of(self.records[at])))
        return found

    def results(self) -> list[dict[str, Any]]:
        pairing = self.pairing()
        return [self.records[number] for number in pairing.numbers(ToolResult)]


def text_of(result: dict[str, Any]) -> str | None:
    """The text of a result: what reached the model, else what was stored (decision 7)."""
    if "content" in result:
        return "".join(part.get("text", "") for part in result["content"])
    raw = result.get("raw")
    content = raw.get("block", {}).get("content") if isinstance(raw, dict) else raw
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


Read = Callable[..., Sheet]


@pytest.fixture
def made() -> Made:
    return Made()


@pytest.fixture
def read() -> Read:
    """Reads a session from bytes (its own file) and other files of its folder; holds it to the kit's promises."""

    def reading(
        data: bytes | Made, others: Mapping[str, bytes] | None = None, *, chunk: int = 1 << 18
    ) -> Sheet:
        name = f"{SESSION}.jsonl"
        files = {f"{FOLDER}/{at}": content for at, content in (others or {}).items()}
        files[f"{FOLDER}/{name}"] = data.data if isinstance(data, Made) else data
        held = Files(files)
        (session,) = CLAUDE_CODE.sessions(f"{FOLDER}/{name}", held)
        found = read_session(CLAUDE_CODE, session, held, chunk=chunk)
        assert check_reading(found) == []
        return Sheet(found)

    return reading


class Run:
    """One run of a real agent: what it stored, and what the model got."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = "/".join(folder.parts[-3:])
        self.version = folder.parts[-3]

    def sheets(self) -> Iterator[Sheet]:
        files = Files.below(self.folder / "projects")
        for session in CLAUDE_CODE.sessions(str(self.folder / "projects"), files):
            yield Sheet(read_session(CLAUDE_CODE, session, files))

    def requests(self) -> Iterator[dict[str, Any]]:
        for line in (self.folder / "requests.jsonl").read_bytes().splitlines():
            yield json.loads(line)

    def native(self) -> Iterator[dict[str, Any]]:
        """Every native record of every session file."""
        for path in sorted((self.folder / "projects").rglob("*.jsonl")):
            for line in path.read_bytes().split(b"\n"):
                if line.strip():
                    yield json.loads(line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "version" not in metafunc.fixturenames or "runs" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("--shared")
    folder = Path(given) / "captures" / "claude-code" if given else None
    versions = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder else []
    metafunc.parametrize("version", versions or ["captured"])


@pytest.fixture
def runs(shared: Path, version: str) -> list[Run]:
    """Every captured run of one version."""
    found = sorted((shared / "captures" / "claude-code" / version).glob("*/*/projects"))
    assert found, f"no captures of {version}"
    return [Run(path.parent) for path in found]
