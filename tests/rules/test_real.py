"""Bundles made from what real agents wrote keep every rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import Checked, check_bundle

ROOT = Path(__file__).parents[2]


def findings(source: Path, out: Path) -> tuple[list[str], Checked]:
    """Findings of every bundle that a source gives, each with its bundle."""
    checked = Checked()
    found = []
    for one in import_sources([source], out):
        if isinstance(one, Imported):
            bundle = Bundle(Path(one.bundle))
            found += [f"{one.bundle}: {finding}" for finding in check_bundle(bundle, checked)]
    return found, checked


def test_the_examples_keep_every_rule(tmp_path: Path) -> None:
    found, checked = findings(ROOT / "examples", tmp_path)
    assert found == []
    assert checked.records > 200


@pytest.mark.parametrize("folder", ["captures/claude-code", "captures/codex", "captures/openclaw", "cases"])
def test_captures_and_cases_keep_every_rule(shared: Path, tmp_path: Path, folder: str) -> None:
    found, checked = findings(shared / folder, tmp_path)
    if not checked.streams:
        pytest.skip(f"nothing in {folder} can be imported yet")
    assert found == []
