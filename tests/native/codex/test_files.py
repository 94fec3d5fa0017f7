"""Which files make a session: folders, packed files, segments of a thread, forks, agents, other people's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.native.codex.conftest import FOLDER, ROOT, Made, Read, Sheet, name_of, thread

from callsheet.audit import audit_bundle
from callsheet.harness import HARNESSES
from callsheet.harness.codex import CODEX, CODEX_EXEC
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files


def talk(made: Made, *calls: str) -> None:
    """One turn of each call, whose output was sent."""
    for call in calls:
        made.call(call)
        made.output(call, f"out of {call}")
        made.said(f"said after {call}")
        made.replied()


def whole(number: int, *calls: str, **meta: Any) -> Made:
    made = Made(number)
    made.meta(**meta)
    talk(made, *calls)
    return made


def calls_of(sheet: Sheet, stream: str | None = None) -> list[str]:
    return [call["callId"] for call in sheet.of("tool_call", stream)]


# -- packed files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 19])
def test_a_packed_thread_is_read_as_the_plain_one(level: int, read: Read) -> None:
    made = whole(1, "c1", "c2")
    packed = zstandard.ZstdCompressor(level=level).compress(made.data)
    plain, other = read(made), read({name_of(1, ".jsonl.zst"): packed})
    assert [one for one in other.records if one["type"] != "session"] == [
        one for one in plain.records if one["type"] != "session"
    ]
    (source,) = other.records[0]["sources"]
    assert (source["encoding"], source["size"]) == ("zstd", len(made.data))


def test_frames_packed_one_after_another_are_one_file(read: Read) -> None:
    made = whole(1, "c1", "c2")
    pack = zstandard.ZstdCompressor().compress
    half = made.data.index(b"\n") + 1
    sheet = read({name_of(1, ".jsonl.zst"): pack(made.data[:half]) + pack(made.data[half:])})
    assert calls_of(sheet) == ["c1", "c2"]


@pytest.mark.parametrize("cut", [1, 40])
def test_a_torn_packed_file_gives_what_is_readable_and_says_so(cut: int, tmp_path: Path) -> None:
    made = whole(1, *(f"c{number}" for number in range(400)))
    made.said("".join(chr(33 + number * 7919 % 90) for number in range(200_000)))
    path = tmp_path / "in" / Path(name_of(1, ".jsonl.zst")).name
    path.parent.mkdir()
    path.write_bytes(zstandard.ZstdCompressor().compress(made.data)[:-cut])
    (imported,) = import_sources([path.parent], tmp_path / "out")
    assert isinstance(imported, Imported)
    assert "torn_zstd" in [told.code for told in imported.diagnostics]
    assert imported.calls > 0
    assert list(audit_bundle(Bundle(imported.bundle))) == []


def test_a_packed_import_keeps_copies_that_the_audit_reads(tmp_path: Path) -> None:
    home = tmp_path / "sessions"
    home.mkdir()
    packed = zstandard.ZstdCompressor().compress(whole(1, "c1").data)
    (home / Path(name_of(1, ".jsonl.zst")).name).write_bytes(packed)
    (imported,) = import_sources([tmp_path], tmp_path / "out")
    assert isinstance(imported, Imported)
    bundle = Bundle(imported.bundle)
    assert bundle.manifest.sources[0].encoding == "zstd"
    assert list(audit_bundle(bundle)) == []


def test_the_plain_file_wins_over_the_packed_one() -> None:
    made = whole(1, "c1")
    files = Files(
        {name_of(1): made.data, name_of(1, ".jsonl.zst"): zstandard.ZstdCompressor().compress(made.data)}
    )
    (session,) = CODEX.sessions("/h", files)
    assert session.main == name_of(1)


# -- folders ------------------------------------------------------------------------------------------------------


def test_a_home_has_current_and_archived_threads(tmp_path: Path) -> None:
    for place, number in (("sessions/2026/11/30", 1), ("archived_sessions", 2)):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / Path(name_of(number)).name).write_bytes(whole(number, "c1").data)
    found = list(import_sources([tmp_path], tmp_path / "out"))
    assert sorted(one.session for one in found if isinstance(one, Imported)) == [thread(1), thread(2)]


def test_logs_and_threads_of_a_folder_are_both_found(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(whole(1, "c1").data)
    (tmp_path / "b.jsonl").write_bytes(b'{"type":"thread.started","thread_id":"t"}\n')
    (tmp_path / "c.jsonl").write_bytes(b'{"type":"thread.something"}\n')
    found = list(import_sources([tmp_path], tmp_path / "out"))
    assert [(one.kind, one.session) for one in found if isinstance(one, Imported)] == [
        ("codex", thread(1)),
        ("codex-exec", "t"),
    ]
    assert [Path(one.path).name for one in found if isinstance(one, Failure)] == ["c.jsonl"]


def test_where_sessions_lie() -> None:
    assert CODEX.places({}, "/home/dev") == [
        "/home/dev/.codex/sessions",
        "/home/dev/.codex/archived_sessions",
    ]
    assert CODEX.places({"CODEX_HOME": "/c"}, "/home/dev") == ["/c/sessions", "/c/archived_sessions"]
    assert CODEX_EXEC.places({}, "/home/dev") == []


def test_copies_of_a_thread_are_each_a_session(read: Read) -> None:
    made = whole(1, "c1")
    files = Files({name_of(1): made.data, f"{FOLDER}/copy.jsonl": made.data})
    assert len(CODEX.sessions("/h", files)) == 2


@pytest.mark.parametrize(
    "line",
    [
        {"type": "message", "sessionId": "s", "role": "user", "text": "hi"},  # another agent's stream
        {"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": "u", "sessionId": "s"},
        {"type": "session", "id": "s", "version": 3, "cwd": "/"},
        {"method": "initialize", "id": 1},
        {"type": "session_meta", "payload": "text"},
        {"type": "reasoning"},
        {"type": ["message"], "content": []},
        {"type": "message", "content": "text", "role": "user"},
        {"id": "x", "timestamp": "2026-11-30T10:00:00Z"},
        [],
        "text",
    ],
)
def test_files_of_others_are_left_alone(line: Any) -> None:
    data = json.dumps(line).encode() + b"\n"
    assert not CODEX.recognises("x.jsonl", data)
    assert not CODEX_EXEC.recognises("x.jsonl", data)


def test_no_other_adapter_takes_a_thread_or_a_log() -> None:
    for path in sorted((ROOT / "tests" / "native" / "codex").glob("*/*/native/**/*.jsonl")):
        head = path.read_bytes()[: 1 << 16]
        kinds = [adapter.kind for adapter in HARNESSES if adapter.recognises(str(path), head)]
        assert kinds == ["codex-exec" if path.name.startswith("exec") else "codex"], path


def test_examples_of_other_agents_are_no_threads() -> None:
    for path in sorted((ROOT / "examples").rglob("*.jsonl")):
        if "codex" not in path.parts:
            head = path.read_bytes()[: 1 << 16]
            assert not CODEX.recognises(str(path), head), path
            assert not CODEX_EXEC.recognises(str(path), head), path


# -- reverts and forks --------------------------------------------------------------------------------------------


def test_a_revert_leaves_dead_lines_that_are_in_no_row(read: Read) -> None:
    old = whole(1, "kept", "dead")
    end = next(json.loads(line)["ordinal"] for line in old.lines if b'"dead"' in line)
    new = Made(1)
    new.ordinal = end
    new.meta(history_base={"thread_id": thread(1), "end_ordinal_exclusive": end})
    talk(new, "after")
    second = name_of(1).replace(".jsonl", f"_{thread(9)}.jsonl")
    sheet = read({name_of(1): old.data, second: new.data})
    assert calls_of(sheet) == ["kept", "after"]
    dead = [one["nativeType"] for one in sheet.of("unmapped") if one["nativeType"].startswith("reverted/")]
    assert "reverted/response_item/function_call" in dead
    assert len(dead) == 4
    assert [one["callId"] for one in sheet.last("tool_result")] == ["kept", "after"]


def test_a_fork_by_reference_inherits_up_to_an_ordinal(read: Read) -> None:
    base = whole(1, "c1", "c2")
    end = next(json.loads(line)["ordinal"] for line in base.lines if b'"c2"' in line)
    fork = Made(2)
    fork.ordinal = end
    fork.meta(forked_from_id=thread(1), history_base={"thread_id": thread(1), "end_ordinal_exclusive": end})
    talk(fork, "own")
    files = {name_of(2): fork.data, name_of(1): base.data}
    sheet = read(files)
    assert sheet.main == thread(2)
    assert [(call["callId"], call["native"].get("inherited")) for call in sheet.of("tool_call")] == [
        ("c1", {"session": thread(1)}),
        ("own", None),
    ]
    assert sheet.records[0]["forkedFrom"] == thread(1)


def test_a_fork_whose_origin_is_gone_says_so(read: Read) -> None:
    fork = Made(2)
    fork.meta(forked_from_id=thread(1), history_base={"thread_id": thread(1), "end_ordinal_exclusive": 9})
    talk(fork, "own")
    sheet = read({name_of(2): fork.data})
    assert calls_of(sheet) == ["own"]
    assert [gap["reason"] for gap in sheet.of("gap")] == ["missing_session"]


def copied(origin: Made, number: int) -> Made:
    """A fork up to 0.146: its own first line, then every line of its origin, with new times."""
    fork = Made(number, version="0.98.0", paginated=False)
    fork.meta(forked_from_id=origin.thread)
    for line in origin.lines:
        value = json.loads(line)
        fork.add(value["type"], **value["payload"])
    return fork


def legacy(number: int, *calls: str) -> Made:
    made = Made(number, version="0.98.0", paginated=False)
    made.meta()
    talk(made, *calls)
    return made


def test_a_fork_by_copy_is_told_by_its_origin(read: Read) -> None:
    origin = legacy(1, "c1", "c2")
    fork = copied(origin, 2)
    talk(fork, "own")
    talk(origin, "later")
    sheet = read({name_of(2): fork.data, name_of(1): origin.data})
    marked = {call["callId"]: "inherited" in call["native"] for call in sheet.of("tool_call")}
    assert marked == {"c1": True, "c2": True, "own": False}
    assert sheet.codes["fork_unmarked"] == 0


def test_a_fork_by_copy_alone_marks_nothing_and_says_so(read: Read) -> None:
    fork = copied(legacy(1, "c1"), 2)
    sheet = read({name_of(2): fork.data})
    assert not any("inherited" in one.get("native", {}) for one in sheet.records)
    assert sheet.codes["fork_unmarked"] == 1


# -- agents -------------------------------------------------------------------------------------------------------


def family() -> dict[str, bytes]:
    """A thread that starts an agent, which begins with a line of its parent's."""
    above = Made(1)
    above.meta()
    above.call("spawn", "spawn_agent", {"message": "look"})
    above.add(
        "event_msg",
        type="item_completed",
        thread_id=above.thread,
        item={
            "type": "SubAgentActivity",
            "id": "spawn",
            "kind": "started",
            "agent_thread_id": thread(2),
            "agent_path": "/root/looker",
        },
    )
    talk(above, "c1")
    agent = Made(2)
    spawn = {"parent_thread_id": thread(1), "depth": 1, "agent_path": "/root/looker"}
    agent.meta(source={"subagent": {"thread_spawn": spawn}}, subagent_history_start_ordinal=3)
    agent.add("session_meta", id=thread(1), cwd="/elsewhere", cli_version="0.1.0")
    agent.said("of the parent", "user")
    talk(agent, "own")
    return {name_of(1): above.data, name_of(2): agent.data}


def test_an_agent_is_a_stream_of_its_parents_session(read: Read) -> None:
    sheet = read(family())
    assert list(sheet.streams) == [thread(1), thread(2)]
    head = sheet.streams[thread(2)][0]
    assert head["parent"] == {"session": thread(1), "callId": "spawn"}
    assert head["roots"] == {"project": "/home/dev/acme-app"}  # the first head of a file is its own
    assert calls_of(sheet, thread(2)) == ["own"]
    copied_message = sheet.of("message", thread(2))[0]
    assert copied_message["native"]["inherited"] == {"session": thread(1)}
    (agent,) = sheet.last("subagent")
    assert (agent["agentId"], agent["stream"], agent["callId"], agent["status"]) == (
        thread(2),
        thread(2),
        "spawn",
        "running",
    )


def test_an_agents_file_alone_is_a_session_that_names_its_parent(read: Read) -> None:
    sheet = read({name_of(2): family()[name_of(2)]})
    assert sheet.main == thread(2)
    assert sheet.records[0]["parent"] == {"session": thread(1)}


@pytest.mark.parametrize("lie", [None, thread(7), thread(2)])
def test_the_parent_of_an_agents_file_alone_has_evidence(lie: str | None, tmp_path: Path) -> None:
    path = tmp_path / Path(name_of(2)).name
    path.write_bytes(family()[name_of(2)])
    (imported,) = import_sources([path], tmp_path / "out")
    assert isinstance(imported, Imported)
    stream = imported.bundle / "streams" / f"{thread(2)}.jsonl"
    if lie:
        told = f'"parent":{{"session":"{thread(1)}"'
        text = stream.read_text(encoding="utf-8")
        assert told in text
        stream.write_text(text.replace(told, f'"parent":{{"session":"{lie}"'), encoding="utf-8")
    found = {finding.path for finding in audit_bundle(Bundle(imported.bundle)) if finding.rule == "P-FACT"}
    assert found == ({"/parent/session"} if lie else set())


def test_an_agents_file_leads_to_its_session_when_the_parent_is_there() -> None:
    files = Files(family())
    assert [session.native_id for session in CODEX.sessions("/h", files)] == [thread(1)]


def test_made_up_families_keep_the_promises(tmp_path: Path) -> None:
    for name, data in family().items():
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert check_harness(CODEX, tmp_path) == []


def test_every_example_is_described() -> None:
    told = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in (ROOT / "examples" / "codex").rglob("*.jsonl")]
    assert names
    for name in names:
        known = name if not name.startswith("rollout-") else f"{name.removesuffix('.jsonl')[-36:-23]}-…"
        assert f"`{known}`" in told, name


def test_examples_keep_the_promises() -> None:
    for adapter in (CODEX, CODEX_EXEC):
        assert check_harness(adapter, ROOT / "examples" / "codex") == []


@pytest.mark.parametrize("size", [10, 100_000, 1_000_000])
def test_a_first_line_may_be_long(size: int, read: Read) -> None:
    made = whole(1, "c1", base_instructions={"text": "x" * size})
    files = Files({f"{FOLDER}/copy.jsonl": made.data})
    (session,) = CODEX.sessions("/h", files)
    assert session.native_id == thread(1)
    assert calls_of(read(made)) == ["c1"]
