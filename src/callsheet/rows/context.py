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
from callsheet.records import PathRef, Record, Session, SourceEntry, Unknown
from callsheet.registry import Registry, Tool, of_session
from callsheet.rows.row import Limits, NativePlace
from callsheet.rows.text import Blob

Fetch = Callable[[int], Record | Unknown]
"""Reads a record of the stream again by its number."""

R = TypeVar("R", bound=Record)


HIDDEN: tuple[str, ...] = ("harness_messages", "thoughts_raw", "thoughts_unstated", "thoughts_empty")
"""What may be left out of the rows: messages of the harness; reasoning that is raw, whose nature the source
does not state, or that has no text."""


def registry_of(session: Session) -> Registry | None:
    """What is known of a session's agent or, where many agents speak one protocol, of that protocol."""
    agent = session.agent.name if session.agent is not None else None
    return of_session(agent, (source.kind for source in session.sources or ()))


def has_captures(registry: Registry | None) -> bool:
    """Whether captures are what speaks for content that no recorded request carries (decision 7)."""
    return registry is not None and (
        bool(registry.content) or any(agent.content is not None for agent in registry.agent)
    )


class View(Struct, frozen=True):
    """What is drawn besides calls, messages and summaries.

    Attributes:
        thoughts: Also reasoning that is raw, or whose nature the source does not state (decision 11).
        audit: Every record has a row.
        harness: Messages that the harness itself put into the conversation have rows.
    """

    thoughts: bool = False
    audit: bool = False
    harness: bool = True


class Context(Struct, kw_only=True):
    """What the reducers share for one stream.

    Attributes:
        open_turn: A turn is still running, so a call without a result may yet get one.
        open_from: The first record of that turn; what earlier turns left open stays as it is.
        provisional: The stream is still being read.
        hidden: What was left out of the rows (``HIDDEN``), and how often.
    """

    pairing: Pairing
    fetch: Fetch
    registry: Registry | None = None
    tools: dict[str, Tool] = {}
    blob: Blob | None = None
    limits: Limits = Limits()
    view: View = View()
    roots: dict[str, str] = {}
    sources: dict[str, SourceEntry] = {}
    open_turn: bool = False
    open_from: int = 0
    provisional: bool = False
    hidden: Counter[str] = field(default_factory=Counter)

    def take_session(self, session: Session) -> None:
        """Learns agent, roots and sources from the head of the stream; a registry that was given stays."""
        self.registry = self.registry or registry_of(session)
        self.roots = session.roots or {}
        self.sources = {source.id: source for source in session.sources or ()}

    def may_run(self, number: int) -> bool:
        """Whether what began with this record, or was last seen in it, may be running now."""
        return self.open_turn and number >= self.open_from

    def source_path(self, source: str) -> str:
        """The path of a source by its id; the id where no session record names it."""
        entry = self.sources.get(source)
        return entry.path if entry is not None else source

    def places(self, *records: Record | None) -> list[NativePlace] | None:
        """Where some records stand in the native sources, bounded; each place once."""
        found: dict[str, NativePlace] = {}
        for record in records:
            for ref in record.native.refs if record is not None and record.native else ():
                place = NativePlace(
                    source=self.source_path(ref.source),
                    line=ref.line,
                    table=ref.table,
                    key=ref.key,
                    role=ref.role,
                )
                found.setdefault(repr(place), place)
                if len(found) == self.limits.places:
                    return list(found.values())
        return list(found.values()) or None

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
