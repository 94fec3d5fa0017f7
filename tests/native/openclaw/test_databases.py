"""Databases of the owner's own schema: rows, approvals, several sessions, the owner at work, damage of every kind."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.native.openclaw.conftest import KEY, SESSION, Made, Store, database, insert, sheets, stored

from callsheet.audit import audit_bundle
from callsheet.harness.openclaw import OPENCLAW
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files
from callsheet.wire.database import without_checks

SECRET = "zz-FAKE-token-000111"
CHILD, CHILD_KEY = "child-1", "agent:main:subagent:1"


def talk(*call_ids: str, session: str = SESSION) -> list[Any]:
    made = Made(4, session)
    for call_id in call_ids:
        made.call((call_id, "exec", {"command": f"run {call_id}"}))
        made.result(call_id, f"ran {call_id}", details={"status": "completed", "exitCode": 0})
    made.said()
    return made.entries


def approval(number: int, **columns: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "approval_id": f"apr-{number}",
        "resolution_ref": f"{number:043}",
        "kind": "exec",
        "status": "pending",
        "presentation_json": json.dumps(
            {"kind": "exec", "commandText": f"run c{number}", "allowedDecisions": ["allow-once", "deny"]}
        ),
        "reviewer_device_ids_json": "[]",
        "source_session_key": KEY,
        "source_tool_call_id": f"c{number}",
        "audience_session_keys_json": "[]",
        "runtime_epoch": "e",
        "created_at_ms": number,
        "expires_at_ms": 10_000,
        "updated_at_ms": 100,
    }
    return {**row, **columns}


def settled(number: int, status: str, decision: str, reason: str, kind: str, who: str) -> dict[str, Any]:
    return approval(
        number,
        status=status,
        decision=decision,
        terminal_reason=reason,
        resolved_at_ms=50,
        resolver_kind=kind,
        resolver_id=who,
    )


def file_of(path: Path) -> dict[str, str]:
    """Digest of a database and of everything beside it."""
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(path.parent.iterdir())}


# -- rows ---------------------------------------------------------------------------------------------------------


def test_rows_cite_table_key_and_column(store: Store) -> None:
    made = Made(4)
    made.prompt("x" * 5000)
    entries = made.entries
    sheet = stored(store.session(entries))
    (message,) = sheet.of("message")
    (ref,) = message["native"]["refs"]
    assert (ref["table"], ref["key"], ref["column"]) == (
        "transcript_events",
        {"session_id": SESSION, "seq": 1},
        "event_zstd",
    )
    connection = sqlite3.connect(store.agent)
    (packed,) = connection.execute("SELECT event_zstd FROM transcript_events WHERE seq = 1").fetchone()
    connection.close()
    text = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    assert ref["sha256"] == hashlib.sha256(text).hexdigest()
    assert message["content"][0]["text"] == "x" * 5000


def test_every_way_an_approval_ends(store: Store) -> None:
    rows = [
        approval(1),
        settled(2, "allowed", "allow-once", "user", "device", "dev-1"),
        settled(3, "allowed", "allow-always", "user", "channel", "chat-7"),
        settled(4, "denied", "deny", "user", "runtime", "cli"),
        settled(5, "denied", "deny", "no-route", "system", "no-approval-route"),
        settled(6, "expired", "deny", "timeout", "system", "timer"),
        settled(7, "cancelled", "deny", "run-aborted", "system", "approval-scope-closed"),
    ]
    made = Made(4)
    for number in range(1, 8):
        made.call((f"c{number}", "exec", {"command": "x"}))
        made.result(
            f"c{number}", "Exec denied", error=number > 3, details={"status": "failed"} if number > 3 else {}
        )
    sheet = stored(store.session(made.entries).rows({"operator_approvals": rows}))
    told = {
        record["requestId"]: (
            record["status"],
            record.get("decision"),
            record.get("decidedBy"),
            record.get("decider"),
        )
        for record in sheet.of("permission")
    }
    assert told == {
        "apr-1": ("pending", None, None, None),
        "apr-2": ("resolved", "allow_once", "user", {"device": "dev-1"}),
        "apr-3": ("resolved", "allow_always", "user", {"address": "chat-7"}),
        "apr-4": ("resolved", "reject_once", None, None),
        "apr-5": ("resolved", "reject_once", None, None),
        "apr-6": ("expired", "timeout", None, None),
        "apr-7": ("cancelled", "cancelled", None, None),
    }
    statuses = [result["status"] for result in sheet.of("tool_result")]
    assert statuses == ["completed"] * 3 + ["denied", "denied", "failed", "failed"]
    assert all("permission" not in result for result in sheet.of("tool_result"))
    assert {record["subject"]["callId"] for record in sheet.of("permission")} == {
        f"c{n}" for n in range(1, 8)
    }


def test_a_reviewer_that_asked_is_a_review(store: Store) -> None:
    """A reviewer's `ask` is stored as denied; a person then allowed the call."""
    details = {
        "status": "completed",
        "exitCode": 0,
        "approvalReviews": [
            {"id": "guardian:c1", "label": "Guardian", "status": "denied", "rationale": "Risky."}
        ],
        "approvalReviewOutcome": "denied",
    }
    made = Made(4)
    made.call(("c1", "exec", {"command": "touch x"}))
    made.result("c1", details=details)
    made.call(("c2", "exec", {"command": "ls"}))
    made.result("c2", details={**details, "approvalReviewOutcome": "approved"})
    row = settled(1, "allowed", "allow-once", "user", "device", "dev-1")
    sheet = stored(store.session(made.entries).rows({"operator_approvals": [row]}))
    (permission,) = sheet.of("permission")
    assert (permission["decision"], permission["decidedBy"]) == ("allow_once", "user")
    assert permission["reviews"] == [
        {"by": {"name": "Guardian", "address": "guardian:c1"}, "verdict": "denied", "rationale": "Risky."}
    ]
    assert sheet.result("c1")["status"] == "completed"
    assert "permission" not in sheet.result("c1")
    assert sheet.result("c2")["permission"] == {"decision": "allow_once", "decidedBy": "classifier"}


def test_content_needs_a_capture_and_a_reply(store: Store) -> None:
    made = Made(4)
    made.call(("c1", "exec", {}))
    made.result("c1", "sent")
    made.call(("c2", "exec", {}), api="openai-responses", responseId="msg_2")
    made.result("c2", "another api")
    made.call(("c3", "exec", {}))
    made.result("c3", "y" * 70_000)
    made.call(("c4", "exec", {}))
    made.result("c4", "no reply follows")
    sheet = stored(store.session(made.entries))
    assert sheet.result("c1")["content"] == [{"type": "text", "text": "sent"}]
    reasons = [sheet.result(f"c{n}")["capture"]["content"]["reason"].split()[0] for n in (2, 3, 4)]
    assert reasons == ["no", "it", "no"]


@pytest.mark.parametrize(
    ("window", "text", "whole"),
    [
        (None, "x" * 1900, True),
        (None, "x" * 2100, False),
        ("7000", "x" * 2100, False),
        (-1, "x" * 2100, False),
        (16_000, "x" * 7900, True),
        (16_000, "x" * 8100, False),
        (16_000, "\u6c49" * 800, True),
        (16_000, "\u6c49" * 1000, False),
        (16_000, "caf\u00e9" * 700, True),
        (250_000, "x" * 59_000, True),
        (250_000, "x" * 61_000, False),
    ],
)
def test_content_is_what_fits_the_least_context_window_that_is_proven(
    store: Store, tmp_path: Path, window: Any, text: str, whole: bool
) -> None:
    """OpenClaw cuts a result to a share of the window; what a request took, the window holds."""
    made = Made(4)
    usage: dict[str, Any] = {"usage": {"input": 1, "contextUsage": {"promptTokens": window}}}
    of: dict[str, Any] = {"provider": "p", "model": "m"}
    made.call(("c1", "exec", {}), **of)
    made.result("c1", text)
    # Another model's window says nothing.
    made.call(("c2", "exec", {}), provider="p", model="other", usage={"contextUsage": {"promptTokens": 300_000}})
    made.result("c2", "done")
    made.message("assistant", content=[{"type": "text", "text": "Done."}], api="anthropic-messages", **of, **usage)
    store.session(made.entries).close()
    (done,) = import_sources([store.root], tmp_path / "out", kind="openclaw")
    assert isinstance(done, Imported)
    assert list(audit_bundle(Bundle(done.bundle))) == []
    (sheet,) = sheets(store.agent, Files.below(store.root))
    result = sheet.result("c1")
    assert ("content" in result) is whole
    if whole:
        assert result["content"] == [{"type": "text", "text": text}]


def test_details_that_were_cut_may_be_too_large_to_stand_inline(store: Store, tmp_path: Path) -> None:
    made = Made(4)
    made.call(("c1", "exec", {}))
    details = {"persistedDetailsTruncated": True, "status": "completed", "exitCode": 0}
    made.result("c1", "y" * 70_000, details=details)
    store.session(made.entries).close()
    (done,) = import_sources([store.root], tmp_path / "out", kind="openclaw")
    assert isinstance(done, Imported)
    assert list(audit_bundle(Bundle(done.bundle))) == []
    other = stored(
        Store(store.root / "2").session(made.entries).sql("UPDATE schema_meta SET app_version = '2027.1.0'")
    )
    assert all("content" not in result for result in other.of("tool_result"))


# -- several sessions ---------------------------------------------------------------------------------------------


def test_agents_are_streams_of_one_bundle(store: Store) -> None:
    child_key = "agent:main:subagent:1"
    made = Made(4)
    made.call(("s", "sessions_spawn", {"task": "Look"}))
    made.result("s", tool="sessions_spawn", details={"status": "accepted", "childSessionKey": child_key})
    store.session(made.entries)
    store.session(talk("inner", session="child"), "child", child_key, made=2, spawned_by=KEY)
    payload = {"label": "looker", "execution": {"status": "terminal", "outcome": {"status": "ok"}}}
    run = {
        "run_id": "r1",
        "child_session_key": child_key,
        "requester_session_key": KEY,
        "created_at": 2,
        "payload_json": json.dumps(payload),
    }
    sheet = stored(store.rows({"subagent_runs": [run]}))
    assert list(sheet.streams) == [SESSION, "child"]
    first, last = sheet.of("subagent")
    assert last["supersedes"] == first["id"]
    assert (last["status"], last["callId"], last["name"], last["stream"]) == (
        "completed",
        "s",
        "looker",
        "child",
    )
    assert sheet.streams["child"][0]["parent"] == {"session": SESSION}


def test_windows_of_one_key_share_its_rows_by_what_they_know(store: Store) -> None:
    store.session(talk("c1", session="old"), "old", KEY, made=1)
    store.session(talk("c2", session="new"), "new", KEY, made=2)
    store.rows({"operator_approvals": [approval(1), approval(2), approval(3, source_tool_call_id=None)]})
    path = store.close()
    found = {sheet.main: sheet for sheet in sheets(path, Files.below(store.root))}
    told = {name: [one["requestId"] for one in sheet.of("permission")] for name, sheet in found.items()}
    assert told == {"old": ["apr-1"], "new": ["apr-2", "apr-3"]}


def test_a_ring_of_parents_costs_no_session(store: Store) -> None:
    store.session(talk("a", session="a"), "a", "ka", made=1, spawned_by="kb")
    store.session(talk("b", session="b"), "b", "kb", made=1, spawned_by="ka")
    path = store.close()
    found = sheets(path, Files.below(store.root))
    assert sorted(stream for sheet in found for stream in sheet.streams) == ["a", "b"]


def test_a_shared_database_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    connection = database(path, "state-18.sql")
    insert(connection, "operator_approvals", settled(1, "expired", "deny", "timeout", "system", "timer"))
    insert(connection, "operator_approvals", settled(2, "denied", "deny", "user", "device", "Work laptop"))
    connection.close()
    (sheet,) = sheets(path, Files.below(tmp_path))
    told = [(one["status"], one["decision"], one.get("decider")) for one in sheet.of("permission")]
    assert told == [("expired", "timeout", None), ("resolved", "reject_once", {"device": "Work laptop"})]


def test_secrets_of_the_store_are_never_read(store: Store, tmp_path: Path) -> None:
    columns = [row[1] for row in store._state.execute("PRAGMA table_info(secret_store_entries)").fetchall()]
    row = dict.fromkeys(columns, SECRET)
    store._state.execute("PRAGMA ignore_check_constraints = ON")
    for name, kind in [
        (row[1], row[2]) for row in store._state.execute("PRAGMA table_info(secret_store_entries)")
    ]:
        if kind == "INTEGER":
            row[name] = 1  # type: ignore[assignment]
        elif kind == "BLOB":
            row[name] = SECRET.encode()  # type: ignore[assignment]
    insert(store._state, "secret_store_entries", row)
    store.session(talk("c1")).close()
    assert SECRET.encode() in store.state.read_bytes()
    assert names_of(SECRET, [store.root], tmp_path / "out") == []


def test_a_shared_database_alone_says_where_its_sessions_are(store: Store, tmp_path: Path) -> None:
    store.session(talk("c1")).rows({"operator_approvals": [approval(1)]}).close()
    (one,) = import_sources([store.state], tmp_path / "out")
    assert isinstance(one, Failure)
    assert str(store.agent) in one.message
    (whole,) = import_sources([store.root], tmp_path / "whole")
    assert isinstance(whole, Imported)


def names_of(word: str, paths: list[Path], out: Path, **options: Any) -> list[str]:
    """The files of all bundles that hold a word, in an archive or beside one, and what was told that holds it."""
    found = []
    for one in import_sources(paths, out, **options):
        assert isinstance(one, Imported)
        found += [told.message for told in one.diagnostics if word in told.message]
        for file in one.bundle.rglob("*"):
            if file.is_file():
                data = file.read_bytes()
                if file.suffix == ".zst":
                    data = zstandard.ZstdDecompressor().stream_reader(data).read()
                found += [str(file)] if word.encode() in data or word in str(file) else []
    return found


@pytest.mark.parametrize("keep", [False, True])
def test_a_secret_of_an_agent_is_nowhere_in_its_family(store: Store, tmp_path: Path, keep: bool) -> None:
    """Given to a subagent, it stands in the parent's archive, rows and title, in approvals and processes."""
    child, parent = Made(4, CHILD), Made(4)
    child.call(("q", "ask_user", {"questions": [{"id": "t", "question": "Token?", "isSecret": True}]}))
    details = {"status": "answered", "answers": {"answers": {"t": [SECRET]}}}
    child.result("q", f"Token: {SECRET}", tool="ask_user", details=details)
    child.said(f"It was {SECRET}.")
    parent.prompt(f"Use {SECRET}.")
    parent.add("session_info", name=f"Push with {SECRET}")
    for call_id in ("c1", "c2"):
        parent.call((call_id, "exec", {"command": f"login {SECRET}"}))
        parent.result(call_id, SECRET, details={"status": "completed", "aggregated": f"as {SECRET}"})
    cold = b"".join(json.dumps(entry).encode() + b"\n" for entry in parent.entries[:4])
    archive = store.root / "agents" / "main" / "sessions" / "cold" / "a.jsonl.zst"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(zstandard.compress(cold))
    store.session(parent.entries[4:])
    store.session(child.entries[1:], CHILD, CHILD_KEY, made=2, parent_session_key=KEY)
    store.sql(f"UPDATE session_nodes SET label = 'With {SECRET}' WHERE session_key = '{KEY}'")
    row: dict[str, Any] = {
        "session_id": SESSION,
        "generation": 1,
        "archive_name": "a.jsonl.zst",
        "storage": "file",
    }
    row |= {"archive_sha256": "0" * 64, "event_count": 4, "raw_bytes": 1, "archive_bytes": 1, "last_seq": 3}
    insert(store._agent, "session_transcript_cold_archives", {**row, "archived_at": 1})
    shown = {"kind": "exec", "commandText": f"login {SECRET}", "allowedDecisions": ["allow-once"]}
    store.rows({"operator_approvals": [approval(1, presentation_json=json.dumps(shown))]})
    store.close()
    assert names_of("login", [store.root], tmp_path / "there", keep_reasoning=keep)
    assert names_of(SECRET, [store.root], tmp_path / "out", keep_reasoning=keep) == []


# -- archives -----------------------------------------------------------------------------------------------------


def test_a_cold_archive_comes_before_the_rows(store: Store) -> None:
    entries = talk("c1", "c2")
    cold = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries[:3])
    name = f"{hashlib.sha256(cold).hexdigest()}.jsonl.zst"
    archive = store.root / "agents" / "main" / "sessions" / "cold" / name
    archive.parent.mkdir(parents=True)
    archive.write_bytes(zstandard.compress(cold))
    store.session([])
    for number, entry in enumerate(entries[3:], 3):
        store.entry(SESSION, number, entry)
    row = {
        "session_id": SESSION,
        "generation": "g",
        "archive_name": name,
        "archive_sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "event_count": 3,
        "raw_bytes": len(cold),
        "archive_bytes": archive.stat().st_size,
        "last_seq": 2,
        "archived_at": 1,
        "storage": "file",
    }
    insert(store._agent, "session_transcript_cold_archives", row)
    sheet = stored(store)
    assert sheet.tally().paired == 2
    assert not sheet.of("gap")
    archive.unlink()
    (sheet,) = sheets(store.agent, Files.below(store.root))
    assert next(gap["reason"] for gap in sheet.of("gap")) == "missing_file"
    assert sheet.codes["missing_file"] == 1


# -- the owner at work, newer schemas -----------------------------------------------------------------------------


def imported(path: Path, out: Path) -> list[Imported | Failure]:
    return list(import_sources([path], out, kind="openclaw"))


def imported_elsewhere(path: Path, out: Path) -> dict[str, Any]:
    """An import by a process of its own: within one, SQLite shares a log's index among its connections."""
    command = [sys.executable, "-m", "callsheet", "import", "--json", "--out", str(out), str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[0]))


@pytest.mark.parametrize("moment", ["idle", "writing", "crashed"])
def test_the_owner_may_be_at_work(store: Store, tmp_path: Path, moment: str) -> None:
    """Rows that stand in the write-ahead log only are read, and nothing of the owner's is touched."""
    store.sql("PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0").session(talk("c1"))
    path = store.agent
    if moment == "writing":
        store.sql("BEGIN IMMEDIATE")
        store.entry(SESSION, 99, {"type": "custom", "id": "late", "parentId": None, "timestamp": "x"})
    if moment == "crashed":
        path = Path(shutil.copytree(path.parent, tmp_path / "crashed")) / path.name
    before = file_of(path)
    assert {name.removeprefix(path.name) for name in before} == {"", "-wal", "-shm"}
    assert imported_elsewhere(path, tmp_path / "out")["calls"] == 1
    assert file_of(path) == before
    store.close()


def test_a_log_without_its_index_is_read_from_a_copy(store: Store, tmp_path: Path) -> None:
    store.sql("PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0").session(talk("c1"))
    folder = tmp_path / "copied"
    folder.mkdir()
    for suffix in ("", "-wal"):
        (folder / f"agent.sqlite{suffix}").write_bytes(Path(f"{store.agent}{suffix}").read_bytes())
    before = file_of(folder / "agent.sqlite")
    (one,) = imported(folder / "agent.sqlite", tmp_path / "out")
    assert isinstance(one, Imported)
    assert one.calls == 1
    assert file_of(folder / "agent.sqlite") == before
    assert "database_read" in {told.code for told in one.diagnostics}


def test_a_quiet_database_gets_no_files_beside_it(store: Store, tmp_path: Path) -> None:
    path = store.sql("PRAGMA journal_mode = WAL").session(talk("c1")).close()
    before = file_of(path)
    (one,) = imported(path, tmp_path / "out")
    assert isinstance(one, Imported)
    assert file_of(path) == before


def test_a_locked_database_gives_a_clear_message(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callsheet.wire.database.WAIT_SECONDS", 0.1)
    store.session(talk("c1")).sql("PRAGMA cache_spill = 1", "PRAGMA cache_size = 1", "BEGIN EXCLUSIVE")
    for number in range(100, 160):
        store.entry(SESSION, number, {"type": "custom", "id": str(number), "data": "x" * 900})
    before = file_of(store.agent)
    (one,) = imported(store.agent, tmp_path / "out")
    assert isinstance(one, Failure)
    assert "locked" in one.message
    assert file_of(store.agent) == before
    store.sql("ROLLBACK").close()


def test_a_newer_schema_is_read_as_far_as_it_is_known(store: Store, tmp_path: Path) -> None:
    store.session(talk("c1")).sql(
        "PRAGMA user_version = 99",
        "ALTER TABLE transcript_events ADD COLUMN mood TEXT",
        "CREATE TABLE transcript_dreams (id TEXT)",
    )
    path = store.close()
    (one,) = imported(path, tmp_path / "out")
    assert isinstance(one, Imported)
    assert one.calls == 1
    assert {"newer_schema", "unknown_columns", "unknown_tables"} <= {told.code for told in one.diagnostics}


def test_a_schema_far_behind_the_head_of_the_file(tmp_path: Path) -> None:
    """What a database is shows in its schema, wherever in the file that stands."""
    root = tmp_path / "openclaw"
    agent = root / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    agent.parent.mkdir(parents=True)
    with sqlite3.connect(agent) as padded:
        for number in range(200):
            padded.execute(f"CREATE TABLE aa_{number} (data TEXT DEFAULT '{'x' * 3000}')")
    padded.close()
    Store(root).session(talk("c1")).close()
    (one,) = import_sources([root], tmp_path / "out")
    assert isinstance(one, Imported)
    assert one.calls == 1


def test_a_schema_that_this_sqlite_cannot_parse(store: Store, tmp_path: Path) -> None:
    store.session(talk("c1")).sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'created_at INTEGER NOT NULL,', "
        "'created_at INTEGER NOT NULL CHECK (created_at ~> 3 OR f(''('')),') WHERE name = 'transcript_events'",
    )
    path = store.close()
    before = file_of(path)
    (one,) = imported(path, tmp_path / "out")
    assert isinstance(one, Imported), one
    assert one.calls == 1
    assert file_of(path) == before


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("CREATE TABLE t (a INT CHECK (a > 0), b TEXT) STRICT", "CREATE TABLE t (a INT , b TEXT)"),
        ("CREATE TABLE t (a INT, CHECK (a IN (1, 2)))", "CREATE TABLE t (a INT )"),
        ("CREATE TABLE t (a TEXT CHECK (a <> ')(' ), b)", "CREATE TABLE t (a TEXT , b)"),
        ("CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID", "CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID"),
    ],
)
def test_checks_are_taken_out(sql: str, plain: str) -> None:
    assert without_checks(sql) == plain


# -- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["empty", "text", "head", "cut"])
def test_what_is_no_database_gives_a_clear_message(store: Store, tmp_path: Path, damage: str) -> None:
    path = store.session(talk("c1")).close()
    data = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": b"not a database at all, transcript_events",
            "head": data[:16] + b"\xff" * 4000,
            "cut": data[: len(data) // 3],
        }[damage]
    )
    before = file_of(path)
    results = imported(path, tmp_path / "out")
    assert file_of(path) == before
    for one in results:
        if isinstance(one, Failure):
            assert one.message
            assert "\n" not in one.message


@pytest.mark.parametrize("seed", range(30))
def test_flipped_pages_never_bring_it_down(store: Store, tmp_path: Path, seed: int) -> None:
    made = Made(4)
    for number in range(60):
        made.prompt("z" * 400 + str(number))
    path = store.session(made.entries).close()
    data = bytearray(path.read_bytes())
    dice = random.Random(seed)
    for _ in range(3):
        at = dice.randrange(100, len(data))
        data[at : at + 64] = dice.randbytes(64)
    path.write_bytes(data)
    before = file_of(path)
    for one in imported(path, tmp_path / "out"):
        if isinstance(one, Failure):
            assert "\n" not in one.message
        else:
            assert list(audit_bundle(Bundle(one.bundle))) == []
    assert file_of(path) == before


def test_an_entry_that_is_no_json_is_a_gap(store: Store) -> None:
    entries = talk("c1")
    store.session(entries[:1]).sql("PRAGMA ignore_check_constraints = ON")
    for number, text in enumerate(
        ['{"type":"message","id":"x"', "[1, 2]", '{"a":1}{"b":2}', "{\n}", '"words"'], 1
    ):
        store.entry(SESSION, number, text)
    for number, entry in enumerate(entries[1:], 10):
        store.entry(SESSION, number, entry)
    sheet = stored(store)
    assert [gap["reason"] for gap in sheet.of("gap")] == ["bad_json", "bad_json"]
    assert all(gap["native"]["refs"][0]["table"] == "transcript_events" for gap in sheet.of("gap"))
    assert sheet.tally().paired == 1


def test_a_compressed_entry_that_is_broken_is_a_gap(store: Store) -> None:
    store.session(talk("c1")).sql("PRAGMA ignore_check_constraints = ON")
    packed = zstandard.compress(b'{"type":"message"}' * 100)
    for number, data in enumerate((packed[:20], b"\x28\xb5\x2f\xfd", b"\x00\x01", b"{}"), 50):
        row = {"session_id": SESSION, "seq": number, "created_at": 1, "event_zstd": data}
        insert(store._agent, "transcript_events", row)
    sheet = stored(store)
    assert len(sheet.of("gap")) == 3
    assert sheet.tally().paired == 1


def test_the_kit_finds_nothing(store: Store) -> None:
    made = Made(4)
    made.call(("c1", "exec", {"command": "x"}))
    made.result("c1", "y" * 2000)
    made.said()
    store.session(made.entries).rows({"operator_approvals": [approval(1)]}).close()
    assert check_harness(OPENCLAW, store.root) == []
