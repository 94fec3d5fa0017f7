"""The audit finds every fact of OpenCode's stores, and names every lie about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.audit.telling import bundles_of, held, unproven
from tests.native.opencode.test_stores import INFO, Talk, database, export, message, storage, talk_of, text, tool

from callsheet.records.bundle import Bundle

ROOT = Path(__file__).parents[3]
FILES = {
    "files": [
        {"filePath": "/home/dev/acme-app/a", "type": "update", "diff": "-a\n+b\n"},
        {"file": "/b", "type": "move", "movePath": "/home/dev/acme-app/c", "patch": "-c\n"},
        {"type": "add"},
    ]
}
DIFF = {"filediff": {"file": "/home/dev/acme-app/a"}, "diff": "-x\n+y\n"}
STARTED = {"time": {"start": 1796032800005}}
CREATED = {"time": {"created": 1796032800006}}
TODOS = {"todos": [{"content": "One", "status": "completed"}, {"status": "pending"}, {"content": "Two", "status": "pending"}]}


BROKEN = ("session/p1/ses_1.json", "msg_4.json")
"""Files that cannot be read: the session is known by the name of its file, parts by the message that they name."""


def whole() -> Talk:
    """A conversation with everything in it that the importer makes records of."""
    asked = [
        text("prt_1", "Go."),
        {"id": "prt_2", "type": "file", "mime": "image/png", "url": "data:image/png;base64,AAEC", "filename": "a.png"},
        {"id": "prt_3", "type": "file", "mime": "text/plain", "url": "file:///home/dev/a.txt", "filename": "a.txt"},
        text("prt_4", "A reminder.", synthetic=True, time={"start": 1796032800001}),
    ]
    parts: list[dict[str, Any]] = [
        {"id": "prt_5", "type": "step-start"},
        {"id": "prt_6", "type": "reasoning", "text": "Hm.", "time": {"start": 1796032800002}},
        tool("prt_7"),
        tool("prt_8", "c2", "apply_patch", metadata=FILES),
        tool("prt_9", "c3", "edit", metadata=DIFF),
        tool("prt_a", "c4", "write", metadata={"filepath": "/home/dev/acme-app/n", "exists": False}, status="error", error="No."),
        tool("prt_b", "c5", "todowrite", metadata=TODOS),
        tool("prt_c", "c6", "task", metadata={"sessionId": "ses_2"}, input={"description": "Look", "prompt": "Look."}),
        tool("prt_d", "c7", "task", metadata={"sessionId": "ses_9"}, status="error", error="No."),
        tool("prt_e", "same", metadata={**DIFF, **TODOS, "sessionId": "ses_7"}),
        tool("prt_f", "same", status="later", time={"start": 1796032800003}, attachments=[{"url": "x"}]),
        {key: value for key, value in tool("prt_o").items() if key != "callID"},
        tool("prt_g", "c8", "bash", status="running", output=..., metadata=..., input={}, raw='{"comm'),
        tool("prt_h", "c9", "bash", input={"n": 12345678901234567890}, metadata={"output": "shown", "exit": None}),
        {"id": "prt_i", "type": "step-finish", "tokens": {"input": 3, "cache": {"read": 1}}, "cost": 0.5, **STARTED},
        {"id": "prt_p", "type": "step-finish", "tokens": {"input": 4}, **CREATED},
        {"id": "prt_j", "type": "patch", "hash": "x", "files": ["/home/dev/acme-app/a", "/b"], **STARTED},
        {"id": "prt_q", "type": "patch", "hash": "y", "files": ["/b"], **CREATED},
        {"id": "prt_k", "type": "compaction", "auto": True, **STARTED},
        {"id": "prt_l", "type": "compaction", "auto": False, **CREATED},
        {"id": "prt_m", "type": "retry", "attempt": 1, **STARTED},
        {"id": "prt_r", "type": "reasoning", "text": "So.", **CREATED},
        text("prt_s", "Well.", **CREATED),
    ]
    broken = message("msg_3", "assistant", error={"name": "AbortedError", "data": {"message": "Aborted"}})
    other = message("msg_4", "assistant", error={"name": "OutputLengthError", "data": {}})
    return [
        (message("msg_1", "user"), asked),
        (message("msg_2", "assistant"), parts),
        (broken, []),
        (other, [text("prt_z", "Done.")]),
    ]


@pytest.fixture
def made(tmp_path: Path) -> list[Bundle]:
    """The same conversation in each of the stores; the database also has an event that names an unknown tool."""
    talk = whole()
    (tmp_path / "export.json").write_bytes(export(talk, {**INFO, "parentID": "ses_0"}))
    for path, data in storage(talk).items():
        file = tmp_path / path.removeprefix("/s/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if not path.endswith(BROKEN) else data[:-4])
    lost = tool("prt_n", "c10", "invalid", input={"tool": "question", "error": "gone"})
    talk[1][1].append(lost)
    event: dict[str, Any] = {"part": {**lost, "tool": "question"}}
    database(tmp_path / "opencode.db", talk, [event, {"part": {**lost}}])
    return [
        bundle
        for name in ("export.json", "storage", "opencode.db")
        for bundle in bundles_of("opencode", [tmp_path / name], tmp_path / "out" / name)
    ]


BY_OTHER_MEANS = {
    ("gap", "reason"): "a table that breaks off: see test_databases",
    ("tool_result", "content"): "proven by captures and a reply, not by the entry alone",
}


def test_no_lie_about_any_store_lies_unseen(made: list[Bundle]) -> None:
    assert len(made) == 3
    assert all(held(bundle) > 300 for bundle in made)


def test_the_stores_have_every_fact_of_the_registry(made: list[Bundle], monkeypatch: pytest.MonkeyPatch) -> None:
    left = unproven("opencode", made, monkeypatch)
    missing = [one for one in left if (one.record, one.member) not in BY_OTHER_MEANS]
    assert not missing, "\n".join(f"{one.record} {one.role} {one.member} {one.pointer} {one.when}" for one in missing)


def test_the_example_holds(tmp_path: Path) -> None:
    (bundle,) = bundles_of("opencode", [ROOT / "examples" / "opencode"], tmp_path)
    assert held(bundle) > 100


@pytest.mark.parametrize("place", ["captures/opencode-stored", "corpus/opencode"])
def test_real_stores_hold(shared: Path, tmp_path: Path, place: str) -> None:
    bundles = bundles_of("opencode", [shared / place], tmp_path)
    assert bundles
    assert sum(held(bundle) for bundle in bundles) > 400


def test_a_part_that_is_left_out_is_missed(made: list[Bundle]) -> None:
    """Counts: without its call and result, the tool's part is a finding, whatever else cites its document."""
    from callsheet.audit import audit_bundle

    bundle = made[0]
    (entry,) = bundle.manifest.streams
    path = bundle.path / entry.file
    lines = [line for line in path.read_bytes().splitlines() if b'"callId":"c3"' not in line]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    found = [one.message for one in audit_bundle(Bundle(bundle.path)) if "number" in one.message]
    assert [message.partition(": ")[2] for message in found] == [
        "no tool_call is made of number 5 on this line",
        "no tool_result is made of number 5 on this line",
    ]
    assert json.loads(lines[0])["type"] == "session"
