"""Holding a harness's bundles against their sources: every fact found again, every lie named, every entry used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet.audit import audit_bundle
from callsheet.audit import facts as audit_facts
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.registry import load
from callsheet.registry.facts import Fact
from callsheet.testing.lies import unseen


def bundles_of(kind: str, paths: list[Path], out: Path) -> list[Bundle]:
    """The bundles of some sources, as far as they can be read."""
    found = import_sources(paths, out, kind=kind)
    return [Bundle(one.bundle) for one in found if not isinstance(one, Failure)]


def held(bundle: Bundle) -> int:
    """How many lies were told about a bundle that audits clean; each of them was named."""
    found = [(one.path, one.value, one.message) for one in audit_bundle(bundle)]
    assert not found, found
    told: list[tuple[str, str]] = []
    left = [(one.kind, one.lie.path, one.lie.new) for one in unseen(bundle.path, told)]
    assert not left, left
    return len(told)


def unproven(name: str, bundles: list[Bundle], monkeypatch: pytest.MonkeyPatch) -> list[Fact]:
    """Entries of a registry that prove no fact of these bundles."""
    proven: set[int] = set()
    true_attempts = audit_facts.attempts

    def watched(case: Any, fact: Fact, value: Any, bound: Any) -> Iterator[Any]:
        for attempt in true_attempts(case, fact, value, bound):
            if not attempt.wrong:
                proven.add(id(fact))
            yield attempt

    monkeypatch.setattr(audit_facts, "attempts", watched)
    for bundle in bundles:
        found = list(audit_bundle(bundle))
        assert not found, found
    return [fact for fact in load(name).fact if id(fact) not in proven]
