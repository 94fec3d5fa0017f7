"""Tests against real agents: no network, no account, and nothing of this user's in their environment."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.network import isolated

NOT_ISOLATED = isolated()
"""Why the network is still there; None when it is not."""


def pytest_report_header() -> str:
    return "network: loopback only" if NOT_ISOLATED is None else f"network: STILL THERE ({NOT_ISOLATED})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if NOT_ISOLATED is not None:
        words = f"WARNING: agents ran beside the network, no namespace could be made: {NOT_ISOLATED}"
        terminalreporter.write_line(words, yellow=True, bold=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own; of this process's environment nothing is left."""
    made = tmp_path / "home"
    made.mkdir()
    for name in list(os.environ):
        if not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(made),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("default", ResourceWarning)
        yield made
