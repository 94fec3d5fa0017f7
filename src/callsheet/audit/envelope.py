"""The envelope of every record: position, id, revision, time, native identity.

Owns the claims that are the same for every record type. A record's id is our own name for it: it must be its own,
and has no evidence.

Must never know: what the members of a type mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.cite import Cite
from callsheet.audit.facts import Facts
from callsheet.audit.finding import COUNT, Claim, Evidence, Json
from callsheet.audit.sent import REQUEST
from callsheet.records import TYPES
from callsheet.registry.when import follow

ENVELOPE = frozenset({"type", "seq", "id", "supersedes", "capture", "native"})
"""Members that are checked here and not by facts."""


def check_envelope(case: Case, position: int, before_at: int | None) -> Iterator[Claim]:
    """Claims about the envelope that need no source.

    Args:
        case: The record.
        position: The record's position in its stream.
        before_at: Where the record that it supersedes stands; None if there is none.
    """
    record = case.record
    place = Evidence("position", -1, str(position))
    if type(record.get("seq")) is int and record["seq"] == position:
        yield Claim(("seq",), position, place)
    else:
        yield Claim(("seq",), record.get("seq"), None, f"the record stands at {position}")
    name = record.get("id")
    if not isinstance(name, str) or not case.ledger.is_alone(name, position):
        yield Claim(("id",), name, None, "it is not the name of this record alone")
    if case.cites and (twin := case.ledger.twin_of(record, position)) is not None:
        path = ("native", "refs", 0, "pointer" if case.cites[0].pointer else "offset")
        yield Claim(path, case.cites[0].pointer, None, f"record {twin} is made of it already", COUNT)
    if "supersedes" in record:
        yield _supersedes(case, position, before_at)


def _supersedes(case: Case, position: int, before_at: int | None) -> Claim:
    said = case.record["supersedes"]
    before = case.before
    why = ""
    if before is None or before_at is None:
        why = "there is no such record"
    elif before_at >= position:
        why = "that record does not stand before this one"
    elif before.get("type") != case.kind:
        why = "that record has another type"
    elif entity_of(before) != entity_of(case.record):
        why = "that record is another entity"
    elif not case.ledger.supersede(before_at, position):
        why = "that record was superseded before"
    return Claim(("supersedes",), said, None if why else Evidence("entity", -1, str(said)), why)


def entity_of(record: Json) -> Any:
    """What a record and its revisions share: the entity key, or where the type has none, what they belong to."""
    kind = TYPES.get(str(record.get("type")))
    if kind is not None and kind.ENTITY_KEY in record:
        return record[kind.ENTITY_KEY]
    # A result becomes ambiguous when a second call with its id comes: then the id is the native one.
    call_id = record.get("callId", record.get("nativeCallId"))
    return [call_id, *(record.get(name) for name in ("inferenceId", "messageId", "turnId", "scope"))]


def _is_within(cite: Cite, other: Cite) -> bool:
    """Whether a ref points at what another points at, or at a part of it."""
    same = (cite.source.entry.id, cite.line) == (other.source.entry.id, other.line)
    return same and (cite.pointer == other.pointer or cite.pointer.startswith(f"{other.pointer}/"))


def _about(case: Case) -> Iterator[Claim]:
    """Lines that say which call they are about are cited by the records of that call alone."""
    native = case.record["native"]
    own = (
        case.record.get("nativeCallId"),
        native.get("callId"),
        case.record.get("callId"),
    )
    for cite in case.cites:
        pointer = case.registry.marks.about.get(cite.role)
        if pointer is not None and follow(cite.root, pointer) not in own:
            path = ("native", "refs", cite.number, "role")
            yield Claim(path, cite.role, None, "it is about another call")


def check_native(case: Case, facts: Facts) -> Iterator[Claim]:
    """Claims about native identity, and about the roles of refs."""
    native = case.record.get("native")
    if not isinstance(native, dict):
        return
    beside = facts.registry.marks.beside.get(case.kind, [])
    known = facts.roles.get(case.kind, set()).union(beside) | (
        {REQUEST} if case.kind == "tool_result" else set()
    )
    known = known | set(case.registry.marks.silent)
    for cite in case.cites:
        if cite.role not in known:
            path = ("native", "refs", cite.number, "role")
            yield Claim(path, cite.role, None, "no [[fact]] of this record type reads such a line")
    # Of a result without callId nobody says which of the calls of its native id it stands in.
    for cite in case.role_cites("call") if "callId" in case.record and case.calls else ():
        if not any(_is_within(cite, call) for call in case.calls):
            path = ("native", "refs", cite.number, "pointer")
            yield Claim(path, cite.pointer, None, "it is not the call that callId names")
    yield from _about(case)
    for name, value in native.items():
        if name != "refs":
            yield from facts.check(case, ("native", name), value)
