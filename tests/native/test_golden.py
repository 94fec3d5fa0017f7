"""Whole frame logs, chats and stores, and what becomes of them, to the letter.

``<harness>/<version>/<case>/``: ``native/`` (without it the files are those of ``examples/<harness>``), ``why.md``,
``records/<session>.jsonl`` (every stream of the session, one after another) and ``rows/<session>.txt`` (the sheet as the
command line shows it). ``pytest --regold`` writes the last two anew; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from callsheet.faces.cli import cli
from callsheet.harness._port import Session, Stored
from callsheet.harness.acp import ACP
from callsheet.harness.gemini import GEMINI
from callsheet.harness.opencode import OPENCODE
from callsheet.testing.desk import Files, read_session

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
KINDS: dict[str, Stored] = {"acp": ACP, "gemini": GEMINI, "opencode": OPENCODE}
CASES = sorted(path.parent for kind in KINDS for path in (HERE / kind).glob("*/*/why.md"))


@pytest.fixture(params=CASES, ids=lambda path: "/".join(path.parts[-3:]))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A case; its native folder is the current one, so that no path of this machine gets into what is kept."""
    folder = Path(request.param)
    native = folder / "native"
    monkeypatch.chdir(native if native.is_dir() else EXAMPLES / folder.parts[-3])
    return folder


def sessions(case: Path) -> tuple[Stored, Files, list[Session]]:
    adapter, files = KINDS[case.parts[-3]], Files.below(Path())
    return adapter, files, adapter.sessions(".", files)


def name_of(session: Session, found: list[Session]) -> str:
    """The session's id; with the name of its file where several have it."""
    alone = sum(one.native_id == session.native_id for one in found) == 1
    return session.native_id if alone else f"{session.native_id}.{Path(session.main).stem}"


def hold(path: Path, found: str, regold: bool) -> None:
    """Compares with what is kept, or keeps it."""
    if regold:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
    assert path.is_file(), f"nothing kept yet: {path.name} (pytest --regold)"
    assert path.read_text(encoding="utf-8") == found, (
        f"{path.name} differs (pytest --regold, and read the difference)"
    )


def test_every_harness_has_cases() -> None:
    assert {case.parts[-3] for case in CASES} == set(KINDS)


def test_records(case: Path, regold: bool) -> None:
    adapter, files, found = sessions(case)
    for session in found:
        text = b"".join(stream.data for stream in read_session(adapter, session, files).streams).decode()
        hold(case / "records" / f"{name_of(session, found)}.jsonl", text, regold)
    assert {path.stem for path in (case / "records").iterdir()} == {name_of(one, found) for one in found}


def test_rows(case: Path, regold: bool) -> None:
    _, _, found = sessions(case)
    for session in found:
        shown = CliRunner().invoke(
            cli, ["show", "--width", "100", "--", session.main], catch_exceptions=False
        )
        assert shown.exit_code == 0, shown.output
        hold(case / "rows" / f"{name_of(session, found)}.txt", shown.output, regold)
