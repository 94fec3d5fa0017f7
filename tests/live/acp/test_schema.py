"""Our client's frames and the toy agent's, held against the protocol's own published schemas (npm, Apache-2.0)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from tests.live.npm import SDK
from tests.native.acp.playing import Play, replayed
from tests.native.acp.toys import nothing_here, run_toy

from callsheet.seam import Cancelled, Declined, NotServed, Serve, Served, Waiting

jsonschema = pytest.importorskip("jsonschema", reason="needs the extra `live` (jsonschema)")
if not SDK.path.exists():
    pytest.skip(f"needs npm package {SDK.name} {SDK.version} (make test-live)", allow_module_level=True)

SERVED = {
    "fs/read_text_file": {"content": "two\n"},
    "fs/write_text_file": {},
    "terminal/create": {"terminalId": "terminal-1"},
    "terminal/output": {"output": "one\n", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}},
    "terminal/wait_for_exit": {"exitCode": 0, "signal": None},
    "terminal/kill": {},
    "terminal/release": {},
}


@cache
def schema(version: int, unstable: bool) -> dict[str, Any]:
    name = "schema.unstable.json" if unstable else "schema.json"
    told: dict[str, Any] = json.loads((SDK.folder / SDK.name / "schema" / f"v{version}" / name).read_text())
    return told


@cache
def shapes(version: int, unstable: bool) -> dict[tuple[str, str], Any]:
    """Validators by method and part: Request, Response or Notification."""
    whole = schema(version, unstable)
    found = {}
    for name, told in whole["$defs"].items():
        for part in ("Request", "Response", "Notification"):
            if "x-method" in told and name.endswith(part):
                one = {"$schema": whole["$schema"], "$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}
                found[(told["x-method"], part)] = jsonschema.Draft202012Validator(one)
    return found


def wrong(lines: list[bytes], version: int, unstable: bool, ours: bool) -> Iterator[str]:
    """What is wrong with one side's frames in a log."""
    known = shapes(version, unstable)
    asked: dict[tuple[bool, str], str] = {}
    for line in lines:
        told = json.loads(line)
        frame, client = told.get("frame"), told["dir"] == "client_to_agent"
        if not isinstance(frame, dict):
            continue
        method = frame.get("method")
        if method is not None:
            part = "Request" if "id" in frame else "Notification"
            value = frame.get("params")
            asked[(client, json.dumps(frame.get("id")))] = method
        else:
            method = asked.get((not client, json.dumps(frame.get("id"))), "")
            part, value = "Response", frame.get("result")
            if "error" in frame:
                continue
        if client == ours and (method, part) in known:
            for error in known[(method, part)].iter_errors(value):
                yield f"{method} {part}: {error.message[:200]} at {list(error.absolute_path)}"


def served(serve: Serve) -> Served | NotServed:
    return Served(Raw(json.dumps(SERVED[serve.method]).encode()))


def unhelpful(waiting: Waiting) -> Any:
    return Cancelled() if waiting.request_id != "4" else Declined()


# A version-1 schema lists the updates that it knows; these are of the unstable one.
@pytest.mark.parametrize(
    ("version", "script", "unstable"),
    [
        *((version, script, False) for version in (1, 2) for script in ("turn", "slow", "secret", "failing")),
        (1, "everything", True),
        (2, "everything", False),
        (2, "everything", True),
    ],
)
def test_both_sides_keep_to_the_schema(version: int, script: str, unstable: bool, tmp_path: Path) -> None:
    play = run_toy(
        version, script, tmp_path, serves=served, cancel_at=b"sleep 600" if script == "slow" else None
    )
    first, *rest = play.lines
    assert list(wrong(rest, version, unstable, ours=False)) == []
    assert list(wrong(rest, version, unstable, ours=True)) == []
    # The first frame speaks both versions.
    for each in (1, 2):
        assert list(wrong([first], each, unstable, ours=True)) == []


@pytest.mark.parametrize("version", [1, 2])
def test_refusals_keep_to_the_schema(version: int, tmp_path: Path) -> None:
    play = run_toy(version, "everything", tmp_path, serves=nothing_here, answers=unhelpful)
    assert list(wrong(play.lines[1:], version, True, ours=True)) == []


@pytest.mark.parametrize("version", [1, 2])
def test_the_toy_speaks_every_kind_of_update_and_request(version: int, tmp_path: Path) -> None:
    play = run_toy(version, "everything", tmp_path, serves=served)
    sent: Counter[str] = Counter()
    for line in play.lines:
        frame = json.loads(line)["frame"]
        if json.loads(line)["dir"] == "agent_to_client" and "method" in frame:
            sent[frame["method"]] += 1
            sent[((frame.get("params") or {}).get("update") or {}).get("sessionUpdate", "")] += 1
    told = schema(version, True)["$defs"]
    kinds = [
        one["properties"]["sessionUpdate"]["const"]
        for one in told["SessionUpdate"].get("oneOf", told["SessionUpdate"].get("anyOf"))
        if "const" in one.get("properties", {}).get("sessionUpdate", {})
    ]
    methods = {
        one["x-method"] for one in told.values() if one.get("x-side") == "client" and "x-method" in one
    }
    methods = {one for one in methods if not one.startswith("mcp/")}
    assert len(kinds) > 15
    assert [kind for kind in kinds if not sent[kind]] == []
    assert [method for method in methods if not sent[method]] == []


def test_the_schema_finds_what_is_wrong(tmp_path: Path) -> None:
    for version in (1, 2):
        assert list(wrong(run_toy(version, "bad", tmp_path).lines, version, True, ours=False))


def test_our_client_keeps_to_it_with_every_real_agent(shared: Path) -> None:
    seen = 0
    for path in sorted((shared / "captures" / "acp").glob("*/frames.jsonl")):
        play, _ = replayed(path)
        version = 2 if "-v2-" in path.parent.name else 1
        assert list(wrong(play.lines[1:], version, False, ours=True)) == [], path
        assert list(wrong(play.lines[1:], version, True, ours=False)) == [] or "toy" in path.parent.name, path
        seen += len(play.lines)
    assert seen > 1000


def test_settings_and_resumed_sessions_keep_to_it(tmp_path: Path) -> None:
    from callsheet.seam import Wish

    for version in (1, 2):
        for resume in (None, "old"):
            wish = Wish(cwd=str(tmp_path), mode="plan", model="large", resume=resume)
            play: Play = run_toy(version, "turn", tmp_path, wish=wish)
            assert list(wrong(play.lines[1:], version, False, ours=True)) == []
            assert list(wrong(play.lines[1:], version, False, ours=False)) == []
