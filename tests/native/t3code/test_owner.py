"""The owner at work, and databases that are none, or only half: a clear message, and never a changed byte."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.native.t3code.conftest import State

from callsheet.audit import audit_bundle
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.records.bundle import Bundle

ROOT = Path(__file__).parents[3]


def filled(made: State, generation: int) -> State:
    """A thread with one finished call."""
    if generation == 2:
        made.thread()
        made.item("command_execution", input="ls", output="a")
    else:
        item = {"id": "c1", "type": "commandExecution", "status": "completed", "command": "ls"}
        made.activity("tool.completed", {"itemType": "command_execution", "data": {"item": item}})
    return made


@pytest.fixture(params=[1, 2])
def generation(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def state(tmp_path: Path, generation: int) -> State:
    return State(tmp_path / "userdata" / "state.sqlite", generation)


def file_of(path: Path) -> dict[str, tuple[str, int]]:
    """Digest and time of the database and of everything beside it."""
    return {
        file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in sorted(path.parent.iterdir())
    }


def imported(path: Path, out: Path) -> list[Imported | Failure]:
    return list(import_sources([path], out, kind="t3code"))


def only(path: Path, out: Path) -> Imported:
    """The one thread of a database, of which nothing was touched."""
    before = file_of(path)
    (one,) = imported(path, out)
    assert isinstance(one, Imported), one
    assert one.calls == 1
    assert file_of(path) == before
    return one


def imported_elsewhere(path: Path, out: Path) -> dict[str, Any]:
    """An import by a process of its own: within one, SQLite shares a log's index among its connections."""
    command = [sys.executable, "-m", "callsheet", "import", "--json", "--out", str(out), str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[0]))


LOGGED = ("PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0")


@pytest.mark.parametrize("moment", ["idle", "writing", "crashed"])
def test_the_owner_may_be_at_work(state: State, generation: int, tmp_path: Path, moment: str) -> None:
    """Rows that stand in the write-ahead log only are read, and nothing of the owner's is touched."""
    filled(state.sql(*LOGGED), generation)
    path = state.path
    if moment == "writing":
        state.sql("BEGIN IMMEDIATE")
        state.insert(
            "projection_projects", {"project_id": "late", "workspace_root": "/", "scripts_json": "[]"}
        )
    if moment == "crashed":
        path = Path(shutil.copytree(path.parent, tmp_path / "crashed")) / path.name
    before = file_of(path)
    assert {name.removeprefix(path.name) for name in before} == {"", "-wal", "-shm"}
    assert imported_elsewhere(path, tmp_path / "out")["calls"] == 1
    assert file_of(path) == before
    state.close()


WRITER = """
import pathlib, sys
from tests.native.t3code.test_owner import writing
writing(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
"""


def writing(path: Path, generation: int) -> None:
    """Writes calls, one a transaction, with checkpoints in between, until the file beside says to stop."""
    made = State.__new__(State)
    made.path, made._number = path, 1000
    made._connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    made.sql("PRAGMA wal_autocheckpoint = 5", "PRAGMA synchronous = OFF")
    number = 0
    while not (path.parent.parent / "stop").exists():
        number += 1
        words = "x" * 500 + str(number)
        if generation == 2:
            made.item(
                "command_execution", input=words, output=words, id=f"late-{number}", native=f"n-{number}"
            )
        else:
            item = {"id": f"n-{number}", "type": "commandExecution", "status": "completed", "command": words}
            made.activity("tool.completed", {"itemType": "command_execution", "data": {"item": item}})
        time.sleep(0.002)
    made.close()


def test_a_database_that_grows_is_read_again_and_again(state: State, generation: int, tmp_path: Path) -> None:
    """What ``callsheet watch`` does: each reading is one moment of it, whole, and later ones have no less."""
    path = filled(state.sql("PRAGMA journal_mode = WAL"), generation).close()
    command = [sys.executable, "-c", WRITER, str(path), str(generation)]
    calls = [0]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": f"src{os.pathsep}."}) as owner:
        try:
            until = time.monotonic() + 60
            while len(calls) < 6 and time.monotonic() < until:
                (one,) = imported(path, tmp_path / "out")
                assert isinstance(one, Imported), one
                assert list(audit_bundle(Bundle(one.bundle))) == []
                if one.calls > calls[-1]:
                    calls.append(one.calls)
        finally:
            (tmp_path / "stop").touch()
    assert owner.returncode == 0
    assert len(calls) == 6


@pytest.mark.parametrize("moves", [4, 10_000])
def test_an_owner_that_begins_to_write_is_waited_for(
    state: State, generation: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    """A database without a log is read as it lies there; when it changes meanwhile, it is read again."""
    path = filled(state, generation).close()
    seen = iter(range(10**6))
    monkeypatch.setattr("callsheet.wire.database._stamp", lambda _: (min(next(seen), moves),))
    (one,) = imported(path, tmp_path / "out")
    if moves == 4:
        assert isinstance(one, Imported), one
    else:
        assert isinstance(one, Failure)
        assert "try again" in one.message


def test_a_log_without_its_index_is_read_from_a_copy(state: State, generation: int, tmp_path: Path) -> None:
    filled(state.sql(*LOGGED), generation)
    folder = tmp_path / "copied"
    folder.mkdir()
    for suffix in ("", "-wal"):
        (folder / f"state.sqlite{suffix}").write_bytes(Path(f"{state.path}{suffix}").read_bytes())
    told = only(folder / "state.sqlite", tmp_path / "out").diagnostics
    assert "database_read" in {one.code for one in told}


def test_a_quiet_database_gets_no_files_beside_it(state: State, generation: int, tmp_path: Path) -> None:
    only(filled(state.sql("PRAGMA journal_mode = WAL"), generation).close(), tmp_path / "out")


def test_a_locked_database_gives_a_clear_message(
    state: State, generation: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callsheet.wire.database.WAIT_SECONDS", 0.1)
    filled(state, generation).sql("PRAGMA cache_spill = 1", "PRAGMA cache_size = 1", "BEGIN EXCLUSIVE")
    for number in range(60):
        project = {
            "project_id": f"p{number}",
            "title": "x" * 900,
            "workspace_root": "/",
            "scripts_json": "[]",
        }
        state.insert("projection_projects", project)
    before = file_of(state.path)
    (one,) = imported(state.path, tmp_path / "out")
    assert isinstance(one, Failure)
    assert "locked" in one.message
    assert file_of(state.path) == before
    state.sql("ROLLBACK").close()


def test_a_schema_that_this_sqlite_cannot_parse(state: State, generation: int, tmp_path: Path) -> None:
    filled(state, generation).sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'title TEXT NOT NULL,', "
        "'title TEXT NOT NULL CHECK (title ~> 3 OR f(''('')),') WHERE name = 'projection_projects'",
    )
    only(state.close(), tmp_path / "out")


def test_a_schema_far_behind_the_head_of_the_file(generation: int, tmp_path: Path) -> None:
    """What a database is shows in its schema, wherever in the file that stands."""
    path = tmp_path / "far" / "state.sqlite"
    path.parent.mkdir()
    with sqlite3.connect(path) as far:
        for number in range(200):
            far.execute(f"CREATE TABLE aa_{number} (data TEXT DEFAULT '{'x' * 3000}')")
    far.close()
    filled(State(path, generation), generation).close()
    found = list(import_sources([path.parent], tmp_path / "out"))
    assert [one.calls for one in found if isinstance(one, Imported)] == [1]


@pytest.mark.parametrize("damage", ["empty", "text", "head", "cut", "other"])
def test_what_is_no_database_gives_a_clear_message(
    state: State, generation: int, tmp_path: Path, damage: str
) -> None:
    path = filled(state, generation).close()
    data = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": b"not a database at all, orchestration_v2_projection_threads",
            "head": data[:16] + b"\xff" * 4000,
            "cut": data[: len(data) // 3],
            "other": b"",
        }[damage]
    )
    if damage == "other":
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE notes (id TEXT)")
        other.close()
    before = file_of(path)
    results = imported(path, tmp_path / "out")
    assert file_of(path) == before
    assert results
    for one in results:
        if isinstance(one, Failure):
            assert one.message
            assert "\n" not in one.message
        else:
            assert damage == "cut"
