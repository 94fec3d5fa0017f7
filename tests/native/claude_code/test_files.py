"""The files of a session: agents, their meta files, outputs, and what happens when some of them are missing."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness.claude_code import CLAUDE_CODE, layout
from callsheet.library.importing import Failure, Imported, find_sessions, import_sources
from callsheet.records.bundle import Bundle
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files, read_session
from tests.native.claude_code.conftest import FOLDER, SESSION, Made, Read, Run, Sheet, text_of

AGENT = "a80df3baecf6472a3"
INNER = "a1111111111111111"


def agent_file(agent_id: str, *call_ids: str, names: str = "Bash") -> bytes:
    made = Made()
    members: dict[str, Any] = {"isSidechain": True, "agentId": agent_id}
    made.prompt("Look around.", **members)
    for call_id in call_ids:
        made.call(call_id, name=names, **members)
        made.result(call_id, "done", **members)
    made.said("Seen.", message="msg_end", **members)
    return made.data


def meta(call_id: str, depth: int = 1, name: str = "Explore") -> bytes:
    return json.dumps({"agentType": name, "toolUseId": call_id, "spawnDepth": depth}).encode()


def main_file(**report: Any) -> Made:
    made = Made()
    made.prompt()
    made.call("toolu_ag", name="Agent", input={"description": "look", "prompt": "Look around."})
    made.result("toolu_ag", [{"type": "text", "text": "Seen."}], toolUseResult=report or "Seen.")
    made.said("Done.", message="msg_2")
    return made


def below(kind: str) -> str:
    return f"{SESSION}/{kind}"


def parents(sheet: Sheet) -> dict[str, tuple[str | None, str | None]]:
    """Each stream's parent stream, and the call that its session record names."""
    return {
        stream.id: (stream.parent, sheet.streams[stream.id][0].get("parent", {}).get("callId"))
        for stream in sheet.reading.streams
    }


def test_an_agent_is_a_stream_linked_to_its_call(read: Read) -> None:
    others = {
        below(f"subagents/agent-{AGENT}.jsonl"): agent_file(AGENT, "toolu_in"),
        below(f"subagents/agent-{AGENT}.meta.json"): meta("toolu_ag"),
    }
    sheet = read(main_file(), others)
    assert parents(sheet) == {SESSION: (None, None), AGENT: (SESSION, "toolu_ag")}
    (agent,) = sheet.last("subagent")
    assert (agent["callId"], agent["stream"], agent["name"]) == ("toolu_ag", AGENT, "Explore")
    assert [call["callId"] for call in sheet.of("tool_call", AGENT)] == ["toolu_in"]
    assert all(message["author"] != "user" for message in sheet.of("message", AGENT))


def test_nested_agents_belong_to_the_agent_that_started_them(read: Read) -> None:
    others = {
        below(f"subagents/agent-{AGENT}.jsonl"): agent_file(AGENT, "toolu_in", names="Agent"),
        below(f"subagents/agent-{AGENT}.meta.json"): meta("toolu_ag"),
        below(f"subagents/deep/agent-{INNER}.jsonl"): agent_file(INNER, "toolu_deep"),
        below(f"subagents/deep/agent-{INNER}.meta.json"): meta("toolu_in", depth=2),
    }
    sheet = read(main_file(), others)
    assert parents(sheet) == {
        SESSION: (None, None),
        AGENT: (SESSION, "toolu_ag"),
        INNER: (AGENT, "toolu_in"),
    }
    assert [agent["agentId"] for agent in sheet.of("subagent")] == [AGENT]
    assert [agent["agentId"] for agent in sheet.of("subagent", AGENT)] == [INNER]


def test_a_result_may_name_the_agent(read: Read) -> None:
    others = {below(f"subagents/agent-{AGENT}.jsonl"): agent_file(AGENT, "toolu_in")}
    sheet = read(main_file(agentId=AGENT, status="completed", agentType="Explore", totalDurationMs=5), others)
    assert parents(sheet)[AGENT] == (SESSION, "toolu_ag")
    (agent,) = sheet.last("subagent")
    assert (agent["callId"], agent["status"]) == ("toolu_ag", "completed")


def test_an_agent_that_nothing_links_belongs_to_the_session(read: Read) -> None:
    sheet = read(main_file(), {below(f"subagents/agent-{AGENT}.jsonl"): agent_file(AGENT, "toolu_in")})
    assert parents(sheet)[AGENT] == (SESSION, None)
    (agent,) = sheet.last("subagent")
    assert "callId" not in agent


def test_a_meta_file_that_names_a_call_used_twice_names_none(made: Made, read: Read) -> None:
    for number in (1, 2):
        made.call("toolu_dup", name="Agent", input={"description": str(number)}, message=f"m{number}")
    others = {
        below(f"subagents/agent-{AGENT}.jsonl"): agent_file(AGENT),
        below(f"subagents/agent-{AGENT}.meta.json"): meta("toolu_dup"),
    }
    assert parents(read(made, others))[AGENT] == (SESSION, None)


@pytest.mark.parametrize("bad", [b"", b"{", b"[]", b'"x"', b'{"toolUseId":7}', b"\xff", b"[" * 5000])
def test_a_bad_meta_file_costs_only_the_link(read: Read, bad: bytes) -> None:
    others = {
        below(f"subagents/agent-{AGENT}.jsonl"): agent_file(AGENT, "toolu_in"),
        below(f"subagents/agent-{AGENT}.meta.json"): bad,
    }
    sheet = read(main_file(), others)
    assert parents(sheet)[AGENT] == (SESSION, None)
    assert len(sheet.of("tool_call", AGENT)) == 1


def test_an_agent_of_which_only_the_meta_file_is_left(read: Read) -> None:
    sheet = read(main_file(), {below(f"subagents/agent-{AGENT}.meta.json"): meta("toolu_ag")})
    (agent,) = sheet.last("subagent")
    assert (agent["agentId"], agent["callId"], "stream" in agent) == (AGENT, "toolu_ag", False)


def test_two_files_of_one_agent_are_two_streams(read: Read) -> None:
    others = {
        below(f"subagents/agent-{AGENT}.jsonl"): agent_file(AGENT, "toolu_1"),
        below(f"subagents/old/agent-{AGENT}.jsonl"): agent_file(AGENT, "toolu_2"),
    }
    sheet = read(main_file(), others)
    assert sorted(call["callId"] for stream in sheet.streams for call in sheet.of("tool_call", stream)) == ["toolu_1", "toolu_2", "toolu_ag"]
    assert sheet.codes["same_agent"] == 1
    assert {agent["stream"] for agent in sheet.of("subagent")} == set(sheet.streams) - {SESSION}


def test_agent_files_beside_the_session(read: Read) -> None:
    """2.0.76 and before: the agent's file lies beside the session's and names its session inside."""
    stranger = Made(session="0dd5e551-0000-4000-8000-000000000009")
    stranger.prompt("Warmup", isSidechain=True, agentId="b2222222")
    others = {f"agent-{AGENT}.jsonl": agent_file(AGENT, "toolu_in"), "agent-b2222222.jsonl": stranger.data}
    sheet = read(main_file(agentId=AGENT), others)
    assert parents(sheet) == {SESSION: (None, None), AGENT: (SESSION, "toolu_ag")}


def folder(**files: bytes) -> Files:
    return Files({f"{FOLDER}/{name}": data for name, data in files.items()})


def test_sessions_of_a_folder_have_their_own_agents() -> None:
    other = "0dd5e551-0000-4000-8000-000000000009"
    files = Files({
        f"{FOLDER}/{SESSION}.jsonl": main_file().data,
        f"{FOLDER}/{other}.jsonl": Made(session=other).data + main_file().data,
        f"{FOLDER}/agent-{AGENT}.jsonl": agent_file(AGENT),
        f"{FOLDER}/{other}/subagents/agent-{INNER}.jsonl": agent_file(INNER),
        f"{FOLDER}/{other}/tool-results/b1.txt": b"whole",
    })
    found = {session.native_id: session for session in layout.sessions("/p", files)}
    assert {name: len(session.files) for name, session in found.items()} == {SESSION: 2, other: 3}
    assert {file for session in found.values() for file in session.files} == set(files.content)


def test_a_session_file_that_is_gone(read: Read) -> None:
    """Its agents and outputs are kept, under the session's name, with a gap that says what is missing."""
    files = Files({
        f"{FOLDER}/{SESSION}/subagents/agent-{AGENT}.jsonl": agent_file(AGENT, "toolu_in", names="Agent"),
        f"{FOLDER}/{SESSION}/subagents/agent-{AGENT}.meta.json": meta("toolu_ag"),
        f"{FOLDER}/{SESSION}/subagents/agent-{INNER}.jsonl": agent_file(INNER, "toolu_deep"),
        f"{FOLDER}/{SESSION}/subagents/agent-{INNER}.meta.json": meta("toolu_in", depth=2),
        f"{FOLDER}/{SESSION}/tool-results/b1.txt": b"whole",
    })
    assert check_harness(CLAUDE_CODE, files, "/p") == []
    (session,) = layout.sessions("/p", files)
    sheet = Sheet(read_session(CLAUDE_CODE, session, files))
    assert session.native_id == sheet.main == SESSION
    assert [gap["reason"] for gap in sheet.of("gap")] == ["missing_file"]
    assert parents(sheet) == {SESSION: (None, None), AGENT: (SESSION, None), INNER: (AGENT, "toolu_in")}
    assert [agent["agentId"] for agent in sheet.of("subagent")] == [AGENT]
    (lonely,) = sheet.of("unmapped")
    assert sheet.reading.blobs[lonely["capture"]["value"]["blob"]["blob"]] == b"whole"


def test_outputs_alone_are_kept() -> None:
    files = Files({f"{FOLDER}/{SESSION}/tool-results/b1.txt": b"whole"})
    (session,) = layout.sessions("/p", files)
    assert check_harness(CLAUDE_CODE, files, "/p") == []
    assert Sheet(read_session(CLAUDE_CODE, session, files)).of("unmapped")


def test_the_folder_of_a_session_is_the_session() -> None:
    files = Files({
        f"{FOLDER}/{SESSION}.jsonl": main_file().data,
        f"{FOLDER}/{SESSION}/subagents/agent-{AGENT}.jsonl": agent_file(AGENT),
    })
    (session,) = layout.sessions(f"{FOLDER}/{SESSION}", files)
    assert session.parts.main == f"{FOLDER}/{SESSION}.jsonl"


# -- whole outputs -------------------------------------------------------------------------------------------------

PERSISTED = {
    "stdout": "first part",
    "stderr": "",
    "persistedOutputPath": f"/home/dev/.claude/projects/-home-dev-acme-app/{SESSION}/tool-results/b1.txt",
    "persistedOutputSize": 9,
}


def shortened() -> Made:
    made = Made()
    made.call("toolu_a", input={"command": "seq 99999"})
    made.result("toolu_a", "<persisted-output>", toolUseResult=PERSISTED)
    made.said("Done.", message="msg_2")
    return made


def test_a_whole_output_is_the_blob_of_its_result(read: Read) -> None:
    sheet = read(shortened(), {below("tool-results/b1.txt"): b"the whole"})
    (result,) = sheet.of("tool_result")
    capture = result["capture"]["content"]
    assert (capture["state"], capture["originalBytes"]) == ("truncated", 9)
    assert sheet.reading.blobs[capture["blob"]["blob"]] == b"the whole"
    assert [ref["role"] for ref in result["native"]["refs"]] == ["result", "file"]
    assert sheet.of("unmapped") == []


def test_a_whole_output_that_is_gone(read: Read) -> None:
    (result,) = read(shortened()).of("tool_result")
    assert result["capture"]["content"]["state"] == "truncated"
    assert "blob" not in result["capture"]["content"]


def test_a_path_that_leads_elsewhere_opens_nothing_elsewhere(read: Read) -> None:
    made = shortened()
    made.lines[1] = made.lines[1].replace(PERSISTED["persistedOutputPath"].encode(), b"../../../../etc/passwd")  # type: ignore[attr-defined]
    (result,) = read(made, {"../etc/passwd": b"secret"}).of("tool_result")
    assert "blob" not in result["capture"]["content"]


def test_other_files_of_a_session_are_kept(read: Read) -> None:
    others = {
        below("tool-results/image.png"): b"\x89PNG\xff\x00",
        below("tool-results/deep/b1.txt"): b"one",
        below("tool-results/deeper/b1.txt"): b"two",
        below("session-memory/summary.md"): b"# Notes",
        below("subagents/workflows/journal.jsonl"): b'{"type":"started","key":"k"}\n',
        below("tool-results/empty.txt"): b"",
    }
    sheet = read(main_file(), others)
    kept = [sheet.reading.blobs[record["capture"]["value"]["blob"]["blob"]] for record in sheet.of("unmapped")]
    assert sorted(kept) == sorted(others.values())


def test_captured_outputs_and_agents(version: str, runs: list[Run]) -> None:
    """Of every run with agents or outputs: each meta file links its agent to the call that it names."""
    for run in runs:
        for sheet in run.sheets():
            for path in (run.folder / "projects").rglob("*.meta.json"):
                agent_id = path.name.removesuffix(".meta.json").removeprefix("agent-")
                if agent_id in sheet.streams and SESSION:
                    wanted = json.loads(path.read_bytes()).get("toolUseId")
                    assert parents(sheet)[agent_id][1] == wanted, run.name


# -- the engine on disk --------------------------------------------------------------------------------------------


def told_of(sources: list[Path], out: Path) -> tuple[list[Imported], list[Failure]]:
    told = list(import_sources(sources, out))
    return [one for one in told if isinstance(one, Imported)], [one for one in told if isinstance(one, Failure)]


def test_two_files_of_one_session_keep_a_bundle_each(tmp_path: Path) -> None:
    original = tmp_path / "in" / f"{SESSION}.jsonl"
    copy = tmp_path / "copies" / f"{SESSION}.jsonl"
    for path in (original, copy):
        path.parent.mkdir()
    original.write_bytes(main_file().data)
    copy.write_bytes(main_file().data + b"\n")
    out = tmp_path / "out"
    (first,), _ = told_of([original], out)
    (second,), _ = told_of([copy], out)
    assert first.bundle.name == SESSION
    assert second.bundle != first.bundle
    assert [one.code for one in second.diagnostics] == ["same_session"]
    (again,), _ = told_of([original], out)
    (twice,), _ = told_of([copy], out)
    assert (again.bundle, twice.bundle) == (first.bundle, second.bundle)
    assert len(list(out.iterdir())) == 2
    # A session that has only moved is the same session.
    moved = tmp_path / "moved.jsonl"
    original.rename(moved)
    (third,), _ = told_of([moved], tmp_path / "out")
    assert third.bundle == first.bundle


def test_a_bundle_of_a_file_that_grew_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    made = main_file()
    path.write_bytes(made.data)
    (before,), _ = told_of([path], tmp_path / "out")
    made.call("toolu_b")
    path.write_bytes(made.data)
    (after,), _ = told_of([path], tmp_path / "out")
    assert before.bundle == after.bundle
    assert (before.calls, after.calls) == (1, 2)


def test_what_is_no_bundle_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(main_file().data)
    mine = tmp_path / "out" / SESSION / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    _, (failure,) = told_of([path], tmp_path / "out")
    assert "no bundle" in failure.message
    assert mine.read_text() == "precious"
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == [SESSION]


def test_files_that_fit_no_kind_are_reported(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    (root / f"{SESSION}.jsonl").write_bytes(main_file().data)
    (root / "other.jsonl").write_bytes(b'{"some":"thing"}\n')
    (root / "empty.jsonl").write_bytes(b"")
    (root / "notes.txt").write_bytes(b"words")
    imported, failures = told_of([root], tmp_path / "out")
    assert len(imported) == 1
    assert {Path(one.path).name: one.message for one in failures} == {
        "empty.jsonl": "the file is empty",
        "other.jsonl": "fits no known kind of session (see: callsheet harnesses)",
    }


def test_a_session_named_twice_is_imported_once(tmp_path: Path) -> None:
    path = tmp_path / "in" / f"{SESSION}.jsonl"
    path.parent.mkdir()
    path.write_bytes(main_file().data)
    imported, failures = told_of([path, path.parent, path], tmp_path / "out")
    assert (len(imported), failures) == (1, [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    root = tmp_path / "in"
    (root / SESSION / "tool-results").mkdir(parents=True)
    (root / f"{SESSION}.jsonl").write_bytes(main_file().data)
    os.mkfifo(root / "pipe.jsonl")
    os.mkfifo(root / SESSION / "tool-results" / "b1.txt")
    (root / "link.jsonl").symlink_to("/etc/hostname")
    (root / "loop").symlink_to(root)
    imported, _ = told_of([root], tmp_path / "out")
    assert len(imported) == 1
    _, (failure,) = told_of([root / "pipe.jsonl"], tmp_path / "out")
    assert failure.message == "not a regular file"


def test_more_files_than_may_be_open(tmp_path: Path) -> None:
    home = tmp_path / "in" / SESSION / "tool-results"
    home.mkdir(parents=True)
    (tmp_path / "in" / f"{SESSION}.jsonl").write_bytes(main_file().data)
    for number in range(300):
        (home / f"b{number}.txt").write_bytes(str(number).encode())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 160), hard))
    try:
        (one,), failures = told_of([tmp_path / "in"], tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert failures == []
    assert len(Bundle(one.bundle).manifest.sources) == 301


def test_nothing_is_left_of_an_import_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(main_file().data)

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("callsheet.library.workbench.write_manifest", broken)
    _, (failure,) = told_of([path], tmp_path / "out")
    assert failure.message == "No space left on device"
    assert list((tmp_path / "out").iterdir()) == []


# -- what is a session ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (b'{"type":"user","sessionId":"x"}\n', True),
        (b'{"type":"summary","summary":"t","leafUuid":"u"}\n', True),
        (b"\xef\xbb\xbf\r\n" + b'{"type":"user","parentUuid":null}\r\n', True),
        (b"\0" * 100 + b'\n{"type" : "assistant", "isSidechain" : true}\n', True),
        (b'{"type":"user","timestamp":"t","uuid":"u","message":{"role":"user","content":"x"}}\n', True),
        (b'{"type":"user","session_id":"x","uuid":"u","timestamp":"t","message":{}}\n', False),
        (b'{"type":"session_meta","payload":{"id":"x"}}\n', False),
        (b'{"type":"message","id":"1","message":{"role":"user"}}\n', False),
        (b'{"dir":"agent_to_client","frame":{"sessionUpdate":"x"}}\n', False),
        (b"", False),
        (b"words\n", False),
    ],
)
def test_recognition_is_by_content(head: bytes, is_one: bool) -> None:
    assert CLAUDE_CODE.recognises("any-name.jsonl", head) is is_one


def test_the_session_id_comes_from_the_name_or_from_inside(tmp_path: Path) -> None:
    for name, wanted in ((f"{SESSION}.jsonl", SESSION), ("copy.jsonl", SESSION), ("0dd5e551-0000-4000-8000-000000000009.jsonl", "0dd5e551-0000-4000-8000-000000000009")):
        (tmp_path / name).write_bytes(main_file().data)
        ((_, session),) = find_sessions(tmp_path / name, None)
        assert session.native_id == wanted


def test_places_follow_the_environment() -> None:
    assert CLAUDE_CODE.places({"CLAUDE_CONFIG_DIR": "/c"}, "/home/you") == ["/c/projects"]
    assert CLAUDE_CODE.places({}, "/home/you") == ["/home/you/.claude/projects"]


def test_text_of_a_result_is_content_else_raw(read: Read) -> None:
    """The reading of 'text facts' that the tests of this folder share."""
    made = Made("1.0.0")
    made.call("toolu_a")
    made.result("toolu_a", "stored", toolUseResult="Error: no")
    (result,) = read(made).of("tool_result")
    assert "content" not in result
    assert text_of(result) == "stored"
