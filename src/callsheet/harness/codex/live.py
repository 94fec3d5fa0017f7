"""Codex as an agent that can be run: its app server over standard streams, or where it listens.

Owns: the program's name, what its ``--version`` prints, and which versions were seen. What it does in a session is
``app_server.client``, what is made of it ``app_server.fold``.

Must never know: how a process is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from callsheet import __version__
from callsheet.harness._port import Desk
from callsheet.harness._port.live import Framed
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.app_server.client import Client
from callsheet.harness.codex.app_server.fold import Fold
from callsheet.harness.codex.app_server.layout import KIND
from callsheet.records import SourceEntry
from callsheet.registry.versions import in_ranges
from callsheet.seam import Ability, Can, Installed, Qualified, Untried, Unusable, Wish

SEEN = "0.98.0..0.171.0"
"""Versions whose app server was captured."""
_VERSION = re.compile(r"(?<![\w.])(\d+\.\d+[\w.+-]*)")
PRINTED_MOST = 500

LISTENS: Mapping[str, Framed] = MappingProxyType({"ws": "messages", "wss": "messages", "unix": "messages"})
"""``codex app-server --listen``: a WebSocket, over a socket of the file system too."""


class CodexAgent:
    """The entry of ``LIVE`` (``harness._port.live.LiveAgent``)."""

    name = "codex"
    kind = KIND
    programs: tuple[str, ...] = ("codex",)
    listens: Mapping[str, Framed] = LISTENS

    def ask_version(self) -> tuple[str, ...]:
        """Arguments with which it prints its version."""
        return ("--version",)

    def qualify(self, command: tuple[str, ...], printed: str) -> Qualified:
        """What is installed, by what it printed."""
        said = printed.strip()[:PRINTED_MOST]
        found = _VERSION.search(printed)
        if found is None:
            return Unusable(command=command, reason=f"asked for its version it printed: {said or 'nothing'}")
        version = found.group(1)
        server: Ability
        if in_ranges("<0.98.0", version):
            server = Untried("app_server", f"{version} is older than every version that was seen")
        elif in_ranges(SEEN, version):
            server = Can("app_server", f"captures of {SEEN.replace('..', ' to ')}")
        else:
            server = Untried("app_server", f"{version} is newer than every version that was seen")
        return Installed(command=command, version=version, evidence=said, abilities=(server,))

    def driver(self, wish: Wish) -> Client:
        """A client of its app server."""
        return Client(wish, __version__)

    def fold(self, desk: Desk, veil: Veil, sources: list[SourceEntry]) -> Fold:
        """The fold of frame logs."""
        return Fold(desk, veil, sources)


CODEX_AGENT = CodexAgent()
