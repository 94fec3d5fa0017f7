"""The audit of one stream: what is asked of which record type.

Owns the way of a record through the checks: its refs, its envelope, its captures, its members; and that a call
or result is made of a native one. A record can be audited alone, when its stream was seen.

Must never know: harness code, other streams but for the links between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from callsheet.audit.captures import blobs_in, check_blob, check_captures
from callsheet.audit.case import Case
from callsheet.audit.cite import MEMBER, Cite, Reading
from callsheet.audit.envelope import ENVELOPE, check_envelope, check_native
from callsheet.audit.facts import Facts
from callsheet.audit.finding import COUNT, Claim, Json
from callsheet.audit.heads import (
    Family,
    check_gap,
    check_session,
    check_stream_of_agent,
    lines_tell,
    told_by_parent,
)
from callsheet.audit.ledger import Ledger, head_of
from callsheet.audit.scan import found_units
from callsheet.audit.sent import check_content
from callsheet.audit.shapes import is_dead
from callsheet.audit.values import unit_index, unit_key
from callsheet.records.bundle import Bundle, StreamEntry
from callsheet.records.stream import stream_lines
from callsheet.registry import Registry
from callsheet.wire.lossless import NotJson, decode

_PARTS = ("content", "displayContent", "output", "summary")
"""Members whose blobs are the bundle's (blobs inside native JSON are not)."""


class StreamAudit:
    """One stream under audit.

    Attributes:
        entry: What the manifest says of it.
        ledger: What a first pass over it found.
        registry: The registry of its agent; None for an agent that has none.
        facts: Its entries, likewise.
        unread: Records whose sources cannot be read.
    """

    def __init__(
        self,
        bundle: Bundle,
        entry: StreamEntry,
        ledger: Ledger,
        reading: Reading,
        family: Family,
        facts: Facts | None,
    ) -> None:
        self.entry = entry
        self.ledger = ledger
        self.registry: Registry | None = facts.registry if facts is not None else None
        self.unread = 0
        self._bundle = bundle
        self._reading = reading
        self._family = family
        self.facts = facts

    def walk(self, file: BinaryIO) -> Iterator[tuple[int, Json, list[Claim]]]:
        """Every record: its line, itself, its claims."""
        for position, line in enumerate(stream_lines(file)):
            try:
                record = decode(line.data)
            except NotJson:
                record = None
            if isinstance(record, dict):
                claims = list(self.claims(record, position))
                if position == 0 and self.registry is None:
                    claims.append(self._unknown(record))
                yield line.number, record, claims
            else:
                yield line.number, {}, [Claim((), None, None, "the line is no record")]

    def _unknown(self, record: Json) -> Claim:
        """Why nothing can be said of the facts of this stream."""
        if record.get("type") != "session":
            return Claim(("type",), record.get("type"), None, "a stream begins with its session record")
        why = "no registry speaks of this agent: its facts cannot be found again"
        return Claim(("agent", "name"), self.ledger.head.agent, None, why)

    def claims(self, record: Json, position: int) -> Iterator[Claim]:
        """Every fact of one record, with its evidence or without.

        Args:
            record: The record.
            position: Where it stands in the stream.
        """
        kind = str(record.get("type"))
        ledger = self.ledger
        listed = head_of(record).sources if kind == "session" else ledger.head.sources
        cites = self._reading.follow(record, listed)
        yield from cites.claims
        if self.registry is None or self.facts is None:
            return
        before_at = None
        if isinstance(record.get("supersedes"), str):
            before_at = ledger.position_of(record["supersedes"])
        case = self.case(record, cites.good, None if before_at is None else ledger.at(before_at))
        yield from check_envelope(case, position, before_at)
        yield from _cite(case)
        if cites.unread:
            self.unread += 1
            return
        yield from check_native(case, self.facts)
        yield from check_captures(case, self.facts)
        yield from self._members(case, self.facts)

    def case(self, record: Json, cites: list[Cite], before: Json | None = None) -> Case:
        """A record of this stream with all that its facts may be asked of; its agent has a registry."""
        assert self.facts is not None
        return Case(
            record=record,
            kind=str(record.get("type")),
            cites=cites,
            ledger=self.ledger,
            reading=self._reading,
            bundle=self._bundle,
            registry=self.facts.registry,
            before=before,
            tool=self.tool_of(record),
        )

    def tool_of(self, record: Json) -> str | None:
        """The tool of a call, or of the call that a record names."""
        if record.get("type") == "tool_call":
            name = record.get("name")
            return name if isinstance(name, str) else None
        return self.ledger.tool_of(record.get("callId", record.get("nativeCallId")))

    def _members(self, case: Case, facts: Facts) -> Iterator[Claim]:
        kind = case.kind
        done: set[str] = set(ENVELOPE)
        if kind == "gap":
            yield from check_gap(case, facts)
            done |= {"reason", "source", "line", "offset", "bytes"}
        elif kind == "session":
            yield from self._session(case, facts)
            done |= {"format", "sources", "agent", "parent"}
        elif kind == "subagent" and "stream" in case.record:
            yield check_stream_of_agent(case, self._family, facts)
            done.add("stream")
        for name, value in case.record.items():
            if name in done:
                continue
            if kind == "tool_result" and name == "content":
                yield from check_content(case, facts, value)
            else:
                yield from facts.check(case, (name,), value)
            if name in _PARTS:
                for path, blob in blobs_in(value, (name,)):
                    yield from check_blob(case, path, blob)

    def _session(self, case: Case, facts: Facts) -> Iterator[Claim]:
        yield from check_session(case, facts, self._family, self.entry.id)
        for name, known in (("agent", "name"), ("parent", "session")):
            value = case.record.get(name)
            for member, inner in value.items() if isinstance(value, dict) else ():
                if member == known and not lines_tell(case, facts, name, member):
                    continue
                claims = list(facts.check(case, (name, member), inner))
                if (name, member) == ("parent", "callId") and any(claim.evidence is None for claim in claims):
                    yield told_by_parent(self._family, self.entry.id, inner)
                else:
                    yield from claims


def _place_of(ref: Json, cite: Cite) -> tuple[int, int]:
    """Where the cited bytes stand; of a row that stands in its line as a text, the line."""
    if ref.get("offset") is None and "table" in ref:
        column = ref.get("column")
        return cite.source.cell_place(
            str(ref["table"]), ref.get("key"), column if isinstance(column, str) else None
        )
    return ref["offset"], len(cite.data)


def _cite_all(case: Case, cite: Cite) -> None:
    """Marks every unit of a line as cited."""
    for unit in case.registry.unit:
        for index, _, _ in found_units(unit, cite.root):
            case.scan(cite).units[unit.record].cite(unit_key(cite.line, index))


def _cite(case: Case) -> Iterator[Claim]:
    """Marks what a record cites; a call or result must be made of a native one."""
    units = [unit for unit in case.registry.unit if unit.record == case.kind]
    roles = {unit.role for unit in units}
    for cite in case.cites:
        scan = case.scan(cite)
        if case.kind == "session" and cite.role == MEMBER and scan.has_units:
            continue  # it stands for the session; such a line has a record of its own besides
        line = cite.line
        ref = case.record["native"]["refs"][cite.number]
        if (cite.data or "table" in ref) and scan.starts:  # an empty value has a row all the same
            place = _place_of(ref, cite)
            scan.cite(*place)
            line = line or (
                scan.line_at(place[0]) if place[1] else 0
            )  # a row that stands in its line as a text
        if case.kind == "unmapped" and case.registry.marks.ordinal and is_dead(case, cite):
            _cite_all(case, cite)  # its calls and results are no part of the thread's history
        if case.kind == "gap" and case.registry.marks.document and len(cite.data) == scan.size:
            for broken in scan.units.values():
                broken.cite_all()  # a broken document is damaged as a whole: pieces of it are no lines
        if cite.role not in roles or not line or case.kind not in scan.units:
            continue
        found = (one for unit in units if unit.role == cite.role for one in found_units(unit, cite.root))
        if cite.pointer in {pointer for _, pointer, _ in found}:
            scan.units[case.kind].cite(unit_key(line, unit_index(cite.pointer)))
        else:
            path = ("native", "refs", cite.number, "pointer")
            yield Claim(path, cite.pointer, None, f"no {case.kind} of the source stands there", COUNT)
