"""The conformance kit is whole, says what it means, and callsheet passes all of it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from callsheet.faces.cli import main
from callsheet.records.stream import stream_lines
from callsheet.rules import ALL, PROFILE, RULES, check_stream
from callsheet.testing import check_reader
from callsheet.testing.conformance import (
    Case,
    CaseFile,
    Question,
    case_schema,
    difference,
    find_kit,
    load_kit,
    questions,
    stream_bytes,
)
from callsheet.testing.conformance_server import answer, reading

KIT = find_kit()
FILES = load_kit(KIT)
QUESTIONS = list(questions(FILES))
AUDIT_CODES = {"P-FACT", "P-REF", "P-COUNT"}


def fails(case: Case) -> bool:
    return not case.expect.valid


def test_every_rule_has_its_file_and_every_file_its_rule() -> None:
    assert {path.stem for path in (KIT / "rules").iterdir()} == {rule.code for rule in RULES}
    assert {path.stem for path in (KIT / "envelope").iterdir()} == {rule.code for rule in PROFILE}
    for file in FILES:
        assert tuple(file.roles) == ALL[file.rule].roles, file.rule
        assert file.asks == ALL[file.rule].asks, file.rule


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.rule)
def test_a_rule_has_cases_for_each_of_its_roles(file: CaseFile) -> None:
    checked = [case for case in file.cases if case.native is None and case.expect.reading is None]
    if "stream" in file.roles:
        assert sum(not fails(case) for case in checked) >= 2
        assert sum(fails(case) for case in checked) >= 2
    if "reader" in file.roles:
        assert sum(case.expect.reading is not None for case in file.cases) >= 2
    if "producer" in file.roles:
        assert any(case.native is not None for case in file.cases)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.rule)
def test_cases_say_what_they_mean(file: CaseFile) -> None:
    described = [case.description for case in file.cases]
    assert len(set(described)) == len(described)
    for case in file.cases:
        given = (case.stream, case.streamBase64, case.bundle, case.native)
        assert sum(one is not None for one in given) == 1, case.description
        assert (case.native is None) == (case.records_true is None) == (case.records_false is None)
        assert case.expect.valid == (not case.expect.findings), case.description
        if fails(case) and case.expect.reading is None:
            assert file.rule in {one.rule for one in case.expect.findings}, case.description
        assert {one.rule for one in case.expect.findings} <= set(ALL)
        for one in case.expect.findings:
            assert case.native is not None or not one.also, case.description
            assert set(one.also) <= (set(ALL) | AUDIT_CODES) - {one.rule}, case.description


def test_there_are_three_hundred_cases_or_more_and_no_two_alike() -> None:
    cases = [
        msgspec.json.encode([case.stream, case.streamBase64, case.bundle, case.native, case.records_false])
        for file in FILES
        for case in file.cases
        if case.expect.reading is None
    ]
    assert len(cases) >= 300
    repeated = len(cases) - len(set(cases))
    assert repeated < len(cases) // 20, f"{repeated} cases repeat another one's input"


def test_the_schema_is_current() -> None:
    text = json.dumps(case_schema(), indent=2, ensure_ascii=False) + "\n"
    assert (KIT / "schema.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"{question.name}-{question.task}")
def test_callsheet_answers_as_expected(question: Question) -> None:
    assert difference(question, answer({"do": question.task, **question.request})) is None


def test_check_reader_takes_ours_and_names_what_a_wrong_reader_does() -> None:
    assert check_reader(reading) == sum(question.task == "read" for question in QUESTIONS)

    def by_position(stream: bytes) -> dict[str, Any]:
        found = reading(stream)
        if found["dangling"] and found["ambiguous"]:
            found["pairs"].append([found["dangling"].pop(0), found["ambiguous"].pop(0)])
        return found

    with pytest.raises(AssertionError, match=r"ASR-263/3 \(.*\): pairs is"):
        check_reader(by_position)


# Producer cases are for ``audit``; here that they are what they say they are.


def follow(value: Any, path: str) -> Any:
    for name in path.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


PRODUCER = [
    (f"{file.rule}/{number}", case) for file in FILES for number, case in enumerate(file.cases) if case.native
]


@pytest.mark.parametrize("case", [case for _, case in PRODUCER], ids=[name for name, _ in PRODUCER])
def test_a_producer_case_cites_its_lines_and_differs_where_it_says(case: Case) -> None:
    assert case.native is not None
    assert case.records_true is not None
    assert case.records_false is not None
    sources = {source.id: source.lines for source in case.native.sources}
    cited = 0
    for record in [*case.records_true, *case.records_false]:
        for ref in record.get("native", {}).get("refs", []):
            lines = [f"{line}\n".encode() for line in sources[ref["source"]]]
            begin = sum(map(len, lines[: ref["line"] - 1]))
            # The whole line, or the part of it that is the frame.
            at, end = ref["offset"], ref["offset"] + ref["bytes"]
            assert begin <= at < end < begin + len(lines[ref["line"] - 1])
            assert ref["sha256"] == hashlib.sha256(b"".join(lines)[at:end]).hexdigest()
            cited += 1
    assert cited
    for records in (case.records_true, case.records_false):
        assert list(check_stream(stream_lines(io.BytesIO(stream_bytes(records))))) == []
    (lie,) = case.expect.findings
    true, false = ({one["id"]: one for one in records} for records in (case.records_true, case.records_false))
    assert lie.record is not None
    assert follow(true.get(lie.record, {}), lie.path) != follow(false[lie.record], lie.path)


# The runner.

OURS = [sys.executable, "-m", "callsheet.testing.conformance_server"]


class Run(Protocol):
    def __call__(self, *args: str) -> tuple[int, str, str]: ...


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["conformance", "run", *args])
        assert isinstance(left.value.code, int)
        out, err = capfd.readouterr()
        return left.value.code, out, err

    return call


def test_the_runner_finds_nothing_wrong_with_ours(run: Run) -> None:
    code, out, _ = run("--", *OURS)
    assert (code, out) == (0, f"{len(QUESTIONS)} passed, 0 failed, 0 skipped\n")
    assert sum(question.task == "audit" for question in QUESTIONS) == 2 * len(PRODUCER) > 0


def lie(rule: str, record: str | None, path: str) -> dict[str, Any]:
    return {"rule": rule, "record": record, "path": path, "message": "no evidence"}


@pytest.mark.parametrize(
    ("name", "findings", "passes"),
    [
        ("ASR-288/0", [lie("ASR-288", "r2", "/exec/exitCode")], True),
        ("ASR-288/0", [lie("ASR-260", "r2", "/exec/exitCode")], True),
        ("ASR-288/0", [lie("ASR-288", "r2", "/exec/exitCode"), lie("ASR-267", "r2", "/exec")], True),
        ("ASR-288/0", [lie("ASR-267", "r2", "/exec/exitCode")], False),
        ("ASR-288/0", [lie("ASR-288", "r1", "/exec/exitCode")], False),
        ("ASR-288/0", [lie("ASR-288", "r2", "/exec/exitCodes")], False),
        ("ASR-288/0", [lie("ASR-288", "r2", "/exec")], False),
        ("ASR-288/0", [{"rule": "ASR-288", "record": "r2", "path": None}], False),
        ("ASR-288/0", [], False),
        ("ASR-267/0", [lie("ASR-267", "r2", "/exec/cwd/path")], True),
        ("ASR-288/0/true", [], True),
        ("ASR-288/0/true", [lie("ASR-288", "r2", "/exec/exitCode")], False),
    ],
)
def test_an_audit_passes_when_it_names_the_lie_and_nothing_true(
    name: str, findings: list[dict[str, Any]], passes: bool
) -> None:
    (question,) = (one for one in QUESTIONS if (one.name, one.task) == (name, "audit"))
    assert (difference(question, {"findings": findings}) is None) == passes


def test_an_agent_without_a_registry_is_skipped_aloud() -> None:
    for head in (
        {"type": "session", "seq": 0, "id": "r0", "agent": {"name": "nobody's"}},
        {"type": "message"},
    ):
        request = {"do": "audit", "sources": [], "stream": {"text": json.dumps(head) + "\n"}}
        assert list(answer(request)) == ["skip"]
    assert list(answer({"do": "audit", "sources": [], "stream": {"text": ""}})) == ["skip"]


def implementation(tmp_path: Path, body: str) -> list[str]:
    path = tmp_path / "theirs.py"
    path.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    reply = {'id': request['id'], 'does': ['validate']}\n"
        f"    {body}\n"
        "    print(json.dumps(reply), flush=True)\n"
    )
    return [sys.executable, str(path)]


def test_the_runner_names_what_another_misses(run: Run, tmp_path: Path) -> None:
    theirs = implementation(tmp_path, "reply['findings'] = []")
    code, out, _ = run("--only", "ASR-250", "--", *theirs)
    assert code == 1
    assert 'ASR-250/8: validate: not found: ASR-250 at "r1" "/callId" (callId is missing)' in out
    assert out.endswith("8 passed, 12 failed, 0 skipped\n")


@pytest.mark.skipif(shutil.which("cat") is None, reason="needs cat")
@pytest.mark.parametrize("theirs", [["cat"], None])
def test_where_nothing_passed_nothing_is_well(run: Run, tmp_path: Path, theirs: list[str] | None) -> None:
    command = theirs or implementation(tmp_path, "reply['does'] = []")
    code, out, err = run("--only", "ASR-250", "--", *command)
    assert (code, out.splitlines()[-1]) == (1, "0 passed, 0 failed, 20 skipped")
    assert "nothing passed" in err


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("reply['findings'] = [{'rule': 'X', 'record': None, 'path': ''}]", "found, but not expected"),
        ("reply['findings'] = 7", "the answer has no findings"),
        ("print('{', flush=True) if request['do'] != 'hello' else None", "its answer is no JSON"),
        ("sys.exit(3) if request['do'] != 'hello' else None", "it ended with exit code 3"),
        ("import time; time.sleep(9) if request['do'] != 'hello' else None", "no answer within 0.2 s"),
    ],
)
def test_an_implementation_that_goes_wrong_fails_and_does_not_hang(
    run: Run, tmp_path: Path, body: str, why: str
) -> None:
    code, out, _ = run(
        "--only",
        "ASR-289",
        "--timeout",
        "0.2" if "sleep" in body else "9",
        "--",
        *implementation(tmp_path, body),
    )
    assert code == 1
    assert why in out


def test_a_skip_is_no_failure(run: Run, tmp_path: Path) -> None:
    (file,) = (file for file in FILES if file.rule == "ASR-250")
    hard = [f"ASR-250/{number}" for number, case in enumerate(file.cases) if fails(case)]
    body = f"reply.update({{'skip': 'later'}} if request['id'] in {hard} else {{'findings': []}})"
    code, out, _ = run("--only", "ASR-250", "--", *implementation(tmp_path, body))
    total = f"{20 - len(hard)} passed, 0 failed, {len(hard)} skipped"
    assert (code, out) == (0, f"{len(hard)} skipped: later\n{total}\n")


def test_a_thousand_reasons_for_skipping_are_told_in_short(run: Run, tmp_path: Path) -> None:
    body = "reply['skip'] = f\"\\x1b[2J{request['id']}\""
    code, out, _ = run("--", *implementation(tmp_path, body))
    assert code == 1
    assert len(out.splitlines()) < 30
    assert "other reasons" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    "args",
    [
        ["--", "no-such-program-anywhere"],
        ["--", sys.executable, "-c", "print('hi')"],
        ["--kit", "nowhere", "--", *OURS],
        ["--only", "ASR-999", "--", *OURS],
        *(["--timeout", seconds, "--only", "P-ID", "--", *OURS] for seconds in ("0", "-1", "nan", "inf")),
    ],
)
def test_what_cannot_be_run_exits_two_with_one_line(run: Run, args: list[str]) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert err.startswith("callsheet: ")
    assert err.count("\n") == 1
    assert ("--timeout" in err) == ("--timeout" in args)


def test_json_outcomes(run: Run) -> None:
    code, out, _ = run("--json", "--only", "P-ID", "--", *OURS)
    assert code == 0
    assert {json.loads(line)["state"] for line in out.splitlines()} == {"passed"}
