"""Every capture of an app server, and the bug-report cases about one, from the folder given as --shared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.native.codex.conftest import Sheet
from tests.native.codex.frames import sheet_of

from callsheet.harness.codex import CODEX_APP_SERVER
from callsheet.library.importing import Failure, import_sources
from callsheet.testing.check_harness import check_harness
from callsheet.testing.lies import unseen

VERSIONS = ["0.98.0", "0.115.0", "0.130.0", "0.163.0", "0.171.0"]
CASES = [
    "017-appserver-declined",
    "025-appserver-approval-replayed",
    "055-appserver-thought-no-duration",
    "073-appserver-turn-diff-not-a-call",
]


def logs(shared: Path, version: str) -> list[Path]:
    found = sorted((shared / "captures" / "codex" / version).glob("*/app/frames.jsonl"))
    assert found
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_captures_keep_every_promise(version: str, shared: Path, tmp_path: Path) -> None:
    for log in logs(shared, version):
        sheet_of(log.read_bytes(), tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_lie_about_a_capture_lies_unseen(version: str, shared: Path, tmp_path: Path) -> None:
    found = list(import_sources(logs(shared, version), tmp_path, kind="codex-app-server"))
    assert [list(unseen(one.bundle)) for one in found if not isinstance(one, Failure)] == [[]] * len(found)


def test_a_capture_reads_the_same_from_any_desk(shared: Path) -> None:
    for name in ("kill9", "subagents_v2", "approve_amend"):
        folder = shared / "captures" / "codex" / "0.163.0" / name / "app"
        assert check_harness(CODEX_APP_SERVER, folder / "frames.jsonl") == []


def test_what_raw_events_told_was_sent(shared: Path, tmp_path: Path) -> None:
    folder = shared / "captures" / "codex" / "0.163.0" / "code_mode_metadata" / "app"
    sheet = sheet_of((folder / "frames.jsonl").read_bytes(), tmp_path)
    sent = [
        item["output"]
        for line in (folder / "reached_model.jsonl").read_text(encoding="utf-8").splitlines()
        for item in json.loads(line).get("new_items") or ()
        if str(item.get("type", "")).endswith("_output")
    ]
    kept = [one["content"] for one in sheet.last("tool_result") if "content" in one]
    assert [[part["text"] for part in one] for one in sent] == [
        [part["text"] for part in one] for one in kept
    ]
    assert kept


# -- cases --------------------------------------------------------------------------------------------------------


def rows(path: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "callsheet", "show", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def holds(sheet: Sheet, fact: str, wanted: Any, path: Path) -> None:
    """Holds one fact; one that is not named here fails."""
    calls, results = sheet.last("tool_call"), sheet.last("tool_result")
    permissions = sheet.last("permission")
    match fact:
        case "calls":
            assert len(calls) == wanted
        case "results":
            assert len(results) == wanted
        case "paired":
            assert sheet.tally().paired == wanted
        case "permissions":
            assert len(permissions) == wanted
        case "compact_permissions":
            assert sum("permission" in one for one in results) == wanted
        case "permission":
            assert {name: permissions[0].get(name) for name in wanted} == wanted
        case "permission_states":
            found = {one["requestId"]: [one["status"], one.get("decision")] for one in permissions}
            assert found == wanted
        case "result_status":
            assert {one["callId"]: one["status"] for one in results} == wanted
        case "turn_diffs":
            assert sum(one["scope"] == "turn" for one in sheet.last("file_change")) == wanted
            assert all("callId" not in one for one in sheet.last("file_change") if one["scope"] == "turn")
        case "applied_paths":
            applied = [
                one for one in sheet.last("file_change") if one["state"] == "applied" and "callId" in one
            ]
            assert [change["path"]["path"] for one in applied for change in one["changes"]] == wanted
        case "thoughts":
            assert len(sheet.last("reasoning")) == wanted
        case "thought_body":
            assert [part["text"] for one in sheet.last("reasoning") for part in one["content"]] == [wanted]
        case "thought_label":
            (row,) = [row for row in rows(path) if row["kind"] == "thought"]
            assert wanted in json.dumps(row)
        case "absent":
            told = {"permission": permissions, "exec": [one.get("exec", {}) for one in results]}
            told["thought"] = [
                {**one, "duration": one["durationMs"]} for one in sheet.of("reasoning") if "durationMs" in one
            ]
            for member in wanted:
                kind, name = member.split(".")
                assert [one for one in told[kind] if name in one] == []
        case _:
            pytest.fail(f"nobody checks {fact}")


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, shared: Path, tmp_path: Path) -> None:
    folder = shared / "cases" / name
    path = folder / "frames.jsonl"
    sheet = sheet_of(path.read_bytes(), tmp_path)
    for fact, wanted in json.loads((folder / "case.json").read_text(encoding="utf-8"))["expected"][
        "facts"
    ].items():
        holds(sheet, fact, wanted, path)
