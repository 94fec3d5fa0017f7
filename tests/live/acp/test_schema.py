"""Our client's frames and the toy agent's, held against the protocol's own published schemas (npm, Apache-2.0)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Raw
from tests.live.acp.house import log_of
from tests.live.npm import SDK
from tests.native.acp.playing import Play, replayed
from tests.native.acp.toys import nothing_here, run_toy

from callsheet.harness import LIVE
from callsheet.live import Policy
from callsheet.seam import Cancelled, Declined, FormAsked, NotServed, Serve, Served, Waiting
from callsheet.testing.live_run import run_turn

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


def validator(version: int, unstable: bool, name: str) -> Any:
    whole = schema(version, unstable)
    one = {"$schema": whole["$schema"], "$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}
    return jsonschema.Draft202012Validator(one)


@cache
def shapes(version: int, unstable: bool) -> dict[tuple[str, str], Any]:
    """Validators by method and part: Request, Response or Notification; and those of errors and ids."""
    found = {("", name): validator(version, unstable, name) for name in ("Error", "RequestId")}
    for name, told in schema(version, unstable)["$defs"].items():
        for part in ("Request", "Response", "Notification"):
            if "x-method" in told and name.endswith(part):
                found[(told["x-method"], part)] = validator(version, unstable, name)
    return found


def wrong(lines: list[bytes], version: int, unstable: bool, ours: bool) -> Iterator[str]:
    """What is wrong with one side's frames in a log: envelope, id, method, parameters, result, error.

    The first frame is looked at only when it is alone: it speaks both versions.
    """
    known = shapes(version, unstable)
    asked: dict[tuple[bool, str], str] = {}
    for line in lines:
        told = json.loads(line)
        client = told["dir"] == "client_to_agent"
        frame = told.get("frame")
        if not isinstance(frame, dict):
            if client == ours:
                yield "no frame"
            continue
        method, number = frame.get("method"), json.dumps(frame.get("id"))
        part, value = "Response", frame.get("result")
        if method is not None:
            part = "Request" if "id" in frame else "Notification"
            value = frame.get("params")
            asked[(client, number)] = method
        elif "error" in frame:
            method, part, value = "", "Error", frame["error"]
        else:
            method = asked.get((not client, number))
        if client != ours or (method == "initialize" and part == "Request" and len(lines) > 1):
            continue
        if frame.get("jsonrpc") != "2.0":
            yield f"{method}: jsonrpc is {frame.get('jsonrpc')!r}"
        if not isinstance(method, str):
            yield f"an answer to nothing: {number}" if method is None else f"method is {method!r}"
            continue
        checks = [(known.get((method, part)), value)]
        if "id" in frame:
            checks.append((known[("", "RequestId")], frame["id"]))
        for check, shown in checks:
            if check is not None:
                for error in check.iter_errors(shown):
                    yield f"{method} {part}: {error.message[:200]} at {list(error.absolute_path)}"
            elif not method.startswith("_"):
                yield f"{method}: version {version} has no such {part}"


def served(serve: Serve) -> Served | NotServed:
    return Served(Raw(json.dumps(SERVED[serve.method]).encode()))


def unhelpful(waiting: Waiting) -> Any:
    return Declined() if isinstance(waiting, FormAsked) else Cancelled()


# A version-1 schema lists the updates that it knows; these are of the unstable one.
@pytest.mark.parametrize(
    ("version", "script", "unstable"),
    [
        *((version, script, False) for version in (1, 2) for script in ("turn", "slow", "secret", "failing")),
        (1, "everything", True),
        (2, "everything", False),
        (2, "everything", True),
        (2, "single", False),
    ],
)
def test_both_sides_keep_to_the_schema(version: int, script: str, unstable: bool, tmp_path: Path) -> None:
    play = run_toy(
        version,
        script,
        tmp_path,
        serves=served,
        cancel_at=b"sleep 600" if script == "slow" else None,
        cancels=("c1", "c2") if script == "single" else (),
    )
    found = list(wrong(play.lines, version, unstable, ours=False))
    later = ["auth/status_update: version 2 has no such Notification"] if script == "everything" else []
    assert found == ([] if unstable else later)
    assert list(wrong(play.lines, version, unstable, ours=True)) == []
    for each in (1, 2):
        assert list(wrong(play.lines[:1], each, unstable, ours=True)) == []


@pytest.mark.parametrize("version", [1, 2])
def test_refusals_keep_to_the_schema(version: int, tmp_path: Path) -> None:
    play = run_toy(version, "everything", tmp_path, serves=nothing_here, answers=unhelpful)
    assert list(wrong(play.lines, version, True, ours=True)) == []


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
        assert list(wrong(play.lines, version, False, ours=True)) == [], path
        assert list(wrong(play.lines, version, True, ours=False)) == [] or "toy" in path.parent.name, path
        seen += len(play.lines)
    assert seen > 1000


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("policy", ["allow", "reject"])
def test_the_whole_live_shell_keeps_to_it(
    version: int, policy: Literal["allow", "reject"], tmp_path: Path
) -> None:
    """Files and terminals are served for true here, what is refused included."""
    agent = next(one for one in LIVE if one.name == "acp")
    toy = [sys.executable, "-m", "callsheet.testing.toy_agent", "--version", str(version), "everything"]
    ran = asyncio.run(run_turn(agent, toy, tmp_path / "out", cwd=tmp_path, port=Policy(policy)))
    lines = log_of(ran.bundle, tmp_path / "log.jsonl").read_bytes().splitlines()
    frames = [line for line in lines if json.loads(line)["dir"] != "recorder"]
    assert len(frames) > 60
    for ours in (True, False):
        assert list(wrong(frames, version, True, ours=ours)) == []


def test_settings_and_resumed_sessions_keep_to_it(tmp_path: Path) -> None:
    from callsheet.seam import Wish

    for version in (1, 2):
        for resume in (None, "old"):
            wish = Wish(cwd=str(tmp_path), mode="plan", model="large", resume=resume)
            play: Play = run_toy(version, "turn", tmp_path, wish=wish)
            assert list(wrong(play.lines, version, False, ours=True)) == []
            assert list(wrong(play.lines, version, False, ours=False)) == []
