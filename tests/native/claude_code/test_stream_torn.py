"""Logs of which something is missing, twice, or out of order: what is left keeps the rules and audits clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.audit.frames import LOGS, QUESTION, SESSION, Frames, bare, recorded

from callsheet.audit import audit_bundle
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle

OTHER = SESSION.replace("aa", "bb")


def begun() -> Frames:
    log = Frames("ts")
    log.init()
    return log


def kind(line: str) -> str:
    """The direction, type and subtype of a line."""
    told: dict[str, Any] = json.loads(line)
    frame = told.get("frame", told)
    inner = frame.get("request") or frame.get("event") or frame
    return f"{told.get('dir')} {frame.get('type')} {inner.get('subtype') or inner.get('type')}"


def made(log: str, tmp_path: Path) -> list[dict[str, Any]]:
    """The records of a log, which keep the rules and audit clean."""
    path = tmp_path / "log.jsonl"
    path.write_text(log)
    (one,) = import_sources([path], tmp_path / "out", kind="claude-code-stream")
    assert not isinstance(one, Failure)
    bundle = Bundle(one.bundle)
    assert list(check_bundle(bundle)) == []
    assert list(audit_bundle(bundle)) == []
    streams = [name for name in bundle.names() if name.startswith("streams/")]
    return [json.loads(line) for name in streams for line in bundle.read(name).splitlines()]


@pytest.mark.parametrize("gone", sorted({kind(line) for text in LOGS.values() for line in text.splitlines()}))
def test_a_log_without_one_kind_of_frame(gone: str, tmp_path: Path) -> None:
    for name, text in LOGS.items():
        left = [line for line in text.splitlines(keepends=True) if kind(line) != gone]
        if left and len(left) < len(text.splitlines()):
            (tmp_path / name).mkdir()
            made("".join(left), tmp_path / name)


@pytest.mark.parametrize("at", range(2, len(recorded().splitlines()), 17))
def test_a_log_that_ends_early_or_begins_late(at: int, tmp_path: Path) -> None:
    lines = recorded().splitlines(keepends=True)
    for name, part in (("early", lines[:at]), ("late", lines[at:])):
        (tmp_path / name).mkdir()
        made("".join(part), tmp_path / name)


def test_what_waits_for_a_session_that_never_comes_is_kept(tmp_path: Path) -> None:
    log = begun()
    log.system("status", status="requesting", session_id=OTHER)
    log.said("m1", "Hello")
    records = made(log.text, tmp_path)
    assert [one["nativeType"] for one in records if one["type"] == "unmapped"].count("system/status") == 1


def test_a_question_that_nobody_was_shown_has_the_time_of_its_call(tmp_path: Path) -> None:
    log = begun()
    log.calls("m1", "c1", "AskUserQuestion", {"questions": [QUESTION]})
    log.system("status", status=None)
    (asked,) = [one for one in made(log.text, tmp_path) if one["type"] == "input_request"]
    assert asked["ts"] == "2026-11-30T10:00:00.250Z"


def test_a_question_whose_answer_only_the_result_shows(tmp_path: Path) -> None:
    """What the host sent is not on stdout."""
    log = begun()
    log.calls("m1", "c1", "AskUserQuestion", {"questions": [QUESTION]})
    told = {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "c1"}
    log.asks("q1", **told, input={"questions": [QUESTION]})
    given = {"questions": [QUESTION], "answers": {"Which?": "One"}}
    log.result("c1", "answered", error=False, tool_use_result=given)
    (asked,) = [one for one in made(log.text, tmp_path) if one["type"] == "input_request"][-1:]
    assert (asked["requestId"], asked["idSource"], asked["status"]) == ("q1", "native", "answered")
    assert [ref["role"] for ref in asked["native"]["refs"]] == ["result", "request"]


def test_a_request_that_comes_before_its_call_or_after_its_result(tmp_path: Path) -> None:
    log = begun()
    told = {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "c1"}
    log.asks("q1", **told, input={"questions": [QUESTION]})
    log.calls("m1", "c1", "AskUserQuestion", {"questions": [QUESTION]})
    log.calls("m1", "c2", "Bash", {"command": "x"})
    meta = [{"id": "c2", "permission_decision": {"decision": "accept", "source": "config"}}]
    log.result("c2", error=False, tool_result_meta=meta)
    log.may("q2", "c2", {"behavior": "allow"})
    records = made(log.text, tmp_path)
    assert {one["requestId"] for one in records if one["type"] == "input_request"} == {"q1"}
    assert "permission" not in [one for one in records if one["type"] == "tool_result"][-1]


def test_an_end_before_its_start_stays_the_end(tmp_path: Path) -> None:
    log = begun()
    log.calls("m1", "c1", "Bash", {"command": "x", "run_in_background": True})
    task = {"task_id": "t1", "tool_use_id": "c1", "task_type": "local_bash", "is_backgrounded": True}
    log.system("task_started", **task)
    log.system("task_updated", task_id="t1", patch={"status": "completed", "end_time": 1_796_076_000_000})
    log.system("task_started", **task)
    terminals = [one for one in made(log.text, tmp_path) if one["type"] == "terminal"]
    assert [one["status"] for one in terminals] == ["running", "exited"]


def test_sessions_of_one_log_may_use_the_same_ids(tmp_path: Path) -> None:
    records = made(bare() + bare().replace(SESSION, OTHER), tmp_path)
    assert {one["linkage"] for one in records if one["type"] == "tool_result"} == {"exact"}


@pytest.mark.parametrize("way", [None, {}, [], 7, "sideways"])
def test_a_word_of_nobody_is_no_frame(way: Any, tmp_path: Path) -> None:
    frame = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "c", "name": "n"}]}}
    log = begun()
    records = made(log.text + json.dumps({"dir": way, "frame": frame}) + "\n", tmp_path)
    assert records[-1]["type"] == "unmapped"
    assert "nativeType" not in records[-1]


@pytest.mark.parametrize("kept", [[], {}, None, 3])
def test_a_suggestion_is_kept_wherever_it_says(kept: Any, tmp_path: Path) -> None:
    log = begun()
    log.calls("m1", "c1", "Bash", {"command": "x"})
    log.may("q1", "c1", None, permission_suggestions=[{"type": "addRules", "destination": kept}])
    (asked,) = [one for one in made(log.text, tmp_path) if one["type"] == "permission"]
    assert [one["kind"] for one in asked["options"]] == ["allow_once", "allow_always", "reject_once"]


@pytest.mark.parametrize("meta", [[7], [{"id": "c1", "tool_name": 7}], [{"id": 7}, {"id": "c1", "tool_name": "tool.x"}]])
def test_a_tools_server_is_told_where_its_name_is(meta: list[Any], tmp_path: Path) -> None:
    log = begun()
    log.calls("m1", "c1", "mcp__git_hub__tool_x", {}, tool_use_meta=meta)
    (call,) = [one for one in made(log.text, tmp_path) if one["type"] == "tool_call"]
    told = {"server": "git.hub", "tool": "tool.x", "identity": "parsed"}
    assert call["provider"] == {"kind": "mcp", **(told if len(meta) == 2 else {"identity": "unknown"})}
