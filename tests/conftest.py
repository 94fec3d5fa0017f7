"""What every test may ask for: the shared folder, and a count of what its absence cost.

Captures of real agents and the cases built on them are too large for the repository. Tests that
need them take the fixture ``shared`` and are skipped, aloud, when ``--shared=DIR`` is not given. (With
the equals sign: in two words pytest takes DIR for a folder of tests before it has read this file.)
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# What was started without a terminal may ignore signals, and hands that on to the programs that tests start and stop.
_USUAL: dict[int, Any] = {
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}
for number, usual in _USUAL.items():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

NO_SHARED = "needs the folder of captures and cases (--shared=DIR)"

# A run that decides whether a change lands must not depend on luck: there, the same examples are drawn each time.
# A busy machine is no finding either.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shared",
        metavar="DIR",
        default=None,
        help="folder of captures and cases that are too large for the repository",
    )
    parser.addoption(
        "--regold",
        action="store_true",
        help="write what golden tests compare with anew (read the difference before you commit it)",
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--shared")
    if given is not None and not Path(given).is_dir():
        raise pytest.UsageError(f"--shared {given}: no such folder")


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder given as ``--shared``; without one the test is skipped."""
    given = request.config.getoption("--shared")
    if given is None:
        pytest.skip(NO_SHARED)
    return Path(given).resolve()


@pytest.fixture
def regold(request: pytest.FixtureRequest) -> bool:
    """Whether golden tests write what they compare with."""
    return bool(request.config.getoption("--regold"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    missed = sum(isinstance(report.longrepr, tuple) and NO_SHARED in report.longrepr[2] for report in skipped)
    if missed:
        terminalreporter.write_line(
            f"skipped because --shared=DIR was not given: {missed}", yellow=True, bold=True
        )
