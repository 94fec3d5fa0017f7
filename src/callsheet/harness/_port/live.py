"""The port between an adapter of a live agent and the shell that runs it: one entry of ``LIVE``.

An adapter names its programs, reads what ``--version`` prints, makes a driver (what to send, what a frame means for
those who watch) and a fold (what a frame means for the record). It starts nothing and opens nothing.

Must never know: processes, clocks, another harness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from callsheet.harness._port import Desk
from callsheet.harness._port.fold import Folding
from callsheet.harness._port.veil import Veil
from callsheet.records import SourceEntry
from callsheet.seam import Driver, Qualified, Wish

Framed = Literal["lines", "messages"]
"""How frames are told apart at an address: a line each, or a message of a WebSocket each."""


class LiveAgent(Protocol):
    """An adapter of a live agent.

    Attributes:
        name: Its word in ``callsheet run``.
        kind: Kind of its frame log.
        programs: Names that are looked for when no command is given, in order.
        listens: Schemes of the addresses at which such agents listen, and how frames are told apart there; empty for
            one that is only started.
    """

    name: str
    kind: str
    programs: tuple[str, ...]
    listens: Mapping[str, Framed]

    def ask_version(self) -> tuple[str, ...]:
        """Arguments with which its program prints its version; empty when it has none."""

    def qualify(self, command: tuple[str, ...], printed: str) -> Qualified:
        """What is installed and what it can do, by what it printed."""

    def driver(self, wish: Wish) -> Driver:
        """A connection's state machine."""

    def fold(self, desk: Desk, veil: Veil, sources: list[SourceEntry]) -> Folding:
        """A connection's fold: the same that imports its frame log."""
