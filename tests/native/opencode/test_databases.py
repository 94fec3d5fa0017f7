"""OpenCode's database as it may be found: in use, locked, newer, damaged, or none at all. No read changes a byte."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.native.opencode.test_stores import SESSION, database, talk_of, text, tool

from callsheet.audit import audit_bundle
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle


def digests(folder: Path) -> dict[str, str]:
    """Every file beside the database, by name; but for the index of a log in use, in which readers note themselves."""
    files = (path for path in folder.iterdir() if path.is_file() and not path.name.endswith("-shm"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def imported(path: Path, out: Path) -> tuple[list[Bundle], list[str]]:
    """The bundles of a database, and what could not be read of it; nothing beside it has changed."""
    before = digests(path.parent)
    found = list(import_sources([path], out, kind="opencode"))
    assert digests(path.parent) == before
    failures = [one.message for one in found if isinstance(one, Failure)]
    assert all("\n" not in message and "Traceback" not in message for message in failures)
    return [Bundle(one.bundle) for one in found if not isinstance(one, Failure)], failures


def records(bundle: Bundle) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for entry in bundle.manifest.streams
        if entry.id == SESSION
        for line in bundle.read(entry.file).split(b"\n")
        if line
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    database(folder / "opencode.db", talk_of(tool("prt_2"), text("prt_3", "x" * 5000)))
    return folder / "opencode.db"


def test_a_database_that_is_written_to_is_read_with_its_log(store: Path, tmp_path: Path) -> None:
    writer = sqlite3.connect(store)
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("UPDATE session SET title = 'Newer' WHERE id = ?", [SESSION])
    writer.commit()
    assert (store.parent / "opencode.db-wal").stat().st_size > 0
    (bundle,), failures = imported(store, tmp_path / "out")
    assert (records(bundle)[0]["title"], failures) == ("Newer", [])
    assert list(audit_bundle(bundle)) == []
    writer.close()


def test_a_locked_database_is_said_to_be_locked(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from callsheet.wire import database as wire

    monkeypatch.setattr(wire, "WAIT", 0.1, raising=False)
    owner = sqlite3.connect(store, isolation_level=None)
    owner.execute("BEGIN EXCLUSIVE")
    owner.execute("UPDATE session SET title = 'half'")
    bundles, failures = imported(store, tmp_path / "out")
    owner.execute("ROLLBACK")
    if bundles:  # read from a private copy, as it was before
        assert records(bundles[0])[0]["title"] == "A title"
    else:
        assert len(failures) == 1
        assert "locked" in failures[0]


def test_a_newer_schema_costs_nothing(store: Path, tmp_path: Path) -> None:
    base = sqlite3.connect(store)
    base.executescript(
        """
        CREATE TABLE tomorrow (id text PRIMARY KEY, secret text);
        INSERT INTO tomorrow VALUES ('a', 'do-not-read-me-either');
        ALTER TABLE part ADD COLUMN flavour text;
        ALTER TABLE session ADD COLUMN mood text;
        UPDATE part SET flavour = 'odd';
        UPDATE session SET mood = 'fine';
        """
    )
    base.commit()
    base.close()
    (bundle,), failures = imported(store, tmp_path / "out")
    assert failures == []
    assert [one["callId"] for one in records(bundle) if one["type"] == "tool_result"] == ["c1"]
    assert list(audit_bundle(bundle)) == []
    whole = b"".join(path.read_bytes() for path in bundle.path.rglob("*") if path.is_file())
    assert b"do-not-read-me" not in whole


@pytest.mark.parametrize("missing", ["event", "message"])
def test_a_table_that_is_not_there_is_empty(store: Path, tmp_path: Path, missing: str) -> None:
    base = sqlite3.connect(store)
    base.execute(f"DROP TABLE {missing}")
    base.commit()
    base.close()
    bundles, failures = imported(store, tmp_path / "out")
    assert failures == []
    assert [one["type"] for one in records(bundles[0])].count("tool_call") == 1
    assert list(audit_bundle(bundles[0])) == []


def test_damaged_pages_cost_what_stands_on_them(store: Path, tmp_path: Path) -> None:
    whole = store.read_bytes()
    size = 4096
    survived = 0
    for page in range(1, len(whole) // size):
        damaged = tmp_path / f"page{page}" / "opencode.db"
        damaged.parent.mkdir()
        damaged.write_bytes(whole[: page * size] + b"\xff" * size + whole[(page + 1) * size :])
        bundles, failures = imported(damaged, tmp_path / f"out{page}")
        assert bundles or failures
        for bundle in bundles:
            assert list(audit_bundle(bundle)) == []
            survived += 1
    assert survived


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no database at all",
        b"SQLite format 3\x00" + b"\xff" * 5000,
        b"SQLite format 3\x00",
        b'{"info": {"id": 1}, "messages": 7, "projectID": 1, "directory": 2}',
        b'{"info": {"id": "ses_1", "projectID": "p", "directory": "/d"}, "messages": [',
        b'{"info": ' + b"[" * 100_000 + b"]" * 100_000 + b', "projectID": 1, "directory": 2}',
    ],
)
def test_what_is_no_store_is_one_line_or_a_gap(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "store" / "opencode.db"
    path.parent.mkdir()
    path.write_bytes(data)
    bundles, failures = imported(path, tmp_path / "out")
    assert len(bundles) + len(failures) == 1
    for bundle in bundles:
        assert list(audit_bundle(bundle)) == []


def test_a_store_that_was_cut_off_is_read_as_far_as_it_goes(store: Path, tmp_path: Path) -> None:
    whole = store.read_bytes()
    for size in (100, 4096, 8192, len(whole) // 2, len(whole) - 1):
        torn = tmp_path / f"torn{size}" / "opencode.db"
        torn.parent.mkdir()
        torn.write_bytes(whole[:size])
        bundles, failures = imported(torn, tmp_path / f"out{size}")
        assert bundles or failures
        for bundle in bundles:
            assert list(audit_bundle(bundle)) == []


def test_without_a_copy_the_rows_themselves_are_the_evidence(store: Path, tmp_path: Path) -> None:
    (made,) = import_sources([store], tmp_path / "out", kind="opencode", native=False)
    assert not isinstance(made, Failure)
    bundle = Bundle(made.bundle)
    assert not (bundle.path / "native").exists()
    assert list(audit_bundle(bundle)) == []
    base = sqlite3.connect(store)
    base.execute("UPDATE part SET data = replace(data, 'exit 3', 'exit 4')")
    base.commit()
    base.close()
    assert {one.rule for one in audit_bundle(bundle)} >= {"P-REF"}
