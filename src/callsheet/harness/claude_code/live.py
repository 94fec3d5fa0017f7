"""Claude Code as an agent that can be run: ``claude -p`` with frames both ways.

Owns: the program's name, what its ``--version`` prints, and which versions were seen. What it does in a session is
``stream.client``, what is made of it ``stream.fold``.

Must never know: how a process is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from callsheet.harness._port import Desk
from callsheet.harness._port.live import Framed
from callsheet.harness._port.veil import Veil
from callsheet.harness.claude_code.stream.client import HOOKS_SINCE, Client
from callsheet.harness.claude_code.stream.fold import Fold
from callsheet.harness.claude_code.stream.stored import KIND
from callsheet.records import SourceEntry
from callsheet.registry.versions import in_ranges
from callsheet.seam import Ability, Can, Installed, Qualified, Untried, Unusable, Wish

SEEN = "2.0.76..2.1.332"
"""Versions whose frames were captured, both ways."""
_VERSION = re.compile(r"(?<![\w.])(\d+\.\d+\.\d+[\w.+-]*)")
PRINTED_MOST = 500


class ClaudeCodeAgent:
    """The entry of ``LIVE`` (``harness._port.live.LiveAgent``)."""

    name = "claude-code"
    kind = KIND
    programs: tuple[str, ...] = ("claude",)
    listens: Mapping[str, Framed] = MappingProxyType({})

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
        frames: Ability
        if in_ranges(SEEN, version):
            frames = Can("stream_json", f"captures of {SEEN.replace('..', ' to ')}")
        else:
            age = "older" if in_ranges("<2.0.76", version) else "newer"
            frames = Untried("stream_json", f"{version} is {age} than every version that was seen")
        hooks: Ability = (
            Can("hook_events", "capture of 2.1.332")
            if in_ranges(HOOKS_SINCE, version)
            else Untried("hook_events", "older versions may refuse to start with the switch")
        )
        return Installed(command=command, version=version, evidence=said, abilities=(frames, hooks))

    def driver(self, wish: Wish) -> Client:
        """A host of it."""
        return Client(wish)

    def fold(self, desk: Desk, veil: Veil, sources: list[SourceEntry]) -> Fold:
        """The fold of frame logs."""
        return Fold(desk, veil, sources)


CLAUDE_CODE_AGENT = ClaudeCodeAgent()
