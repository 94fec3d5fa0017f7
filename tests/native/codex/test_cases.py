"""The bug-report cases about Codex: files that broke other tools, and what must be true of them.

Each fact of each case is a test of its own. ``FACTS`` says how a fact is read; one that it does not name fails, so
that no fact is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.native.codex.conftest import Sheet, text_of

from callsheet.harness.codex import CODEX
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, read_session

ABSENT = object()


class Case:
    """A case folder, read once; its sheets by file name."""

    def __init__(self, folder: Path) -> None:
        whole = json.loads((folder / "case.json").read_bytes())
        self.facts: dict[str, Any] = whole["expected"]["facts"]
        files = Files.below(folder)
        self.sheets: dict[str, Sheet] = {}
        for session in CODEX.sessions(str(folder), files):
            reading = read_session(CODEX, session, files)
            assert check_reading(reading) == []
            self.sheets[Path(session.main).name] = Sheet(reading)

    @property
    def sheet(self) -> Sheet:
        (only,) = self.sheets.values()
        return only

    def results(self) -> list[dict[str, Any]]:
        return self.sheet.last("tool_result")

    def value(self, path: str) -> Any:
        """``call_s.exec.exitCode``: a member of the call or result with this id.

        ``content`` is the text of a result: what reached the model, or what was stored where nothing shows that it did
        (decision 7: some of these files end with the output).
        """
        call_id, *names = path.split(".")
        records = [*self.sheet.last("tool_call"), *self.results()]
        owners = [one for one in records if call_id in (one.get("callId"), one.get("nativeCallId"))]
        assert owners, f"no record of {call_id}"
        for record in owners:
            if names == ["content"]:
                if record["type"] == "tool_result" and text_of(record):
                    return text_of(record)
                continue
            value: Any = record
            for name in names:
                value = value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
            if value is not ABSENT:
                return value
        return ABSENT


def same(found: Any, wanted: Any) -> None:
    assert found == wanted


def counted(kind: str) -> Callable[[Case, Any], None]:
    return lambda case, wanted: same(len(case.sheet.last(kind)), wanted)


def tallied(member: str) -> Callable[[Case, Any], None]:
    return lambda case, wanted: same(getattr(case.sheet.tally(), member), wanted)


def _results_allowed(case: Case, allowed: list[int]) -> None:
    assert len(case.results()) in allowed


def _statuses(case: Case, wanted: dict[str, Any]) -> None:
    for call_id, status in wanted.items():
        (result,) = [one for one in case.results() if one.get("callId") == call_id]
        assert result["status"] == status


def _exact(case: Case, wanted: dict[str, Any]) -> None:
    for path, value in wanted.items():
        assert case.value(path) == value, path


def _absent(case: Case, paths: list[str]) -> None:
    assert [path for path in paths if case.value(path) is not ABSENT] == []


def _must_not(case: Case, wrong: dict[str, Any]) -> None:
    for path, value in wrong.items():
        if path == "sum_tokens":
            totals = [number for sheet in case.sheets.values() for number in _totals(sheet)]
            assert value not in totals
        else:
            assert case.value(path) != value, path


def _totals(sheet: Sheet) -> list[Any]:
    """The session totals of a thread's own usage records, in order."""
    return [
        count["value"]
        for record in sheet.of("usage")
        if record.get("cumulative") and "inherited" not in record["native"]
        for count in record["counts"]
        if count["name"] == "total_tokens"
    ]


def _last_total(case: Case, wanted: Any) -> None:
    if isinstance(wanted, dict):
        assert {name: _totals(case.sheets[name])[-1] for name in wanted} == wanted
    else:
        assert _totals(case.sheet)[-1] == wanted


def _item_commands(case: Case, wanted: list[str]) -> None:
    commands = [result["exec"]["command"][-1] for result in case.results() if "exec" in result]
    assert commands == wanted


def _output_ends(case: Case, wanted: list[str]) -> None:
    texts = [text_of(result) for result in case.results() if text_of(result)]
    assert len(texts) == len(wanted)
    assert all(text.endswith(end) for text, end in zip(texts, wanted, strict=True))


def _provider(case: Case, wanted: dict[str, Any]) -> None:
    for call_id, provider in wanted.items():
        assert case.value(f"{call_id}.provider") == provider


def _distinct(case: Case, wanted: int) -> None:
    ids = {call["callId"] for sheet in case.sheets.values() for call in sheet.last("tool_call")}
    assert len(ids) == wanted


def _calls_per_file(case: Case, wanted: dict[str, int]) -> None:
    assert {name: len(case.sheets[name].last("tool_call")) for name in wanted} == wanted


FACTS: dict[str, Callable[[Case, Any], None]] = {
    "sessions": lambda case, wanted: same(len(case.sheets), wanted),
    "calls": counted("tool_call"),
    "calls_per_file": _calls_per_file,
    "results": counted("tool_result"),
    "results_allowed": _results_allowed,
    "terminals": counted("terminal"),
    "paired": tallied("paired"),
    "dangling": tallied("dangling"),
    "orphans": tallied("orphan"),
    "distinct_call_ids": _distinct,
    "distinct_native_call_ids": _distinct,
    "names": lambda case, wanted: same([call["name"] for call in case.sheet.last("tool_call")], wanted),
    "result_status": _statuses,
    "exact": _exact,
    "absent": _absent,
    "must_not": _must_not,
    "provider": _provider,
    "item_commands": _item_commands,
    "output_texts_end": _output_ends,
    "usage_last_total": _last_total,
    "token_events": lambda case, wanted: same(len(_totals(case.sheet)), wanted),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = metafunc.config.getoption("--shared")
    folders = sorted(Path(given, "cases").glob("*-codex-*")) if given else []
    found = [
        pytest.param(folder, fact, id=f"{folder.name[:3]}-{fact}")
        for folder in folders
        for fact in json.loads((folder / "case.json").read_bytes())["expected"]["facts"]
    ]
    metafunc.parametrize(("folder", "fact"), found or [pytest.param(None, None, id="none")])


def test_fact(folder: Path | None, fact: str, shared: Path) -> None:
    assert folder is not None, f"no case of Codex in {shared}"
    case = Case(folder)
    FACTS[fact](case, case.facts[fact])
