"""MCP servers and tools that a file names, and which of them a composite tool name can stand for (decision 9).

Owns the dictionary of pairs and the rule by which Claude Code makes a name of a pair. The name is never split.

Must never know: calls, lines.
"""

from __future__ import annotations

from callsheet.records import Provider

PREFIX = "mcp__"


class Servers:
    """Pairs of server and tool, by the name that Claude Code makes of them."""

    def __init__(self) -> None:
        self._pairs: dict[str, set[tuple[str, str]]] = {}
        self._heads: dict[str, set[str]] = {}
        self._settled: dict[str, Provider] = {}

    def add(self, server: str, tool: str) -> None:
        """Takes note of a pair."""
        self._pairs.setdefault(composite_name(server, tool), set()).add((server, tool))
        self._heads.setdefault(composite_name(server, ""), set()).add(server)

    def provider(self, name: str) -> Provider:
        """Where a tool comes from: known only when one pair makes its name and no other server could have made it.

        To be asked when every pair was added.
        """
        made = self._settled.get(name)
        if made is None:
            made = self._settled[name] = self._provider(name)
        return made

    def _provider(self, name: str) -> Provider:
        pairs = self._pairs.get(name, set())
        if len(pairs) == 1 and len(self._fitting(name)) == 1:
            server, tool = next(iter(pairs))
            return Provider(kind="mcp", server=server, tool=tool, identity="parsed")
        return Provider(kind="mcp", identity="unknown")

    def _fitting(self, name: str) -> set[str]:
        found: set[str] = set()
        at = name.find("__", len(PREFIX))
        while at >= 0:
            found |= self._heads.get(name[: at + 2], set())
            at = name.find("__", at + 1)
        return found


def composite_name(server: str, tool: str) -> str:
    """The tool name that Claude Code makes of an MCP server and tool (every other character becomes ``_``)."""
    return f"mcp__{_normal(server)}__{_normal(tool)}"


def _normal(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
