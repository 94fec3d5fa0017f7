"""Chats with parts that no reader keeps: each is kept exactly."""

from __future__ import annotations

import json
from pathlib import Path

from tests.native.gemini.test_chats import HEAD, call, message
from tests.native.held import held


def test_members_that_stand_twice(tmp_path: Path) -> None:
    """One reader sees the first of them, another the last: the whole text goes to a blob (ASR-035)."""
    chat = {**HEAD, "messages": [message("gemini", toolCalls=[call("c1")])]}
    text = json.dumps(chat, indent=2)
    assert '"output": "hi"' in text
    text = text.replace('"output": "hi"', '"output": "hi", "output": "hi"')
    path = tmp_path / "session-1.json"
    path.write_text(text)
    found = held(path, tmp_path / "out", "gemini")
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["capture"]["raw"]["state"] == "external"
    blob = result["capture"]["raw"]["blob"]["blob"].removeprefix("sha256:")
    (kept_at,) = (tmp_path / "out").glob(f"*/blobs/sha256/{blob[:2]}/{blob[2:]}")
    assert kept_at.read_text().count('"output"') == 2


def test_an_entry_without_content_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    bare = {"id": "m1", "type": "user"}
    chat = {**HEAD, "type": "gemini", "messages": [message("user", content="Hi."), bare]}
    path.write_text(json.dumps(chat))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["author"] for one in found if one["type"] == "message"] == ["user"]
