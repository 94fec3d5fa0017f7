"""Whole bundles whose records hold lists and objects where texts belong: findings, never an exception."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet.audit import Audit
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCES = (
    "claude-code/frames/permissions.jsonl",
    "claude-code/projects/-home-dev-acme-app/f43fa53c-8297-45af-aecf-b2596db5960c.jsonl",
    "acp/codex-v2-bg.jsonl",
    "codex/exec/mixed-0.36.0.jsonl",
    "codex/sessions/2026/11/30/rollout-2026-11-30T22-06-13-01a22e7e-86dd-7473-99c3-edfbf04c64e7.jsonl",
)
ODD: tuple[Any, ...] = ([], {"x": []})
ROUNDS = 30


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a record, the outer ones later."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield from places(inner, (*path, step))
    if path:
        yield path


def damaged(record: dict[str, Any], turn: int) -> dict[str, Any]:
    """A record with one place of it replaced, another in every turn."""
    found = list(places(record))
    path = found[turn * 7 % len(found)]
    at: Any = record
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = ODD[turn % len(ODD)]
    return record


@pytest.mark.parametrize("source", SOURCES)
def test_records_of_any_shape(source: str, tmp_path: Path) -> None:
    (imported,) = import_sources([EXAMPLES / source], tmp_path)
    assert isinstance(imported, Imported)
    (stream, *_) = sorted((imported.bundle / "streams").iterdir(), key=lambda file: -file.stat().st_size)
    true = stream.read_bytes().splitlines()
    for turn in range(ROUNDS):
        lines = [json.dumps(damaged(json.loads(line), turn)) for line in true]
        stream.write_text("".join(f"{line}\n" for line in lines))
        with Audit(Bundle(imported.bundle)) as audit:
            assert list(audit.findings())
    shutil.rmtree(imported.bundle)


def test_a_call_id_may_be_anything(tmp_path: Path) -> None:
    (imported,) = import_sources([EXAMPLES / SOURCES[2]], tmp_path)
    assert isinstance(imported, Imported)
    stream = imported.bundle / "streams" / f"{imported.stream}.jsonl"
    call = {"type": "tool_call", "seq": 1, "id": "r1", "callId": [], "callIdSource": "native"}
    stream.write_bytes(stream.read_bytes() + json.dumps(call).encode() + b"\n")
    with Audit(Bundle(imported.bundle)) as audit:
        assert list(audit.findings())
