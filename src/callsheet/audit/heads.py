"""Records that are about sources and streams rather than about lines: session and gap, and the links between streams.

Owns what can be held against the manifest and the bytes themselves, the same for every harness: the listed
sources, the stream that started this one, an agent's stream, and what a gap says of the bytes that it stands for.

Must never know: native shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from callsheet.audit.case import Case
from callsheet.audit.cite import Cite
from callsheet.audit.facts import Facts
from callsheet.audit.finding import Claim, Evidence, Json, Path
from callsheet.audit.values import differences
from callsheet.records import FORMAT
from callsheet.records.bundle import NativeSource, stream_id
from callsheet.registry.when import follow
from callsheet.wire.damage import BOM
from callsheet.wire.lossless import NotJson, decode, readable

FILE_GAPS = frozenset({"missing_file", "missing_session", "no_decoder"})
"""Reasons of gaps that stand for a file, not for bytes of one."""


class Family(NamedTuple):
    """What the streams of a bundle say of each other.

    Attributes:
        parents: By stream: its parent, as the manifest says.
        calls: By stream: calls that a subagent record names for it.
        starters: By stream: other streams that name a call which started it.
        sessions: By stream: its native session id.
        heads: By stream: its session record.
    """

    parents: dict[str, str | None]
    calls: dict[str, set[str]]
    starters: dict[str, set[str]]
    sessions: dict[str, str | None]
    heads: dict[str, Json]


def check_session(case: Case, facts: Facts, family: Family, stream: str) -> Iterator[Claim]:
    """Claims about what a session record says of the bundle; what comes from lines, the facts say."""
    record = case.record
    if "format" in record:
        yield _is(("format",), record["format"], FORMAT, "format")
    agent = record.get("agent")
    if isinstance(agent, dict) and "name" in agent and not lines_tell(case, facts, "agent", "name"):
        yield _is(("agent", "name"), agent["name"], case.registry.harness.name, "registry")
    if "sources" in record:
        yield from _sources(case, record["sources"])
    parent = record.get("parent")
    if parent is None and any(not _is_below(family, one, stream) for one in family.starters.get(stream, ())):
        yield Claim(("parent",), None, None, "a subagent record of another stream says what started this one")
    if isinstance(parent, dict) and "session" in parent and not lines_tell(case, facts, "parent", "session"):
        above = family.parents.get(stream)
        if above is None:
            yield _outside(case, parent["session"])
        else:
            yield _is(("parent", "session"), parent["session"], above, "manifest")


def _is_below(family: Family, stream: str | None, above: str) -> bool:
    """Whether a stream is another one, or was started from it, also by way of others."""
    seen: set[str] = set()
    while stream is not None and stream != above and stream not in seen:
        seen.add(stream)
        stream = family.parents.get(stream)
    return stream == above


def lines_tell(case: Case, facts: Facts, name: str, member: str) -> bool:
    """Whether a member of a session record is held against lines, and not against the registry or the manifest."""
    told = bool(facts.of("session", f"{name}.{member}"))
    kinds = case.registry.marks.lineage if name == "parent" else []
    return told and (not kinds or any(cite.source.entry.kind in kinds for cite in case.cites))


def _outside(case: Case, session: Any) -> Claim:
    """The claim that an agent was started from a session that is not in the bundle."""
    for cite in case.cites:
        for pointer in case.registry.marks.above:
            named = follow(cite.root, pointer)
            if isinstance(named, str) and named and stream_id(named) == session:
                evidence = Evidence("same", cite.number, cite.place, pointer, named)
                return Claim(("parent", "session"), session, evidence)
    return Claim(
        ("parent", "session"), session, None, "neither the manifest nor the source names that session"
    )


def _is(path: Path, value: Any, wanted: Any, via: str) -> Claim:
    same = type(value) is type(wanted) and value == wanted
    return Claim(path, value, Evidence(via) if same else None, f"the {via} says {wanted!r}")


def _sources(case: Case, listed: Any) -> Iterator[Claim]:
    if not isinstance(listed, list):
        yield Claim(("sources",), listed, None, "is no list")
        return
    for index, said in enumerate(listed):
        path: Path = ("sources", index)
        name = said.get("id") if isinstance(said, dict) else None
        source = case.reading.sources.all.get(name) if isinstance(name, str) else None
        if source is None:
            yield Claim((*path, "id"), name, None, "the manifest has no such source")
            continue
        wrong = list(_differ(said, source.entry, path))
        twin = next(
            (
                one.entry
                for one in case.reading.sources.all.values()
                if one.entry.id != name and not list(_differ({**said, "id": one.entry.id}, one.entry, path))
            ),
            None,
        )
        if wrong and twin is not None:
            wrong = [((*path, "id"), name, f"this is {twin.id}")]
        for at, value, why in wrong:
            yield Claim(at, value, None, why)
        if not wrong:
            yield Claim(path, name, Evidence("manifest"))


def _differ(said: Json, entry: NativeSource, path: Path) -> Iterator[tuple[Path, Any, str]]:
    """Members of a listed source that are not those of the manifest's entry."""
    wanted = {
        "id": entry.id,
        "kind": entry.kind,
        "path": entry.path,
        "size": entry.size,
        "sha256": entry.sha256,
        **({"encoding": entry.encoding} if entry.encoding is not None else {}),
    }
    return differences(said, {name: wanted[name] for name in wanted if name in said}, path)


def told_by_parent(family: Family, stream: str, call_id: Any) -> Claim:
    """The claim that a call started a stream, where only a subagent record of the stream above says so."""
    known = isinstance(call_id, str) and call_id in family.calls.get(stream, set())
    evidence = Evidence("subagent record", -1, str(family.parents.get(stream))) if known else None
    return Claim(("parent", "callId"), call_id, evidence, "neither the source nor the stream above says so")


def check_stream_of_agent(case: Case, family: Family, facts: Facts) -> Claim:
    """The claim that a stream is this agent's."""
    said, agent = case.record.get("stream"), case.record.get("agentId")
    path: Path = ("stream",)
    if not isinstance(said, str) or said not in family.parents:
        return Claim(path, said, None, "the bundle has no such stream")
    own = stream_id(agent) if isinstance(agent, str) else None
    if own is not None and (said == own or said.startswith(f"{own[:56]}-")):
        return Claim(path, said, Evidence("stream of this agent", -1, said))
    if agent is not None and family.sessions.get(said) == agent:
        return Claim(path, said, Evidence("session of this agent", -1, said))
    for fact in facts.of("subagent", "stream"):
        for cite, found in case.readings(fact, ()):
            for one in found[0]:
                if isinstance(one.value, str) and said in (stream_id(one.value), *_of(family, one.value)):
                    return Claim(
                        path, said, Evidence("stream", cite.number, cite.place, one.pointer, one.value)
                    )
    if case.registry.marks.agent and isinstance(agent, str):
        # The agent's own session says under which name it was started.
        for cite in case.reading.follow(family.heads[said], None).good:
            if follow(cite.root, case.registry.marks.agent) == agent:
                return Claim(path, said, Evidence("session of this agent", -1, said))
    return Claim(path, said, None, "that stream is of another agent")


def _of(family: Family, session: str) -> list[str]:
    """The streams of a native session."""
    return [stream for stream, native in family.sessions.items() if native == session]


def check_gap(case: Case, facts: Facts) -> Iterator[Claim]:
    """Claims about a gap: its place is that of its ref, and the bytes are what it says of them."""
    record = case.record
    cite = case.cites[0] if case.cites else None
    ref: Json = record["native"]["refs"][cite.number] if cite is not None else {}
    for name in ("source", "line", "offset", "bytes"):
        if name in record:
            # A row that stands in its line as a text has a size, and no place of its own.
            size = len(cite.data) if name == "bytes" and cite is not None and "table" in ref else None
            told = ref.get(name, size)
            same = told is not None and record[name] == told and type(record[name]) is type(told)
            yield Claim(
                (name,),
                record[name],
                Evidence("ref", cite.number if cite else -1) if same else None,
                "its ref differs",
            )
    reason = record.get("reason")
    told_by_line = [claim for claim in facts.check(case, ("reason",), reason) if claim.evidence is not None]
    yield told_by_line[0] if told_by_line else _reason(reason if isinstance(reason, str) else None, cite)


def _reason(reason: str | None, cite: Cite | None) -> Claim:
    path: Path = ("reason",)
    whole = cite is None or (not cite.data and cite.line == 0)
    if whole or (cite is not None and reason in FILE_GAPS):
        good = reason in FILE_GAPS
        return Claim(path, reason, Evidence("file") if good else None, "the record stands for no bytes")
    assert cite is not None
    found = damage_of(cite.data, at_end=_at_end(cite), marked=cite.table is None)
    good = reason in found
    why = f"the bytes are {' or '.join(sorted(found)) or 'good JSON'}"
    return Claim(path, reason, Evidence("bytes", cite.number, cite.place) if good else None, why)


def _at_end(cite: Cite) -> bool:
    size = cite.source.entry.size or 0
    return not size or cite.source.read(size - 1, 1) != b"\n"


def damage_of(data: bytes, *, at_end: bool, marked: bool = True) -> set[str]:
    """What may be wrong with bytes that hold no record.

    Args:
        data: The bytes.
        at_end: Whether the source ends without a line end.
        marked: Whether they may begin with a byte-order mark: a file may, the value of a row may not.
    """
    data = data.removeprefix(BOM) if marked else data
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"bad_utf8"}
    if text and not text.strip("\0"):
        return {"nul"}
    try:
        if not isinstance(decode(data), dict):
            return {"bad_json"} | ({"torn_tail"} if at_end else set())  # JSON, but no record
    except NotJson as error:
        found = {"too_deep"} if error.reason == "too_deep" else {"bad_json"}
        if text.count("[") != text.count("]") or text.count("{") != text.count("}"):
            found.add("bad_json")  # nested deeply, and never closed
        return found | ({"torn_tail"} if at_end else set())
    # What one reader takes and another does not is nested too deeply for the other.
    depth = max(text.count("["), text.count("{"))
    return {"too_deep"} if depth > 100 or not readable(data) else set()
