"""Agents at the WebSocket of the protocol's draft of remote transports, served by the protocol's own SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.live.npm import NODE, SDK, WS

from callsheet.audit import audit_bundle
from callsheet.harness import LIVE
from callsheet.live import Address, Policy
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import Completed
from callsheet.testing.check_live import imports_alike
from callsheet.testing.live_run import run_turn

pytest.importorskip("websockets", reason="needs the extra `live` (websockets)")
for package in (SDK, NODE, WS):
    if not package.path.exists():
        words = f"needs npm package {package.name} {package.version} (make test-live)"
        pytest.skip(words, allow_module_level=True)
ACP = next(agent for agent in LIVE if agent.name == "acp")


@contextmanager
def served(*command: str) -> Iterator[Address]:
    """A command at an address."""
    script = Path(__file__).with_name("serve.mjs")
    words = [str(NODE.path), str(script), str(SDK.folder / SDK.name), str(WS.folder / WS.name), *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8") as server:
        assert server.stdout is not None
        try:
            yield Address.parse(server.stdout.readline().strip())
            assert server.poll() is None, "it was left running"
        finally:
            server.kill()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("script", ["turn", "everything"])
def test_a_turn_at_the_servers_address(home: Path, tmp_path: Path, version: int, script: str) -> None:
    toy = (sys.executable, "-m", "callsheet.testing.toy_agent", "--version", str(version), script)
    with served(*toy) as address:
        for name in ("first", "second"):
            ran = asyncio.run(run_turn(ACP, address, tmp_path / name, port=Policy("allow")))
            assert ran.result == Completed("end_turn")
            assert ran.closed is not None
            assert (ran.closed.how, ran.closed.problems) == ("kept", ())
            assert list(check_bundle(Bundle(ran.bundle))) == []
            assert list(audit_bundle(Bundle(ran.bundle))) == []
            if script == "turn":  # of an agent's agents, a live fold writes one state more (decision 29)
                assert imports_alike(ACP, ran.bundle) == []
