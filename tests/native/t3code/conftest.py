"""State databases of T3 Code's own schema, made up row by row, and readings of them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.harness.t3code import T3CODE
from callsheet.pairing import Pairing, Tally, tally
from callsheet.records import decode
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, Reading, read_session

SCHEMA = Path(__file__).parent / "schema"
THREAD = "th-1"
NOW = "2026-10-26T18:00:00.000Z"
SECRET = "zz-FAKE-token-000111"


class State:
    """A state database."""

    def __init__(self, path: Path, generation: int) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript((SCHEMA / f"v{generation}.sql").read_text())
        self._number = 0

    def insert(self, table: str, row: dict[str, Any]) -> None:
        """A row; columns that must be and are not given hold something empty."""
        columns = self._connection.execute(f'PRAGMA table_info("{table}")').fetchall()
        whole = dict(row)
        for _, name, kind, needed, default, key in columns:
            if name not in whole and needed and default is None and not (key and kind == "INTEGER"):
                whole[name] = NOW if name.endswith("_at") else 0 if kind == "INTEGER" else ""
        names = ", ".join(f'"{name}"' for name in whole)
        marks = ", ".join("?" * len(whole))
        self._connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', list(whole.values()))

    def sql(self, *statements: str) -> State:
        for statement in statements:
            self._connection.execute(statement)
        return self

    def close(self) -> Path:
        self._connection.close()
        return self.path

    # -- V1 -----------------------------------------------------------------------------------------------------

    def activity(self, kind: str, payload: Any, **columns: Any) -> str:
        self._number += 1
        name = f"act-{self._number}"
        row = {"activity_id": name, "thread_id": THREAD, "turn_id": "turn-1", "kind": kind}
        row |= {"payload_json": payload if isinstance(payload, str) else json.dumps(payload)}
        row["created_at"] = f"2026-10-26T18:00:{self._number:02}.000Z"
        self.insert("projection_thread_activities", {**row, **columns})
        return name

    def event(self, kind: str, payload: dict[str, Any], actor: str = "client") -> None:
        self._number += 1
        row = {"event_id": f"ev-{self._number}", "stream_id": THREAD, "event_type": kind, "actor_kind": actor}
        row |= {"occurred_at": NOW, "payload_json": json.dumps(payload), "aggregate_kind": "thread"}
        self.insert("orchestration_events", row)

    # -- V2 -----------------------------------------------------------------------------------------------------

    def thread(self, thread: str = THREAD, parent: str | None = None, **payload: Any) -> None:
        value = {
            "id": thread,
            "title": "T",
            "worktreePath": "/work/app",
            "lineage": {"parentThreadId": parent},
        }
        row = {"thread_id": thread, "title": "T", "payload_json": json.dumps({**value, **payload})}
        self.insert("orchestration_v2_projection_threads", row)

    def item(self, kind: str, status: str | None = "completed", thread: str = THREAD, **payload: Any) -> str:
        self._number += 1
        name = payload.pop("id", f"item-{self._number}")
        native = payload.pop("native", f"call_{self._number}")
        ref = {"driver": payload.pop("driver", "codex"), "nativeId": native}
        ref["strength"] = payload.pop("strength", "strong")
        value = {"id": name, "threadId": thread, "runId": "run-1", "type": kind, "status": status}
        value |= {"nativeItemRef": ref, "ordinal": self._number, "startedAt": NOW, "completedAt": NOW}
        row = {"turn_item_id": name, "thread_id": thread, "ordinal": self._number, "type": kind}
        row |= {"status": status or "odd", "payload_json": json.dumps({**value, **payload})}
        self.insert("orchestration_v2_projection_turn_items", row)
        return str(name)

    def request(self, request: str, **payload: Any) -> None:
        value = {"id": request, "kind": "command", "status": "resolved", "createdAt": NOW, "resolvedAt": NOW}
        row = {"runtime_request_id": request, "thread_id": THREAD, "kind": "command", "status": "resolved"}
        row["payload_json"] = json.dumps({**value, **payload})
        self.insert("orchestration_v2_projection_runtime_requests", row)

    def response(self, request: str, **payload: Any) -> None:
        self._number += 1
        value = {"type": "runtime-request.respond", "requestId": request, **payload}
        row = {"effect_id": f"effect-{self._number}", "thread_id": THREAD, "status": "succeeded"}
        row |= {"effect_type": "runtime-request.respond", "payload_json": json.dumps(value)}
        self.insert("orchestration_v2_effect_outbox", row)


class Sheet:
    """What became of a thread: its records, decoded, and how they pair."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.streams = {
            stream.id: [msgspec.json.decode(line) for line in stream.lines] for stream in reading.streams
        }
        self.records: list[dict[str, Any]] = self.streams[reading.streams[0].id]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["type"] == kind]

    @property
    def codes(self) -> Counter[str]:
        return Counter(told.code for told in self.reading.diagnostics)

    def tally(self) -> Tally:
        pairing = Pairing()
        for line in self.reading.streams[0].lines:
            pairing.add(decode(line))
        return tally(pairing)

    def everything(self) -> bytes:
        lines = [line for stream in self.reading.streams for line in stream.lines]
        told = [told.message.encode() for told in self.reading.diagnostics]
        return b"\n".join([*lines, *self.reading.blobs.values(), *told])


def sheets(path: Path, **options: Any) -> list[Sheet]:
    """Every thread of a database, held to the kit's promises."""
    files = Files({str(path): path.read_bytes()})
    found = []
    for session in T3CODE.sessions(str(path), files):
        reading = read_session(T3CODE, session, files, **options)
        assert check_reading(reading) == []
        found.append(Sheet(reading))
    return found


def read(state: State, **options: Any) -> Sheet:
    """The one thread of a database."""
    (sheet,) = sheets(state.close(), **options)
    return sheet


def nowhere(data: bytes, secret: str) -> None:
    """Asserts that a secret stands in no form in what was written; a short one as no text of its own."""
    if len(secret) > 4:
        for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
            assert form.encode() not in data
    else:
        assert f'"{secret}"'.encode() not in data


@pytest.fixture
def old(tmp_path: Path) -> State:
    return State(tmp_path / "userdata" / "state.sqlite", 1)


@pytest.fixture
def new(tmp_path: Path) -> State:
    state = State(tmp_path / "userdata-v2" / "state.sqlite", 2)
    state.thread()
    return state
