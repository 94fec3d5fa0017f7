"""The bug-report cases: files that broke other tools, and what must be true of them.

Each fact of each case is a test of its own. ``FACTS`` says how a fact is read; one that it does not name fails, so
that no fact is passed over. Facts about faces that do not exist yet are skipped by name.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.faces.cli import COMMANDS
from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.records import ToolResult
from callsheet.testing.check_harness import check_harness, check_reading
from callsheet.testing.desk import Files, read_session
from tests.native.claude_code.conftest import Sheet, text_of

HARNESSES = ("claude-session", "claude-project")
ABSENT = object()


class Case:
    """A case folder, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.whole = json.loads((folder / "case.json").read_bytes())
        self.facts: dict[str, Any] = self.whole["expected"]["facts"]
        inputs = self.whole["input"]
        self.source = folder / inputs[0] if self.whole["harness"] == "claude-session" else folder / "projects"
        self._sheet: Sheet | None = None

    @property
    def sheet(self) -> Sheet:
        if self._sheet is None:
            self._sheet = self.read(Files.below(self.folder))
        return self._sheet

    def read(self, files: Files) -> Sheet:
        (session,) = CLAUDE_CODE.sessions(str(self.source), files)
        reading = read_session(CLAUDE_CODE, session, files)
        assert check_reading(reading) == []
        return Sheet(reading)

    # -- what facts speak of ------------------------------------------------------------------------------------

    def calls(self) -> list[dict[str, Any]]:
        return self.sheet.last("tool_call")

    def results(self) -> list[dict[str, Any]]:
        return self.sheet.last("tool_result")

    def result(self, call_id: str) -> dict[str, Any]:
        """The result of a call, by the call's native id."""
        (found,) = [one for one in self.results() if one.get("nativeCallId", one.get("callId")) == call_id]
        return found

    def named(self, path: str) -> tuple[dict[str, Any], str]:
        """``terminal.exitCode``: the record of a type, or the result of a call, and the member's path."""
        head, _, member = path.partition(".")
        kinds = {record["type"] for record in self.sheet.records}
        if head in kinds:
            (record,) = self.sheet.last(head)
            return record, member
        if head in ("exec", "permission"):
            (record,) = self.results()
            return record, path
        return self.result(head), member

    def run(self, command: str, *arguments: str) -> str:
        """Output of a command of the product over this case's input."""
        if command not in COMMANDS:
            pytest.skip(f"needs `callsheet {command}`, which does not exist yet")
        done = subprocess.run(
            [sys.executable, "-m", "callsheet", command, str(self.source), *arguments],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def exported(self, out: Path, form: str, *arguments: str) -> str:
        self.run("export", "--to", form, "-o", str(out / "exported"), *arguments)
        return (out / "exported").read_text(encoding="utf-8")


def value_at(record: Any, path: str) -> Any:
    for step in path.split(".") if path else []:
        if not isinstance(record, dict) or step not in record:
            return ABSENT
        record = record[step]
    return record


# -- one function per fact: (case, what is expected, a folder to write to) ---------------------------------------


def counted(kind: str) -> Callable[[Case, Any, Path], None]:
    return lambda case, wanted, _: same(len(case.sheet.last(kind)), wanted)


def tallied(member: str) -> Callable[[Case, Any, Path], None]:
    return lambda case, wanted, _: same(getattr(case.sheet.tally(), member), wanted)


def totalled(member: str) -> Callable[[Case, Any, Path], None]:
    return lambda case, wanted, _: same(
        sum(getattr(case.sheet.tally(stream), member) for stream in case.sheet.streams), wanted
    )


def same(found: Any, wanted: Any) -> None:
    assert found == wanted


def one_of(found: Any, allowed: list[Any]) -> None:
    assert found in allowed, f"{found!r} is none of {allowed!r}"


def _result_status(case: Case, wanted: dict[str, Any], _: Path) -> None:
    for call_id, status in wanted.items():
        one_of(case.result(call_id)["status"], status if isinstance(status, list) else [status])


def _must_not_status(case: Case, wanted: list[str], _: Path) -> None:
    assert not {result["status"] for result in case.results()} & set(wanted)


def _decided_by(case: Case, wanted: dict[str, Any], _: Path) -> None:
    for call_id, allowed in wanted.items():
        one_of(case.result(call_id).get("permission", {}).get("decidedBy"), allowed)


def _orphan_text(case: Case, wanted: str, _: Path) -> None:
    pairing = case.sheet.pairing()
    texts = []
    for number in pairing.numbers(ToolResult):
        result = case.sheet.records[number]
        if pairing.pairing_of(number, result.get("callId")) == "orphan":
            texts.append(text_of(result))
    assert texts == [wanted]


def _subagent_links(case: Case, wanted: dict[str, Any], _: Path) -> None:
    found = {
        record["agentId"]: record.get("callId")
        for stream in case.sheet.streams
        for record in case.sheet.of("subagent", stream)
    }
    assert found == wanted
    streams = {stream.id: stream.parent for stream in case.sheet.reading.streams}
    assert all(streams[agent] == case.sheet.main for agent in wanted)


def _lines(case: Case, wanted: dict[str, int], _: Path) -> None:
    assert set(wanted) <= {"total", "valid", "bad", "repeated"}, "a count of lines that nobody reads"
    data = case.source.read_bytes()
    physical = data.count(b"\n") + (not data.endswith(b"\n"))
    assert physical == wanted["total"]
    gaps = {gap["line"] for gap in case.sheet.of("gap")}
    assert len(gaps) == wanted.get("bad", 0)
    assert physical - len(gaps) == wanted["valid"]
    repeated = {told.line for told in case.sheet.reading.diagnostics if told.code == "repeated_line"}
    assert len(repeated) == wanted.get("repeated", 0)


def _terminal(case: Case, wanted: dict[str, Any], _: Path) -> None:
    (terminal,) = case.sheet.last("terminal")
    assert {name: terminal.get(name) for name in wanted} == wanted


def _terminal_status(case: Case, allowed: list[str], _: Path) -> None:
    (terminal,) = case.sheet.last("terminal")
    one_of(terminal.get("status"), allowed)


def _absent(case: Case, wanted: list[str], _: Path) -> None:
    for path in wanted:
        record, member = case.named(path)
        assert value_at(record, member) is ABSENT, path


def _exact(case: Case, wanted: dict[str, Any], _: Path) -> None:
    for path, value in wanted.items():
        record, member = case.named(path)
        found = text_of(record) if member == "content" else value_at(record, member)
        assert found == value, path


def _after_completion(case: Case, wanted: dict[str, int], _: Path) -> None:
    files = Files.below(case.folder)
    grown = files.content[str(case.source)] + (case.folder / "completion.bin").read_bytes()
    told = case.read(Files({**files.content, str(case.source): grown})).tally()
    assert {name: getattr(told, name) for name in wanted} == wanted


def _texts_after_damage(case: Case, wanted: list[str], _: Path) -> None:
    """The texts stand in records of lines behind the first damaged one."""
    first = min(gap["line"] for gap in case.sheet.of("gap"))
    later = [
        part.get("text", "")
        for record in case.sheet.records
        if record["type"] != "session" and record["native"]["refs"][0].get("line", 0) > first
        for part in record.get("content", [])
    ]
    for text in wanted:
        assert any(text in one for one in later), text


def _content_contains(case: Case, wanted: list[str], _: Path) -> None:
    texts = [text_of(result) or "" for result in case.results()]
    for text in wanted:
        assert any(text in one for one in texts), text


def _parts(case: Case, wanted: dict[str, list[str]], _: Path) -> None:
    for call_id, kinds in wanted.items():
        result = case.result(call_id)
        if "content" in result:
            found = [part["type"] for part in result["content"]]
        else:
            stored = result["raw"]["block"]["content"]
            found = [block["type"] for block in stored] if isinstance(stored, list) else []
            assert stored or not kinds
        assert found == kinds, call_id


def _must_write_ok(case: Case, wanted: list[str], out: Path) -> None:
    for face in wanted:
        if face == "asr":
            assert check_harness(CLAUDE_CODE, case.folder / case.whole["input"][0]) == []
            for stream in case.sheet.reading.streams:
                stream.data.decode("utf-8")
        elif face == "terminal":
            case.run("show")
        elif face != "html":
            pytest.fail(f"a face that nobody knows: {face}")
    if "html" in wanted:
        case.exported(out, "html")


def _render_contains(case: Case, wanted: list[str], _: Path) -> None:
    shown = case.run("show", "--width", "200")
    for text in wanted:
        assert text in shown, text


def _render_lacks(case: Case, wanted: list[str], _: Path) -> None:
    shown = case.run("show", "--width", "200")
    assert [text for text in wanted if text in shown] == []


def _html_requires(case: Case, wanted: list[str], out: Path) -> None:
    page = case.exported(out, "html")
    assert [text for text in wanted if text not in page] == []


def _html_forbidden(case: Case, wanted: list[str], out: Path) -> None:
    page = case.exported(out, "html")
    assert [text for text in wanted if text in page] == []


def _redacted(case: Case, wanted: list[str], out: Path) -> None:
    for form in ("html", "md"):
        page = case.exported(out, form, "--redact")
        assert [text for text in wanted if text in page] == []


def _copies(case: Case, wanted: dict[str, int], _: Path) -> None:
    """Without redaction nothing is masked: the sources are as they were, and every record stands for one line."""
    data = case.source.read_bytes()
    for text, count in wanted.items():
        assert data.count(text.encode()) == count
    written = b"".join(stream.data for stream in case.sheet.reading.streams)
    written += b"".join(case.sheet.reading.blobs.values())
    for text in wanted:
        assert text.encode() in written, text


def _must_not_contain(case: Case, wanted: list[str], _: Path) -> None:
    written = b"".join(stream.data for stream in case.sheet.reading.streams)
    written += b"".join(case.sheet.reading.blobs.values())
    assert [text for text in wanted if text.encode() in written] == []


FACTS: dict[str, Callable[[Case, Any, Path], None]] = {
    "calls": counted("tool_call"),
    "calls_main": counted("tool_call"),
    "calls_total": totalled("calls"),
    "results": counted("tool_result"),
    "results_allowed": lambda case, allowed, _: one_of(len(case.results()), allowed),
    "results_total": totalled("results"),
    "paired": tallied("paired"),
    "paired_allowed": lambda case, allowed, _: one_of(case.sheet.tally().paired, allowed),
    "paired_total": totalled("paired"),
    "dangling": tallied("dangling"),
    "orphans": tallied("orphan"),
    "ambiguous": tallied("ambiguous"),
    "permissions": counted("permission"),
    "compact_permissions": tallied("compact"),
    "input_requests": counted("input_request"),
    "subagents": lambda case, wanted, _: same(
        sum(len(case.sheet.of("subagent", stream)) for stream in case.sheet.streams), wanted
    ),
    "terminals": counted("terminal"),
    "terminals_allowed": lambda case, allowed, _: one_of(len(case.sheet.last("terminal")), allowed),
    "hooks": counted("hook"),
    "hook_status": lambda case, wanted, _: same([hook["status"] for hook in case.sheet.of("hook")], wanted),
    "hook_exit": lambda case, wanted, _: same(
        [hook.get("exitCode") for hook in case.sheet.of("hook")], wanted
    ),
    "thoughts": counted("reasoning"),
    "distinct_call_ids": lambda case, wanted, _: same(len({call["callId"] for call in case.calls()}), wanted),
    "names": lambda case, wanted, _: same([call["name"] for call in case.calls()], wanted),
    "inputs": lambda case, wanted, _: same([call["input"] for call in case.calls()], wanted),
    "result_texts": lambda case, wanted, _: same([text_of(result) for result in case.results()], wanted),
    "result_status": _result_status,
    "must_not_status": _must_not_status,
    "decidedBy_allowed": _decided_by,
    "orphan_text": _orphan_text,
    "subagent_links": _subagent_links,
    "lines": _lines,
    "terminal": _terminal,
    "terminal_status_allowed": _terminal_status,
    "absent": _absent,
    "exact": _exact,
    "diagnostics_min": lambda case, least, _: same(len(case.sheet.reading.diagnostics) >= least, True),
    "after_completion": _after_completion,
    "texts_after_damage": _texts_after_damage,
    "content_contains": _content_contains,
    "parts": _parts,
    "must_write_ok": _must_write_ok,
    "must_not_contain_anywhere": _must_not_contain,
    "render_contains": _render_contains,
    "must_not_render": _render_lacks,
    "terminal_must_not_contain": _render_lacks,
    "html_requires": _html_requires,
    "html_forbidden": _html_forbidden,
    "redacted_must_not_contain": _redacted,
    "copies_in_input": _copies,
}


@pytest.fixture
def case(shared: Path, case_name: str, request: pytest.FixtureRequest) -> Case:
    kept: dict[str, Case] = request.config.stash.setdefault(CASES, {})
    if case_name not in kept:
        kept[case_name] = Case(shared / "cases" / case_name)
    return kept[case_name]


CASES = pytest.StashKey[dict[str, Case]]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = metafunc.config.getoption("--shared")
    folders = sorted((Path(given) / "cases").iterdir()) if given else []
    found = []
    for folder in folders:
        if (folder / "case.json").is_file():
            whole = json.loads((folder / "case.json").read_bytes())
            if whole["harness"] in HARNESSES:
                found += [(folder.name, fact) for fact in whole["expected"]["facts"]]
    if "fact" in metafunc.fixturenames:
        metafunc.parametrize(("case_name", "fact"), found or [("any", "fact")])
    elif "case_name" in metafunc.fixturenames:
        metafunc.parametrize("case_name", sorted({name for name, _ in found}) or ["any"])


def test_fact(case: Case, fact: str, tmp_path: Path) -> None:
    if fact not in FACTS:
        pytest.fail(f"nothing here reads the fact {fact!r}")
    FACTS[fact](case, case.facts[fact], tmp_path)


def test_case_keeps_the_kits_promises(case: Case) -> None:
    assert check_harness(CLAUDE_CODE, case.source) == []
