"""Planted lies: true bundles audit clean, and whatever is changed in them is named with its record and path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.audit.conftest import Forged

from callsheet.audit import Audit, Totals, audit_bundle
from callsheet.audit import facts as audit_facts
from callsheet.library.importing import Failure, import_sources
from callsheet.records import RECORDS
from callsheet.records.bundle import Bundle
from callsheet.registry import load
from callsheet.registry.facts import COMMON
from callsheet.testing.lies import UNCHECKED, Lie, is_named, lies, unseen

BY_OTHER_MEANS = {
    ("tool_result", "content"): "proven by requests and captures, not by the entry alone",
    ("gap", "reason"): "read off the bytes",
    ("tool_result", "capture.content.blob"): "the result's own entry speaks first",
}
"""Facts whose entries only say where to look."""
LIVE_ONLY = {"preview"}
"""Record types that Claude Code never gives: no frame shows the output of a running call."""


def general(path: str) -> str:
    return re.sub(r"/\d+", "/#", path)


def test_true_bundles_audit_clean(bundles: list[Path]) -> None:
    assert [found for bundle in bundles for found in audit_bundle(Bundle(bundle))] == []


def test_the_bundles_have_every_fact_of_the_registry(
    bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    proven: set[int] = set()
    true_attempts = audit_facts.attempts

    def watched(case: Any, fact: Any, value: Any, bound: Any) -> Iterator[Any]:
        for attempt in true_attempts(case, fact, value, bound):
            if not attempt.wrong:
                proven.add(id(fact))
            yield attempt

    monkeypatch.setattr(audit_facts, "attempts", watched)
    for bundle in bundles:
        assert list(audit_bundle(Bundle(bundle))) == []
    entries = [*load("claude-code").fact, *COMMON]
    missing = [entry for entry in entries if id(entry) not in proven]
    assert [one for one in missing if (one.record, one.member) not in BY_OTHER_MEANS] == []


def test_the_bundles_have_every_record_type(bundles: list[Path]) -> None:
    found = {
        json.loads(line)["type"]
        for bundle in bundles
        for stream in (bundle / "streams").iterdir()
        for line in stream.read_bytes().splitlines()
    }
    known = {str(kind.__struct_config__.tag) for kind in RECORDS}
    assert known - found == LIVE_ONLY


def test_no_lie_lies_unseen(bundles: list[Path]) -> None:
    told: list[tuple[str, str]] = []
    found = [one for bundle in bundles for one in unseen(bundle, told)]
    assert found == []
    assert len(told) > 10_000
    assert len({kind for kind, _ in told}) >= len(RECORDS) - len(LIVE_ONLY)


@pytest.mark.parametrize("place", ["captures/claude-code", "cases", "corpus/claude"])
def test_real_sessions_audit_clean(shared: Path, tmp_path: Path, place: str) -> None:
    paths = sorted((shared / place).glob("*claude*")) if place == "cases" else [shared / place]
    totals = Totals()
    for made in import_sources(paths, tmp_path, kind="claude-code"):
        if isinstance(made, Failure):
            assert "/projects/" not in made.path  # beside the sessions lie logs of what was sent and shown
        else:
            assert list(audit_bundle(Bundle(made.bundle), totals)) == []
    assert totals.facts > 1000
    assert not totals.unread


def test_no_lie_about_real_sessions_lies_unseen(shared: Path, tmp_path: Path) -> None:
    for made in import_sources(sorted((shared / "cases").glob("*claude*")), tmp_path, kind="claude-code"):
        assert not isinstance(made, Failure)
        assert list(unseen(made.bundle)) == []


def first_of_each_kind(bundle: Path) -> Iterator[tuple[int, int, Lie]]:
    """The first lie about each member of each record type: its stream, its position, itself."""
    seen = set()
    for number, entry in enumerate(Bundle(bundle).manifest.streams):
        for position, line in enumerate((bundle / entry.file).read_bytes().splitlines()):
            record = json.loads(line)
            for lie in lies(record):
                kind = (record["type"], general(lie.path))
                if record["type"] != "tool_result" and lie.path.startswith("/native/refs/"):
                    continue  # refs are alike on all types
                if kind not in seen and not lie.path.startswith(("/raw/", "/input/", "/value/")):
                    seen.add(kind)
                    yield number, position, lie


def test_a_bundle_with_one_lie_is_found_out(forged: Forged) -> None:
    """Each kind of lie written into a bundle whose manifest fits it, as a liar would."""
    true = [forged.records(number) for number in range(len(forged.manifest["streams"]))]
    told = 0
    for number, position, lie in list(first_of_each_kind(forged.folder)):
        forged.write([*true[number][:position], lie.record, *true[number][position + 1 :]], number)
        found = [one for one in forged.findings() if one.record == lie.record["id"]]
        assert any(is_named(one.path, lie.path) for one in found), (lie.path, lie.old, lie.new, found)
        forged.write(true[number], number)
        told += 1
    assert forged.findings() == []
    assert told > 150


def test_what_is_not_checked_is_little_and_said() -> None:
    assert all(why for why in UNCHECKED.values())
    assert set(UNCHECKED) == {"/id", "/capture/*/reason"}


def main_of(made: list[Path]) -> Path:
    """The made-up session with almost everything in it."""
    return max(made, key=lambda bundle: len(list((bundle / "streams").iterdir())))


def one_of_each_type(bundle: Bundle, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first record of each type and role."""
    seen = set()
    for position, line in enumerate(bundle.read(name).splitlines()):
        record = json.loads(line)
        kind = (record["type"], *(ref.get("role") for ref in record["native"]["refs"]))
        if kind not in seen:
            seen.add(kind)
            yield position, record


def test_a_record_of_any_shape_costs_nothing_but_itself(made: list[Path]) -> None:
    """Every leaf and every member replaced by values of other types: findings, never an exception."""
    bundle = Bundle(main_of(made))
    wrong: tuple[Any, ...] = (
        None,
        True,
        -1,
        1e300,
        10**30,
        "",
        "\ud800",
        [],
        {},
        [None],
        {"": {}},
        [[["x"]]],
    )
    with Audit(bundle) as audit:
        for entry in bundle.manifest.streams:
            with audit.stream(entry) as stream:
                for position, record in one_of_each_type(bundle, entry.file):
                    for name in record:
                        for value in wrong:
                            list(stream.claims({**record, name: value}, position))
                    for lie in lies(record):
                        steps = [
                            step.replace("~1", "/").replace("~0", "~") for step in lie.path.split("/")[1:]
                        ]
                        at: Any = lie.record
                        for step in steps[:-1]:
                            at = at[int(step) if isinstance(at, list) else step]
                        last = int(steps[-1]) if isinstance(at, list) else steps[-1]
                        at[last] = wrong[(position + len(lie.path)) % len(wrong)]
                        list(stream.claims(lie.record, position))
