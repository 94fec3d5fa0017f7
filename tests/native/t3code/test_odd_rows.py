"""Rows whose columns and texts do not agree, rows written twice: every bundle of them keeps the rules and audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.native.t3code.conftest import THREAD, State

from callsheet.audit import audit_bundle
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle


def whole(state: State, out: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of every session, by its id."""
    found = {}
    for done in import_sources([state.close()], out, kind="t3code"):
        assert isinstance(done, Imported), done
        bundle = Bundle(done.bundle)
        assert list(check_bundle(bundle)) == []
        assert list(audit_bundle(bundle)) == []
        for entry in bundle.manifest.streams:
            records = [json.loads(line) for line in bundle.read(entry.file).splitlines()]
            found[records[0]["nativeSessionId"]] = records
    return found


def test_a_row_belongs_to_the_thread_that_its_column_names(new: State, tmp_path: Path) -> None:
    new.item("assistant_message", thread="other", threadId=THREAD, text="Hm.")
    run = {"run_id": "run-9", "thread_id": "third", "ordinal": 1, "payload_json": '{"threadId": "th-1"}'}
    new.insert("orchestration_v2_projection_runs", run)
    found = whole(new, tmp_path / "out")
    assert set(found) == {THREAD, "other", "third"}
    (turn,) = [one for one in found["third"] if one["type"] == "turn"]
    assert (turn["turnId"], turn["status"]) == ("run-9", "unknown")


def test_an_item_that_stands_in_two_rows_is_not_told_apart(new: State, tmp_path: Path) -> None:
    new.item("command_execution", id="i1", native="call_A", input="ls")
    new.item("command_execution", id="i2", native="call_A", input="ls")
    new.sql(
        "UPDATE orchestration_v2_projection_turn_items SET payload_json ="
        " (SELECT payload_json FROM orchestration_v2_projection_turn_items LIMIT 1)"
    )
    (records,) = whole(new, tmp_path / "out").values()
    assert [one["callId"] for one in records if one["type"] == "tool_call"] == ["call_A"] * 2
    told = [(one["linkage"], one["nativeCallId"]) for one in records if one["type"] == "tool_result"]
    assert told == [("ambiguous", "call_A")] * 2


def test_an_item_without_its_text_is_kept_and_makes_no_call(new: State, tmp_path: Path) -> None:
    new.item("command_execution", input="ls")
    new.sql("ALTER TABLE orchestration_v2_projection_turn_items RENAME COLUMN payload_json TO body_json")
    (records,) = whole(new, tmp_path / "out").values()
    assert [one["type"] for one in records] == ["session", "unmapped"]


def test_a_request_that_stands_in_two_rows_is_one(new: State, tmp_path: Path) -> None:
    new.request("r1")
    new.request("r2", id="r1")
    (records,) = whole(new, tmp_path / "out").values()
    assert [one["type"] for one in records] == ["session", "permission", "unmapped"]


def test_a_provider_session_that_is_no_text_names_none(old: State, tmp_path: Path) -> None:
    row = {"thread_id": THREAD, "status": "ready", "provider_name": "codex", "provider_thread_id": b"\0\xff"}
    old.insert("projection_thread_sessions", row)
    old.activity("runtime.error", {"message": "Broke"})
    (records,) = whole(old, tmp_path / "out").values()
    assert "providerSessions" not in records[0]["native"].get("extra", {})


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: b"hello", lambda data: data[: len(data) // 2 + 100]]
)
def test_a_broken_database_in_a_folder_is_not_passed_over(tmp_path: Path, damage: Any) -> None:
    path = State(tmp_path / "t3" / "userdata-v2" / "state.sqlite", 2).close()
    path.write_bytes(damage(path.read_bytes()))
    told = list(import_sources([tmp_path / "t3"], tmp_path / "out", kind="t3code"))
    assert [isinstance(one, Failure) and one.path == str(path) for one in told] == [True]
