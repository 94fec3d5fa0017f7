"""Agents of this protocol that can be run: any command (``acp``), and the ones with a name of their own.

Owns: the programs of known agents, the arguments that make them speak the protocol, and what their ``--version``
prints. What an agent can do it says in its handshake, not here.

Must never know: how a process is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from callsheet import __version__
from callsheet.harness._port import Desk
from callsheet.harness._port.live import Framed
from callsheet.harness._port.veil import Veil
from callsheet.harness.acp.client import Client
from callsheet.harness.acp.fold import Fold
from callsheet.harness.acp.stored import KIND
from callsheet.records import SourceEntry
from callsheet.registry.versions import in_ranges
from callsheet.seam import Installed, Qualified, Unusable, Wish

_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d+[\w.+-]*)")
PRINTED_MOST = 500

LISTENS: Mapping[str, Framed] = MappingProxyType(
    {"ws": "messages", "wss": "messages", "tcp": "lines", "unix": "lines"}
)
"""The WebSocket of the protocol's draft of remote transports, and the lines of its standard streams on a socket."""


class Speaks(Struct, frozen=True):
    """How an agent is made to speak the protocol.

    Attributes:
        arguments: What follows its command.
        versions: Range of versions that are started so; empty for all others.
    """

    arguments: tuple[str, ...] = ()
    versions: str = ""


class AcpAgent(Struct):
    """One entry of ``LIVE`` (``harness._port.live.LiveAgent``).

    Attributes:
        name: Its word in ``callsheet run``.
        programs: Names that are looked for.
        speaks: Ways to start it; the first that fits its version.
        version: Arguments with which it prints its version; empty when it has none.
        lends: It is offered our files and terminals: an agent that nobody knows may not work without. One at an
            address never is: what it may use is what there is where it runs.
        listens: Where such agents listen.
    """

    name: str
    programs: tuple[str, ...] = ()
    speaks: tuple[Speaks, ...] = (Speaks(),)
    version: tuple[str, ...] = ()
    lends: bool = False
    kind: str = KIND
    listens: Mapping[str, Framed] = LISTENS

    def ask_version(self) -> tuple[str, ...]:
        """Arguments with which its program prints its version."""
        return self.version

    def qualify(self, command: tuple[str, ...], printed: str) -> Qualified:
        """What is installed, by what it printed."""
        if not self.version:
            return Installed(command=command, version=None, evidence="the handshake will tell its version")
        found = _VERSION.search(printed)
        if found is None:
            said = printed.strip()[:PRINTED_MOST] or "nothing"
            return Unusable(command=command, reason=f"asked for its version it printed: {said}")
        return Installed(command=command, version=found.group(1), evidence=printed.strip()[:PRINTED_MOST])

    def driver(self, wish: Wish) -> Client:
        """A client of this agent."""
        fitting = [way for way in self.speaks if not way.versions or in_ranges(way.versions, wish.version)]
        return Client(wish, fitting[0].arguments, __version__, lends=self.lends and wish.at is None)

    def fold(self, desk: Desk, veil: Veil, sources: list[SourceEntry]) -> Fold:
        """The fold of frame logs, with nothing known beforehand."""
        return Fold(desk, veil, sources)


ACP_AGENTS: tuple[AcpAgent, ...] = (
    AcpAgent("acp", lends=True),
    AcpAgent("claude-acp", ("claude-agent-acp",)),
    AcpAgent("codex-acp", ("codex-acp",)),
    AcpAgent(
        "gemini",
        ("gemini",),
        # From 0.33 on; before, the word was another.
        (Speaks(("--experimental-acp",), "<0.33"), Speaks(("--acp",))),
        ("--version",),
    ),
    AcpAgent("opencode", ("opencode",), (Speaks(("acp",)),), ("--version",)),
)
"""Agents of this protocol by name. Any other is ``acp`` with a command."""
