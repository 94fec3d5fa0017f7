"""Version ranges: a little language that says nothing about what it does not know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.registry.versions import in_ranges, version_key

VERSION = st.lists(st.integers(0, 400), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@pytest.mark.parametrize(
    ("ranges", "version", "holds"),
    [
        ("", "2.1.332", True),
        ("", None, True),
        ("", "nonsense", True),
        ("2.1.332", "2.1.332", True),
        ("2.1.332", "2.1.331", False),
        ("2.1.332", None, False),
        (">=2.1.300", "2.1.300", True),
        (">=2.1.300", "2.1.299", False),
        (">=2.1.300", "2.2", True),
        (">=2.1.300", "10.0.0", True),
        ("<2.1.300", "2.1.9", True),
        (">2.1", "2.1", False),
        ("<=2.1", "2.1", True),
        ("2.1.120..2.1.200", "2.1.120", True),
        ("2.1.120..2.1.200", "2.1.200", True),
        ("2.1.120..2.1.200", "2.1.201", False),
        (">=2.1.9, <2.1.20", "2.1.10", True),
        (">=2.1.9, <2.1.20", "2.1.20", False),
        (["2.0.76", ">=2.1.300"], "2.0.76", True),
        (["2.0.76", ">=2.1.300"], "2.1.1", False),
        ([], "2.0.76", False),
        ("2.1.300", "2.1.300-beta.1", True),
        (">=2.1.300", "v2.1.332", False),
        (">=1", "", False),
    ],
)
def test_ranges(ranges: str | list[str], version: str | None, holds: bool) -> None:
    assert in_ranges(ranges, version) is holds


@pytest.mark.parametrize("ranges", ["two", ">=", "1..", "=>1"])
def test_a_range_that_is_none_is_a_mistake_of_ours(ranges: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        in_ranges(ranges, "1.0")


@given(VERSION, VERSION)
def test_numbers_are_compared_as_numbers(low: str, high: str) -> None:
    first, second = (tuple(map(int, text.split("."))) for text in (low, high))
    assert in_ranges(f">={low}", high) is (second >= first)
    assert in_ranges(f"<{low}", high) is (second < first)
    assert in_ranges(f"{low}..{high}", low) is (first <= second)


@given(st.text(max_size=12))
def test_any_text_has_a_key_or_none(text: str) -> None:
    key = version_key(text)
    starts = text[:1] in tuple("0123456789")
    assert (key is not None) is starts
    assert in_ranges("", text)
    assert in_ranges(">=0", text) is starts
