"""Rows that no owner should write, of schemas that nobody has seen: every bundle of them keeps the rules and audits."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.native.openclaw.conftest import KEY, SESSION, Made, Store
from tests.native.openclaw.test_databases import approval, file_of, talk

from callsheet.audit import Totals, audit_bundle
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle

ANEW = """
    CREATE TABLE zz AS SELECT * FROM {0};
    DROP TABLE {0};
    ALTER TABLE zz RENAME TO {0};
"""
"""A table without its keys and checks, which would not take what the test puts into it."""


def loosened(store: Store, table: str, *statements: str, state: bool = False) -> Store:
    lines = [line.strip() for line in ANEW.format(table).split(";") if line.strip()]
    return store.sql("PRAGMA foreign_keys = OFF", *lines, *statements, state=state)


def whole(store: Store, out: Path, *, native: bool = True) -> list[list[dict[str, Any]]]:
    """The records of every stream; the sources stay as they are."""
    store.close()
    before = file_of(store.agent) | file_of(store.state)
    found = []
    for done in import_sources([store.root], out, kind="openclaw", native=native):
        assert isinstance(done, Imported), done
        bundle = Bundle(done.bundle)
        assert list(check_bundle(bundle)) == []
        assert list(audit_bundle(bundle)) == []
        for entry in bundle.manifest.streams:
            found.append([json.loads(line) for line in bundle.read(entry.file).splitlines()])
    assert file_of(store.agent) | file_of(store.state) == before
    return found


def test_a_sequence_that_no_reader_can_take_stands_as_text(store: Store, tmp_path: Path) -> None:
    store.session(talk("c1")).sql(f"UPDATE transcript_events SET seq = seq + {2**53} WHERE seq > 0")
    (records,) = whole(store, tmp_path / "out")
    keys = [ref["key"]["seq"] for one in records for ref in one["native"]["refs"] if "seq" in ref.get("key", {})]
    assert str(2**53 + 1) in keys
    assert all(isinstance(key, str) or key <= 2**53 for key in keys)


def test_a_row_whose_text_stands_in_a_new_column_is_a_gap(store: Store, tmp_path: Path) -> None:
    made = Made(4)
    made.prompt("x" * 2000)
    store.session(made.entries).sql("ALTER TABLE transcript_events RENAME COLUMN event_zstd TO event_lz4")
    (records,) = whole(store, tmp_path / "out")
    assert [one["reason"] for one in records if one["type"] == "gap"] == ["no_decoder"]


def test_a_session_of_which_no_row_can_be_read_is_named_by_them(store: Store, tmp_path: Path) -> None:
    store.entry("nobody-knows", 0, "{broken")
    (records,) = whole(store, tmp_path / "out")
    assert records[0]["nativeSessionId"] == "nobody-knows"


@pytest.mark.parametrize("table", ["operator_approvals", "audit_events"])
def test_rows_without_their_name_are_kept(store: Store, tmp_path: Path, table: str) -> None:
    event = {"event_id": "e", "source_id": "x", "schema_version": 1, "source_sequence": 1, "occurred_at": 1}
    event |= {"kind": "agent_run", "action": "run", "status": "started", "actor_type": "agent", "actor_id": "m"}
    event |= {"agent_id": "main", "session_key": KEY, "session_id": SESSION, "run_id": "r"}
    store.session(talk("c1")).rows({"operator_approvals": [approval(1)], "audit_events": [event]})
    name = "approval_id" if table == "operator_approvals" else "run_id"
    loosened(store, table, f"UPDATE {table} SET {name} = NULL", state=True)
    (records,) = whole(store, tmp_path / "out")
    assert [one["nativeType"] for one in records if one["type"] == "unmapped"] == [table]


def test_of_two_rows_where_one_should_be_the_first_counts(store: Store, tmp_path: Path) -> None:
    store.session(talk("c1"))
    loosened(store, "schema_meta", "INSERT INTO schema_meta SELECT * FROM schema_meta")
    store.sql("UPDATE schema_meta SET app_version = 'other' WHERE rowid = 2")
    (records,) = whole(store, tmp_path / "out")
    assert records[0]["agent"]["version"] == "2026.9.6"


def test_an_entry_that_is_a_text_in_its_line_may_lack_its_parent(store: Store, tmp_path: Path) -> None:
    entry = {"type": "message", "id": "e1", "parentId": "nowhere", "timestamp": "2026-11-30T10:00:00.000Z"}
    entry["message"] = {"role": "user", "content": "Hi."}  # type: ignore[assignment]
    store.session([json.dumps(entry, indent=1)])
    (records,) = whole(store, tmp_path / "out")
    assert [one["reason"] for one in records if one["type"] == "gap"] == ["missing_parent"]


def test_a_bundle_without_copies_is_held_against_the_rows_as_they_were_read(
    store: Store, tmp_path: Path
) -> None:
    made = Made(4)
    made.call(("c1", "exec", {}))
    made.result("c1", "y" * 1500)
    made.said()
    store.session(made.entries).rows({"operator_approvals": [approval(1)]})
    whole(store, tmp_path / "out", native=False)
    (bundle,) = [Bundle(path) for path in (tmp_path / "out").iterdir()]
    assert [source.native for source in bundle.manifest.sources] == [None, None]
    # What was not read changes nothing; rows that were do, and then nothing can be said.
    with sqlite3.connect(store.agent) as connection:
        connection.execute("UPDATE session_nodes SET updated_at = 99")
    totals = Totals()
    assert list(audit_bundle(bundle, totals)) == []
    assert totals.unread == 0
    with sqlite3.connect(store.agent) as connection:
        connection.execute("DELETE FROM transcript_events WHERE session_id = ? AND seq = 1", (SESSION,))
    totals = Totals()
    assert {one.rule for one in audit_bundle(bundle, totals)} == {"P-REF"}
    assert totals.unread > 0


def test_parents_may_stand_behind_their_children_however_many(store: Store, tmp_path: Path) -> None:
    """Two calls of one id; the results find theirs by a way up that is longer than any memory of it was."""
    long = 15_000
    entries: list[Any] = []
    for number in range(2):
        name = f"{number}."
        result = {"role": "toolResult", "toolCallId": "c1", "toolName": "exec", "isError": False, "content": []}
        entries.append({"type": "message", "id": f"{name}r", "parentId": f"{name}0", "message": result})
        entries += [
            {"type": "custom", "id": f"{name}{at}", "parentId": f"{name}{at + 1}"} for at in range(long)
        ]
        asked = [{"type": "toolCall", "id": "c1", "name": "exec", "arguments": {}}]
        maker = {"role": "assistant", "content": asked}
        entries.append({"type": "message", "id": f"{name}{long}", "parentId": None, "message": maker})
    store.sql("BEGIN").session(entries).sql("COMMIT")
    (records,) = whole(store, tmp_path / "out")
    told = [(one["linkage"], one["callId"]) for one in records if one["type"] == "tool_result"]
    assert told == [("derived", f"c1#0.{long}"), ("derived", f"c1#1.{long}")]


def test_a_ring_with_a_call_in_it_is_walked_once(store: Store, tmp_path: Path) -> None:
    made = Made(4)
    made.call(("c1", "exec", {}))
    made.result("c1")
    made.entries[1]["parentId"] = made.last
    made.prompt()
    store.session(made.entries)
    (records,) = whole(store, tmp_path / "out")
    assert [one["type"] for one in records] == ["session", "tool_call", "tool_result", "message"]


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: b"hello", lambda data: data[: len(data) // 2 + 100]]
)
def test_a_broken_database_in_a_folder_is_not_passed_over(store: Store, tmp_path: Path, damage: Any) -> None:
    store.session(talk("c1")).close()
    store.agent.write_bytes(damage(store.agent.read_bytes()))
    before = store.agent.read_bytes()
    told = [one for one in import_sources([store.root], tmp_path / "out", kind="openclaw")]
    failed = [one.message for one in told if isinstance(one, Failure) and one.path == str(store.agent)]
    assert len(failed) == 1, told
    assert "\n" not in failed[0]
    assert store.agent.read_bytes() == before
