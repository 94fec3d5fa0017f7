"""Whole sessions per version, and what becomes of them, to the letter.

``<version>/<case>/``: ``native/`` (files of a capture, or made by hand after real shapes), ``why.md`` (what the case
shows), ``records/<session>.jsonl`` (every stream of the session, one after another) and ``rows/<session>.txt`` (the
sheet as the command line shows it). ``pytest --regold`` writes the last two anew; read the difference before you
commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from callsheet.faces.cli import cli
from callsheet.harness._port import Session
from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files, read_session

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/*/native"))


@pytest.fixture(params=CASES, ids=lambda path: "/".join(path.parts[-2:]))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A case; its native folder is the current one, so that no path of this machine gets into what is kept."""
    folder = Path(request.param)
    monkeypatch.chdir(folder / "native")
    return folder


def sessions() -> tuple[Files, list[Session]]:
    files = Files.below(Path())
    return files, CLAUDE_CODE.sessions(".", files)


def hold(path: Path, found: str, regold: bool) -> None:
    """Compares with what is kept, or keeps it."""
    if regold:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
    assert path.is_file(), f"nothing kept yet: {path.name} (pytest --regold)"
    assert path.read_text(encoding="utf-8") == found, f"{path.name} differs (pytest --regold, and read the difference)"


def test_there_are_cases_of_many_versions() -> None:
    assert len({case.parent.name for case in CASES}) >= 8


def test_records(case: Path, regold: bool) -> None:
    files, found = sessions()
    assert found
    for session in found:
        reading = read_session(CLAUDE_CODE, session, files)
        text = b"".join(stream.data for stream in reading.streams).decode("utf-8")
        hold(case / "records" / f"{session.native_id}.jsonl", text, regold)
    kept = {path.stem for path in (case / "records").iterdir()}
    assert kept == {session.native_id for session in found}


def test_rows(case: Path, regold: bool) -> None:
    _, found = sessions()
    for session in found:
        shown = CliRunner().invoke(cli, ["show", "--width", "100", "--", session.main], catch_exceptions=False)
        assert shown.exit_code == 0, shown.output
        hold(case / "rows" / f"{session.native_id}.txt", shown.output, regold)


def test_a_case_keeps_the_promises_and_says_why(case: Path) -> None:
    assert check_harness(CLAUDE_CODE, case / "native") == []
    assert len((case / "why.md").read_text(encoding="utf-8").split()) > 20
