"""Usage of a thread: its own records of it, and the context window that only older lines tell."""

from __future__ import annotations


from tests.native.codex.conftest import Made, Read




def counted(made: Made, window: object) -> None:
    totals = {"input_tokens": 120, "total_tokens": 150}
    info = {"total_token_usage": totals, "last_token_usage": totals, "model_context_window": window}
    made.add("event_msg", type="token_count", info=info)


def test_beside_records_of_usage_the_window_is_told_once(read: Read) -> None:
    made = Made()
    made.meta()
    made.said("Go.", "user")
    made.said("One.")
    made.replied()
    for window in (258400, 258400, None, "many", 258400, 1000):
        counted(made, window)
    found = [one for one in read(made).of("usage") if "contextWindow" in one]
    assert [one["contextWindow"] for one in found] == [258400, 1000]
    assert all("counts" not in one and one["scope"] == "session" for one in found)


def test_without_such_records_it_stands_with_the_totals(read: Read) -> None:
    made = Made()
    made.meta()
    made.said("Go.", "user")
    made.said("One.")
    counted(made, 272000)
    (usage,) = read(made).of("usage")
    assert usage["contextWindow"] == 272000
    assert usage["counts"][0] == {"name": "input_tokens", "value": 120}
