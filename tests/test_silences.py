"""The matrix of silences: every question has an answer, and the pages are what the registries say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from callsheet.registry import HARNESSES, Harness, Never, Registry, Silence, load
from callsheet.registry.facts import Fact
from callsheet.testing.silences import (
    FOLDER,
    KINDS,
    OTHER,
    Question,
    answer,
    missing,
    pages,
    questions,
    stale,
    written_words,
)

UNANSWERED: tuple[str, ...] = ()
"""Harnesses whose registries do not answer every question yet; take one out when its last row is there."""

PARTLY_SILENT = {
    ("openclaw", "tool_result", "exec.command"),
    ("openclaw", "tool_result", "exec.output"),
    ("t3code", "tool_call", "requestedBy"),
}
"""Never recorded for the calls of agents; what facts give is about a person's own command, as their notes say."""

HARD = [
    Question("tool_call", "requestedBy", "harness"),
    Question("tool_call", "requestedBy", "code"),
    Question("tool_call", "provider.kind", "plugin"),
    Question("tool_call", "provider.kind", "connector"),
    Question("tool_call", "provider.kind", "builtin"),
    Question("tool_result", "exec.timedOut", True),
    Question("tool_result", "exec.signal"),
    Question("tool_result", "exec.terminalId"),
    Question("terminal", "awaited"),
    Question("input_request", "blocking"),
    Question("input_request", "answerRef"),
    Question("input_request", "answeredBy"),
    Question("permission", "status", "held"),
    Question("permission", "decidedBy", "auto_mode"),
    Question("hook", "decision"),
    Question("hook", "event", OTHER),
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason="rows to add to its registry"))
        if name in UNANSWERED
        else name
        for name in HARNESSES
    ],
)
def test_every_question_has_an_answer(name: str) -> None:
    lacking = missing(name)
    assert not lacking, f"registry/{name}.toml lacks {len(lacking)} rows:\n" + "\n".join(lacking)


def test_no_silence_is_about_what_a_fact_gives() -> None:
    loud = set()
    for name in HARNESSES:
        registry = load(name)
        for one in registry.never:
            if not (one.tools or one.kinds) and any(
                _speaks(fact, one.record, one.member) for fact in registry.fact
            ):
                loud.add((name, one.record, one.member))
        for row in (row for row in registry.silence if not row.kinds):
            if row.value not in (None, "*"):
                facts = (fact for fact in registry.fact if _speaks(fact, row.record, row.member))
                words = (written_words(registry, fact, row.member) for fact in facts)
                if any(row.value in (of or ()) for of in words):
                    loud.add((name, row.record, row.member))
            elif row.value is None and any(_speaks(fact, row.record, row.member) for fact in registry.fact):
                loud.add((name, row.record, row.member))
    assert loud == PARTLY_SILENT


def _speaks(fact: Fact, record: str, member: str) -> bool:
    return fact.record in (record, "*") and (fact.member == member or fact.member.startswith(f"{member}."))


def test_the_questions_are_those_of_the_six_types() -> None:
    rows = questions()
    assert len(rows) == len(set(rows))
    assert {row.record for row in rows} == {str(kind.__struct_config__.tag) for kind in KINDS}
    assert set(HARD) <= set(rows)


@pytest.mark.parametrize("question", HARD, ids=lambda one: f"{one.record}.{one.member}={one.value}")
def test_the_hard_questions_about_claude_code(question: Question) -> None:
    cell = answer(load("claude-code"), question)
    assert cell.sign != "missing"
    assert cell.text


def test_an_answer_is_what_the_registry_says() -> None:
    def fact(member: str, **more: object) -> Fact:
        return Fact(record="tool_result", role="r", member=member, pointer="/x", **more)  # type: ignore[arg-type]

    registry = Registry(
        harness=Harness(name="x"),
        fact=[
            fact("status", words={"ok": "completed"}),
            fact("exec.timedOut", then=True),
            fact("permission"),
            fact("linkage", via="table", table="linkage"),
        ],
        never=[
            Never(record="tool_result", member="exec.signal", note="no signals"),
            Never(record="permission", member="requestId", note="no requests"),
        ],
        silence=[
            Silence(record="tool_result", member="status", value="failed", note="all is well"),
            Silence(record="tool_result", member="status", value="*", unseen=True, note="not met"),
            Silence(record="hook", member="*", note="no hooks"),
        ],
    )

    def sign(record: str, member: str, value: str | bool | None = None) -> str:
        return answer(registry, Question(record, member, value)).sign

    assert sign("tool_result", "status") == "written"
    assert sign("tool_result", "status", "completed") == "written"
    assert sign("tool_result", "status", "failed") == "never"
    assert sign("tool_result", "status", "denied") == "unseen"
    assert sign("tool_result", "exec.timedOut", True) == "written"
    assert sign("tool_result", "exec.timedOut", False) == "missing"
    assert sign("tool_result", "exec.signal") == "never"
    assert sign("tool_result", "exec.exitCode") == "missing"
    assert sign("tool_result", "permission.decision", "allow_once") == "written"  # as the source words it
    assert sign("tool_result", "linkage", "ambiguous") == "written"
    assert sign("permission", "options.*.kind", "cancel") == "never"
    assert sign("hook", "event", "stop") == "never"
    assert sign("terminal", "terminalId") == "missing"


def test_the_pages_are_what_the_registries_say() -> None:
    assert stale(FOLDER) == [], "python -m callsheet.testing.silences"
    assert {path.name for path in (FOLDER / "silences").iterdir()} == {f"{name}.md" for name in HARNESSES}


def test_the_command(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "callsheet.testing.silences", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    assert run("--check", str(tmp_path)).returncode == 1
    assert run(str(tmp_path)).returncode == 0
    assert run("--check", str(tmp_path)).returncode == 0
    page = tmp_path / "silences.md"
    page.write_text(page.read_text().replace("✓", "·", 1))
    told = run("--check", str(tmp_path))
    assert (told.returncode, told.stdout.count("\n")) == (1, 1)
    assert run("--missing", "claude-code").stdout == ""
    assert next(name for name, _ in pages()) == "silences.md"


def test_a_source_may_be_silent_about_what_another_of_its_harness_says() -> None:
    cell = answer(load("claude-code"), Question("permission", "options"))
    assert cell.sign == "written"
    assert "; not in claude-code: " in cell.text
    rows: list[Never | Silence] = [*load("claude-code").never, *load("claude-code").silence]
    kinds = {kind for row in rows for kind in row.kinds}
    assert kinds == set(load("claude-code").harness.kinds)
