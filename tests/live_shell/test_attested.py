"""What a recorder says of its own, beside the frames of real agents: read back, with evidence for every word.

The frames are captures; the recorder's lines are put among them as a recorder would have written them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import callsheet.audit.facts as audit_facts
from callsheet.audit import audit_bundle
from callsheet.library.importing import adapter_for, find_sessions, import_session
from callsheet.records.bundle import Bundle
from callsheet.registry.facts import RECORDED
from callsheet.rules import check_bundle

Json = dict[str, Any]
TS = "2026-12-01T00:00:00.000Z"
LAUNCH = {"program": "agent", "version": "1", "switches": ["--loud"], "cwd": "/x", "model": "big"}
LOGS = {
    "claude-code-stream": "captures/claude-code/2.1.332/perm_user/stdio/stdio.jsonl",
    "codex-app-server": "captures/codex/0.163.0/approve_accept/app/frames.jsonl",
}


def own(**fact: Any) -> Json:
    return {"dir": "recorder", "ts": TS, **fact}


def is_answer(line: Json) -> bool:
    """Whether a line is the client's answer to a permission."""
    frame = line.get("frame", {})
    if line.get("dir") not in ("in", "send", "client_to_agent", "client"):
        return False
    result = frame.get("result", {})
    inner = frame.get("response", {}).get("response", {}) if frame.get("type") == "control_response" else {}
    return "decision" in result or "behavior" in inner or "answers" in result


def imported(lines: list[Json], kind: str, tmp_path: Path) -> tuple[Path, list[Json]]:
    tmp_path.mkdir(exist_ok=True)
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ((_, session),) = find_sessions(log, kind)
    bundle = import_session(adapter_for(kind), session, tmp_path / "out").bundle
    opened = Bundle(bundle)
    records = [json.loads(one) for one in opened.read(opened.manifest.streams[0].file).splitlines()]
    return bundle, records


@pytest.fixture(params=LOGS)
def log(request: pytest.FixtureRequest, shared: Path) -> tuple[str, list[Json]]:
    kind = request.param
    return kind, [json.loads(line) for line in (shared / LOGS[kind]).read_bytes().splitlines()]


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Facts that the audit found evidence for."""
    found: set[int] = set()
    attempts: Callable[..., Any] = audit_facts.attempts

    def watched(case: Any, fact: Any, value: Any, bound: Any) -> Any:
        for attempt in attempts(case, fact, value, bound):
            if not attempt.wrong:
                found.add(id(fact))
            yield attempt

    monkeypatch.setattr(audit_facts, "attempts", watched)
    return found


@pytest.mark.parametrize("by", ["user", "policy"])
def test_who_answered(log: tuple[str, list[Json]], tmp_path: Path, by: str, proven: set[int]) -> None:
    kind, lines = log
    answers = [line for line in lines if is_answer(line)]
    assert answers
    for line in answers:
        line["answered_by"] = by
    bundle, records = imported([own(launch=LAUNCH), *lines], kind, tmp_path)
    decided = [record for record in records if record["type"] == "permission" and record.get("decision")]
    assert decided
    assert {record["decidedBy"] for record in decided} == {by}
    head = records[0]
    assert head["native"]["extra"]["launch"] == LAUNCH
    assert list(check_bundle(Bundle(bundle))) == []
    assert list(audit_bundle(Bundle(bundle))) == []
    names = {(fact.record, fact.member) for fact in RECORDED if id(fact) in proven}
    assert names == {("session", "native.extra.launch"), ("permission", "decidedBy")}


def test_who_answered_a_question(shared: Path, tmp_path: Path, proven: set[int]) -> None:
    path = shared / "captures/codex/0.163.0/secret_question/app/frames.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        if is_answer(line):
            line["answered_by"] = "user"
    bundle, records = imported(lines, "codex-app-server", tmp_path)
    asked = [record for record in records if record["type"] == "input_request"]
    assert [record.get("answeredBy") for record in asked][-1] == {"name": "user"}
    assert list(audit_bundle(Bundle(bundle))) == []
    names = {(fact.record, fact.member) for fact in RECORDED if id(fact) in proven}
    assert names == {("input_request", "answeredBy.name")}


def test_without_a_recorder_nobody_says_who_answered(log: tuple[str, list[Json]], tmp_path: Path) -> None:
    kind, lines = log
    _, records = imported(lines, kind, tmp_path)
    decided = [record for record in records if record["type"] == "permission" and record.get("decision")]
    assert decided
    assert [record.get("decidedBy") for record in decided] == [None] * len(decided)
    assert "launch" not in str(records[0].get("native"))


@pytest.mark.parametrize("result", ["lost", "not_started"])
def test_an_end_that_nobody_saw(
    log: tuple[str, list[Json]], tmp_path: Path, result: str, proven: set[int]
) -> None:
    kind, lines = log
    end = next(number for number, line in enumerate(lines) if is_answer(line))
    _, records = imported(lines[:end], kind, tmp_path / "before")
    call = next(record["callId"] for record in records if record["type"] == "tool_call")
    told = [
        own(preview={"callId": call, "output": "half", "omittedBytes": 3}),
        own(preview={"callId": "no such call", "output": "nothing"}),
        own(turn={"result": result, "reason": "SIGKILL"}),
        own(exit={"code": None, "signal": "SIGKILL"}),
    ]
    bundle, after = imported([*lines[:end], *told], kind, tmp_path)
    new = [record for record in after if record not in records]
    kinds = [record["type"] for record in new]
    assert [one for one in kinds if one in ("preview", "turn", "unmapped")] == [
        "preview",
        "unmapped",
        "turn",
        "unmapped",
    ]
    (preview,) = [record for record in new if record["type"] == "preview"]
    assert (preview["callId"], preview["output"], preview["omittedBytes"]) == (call, "half", 3)
    (turn,) = [record for record in new if record["type"] == "turn"]
    assert turn["status"] == {"lost": "lost", "not_started": "unknown"}[result]
    assert turn["reason"] == "SIGKILL"
    assert turn["supersedes"] == next(record["id"] for record in records if record["type"] == "turn")
    assert list(check_bundle(Bundle(bundle))) == []
    assert list(audit_bundle(Bundle(bundle))) == []
    names = {(fact.record, fact.member) for fact in RECORDED if id(fact) in proven}
    assert names | {("unmapped", "nativeType")} == {
        ("preview", "callId"),
        ("preview", "output"),
        ("preview", "omittedBytes"),
        ("turn", "status"),
        ("turn", "reason"),
        ("unmapped", "nativeType"),
    }


def test_a_call_with_a_result_has_no_preview(log: tuple[str, list[Json]], tmp_path: Path) -> None:
    kind, lines = log
    _, records = imported(lines, kind, tmp_path / "before")
    done = {record.get("callId") for record in records if record["type"] == "tool_result"}
    told = [own(preview={"callId": call, "output": "late"}) for call in done if call]
    assert told
    _, after = imported([*lines, *told], kind, tmp_path)
    assert [record for record in after if record["type"] == "preview"] == []
