"""Who started whom: an agent's thread may speak before any frame names the one that started it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.native.codex.frames import CWD, THREAD, Wire, sheet_of

from callsheet.audit import audit_bundle
from callsheet.harness._port.attested import Launch
from callsheet.harness.codex.live import CODEX_AGENT
from callsheet.live import recover
from callsheet.live.recorder import Recorder
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.testing.check_live import imports_alike

CHILD = "01a20000-0000-7000-8000-0000000000cc"
OTHER = "01a20000-0000-7000-8000-0000000000dd"
Said = Callable[[Wire], None]


def speaks(wire: Wire, thread: str = CHILD) -> None:
    wire.tell("item/completed", thread=thread, item={"type": "agentMessage", "id": "m", "text": "Hi."})


def spawned(wire: Wire, child: str = CHILD, thread: str = THREAD) -> None:
    item: dict[str, Any] = {
        **{"type": "collabAgentToolCall", "id": f"spawn {child}", "tool": "spawnAgent", "prompt": None},
        **{
            "senderThreadId": thread,
            "receiverThreadIds": [child],
            "agentsStates": {child: {"status": "running"}},
        },
    }
    wire.tell("item/started", thread=thread, item={**item, "status": "inProgress"})
    wire.tell("item/completed", thread=thread, item={**item, "status": "completed"})


def acts(wire: Wire) -> None:
    wire.item(
        "completed", "subAgentActivity", "act", kind="started", agentThreadId=CHILD, agentPath="/root/a"
    )


def described(wire: Wire) -> None:
    thread = {"id": CHILD, "cwd": CWD, "cliVersion": "0.163.0", "parentThreadId": THREAD}
    wire.line("server", {"method": "thread/started", "params": {"thread": thread}})


def waited(wire: Wire) -> None:
    item: dict[str, Any] = {
        **{
            "type": "collabAgentToolCall",
            "id": "wait",
            "tool": "wait",
            "status": "completed",
            "prompt": None,
        },
        **{
            "senderThreadId": THREAD,
            "receiverThreadIds": [CHILD],
            "agentsStates": {CHILD: {"status": "completed"}},
        },
    }
    wire.tell("item/completed", item=item)


def recorded(wire: Wire, tmp_path: Path, *, killed: bool = False) -> Path:
    """The frames as a recorder gets them; the bundle keeps every promise, and its log's import is alike."""
    recorder = Recorder.create(tmp_path / "live", CODEX_AGENT)
    recorder.own(Launch(program="codex"))  # which the head cites too
    for number, line in enumerate(wire.lines):
        told = json.loads(line)
        frame = json.dumps(told["frame"]).encode()
        recorder.frame(
            frame, frame, from_agent=told["dir"] == "server", ts=f"2026-11-30T10:00:{number % 60:02}Z"
        )
        recorder.flush()
    if not killed:
        recorder.close()
        recorder.seal()
    recorder.release()
    if killed:
        found = recover(recorder.folder, (CODEX_AGENT,))
        assert found is not None
        assert found.same
    bundle = Bundle(recorder.folder)
    assert list(check_bundle(bundle)) == []
    assert list(audit_bundle(bundle)) == []
    assert imports_alike(CODEX_AGENT, recorder.folder) == []
    return recorder.folder


def heads(folder: Path) -> dict[str, dict[str, Any]]:
    bundle = Bundle(folder)
    found = {one.id: json.loads(bundle.read(one.file).splitlines()[0]) for one in bundle.manifest.streams}
    for entry in bundle.manifest.streams:
        above = found[entry.id].get("parent", {}).get("session")
        assert entry.parent == (above if above in found else None)
    return found


@pytest.mark.parametrize("order", [(speaks, spawned), (spawned, speaks)], ids=lambda order: order[0].__name__)
@pytest.mark.parametrize("names", [spawned, acts, described], ids=lambda one: one.__name__)
def test_a_child_has_its_parent_whoever_speaks_first(
    order: tuple[Said, ...], names: Said, tmp_path: Path
) -> None:
    wire = Wire(raw=True)
    for said in order:
        (names if said is spawned else said)(wire)
    waited(wire)
    sheet = sheet_of(wire.data, tmp_path)
    live = heads(recorded(wire, tmp_path))
    for found, lines_before in ((sheet.streams[CHILD][0], 1), (live[CHILD], 2)):
        assert found["parent"] == {"session": THREAD}
        (ref,) = (one for one in found["native"]["refs"] if one["role"] == "parent")
        assert CHILD in json.dumps(json.loads(wire.lines[ref["line"] - lines_before]))
    assert list(live) == [THREAD, CHILD]
    assert "parent" not in live[THREAD]


def test_at_any_cut_a_recording_and_its_import_are_alike(tmp_path: Path) -> None:
    wire = Wire(raw=True)
    for said in (speaks, acts, spawned, described, waited):
        said(wire)
    whole = wire.lines
    for cut in range(5, len(whole) + 1):
        wire.lines = whole[:cut]
        for killed in (False, True):
            found = heads(recorded(wire, tmp_path / f"{cut}{killed}", killed=killed))
            named = cut > 6
            assert (found.get(CHILD, {}).get("parent") is not None) == named, cut


def test_a_child_that_speaks_before_its_parent_does(tmp_path: Path) -> None:
    """A client that comes to a program which is running: the agent's frames are the first."""
    wire = Wire(raw=True)
    wire.lines = []
    speaks(wire)
    wire.turn("started", "inProgress")
    spawned(wire)
    assert sheet_of(wire.data, tmp_path).streams[CHILD][0]["parent"] == {"session": THREAD}
    live = heads(recorded(wire, tmp_path))
    assert live[CHILD]["parent"] == {"session": THREAD}
    assert list(live) == [THREAD, CHILD]


def test_a_thread_of_a_session_that_is_not_here(tmp_path: Path) -> None:
    wire = Wire()
    wire.lines = wire.lines[:2]
    described(wire)
    speaks(wire)
    sheet_of(wire.data, tmp_path)
    assert heads(recorded(wire, tmp_path))[CHILD]["parent"] == {"session": THREAD}


def test_agents_of_agents_and_nobody_s_ancestor_is_its_own(tmp_path: Path) -> None:
    wire = Wire(raw=True)
    speaks(wire, OTHER)
    speaks(wire)
    spawned(wire, OTHER, CHILD)
    spawned(wire)
    spawned(wire, THREAD, OTHER)  # says that the first thread is an agent of its agent's agent
    spawned(wire, CHILD, CHILD)
    found = heads(recorded(wire, tmp_path))
    assert {name: head.get("parent", {}).get("session") for name, head in found.items()} == {
        THREAD: None,
        CHILD: THREAD,
        OTHER: CHILD,
    }


def test_who_waits_for_an_agent_has_not_started_it(tmp_path: Path) -> None:
    wire = Wire(raw=True)
    waited(wire)
    speaks(wire)
    assert "parent" not in heads(recorded(wire, tmp_path))[CHILD]


@pytest.mark.parametrize(
    ("said", "path"), [(OTHER, "/parent/session"), (None, "/parent")], ids=["another", "missing"]
)
def test_the_audit_finds_a_parent_that_no_frame_names_and_one_that_is_missing(
    said: str | None, path: str, tmp_path: Path
) -> None:
    wire = Wire(raw=True)
    speaks(wire)
    spawned(wire)
    spawned(wire, OTHER)
    speaks(wire, OTHER)
    folder = recorded(wire, tmp_path)
    stream = folder / "streams" / f"{CHILD}.jsonl"
    text = stream.read_text(encoding="utf-8")
    told = f'"parent":{{"session":"{THREAD}"}},'
    assert told in text
    text = text.replace(told, f'"parent":{{"session":"{said}"}},' if said else "")
    stream.write_text(text, encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (entry,) = (one for one in manifest["streams"] if one["id"] == CHILD)
    del entry["parent"]
    if said:
        entry["parent"] = said
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert path in {one.path for one in audit_bundle(Bundle(folder))}


def test_who_writes_to_an_agent_has_not_started_it(tmp_path: Path) -> None:
    wire = Wire(raw=True)
    wire.call("send", "send_message")
    wire.item(
        "completed", "subAgentActivity", "send", kind="interacted", agentThreadId=CHILD, agentPath="/root/a"
    )
    speaks(wire)
    folder = recorded(wire, tmp_path)
    assert "parent" not in heads(folder)[CHILD]
    (agent,) = sheet_of(wire.data, tmp_path).last("subagent")
    assert (agent["agentId"], agent["status"], "callId" in agent) == (CHILD, "running", False)
