"""Cautions of every registry are about members that exist, and the rows of tools say what the tools are about."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from callsheet.records import TYPES
from callsheet.registry import HARNESSES, Registry, load
from callsheet.rows.silence import remarks_for

ALL = [load(name) for name in HARNESSES]


def members(kind: type[Any]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.harness.name)
def test_cautions_are_about_members_that_exist(registry: Registry) -> None:
    for caution in registry.caution:
        known = members(TYPES[caution.record])
        assert caution.member.split(".")[0] in known, caution
        assert {name.split(".")[0] for name in caution.only} <= known, caution
        assert caution.note


def told(**record: Any) -> list[str]:
    kind = TYPES[record.pop("type")]
    made = msgspec.convert({"type": kind.__struct_config__.tag, **record}, kind)
    return [remark.member for remark in remarks_for(made, load("claude-code"))]


def test_claude_codes_cautions_hold_only_where_they_are_true() -> None:
    hook = {"type": "hook", "exitCode": 1}
    assert told(**hook, event="post_tool_use_failure") == ["exitCode"]
    assert told(**hook, event="post_tool_use") == []
    counts = [{"name": "input_tokens", "value": 1}]
    assert told(type="usage", scope="inference", counts=counts) == ["counts"]
    assert told(type="usage", scope="session", counts=counts) == []
    started = {"type": "tool_result", "linkage": "exact", "exec": {"terminalId": "b1"}}
    assert told(**started, status="completed") == ["exec.terminalId"]
    assert told(**started, status="failed") == []


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.harness.name)
def test_what_is_only_an_id_is_no_command(registry: Registry) -> None:
    ids = ("_id", "Id", "/id")
    wrong = [
        tool.name
        for tool in registry.tool
        if tool.row == "command" and tool.inputs and all(pointer.endswith(ids) for pointer in tool.inputs)
    ]
    assert wrong == []
