"""What a source reports of its use is shown in its own words and numbers; nothing is added up, no share is computed."""

from __future__ import annotations

from callsheet.paint import paint_usage, plain
from callsheet.records import Usage
from callsheet.records.message import Count
from callsheet.rows import Reported


def reported(*records: Usage) -> Reported:
    found = Reported()
    for record in records:
        found.note(record)
    return found


def test_a_share_is_never_computed() -> None:
    assert reported(Usage(scope="session", context_used=50, context_window=200)).context == "context 50/200"
    assert reported(Usage(scope="session", context_window=200)).context == "window 200"
    assert reported(Usage(scope="session", context_used=0)).context == "context 0"
    assert reported(Usage(scope="session", percent=12.5)).context == "12.5%"
    whole = reported(Usage(scope="session", context_used=1, context_window=2, percent=49))
    assert whole.context == "context 1/2 49%"  # what the source says, even if it does not add up


def test_the_newest_of_each_scope_counts() -> None:
    found = reported(
        Usage(scope="session", cumulative=True, counts=[Count(name="total_tokens", value=30)]),
        Usage(scope="inference", counts=[Count(name="input_tokens", value=1)]),
        Usage(scope="session", context_window=200),
        Usage(
            scope="inference",
            counts=[Count(name="input_tokens", value=2), Count(name="cost", value=0.5)],
        ),
        Usage(scope="week", cumulative=True, counts=[Count(name="n", value=1)]),
        Usage(scope="session"),
    )
    assert found.context == "window 200"
    assert not found.says_how_full
    assert list(found.counts()) == [
        ("last response", ["input_tokens 2", "cost 0.5"]),
        ("session so far", ["total_tokens 30"]),
        ("week so far", ["n 1"]),
    ]


def test_nothing_reported_is_no_line() -> None:
    assert paint_usage(Reported(), 80) == []


def test_names_are_made_harmless_and_lines_fit() -> None:
    counts = [Count(name=f"a\x1b[2J\n{number}", value=number) for number in range(40)]
    lines = paint_usage(reported(Usage(scope="in\x07ference", counts=counts)), 40)
    text = "\n".join(plain(line) for line in lines)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "39" in text
    assert max(len(plain(line)) for line in lines) <= 40
