"""Which call is which: by what identifies it, never by where it stands."""

from __future__ import annotations

from typing import Any

from tests.compare.conftest import Held, Json, call, result

from callsheet.compare import Compared


def pairs(found: list[Compared]) -> list[tuple[str | None, str | None, str | None]]:
    def record(place: dict[str, str] | None) -> str | None:
        return None if place is None else place["record"]

    return [(record(one.left), record(one.right), one.matched_by or one.why) for one in found]


def derived(call_id: str, native: str, **members: Any) -> Json:
    return call("Bash", call_id, **{"callIdSource": "derived", "native": {"callId": native}, **members})


def test_one_id_is_one_call_wherever_it_stands(held: Held) -> None:
    found = held([call("A", "1"), call("B", "2")], [call("B", "2"), call("A", "1")])
    assert pairs(found) == [("r0", "r1", "callId"), ("r1", "r0", "callId")]


def test_a_derived_id_is_matched_through_the_native_one(held: Held) -> None:
    found = held([call("Bash", "toolu_x")], [derived("toolu_x#u1", "toolu_x")])
    assert pairs(found) == [("r0", "r0", "nativeCallId")]
    assert found[0].right == {
        "stream": "main",
        "record": "r0",
        "callId": "toolu_x#u1",
        "nativeCallId": "toolu_x",
    }


def test_one_id_on_several_calls_is_matched_by_what_they_ask(held: Held) -> None:
    left = [call("Bash", "dup", input={"command": word}) for word in ("a", "b", "c")]
    right = [derived(f"dup#{word}", "dup", input={"command": word}) for word in ("c", "a", "b")]
    by = "nativeCallId and input"
    assert pairs(held(left, right)) == [("r0", "r1", by), ("r1", "r2", by), ("r2", "r0", by)]


def test_where_nothing_tells_them_apart_nothing_is_matched(held: Held) -> None:
    left = [call("Bash", "dup", input={"command": "a"}) for _ in range(2)]
    right = [derived(f"dup#{n}", "dup", input={"command": "a"}) for n in range(2)]
    assert pairs(held(left, right)) == [
        ("r0", None, "same_ids"),
        ("r1", None, "same_ids"),
        (None, "r0", "same_ids"),
        (None, "r1", "same_ids"),
    ]


def test_the_last_of_several_is_not_matched_by_elimination(held: Held) -> None:
    left = [derived("dup#1", "dup"), derived("dup#2", "dup")]
    right = [derived("dup#1", "dup"), call("Bash", "dup")]
    assert pairs(held(left, right)) == [
        ("r0", "r0", "callId"),
        ("r1", None, "same_ids"),
        (None, "r1", "same_ids"),
    ]


def test_without_shared_ids_what_was_asked_identifies_a_call(held: Held) -> None:
    left = [call(None, "item_0", input={"q": 1, "r": 2}), call("read", "item_1", input={"id": "n"})]
    right = [
        call("draw", "call_1", input={"id": "n"}),
        call("read", "call_2", inputText='{"id": "n"}'),
        call("x", "call_3", input={"r": 2, "q": 1}),
    ]
    assert pairs(held(left, right)) == [
        ("r0", "r2", "input"),
        ("r1", "r1", "input"),
        (None, "r0", "not_there"),
    ]


def test_what_was_asked_twice_identifies_nothing(held: Held) -> None:
    left = [call("Bash", "item_0", input={"command": "ls"})]
    right = [call("Bash", f"call_{n}", input={"command": "ls"}) for n in range(2)]
    assert [why for *_, why in pairs(held(left, right))] == ["not_there"] * 3


def test_ids_that_differ_are_two_calls_where_the_readings_share_ids(held: Held) -> None:
    left = [call("Bash", "call_0"), call("Bash", "call_1", input={"command": "ls"})]
    right = [call("Bash", "call_0"), call("Bash", "call_2", input={"command": "ls"})]
    assert [why for *_, why in pairs(held(left, right))] == ["callId", "not_there", "not_there"]


def test_a_call_without_an_id_of_its_own_may_still_be_one(held: Held) -> None:
    left = [call("Bash", "call_0"), call(None, "ws_1", input={"query": "x"})]
    right = [call("Bash", "call_0"), call(None, "#s0.9", callIdSource="derived", input={"query": "x"})]
    assert pairs(held(left, right))[1] == ("r1", "r1", "input")


def test_another_name_is_another_call(held: Held) -> None:
    found = held([call("a", "1", input={"x": 1})], [call("b", "2", input={"x": 1})])
    assert [why for *_, why in pairs(found)] == ["not_there", "not_there"]


def test_the_command_that_ran_identifies_a_call(held: Held) -> None:
    left = [call(None, "item_0"), result("item_0", exec={"command": "bash -lc 'ls -l'"})]
    right = [call("exec", "call_0"), result("call_0", exec={"command": ["bash", "-lc", "ls -l"]})]
    assert pairs(held(left, right)) == [("r0", "r0", "command")]


def test_empty_arguments_identify_nothing(held: Held) -> None:
    found = held([call("a", "1", input={})], [call("a", "2", input={})])
    assert [why for *_, why in pairs(found)] == ["not_there", "not_there"]


def test_a_call_may_stand_in_another_stream(held: Held) -> None:
    left = {"main": [call("Agent", "1"), call("Bash", "2"), result("2", durationMs=5)]}
    right = {"main": [call("Agent", "1")], "agent": [call("Bash", "2"), result("2", durationMs=5)]}
    found = held(left, right)
    assert pairs(found) == [("r0", "r0", "callId"), ("r1", "r0", "callId")]
    assert found[1].lacks == []
