"""Databases with rows that were changed: every record says what its own row says."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.native.held import Record, held
from tests.native.opencode.test_stores import storage, talk_of, tool

S = "ses_1"
SCHEMA = """
create table session (id text primary key, project_id text, parent_id text, directory text, title text, version text);
create table message (id text primary key, session_id text, time_created integer, data text);
create table part (id text primary key, message_id text, session_id text, time_created integer, data text);
create table event (id text primary key, aggregate_id text, seq integer, type text, data text);
insert into session values ('ses_1', 'p1', null, '/home/dev', 'A title', '1.18.33');
"""
DONE = {"type": "tool", "callID": "c1", "tool": "bash"}
STATE = {"status": "completed", "input": {"command": "ls"}, "output": "ok", "time": {"start": 1, "end": 2}}


def read(
    tmp_path: Path, messages: list[tuple[Any, Any]], parts: list[tuple[str, str, Any]], then: str = ""
) -> list[Record]:
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as store:
        store.executescript(SCHEMA)
        for name, data in messages:
            store.execute("insert into message values (?, ?, 0, ?)", (name, S, json.dumps(data)))
        for name, message, data in parts:
            store.execute("insert into part values (?, ?, ?, 0, ?)", (name, message, S, json.dumps(data)))
        store.executescript(then)
    store.close()
    return held(path, tmp_path / "out", "opencode")


def test_a_message_of_which_nothing_came_shows_no_delivery(tmp_path: Path) -> None:
    """It may be a request that failed: only what the model said after a result shows that it was sent."""
    messages = [(f"msg_{number}", {"role": "assistant"}) for number in range(2)]
    parts = [("prt_0", "msg_0", {**DONE, "state": STATE})]
    (result,) = (one for one in read(tmp_path, messages, parts) if one["type"] == "tool_result")
    assert "content" not in result
    (tmp_path / "more").mkdir()
    parts.append(("prt_1", "msg_1", {"type": "text", "text": "Done."}))
    (result,) = (one for one in read(tmp_path / "more", messages, parts) if one["type"] == "tool_result")
    assert result["content"] == [{"type": "text", "text": "ok"}]


def test_messages_without_a_role_and_names_that_are_no_text(tmp_path: Path) -> None:
    found = read(tmp_path, [("msg_0", {"later": 1}), (b"\x00\xff", {"role": "user"})], [])
    kept = [one["nativeType"] for one in found if one["type"] == "unmapped"]
    assert sorted(kept) == ["message/None", "message/user"]


def test_half_a_character_beside_a_result(tmp_path: Path) -> None:
    """It stands in no part of the result: nothing of that needs a blob. One that does is kept exactly."""
    state = {**STATE, "status": "\ud800", "error": "no"}
    messages = [("msg_0", {"role": "assistant"})]
    found = read(tmp_path, messages, [("prt_0", "msg_0", {**DONE, "state": state})])
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["raw"] == {"output": "ok", "error": "no"}
    assert "raw" not in result["capture"]
    (tmp_path / "more").mkdir()
    odd = {**state, "metadata": {"text": "a \ud800"}}
    found = read(tmp_path / "more", messages, [("prt_0", "msg_0", {**DONE, "state": odd})])
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["capture"]["raw"]["state"] == "external"


@pytest.mark.parametrize("times", [0, 2])
def test_a_file_of_a_store_that_is_no_value(tmp_path: Path, times: int) -> None:
    """An empty one, and one that was written twice: it is damaged as a whole."""
    files = storage(talk_of(tool("prt_2")))
    for name, data in files.items():
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((json.dumps(json.loads(data)).encode() + b"\n") * times if path.stem == "prt_2" else data)
    found = held(tmp_path, tmp_path / "out", "opencode")
    (gap,) = (one for one in found if one["type"] == "gap")
    assert (gap["line"], gap["offset"], gap["bytes"] > 0) == (1, 0, times > 0)
    assert not any(one["type"] == "tool_call" for one in found)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"id": "ses_1", "version": "1", "directory": 5}, ["other"]),
        ({"id": "prt_1", "messageID": "msg_1", "type": "later"}, ["part/later"]),
        ({"id": "msg_1", "role": "later"}, ["message/later"]),
        ({}, ["other"]),
    ],
)
def test_a_document_that_is_no_export(value: Any, kept: list[str], tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(value, indent=1))
    found = held(path, tmp_path / "out", "opencode")
    assert [one["nativeType"] for one in found if one["type"] == "unmapped"] == kept


def test_a_cost_that_is_no_number(tmp_path: Path) -> None:
    step = {"type": "step-finish", "cost": {"a": 1}, "tokens": {"input": 5}}
    found = read(tmp_path, [("msg_0", {"role": "assistant"})], [("prt_0", "msg_0", step)])
    (usage,) = (one for one in found if one["type"] == "usage")
    assert usage["counts"] == [{"name": "input", "value": 5}]


def test_times_before_any_are_none(tmp_path: Path) -> None:
    part = {**DONE, "state": {**STATE, "time": {"start": -1, "end": 5}}}
    found = read(tmp_path, [("msg_0", {"role": "assistant", "time": {"created": -1}})], [("prt_0", "msg_0", part)])
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert "startedAt" not in result


def test_rows_of_nothing_but_nul(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as store:
        store.executescript(SCHEMA)
        store.execute("insert into message values ('msg_0', 'ses_1', 0, ?)", (b"\x00" * 40,))
    store.close()
    gaps = [one["reason"] for one in held(path, tmp_path / "out", "opencode") if one["type"] == "gap"]
    assert gaps == ["nul"]


def stored(tmp_path: Path) -> Path:
    """A storage folder on disk."""
    for name, data in storage(talk_of(tool("prt_1"))).items():
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "s" / "storage"


def test_a_session_s_file_without_an_id_names_none(tmp_path: Path) -> None:
    root = stored(tmp_path)
    (file,) = (root / "session").rglob("*.json")
    told = json.loads(file.read_text())
    for odd in ({name: value for name, value in told.items() if name != "id"}, {**told, "id": 5}):
        file.write_text(json.dumps(odd))
        (head, *_) = held(root, tmp_path / f"out{len(odd)}", "opencode")
        assert "nativeSessionId" not in head


def test_a_part_among_the_messages_is_a_part(tmp_path: Path) -> None:
    root = stored(tmp_path)
    part = next(one for one in sorted((root / "part").rglob("*.json")) if '"tool"' in one.read_text())
    (folder,) = (root / "message").iterdir()
    (folder / part.name).write_bytes(part.read_bytes().replace(b'"callID": "', b'"callID": "other-'))
    calls = [one["callId"] for one in held(root, tmp_path / "out", "opencode") if one["type"] == "tool_call"]
    assert any(one.startswith("other-") for one in calls)


@pytest.mark.parametrize("empty", ["''", "x''", "' '"])
@pytest.mark.parametrize("table", ["message", "part"])
def test_a_row_whose_value_is_empty_is_a_gap(tmp_path: Path, table: str, empty: str) -> None:
    parts = [("prt_0", "msg_0", {**DONE, "state": STATE}), ("prt_1", "msg_0", {"type": "text", "text": "Hi."})]
    then = f"update {table} set data = {empty} where id in ('msg_0', 'prt_1')"
    found = read(tmp_path, [("msg_0", {"role": "assistant"})], parts, then)
    (gap,) = (one for one in found if one["type"] == "gap")
    assert (gap["reason"], gap["native"]["refs"][0]["table"]) == ("bad_json", table)


def test_a_row_that_begins_with_a_mark_is_a_gap(tmp_path: Path) -> None:
    """A file may begin with one; no reader of a text takes it."""
    parts = [("prt_0", "msg_0", {"type": "text", "text": "Hi."})]
    found = read(tmp_path, [("msg_0", {})], parts, "update part set data = char(65279) || data")
    assert [one["reason"] for one in found if one["type"] == "gap"] == ["bad_json"]


@pytest.mark.parametrize("blank", [" ", "\n", "\r\n\t"])
def test_a_row_with_blanks_around_its_value_is_read(tmp_path: Path, blank: str) -> None:
    messages = [(f"msg_{number}", {"role": "assistant"}) for number in range(2)]
    parts = [("prt_0", "msg_0", {**DONE, "state": STATE}), ("prt_1", "msg_1", {"type": "text", "text": "Done."})]
    then = f"update part set data = '{blank}' || data || '{blank}'; update message set data = '{blank}' || data"
    found = read(tmp_path, messages, parts, then)
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["content"] == [{"type": "text", "text": "ok"}]
    assert [one["author"] for one in found if one["type"] == "message"] == ["model"]


@pytest.mark.parametrize("end", [-1, 2.5, 10**17, "soon", None, True])
def test_an_end_that_is_no_time(tmp_path: Path, end: Any) -> None:
    state = {**STATE, "time": {"start": 1, "end": end}}
    found = read(tmp_path, [("msg_0", {"role": "assistant"})], [("prt_0", "msg_0", {**DONE, "state": state})])
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert (result["ts"], result["startedAt"]) == ("1970-01-01T00:00:00.001Z",) * 2
    assert not {"completedAt", "durationMs"} & set(result)


def test_an_end_before_its_start(tmp_path: Path) -> None:
    state = {**STATE, "time": {"start": 5, "end": 2}}
    found = read(tmp_path, [("msg_0", {"role": "assistant"})], [("prt_0", "msg_0", {**DONE, "state": state})])
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert (result["ts"], result["startedAt"]) == ("1970-01-01T00:00:00.002Z", "1970-01-01T00:00:00.005Z")
    assert not {"completedAt", "durationMs"} & set(result)


def test_nobody_is_named_as_the_author_of_a_part_whose_message_says_none(tmp_path: Path) -> None:
    messages = [("msg_0", {"role": "later"}), ("msg_1", {})]
    words: dict[str, Any] = {"type": "text", "text": "Hi."}
    parts = [("prt_0", "msg_0", words), ("prt_1", "msg_1", words), ("prt_2", "msg_2", words)]
    parts.append(("prt_3", "msg_2", {**words, "synthetic": True}))
    found = read(tmp_path, messages, parts)
    assert [one["author"] for one in found if one["type"] == "message"] == ["unknown"] * 3 + ["harness"]


@pytest.mark.parametrize("lines", [1, 9])
def test_a_file_of_a_store_that_begins_with_a_mark_is_read(tmp_path: Path, lines: int) -> None:
    root = stored(tmp_path)
    for file in root.rglob("*.json"):
        told = json.loads(file.read_text())
        file.write_bytes(b"\xef\xbb\xbf" + json.dumps(told, indent=2 if lines > 1 else None).encode())
    found = held(root, tmp_path / "out", "opencode")
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["content"] == [{"type": "text", "text": "out"}]
    assert found[0]["nativeSessionId"] == "ses_1"
    assert not [one for one in found if one["type"] == "gap"]


def test_parts_that_say_no_message_stand_in_that_of_their_folder(tmp_path: Path) -> None:
    root = stored(tmp_path)
    for file in (root / "part").rglob("*.json"):
        told = json.loads(file.read_text())
        file.write_text(json.dumps({name: value for name, value in told.items() if name != "messageID"}))
    found = held(root, tmp_path / "out", "opencode")
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["content"] == [{"type": "text", "text": "out"}]


def test_parts_of_a_message_whose_place_a_part_took_are_kept(tmp_path: Path) -> None:
    root = stored(tmp_path)
    part = next(one for one in sorted((root / "part").rglob("*.json")) if "Go." in one.read_text())
    (folder,) = (root / "message").iterdir()
    (folder / f"{part.parent.name}.json").write_bytes(part.read_bytes())
    found = held(root, tmp_path / "out", "opencode")
    assert [one["author"] for one in found if one["type"] == "message"] == ["unknown", "unknown", "model"]


@pytest.mark.parametrize("folder", ["session_diff", "todo"])
def test_a_message_among_what_is_neither_is_kept(folder: str, tmp_path: Path) -> None:
    root = stored(tmp_path)
    (root / folder).mkdir()
    message = next((root / "message").rglob("*.json"))
    (root / folder / "ses_1.json").write_bytes(message.read_bytes())
    kept = [one["nativeType"] for one in held(root, tmp_path / "out", "opencode") if one["type"] == "unmapped"]
    assert kept.count("other") == 1
