"""What lies around a thread's items: transcripts of terminals, plans, diffs, context, the provider's own session."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import zstandard
from tests.native.t3code.conftest import NOW, THREAD, Sheet, State, read

from callsheet.audit import audit_bundle
from callsheet.harness.t3code import T3CODE
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.testing.check_harness import check_harness, check_reading
from callsheet.testing.desk import Files, read_session

SECRET = "zz-FAKE-token-000222"


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def transcript(state: State, name: str, data: bytes) -> Path:
    path = state.path.parent / "logs" / "terminals" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def sheets_beside(state: State) -> list[Sheet]:
    path = state.close()
    files = Files.below(path.parent)
    found = []
    for session in T3CODE.sessions(str(path), files):
        reading = read_session(T3CODE, session, files)
        assert check_reading(reading) == []
        found.append(Sheet(reading))
    return found


# -- terminals ----------------------------------------------------------------------------------------------------


def test_transcripts_are_terminals(new: State, tmp_path: Path) -> None:
    new.item("command_execution", input="ls")
    transcript(new, f"terminal_{encoded(THREAD)}.log", b"$ make\nok\n")
    transcript(
        new, f"terminal_{encoded(THREAD)}_{encoded('setup-x')}.log", "$ pnpm install\nDone ✓\n".encode()
    )
    transcript(new, f"terminal_{encoded('someone-else')}.log", b"not ours")
    transcript(new, f"terminal_{encoded(THREAD)}_%%.log", b"no name")
    (sheet,) = sheets_beside(new)
    told = {one["terminalId"]: (one["idSource"], one["output"]["text"]) for one in sheet.of("terminal")}
    assert told == {
        "default": ("derived", "$ make\nok\n"),
        "setup-x": ("native", "$ pnpm install\nDone ✓\n"),
    }
    for terminal in sheet.of("terminal"):
        assert not {"status", "command", "exitCode", "startedAt", "ts", "callId"} & set(terminal)
    assert check_harness(T3CODE, new.path.parent) == []
    (one,) = import_sources([new.path], tmp_path / "out")
    assert isinstance(one, Imported)
    assert list(audit_bundle(Bundle(one.bundle))) == []


def test_an_underscore_belongs_to_the_longest_name_that_fits(new: State) -> None:
    """``_`` is a character of the encoding, so one thread's name may begin like another's file."""
    one, longer = "ab", "ab?xyz"
    assert encoded(longer).startswith(f"{encoded(one)}_")
    new.thread(one)
    new.thread(longer)
    for thread in (one, longer):
        new.item("command_execution", thread=thread, input="ls")
    transcript(new, f"terminal_{encoded(longer)}.log", b"the longer one's")
    by_thread = {sheet.records[0]["nativeSessionId"]: sheet.of("terminal") for sheet in sheets_beside(new)}
    assert [len(by_thread[one]), len(by_thread[longer])] == [0, 1]


def test_an_older_name_counts_where_it_means_one_thread(new: State) -> None:
    for thread in ("a:b", "a/b", "c:d"):
        new.thread(thread)
        new.item("command_execution", thread=thread, input="ls")
    transcript(new, "a_b.log", b"whose?")
    transcript(new, "c_d.log", b"$ ls\n")
    by_thread = {sheet.records[0]["nativeSessionId"]: sheet.of("terminal") for sheet in sheets_beside(new)}
    assert {thread: len(found) for thread, found in by_thread.items() if found} == {"c:d": 1}


@pytest.mark.parametrize("data", [b"\xff\xfe broken", b"x" * 70_000])
def test_a_transcript_that_is_no_short_text_is_a_blob(new: State, tmp_path: Path, data: bytes) -> None:
    new.item("command_execution", input="ls")
    transcript(new, f"terminal_{encoded(THREAD)}.log", data)
    (sheet,) = sheets_beside(new)
    blob = sheet.of("terminal")[0]["output"]["blob"]
    assert sheet.reading.blobs[blob["blob"]] == data
    (one,) = import_sources([new.path], tmp_path / "out")
    assert isinstance(one, Imported)
    assert list(audit_bundle(Bundle(one.bundle))) == []


def test_an_empty_transcript_shows_nothing(new: State) -> None:
    new.item("command_execution", input="ls")
    transcript(new, f"terminal_{encoded(THREAD)}.log", b"")
    (sheet,) = sheets_beside(new)
    assert [one["output"] for one in sheet.of("terminal")] == [{"text": ""}]


def test_a_secret_is_taken_out_of_other_threads_and_terminals(new: State, tmp_path: Path) -> None:
    new.thread("child", parent=THREAD)
    new.item("command_execution", thread="child", input=f"deploy --token {SECRET}", output=f"using {SECRET}")
    questions = [{"id": "t", "header": "Token", "question": "Token?", "options": [], "isSecret": True}]
    new.item("user_input_request", requestId="rq", questions=questions, native="q")
    new.request("rq", kind="user_input", answers={"t": [SECRET]})
    transcript(new, f"terminal_{encoded(THREAD)}.log", f"$ export TOKEN={SECRET}\n".encode())
    transcript(new, f"terminal_{encoded('child')}.log", b"x" * 70_000 + SECRET.encode())
    (sheet,) = sheets_beside(new)
    assert SECRET.encode() not in sheet.everything()
    (one,) = import_sources([new.path], tmp_path / "out")
    assert isinstance(one, Imported)
    for file in one.bundle.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            if file.suffix == ".zst":
                data = zstandard.ZstdDecompressor().stream_reader(data).read()
            assert SECRET.encode() not in data, file
    assert list(audit_bundle(Bundle(one.bundle))) == []


# -- plans, diffs, context ----------------------------------------------------------------------------------------

DIFF = """diff --git a/src/a.rs b/src/a.rs
index 1..2 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1 +1 @@
-old
+new
diff --git a/b.txt b/b.txt
new file mode 100644
--- /dev/null
+++ b/b.txt
@@ -0,0 +1 @@
+x
"""


def test_the_diff_of_a_turn_is_its_change(old: State, tmp_path: Path) -> None:
    old.activity("runtime.warning", {"message": "m"})
    files = json.dumps([{"path": "src/a.rs", "kind": "modified", "additions": 1, "deletions": 1}])
    row = {"thread_id": THREAD, "turn_id": "turn-1", "state": "completed", "checkpoint_turn_count": 2}
    old.insert("projection_turns", {**row, "checkpoint_files_json": files})
    for since in (0, 1):
        told = {"thread_id": THREAD, "from_turn_count": since, "to_turn_count": 2, "diff": DIFF}
        old.insert("checkpoint_diff_blobs", told)
    sheet = read(old)
    first, last = sheet.of("file_change")
    assert "change" not in first["changes"][0]  # T3 Code says modified of every file
    assert last["supersedes"] == first["id"]
    assert (last["scope"], last["turnId"], last["state"]) == ("turn", "turn-1", "applied")
    assert [(one["path"]["path"], one["change"]) for one in last["changes"]] == [
        ("src/a.rs", "modify"),
        ("b.txt", "add"),
    ]
    assert "".join(one["patch"]["value"] for one in last["changes"]) == DIFF
    assert [one["nativeType"] for one in sheet.of("unmapped")] == ["checkpoint_diff_blobs"]
    (one,) = import_sources([old.path], tmp_path / "out")
    assert isinstance(one, Imported)
    assert list(audit_bundle(Bundle(one.bundle))) == []


def test_a_proposed_plan_of_v1(old: State) -> None:
    old.activity("runtime.warning", {"message": "m"})
    row = {"plan_id": "p", "thread_id": THREAD, "plan_markdown": "# Do\n1. it", "created_at": NOW}
    old.insert("projection_thread_proposed_plans", row)
    (plan,) = read(old).of("plan")
    assert (plan["planId"], plan["entries"], plan["ts"]) == ("p", [{"text": "# Do\n1. it"}], NOW)


def test_the_context_that_a_providers_turn_used(new: State) -> None:
    usage = {"usedTokens": 900, "maxTokens": 1000, "inputTokens": 850, "updatedAt": NOW}
    for number, payload in enumerate(({"tokenUsage": usage}, {})):
        row = {
            "provider_turn_id": f"pt-{number}",
            "thread_id": THREAD,
            "ordinal": number,
            "status": "completed",
        }
        row["payload_json"] = json.dumps({"id": f"pt-{number}", "nativeTurnRef": None, **payload})
        new.insert("orchestration_v2_projection_provider_turns", row)
    new.item("compaction", summary="So far.", beforeTokenCount=900, afterTokenCount=90)
    sheet = read(new)
    (told,) = sheet.of("usage")
    assert (told["contextUsed"], told["contextWindow"], told["ts"]) == (900, 1000, NOW)
    assert {"name": "inputTokens", "value": 850} in told["counts"]
    (cut,) = sheet.of("compaction")
    assert (cut["before"], cut["after"]) == ({"beforeTokenCount": 900}, {"afterTokenCount": 90})


# -- the provider's own session -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "cursor", "session"),
    [
        ("codex", {"threadId": "01a2"}, "01a2"),
        ("claudeAgent", {"threadId": THREAD, "resume": "5e55", "turnCount": 2}, "5e55"),
        ("claudeAgent", {"threadId": THREAD}, None),
        ("another", {"threadId": "01a2"}, None),
    ],
)
def test_a_cursor_names_the_providers_session(
    old: State, provider: str, cursor: dict[str, object], session: str | None
) -> None:
    old.activity("runtime.warning", {"message": "m"})
    row = {"thread_id": THREAD, "provider_name": provider, "resume_cursor_json": json.dumps(cursor)}
    old.insert("provider_session_runtime", row)
    extra = read(old).records[0]["native"].get("extra", {})
    assert extra.get("providerSessions") == ([session] if session else None)
