"""The documents hold together: links lead somewhere, decisions are numbered, named commands exist.

What is generated from the code (schemas, record reference) is compared with the code elsewhere.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from callsheet.faces.cli import COMMANDS

ROOT = Path(__file__).parents[1]
SKIPPED = {".git", ".venv", "build", "dist", "node_modules"}
PAGES = sorted(
    path for path in ROOT.rglob("*.md") if not SKIPPED & set(path.relative_to(ROOT).parts) and path.is_file()
)
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
RUN = "from callsheet.faces.cli import main; main()"
SHEET = re.compile(r"<!-- sheet -->(.*?)<!-- /sheet -->", re.DOTALL)


def anchor(heading: str) -> str:
    """The fragment under which a heading is reached."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target, fragment in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        path = page.parent / target if target else page
        if not path.exists():
            broken.append(target)
        elif fragment and path.suffix == ".md":
            headings = {anchor(text) for text in HEADING.findall(path.read_text(encoding="utf-8"))}
            if fragment not in headings:
                broken.append(f"{target}#{fragment}")
    assert broken == []


def test_each_decision_has_a_number_of_its_own() -> None:
    """There may be holes: a number is given before the page is written."""
    numbers = [path.name.split("-")[0] for path in DECISIONS]
    assert len(set(numbers)) == len(numbers)
    assert all(len(number) == 4 and number.isdigit() for number in numbers)


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_parts_and_stands_in_the_index(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    number = int(path.name[:4])
    assert re.match(rf"# {number}\. \S", text), "the title is '# N. what was decided'"
    parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert parts[:3] == ["Context", "Decision", "Consequences"]
    assert f"(decisions/{path.name})" in (ROOT / "docs" / "README.md").read_text(encoding="utf-8")


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(
        re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = {
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"`(?:[A-Z]+=\S+ )?make ([a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert named
    assert {(page, target) for page, target in named if target not in targets} == set()


def test_the_sheet_in_the_readme_is_what_the_command_prints() -> None:
    (sheet,) = SHEET.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    if not sheet.strip():
        pytest.skip("the README has no sheet yet")
    command, *lines = sheet.strip().removeprefix("```console").removesuffix("```").strip().splitlines()
    assert command.startswith("$ callsheet show examples/")
    run = subprocess.run(
        [sys.executable, "-c", RUN, *shlex.split(command)[2:]],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert_quotes([line.rstrip() for line in lines], [line.rstrip() for line in run.stdout.splitlines()])


def assert_quotes(quoted: list[str], printed: list[str]) -> None:
    """Lines that are left out of a quote stand as an ellipsis, and nothing else is missing or added."""
    at = 0
    gap = False
    for line in quoted:
        if line.strip() == "…":
            gap = True
            continue
        found = printed.index(line, at) if gap else at
        assert printed[found : found + 1] == [line]
        at, gap = found + 1, False
    assert gap or at == len(printed)


@pytest.mark.parametrize(
    ("quoted", "good"),
    [
        (["a", "b", "c"], True),
        (["a", "…", "c"], True),
        (["a", "…"], True),
        (["…", "c"], True),
        (["a", "c"], False),
        (["b", "c"], False),
        (["a", "b"], False),
        (["a", "b", "c", "d"], False),
    ],
)
def test_a_quote_leaves_nothing_out_in_silence(quoted: list[str], good: bool) -> None:
    if good:
        assert_quotes(quoted, ["a", "b", "c"])
    else:
        with pytest.raises(AssertionError):
            assert_quotes(quoted, ["a", "b", "c"])


def test_the_readme_names_every_command_with_all_its_options() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {
        found[1]: found[0]
        for found in (re.match(r"\| `callsheet ([a-z]+)[^`]*`", line) for line in text.splitlines())
        if found
    }
    assert set(rows) == set(COMMANDS)
    for name, row in rows.items():
        module, _, attribute = COMMANDS[name].place.partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, click.Group):
            command = command.commands[row.split()[3]]
        known = {option for parameter in command.params for option in parameter.opts if option[0] == "-"}
        assert sorted(re.findall(r"--[a-z-]+", row.replace(" -- ", " "))) == sorted(known), name


def test_the_example_sessions_are_all_described() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    sessions = {path.stem.split("-")[0] for path in (ROOT / "examples").glob("*/projects/*/*-*-*-*-*.jsonl")}
    assert sessions
    assert sessions == set(re.findall(r"^\| `([0-9a-f]{8})-…`", text, re.MULTILINE))
