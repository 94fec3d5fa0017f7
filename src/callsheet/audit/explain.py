"""Where each fact of one record stands: the answer to 'how do you know?'.

Owns ``Explained`` (a fact beside the native line and pointer it came from) and the list of what the source
never records about such a record.

Must never know: how it is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from callsheet.audit.bundle import Audit
from callsheet.audit.cite import encoded
from callsheet.audit.finding import Claim, Json, pointer_of
from callsheet.registry import Never


class Explained(Struct, omit_defaults=True):
    """One fact.

    Attributes:
        path: JSON pointer to the member.
        value: What the record says.
        ref: Which of the record's refs leads there.
        place: Where the source says so: file and line.
        pointer: JSON pointer into that line.
        via: The way from there to the member.
        native: The native text.
        why: Without evidence: what was found instead.
    """

    path: str
    value: Any
    ref: int | None = None
    place: str | None = None
    pointer: str | None = None
    via: str | None = None
    native: str | None = None
    why: str | None = None


class Explanation(Struct):
    """One record and all that is known of its evidence.

    Attributes:
        stream: Id of its stream.
        record: The record.
        facts: Its facts.
        lines: The places that its refs cite, by the refs' positions.
        never: Members that it lacks because the source never records them.
    """

    stream: str
    record: Json
    facts: list[Explained]
    lines: dict[int, str]
    never: list[Never]


def explain(audit: Audit, name: str) -> Iterator[Explanation]:
    """Explains every record with this id; a bundle's streams name theirs independently.

    Args:
        audit: The bundle.
        name: A record id, or ``<stream id>/<record id>``.
    """
    wanted, _, inside = name.rpartition("/")
    for entry in audit.bundle.manifest.streams:
        if wanted and entry.id != wanted:
            continue
        with audit.stream(entry) as stream:
            position = stream.ledger.position_of(inside)
            record = None if position is None else stream.ledger.at(position)
            if record is None or position is None:
                continue
            claims = list(stream.claims(record, position))
            registry = stream.registry
            yield Explanation(
                entry.id,
                record,
                [_fact(claim) for claim in claims if claim.evidence is None or claim.evidence.via != "ref"],
                {
                    claim.evidence.ref: claim.evidence.place
                    for claim in claims
                    if claim.evidence is not None and claim.evidence.via == "ref"
                },
                list(_never(registry.never, record, stream.tool_of(record))) if registry else [],
            )


def _fact(claim: Claim) -> Explained:
    evidence = claim.evidence
    if evidence is None:
        return Explained(pointer_of(claim.path), claim.value, why=claim.why)
    return Explained(
        pointer_of(claim.path),
        claim.value,
        ref=evidence.ref if evidence.ref >= 0 else None,
        place=evidence.place or None,
        pointer=evidence.pointer or None,
        via=evidence.via,
        native=None if evidence.native is None else encoded(evidence.native),
    )


def _never(entries: list[Never], record: Json, tool: str | None) -> Iterator[Never]:
    for entry in entries:
        if entry.record != record.get("type") or (entry.tools and tool not in entry.tools):
            continue
        value: Any = record
        for step in entry.member.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            yield entry
