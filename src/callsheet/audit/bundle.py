"""The audit of a whole bundle: every record of every stream, then what no record speaks of.

Owns: the order of the passes, what the streams say of each other, the counts (every native line and every
native call and result is cited), what was read as evidence, and that the answers to secrets are looked for last.

Must never know: harness code. What one harness writes where, the registry says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from callsheet.audit.cite import Reading
from callsheet.audit.facts import Facts
from callsheet.audit.finding import COUNT, REF, Claim, Finding, Json, pointer_of, rule_of
from callsheet.audit.heads import Family
from callsheet.audit.ledger import Head, Ledger, head_of
from callsheet.audit.secrets import Secrets
from callsheet.audit.sources import Sources, Used
from callsheet.audit.stream import StreamAudit
from callsheet.records.bundle import Bundle, StreamEntry
from callsheet.records.stream import stream_lines
from callsheet.registry import Registry, of_session
from callsheet.wire.lossless import NotJson, decode

_SHORT = 200
Progress = Callable[[str, int, int], None]
"""Told of a stream, the records audited, and the records there are."""


class Totals(Struct):
    """How much was held against evidence.

    Attributes:
        streams: Streams that were read.
        records: Records that were checked.
        facts: Facts of theirs.
        findings: Facts without evidence, and what no record speaks of.
        unread: Records whose sources cannot be read: nothing is said of their facts.
        used: By source id: what was read as evidence.
    """

    streams: int = 0
    records: int = 0
    facts: int = 0
    findings: int = 0
    unread: int = 0
    used: dict[str, Used] = {}


class Audit:
    """A bundle under audit. Close it, or use it as a context manager.

    Args:
        bundle: The bundle.

    Attributes:
        totals: How much was checked so far.
        sources: Its sources.

    Raises:
        OSError, SourceError, KeyError: A stream of the bundle cannot be read.
    """

    def __init__(self, bundle: Bundle, progress: Progress | None = None) -> None:
        self.bundle = bundle
        self.totals = Totals()
        self._progress = progress
        heads: dict[str, Json] = {}
        calls: dict[str, set[str]] = {}
        starters: dict[str, set[str]] = {}
        for entry in bundle.manifest.streams:
            heads[entry.id] = self._skim(entry, calls, starters)
        self._facts: dict[str, Facts] = {}
        for head in heads.values():
            registry = _registry_of(head_of(head))
            if registry is not None:
                self._facts.setdefault(registry.harness.name, Facts(registry))
        self.sources = Sources(bundle)
        self.reading = Reading(self.sources, [facts.registry for facts in self._facts.values()])
        self.family = Family(
            {entry.id: entry.parent for entry in bundle.manifest.streams},
            calls,
            starters,
            {stream: head_of(head).native_id for stream, head in heads.items()},
            heads,
        )

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of every source."""
        self.sources.close()

    def _skim(self, entry: StreamEntry, calls: dict[str, set[str]], starters: dict[str, set[str]]) -> Json:
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
                    named = str(record.get("stream"))
                    calls.setdefault(named, set()).add(record["callId"])
                    starters.setdefault(named, set()).add(entry.id)
        return head

    @contextmanager
    def stream(self, entry: StreamEntry) -> Iterator[StreamAudit]:
        """One stream, seen once from end to end."""
        with self.bundle.open(entry.file) as file:
            ledger = Ledger(file)
            registry = _registry_of(ledger.head)
            facts = None if registry is None else self._facts.get(registry.harness.name)
            yield StreamAudit(self.bundle, entry, ledger, self.reading, self.family, facts)

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
        secrets = Secrets(self.sources)
        for number, entry in enumerate(self.bundle.manifest.streams):
            with self.stream(entry) as stream, self.bundle.open(entry.file) as file:
                self.totals.streams += 1
                ledger = stream.ledger
                for member, said, found in (
                    ("records", entry.records, ledger.records),
                    ("sha256", entry.sha256, ledger.sha256),
                ):
                    if said is not None and said != found:
                        message = f"the stream has {found}"
                        yield Finding(None, f"/streams/{number}/{member}", said, REF, message, entry.id)
                for line, record, claims in stream.walk(file):
                    secrets.note(record)
                    self.totals.records += 1
                    self.totals.facts += len(claims)
                    if self._progress is not None:
                        self._progress(entry.id, line, ledger.records)
                    yield from findings_of(record, claims, entry.id, line)
                self.totals.unread += stream.unread
                secrets.learn(stream)
        yield from self._uncited()
        yield from secrets.findings(self.bundle)

    def _uncited(self) -> Iterator[Finding]:
        for name, source in self.sources.all.items():
            scan = self.reading.scans.get(name)
            path, place = f"/sources/{name}", source.entry.path
            if source.used == "none":
                continue
            if scan is None:
                yield Finding(None, path, place, COUNT, "no record cites this source")
                continue
            for line in scan.bare():
                yield Finding(
                    None, path, None, COUNT, f"{place}:{line}: no record cites this line", line=line
                )
            for kind, units in scan.units.items():
                for line, index in units.left():
                    message = f"{place}:{line}: no {kind} is made of number {index + 1} on this line"
                    yield Finding(None, path, None, COUNT, message, line=line)


def _registry_of(head: Head) -> Registry | None:
    return of_session(head.agent, [head.kind])


def findings_of(record: Json, claims: list[Claim], stream: str, line: int) -> Iterator[Finding]:
    """The claims without evidence, as findings."""
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


def audit_bundle(
    bundle: Bundle, totals: Totals | None = None, progress: Progress | None = None
) -> Iterator[Finding]:
    """Every fact of a bundle that has no evidence.

    Args:
        bundle: The bundle.
        totals: Is told how much was checked.
        progress: Is told how far it is.

    Raises:
        OSError, SourceError, KeyError: A stream of the bundle cannot be read.
    """
    with Audit(bundle, progress) as audit:
        if totals is not None:
            audit.totals = totals
        yield from audit.findings()
