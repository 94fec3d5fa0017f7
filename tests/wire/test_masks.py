"""Masked lines keep their length and stay JSON; what was named stands in them in no spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from callsheet.wire.masks import SHORTEST, Cover, hidden, masked, spellings

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in strings(item)]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=SHORTEST, max_size=12),
    JSON,
    st.booleans(),
    st.integers(0, 2),
)
def test_a_masked_line_is_as_long_and_holds_no_secret(
    secret: str, other: Any, ascii_only: bool, depth: int
) -> None:
    assume(len(secret.strip()) >= SHORTEST)
    told: Any = f"before {secret} after"
    for _ in range(depth):
        told = json.dumps({"told": told}, ensure_ascii=ascii_only)
    line = json.dumps({"told": told, "other": other}, ensure_ascii=ascii_only).encode()
    clean, count = masked(line, spellings(secret))
    assert len(clean) == len(line)
    assert count >= 1
    found = json.loads(clean)
    while isinstance(found, dict):
        inner = found["told"]
        assert secret not in inner
        found = json.loads(inner) if inner[:1] == "{" and "*" in inner and _is_json(inner) else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("short", ["", "abc", "   ", " ab \n"])
def test_what_is_too_short_is_looked_for_nowhere(short: str) -> None:
    assert spellings(short) == []


def test_a_number_that_is_the_secret_becomes_null() -> None:
    clean, count = masked(b'{"pin": 123456, "n": 1234567}', spellings("123456"))
    assert json.loads(clean) == {"pin": None, "n": 1234567}
    assert count == 1


def test_a_line_that_is_no_json_is_masked_wherever_it_stands() -> None:
    clean, count = masked(b'{"torn": "my-secret-1', spellings("my-secret-1"))
    assert (clean, count) == (b'{"torn": "' + b"*" * 11, 1)


def test_a_short_word_stays_in_names_of_members() -> None:
    clean, _ = masked(b'{"name": "name"}', spellings("name"))
    assert clean == b'{"name": "****"}'


@given(JSON)
def test_a_hidden_value_has_its_names_and_none_of_its_words(value: Any) -> None:
    text = json.dumps(value).encode()
    clean = hidden(text)
    assert len(clean) == len(text)
    assert all(set(one) <= {"*"} for one in strings(json.loads(clean)))


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), max_size=6), st.integers(1, 90))
def test_places_are_hidden_in_whatever_order_they_are_named(places: list[tuple[int, int]], cut: int) -> None:
    values = [json.dumps(f"value {number}").encode() for number in range(12)]
    starts = [sum(len(one) + 1 for one in values[:number]) for number in range(len(values))]
    data = b",".join(values)
    wanted = {start % len(values) for start, _ in places}
    cover = Cover()
    for start, _ in places:
        number = start % len(values)
        cover.hide(1000 + starts[number], len(values[number]))
    clean = cover.over(1000, data)
    for number, value in enumerate(values):
        there = clean[starts[number] : starts[number] + len(value)]
        assert (there == value) == (number not in wanted)
    assert len(clean) == len(data)
    assert cover.over(5000 + cut, data) == data


def test_a_cover_without_anything_is_false() -> None:
    assert not Cover()
