"""Schemas and reference: every member is described, pages are current, schemas say what the rules say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.faces.cli import main
from callsheet.records import RECORDS, TYPES, Record
from callsheet.rules import RULES
from callsheet.rules.meaning import MEANING, WORDS
from callsheet.rules.schema import _RULES, record_schema, stream_schema
from callsheet.rules.shape import CLOSED, OPEN, REQUIRED
from callsheet.testing.reference import FOLDER, NOTE, _rules, pages, stale
from callsheet.testing.reference import main as write_reference

KINDS: tuple[type[Record], ...] = (Record, *RECORDS)
for kind in KINDS:
    OPEN.of(kind)
SHAPES = {made.__name__: made for made in OPEN.made()}


def members(name: str) -> set[str]:
    own = {field.encode_name for field in msgspec.structs.fields(SHAPES[name])}
    return own - (members("Record") if issubclass(SHAPES[name], Record) and name != "Record" else set())


def test_every_member_has_its_meaning_and_every_meaning_its_member() -> None:
    assert set(MEANING) == set(SHAPES)
    for name in MEANING:
        extra = {"type"} if name == "Record" else set()
        assert set(MEANING[name]) == members(name) | extra, name


def test_tables_name_members_that_exist() -> None:
    for name, member in WORDS:
        assert member in members(name), (name, member)
    for name, member in [*CLOSED, *REQUIRED]:
        assert member in SHAPES[name].__struct_fields__, (name, member)
    assert set(_RULES) <= set(SHAPES)


def test_the_reference_is_current() -> None:
    assert stale(FOLDER) == []


def test_check_names_what_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert write_reference([str(tmp_path)]) == 0
    assert write_reference(["--check", str(tmp_path)]) == 0
    (tmp_path / "hook.md").write_text("old")
    (tmp_path / "gone.md").write_text(NOTE)
    (tmp_path / "others.md").write_text("# Somebody else's page")
    (tmp_path / "gap.md").unlink()
    assert write_reference(["--check", str(tmp_path)]) == 1
    assert [Path(line.split(":")[0]).name for line in capsys.readouterr().err.splitlines()] == [
        "gap.md",
        "gone.md",
        "hook.md",
    ]


def test_every_rule_is_on_a_page() -> None:
    shown = {rule.code for name in TYPES for rule in _rules(name)}
    assert shown == {rule.code for rule in RULES}
    assert len(pages()) == len(RECORDS) + 3


def test_lists_are_closed_only_where_a_rule_closes_them() -> None:
    closed = set()

    def visit(value: Any, path: str) -> None:
        if isinstance(value, dict):
            if "enum" in value and len(value["enum"]) > 1:
                closed.add(path)
            for key, one in value.items():
                if key != "allOf":  # what a rule says of known words closes no list
                    visit(one, f"{path}/{key}")

    visit(stream_schema(), "")
    assert {path.rsplit("/", 1)[1] for path in closed} == {
        "callIdSource",
        "idSource",
        "identity",
        "linkage",
        "state",
    }


def test_schemas_require_what_the_rules_require() -> None:
    required = {name: set(record_schema(name)["required"]) - {"type", "seq", "id"} for name in TYPES}
    assert required["tool_call"] == {"callId", "callIdSource"}
    assert required["tool_result"] == {"linkage", "status"}
    assert required["permission"] == {"requestId"}
    assert required["input_request"] == {"requestId", "mode"}
    assert required["terminal"] == {"terminalId"}
    assert required["hook"] == {"event"}


def test_no_schema_forbids_unknown_members() -> None:
    assert '"additionalProperties": false' not in json.dumps(stream_schema())


def run(capfd: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["schema", *args])
    assert isinstance(left.value.code, int)
    out, err = capfd.readouterr()
    return left.value.code, out, err


def test_the_command_prints_them(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd)
    assert code == 0
    assert json.loads(out) == stream_schema()
    for name in TYPES:
        assert json.loads(run(capfd, name)[1]) == record_schema(name)
    code, out, err = run(capfd, "toolcall")
    assert (code, out) == (2, "")
    assert err.startswith("callsheet: no record type 'toolcall'; there are session, tool_call, ")
