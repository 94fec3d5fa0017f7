"""A toy of Claude Code passes the kit of live adapters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from callsheet.harness.claude_code import CLAUDE_CODE_AGENT
from callsheet.testing.check_live import PLAYS, check_live_harness

TOY = Path(__file__).parent / "claude_toy.py"


@pytest.mark.parametrize("play", PLAYS)
def test_the_toy_passes_the_kit_of_live_adapters(play: str, tmp_path: Path) -> None:
    # The arguments that real programs are started with come behind the play's name.
    command = [sys.executable, str(TOY), play]
    one: dict[str, Sequence[str] | str] = {**dict.fromkeys(PLAYS, "one at a time"), play: command}
    assert check_live_harness(CLAUDE_CODE_AGENT, one, tmp_path) == []
