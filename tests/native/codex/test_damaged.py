"""Threads with lines that were changed: a record says what its own lines say."""

from __future__ import annotations

from pathlib import Path

from tests.native.codex.conftest import Made, thread
from tests.native.held import held


def test_an_agent_that_is_named_anew(tmp_path: Path) -> None:
    made = Made()
    made.meta()
    made.call("spawn", "spawn_agent", {"message": "look"})
    for kind, where in (("started", "/root/looker"), ("completed", "/root/lister"), ("completed", None)):
        item = {"type": "SubAgentActivity", "id": "spawn", "kind": kind, "agent_thread_id": thread(2)}
        told = item | ({"agent_path": where} if where else {})
        made.add("event_msg", type="item_completed", thread_id=made.thread, item=told)
    path = tmp_path / f"rollout-2026-11-30T10-00-01-{made.thread}.jsonl"
    path.write_bytes(made.data)
    found = held(path, tmp_path / "out", "codex")
    names = [one["name"] for one in found if one["type"] == "subagent"]
    assert names == ["/root/looker", "/root/lister", "/root/lister"]


def test_what_the_person_typed_is_told_by_events_alone(tmp_path: Path) -> None:
    made = Made(version="0.63.0", paginated=False)
    made.meta()
    made.add("later", type="user_message", message="other words")
    made.said("words", "user")
    path = tmp_path / f"rollout-2026-11-30T10-00-01-{made.thread}.jsonl"
    path.write_bytes(made.data)
    found = held(path, tmp_path / "out", "codex")
    assert [one["author"] for one in found if one["type"] == "message"] == ["user"]
