"""The registry's facts, held against one record's members.

Owns the walk through a record: for each member the entries that speak of it, the values that these find in the
cited lines, and the claim that comes of it. An entry for a container speaks for all in it; without one, or where
it does not hold, its members are looked at one by one. A later state of an entity may repeat what the state before
it said. A member that no entry speaks of, or none finds, is a claim without evidence.

Must never know: importers, which harness it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET

from callsheet.audit.case import Case, Pointed
from callsheet.audit.changes import path_ref
from callsheet.audit.cite import Cite
from callsheet.audit.finding import Claim, Evidence, Path
from callsheet.audit.parts import blocks_of, check_parts
from callsheet.audit.sources import same_file
from callsheet.audit.tables import TABLES, grounds
from callsheet.audit.values import above, agree, differences, is_text_of
from callsheet.registry import Registry
from callsheet.registry.facts import COMMON, RECORDED, Fact
from callsheet.registry.via import PURE, derived_id, join, slice_of
from callsheet.registry.when import MISSING

AHEAD = 20
"""Elements of a native list that are looked at before one of a record counts as not there."""

NO_ENTRY = "the registry has no [[fact]] for this member"
NOWHERE = "none of the cited lines says so"


class Attempt(NamedTuple):
    """One value that an entry found: evidence if nothing about it is wrong."""

    evidence: Evidence
    wrong: list[tuple[Path, Any, str]]


class Facts:
    """The entries of one registry, by record type and member."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._entries: dict[tuple[str, str], list[Fact]] = {}
        self._containers: set[tuple[str, str]] = set()
        self.roles: dict[str, set[str]] = {}
        for fact in (*registry.fact, *COMMON, *RECORDED):
            self._entries.setdefault((fact.record, fact.member), []).append(fact)
            names = fact.member.split(".")
            self._containers.update((fact.record, ".".join(names[:end])) for end in range(1, len(names)))
            self.roles.setdefault(fact.record, set()).add(fact.role)
        for unit in registry.unit:
            self.roles.setdefault(unit.record, set()).add(unit.role)

    def of(self, kind: str, member: str) -> list[Fact]:
        """Entries for a member, those for its record type before those for all."""
        return self._entries.get((kind, member), []) or self._entries.get(("*", member), [])

    def is_container(self, kind: str, member: str) -> bool:
        """Whether entries speak of members inside this one."""
        return (kind, member) in self._containers or ("*", member) in self._containers

    def check(self, case: Case, path: Path, value: Any, bound: tuple[int, ...] = ()) -> Iterator[Claim]:
        """Claims about a member and all in it.

        Args:
            case: The record.
            path: Where the member stands in it.
            value: What it says.
            bound: Native positions of the list elements that the member stands in.
        """
        name = ".".join("*" if isinstance(step, int) else step for step in path)
        entries = self.of(case.kind, name)
        best: Attempt | None = None
        for fact in entries:
            for attempt in attempts(case, fact, value, bound):
                if not attempt.wrong:
                    yield Claim(path, value, attempt.evidence)
                    return
                if best is None or len(attempt.wrong) < len(best.wrong):
                    best = attempt
        if isinstance(value, dict | list) and value and self.is_container(case.kind, name):
            inner = list(self._inside(case, path, value, bound))
            if best is None or sum(claim.evidence is None for claim in inner) <= len(best.wrong):
                yield from inner
                return
        if best is None and _carried(case, path, value):
            yield Claim(path, value, Evidence("carried", -1, str(case.record.get("supersedes"))))
            return
        if best is not None:
            for inside, said, why in best.wrong:
                yield Claim((*path, *inside), said, None, why)
            return
        for at, leaf, _ in differences(value, MISSING, path):
            yield Claim(at, leaf, None, NOWHERE if entries else NO_ENTRY)

    def _inside(self, case: Case, path: Path, value: Any, bound: tuple[int, ...]) -> Iterator[Claim]:
        if isinstance(value, dict):
            for member, inner in value.items():
                yield from self.check(case, (*path, member), inner, bound)
        else:
            yield from self._elements(case, path, value, bound)

    def _elements(self, case: Case, path: Path, items: list[Any], bound: tuple[int, ...]) -> Iterator[Claim]:
        """Each element against the native ones, in order; where there are more of these, some may be left out."""
        name = ".".join("*" if isinstance(step, int) else step for step in (*path, 0))
        spare = max(self._length(case, name, bound) - len(items), 0)
        at = 0
        for index, item in enumerate(items):
            best: list[Claim] = []
            least = -1
            for tried in range(at, at + min(spare, AHEAD) + 1):
                claims = list(self.check(case, (*path, index), item, (*bound, tried)))
                bad = sum(claim.evidence is None for claim in claims)
                if least < 0 or bad < least:
                    best, least = claims, bad
                if not bad:
                    spare -= tried - at
                    at = tried
                    break
            at += 1
            yield from best

    def _length(self, case: Case, name: str, bound: tuple[int, ...]) -> int:
        """How many elements the longest native list has that entries for a list's elements read."""
        longest = 0
        for (record, member), entries in self._entries.items():
            if record != case.kind or not (member == name or member.startswith(f"{name}.")):
                continue
            for fact in entries:
                for pointer in fact.pointers:
                    steps = pointer.split("/*")
                    if len(steps) <= len(bound) + 1:
                        continue
                    whole = "/*".join(steps[: len(bound) + 1])
                    for cite in case.role_cites(fact.role):
                        for one in case.pointed(cite, whole, bound):
                            longest = max(longest, len(one.value) if isinstance(one.value, list) else 0)
        return longest


def _carried(case: Case, path: Path, value: Any) -> bool:
    """Whether the state before this one says the same."""
    if case.before is None or path[0] in ("native", "capture"):
        return False
    before: Any = case.before
    for step in path:
        inside = (
            before.keys()
            if isinstance(before, dict)
            else range(len(before) if isinstance(before, list) else 0)
        )
        if step not in inside:
            return False
        before = before[step]
    return agree(value, before)


def attempts(case: Case, fact: Fact, value: Any, bound: tuple[int, ...]) -> Iterator[Attempt]:
    """What one entry finds for a member: each value with what is wrong about it."""
    if any(bound) and not any("*" in pointer for pointer in fact.pointers):
        return  # such an entry makes one element, the first
    for cite, found in case.readings(fact, bound):
        if fact.via == "parts":
            yield from _parts(case, cite, found[0], value)
            continue
        for pointed in [[Pointed("", cite.root)]] if fact.pointer == "" else _rows(found):
            made = _made(case, cite, fact, pointed, value)
            if made is MISSING:
                continue
            if fact.pointer == "" and (fact.table is not None or fact.then is not UNSET):
                pointed = [Pointed(_spelled(cite, at), case.at(cite, at)) for at in grounds(case, cite, fact)]
            there = [one for one in pointed if one.value is not MISSING]
            way = fact.via if fact.table is None else f"table {fact.table}"
            way = way if fact.tag is None else f"{way}, <{fact.tag}>"
            evidence = Evidence(
                "stated" if fact.then is not UNSET else way,
                cite.number if cite in case.cites else -1,
                cite.place,
                ", ".join(one.pointer for one in there),
                there[0].value if len(there) == 1 else [one.value for one in there] or None,
            )
            yield Attempt(evidence, [] if agree(value, made) else list(differences(value, made)))


def values_of(case: Case, fact: Fact) -> Iterator[Any]:
    """What one entry makes of the lines that a record cites, whatever the record says."""
    if fact.via in ("parts", "exact_text"):
        return  # these compare; they make nothing
    for cite, found in case.readings(fact, ()):
        for pointed in [[Pointed("", cite.root)]] if fact.pointer == "" else _rows(found):
            made = _made(case, cite, fact, pointed, None)
            if made is not MISSING:
                yield made


def _spelled(cite: Cite, pointer: str) -> str:
    if pointer.startswith("../"):
        return above(cite.pointer, pointer)
    return cite.pointer + pointer[1:] if pointer[0] == "." else pointer


def _rows(found: list[list[Pointed]]) -> Iterator[list[Pointed]]:
    """The values for one use of a function: each of a single pointer's, or the first of each of several."""
    if len(found) == 1:
        for one in found[0]:
            yield [one]
    else:
        yield [values[0] if values else Pointed("", MISSING) for values in found]


def _made(case: Case, cite: Cite, fact: Fact, pointed: list[Pointed], value: Any) -> Any:
    """The member that an entry makes of native values, or ``MISSING``."""
    values = [one.value for one in pointed]
    made: Any = MISSING
    if fact.then is not UNSET:
        made = fact.then if fact.pointer == "" or values[0] is not MISSING else MISSING
    elif fact.via == "table":
        table = TABLES.get(fact.table or "")
        made = MISSING if table is None else table(case, cite, fact, values)
    elif values[0] is MISSING and fact.via not in ("join", "derived_id"):
        return MISSING
    elif fact.via in PURE:
        made = PURE[fact.via](*values)
    elif fact.via == "slice":
        made = slice_of(values[0], fact.tag)
    elif fact.via == "join":
        made = join(*values, sep=fact.sep)
    elif fact.via == "derived_id":
        made = derived_id(*values)
    elif fact.via == "path":
        made = path_ref(values[0], case.ledger.head.roots)
    elif fact.via == "index":
        made = pointed[0].pointer.rsplit("/", 1)[-1]
    elif fact.via == "exact_text":
        made = value if is_text_of(value, cite.data, pointed[0].pointer) else "another text"
    elif fact.via == "file":
        made = _file(case, values[0], value)
    if fact.words and made is not MISSING:
        made = fact.words.get(made, MISSING) if isinstance(made, str) else MISSING
    return made


def _parts(case: Case, cite: Cite, found: list[Pointed], value: Any) -> Iterator[Attempt]:
    if not found:
        return
    # What stands in a list is one block, even where it is a list itself.
    blocks = blocks_of([[one.value] if _is_element(one.pointer) else one.value for one in found])
    _, wrong = check_parts(value, blocks, case.blob, whole=case.kind == "tool_result")
    pointer = ", ".join(one.pointer for one in found[:3])
    index = cite.number if cite in case.cites else -1
    yield Attempt(Evidence("parts", index, cite.place, pointer, [one.value for one in found]), wrong)


def _is_element(pointer: str) -> bool:
    step = pointer.rpartition("/")[2]
    return step.isascii() and step.isdigit()


def _file(case: Case, path: Any, value: Any) -> Any:
    """The blob of the source that has this file name."""
    name = value.get("blob") if isinstance(value, dict) else None
    for source in case.reading.sources.all.values():
        if isinstance(path, str) and same_file(source.entry.path, path):
            blob = {"blob": f"sha256:{source.entry.sha256}", "size": source.entry.size}
            if blob["blob"] == name:
                if "mimeType" in value and source.entry.path.endswith(".txt"):
                    blob["mimeType"] = "text/plain"
                return blob
    return MISSING
