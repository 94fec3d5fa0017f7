"""Whole threads and logs per generation, and what becomes of them, to the letter.

``<version>/<case>/``: ``native/`` (files of a capture, their folder renamed), ``why.md`` (what the case shows),
``records/<session>.jsonl`` (every stream of the session, one after another; of a log ``<session>.exec.jsonl``) and, for
some, ``rows/<session>.txt`` (the sheet as the command line shows it). ``pytest --regold`` writes these anew; read the
difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from callsheet.faces.cli import cli
from callsheet.harness._port import Session, Stored
from callsheet.harness.codex import CODEX, CODEX_EXEC
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files, read_session

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/*/native"))
DRAWN = [
    "0.20.0/bare",
    "0.36.0/mixed",
    "0.163.0/commands",
    "0.163.0/same_ids",
    "0.163.0/person",
    "0.171.0/agents",
]


@pytest.fixture(params=CASES, ids=lambda path: "/".join(path.parts[-2:]))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A case; its native folder is the current one, so that no path of this machine gets into what is kept."""
    folder = Path(request.param)
    monkeypatch.chdir(folder / "native")
    return folder


def sessions(files: Files) -> Iterator[tuple[Stored, Session, str]]:
    """Every session with its adapter and the name under which it is kept."""
    for adapter, ending in ((CODEX, ""), (CODEX_EXEC, ".exec")):
        names: set[str] = set()
        for session in adapter.sessions(".", files):
            name = session.native_id + ending
            name = name if name not in names else f"{name}.{len(names)}"
            names.add(name)
            yield adapter, session, name


def hold(path: Path, found: str, regold: bool) -> None:
    """Compares with what is kept, or keeps it."""
    if regold:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
    assert path.is_file(), f"nothing kept yet: {path.name} (pytest --regold)"
    assert path.read_text(encoding="utf-8") == found, (
        f"{path.name} differs (pytest --regold, and read the difference)"
    )


def test_there_are_cases_of_every_generation() -> None:
    versions = {case.parent.name for case in CASES}
    assert versions >= {"0.20.0", "0.36.0", "0.63.0", "0.98.0", "0.115.0", "0.130.0", "0.163.0", "0.171.0"}
    assert {"/".join(case.parts[-2:]) for case in CASES} > set(DRAWN)


def test_records(case: Path, regold: bool) -> None:
    files = Files.below(Path())
    kept: set[str] = set()
    for adapter, session, name in sessions(files):
        reading = read_session(adapter, session, files)
        text = b"".join(stream.data for stream in reading.streams).decode("utf-8")
        hold(case / "records" / f"{name}.jsonl", text, regold)
        kept.add(f"{name}.jsonl")
    assert kept
    assert {path.name for path in (case / "records").iterdir()} == kept


@pytest.mark.parametrize("name", DRAWN)
def test_rows(name: str, regold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = HERE / name
    monkeypatch.chdir(case / "native")
    for _, session, kept in sessions(Files.below(Path())):
        shown = CliRunner().invoke(
            cli, ["show", "--width", "100", "--", session.main], catch_exceptions=False
        )
        assert shown.exit_code == 0, shown.output
        hold(case / "rows" / f"{kept}.txt", shown.output, regold)


def test_a_case_keeps_the_promises_and_says_why(case: Path) -> None:
    for adapter in (CODEX, CODEX_EXEC):
        assert check_harness(adapter, case / "native") == []
    assert len((case / "why.md").read_text(encoding="utf-8").split()) > 20
