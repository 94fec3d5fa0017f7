"""Codex passes the kit that every live adapter passes, over a toy of its app server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from callsheet.harness.codex import CODEX_AGENT
from callsheet.testing.check_live import PLAYS, check_live_harness

TOY = Path(__file__).parent / "toy_server.py"


@pytest.mark.parametrize("play", PLAYS)
def test_codex_passes(play: str, tmp_path: Path) -> None:
    commands = dict.fromkeys(PLAYS, "one at a time") | {play: (sys.executable, str(TOY), play)}
    assert check_live_harness(CODEX_AGENT, commands, tmp_path) == []
