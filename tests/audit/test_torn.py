"""Lines that hold several records: what a writer left without a line end is read, and the audit finds all of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callsheet.audit import audit_bundle
from callsheet.audit.torn import values_on
from callsheet.audit.values import agree
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.registry import load
from callsheet.registry.when import follow

NATIVE = Path(__file__).parents[1] / "native"
FILES = [
    "claude_code_stream/2.0.76/perm_user/native/stdio.jsonl",
    "claude_code_stream/2.1.332/duplicate_ids/native/stdout.jsonl",
    "claude_code_stream/2.1.332/agent_background/native/stdio.jsonl",
    "codex/0.171.0/cells/native/exec.jsonl",
    "codex/0.36.0/mixed/native/exec.jsonl",
    *(
        f"codex/{version}/native/sessions/2026/11/30"
        for version in ("0.20.0/bare", "0.98.0/mixed", "0.163.0/commands", "0.171.0/cells")
    ),
]


def findings(source: Path, out: Path) -> list[str]:
    made = [one for one in import_sources([source], out) if not isinstance(one, Failure)]
    assert made
    return [str(one) for each in made for one in audit_bundle(Bundle(each.bundle))]


@pytest.mark.parametrize("joint", [b"", b"\r", b" "], ids=["fused", "CR", "blank"])
@pytest.mark.parametrize("file", FILES)
def test_records_that_share_a_line_are_found_again(file: str, joint: bytes, tmp_path: Path) -> None:
    found = NATIVE / file
    source = found if found.is_file() else next(iter(sorted(found.glob("*.jsonl"))))
    lines = source.read_bytes().splitlines()
    copy = tmp_path / source.name
    # The first two stand alone: a file is known by its first lines.
    copy.write_bytes(b"\n".join([*lines[:2], joint.join(lines[2:-2]), *lines[-2:]]) + b"\n")
    assert findings(copy, tmp_path / "out") == []


@pytest.mark.parametrize("file", FILES)
def test_a_record_after_a_torn_one_is_found_again(file: str, tmp_path: Path) -> None:
    found = NATIVE / file
    source = found if found.is_file() else next(iter(sorted(found.glob("*.jsonl"))))
    lines = source.read_bytes().splitlines()
    torn = [
        line[: 2 * len(line) // 3] + after for line, after in zip(lines[2:-1:2], lines[3::2], strict=False)
    ]
    copy = tmp_path / source.name
    copy.write_bytes(b"\n".join([*lines[:2], *torn]) + b"\n")
    assert findings(copy, tmp_path / "out") == []


def test_a_part_of_a_torn_record_is_no_record() -> None:
    whole = load("codex").marks.whole
    torn = b'{"timestamp":"t","type":"response_item","payload":{"type":"function_call","call_id":"c"},'
    after = b'{"type":"event_msg","payload":{"type":"x"}}'
    assert [(one.start, one.data) for one in values_on(torn + after, whole)] == [(len(torn), after)]
    assert list(values_on(torn + after, [])) == []
    assert list(values_on(b"\xff" + after, whole)) == []
    assert [follow(one.value, "/type") for one in values_on(after, [])] == ["event_msg"]


def test_values_of_any_depth_are_compared() -> None:
    def nested(depth: int, leaf: object) -> object:
        for _ in range(depth):
            leaf = [{"a": leaf}]
        return leaf

    assert agree(nested(5000, 1), nested(5000, 1))
    assert not agree(nested(5000, 1), nested(5000, 2))
    assert not agree(nested(5000, 1), nested(5001, 1))


@pytest.mark.parametrize("depth", [300, 900])
def test_what_is_nested_deeply_is_audited(depth: int, tmp_path: Path) -> None:
    lines = (NATIVE / FILES[1]).read_bytes().splitlines()
    deep = "[" * depth + "]" * depth
    lines += [
        line.replace(b"}", b',"deep":' + deep.encode() + b"}", 1) for line in lines if json.loads(line)
    ][:3]
    copy = tmp_path / "stdout.jsonl"
    copy.write_bytes(b"\n".join(lines) + b"\n")
    assert findings(copy, tmp_path / "out") == []
