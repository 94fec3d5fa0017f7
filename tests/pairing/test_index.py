"""Pairing, rule by rule, and against a slow reading of the same rules."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callsheet.pairing import Pairing, Place, Verdict, provider_of, tally
from callsheet.records import (
    Change,
    CompactPermission,
    FileChange,
    Gap,
    InputRequest,
    Message,
    PathRef,
    Permission,
    Provider,
    Record,
    Subagent,
    Subject,
    Terminal,
    ToolCall,
    ToolResult,
    Unmapped,
    decode,
)


def call(call_id: str = "a", **more: Any) -> ToolCall:
    return ToolCall(call_id=call_id, call_id_source="native", name="Bash", **more)


def result(
    call_id: str | None = "a", linkage: str = "exact", status: str = "completed", **more: Any
) -> ToolResult:
    return ToolResult(call_id=call_id, linkage=linkage, status=status, **more)


def permission(call_id: str, decision: str | None = None, request: str = "p", **more: Any) -> Permission:
    return Permission(request_id=request, subject=Subject(call_id=call_id), decision=decision, **more)


def pair(*records: Record) -> Pairing:
    pairing = Pairing()
    for number, record in enumerate(records):
        record.id = record.id or f"r{number}"
        assert pairing.add(record) == number
    return pairing


def test_a_result_pairs_with_the_one_call_of_its_id() -> None:
    pairing = pair(call("a"), call("b"), result("b"), result("a", "derived", "failed"))
    assert pairing.result("a") == 3
    assert pairing.result("b") == 2
    assert pairing.pairing_of(0, "a") == pairing.pairing_of(3, "a") == "paired"
    assert pairing.status_of(3) == "failed"
    assert pairing.home(3, result("a")) == 0


def test_a_result_may_stand_before_its_call() -> None:
    pairing = pair(result("a"), call("a"))
    assert pairing.result("a") == 0
    assert pairing.pairing_of(1, "a") == "paired"


def test_two_calls_with_one_id_pair_with_nothing() -> None:
    pairing = pair(call("a"), result("a"), call("a"), result("a"))
    assert pairing.call("a") is None
    assert pairing.calls("a") == [0, 2]
    assert [pairing.pairing_of(n, "a") for n in range(4)] == [
        "dangling",
        "ambiguous",
        "dangling",
        "ambiguous",
    ]
    assert pairing.why_dangling("a") == "several_calls"
    assert pairing.home(1, result("a")) == 1


def test_two_results_of_one_call_are_ambiguous_both() -> None:
    pairing = pair(call("a"), result("a"), result("a", status="failed"))
    assert [pairing.pairing_of(n, "a") for n in range(3)] == ["dangling", "ambiguous", "ambiguous"]
    assert pairing.why_dangling("a") == "several_results"
    assert pairing.why_unpaired(2, "a") == "several_results"


def test_a_revision_is_the_same_result() -> None:
    pairing = pair(call("a"), result("a"), result("a", status="failed", supersedes="r1"))
    assert pairing.result("a") == 2
    assert pairing.status_of(2) == "failed"
    assert (pairing.first(2), pairing.latest(1)) == (1, 2)
    assert pairing.is_superseded(1)
    assert pairing.home(1, result("a")) == pairing.home(2, result("a")) == 0


def test_a_revision_may_take_its_callid_back() -> None:
    pairing = pair(call("a"), result("a"), result(None, "ambiguous", supersedes="r1"))
    assert pairing.why_dangling("a") == "no_result"
    assert pairing.pairing_of(2, None) == "ambiguous"


def test_a_fork_is_two_results() -> None:
    records = [call("a"), result("a"), result("a", supersedes="r1"), result("a", supersedes="r1")]
    pairing = pair(*records)
    assert pairing.result("a") is None
    assert list(pairing.results("a")) == [2, 3]
    assert pairing.first(3) == 3


def test_links_that_lead_nowhere_mean_nothing() -> None:
    later = pair(result("a", supersedes="r1"), result("a"))
    assert list(later.results("a")) == [0, 1]
    itself = pair(result("a", supersedes="r0"))
    assert not itself.is_superseded(0)
    other_type = pair(call("a"), result("a", supersedes="r0"))
    assert other_type.result("a") == 1
    other_key = pair(call("a"), call("b", supersedes="r0"))
    assert (other_key.call("a"), other_key.call("b")) == (0, 1)
    odd = pair(
        result("a"),
        result("a", supersedes="r007"),
        result("a", supersedes="r00"),
        result("a", supersedes="r²"),
    )
    assert len(list(odd.results("a"))) == 4


def test_record_ids_are_free_texts() -> None:
    pairing = pair(
        result("a", id="r1"),
        result("a", id="x", supersedes="r1"),
        result("a", id="r0", supersedes="x"),
        call("a"),
    )
    assert pairing.result("a") == 2
    assert pairing.first(2) == 0


def test_a_call_that_is_revised_stays_one_call() -> None:
    pairing = pair(call("a"), result("a"), call("a", supersedes="r0"))
    assert pairing.calls("a") == [0]
    assert pairing.latest(0) == 2
    assert pairing.result("a") == 1


def test_an_orphan_names_no_call_of_the_stream() -> None:
    pairing = pair(
        result("x"), result(None, "none"), result(None, "ambiguous", native_call_id="a"), call("a")
    )
    assert [pairing.pairing_of(n, cid) for n, cid in ((0, "x"), (1, None), (2, None))] == [
        "orphan",
        "orphan",
        "ambiguous",
    ]
    assert pairing.why_unpaired(0, "x") == "no_call"
    assert pairing.result("a") is None


def test_a_linkage_that_nobody_knows_does_not_pair() -> None:
    pairing = pair(call("a"), result("a", "guessed"))
    assert pairing.pairing_of(0, "a") == "dangling"
    assert pairing.pairing_of(1, "a") == "orphan"
    assert pairing.why_dangling("a") == "unlinked"


def test_the_latest_permission_decides() -> None:
    pairing = pair(
        call("a"),
        permission("a", "reject_once", "p1"),
        permission("a", None, "p2", status="pending"),
        permission("a", "allow_once", "p2", supersedes="r2"),
    )
    assert pairing.linked("a", Permission) == [1, 3]
    assert pairing.verdict("a") is Verdict.ALLOWED
    assert pair(call("a"), permission("a")).verdict("a") is Verdict.OPEN
    assert pair(call("a"), permission("a", "reject_always")).verdict("a") is Verdict.REJECTED
    assert pair(call("a"), permission("a", "timeout")).verdict("a") is Verdict.OTHER


def test_a_permission_of_a_repeated_id_decides_nothing() -> None:
    assert pair(call("a"), call("a"), permission("a", "reject_once")).verdict("a") is Verdict.OPEN


def test_compact_decisions_count_once() -> None:
    compact = CompactPermission(decision="reject_once", decided_by="policy")
    pairing = pair(
        call("a"),
        result("a", status="failed", permission=compact),
        result("a", status="failed", supersedes="r1", permission=compact),
    )
    assert pairing.verdict("a") is Verdict.REJECTED
    assert tally(pairing).compact == 1
    assert tally(pairing).declined == 1


def test_a_rejected_call_that_completed_is_not_declined() -> None:
    pairing = pair(call("a"), permission("a", "reject_once"), result("a"))
    assert tally(pairing).completed == 1


def test_terminals_with_one_id_are_one_entity_even_without_supersedes() -> None:
    pairing = pair(
        Terminal(terminal_id="t", call_id="a", status="running"),
        Terminal(terminal_id="u", call_id="a"),
        Terminal(terminal_id="t", call_id="a", status="exited"),
    )
    assert pairing.latest(0) == 2
    assert pairing.linked("a", Terminal) == [1, 2]


def test_what_belongs_to_a_call_folds_into_it() -> None:
    change = FileChange(scope="call", call_id="a", changes=[Change(path=PathRef(root="host", path="/x"))])
    turn = FileChange(scope="turn", call_id="a")
    agent = Subagent(agent_id="g", call_id="a", stream="s")
    asked = InputRequest(request_id="q", call_id="a", mode="form")
    records = [call("a"), change, turn, agent, asked]
    pairing = pair(*records)
    assert [pairing.home(n, record) for n, record in enumerate(records)] == [0, 0, 2, 0, 4]
    assert pairing.linked("a", FileChange) == [1]
    assert pairing.linked("a", Subagent) == [3]
    assert pairing.linked("a", InputRequest) == [4]
    twice = pair(call("a"), change, call("a"))
    assert twice.home(1, change) == 1


def test_a_provider_may_come_from_the_result() -> None:
    mcp = Provider(kind="mcp", identity="unknown")
    assert provider_of(call(), result(provider=mcp)) == mcp
    assert provider_of(call(provider=Provider(kind="plugin", identity="exact")), result(provider=mcp)) != mcp
    assert provider_of(call(), None) is None


def test_places_types_and_bad_lines_are_kept() -> None:
    pairing = Pairing()
    pairing.add(call("a"), Place(10, 20))
    pairing.add_bad(Place(31, 5))
    pairing.add(decode(b'{"type":"newer","seq":2,"id":"r2"}'), Place(37, 6))
    pairing.add(Gap(reason="nul"))
    pairing.add(Unmapped())
    assert pairing.place(0) == (10, 20)
    assert pairing.type_of(0) is ToolCall
    assert pairing.type_of(1) is pairing.type_of(2) is None
    assert pairing.is_bad(1)
    assert not pairing.is_bad(2)
    found = tally(pairing)
    assert (found.bad_lines, found.unknown_types, found.gaps, found.unmapped, found.records) == (
        1,
        1,
        1,
        1,
        5,
    )


def slow(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """The rules read literally, with all records at hand: words of the calls and of the results."""
    later: dict[int, int] = {}
    for number, record in enumerate(records):
        for before in range(number):
            old = records[before]
            same = type(old) is type(record) and (
                not isinstance(old, ToolCall) or old.call_id == record.call_id  # type: ignore[attr-defined]
            )
            if record.supersedes == old.id and same and before not in later:
                later[before] = number
    firsts = [n for n in range(len(records)) if n not in later.values()]

    def last(number: int) -> Record:
        while number in later:
            number = later[number]
        return records[number]

    calls = [r for r in map(last, firsts) if isinstance(r, ToolCall)]
    results = [r for r in map(last, firsts) if isinstance(r, ToolResult)]
    paired = [
        one
        for one in results
        if one.linkage in ("exact", "derived")
        and sum(c.call_id == one.call_id for c in calls) == 1
        and sum(r.call_id == one.call_id for r in results) == 1
    ]
    call_words = ["paired" if any(p.call_id == c.call_id for p in paired) else "dangling" for c in calls]
    result_words = []
    for one in results:
        known = one.call_id is not None and any(c.call_id == one.call_id for c in calls)
        if any(one is p for p in paired):
            result_words.append("paired")
        elif one.linkage == "ambiguous" or (one.linkage in ("exact", "derived") and known):
            result_words.append("ambiguous")
        else:
            result_words.append("orphan")
    return sorted(call_words), sorted(result_words)


ids = st.sampled_from(["a", "b", "c"])
links = st.none() | st.integers(0, 11).map(lambda n: f"r{n}")
calls_or_results = st.one_of(
    st.builds(lambda i, s: call(i, supersedes=s), ids, links),
    st.builds(
        lambda i, k, s: result(i, k, supersedes=s),
        st.none() | ids,
        st.sampled_from(["exact", "derived", "ambiguous", "none"]),
        links,
    ),
)


@given(st.lists(calls_or_results, max_size=12))
def test_the_index_agrees_with_a_slow_reading(records: list[Record]) -> None:
    pairing = pair(*records)
    found: tuple[list[str], list[str]] = ([], [])
    for number, record in enumerate(records):
        if not pairing.is_superseded(number):
            assert isinstance(record, ToolCall | ToolResult)
            found[isinstance(record, ToolResult)].append(pairing.pairing_of(number, record.call_id))
    assert (sorted(found[0]), sorted(found[1])) == slow(records)
    counts = tally(pairing)
    assert counts.paired + counts.dangling == counts.calls == len(found[0])
    assert counts.paired + counts.orphan + counts.ambiguous == counts.results == len(found[1])
    states = ("completed", "failed", "declined", "cancelled", "interrupted", "unconfirmed")
    assert sum(getattr(counts, state) for state in states) == counts.calls


@given(
    st.permutations([call("a"), call("b"), call("b"), result("a"), result("b"), result("x"), permission("a")])
)
def test_order_does_not_matter(records: list[Record]) -> None:
    for number, record in enumerate(records):
        record.id = f"r{number}"
    found = tally(pair(*records))
    assert (found.paired, found.dangling, found.ambiguous, found.orphan) == (1, 2, 1, 1)


def test_memory_stays_small() -> None:
    count = 20_000
    tracemalloc.start()
    pairing = Pairing()
    for n in range(0, 3 * count, 3):
        call_id = f"toolu_01{n:022}"
        pairing.add(call(call_id, id=f"r{n}"), Place(n * 1000, 500))
        pairing.add(result(call_id + "", id=f"r{n + 1}"), Place(n * 1000 + 500, 400))
        pairing.add(Message(author="model", id=f"r{n + 2}"), Place(n * 1000 + 900, 100))
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used / (3 * count) < 200, sys.getsizeof(pairing)


def test_a_hundred_thousand_calls_of_one_id_cost_no_more_than_others() -> None:
    pairing = pair(*(call("a") for _ in range(20_000)), *(result("a") for _ in range(20_000)))
    assert all(pairing.pairing_of(n, "a") == "dangling" for n in range(20_000))
    assert all(pairing.pairing_of(n, "a") == "ambiguous" for n in range(20_000, 40_000))
    assert tally(pairing).ambiguous == 20_000
