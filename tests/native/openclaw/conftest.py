"""Databases and transcripts to import: built with the owner's own schema, from captured rows or made up.

``Store`` builds an agent's database and the shared one from entries and rows; ``Made`` makes up entries. ``read`` runs
the adapter and holds the reading to the kit's promises.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from callsheet.harness.openclaw import OPENCLAW
from callsheet.harness.openclaw.trajectory import SCHEMA as SCHEMA_NAME
from callsheet.harness.openclaw.trajectory import TABLE
from callsheet.pairing import Pairing, Tally, tally
from callsheet.records import decode
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, Reading, read_session

SCHEMA = Path(__file__).parent / "schema"
SESSION = "0c1a0000-0000-4000-8000-000000000001"
KEY = "agent:main:one"
APP = "2026.9.6"
BIG = 1024
"""Bytes from which OpenClaw compresses an entry."""


def octets(value: Any) -> int | None:
    """``octet_length``, which the CHECKs ask for and older SQLite does not have."""
    return None if value is None else len(value.encode() if isinstance(value, str) else value)


def database(path: Path, schema: str) -> sqlite3.Connection:
    """A new database of the owner's schema, open for writing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.create_function("octet_length", 1, octets, deterministic=True)
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript((SCHEMA / schema).read_text())
    return connection


def insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" * len(row))
    connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', list(row.values()))


class Store:
    """An OpenClaw state folder: ``agents/main/agent/openclaw-agent.sqlite`` and ``state/openclaw.sqlite``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.agent = root / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
        self.state = root / "state" / "openclaw.sqlite"
        self._agent = database(self.agent, "agent-23.sql")
        self._state = database(self.state, "state-18.sql")
        for connection, role, version in ((self._agent, "agent", 23), (self._state, "global", 18)):
            row = {"meta_key": "primary", "role": role, "schema_version": version, "app_version": APP}
            insert(connection, "schema_meta", {**row, "created_at": 1, "updated_at": 1})

    def session(
        self, entries: Iterable[Any], session: str = SESSION, key: str = KEY, *, made: int = 1, **window: Any
    ) -> Store:
        """A session with its entries (objects, or JSON texts as they are to stand)."""
        known = self._agent.execute("SELECT 1 FROM session_nodes WHERE session_key = ?", (key,)).fetchone()
        if known:
            self._agent.execute(
                "UPDATE session_nodes SET current_session_id = ? WHERE session_key = ?", (session, key)
            )
        else:
            node = {"session_key": key, "current_session_id": session, "entry_json": "{}", "updated_at": made}
            insert(self._agent, "session_nodes", node)
        row = {"session_id": session, "session_key": key, "created_at": made, "updated_at": made, **window}
        insert(self._agent, "session_windows", row)
        for number, entry in enumerate(entries):
            self.entry(session, number, entry)
        return self

    def entry(self, session: str, number: int, entry: Any) -> None:
        text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
        row: dict[str, Any] = {"session_id": session, "seq": number, "created_at": 1}
        if len(text.encode("utf-8", "surrogatepass")) >= BIG:
            data = text.encode()
            row |= {"event_zstd": zstandard.compress(data), "event_utf8_bytes": len(data)}
            row["navigation_json"] = navigation(entry if isinstance(entry, dict) else {})
        else:
            row["event_json"] = text
        insert(self._agent, "transcript_events", row)

    def trace(self, events: Iterable[Any], session: str = SESSION) -> Store:
        """The session's trajectory: events, or JSON texts as they are to stand."""
        for number, event in enumerate(events):
            told = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
            row = {"session_id": session, "seq": number, "event_json": told, "created_at": 1}
            insert(self._agent, TABLE, row)
        return self

    def rows(self, rows: dict[str, list[dict[str, Any]]]) -> Store:
        """Rows of the shared database."""
        for table, listed in rows.items():
            for row in listed:
                insert(self._state, table, row)
        return self

    def sql(self, *statements: str, state: bool = False) -> Store:
        """Changes made by hand."""
        for statement in statements:
            (self._state if state else self._agent).execute(statement)
        return self

    def close(self) -> Path:
        """Closes both; returns the agent's database."""
        self._agent.close()
        self._state.close()
        return self.agent


def navigation(entry: dict[str, Any]) -> str:
    """What the CHECK on a compressed row asks for."""
    kept = {name: entry[name] for name in ("type", "id", "parentId", "timestamp") if name in entry}
    told = {"kind": "canonical", "hasParentId": "parentId" in entry, "entry": kept}
    empty = {"type": entry.get("type", "message")}
    return json.dumps(
        {
            "version": 1,
            "report": told,
            "navigation": empty,
            "reset": empty,
            "model": empty,
            "modelBytes": 1,
            "modelWithoutCheckpointBytes": 1,
            "withoutCustomDataBytes": 1,
        }
    )


class Traced:
    """A trajectory in the making; its events are half a second apart."""

    def __init__(self, session: str = SESSION, run: str = "run-1") -> None:
        self.session = session
        self.run = run
        self.events: list[Any] = []

    @property
    def data(self) -> bytes:
        return b"".join(json.dumps(event).encode() + b"\n" for event in self.events)

    def add(self, kind: str, data: Any = None, **members: Any) -> Traced:
        number = len(self.events) + 1
        event = {
            "traceSchema": SCHEMA_NAME,
            "schemaVersion": 1,
            "traceId": self.session,
            "source": "runtime",
            "type": kind,
            "ts": f"2026-11-30T10:00:{number // 2:02}.{number % 2 * 500:03}Z",
            "seq": number,
            "sourceSeq": number,
            "sessionId": self.session,
            "sessionKey": KEY,
            "runId": self.run,
            "workspaceDir": "/home/dev/acme-app",
            "provider": "mock",
            "modelId": "mock-1",
            "modelApi": "anthropic-messages",
            "data": data if data is not None else {},
        }
        self.events.append(event | members)
        return self

    def began(self, **data: Any) -> Traced:
        return self.add("session.started", {"trigger": "user", **data})

    def ended(self, status: str = "success", **data: Any) -> Traced:
        return self.add("session.ended", {"status": status, **data})

    def call(self, call_id: str, name: str = "exec", args: Any = None) -> Traced:
        return self.add("tool.call", {"toolCallId": call_id, "name": name, "args": args or {"command": "ls"}})

    def result(self, call_id: str, name: str = "exec", *, success: Any = True, **result: Any) -> Traced:
        data = {"toolCallId": call_id, "name": name, "success": success, "result": result}
        return self.add("tool.result", data)


class Made:
    """A transcript in the making; entries follow each other by ``parentId``, a second apart."""

    def __init__(self, version: int = 3, session: str = SESSION, cwd: str = "/home/dev/acme-app") -> None:
        head = {"type": "session", "version": version, "id": session, "timestamp": time(0), "cwd": cwd}
        self.entries: list[Any] = [head]
        self.last: str | None = None

    @property
    def data(self) -> bytes:
        return b"".join(
            (entry if isinstance(entry, str) else json.dumps(entry)).encode("utf-8", "surrogatepass") + b"\n"
            for entry in self.entries
        )

    def add(self, kind: str, **members: Any) -> str:
        number = len(self.entries)
        entry = {
            "type": kind,
            "id": f"e{number}",
            "parentId": self.last,
            "timestamp": time(number),
            **members,
        }
        self.entries.append(entry)
        self.last = entry["id"]
        return f"e{number}"

    def message(self, role: str, *, entry: dict[str, Any] | None = None, **members: Any) -> str:
        return self.add("message", message={"role": role, **members}, **(entry or {}))

    def prompt(self, words: str = "Go on.", **members: Any) -> str:
        return self.message("user", content=words, **members)

    def call(self, *calls: tuple[str, str, Any], entry: dict[str, Any] | None = None, **members: Any) -> str:
        content = [
            {"type": "toolCall", "id": call_id, "name": name, "arguments": asked}
            for call_id, name, asked in calls
        ]
        members = {"api": "anthropic-messages", "stopReason": "toolUse", "responseId": "msg_1", **members}
        return self.message("assistant", entry=entry, content=content, **members)

    def result(
        self,
        call_id: str,
        words: str = "done",
        *,
        tool: str = "exec",
        details: Any = None,
        error: Any = False,
        entry: dict[str, Any] | None = None,
    ) -> str:
        members: dict[str, Any] = {"toolCallId": call_id, "toolName": tool, "isError": error}
        members["content"] = [{"type": "text", "text": words}]
        if details is not None:
            members["details"] = details
        return self.message("toolResult", entry=entry, **members)

    def said(self, words: str = "Done.") -> str:
        return self.message("assistant", content=[{"type": "text", "text": words}], stopReason="stop")


def time(number: int) -> str:
    return f"2026-11-30T10:{number // 60 % 60:02}:{number % 60:02}.000Z"


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

    def result(self, call_id: str) -> dict[str, Any]:
        """The result of a call, by its native id."""
        (found,) = [
            one for one in self.of("tool_result") if one.get("nativeCallId", one.get("callId")) == call_id
        ]
        return found

    @property
    def codes(self) -> Counter[str]:
        return Counter(told.code for told in self.reading.diagnostics)

    def tally(self) -> Tally:
        pairing = Pairing()
        for written in self.reading.streams:
            if written.id == self.main:
                for line in written.lines:
                    pairing.add(decode(line))
        return tally(pairing)

    def everything(self) -> bytes:
        """All bytes that the reading wrote."""
        lines = [line for stream in self.reading.streams for line in stream.lines]
        told = [told.message.encode() for told in self.reading.diagnostics]
        return b"\n".join([*lines, *self.reading.blobs.values(), *told])


def sheets(path: Path | str, files: Files, **options: Any) -> list[Sheet]:
    """Every session of a file, database or folder, held to the kit's promises."""
    found = []
    for session in OPENCLAW.sessions(str(path), files):
        reading = read_session(OPENCLAW, session, files, **options)
        assert check_reading(reading) == []
        found.append(Sheet(reading))
    return found


Read = Callable[..., Sheet]


@pytest.fixture
def made() -> Made:
    return Made()


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture
def read() -> Read:
    """Reads one transcript from bytes."""

    def reading(data: bytes | Made, **options: Any) -> Sheet:
        name = f"/p/sessions/{SESSION}.jsonl"
        files = Files({name: data.data if isinstance(data, Made) else data})
        (sheet,) = sheets(name, files, **options)
        return sheet

    return reading


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "openclaw")


def stored(store: Store) -> Sheet:
    """The one session of a store."""
    path = store.close()
    (sheet,) = sheets(path, Files.below(store.root))
    return sheet


def captured(folder: Path, root: Path) -> Store:
    """A store built from the rows that a capture exported."""
    entries = [line for line in (folder / "transcript.jsonl").read_text().split("\n") if line]
    rows = json.loads((folder / "state-rows.json").read_text())
    session = json.loads(entries[0])["id"]
    keys = [
        row[name]
        for table in rows.values()
        for row in table
        for name in ("source_session_key", "requester_session_key", "session_key")
        if row.get(name)
    ]
    key = keys[0] if keys else "agent:main:main"
    store = Store(root).session(entries, session, key)
    child = folder / "child-transcript.jsonl"
    if child.exists():
        below = [line for line in child.read_text().split("\n") if line]
        agent_key = rows["subagent_runs"][0]["child_session_key"]
        store.session(below, json.loads(below[0])["id"], agent_key, made=2, parent_session_key=key)
    events = [line for line in (folder / "trajectory.jsonl").read_text().split("\n") if line]
    return store.rows(rows).trace(events, session)
