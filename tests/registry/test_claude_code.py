"""The registry of Claude Code against what it stands for: real names, real versions, tables that can be reached."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from callsheet.records import TYPES
from callsheet.registry import Registry, first, load
from callsheet.registry.versions import in_ranges, version_key

KINDS = {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
STATUSES = {"completed", "failed", "denied", "cancelled", "interrupted", "unknown"}
DECIDERS = {"user", "policy", "hook", "auto_mode", "agent", "classifier", None}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load("claude-code")


def test_a_name_stands_once_and_its_kind_is_one_of_acp(registry: Registry) -> None:
    names = Counter(tool.name for tool in registry.tool)
    assert [name for name, times in names.items() if times > 1] == []
    assert {tool.kind for tool in registry.tool} <= KINDS
    assert all(not tool.name.startswith("mcp__") for tool in registry.tool)


def test_words_of_the_tables_are_those_of_the_rules(registry: Registry) -> None:
    assert {rule.then for rule in registry.status} <= STATUSES
    assert {rule.decidedBy for rule in [*registry.decision, *registry.decider]} <= DECIDERS
    assert {rule.becomes for rule in registry.line} <= set(TYPES)


def test_every_range_can_be_read_and_holds_for_a_version_that_was_seen(registry: Registry) -> None:
    seen = registry.harness.versions_seen
    assert seen == sorted(seen, key=lambda text: version_key(text) or ())
    ranges = [rule.versions for rule in [*registry.status, *registry.decision, *registry.decider]]
    ranges += [rule.versions for rule in registry.content]
    for one in ranges:
        assert any(in_ranges(one, version) for version in seen), one


def test_every_content_rule_names_its_evidence(registry: Registry) -> None:
    for rule in registry.content:
        assert "capture" in rule.evidence
        assert rule.tools
        assert rule.versions


@pytest.mark.parametrize(
    ("native", "part", "status"),
    [
        ({"version": "2.1.332", "permissionDecision": {"decision": "reject"}}, {"is_error": True}, "denied"),
        ({"version": "2.1.300", "permissionDecision": {"decision": "reject"}}, {"is_error": True}, "denied"),
        ({"version": "2.1.332", "toolDenialKind": "permission-rule"}, {"is_error": True}, "denied"),
        ({"version": "2.1.222", "toolDenialKind": "automode-blocked"}, {"is_error": True}, "denied"),
        ({"version": "2.1.222", "toolDenialKind": "automode-unavailable"}, {"is_error": True}, "denied"),
        (
            {"version": "2.1.332", "toolDenialKind": "user-rejected", "toolDenialBeforeRun": True},
            {"is_error": True},
            "cancelled",
        ),
        ({"version": "2.1.332", "toolDenialKind": "user-rejected"}, {"is_error": True}, "interrupted"),
        ({"version": "2.1.200", "toolDenialKind": "user-rejected"}, {"is_error": True}, "unknown"),
        ({"version": "2.1.999", "toolDenialKind": "user-rejected"}, {"is_error": True}, "unknown"),
        ({"version": "2.0.76", "toolUseResult": "User rejected tool use"}, {"is_error": True}, "unknown"),
        ({"version": "2.0.76", "toolUseResult": "Error: no"}, {"is_error": True}, "failed"),
        ({"version": "2.0.76"}, {"is_error": False}, "completed"),
        ({"version": "2.0.76", "toolUseResult": {}}, {}, "completed"),
        ({"version": None}, {"is_error": True}, "failed"),
    ],
)
def test_the_status_is_the_sources_word(registry: Registry, native: Any, part: Any, status: str) -> None:
    """Decisions 4 and 5, case by case."""
    rule = first(registry.status, native["version"], native, part)
    assert (rule.then if rule else "unknown") == status


def test_names_in_captures_and_public_files_are_listed(shared: Path, registry: Registry) -> None:
    """Names that agents of any version offered or called; a model's inventions are not among them."""
    listed = set(registry.tools())
    called: Counter[str] = Counter()
    for line in (shared / "corpus" / "index.jsonl").read_bytes().splitlines():
        entry = json.loads(line)
        if entry["harness"] == "claude":
            called.update(name for name in entry["tools"] if not name.startswith("mcp__"))
    offered: set[str] = set()
    for path in (shared / "captures" / "claude-code").glob("*/*/*/requests.jsonl"):
        for line in path.read_bytes().splitlines():
            tools = json.loads(line).get("tools") or []
            offered.update(name for name in tools if isinstance(name, str) and not name.startswith("mcp__"))
    assert offered - listed == set()
    unknown = {name for name in called if name not in listed}
    assert len(unknown) < len(called) / 10, unknown
