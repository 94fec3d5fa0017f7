"""Whole sessions, and what becomes of them, to the letter: the example database.

``<generation>/<case>/``: ``native/`` (without it the files are those of ``examples/``), ``why.md``,
``records/<thread>.jsonl`` (every stream of the session, one after another) and ``rows/<thread>.txt``
(the sheet as the command line shows it).
``pytest --regold`` writes the last two anew; read the difference before you commit it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from callsheet.audit import audit_bundle
from callsheet.faces.cli import cli
from callsheet.harness._port import Session
from callsheet.harness.t3code import T3CODE
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files, read_session

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "examples" / "t3code"
CASES = sorted(path.parent for path in HERE.glob("*/*/why.md"))


@pytest.fixture(params=CASES, ids=lambda path: "/".join(path.parts[-2:]))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A case; its native folder is the current one, so that no path of this machine gets into what is kept."""
    folder = Path(request.param)
    monkeypatch.chdir(native(folder))
    return folder


def name(session: Session) -> str:
    """A thread's id, as a name of a file."""
    return hashlib.sha256(session.native_id.encode()).hexdigest()[:12]


def native(case: Path) -> Path:
    own = case / "native"
    return own if own.is_dir() else EXAMPLES


def sessions() -> tuple[Files, list[Session]]:
    files = Files.below(Path())
    return files, T3CODE.sessions(".", files)


def hold(path: Path, found: str, regold: bool) -> None:
    """Compares with what is kept, or keeps it."""
    if regold:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
    assert path.is_file(), f"nothing kept yet: {path.name} (pytest --regold)"
    assert path.read_text(encoding="utf-8") == found, (
        f"{path.name} differs (pytest --regold, and read the difference)"
    )


def test_there_is_a_case() -> None:
    assert CASES


def test_records(case: Path, regold: bool) -> None:
    files, found = sessions()
    for session in found:
        text = b"".join(stream.data for stream in read_session(T3CODE, session, files).streams).decode(
            "utf-8"
        )
        hold(case / "records" / f"{name(session)}.jsonl", text, regold)
    assert {path.stem for path in (case / "records").iterdir()} == {name(session) for session in found}


def test_rows(case: Path, regold: bool) -> None:
    _, found = sessions()
    for session in found:
        options = ["--stream", session.native_id] if len(found) > 1 else []
        shown = CliRunner().invoke(
            cli, ["show", "--width", "100", *options, "--", session.main], catch_exceptions=False
        )
        assert shown.exit_code == 0, shown.output
        hold(case / "rows" / f"{name(session)}.txt", shown.output, regold)


def test_a_case_keeps_the_promises_and_says_why(case: Path) -> None:
    assert check_harness(T3CODE, native(case)) == []
    assert len((case / "why.md").read_text(encoding="utf-8").split()) > 20


def test_a_case_audits_clean(case: Path, tmp_path: Path) -> None:
    for one in import_sources([native(case)], tmp_path, kind="t3code"):
        assert isinstance(one, Imported), one
        assert list(audit_bundle(Bundle(one.bundle))) == []
