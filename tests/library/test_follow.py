"""Sessions that are being written while one looks: every change is told once, and nothing that is not whole."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.native.codex.conftest import Made, name_of
from tests.native.t3code.conftest import State

from callsheet.errors import SourceError
from callsheet.library.follow import Follower, follow
from callsheet.library.news import Change, Followed, RowsGone, RowTold, Settled
from callsheet.library.opening import Reading
from callsheet.library.watching import Began, Happened, Pace
from callsheet.rows import View

EXAMPLES = Path(__file__).parents[2] / "examples"
CLAUDE = EXAMPLES / "claude-code" / "projects" / "-home-dev-acme-app"
PLAIN = "5dd2e94d-807f-4903-b8e4-2497aa981da8.jsonl"
SAME_IDS = "858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
AT_ONCE = Pace(share=1)


def follower(*roots: Path, pace: Pace = AT_ONCE, **more: Any) -> Follower:
    return Follower([(root, None) for root in roots], Reading(view=View()), pace, **more)


def rows(changes: list[Change]) -> list[RowTold]:
    return [change for change in changes if isinstance(change, RowTold)]


def happenings(changes: list[Change]) -> list[str]:
    return [change.what for change in changes if isinstance(change, Happened)]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def thread(folder: Path, number: int = 1) -> tuple[Path, Made]:
    """A rollout that has begun."""
    made = Made(number)
    made.meta()
    made.said("Go.", "user")
    path = folder / Path(name_of(number)).name
    path.write_bytes(made.data)
    return path, made


def test_each_line_is_told_once(tmp_path: Path) -> None:
    lines = (CLAUDE / PLAIN).read_bytes().splitlines(keepends=True)
    path = tmp_path / PLAIN
    path.write_bytes(b"".join(lines[:4]))
    looking = follower(path)
    first = list(looking.look())
    assert isinstance(first[0], Began)
    assert (first[0].sessions, list(looking.look())) == (1, [])
    keys: dict[str, RowTold] = {change.key: change for change in rows(first)}
    for line in lines[4:]:
        append(path, line)
        for change in rows(list(looking.look())):
            assert change.is_new == (change.key not in keys)
            assert change.members is None or "state" in change.members or change.members
            keys[change.key] = change
    whole = follower(path)
    assert {change.key: change.row for change in rows(list(whole.look()))} == {
        key: change.row for key, change in keys.items()
    }
    assert all(change.row.provisional for change in keys.values())


def test_a_call_runs_until_its_result_is_there(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    looking = follower(path)
    list(looking.look())
    made.call("c1")
    path.write_bytes(made.data)
    (told,) = rows(list(looking.look()))
    assert (told.row.state, told.is_new) == ("running", True)
    made.ran("c1", status="completed", exit_code=0, aggregated_output="hello\n")
    path.write_bytes(made.data)
    (again,) = rows(list(looking.look()))
    assert (again.key, again.row.state, again.row.exit_code) == (told.key, "completed", 0)
    assert again.members is not None
    assert {"state", "exitCode", "output"} <= set(again.members)


@pytest.mark.parametrize("cut", [1, 30, -2, -1])
def test_a_torn_line_waits(cut: int, tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    looking = follower(path)
    list(looking.look())
    made.call("c1")
    line = made.lines[-1] + b"\n"
    append(path, line[:cut])
    told = list(looking.look())
    if cut == -1:
        assert [change.row.kind for change in rows(told)] == [
            "command"
        ]  # a whole value, only its line end lacks
        return
    assert told == []
    append(path, line[cut:])
    assert [change.row.kind for change in rows(list(looking.look()))] == ["command"]


def test_a_file_without_a_whole_line_waits_too(tmp_path: Path) -> None:
    _, made = thread(tmp_path, 2)
    (tmp_path / Path(name_of(2)).name).unlink()
    looking = follower(tmp_path)
    assert [type(change) for change in looking.look()] == [Began]
    path = tmp_path / Path(name_of(1)).name
    path.write_bytes(made.data[:20])
    assert list(looking.look()) == []
    path.write_bytes(made.data)
    assert rows(list(looking.look()))


def test_a_truncated_file_is_noticed(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    short = made.data
    made.said("one")
    made.said("two")
    path.write_bytes(made.data)
    looking = follower(path)
    before = rows(list(looking.look()))
    with path.open("r+b") as file:
        file.truncate(len(short))
    told = list(looking.look())
    assert happenings(told) == ["truncated"]
    (gone,) = (change for change in told if isinstance(change, RowsGone))
    assert gone.count == 2
    assert set(gone.keys) == {change.key for change in before[-2:]}
    append(path, made.lines[-1] + b"\n")
    assert [change.row.output.text for change in rows(list(looking.look())) if change.row.output] == ["two"]


def test_a_replaced_file_is_noticed(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    made.said("one")
    path.write_bytes(made.data)
    looking = follower(path)
    list(looking.look())
    other = Made()
    other.meta(originator="another")
    other.said("Else.", "user")
    other.said("x" * 5000)
    fresh = tmp_path / "fresh"
    fresh.write_bytes(other.data)
    fresh.replace(path)
    told = list(looking.look())
    assert happenings(told) == ["replaced"]
    assert any(change.row.output and change.row.output.text == "Else." for change in rows(told))


def test_a_file_that_is_written_anew_with_more_is_no_news(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    looking = follower(path)
    list(looking.look())
    made.said("more")
    fresh = tmp_path / "fresh"
    fresh.write_bytes(made.data)
    fresh.replace(path)
    told = list(looking.look())
    assert happenings(told) == []
    assert len(rows(told)) == 1


def test_a_deleted_file_is_noticed(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    looking = follower(tmp_path)
    list(looking.look())
    path.unlink()
    assert happenings(list(looking.look())) == ["deleted"]
    assert list(looking.look()) == []
    path.write_bytes(made.data)
    again = list(looking.look())
    assert [change.anew for change in again if isinstance(change, Followed)] == [True]


def test_a_new_file_in_a_folder_is_followed(tmp_path: Path) -> None:
    thread(tmp_path)
    looking = follower(tmp_path)
    list(looking.look())
    (tmp_path / "deep" / "er").mkdir(parents=True)
    path, made = thread(tmp_path / "deep" / "er", 2)
    told = list(looking.look())
    assert [change.path for change in told if isinstance(change, Followed)] == [str(path)]
    made.call("c1")
    path.write_bytes(made.data)
    assert [change.session for change in rows(list(looking.look()))] == [made.thread]


def test_of_several_sessions_those_that_change_are_told(tmp_path: Path) -> None:
    one, made_one = thread(tmp_path, 1)
    two, made_two = thread(tmp_path, 2)
    looking = follower(tmp_path)
    assert [type(change) for change in looking.look()] == [Began]
    made_two.said("2")
    two.write_bytes(made_two.data)
    told = list(looking.look())
    assert {change.session for change in rows(told)} == {made_two.thread}
    assert [change.row.title for change in rows(told)][-1:] != []
    made_one.said("1")
    one.write_bytes(made_one.data)
    made_two.said("3")
    two.write_bytes(made_two.data)
    told = list(looking.look())
    assert {change.session for change in rows(told)} == {made_one.thread, made_two.thread}
    assert [type(change).__name__ for change in told if not isinstance(change, RowTold)] == [
        "Followed",
        "Settled",
    ] * 2


def test_an_agent_s_own_file_belongs_to_its_session(tmp_path: Path) -> None:
    name = "96399bdd-834d-4e4c-91d8-dcc0255e04e1"
    shutil.copy(CLAUDE / f"{name}.jsonl", tmp_path)
    looking = follower(tmp_path / f"{name}.jsonl")
    before = rows(list(looking.look()))
    assert not any(change.depth for change in before)
    shutil.copytree(CLAUDE / name, tmp_path / name)
    told = rows(list(looking.look()))
    assert {change.depth for change in told if change.is_new} == {1}
    assert {change.session for change in told} == {name}


def test_a_database_is_followed_while_it_is_written(tmp_path: Path) -> None:
    state = State(tmp_path / "userdata-v2" / "state.sqlite", 2)
    state.sql("PRAGMA journal_mode = WAL")
    for name in ("th-1", "th-2"):
        state.thread(name)
        state.item("command_execution", thread=name, input="ls", output="a", exitCode=0)
    looking = follower(tmp_path)
    assert [type(change) for change in looking.look()] == [Began]
    state.item("command_execution", "running", thread="th-2", input="sleep 9", id="item-x")
    told = list(looking.look())
    assert {change.session for change in rows(told)} == {"th-2"}  # nothing of the other thread was written
    assert [change.row.state for change in rows(told)][-1] == "running"
    assert list(looking.look()) == []
    table = "orchestration_v2_projection_turn_items"
    state.sql(
        f"""UPDATE {table} SET status = 'completed', payload_json =
        json_set(payload_json, '$.status', 'completed', '$.exitCode', 3) WHERE turn_item_id = 'item-x'"""
    )
    (again,) = rows(list(looking.look()))
    assert (again.row.state, again.row.exit_code, again.is_new) == ("completed", 3, False)
    before = set(tmp_path.rglob("*"))
    list(looking.look())
    assert set(tmp_path.rglob("*")) == before  # nothing is left beside it
    state.close()


def test_a_session_that_begins_in_a_database_is_followed(tmp_path: Path) -> None:
    """The file is there already, and so is its log: nothing but its rows tells of it."""
    state = State(tmp_path / "userdata-v2" / "state.sqlite", 2)
    state.sql("PRAGMA journal_mode = WAL")
    state.thread()
    state.item("command_execution", input="ls", exitCode=0)
    looking = follower(tmp_path)
    list(looking.look())
    state.thread("th-new")
    state.item("command_execution", "running", thread="th-new", input="sleep 9")
    told = [change.session for change in rows([*looking.look(), *looking.look()])]
    assert told == ["th-new"]
    assert list(looking.look()) == []
    state.close()


def test_a_database_that_is_replaced(tmp_path: Path) -> None:
    for number in range(2):
        state = State(tmp_path / f"{number}" / "state.sqlite", 2)
        state.thread()
        state.item("command_execution", input=f"echo {number}", exitCode=number)
        state.close()
    place = tmp_path / "userdata-v2" / "state.sqlite"
    place.parent.mkdir()
    shutil.copy(tmp_path / "0" / "state.sqlite", place)
    looking = follower(place)
    first = rows(list(looking.look()))
    shutil.copy(tmp_path / "1" / "state.sqlite", place)
    (again,) = (change for change in rows(list(looking.look())) if change.row.kind == "command")
    assert again.row.exit_code == 1
    assert again.key in {change.key for change in first}


def test_reading_takes_no_more_than_its_share(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    now = [0.0]

    def clock() -> float:
        now[0] += 0.5  # everything takes half a second
        return now[0]

    looking = follower(path, pace=Pace(share=0.25), clock=clock)
    assert rows(list(looking.look()))
    begun = now[0]
    reads = 0
    for number in range(100):
        made.said(f"{number}")
        path.write_bytes(made.data)
        reads += bool(rows(list(looking.look())))
    assert reads > 0
    assert reads * 1.5 < (now[0] - begun) * 0.35
    made.said("last")
    path.write_bytes(made.data)
    late = [change for _ in range(20) for change in looking.look()]
    assert isinstance(late[-1], Settled)  # what came last is told, however late
    assert rows(late)[-1].row.output is not None


def test_memory_is_marks(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    for number in range(300):
        made.said(f"{number} " + "x" * 2000)
    path.write_bytes(made.data)
    looking = follower(path)
    assert len(rows(list(looking.look()))) > 300
    (track,) = looking._watcher.watched
    assert sum(len(key) + len(marks) for key, marks in track.rows.items()) < 300 * 120


def test_hostile_names_and_texts_are_told_as_they_are(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    name = b"rollout-\xff\x1b[31m\n-01a20000-0000-7000-8000-000000000001.jsonl"
    odd = path.with_name(os.fsdecode(name))
    path.rename(odd)
    looking = follower(tmp_path)
    list(looking.look())
    made.item(type="message", role="assistant", content=[{"type": "output_text", "text": "\ud800\x1b[2J"}])
    made.raw(b"\x00\xff{")
    made.raw(b"[" * 100_000)
    odd.write_bytes(made.data)
    told = list(looking.look())
    assert rows(told)
    assert happenings(told) == []
    odd.unlink()
    told += looking.look()
    assert happenings(told) == ["deleted"]
    for change in told:
        assert msgspec.json.encode(change)  # names of files may be no text; what is told is


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no session\n")
    bundle = tmp_path / "bundle"
    (bundle / "streams").mkdir(parents=True)
    (bundle / "manifest.json").write_text("{}")
    for path in (tmp_path / "nowhere", tmp_path / "notes.txt", bundle):
        with pytest.raises(SourceError):
            list(follower(path).look())
    assert [type(change) for change in follower(tmp_path).look()] == [Began]


def test_an_empty_file_may_become_a_session(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    path.write_bytes(b"")
    looking = follower(path)
    assert [type(change) for change in looking.look()] == [Began]
    path.write_bytes(made.data)
    assert rows(list(looking.look()))


def test_follow_stops_when_it_is_told_to(tmp_path: Path) -> None:
    path, made = thread(tmp_path)
    stop = threading.Event()
    found: list[Change] = []

    def run() -> None:
        found.extend(follow([(path, None)], stop=stop, pace=Pace(every=0.01, share=1)))

    worker = threading.Thread(target=run)
    worker.start()
    made.said("hello")
    path.write_bytes(made.data)
    until = time.monotonic() + 10
    while time.monotonic() < until and not any(isinstance(change, Settled) for change in found):
        time.sleep(0.01)
    stop.set()
    worker.join(10)
    assert not worker.is_alive()
    assert rows(found)


def test_a_session_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path, made = thread(tmp_path)
    looking = follower(tmp_path)
    list(looking.look())
    made.said("x")
    path.write_bytes(made.data)
    path.chmod(0)
    assert happenings([*looking.look(), *looking.look()]) == ["unreadable"]
