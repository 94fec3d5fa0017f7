"""Transcripts that are trees: which entry follows which, and which call a result on a branch answers (decision 3).

Owns, for a registry whose ``[marks]`` name an entry's parent: the entries of one source (``Entries``), the tree of all
sources of a stream (``Branches``), and the table functions that ask it: ids of calls that share a native id, the link
of a result through the chain of its parents, branches that were left, parents that are not there. It is worked out
anew from the lines; nothing that an importer concluded is used. Memory: some numbers for each entry.

Must never know: importers, which harness it is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from callsheet.audit.values import line_of
from callsheet.registry.facts import Marks
from callsheet.registry.via import derived_id
from callsheet.registry.when import MISSING, follow, matches

if TYPE_CHECKING:
    from callsheet.audit.case import Case
    from callsheet.audit.cite import Cite
    from callsheet.audit.scan import Scan
    from callsheet.registry.facts import Fact

NOWHERE, LOST = -1, -2
"""No parent; a parent that is not in the transcript."""
_PLAIN, _MAKER, _REPLY = 0, 1, 2
_LIVE, _ACTIVE, _LEFT = 0, 1, 2
_MOST_MODELS = 250


def _mark(value: Any) -> int:
    return (hash(value) or 1) if isinstance(value, str) and value else 0


class Entries:
    """The entries of one source, in order.

    Attributes:
        leaf: Mark of the last entry of the active branch, where a row says it.
        models: Where messages of the model came from: API, provider, model.
        windows: The most tokens that a request to each of them took.
    """

    def __init__(self) -> None:
        self.lines = array("Q")
        self.own = array("q")
        self.up = array("q")
        self.digests = array("q")
        self.kinds = bytearray()
        self.model_of = bytearray()
        self.models: list[tuple[str, ...]] = [()]
        self.windows = [0]
        self.leaf = 0

    def take(self, marks: Marks, line: int, data: bytes, root: Any) -> None:
        """Takes a line in, if it is an entry, or the row that names the leaf."""
        if marks.leaf and matches(marks.leaf_if, root):
            self.leaf = _mark(follow(root, marks.leaf)) or self.leaf
        if not matches(marks.entry, root):
            return
        kind = _PLAIN
        if matches(marks.maker, root):
            kind = _REPLY if matches(marks.reply, root) else _MAKER
        self.lines.append(line)
        self.own.append(_mark(follow(root, marks.own)))
        self.up.append(_mark(follow(root, marks.parent)))
        self.digests.append(hash(data))
        self.kinds.append(kind)
        self.model_of.append(self._model(marks, root) if kind and marks.model else 0)

    def _model(self, marks: Marks, root: Any) -> int:
        told = (follow(root, pointer) for pointer in marks.model)
        named = tuple(one if isinstance(one, str) else "" for one in told)
        if named not in self.models:
            if len(self.models) >= _MOST_MODELS:
                return 0
            self.models.append(named)
            self.windows.append(0)
        number = self.models.index(named)
        took = follow(root, marks.prompt)
        if any(named) and type(took) is int:
            self.windows[number] = max(self.windows[number], took)
        return number


class Branches:
    """The tree of a stream's sources. Positions count the entries of all of them.

    Args:
        scans: The scans of the sources, in the order of the history that they hold.
    """

    def __init__(self, scans: Sequence[Scan]) -> None:
        self._scans = [scan for scan in scans if scan.entries is not None]
        self._bases: list[int] = []
        own, up, self._digests = array("q"), array("q"), array("q")
        self._kinds = bytearray()
        leaf = 0
        for scan in self._scans:
            assert scan.entries is not None
            self._bases.append(len(own))
            own += scan.entries.own
            up += scan.entries.up
            self._digests += scan.entries.digests
            self._kinds += scan.entries.kinds
            leaf = scan.entries.leaf or leaf
        self._own, self._up = own, up
        self._order = array("Q", sorted(range(len(own)), key=own.__getitem__))
        self._sorted = array("q", (own[at] for at in self._order))
        self._parents = self._resolved()
        self._above = self._makers_above()
        self._states = self._branches(leaf)
        self._answered = self._replies_below()
        self._several = self._shared_ids()

    # -- building -----------------------------------------------------------------------------------------------

    def _named(self, mark: int) -> Iterator[int]:
        """Positions of the entries with an id, in order."""
        at = bisect_left(self._sorted, mark)
        while at < len(self._sorted) and self._sorted[at] == mark:
            yield self._order[at]
            at += 1

    def _resolved(self) -> array[int]:
        parents = array("q", [NOWHERE]) * len(self._own)
        for at, up in enumerate(self._up):
            if up:
                before = at > 0 and self._own[at - 1] == up
                parents[at] = at - 1 if before else next(self._named(up), LOST)
        return parents

    def _makers_above(self) -> array[int]:
        above = array("q", [NOWHERE]) * len(self._own)
        seen = bytearray(len(self._own))
        for start in range(len(self._own)):
            climbed: list[int] = []
            at, end = start, NOWHERE
            while at >= 0 and not seen[at]:
                seen[at] = 1
                climbed.append(at)
                at = self._parents[at]
                if at >= 0 and self._kinds[at]:
                    end = at
                    break
            else:
                if at >= 0 and climbed:
                    end = above[at]
            for one in climbed:
                above[one] = end
        return above

    def _branches(self, leaf: int) -> bytearray:
        states = bytearray(len(self._own))
        at = len(states) - 1
        if leaf:
            at = max(self._named(leaf), default=at)
        while at >= 0 and states[at] != _ACTIVE:
            states[at] = _ACTIVE
            at = self._parents[at]
        for at, parent in enumerate(self._parents):
            if states[at] == _LIVE and 0 <= parent < at and states[parent] != _LIVE:
                states[at] = _LEFT
        return states

    def _replies_below(self) -> bytearray:
        answered = bytearray(len(self._own))
        for at in range(len(answered) - 1, -1, -1):
            if (answered[at] or self._kinds[at] == _REPLY) and self._parents[at] >= 0:
                answered[self._parents[at]] = 1
        return answered

    def _shared_ids(self) -> dict[int, list[int]]:
        """Marks of call ids that stand on several calls, with the positions of the entries that made these."""
        ids, makers = array("q"), array("q")
        for number, scan in enumerate(self._scans):
            calls = scan.units.get("tool_call")
            for key, one in zip(calls.keys, calls.ids, strict=True) if calls is not None else ():
                at = self.position(number, line_of(key))
                if one and at != NOWHERE and not self.is_repeat(at):
                    ids.append(one)
                    makers.append(at)
        found: dict[int, list[int]] = {}
        order = sorted(range(len(ids)), key=ids.__getitem__)
        for before, after in pairwise(order):
            if ids[before] == ids[after]:
                found.setdefault(ids[after], [makers[before]]).append(makers[after])
        return found

    # -- what is asked ------------------------------------------------------------------------------------------

    def position(self, number: int, line: int) -> int:
        """Position of the entry on a line of a source (by its number among the scans)."""
        entries = self._scans[number].entries
        assert entries is not None
        at = bisect_left(entries.lines, line)
        there = at < len(entries.lines) and entries.lines[at] == line
        return self._bases[number] + at if there else NOWHERE

    def at(self, scan: Scan, line: int) -> int:
        """Position of the entry on a line of a source."""
        number = next((number for number, one in enumerate(self._scans) if one is scan), None)
        return NOWHERE if number is None else self.position(number, line)

    def place(self, at: int) -> tuple[Scan, int]:
        """Scan and line of an entry."""
        number = max(number for number, base in enumerate(self._bases) if base <= at)
        entries = self._scans[number].entries
        assert entries is not None
        return self._scans[number], entries.lines[at - self._bases[number]]

    def is_repeat(self, at: int) -> bool:
        """Whether an entry repeats an earlier one to the letter."""
        mark = self._own[at]
        return mark != 0 and any(
            other < at and self._digests[other] == self._digests[at] for other in self._named(mark)
        )

    def _is_alone(self, at: int) -> bool:
        """Whether no other entry has this one's id and says something else."""
        mark = self._own[at]
        return mark != 0 and all(self._digests[other] == self._digests[at] for other in self._named(mark))

    def is_shared(self, native: str) -> bool:
        """Whether a call id stands on several calls."""
        return _mark(native) in self._several

    def tells_apart(self, native: str, at: int) -> bool:
        """Whether the entry made exactly one of the calls with an id, and has an id of its own."""
        makers = self._several.get(_mark(native), [])
        return at != NOWHERE and makers.count(at) == 1 and self._is_alone(at)

    def above(self, at: int) -> int:
        """The nearest maker up the chain."""
        return self._above[at] if at != NOWHERE else NOWHERE

    def is_left(self, at: int) -> bool:
        """Whether an entry stands on a branch that was left."""
        return at != NOWHERE and self._states[at] == _LEFT

    def lacks_parent(self, at: int) -> bool:
        """Whether an entry names a parent that is not there."""
        return at != NOWHERE and self._parents[at] == LOST

    def is_answered(self, at: int) -> bool:
        """Whether a reply of the model stands below an entry."""
        return at != NOWHERE and bool(self._answered[at])

    def maker(self, at: int) -> tuple[str, int]:
        """The provider API of the maker above an entry, and the tokens that its model's context window has at least."""
        above = self.above(at)
        if above == NOWHERE:
            return "", 0
        scan, line = self.place(above)
        entries = scan.entries
        assert entries is not None
        named = entries.models[entries.model_of[bisect_left(entries.lines, line)]]
        told = [one.entries for one in self._scans if one.entries is not None and named in one.entries.models]
        return named[0] if named else "", max(one.windows[one.models.index(named)] for one in told)


# -- the tables --------------------------------------------------------------------------------------------------


def _here(case: Case, cite: Cite) -> tuple[Branches, int]:
    branches = case.branches
    return branches, branches.at(case.scan(cite), cite.line)


def _own_id(case: Case, branches: Branches, at: int) -> Any:
    scan, line = branches.place(at)
    return follow(case.reading.value_at(scan, line), case.registry.marks.own)


def branch_call(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The id of a call in a tree: its own, or a derived one where several calls have that id (decision 3)."""
    native = values[0]
    if not isinstance(native, str):
        return MISSING
    branches, at = _here(case, cite)
    if not branches.is_shared(native) or not branches.tells_apart(native, at):
        return native
    return derived_id(native, _own_id(case, branches, at))


def branch_answer(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The id of the call that a result in a tree answers: by its id, else by the nearest maker up the chain."""
    native = values[0]
    if not isinstance(native, str):
        return MISSING
    branches, at = _here(case, cite)
    if not branches.is_shared(native):
        return native
    above = branches.above(at)
    return (
        derived_id(native, _own_id(case, branches, above)) if branches.tells_apart(native, above) else MISSING
    )


def branch_link(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """How a result in a tree is linked to its call (ASR-262)."""
    if not isinstance(values[0], str):
        return "none"
    found = branch_answer(case, cite, fact, values)
    return "ambiguous" if found is MISSING else "exact" if found == values[0] else "derived"


def branch_own_link(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """How a result that stands in its call's own entry is linked to it."""
    native = values[0]
    if not isinstance(native, str):
        return "derived"
    if branch_call(case, cite, fact, values) != native:
        return "derived"
    return "ambiguous" if case.branches.is_shared(native) else "exact"


def branch_shared_id(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """A native call id that stands on several calls of the tree."""
    return values[0] if isinstance(values[0], str) and case.branches.is_shared(values[0]) else MISSING


def branch(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """``left`` on a branch that is not the active one."""
    branches, at = _here(case, cite)
    return "left" if branches.is_left(at) else MISSING


def missing_parent(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """``missing_parent`` where an entry names a parent that is not in the transcript."""
    branches, at = _here(case, cite)
    return "missing_parent" if branches.lacks_parent(at) else MISSING


def told_link(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """How a result that no transcript has is linked: by its id, unless several calls of the stream have that."""
    if not isinstance(values[0], str):
        return MISSING
    return "ambiguous" if case.ledger.calls_with(values[0]) > 1 else "exact"


TREES = {
    "told_link": told_link,
    "branch_call": branch_call,
    "branch_answer": branch_answer,
    "branch_link": branch_link,
    "branch_own_link": branch_own_link,
    "branch_shared_id": branch_shared_id,
    "branch": branch,
    "missing_parent": missing_parent,
}
"""Tables over the tree."""
