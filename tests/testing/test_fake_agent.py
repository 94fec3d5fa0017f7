"""The fake agent's command line: what it says where there is no script."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.testing.fake_agent import main


def test_help_is_usage_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("usage: python -m callsheet.testing.fake_agent SCRIPT")
    assert said.err == ""


@pytest.mark.parametrize("argv", [[], ["{}", "{}"]], ids=["none", "two"])
def test_wrong_arguments_are_told_the_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    said = capsys.readouterr()
    assert said.err.startswith("usage: ")
    assert said.out == ""


@pytest.mark.parametrize("text", ["{broken", "/nowhere/script.json", "[]"])
def test_what_is_no_script_is_one_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "list.json"
    listed.write_text("[]", encoding="utf-8")
    assert main([str(listed) if text == "[]" else text]) == 2
    said = capsys.readouterr().err
    assert said.startswith("callsheet-fake: ")
    assert "no script" in said
    assert said.count("\n") == 1
