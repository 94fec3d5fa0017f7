"""One record under audit, with all that its facts may be asked of.

Owns what is the same for every fact: which of the record's refs an entry reads, whether the entry applies to it, and
the values that its pointers lead to.

Must never know: what the values are compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from callsheet.audit.branches import Branches
from callsheet.audit.cite import Cite, Reading
from callsheet.audit.finding import Json
from callsheet.audit.ledger import Ledger
from callsheet.audit.scan import Scan
from callsheet.audit.sources import names_of
from callsheet.audit.values import above, at, fits, walk
from callsheet.errors import CallsheetError
from callsheet.records.bundle import Bundle
from callsheet.registry import Registry
from callsheet.registry.facts import Fact
from callsheet.registry.versions import in_ranges
from callsheet.registry.when import MISSING, follow


class Pointed(NamedTuple):
    """A native value: where it stands and what it is."""

    pointer: str
    value: Any


@dataclass
class Case:
    """A record, its refs and its stream.

    Attributes:
        record: The record.
        kind: Its type.
        cites: Its good refs.
        ledger: Its stream.
        reading: The sources.
        bundle: The bundle.
        registry: The registry of the stream's agent.
        before: The record that it supersedes.
        tool: The tool of its call, where that is known.
    """

    record: Json
    kind: str
    cites: list[Cite]
    ledger: Ledger
    reading: Reading
    bundle: Bundle
    registry: Registry
    before: Json | None = None
    tool: str | None = None

    @cached_property
    def calls(self) -> list[Cite]:
        """Good refs of the tool_call that the record's ``callId`` names."""
        if self.kind == "tool_call":
            return []
        position = self.ledger.call_at(self.record.get("callId", self.record.get("nativeCallId")))
        call = None if position is None else self.ledger.at(position)
        found = self.reading.follow(call, self.ledger.head.sources).good if call is not None else []
        return [cite for cite in found if cite.role == "call"]

    @property
    def branches(self) -> Branches:
        """The tree of the stream's sources."""
        return self.reading.branches(self.ledger.head.sources or frozenset())

    def blob(self, name: Any) -> bytes | None:
        """The bytes of a blob of the bundle, if it is there."""
        try:
            return self.bundle.blob(name) if isinstance(name, str) else None
        except (OSError, KeyError, ValueError, CallsheetError):
            return None

    def scan(self, cite: Cite) -> Scan:
        """The scan of the source of a ref."""
        return self.reading.scan(cite.source)

    def version(self, cite: Cite) -> str | None:
        """The agent's version on a line, else that of the session record."""
        marks = self.registry.marks
        found = follow(cite.root, marks.version) if marks.version else MISSING
        if marks.version and cite.root is not MISSING and cite.source.entry.kind not in marks.frames:
            return found if isinstance(found, str) else None
        return self.ledger.head.version

    def role_cites(self, role: str) -> list[Cite]:
        """The refs of a role."""
        if role == "*":
            return self.cites[:1]
        if role == "@call":
            return self.calls
        return self._by_role.get(role, [])

    @cached_property
    def _by_role(self) -> dict[str, list[Cite]]:
        found: dict[str, list[Cite]] = {}
        for cite in self.cites:
            found.setdefault(cite.role, []).append(cite)
        return found

    def applies(self, fact: Fact, cite: Cite) -> bool:
        """Whether an entry speaks of this record and ref."""
        if fact.tools and self.tool is not None and self.tool not in fact.tools:
            return False
        if fact.versions and not in_ranges(fact.versions, self.version(cite)):
            return False
        return fits(fact.when, cite.root, cite.pointer, cite.part)

    @staticmethod
    def at(cite: Cite, pointer: str) -> Any:
        """The value at one pointer of a condition."""
        return at(cite.root, cite.pointer, cite.part, pointer)

    def readings(self, fact: Fact, bound: tuple[int, ...]) -> Iterator[tuple[Cite, list[list[Pointed]]]]:
        """Every ref that an entry reads, with what each of its pointers leads to."""
        for cite in self.role_cites(fact.role):
            if self.applies(fact, cite):
                yield cite, [list(self.pointed(cite, pointer, bound)) for pointer in fact.pointers]

    def pointed(self, cite: Cite, pointer: str, bound: tuple[int, ...] = ()) -> Iterator[Pointed]:
        """The values at one pointer of an entry."""
        if pointer.startswith("@line"):
            for at, value in walk(self.reading.line_of(cite), pointer[5:], bound):
                yield Pointed(at, value)
        elif pointer.startswith("@"):
            named = names_of(cite.source.entry.path)
            if pointer in named:
                yield Pointed(pointer, named[pointer])
            elif pointer == "@table" and cite.table is not None:
                yield Pointed(pointer, cite.table)
            elif pointer.startswith("@key"):
                for where, value in walk(cite.key, pointer.removeprefix("@key"), bound, "@key"):
                    yield Pointed(where, value)
        elif pointer == "#":
            step = cite.pointer.rsplit("/", 1)[-1]
            if step.isascii() and step.isdigit():
                yield Pointed("#", int(step))
        elif pointer.startswith("../"):
            if cite.root is not MISSING:
                for where, value in walk(cite.root, above(cite.pointer, pointer), bound):
                    yield Pointed(where, value)
        elif pointer.startswith("."):
            for where, value in walk(cite.part, pointer[1:], bound, cite.pointer):
                yield Pointed(where, value)
        elif cite.root is not MISSING:
            for where, value in walk(cite.root, pointer, bound):
                yield Pointed(where, value)
