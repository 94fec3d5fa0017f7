"""The audit of a whole bundle: every record of every stream, then what no record speaks of.

Owns: the order of the passes, what is asked of which record type, the counts (every native line and every native
call and result is cited), and what was read as evidence.

Must never know: harness code. What one harness writes where, the registry says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

from msgspec import Struct

from callsheet.audit.captures import blobs_in, check_blob, check_captures
from callsheet.audit.case import Case
from callsheet.audit.cite import Cites, Reading
from callsheet.audit.envelope import ENVELOPE, check_envelope
from callsheet.audit.facts import Facts
from callsheet.audit.finding import COUNT, FACT, REF, Claim, Finding, Json, pointer_of, rule_of
from callsheet.audit.heads import (
    Family,
    check_gap,
    check_session,
    check_stream_of_agent,
    told_by_parent,
)
from callsheet.audit.ledger import Ledger, head_of, unit_index
from callsheet.audit.scan import found_units, unit_key
from callsheet.audit.sent import check_content
from callsheet.audit.sources import Sources, Used
from callsheet.records.bundle import Bundle, StreamEntry
from callsheet.records.stream import stream_lines
from callsheet.registry import HARNESSES, Registry, load
from callsheet.wire.lossless import NotJson, decode

_SHORT = 200
_SESSION_HEADS = {("format",), ("sources",)}


class Totals(Struct):
    """How much was held against evidence.

    Attributes:
        records: Records that were checked.
        facts: Facts of theirs.
        findings: Facts without evidence, and what no record speaks of.
        unread: Records whose sources cannot be read: nothing is said of their facts.
        used: By source id: what was read as evidence.
    """

    records: int = 0
    facts: int = 0
    findings: int = 0
    unread: int = 0
    used: dict[str, Used] = {}


class Audit:
    """A bundle under audit.

    Args:
        bundle: The bundle.

    Attributes:
        totals: How much was checked so far.
        sources: Its sources.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.totals = Totals()
        self.sources = Sources(bundle)
        self._heads: dict[str, Json] = {}
        calls: dict[str, set[str]] = {}
        for entry in bundle.manifest.streams:
            self._heads[entry.id] = self._skim(entry, calls)
        agents = {head_of(head).agent for head in self._heads.values()}
        self._registries: dict[str | None, Registry] = {
            name: load(name) for name in agents if name is not None and name in HARNESSES
        }
        self._facts = {name: Facts(registry) for name, registry in self._registries.items()}
        self.reading = Reading(self.sources, self._registries.values())
        self.family = Family(
            {entry.id: entry.parent for entry in bundle.manifest.streams},
            calls,
            {stream: head_of(head).native_id for stream, head in self._heads.items()},
        )

    def _skim(self, entry: StreamEntry, calls: dict[str, set[str]]) -> Json:
        """The session record of a stream; notes which calls its subagent records name for other streams."""
        head: Json = {}
        with self.bundle.open(entry.file) as file:
            for number, line in enumerate(stream_lines(file)):
                if number and b'"subagent"' not in line.data:
                    continue
                try:
                    record = decode(line.data)
                except NotJson:
                    continue
                if not isinstance(record, dict):
                    continue
                if number == 0 and record.get("type") == "session":
                    head = record
                elif record.get("type") == "subagent" and isinstance(record.get("callId"), str):
                    calls.setdefault(str(record.get("stream")), set()).add(record["callId"])
        return head

    # -- findings -----------------------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """Everything without evidence."""
        for finding in self._findings():
            self.totals.findings += 1
            yield finding

    def _findings(self) -> Iterator[Finding]:
        for name, source in self.sources.all.items():
            self.totals.used[name] = source.used
            if source.used == "none":
                yield Finding(None, f"/sources/{name}", source.entry.path, REF, f"no evidence: {source.why}")
        for number, entry in enumerate(self.bundle.manifest.streams):
            with ExitStack() as stack:
                files = [stack.enter_context(self.bundle.open(entry.file)) for _ in range(2)]
                ledger = Ledger(files[0])
                for member, said, found in (
                    ("records", entry.records, ledger.records),
                    ("sha256", entry.sha256, ledger.sha256),
                ):
                    if said is not None and said != found:
                        message = f"the stream has {found}"
                        yield Finding(None, f"/streams/{number}/{member}", said, REF, message, entry.id)
                for line, record, claims in self._walk(entry, ledger, files[1]):
                    yield from _findings_of(record, claims, entry.id, line)
        yield from self._uncited()

    def _walk(
        self, entry: StreamEntry, ledger: Ledger, file: BinaryIO
    ) -> Iterator[tuple[int, Json, list[Claim]]]:
        registry = self._registries.get(ledger.head.agent)
        if registry is None:
            why = "no registry speaks of this agent: its facts cannot be found again"
            yield 1, self._heads[entry.id], [Claim(("agent", "name"), ledger.head.agent, None, why)]
        position = -1
        for line in stream_lines(file):
            position += 1
            try:
                record = decode(line.data)
            except NotJson:
                record = None
            if not isinstance(record, dict):
                yield line.number, {}, [Claim((), None, None, "the line is no record")]
                continue
            self.totals.records += 1
            claims = list(self.claims(record, position, entry.id, ledger, registry))
            self.totals.facts += len(claims)
            yield line.number, record, claims

    def claims(
        self, record: Json, position: int, stream: str, ledger: Ledger, registry: Registry | None
    ) -> Iterator[Claim]:
        """Every fact of one record, with its evidence or without."""
        kind = str(record.get("type"))
        needs_refs = kind != "session" or "native" in record
        cites = (
            self.reading.follow(record, None if kind == "session" else ledger.head.sources)
            if needs_refs
            else Cites([], [], False)
        )
        yield from cites.claims
        if registry is None:
            return
        before_at = (
            ledger.position_of(record["supersedes"]) if isinstance(record.get("supersedes"), str) else None
        )
        call_id = record.get("callId", record.get("nativeCallId"))
        case = Case(
            record=record,
            kind=kind,
            cites=cites.good,
            ledger=ledger,
            reading=self.reading,
            bundle=self.bundle,
            registry=registry,
            before=None if before_at is None else ledger.at(before_at),
            tool=record.get("name") if kind == "tool_call" else ledger.tool_of(call_id),
        )
        facts = self._facts[registry.harness.name]
        yield from check_envelope(case, facts, position, before_at)
        yield from self._cite(case)
        if cites.unread:
            self.totals.unread += 1
            return
        yield from check_captures(case, facts)
        yield from self._members(case, facts, stream)

    def _members(self, case: Case, facts: Facts, stream: str) -> Iterator[Claim]:
        kind = case.kind
        done: set[str] = set(ENVELOPE)
        if kind == "gap":
            yield from check_gap(case)
            done |= {"reason", "source", "line", "offset", "bytes"}
        elif kind == "session":
            yield from self._session(case, facts, stream)
            done |= {"format", "sources", "agent", "parent"}
        elif kind == "subagent" and "stream" in case.record:
            yield check_stream_of_agent(case, self.family)
            done.add("stream")
        for name, value in case.record.items():
            if name in done:
                continue
            if kind == "tool_result" and name == "content":
                yield from check_content(case, facts, value)
            else:
                yield from facts.check(case, (name,), value)
            if name in ("content", "displayContent", "output", "summary"):
                for path, blob in blobs_in(value, (name,)):
                    yield from check_blob(case, path, blob)

    def _session(self, case: Case, facts: Facts, stream: str) -> Iterator[Claim]:
        yield from check_session(case, self.family, stream)
        for name, known in (("agent", "name"), ("parent", "session")):
            value = case.record.get(name)
            for member, inner in value.items() if isinstance(value, dict) else ():
                if member == known:
                    continue
                claims = list(facts.check(case, (name, member), inner))
                told = (name, member) == ("parent", "callId") and told_by_parent(self.family, stream, inner)
                if told and any(claim.evidence is None for claim in claims):
                    continue
                yield from claims

    # -- counts -------------------------------------------------------------------------------------------------

    def _cite(self, case: Case) -> Iterator[Claim]:
        """Marks what a record cites; a call or result must be made of a native one that no other record is made of."""
        unit = next((unit for unit in case.registry.unit if unit.record == case.kind), None)
        for cite in case.cites:
            scan = case.scan(cite)
            if case.kind == "session" and scan.has_units:
                continue  # it says where the session's own facts stand; the lines have records of their own
            if cite.line:
                line = scan.bounds(cite.line)
                assert line is not None
                scan.cite(case.record["native"]["refs"][cite.number]["offset"], len(cite.data))
            elif cite.data:
                scan.cite(0, len(cite.data))
            if unit is None or cite.role != unit.role or not cite.line:
                continue
            places = {pointer: index for index, pointer, _ in found_units(unit, cite.root)}
            path = ("native", "refs", cite.number, "pointer")
            if cite.pointer not in places:
                yield Claim(path, cite.pointer, None, f"no {case.kind} of the source stands there", COUNT)
            else:
                scan.units[case.kind].cite(unit_key(cite.line, unit_index(cite.pointer)))

    def _uncited(self) -> Iterator[Finding]:
        for name, source in self.sources.all.items():
            scan = self.reading.scans.get(name)
            if source.used == "none":
                continue
            if scan is None:
                if not source.is_database:
                    message = "no record cites this source"
                    yield Finding(None, f"/sources/{name}", source.entry.path, COUNT, message)
                continue
            for line in scan.bare():
                message = f"{source.entry.path}:{line}: no record cites this line"
                yield Finding(None, f"/sources/{name}", None, COUNT, message, line=line)
            for kind, units in scan.units.items():
                for line, index in units.left():
                    message = (
                        f"{source.entry.path}:{line}: no {kind} is made of number {index + 1} on this line"
                    )
                    yield Finding(None, f"/sources/{name}", None, COUNT, message, line=line)

    def close(self) -> None:
        """Lets go of every source."""
        self.sources.close()


def _findings_of(record: Json, claims: list[Claim], stream: str, line: int) -> Iterator[Finding]:
    name = record.get("id")
    kind = str(record.get("type"))
    for claim in claims:
        if claim.evidence is None:
            yield Finding(
                name if isinstance(name, str) else None,
                pointer_of(claim.path),
                _shown(claim.value),
                claim.rule or rule_of(kind, claim.path),
                claim.why,
                stream,
                line,
            )


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _SHORT else value[:_SHORT] + "…"
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'an array'} of {len(value)}"
    return value if isinstance(value, int | float | bool | None) else str(value)


def audit_bundle(bundle: Bundle, totals: Totals | None = None) -> Iterator[Finding]:
    """Every fact of a bundle that has no evidence.

    Args:
        bundle: The bundle.
        totals: Is told how much was checked.

    Raises:
        OSError, SourceError, KeyError: A stream of the bundle cannot be read.
    """
    audit = Audit(bundle)
    if totals is not None:
        audit.totals = totals
    try:
        yield from audit.findings()
    finally:
        audit.close()


__all__ = ["FACT", "Audit", "Totals", "audit_bundle"]
