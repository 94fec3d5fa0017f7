"""Panes of tmux for tests that drive the workbench with real agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live.tui.pane import TMUX, Pane


@pytest.fixture
def panes(tmp_path: Path) -> Iterator[Callable[..., Pane]]:
    if TMUX is None:
        pytest.skip("needs tmux")
    made: list[Pane] = []

    def pane(*command: str, **more: Any) -> Pane:
        made.append(Pane(tmp_path, *command, **more))
        return made[-1]

    yield pane
    for one in made:
        one.close()
