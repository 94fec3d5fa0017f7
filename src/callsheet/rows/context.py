"""What every reducer needs: the pairing, a way to read a record again, the registry, the bounds.

Owns record ids as row ids, paths under the session's roots, and the count of what was not drawn. A context
holds no record longer than a row needs it.

Must never know: files (it is handed ``fetch`` and ``blob``), how rows are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct, field

from callsheet.pairing import Pairing
from callsheet.records import PathRef, Record, Session, Unknown
from callsheet.registry import Registry, Tool, known
from callsheet.rows.row import Limits
from callsheet.rows.text import Blob

Fetch = Callable[[int], Record | Unknown]
"""Reads a record of the stream again by its number."""

R = TypeVar("R", bound=Record)


class View(Struct, frozen=True):
    """What is drawn besides calls, messages and summaries.

    Attributes:
        thoughts: Also reasoning that is raw, or whose nature the source does not state (decision 11).
        audit: Every record has a row.
    """

    thoughts: bool = False
    audit: bool = False


class Context(Struct, kw_only=True):
    """What the reducers share for one stream.

    Attributes:
        open_turn: A turn is still running, so a call without a result may yet get one.
        provisional: The stream is still being read.
        hidden: What was left out of the rows, in words, and how often.
    """

    pairing: Pairing
    fetch: Fetch
    registry: Registry | None = None
    tools: dict[str, Tool] = {}
    blob: Blob | None = None
    limits: Limits = Limits()
    view: View = View()
    roots: dict[str, str] = {}
    sources: dict[str, str] = {}
    open_turn: bool = False
    provisional: bool = False
    hidden: Counter[str] = field(default_factory=Counter)

    def take_session(self, session: Session) -> None:
        """Learns agent, roots and sources from the head of the stream; a registry that was given stays."""
        if self.registry is None and session.agent is not None:
            self.registry = known(session.agent.name)
        for source in session.sources or ():
            # A protocol that many agents speak is known by the kind of its source.
            self.registry = self.registry or known(source.kind)
        self.roots = session.roots or {}
        self.sources = {source.id: source.path for source in session.sources or ()}

    def tool(self, name: str | None) -> Tool | None:
        """What the registry says of a tool, by its exact name."""
        if not self.tools and self.registry is not None:
            self.tools = {tool.name: tool for tool in self.registry.tool}
        return self.tools.get(name) if name is not None else None

    def latest(self, number: int, kind: type[R]) -> R:
        """The last record of an entity."""
        record = self.fetch(self.pairing.latest(number))
        if not isinstance(record, kind):
            raise TypeError(f"record {number} is no {kind.__name__}: the stream changed while it was read")
        return record

    def linked(self, call_id: str | None, kind: type[R]) -> list[R]:
        """The latest records of one type that belong to the one call of this id, bounded."""
        if self.pairing.call(call_id) is None:
            return []
        numbers = self.pairing.linked(call_id, kind)[: self.limits.items]
        return [self.latest(number, kind) for number in numbers]

    def row_id(self, number: int) -> str:
        """The row id of an entity: the id of its first record."""
        return self.fetch(number).id or f"#{number}"

    def parent_row(self, call_id: str | None) -> str | None:
        """The row of the one call of this id."""
        number = self.pairing.call(call_id)
        return None if number is None else self.row_id(number)

    def path(self, ref: PathRef) -> str:
        """A path under a root as one text; absolute where the session names the root's folder."""
        base = self.roots.get(ref.root)
        if base is None:
            return ref.path if ref.root == "host" else f"{ref.root}:{ref.path}"
        if ref.path in ("", "."):
            return base
        mark = "\\" if "\\" in base and "/" not in base else "/"
        return base.rstrip(mark) + mark + ref.path
