"""A house for Codex, for every test here."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.codex.house import PROGRAM, MakeHouse, living


@pytest.fixture
def house(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeHouse:
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    monkeypatch.setenv("SCRIPTED_KEY", "none")
    return lambda scripts, **settings: living(home, tmp_path, PROGRAM, scripts, **settings)
