"""The recipes of CONTRIBUTING.md name all the places: what one table lists, the others have."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.harness import HARNESSES
from callsheet.records import RECORDS
from callsheet.registry import HARNESSES as REGISTRIES
from callsheet.registry import load
from callsheet.rules import RULES

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    path.name
    for path in (ROOT / "src/callsheet/harness").iterdir()
    if (path / "__init__.py").is_file() and path.name != "_port"
)


def test_every_harness_has_a_registry_and_every_registry_a_harness() -> None:
    files = {path.stem for path in (ROOT / "src/callsheet/registry").glob("*.toml")}
    assert files == set(REGISTRIES)
    assert {name.replace("-", "_") for name in REGISTRIES} == set(PACKAGES)
    offered = [adapter.kind for adapter in HARNESSES]
    assert sorted(offered) == sorted(kind for name in REGISTRIES for kind in load(name).harness.kinds)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_harness_has_its_places(name: str) -> None:
    adapter = ROOT / "src/callsheet/harness" / name
    assert (adapter / "stored.py").is_file()
    assert (adapter / "notes.md").is_file()
    assert any((ROOT / "tests/native" / name).glob("test_*.py"))
    told = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    examples = ROOT / "examples" / name.replace("_", "-")
    assert not examples.exists() or f"`{examples.name}/" in told


def test_every_rule_has_its_cases() -> None:
    files = {path.stem for path in (ROOT / "conformance/rules").glob("*.json")}
    assert {f"ASR-{number}" for number in range(250, 292)} == files
    assert {rule.code for rule in RULES} <= files


def test_every_record_type_has_its_page() -> None:
    pages = {path.stem for path in (ROOT / "docs/reference").glob("*.md")}
    assert {str(record.__struct_config__.tag) for record in RECORDS} <= pages
