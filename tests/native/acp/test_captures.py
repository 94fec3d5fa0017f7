"""Frame logs of real agents, and public ones: the kit's promises, and what the model got."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness.acp import ACP
from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.testing.check_harness import check_harness
from tests.native.acp.conftest import sheet_of


def captures(shared: Path) -> list[Path]:
    found = sorted((shared / "captures" / "acp").glob("*/frames.jsonl"))
    assert len(found) > 50
    return found


def calls_of(path: Path) -> dict[str, list[str]]:
    """Every final status that the agent sent live, by call, read without the product."""
    found: dict[str, list[str]] = {}
    replaying = False
    for line in path.read_bytes().splitlines():
        frame = json.loads(line).get("frame") or {}
        if frame.get("method") in ("session/load", "session/resume"):
            replaying = True
        update = (frame.get("params") or {}).get("update") or {}
        if "toolCallId" in update and not replaying:
            found.setdefault(update["toolCallId"], [])
            if update.get("status") in ("completed", "failed", "cancelled"):
                found[update["toolCallId"]].append(update["status"])
    return found


def test_captures_hold(shared: Path) -> None:
    for path in captures(shared):
        assert ACP.recognises("x", path.read_bytes()[:65536]), path
        assert not CLAUDE_CODE.recognises("x", path.read_bytes()[:65536]), path
        assert check_harness(ACP, path) == [], path


def test_every_status_is_the_agents_word(shared: Path) -> None:
    seen = 0
    for path in captures(shared):
        sheet = sheet_of(path.read_bytes())
        live: dict[str, Any] = {}
        for stream in sheet.streams:
            for one in sheet.last("tool_result", stream):
                if "inherited" not in one["native"]:
                    live[one["callId"]] = one["status"]
        for call, told in calls_of(path).items():
            assert live.get(call) == (told[-1] if told else None), (path, call)
            seen += 1
    assert seen > 80


def test_content_is_what_the_model_got(shared: Path) -> None:
    """Text that a record calls content stands in what the scripted model was sent."""
    proved = 0
    for path in captures(shared):
        sheet = sheet_of(path.read_bytes())
        sent = texts_sent(path.with_name("model.log"))
        for stream in sheet.streams:
            for one in sheet.last("tool_result", stream):
                for part in one.get("content", ()):
                    if any(part["text"] in words for words in sent):
                        proved += 1
                    else:
                        # Two results of one request: the log of requests kept the last one only.
                        assert "parallel" in path.parent.name, (path, part["text"])
    assert proved > 15


def texts_sent(log: Path) -> list[str]:
    found: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
            if value[:1] in "{[":
                try:
                    collect(json.loads(value))
                except ValueError:
                    return
        elif isinstance(value, list):
            for item in value:
                collect(item)
        elif isinstance(value, dict):
            for item in value.values():
                collect(item)

    for line in log.read_bytes().splitlines():
        collect(json.loads(line))
    return found


def test_refusals_stand_on_the_request_alone(shared: Path) -> None:
    refused = 0
    for path in captures(shared):
        sheet = sheet_of(path.read_bytes())
        assert all(one["status"] != "denied" for one in sheet.last("tool_result"))
        refused += sum(one.get("decision") == "reject_once" for one in sheet.last("permission"))
    assert refused > 5


def test_public_logs_hold(shared: Path) -> None:
    found = sorted((shared / "corpus" / "acp").rglob("*.jsonl"))
    assert found
    for path in found:
        assert check_harness(ACP, path) == [], path


@pytest.mark.parametrize("kind", ["codex"])
def test_other_frame_logs_are_not_taken(shared: Path, kind: str) -> None:
    found = sorted((shared / "captures" / kind).glob("*/*/app/frames.jsonl"))[:20]
    assert found
    assert not [path for path in found if ACP.recognises(path.name, path.read_bytes()[:65536])]
