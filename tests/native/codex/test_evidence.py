"""The audit finds every fact of the golden sessions, and names every lie about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.audit import audit_bundle
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.registry import load
from callsheet.testing.lies import unseen

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/*/native"))
TOLD = ["0.20.0/bare", "0.63.0/mixed", "0.163.0/commands", "0.163.0/patches", "0.163.0/same_ids"]
TOLD += ["0.163.0/revert", "0.163.0/forks", "0.163.0/questions", "0.171.0/agents"]


def bundles(case: Path, out: Path) -> list[Bundle]:
    found = list(import_sources([case / "native"], out))
    assert found
    return [Bundle(one.bundle) for one in found if isinstance(one, Imported)]


@pytest.mark.parametrize("case", CASES, ids=lambda path: "/".join(path.parts[-2:]))
def test_every_fact_is_found_again(case: Path, tmp_path: Path) -> None:
    for bundle in bundles(case, tmp_path):
        assert list(audit_bundle(bundle)) == []


@pytest.mark.parametrize("name", TOLD)
def test_every_lie_is_named(name: str, tmp_path: Path) -> None:
    for bundle in bundles(HERE / name, tmp_path):
        told: list[tuple[str, str]] = []
        assert list(unseen(bundle.path, told)) == []
        assert len(told) > 100


def test_what_is_an_execution_is_counted() -> None:
    """An item or event that tells how a call went must be made a result: the tables name the same types."""
    registry = load("codex")
    counted: set[str] = set()
    for unit in registry.unit:
        test = unit.when.get("./type", {})
        counted |= set(test.get("one_of", ()) if isinstance(test, dict) else [test])
    assert {row.type for row in registry.item if row.execution} <= counted
