"""Parts of a JSON text, held against the standard library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.wire.lossless import clean_text, without_lone
from callsheet.wire.spans import Spans

BLANK = st.sampled_from(["", " ", "\n", "\t ", "\r"])
STRING = st.one_of(
    st.text(max_size=5).map(json.dumps),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.lists(
        st.sampled_from(
            [
                "\\ud83d",
                "\\uDE00",
                "\\\\",
                '\\"',
                "u",
                "d83d",
                "{",
                "]",
                ",",
                ":",
                "\\/",
                "\\n",
                "é",
                "\\u0041",
            ]
        ),
        max_size=6,
    ).map(lambda parts: '"' + "".join(parts) + '"'),
)
NUMBER = st.sampled_from(
    ["0", "-1", "1e400", "0.10", "1E+3", "12345678901234567890123", "0.30000000000000000001"]
)
KEY = st.one_of(
    STRING, st.sampled_from(['"a"', '"b"', '"a/b"', '"m~n"', '"\\u0061"', '""', '"0"', '"~1"', '"\\ud800"'])
)


@st.composite
def texts(draw: st.DrawFn, deep: int = 0) -> str:
    """JSON texts with blanks, every escape, halves of characters and members written twice."""
    kind = draw(st.integers(0, 6 if deep < 4 else 2))
    before, after = draw(BLANK), draw(BLANK)
    if kind == 0:
        made = draw(st.sampled_from(["null", "true", "false"]))
    elif kind == 1:
        made = draw(NUMBER)
    elif kind == 2:
        made = draw(STRING)
    else:
        items = [draw(texts(deep=deep + 1)) for _ in range(draw(st.integers(0, 4)))]
        if kind < 5:
            made = "[" + draw(BLANK) + ",".join(items) + "]"
        else:
            made = "{" + draw(BLANK) + ",".join(f"{draw(KEY)}{draw(BLANK)}:{item}" for item in items) + "}"
    return before + made + after


def load(text: bytes | str) -> Any:
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


def every_member(text: bytes) -> Any:
    """The value with each object as a list of its members, those written twice included."""
    return json.loads(
        text, object_pairs_hook=lambda pairs: [[*pair] for pair in pairs], parse_int=str, parse_float=str
    )


def pointers(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every place in a value, with what stands there."""
    yield at, value
    if isinstance(value, dict):
        for name, item in value.items():
            yield from pointers(item, f"{at}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from pointers(item, f"{at}/{number}")


@settings(max_examples=300, deadline=None)
@given(texts())
def test_every_pointer_leads_to_its_text(text: str) -> None:
    data = text.encode()
    spans = Spans(data)
    for pointer, value in pointers(load(text)):
        found = spans.text(pointer)
        assert found is not None, pointer
        assert load(found) == value, pointer
        assert found == found.strip(b" \t\r\n")
        assert found in data


@settings(max_examples=200, deadline=None)
@given(texts(), st.lists(st.sampled_from(["a", "0", "5", "-1", "00", "a~1b", "x", ""]), max_size=4))
def test_a_pointer_to_nothing_gives_nothing(text: str, steps: list[str]) -> None:
    pointer = "".join(f"/{step}" for step in steps)
    known = dict(pointers(load(text)))
    found = Spans(text.encode()).text(pointer)
    assert (found is not None) is (pointer in known)


def test_the_text_is_as_it_was_written() -> None:
    line = b'{"a" : {"n": 1.50, "n" : 2e0 ,"s":"\\ud83d \\u00e9"} , "b":[ {"x":1,"x":2}, "]" ]}'
    spans = Spans(line)
    assert spans.text("/a") == b'{"n": 1.50, "n" : 2e0 ,"s":"\\ud83d \\u00e9"}'
    assert spans.text("/a/n") == b"2e0"
    assert spans.text("/b/0") == b'{"x":1,"x":2}'
    assert spans.text("/b/1") == b'"]"'
    assert spans.text("") == line


@settings(max_examples=300, deadline=None)
@given(texts())
def test_a_text_without_halves_of_characters(text: str) -> None:
    """Only the halves change, nothing moves."""
    data = text.encode()
    clean = clean_text(data)
    assert len(clean) == len(data)
    assert without_lone(every_member(data)) == every_member(clean)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (b'"\\ud83d"', b'"\\ufffd"'),
        (b'"\\ud83d\\ude00"', b'"\\ud83d\\ude00"'),
        (b'"\\ud83d\\ud83d\\uDE00"', b'"\\ufffd\\ud83d\\uDE00"'),
        (b'"\\\\ud83d"', b'"\\\\ud83d"'),
        (b'"\\\\\\ude00x"', b'"\\\\\\ufffdx"'),
        (b'"\\ude00\\ud83d"', b'"\\ufffd\\ufffd"'),
    ],
)
def test_halves_of_characters(text: bytes, clean: bytes) -> None:
    assert clean_text(text) == clean


def test_many_pointers_into_one_text_cost_little() -> None:
    """12,000 blocks: each container is cut once."""
    blocks = b",".join(b'{"type":"text","text":"%d \\ud83d"}' % number for number in range(12_000))
    spans = Spans(b'{"message":{"content":[' + blocks + b"]}}")
    for number in range(12_000):
        assert spans.text(f"/message/content/{number}/text") == b'"%d \\ud83d"' % number
