"""OpenCode's stores: files, database and exports tell the same, and what each part becomes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.harness.opencode import OPENCODE
from callsheet.pairing import Pairing, tally
from callsheet.records import decode
from callsheet.testing.check_harness import check_harness, check_reading
from callsheet.testing.desk import Files, Reading, read_session

SESSION = "ses_1"
INFO = {
    "id": SESSION,
    "slug": "calm-river",
    "version": "1.18.33",
    "projectID": "p1",
    "directory": "/home/dev/acme-app",
    "title": "A title",
    "time": {"created": 1796032800000, "updated": 1796032800000},
}


def message(id: str, role: str, **members: Any) -> dict[str, Any]:
    return {"id": id, "sessionID": SESSION, "role": role, "time": {"created": 1796032800000}, **members}


def text(id: str, words: str, **members: Any) -> dict[str, Any]:
    return {"id": id, "type": "text", "text": words, **members}


def tool(id: str, call: str = "c1", name: str = "bash", **state: Any) -> dict[str, Any]:
    whole = {
        "status": "completed",
        "input": {"command": "exit 3"},
        "output": "out",
        "title": "exit 3",
        "metadata": {"output": "out", "exit": 3},
        "time": {"start": 1796032800000, "end": 1796032800845},
        **state,
    }
    return {
        "id": id,
        "type": "tool",
        "callID": call,
        "tool": name,
        "state": {key: value for key, value in whole.items() if value is not ...},
    }


Talk = list[tuple[dict[str, Any], list[dict[str, Any]]]]


def talk_of(*parts: dict[str, Any]) -> Talk:
    return [
        (message("msg_1", "user"), [text("prt_1", "Go.")]),
        (message("msg_2", "assistant"), list(parts)),
        (message("msg_3", "assistant"), [text("prt_9", "Done.")]),
    ]


def export(talk: Talk, info: dict[str, Any] = INFO) -> bytes:
    whole = {"info": info, "messages": [{"info": told, "parts": parts} for told, parts in talk]}
    return json.dumps(whole, indent=2).encode()


def storage(talk: Talk, info: dict[str, Any] = INFO) -> dict[str, bytes]:
    files = {f"/s/storage/session/p1/{SESSION}.json": json.dumps(info, indent=2).encode()}
    for told, parts in talk:
        files[f"/s/storage/message/{SESSION}/{told['id']}.json"] = json.dumps(told, indent=2).encode()
        for part in parts:
            whole = {**part, "sessionID": SESSION, "messageID": told["id"]}
            files[f"/s/storage/part/{told['id']}/{part['id']}.json"] = json.dumps(whole, indent=2).encode()
    return files


def database(path: Path, talk: Talk, events: list[dict[str, Any]] | None = None) -> None:
    base = sqlite3.connect(path)
    base.executescript(
        """
        CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, version text);
        CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
        CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);
        CREATE TABLE event (id text PRIMARY KEY, aggregate_id text, seq integer, type text, data text);
        CREATE TABLE account (id text PRIMARY KEY, token text);
        INSERT INTO account VALUES ('a', 'do-not-read-me');
        """
    )
    base.execute("INSERT INTO session VALUES (?, 'p1', NULL, '/home/dev/acme-app', 'A title', '1.18.33')", [SESSION])
    base.execute("INSERT INTO session VALUES ('ses_2', 'p1', ?, '/home/dev/acme-app', 'Kid', '1.18.33')", [SESSION])
    for told, parts in talk:
        data = {key: value for key, value in told.items() if key not in ("id", "sessionID")}
        base.execute("INSERT INTO message VALUES (?, ?, 0, 0, ?)", [told["id"], SESSION, json.dumps(data)])
        for part in parts:
            data = {key: value for key, value in part.items() if key != "id"}
            row = [part["id"], told["id"], SESSION, json.dumps(data)]
            base.execute("INSERT INTO part VALUES (?, ?, ?, 0, 0, ?)", row)
    for number, event in enumerate(events or []):
        row = [f"evt_{number}", SESSION, number, "message.part.updated.1", json.dumps(event)]
        base.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row)
    base.commit()
    base.close()


class Sheet:
    def __init__(self, reading: Reading) -> None:
        assert check_reading(reading) == []
        self.reading = reading
        (self.stream,) = [one for one in reading.streams if one.id == SESSION]
        self.records: list[dict[str, Any]] = [msgspec.json.decode(line) for line in self.stream.lines]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.records if one["type"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.of(kind)
        return found

    @property
    def paired(self) -> int:
        pairing = Pairing()
        for line in self.stream.lines:
            pairing.add(decode(line))
        return tally(pairing).paired

    def facts(self) -> list[dict[str, Any]]:
        """The records without what differs from store to store."""
        apart = ("native", "seq", "id", "sources")
        return [
            {name: value for name, value in one.items() if name not in apart}
            for one in self.records
            if one["type"] not in ("unmapped", "session")
        ]


def of_export(talk: Talk, info: dict[str, Any] = INFO) -> Sheet:
    files = Files({"/e.json": export(talk, info)})
    (session,) = OPENCODE.sessions("/e.json", files)
    return Sheet(read_session(OPENCODE, session, files))


def of_database(path: Path) -> Sheet:
    files = Files.below(path.parent)
    (session,) = OPENCODE.sessions(str(path), files)
    return Sheet(read_session(OPENCODE, session, files))


def test_three_stores_tell_the_same(tmp_path: Path) -> None:
    talk = talk_of({"id": "prt_2", "type": "reasoning", "text": "Hm."}, tool("prt_3"), text("prt_4", "So."))
    held = Files(storage(talk))
    (session,) = OPENCODE.sessions("/s", held)
    of_files = Sheet(read_session(OPENCODE, session, held))
    database(tmp_path / "opencode.db", talk)
    of_rows = of_database(tmp_path / "opencode.db")
    assert of_files.facts() == of_export(talk).facts() == of_rows.facts()
    assert [one["type"] for one in of_rows.facts()] == [
        "message", "reasoning", "tool_call", "tool_result", "message", "message",
    ]
    assert b"do-not-read-me" not in b"".join(of_rows.reading.native.values())
    assert [(one.id, one.parent) for one in of_rows.reading.streams] == [(SESSION, None), ("ses_2", SESSION)]


def test_a_result_has_the_fields_made_for_it() -> None:
    sheet = of_export(talk_of(tool("prt_2")))
    record = sheet.one("tool_result")
    assert (record["status"], record["linkage"], record["exec"]) == ("completed", "exact", {"exitCode": 3})
    assert record["startedAt"] == "2026-11-30T10:00:00.000Z"
    assert (record["completedAt"], record["durationMs"]) == ("2026-11-30T10:00:00.845Z", 845)
    assert record["content"] == [{"type": "text", "text": "out"}]
    assert record["raw"] == {"metadata": {"output": "out", "exit": 3}}
    assert sheet.one("tool_call")["kind"] == "execute"


@pytest.mark.parametrize(
    ("version", "last"),
    [("2.0.0", False), ("1.0.0", False), ("1.18.33", True)],
)
def test_content_needs_an_entry_and_a_model_that_went_on(version: str, last: bool) -> None:
    talk = talk_of(tool("prt_2"))
    record = of_export(talk[:2] if last else talk, {**INFO, "version": version}).one("tool_result")
    assert "content" not in record
    assert record["raw"]["output"] == "out"


def test_an_error_is_failed_and_a_null_exit_is_left_out() -> None:
    failed = tool("prt_2", status="error", error="The user rejected permission", output=..., metadata=...)
    killed = tool("prt_3", "c2", metadata={"exit": None})
    first, second = of_export(talk_of(failed, killed)).of("tool_result")
    assert (first["status"], first["error"]) == ("failed", {"message": "The user rejected permission"})
    assert "permission" not in first
    assert (second["status"], "exec" in second) == ("completed", False)


@pytest.mark.parametrize("status", ["pending", "running"])
def test_what_has_not_ended_dangles(status: str) -> None:
    sheet = of_export(talk_of(tool("prt_2", status=status, output=..., metadata=...)))
    assert sheet.of("tool_result") == []
    assert len(sheet.of("tool_call")) == 1


def test_redacted_ids_are_told_apart_by_their_parts() -> None:
    sheet = of_export(talk_of(tool("prt_2", "REDACTED"), tool("prt_3", "REDACTED"), tool("prt_3", "REDACTED")))
    told = [(one["callId"], one["callIdSource"]) for one in sheet.of("tool_call")]
    ids = ["REDACTED#prt_2", "REDACTED#prt_3", "REDACTED#prt_3/2"]
    assert told == [(name, "derived") for name in ids]
    assert {(one["linkage"], one["nativeCallId"]) for one in sheet.of("tool_result")} == {("derived", "REDACTED")}
    assert sheet.paired == 3


def test_the_name_that_the_model_asked_for_stands_in_an_event(tmp_path: Path) -> None:
    final = tool("prt_2", name="invalid", input={"tool": "nosuchtool", "error": "unavailable"}, metadata={})
    asked = tool("prt_2", name="nosuchtool", status="pending", input={}, output=..., metadata=..., time=...)
    events = [{"part": {**asked, "sessionID": SESSION}}, {"part": {**final, "sessionID": SESSION}}]
    database(tmp_path / "opencode.db", talk_of(final), events)
    sheet = of_database(tmp_path / "opencode.db")
    record = sheet.one("tool_call")
    assert record["name"] == "nosuchtool"
    assert {ref["table"] for ref in record["native"]["refs"]} == {"part", "event"}
    assert record["capture"]["input"]["state"] == "absent"
    assert [one["nativeType"] for one in sheet.of("unmapped") if one["nativeType"] == "event"] == ["event"]


def test_what_metadata_tells_of() -> None:
    patch = "@@ -1 +1 @@\n-a\n+b\n"
    edit = tool("prt_2", "a", "edit", metadata={"diff": patch, "filediff": {"file": "/home/dev/acme-app/x", "patch": patch}})
    task = tool("prt_3", "b", "task", input={"description": "Count"}, metadata={"sessionId": "ses_9"})
    todo = tool("prt_4", "c", "todowrite", metadata={"todos": [{"content": "A", "status": "pending"}]})
    sheet = of_export(talk_of(edit, task, todo))
    change = sheet.one("file_change")
    assert change["changes"] == [
        {"path": {"root": "project", "path": "x"}, "patch": {"format": "unified", "value": patch}}
    ]
    agent = sheet.one("subagent")
    assert (agent["agentId"], agent["callId"], "stream" in agent) == ("ses_9", "b", False)
    assert sheet.one("plan")["entries"] == [{"text": "A", "status": "pending"}]


def test_damage_costs_only_itself(tmp_path: Path) -> None:
    talk = talk_of(tool("prt_2"))
    files = storage(talk)
    files[f"/s/storage/part/msg_2/prt_1x.json"] = b'{"id": "prt_1x", "type'
    held = Files(files)
    (session,) = OPENCODE.sessions("/s", held)
    sheet = Sheet(read_session(OPENCODE, session, held))
    assert (sheet.paired, len(sheet.of("gap"))) == (1, 1)
    database(tmp_path / "opencode.db", talk)
    base = sqlite3.connect(tmp_path / "opencode.db")
    base.execute("UPDATE part SET data = '{broken' WHERE id = 'prt_1'")
    base.execute("INSERT INTO part VALUES ('prt_x', 'msg_gone', ?, 0, 0, '{\"type\":\"text\",\"text\":\"lost\"}')", [SESSION])
    base.commit()
    base.close()
    sheet = of_database(tmp_path / "opencode.db")
    assert (sheet.paired, len(sheet.of("gap"))) == (1, 1)
    assert "lost" in [one["content"][0]["text"] for one in sheet.of("message")]


@pytest.mark.parametrize("value", [None, True, 0, "x", [], {}, [None], {"a": []}, "\ud800", 10**30, [[[]]]], ids=str)
def test_members_of_any_type_are_survived(value: Any) -> None:
    parts = [tool(f"prt_{name}", name, **{name: value}) for name in ("status", "input", "output", "title", "metadata", "time", "error", "raw")]
    parts += [tool("prt_a", "a") | {name: value} for name in ("callID", "tool", "state", "id", "type")]
    for kind in ("text", "reasoning", "file", "step-finish", "patch", "compaction", "later"):
        parts += [{"id": "p", "type": kind, name: value} for name in ("text", "url", "tokens", "files", "auto", "cost")]
    parts += [tool("prt_b", "b", metadata={name: value}) for name in ("exit", "files", "filediff", "sessionId", "todos", "exists")]
    talk = talk_of(*parts)
    talk.append((message("msg_4", "assistant", error=value), []))
    of_export(talk)


def test_captures_and_public_exports_hold(shared: Path) -> None:
    found = sorted((shared / "captures/opencode-stored").glob("*/export-*.json"))
    found += sorted((shared / "captures/opencode-stored").glob("*/opencode.db"))
    found += sorted((shared / "captures/opencode-stored").glob("*/storage"))
    found += [
        path
        for path in sorted((shared / "corpus/opencode").rglob("*.jsonl"))
        if OPENCODE.recognises(path.name, path.read_bytes()[: 1 << 18])
    ]
    assert len(found) > 8
    for path in found:
        assert check_harness(OPENCODE, path) == [], path


def test_the_database_and_its_exports_agree(shared: Path) -> None:
    """One session, read from the rows and from what OpenCode itself exported of them."""
    (base,) = (shared / "captures/opencode-stored").glob("*/opencode.db")
    files = Files.below(base.parent)
    of_rows = {session.native_id: session for session in OPENCODE.sessions(str(base), files)}
    compared = 0
    for path in sorted(base.parent.glob("export-*.json")):
        (exported,) = OPENCODE.sessions(str(path), files)
        told = []
        for session in (exported, of_rows[exported.native_id]):
            reading = read_session(OPENCODE, session, files)
            (stream,) = [one for one in reading.streams if one.id == exported.native_id]
            records = [msgspec.json.decode(line) for line in stream.lines]
            told.append(
                [
                    (one["type"], one["callId"], one.get("name"), one.get("status"), "content" in one, one.get("exec"))
                    for one in records
                    if one["type"] in ("tool_call", "tool_result")
                ]
            )
        assert told[0] == told[1]
        compared += len(told[0])
    assert compared


def test_parts_of_a_message_without_its_info_are_read() -> None:
    whole = json.loads(export(talk_of(tool("prt_2"))))
    whole["messages"].insert(1, {"parts": [text("prt_0", "lost")]})
    files = Files({"/x/export.json": json.dumps(whole).encode()})
    (session,) = OPENCODE.sessions("/x/export.json", files)
    sheet = Sheet(read_session(OPENCODE, session, files))
    assert len(sheet.of("tool_result")) == 1
    (lost,) = [one for one in sheet.of("message") if one["content"][0]["text"] == "lost"]
    assert "messageId" not in lost


def test_an_end_before_the_start_is_no_end() -> None:
    files = Files({"/x/export.json": export(talk_of(tool("prt_2", time={"start": 1796032800000, "end": 2})))})
    (session,) = OPENCODE.sessions("/x/export.json", files)
    record = Sheet(read_session(OPENCODE, session, files)).one("tool_result")
    assert record["startedAt"] == "2026-11-30T10:00:00.000Z"
    assert not {"completedAt", "durationMs"} & set(record)
