"""Made-up threads and logs, and readings of real ones.

``made`` is an empty paginated rollout to add lines to; ``read`` runs an adapter over files in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.harness.codex import CODEX, CODEX_EXEC
from callsheet.pairing import Pairing, Tally, tally
from callsheet.records import decode
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, Reading, read_session

THREAD = "01a20000-0000-7000-8000-00000000000"
FOLDER = "/h/.codex/sessions/2026/11/30"
ROOT = Path(__file__).parents[3]


def thread(number: int) -> str:
    """The id of a made-up thread."""
    return f"{THREAD}{number}"


def name_of(number: int, ending: str = ".jsonl") -> str:
    """The path of a made-up thread's rollout."""
    return f"{FOLDER}/rollout-2026-11-30T10-00-0{number}-{thread(number)}{ending}"


class Made:
    """A rollout in the making, a second a line."""

    def __init__(self, number: int = 1, *, version: str = "0.163.0", paginated: bool = True) -> None:
        self.number = number
        self.thread = thread(number)
        self.version = version
        self.paginated = paginated
        self.lines: list[bytes] = []
        self.ordinal = 0

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def raw(self, line: bytes) -> None:
        self.lines.append(line)

    def add(self, kind: str, /, **payload: Any) -> dict[str, Any]:
        second = self.ordinal % 3600
        line: dict[str, Any] = {"timestamp": f"2026-11-30T10:{second // 60:02}:{second % 60:02}.000Z"}
        if self.paginated:
            line["ordinal"] = self.ordinal
        line |= {"type": kind, "payload": payload}
        self.ordinal += 1
        self.raw(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        return line

    def meta(self, **members: Any) -> None:
        head = {"id": self.thread, "timestamp": "2026-11-30T10:00:00.000Z", "cwd": "/home/dev/acme-app"}
        self.add("session_meta", **head, cli_version=self.version, **members)

    def item(self, **members: Any) -> None:
        self.add("response_item", **members)

    def said(self, text: str, role: str = "assistant") -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self.item(type="message", role=role, content=[{"type": kind, "text": text}])

    def call(self, call_id: str, name: str = "exec_command", arguments: Any = None, **members: Any) -> None:
        asked = {"cmd": f"echo {call_id}"} if arguments is None else arguments
        words = asked if isinstance(asked, str) else json.dumps(asked)
        self.item(type="function_call", call_id=call_id, name=name, arguments=words, **members)

    def output(self, call_id: str, output: Any = "done", **members: Any) -> None:
        self.item(type="function_call_output", call_id=call_id, output=output, **members)

    def ran(self, call_id: str, kind: str = "CommandExecution", **members: Any) -> None:
        """What tells how a call was executed."""
        self.add(
            "event_msg",
            type="item_completed",
            thread_id=self.thread,
            started_at_ms=1_796_000_000_000,
            completed_at_ms=1_796_000_001_000,
            item={"type": kind, "id": call_id, **members},
        )

    def replied(self) -> None:
        """A response of the model ended: whatever came before was sent."""
        counts = {"input_tokens": 10, "output_tokens": 2}
        self.add("token_usage_record", response_id="resp", usage=counts, thread_token_usage=counts)


class Sheet:
    """What became of a session: its records, decoded."""

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

    def last(self, kind: str, stream: str | None = None) -> list[dict[str, Any]]:
        """Records of a type that no other supersedes."""
        old = {record.get("supersedes") for record in (self.streams[stream] if stream else self.records)}
        return [record for record in self.of(kind, stream) if record["id"] not in old]

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.last(kind)
        return found

    def tally(self, stream: str | None = None) -> Tally:
        pairing = Pairing()
        for written in self.reading.streams:
            if written.id == (stream or self.main):
                for line in written.lines:
                    pairing.add(decode(line))
        return tally(pairing)

    @property
    def codes(self) -> Counter[str]:
        return Counter(told.code for told in self.reading.diagnostics)


Read = Callable[..., Sheet]


def text_of(result: dict[str, Any]) -> str:
    """The text of a result: what reached the model, else the stored output."""
    if "content" in result:
        return "".join(part.get("text", "") for part in result["content"])
    output = result.get("raw", {}).get("output", "")
    return output if isinstance(output, str) else "".join(part.get("text", "") for part in output)


@pytest.fixture
def made() -> Made:
    found = Made()
    found.meta()
    return found


@pytest.fixture
def read() -> Read:
    """Reads a made-up thread (or log), given as what was made, as bytes, or as files by path."""

    def run(given: Made | bytes | dict[str, bytes], *, check: bool = True, log: bool = False) -> Sheet:
        adapter = CODEX_EXEC if log else CODEX
        if isinstance(given, Made):
            given = given.data
        files = Files({name_of(1): given} if isinstance(given, bytes) else given)
        session = next(iter(adapter.sessions(next(iter(files.content)), files)))
        reading = read_session(adapter, session, files)
        if check:
            assert check_reading(reading) == []
        return Sheet(reading)

    return run


def captures(shared: Path) -> Iterator[Path]:
    """The folder of every capture of Codex."""
    yield from sorted(path for path in (shared / "captures" / "codex").glob("*/*") if path.is_dir())


def readings(folder: Path) -> Iterator[Sheet]:
    """Every thread and every log in a folder."""
    files = Files.below(folder)
    for adapter in (CODEX, CODEX_EXEC):
        for session in adapter.sessions(str(folder), files):
            yield Sheet(read_session(adapter, session, files))
