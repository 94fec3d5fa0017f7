"""Whole frame logs per version, and what becomes of them, to the letter.

``<version>/<case>/``: ``native/`` (the log of a capture), ``why.md`` (what the case shows), ``records/<log>.jsonl`` (every
stream, one after another) and ``rows/<log>.txt`` (the sheet as the command line shows it). ``pytest --regold`` writes
the last two anew; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from callsheet.faces.cli import cli
from callsheet.harness.claude_code import CLAUDE_CODE_STREAM
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


def hold(path: Path, found: str, regold: bool) -> None:
    """Compares with what is kept, or keeps it."""
    if regold:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
    assert path.is_file(), f"nothing kept yet: {path.name} (pytest --regold)"
    assert path.read_text(encoding="utf-8") == found, f"{path.name} differs (pytest --regold, and read the difference)"


def test_records_and_rows(case: Path, regold: bool) -> None:
    files = Files.below(Path())
    (session,) = CLAUDE_CODE_STREAM.sessions(".", files)
    reading = read_session(CLAUDE_CODE_STREAM, session, files)
    name = Path(session.main).stem
    hold(case / "records" / f"{name}.jsonl", b"".join(one.data for one in reading.streams).decode(), regold)
    shown = CliRunner().invoke(cli, ["show", "--width", "100", "--", session.main], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    hold(case / "rows" / f"{name}.txt", shown.output, regold)


def test_a_case_keeps_the_promises_and_says_why(case: Path) -> None:
    assert check_harness(CLAUDE_CODE_STREAM, case / "native") == []
    assert len((case / "why.md").read_text(encoding="utf-8").split()) > 20
