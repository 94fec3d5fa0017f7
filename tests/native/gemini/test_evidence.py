"""The audit finds every fact of Gemini CLI's chats, and names every lie about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.audit.telling import bundles_of, held, unproven
from tests.native.gemini.test_chats import HEAD, call, message, response

from callsheet.audit import audit_bundle
from callsheet.records.bundle import Bundle

ROOT = Path(__file__).parents[3]
GRID = [[{"text": "ok", "bold": True}, {"text": "!"}], [{"text": "bye"}]]
DIFF = {"fileName": "a", "filePath": "/home/dev/a", "fileDiff": "-a\n+b\n", "isNewFile": False}
BY_OTHER_MEANS = {("tool_result", "content"): "proven by the user's message and a reply, not by the entry alone"}


def told(id: str, *, error: str | None = None, **response: Any) -> list[Any]:
    said = {"error": error} if error is not None else response or {"output": "hi"}
    return [{"functionResponse": {"id": id, "name": "run_shell_command", "response": said}}]


def whole() -> list[dict[str, Any]]:
    """A chat with everything in it that the importer makes records of."""
    undated = call("c2", resultDisplay=GRID)
    del undated["timestamp"]
    broken = call("c6", status="error", result=told("c6", error="No."), resultDisplay={**DIFF, "isNewFile": True})
    later = call("c7", status="later", resultDisplay=DIFF)
    dated = {"subject": "Plan", "description": "Look first.", "timestamp": "2026-11-30T10:00:00.500Z"}
    calls = [
        call(),
        undated,
        call("c3", args={"n": 12345678901234567890}, resultDisplay={"custom": 1}),
        call("c4", name="replace", resultDisplay=DIFF),
        call("c5", status="cancelled", result=None, resultDisplay=[1]),
        broken,
        later,
        call("same"),
        call("same", args={"command": "echo again"}, resultDisplay=DIFF),
        call(None, result=None),
        call("c8", status="executing", result=None),
    ]
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAEC"}}
    ids = ("c1", "c2", "c4")
    return [
        message("user", "u0", content=[{"text": "<session_context>\nhere\n</session_context>"}]),
        message("user", "u1", content=[{"text": "Go."}, picture, {"fileData": {"fileUri": "x"}}]),
        message("info", "i1", content="Switched."),
        message("model", "u2", content=..., parts=[{"text": "Well."}]),
        message("gemini", "m1", thoughts=[dated, {"subject": "And"}], tokens={"input": 3, "cached": 1}, toolCalls=calls),
        *(response(id, output="hi") for id in ids),
        response("c3", rows=[1, 2]),
        response("c6", error="No."),
        response("gone", error="was canceled by the user"),
        response("lost", output="words"),
        response("odd", words=1),
        message("user", "u9", content=[{"functionResponse": {"name": "x", "response": {"output": "nameless"}}}]),
        message("gemini", "m2", content="Done.", toolCalls=[call("same", name="glob")]),
    ]


def stripped(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value is not ...}


@pytest.fixture
def made(tmp_path: Path) -> list[Bundle]:
    """The same chat line by line, replaced as a whole, and as an older document."""
    entries = [stripped(one) for one in whole()]
    again = {**entries[4], "toolCalls": [*entries[4]["toolCalls"], call("c9")]}
    lines = [HEAD, *entries, {"$rewindTo": "m2"}, again, {"$set": {"lastUpdated": "x"}}, {"kind": 1}]
    files = {
        "session-1.jsonl": "\n".join(map(json.dumps, lines)),
        "session-2.jsonl": "\n".join(map(json.dumps, [{"$set": {"sessionId": "s2", "messages": entries}}, HEAD])),
        "session-3.json": json.dumps({**HEAD, "sessionId": "s3", "messages": entries}, indent=1),
        "session-4.jsonl": "\n".join(map(json.dumps, [*entries[1:], HEAD, message("odd", "o1")])),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return [one for name in files for one in bundles_of("gemini", [tmp_path / name], tmp_path / "out" / name)]


def test_no_lie_about_any_chat_lies_unseen(made: list[Bundle]) -> None:
    assert len(made) == 4
    assert all(held(bundle) > 300 for bundle in made)


def test_the_chats_have_every_fact_of_the_registry(made: list[Bundle], monkeypatch: pytest.MonkeyPatch) -> None:
    left = unproven("gemini", made, monkeypatch)
    missing = [one for one in left if (one.record, one.member) not in BY_OTHER_MEANS]
    assert not missing, "\n".join(f"{one.record} {one.role} {one.member} {one.pointer} {one.when}" for one in missing)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_call_or_an_orphan_that_is_left_out_is_missed(made: list[Bundle], number: int) -> None:
    bundle = made[number]
    (entry,) = bundle.manifest.streams
    path = bundle.path / entry.file
    kept = [line for line in path.read_bytes().splitlines() if not {b'"callId":"c4"', b'"callId":"gone"'} & set(line.split(b","))]
    path.write_bytes(b"".join(line + b"\n" for line in kept))
    found = [one.message for one in audit_bundle(Bundle(bundle.path)) if "is made of number" in one.message]
    assert sorted(one.partition("no ")[2].partition(" ")[0] for one in found) == [
        "tool_call",
        "tool_result",
        "tool_result",
    ]


def test_the_examples_hold(tmp_path: Path) -> None:
    bundles = bundles_of("gemini", [ROOT / "examples" / "gemini"], tmp_path)
    assert bundles
    assert sum(held(bundle) for bundle in bundles) > 100


@pytest.mark.parametrize("place", ["captures/gemini-stored", "corpus/gemini"])
def test_real_chats_hold(shared: Path, tmp_path: Path, place: str) -> None:
    bundles = bundles_of("gemini", [shared / place], tmp_path)
    assert bundles
    for bundle in bundles:
        assert list(audit_bundle(bundle)) == []
    small = [bundle for bundle in bundles if sum((one.size or 0) for one in bundle.manifest.sources) < 50_000]
    assert sum(held(bundle) for bundle in small) > 1000
