"""The bug-report cases about this protocol: every fact of each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness.acp import ACP
from callsheet.testing.check_harness import check_harness
from tests.native.acp.conftest import Sheet, sheet_of

CASES = ("011-acp-left-in-progress", "013-acp-v1-two-tool-call-same-id", "027-acp-permission-before-call")


def rows(path: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "callsheet", "show", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def holds(sheet: Sheet, fact: str, wanted: Any, path: Path) -> None:
    """Holds one fact; one that is not named here fails."""
    tally = sheet.tally()
    if fact in ("calls", "results", "paired", "dangling"):
        counted = {"calls": "tool_call", "results": "tool_result"}
        found: Any = len(sheet.last(counted[fact])) if fact in counted else getattr(tally, fact)
        assert found == wanted
    elif fact == "permissions":
        assert len(sheet.last("permission")) == wanted
    elif fact == "permission":
        record = sheet.one("permission")
        assert {name: record.get(name) for name in wanted} == wanted
    elif fact in ("title", "input"):
        assert sheet.one("tool_call")[fact] == wanted
    elif fact == "result_status":
        assert {one["callId"]: one["status"] for one in sheet.last("tool_result")} == wanted
    elif fact == "absent":
        for member in wanted:
            kind, name = member.split(".")
            assert name not in sheet.one(kind)
    elif fact == "live_rows_after_end":
        assert len([row for row in rows(path) if row["state"] == "running"]) == wanted
    elif fact == "turn_stop_reason":
        assert sheet.one("turn")["reason"] == wanted
    elif fact == "must_not_render":
        states = {row["state"] for row in rows(path) if row.get("callId")}
        assert states == {"unconfirmed"}
    else:
        pytest.fail(f"nobody checks {fact}")


@pytest.mark.parametrize("name", CASES)
def test_case(shared: Path, name: str) -> None:
    folder = shared / "cases" / name
    case = json.loads((folder / "case.json").read_bytes())
    path = folder / case["input"][0]
    sheet = sheet_of(path.read_bytes())
    for fact, wanted in case["expected"]["facts"].items():
        holds(sheet, fact, wanted, path)
    assert check_harness(ACP, path) == []
