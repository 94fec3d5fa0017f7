"""Sessions and frame logs with lines that were moved, cut or changed: every fact that is left has evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.audit.frames import Frames
from tests.native.claude_code.conftest import Made
from tests.native.held import Record, held


def stored(tmp_path: Path, made: Made, name: str = "5e551011-0000-4000-8000-000000000001") -> list[Record]:
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(made.data)
    return held(path, tmp_path / "out", "claude-code")


def framed(tmp_path: Path, text: str) -> list[Record]:
    path = tmp_path / "frames.jsonl"
    path.write_text(text)
    return held(path, tmp_path / "out", "claude-code-stream")


def of(found: list[Record], kind: str) -> list[Record]:
    return [one for one in found if one["type"] == kind]


def test_attachments_of_kinds_that_nobody_knows(tmp_path: Path) -> None:
    made = Made()
    rendered = [{"content": "Mind the gap."}]
    for kind in ({"type": "later"}, {"type": "hook_later"}, {}, "later"):
        made.add("attachment", attachment=kind, rendered=rendered)
    made.add("attachment", attachment={"type": "later"})
    made.add("attachment", attachment=["later"])
    found = stored(tmp_path, made)
    assert [one["author"] for one in of(found, "message")] == ["harness", "hook", "harness", "harness"]
    assert [one["nativeType"] for one in of(found, "unmapped")] == ["attachment/later", "attachment"]


@pytest.mark.parametrize("message", ["words", {"content": {"a": 1}}, {"content": 2**70}])
def test_messages_of_unusual_shapes_are_kept_whole(tmp_path: Path, message: object) -> None:
    made = Made()
    made.add("user", message=message)
    made.add("assistant", message=message)
    assert [one["nativeType"] for one in of(stored(tmp_path, made), "unmapped")] == ["user", "assistant"]


def test_a_reply_that_is_written_twice(tmp_path: Path) -> None:
    """The second time it stands after the result: so the result was sent."""
    made = Made()
    made.prompt()
    made.call("t1", message="m1")
    made.result("t1", "ok")
    made.said("Done.", message="m2")
    made.lines.insert(1, made.lines[-1])
    (result,) = of(stored(tmp_path, made), "tool_result")
    assert result["content"] == [{"type": "text", "text": "ok"}]


def test_a_torn_line_names_no_session(tmp_path: Path) -> None:
    made = Made()
    made.prompt()
    made.lines = [made.lines[0][:-20]]
    found = stored(tmp_path, made, "copy")
    assert [one["type"] for one in found] == ["session", "gap"]
    assert found[0]["nativeSessionId"] == "copy"


def test_a_member_twice_is_kept_in_a_blob(tmp_path: Path) -> None:
    made = Made()
    made.raw(b'{"type":"later","sessionId":"5e551011-0000-4000-8000-000000000001","a":{"b":1,"b":2}}')
    (kept,) = of(stored(tmp_path, made), "unmapped")
    assert "value" not in kept
    assert kept["capture"]["value"]["state"] == "external"


def test_lines_without_a_frame_have_no_type(tmp_path: Path) -> None:
    """Nor has a frame that nobody is known to have sent."""
    log = Frames("t")
    log.init()
    log.result("t1")
    told = json.loads(log.text.splitlines()[1])
    lines = [{**told, "frame": "x"}, {"t": 1.0, "dir": "out"}, {**told, "dir": 1e308}]
    found = framed(tmp_path, log.text + "".join(json.dumps(line) + "\n" for line in lines))
    kept = {one["native"]["refs"][0]["line"]: one.get("nativeType") for one in of(found, "unmapped")}
    assert kept == {1: "system/init", 3: None, 4: None, 5: None}
    assert len(of(found, "tool_result")) == 1


def test_no_reply_shows_that_a_result_was_sent_whose_call_comes_later(tmp_path: Path) -> None:
    log = Frames("t")
    log.init()
    log.result("t1")
    log.said("m1", "Running it.")
    log.calls("m2", "t1", "Bash", {"command": "ls"})
    assert not any("content" in one for one in of(framed(tmp_path, log.text), "tool_result"))


def test_a_task_of_a_tool_that_nobody_knows(tmp_path: Path) -> None:
    """Whether it is a shell's or a monitor's is not said; names of tools may be of any type."""
    log = Frames("t")
    log.init()
    for number, name in enumerate(("Bash", "Monitor", "Later")):
        log.calls(f"m{number}", f"t{number}", name, {"command": "ls"}, tool_use_meta=[{"id": "t0", "tool_name": 7}])
        told = {"task_id": f"b{number}", "tool_use_id": f"t{number}", "task_type": "local_bash"}
        log.system("task_started", **told, is_backgrounded=True)
    log.calls("m9", "t9", "mcp__other__x", {}, tool_use_meta=[{"id": "t9", "tool_name": 7}])
    found = framed(tmp_path, log.text)
    assert [one.get("kind") for one in of(found, "terminal")] == ["shell", "monitor", None]
