"""Which JSON text survives a reader: held against a slow definition that needs no cleverness."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.wire import lossless
from callsheet.wire.lossless import MAX_SAFE, NotJson, decode, fits, number_fits

NUMBERS = [
    "0", "-0", "1", "-1", "007", str(MAX_SAFE), str(-MAX_SAFE), str(MAX_SAFE + 1), str(-MAX_SAFE - 1), "9" * 16,
    "9" * 17, "9" * 400, "0.1", "-0.0", "0.10", "1.0", "1e3", "1E+3", "1e-3", "0.1000000000000000055511151231257827",
    "0.30000000000000004", "1e308", "1e309", "-1e400", "1e-400", "5e-324", "2e-324", "123456789012345678e-5", "1e22",
    "1e23", "9007199254740993.0", "1.7976931348623157e308", "12345678901234567890", "1e0000000000000000001", "0e999",
    "0.0e-999",
]  # fmt: skip


def survives(text: str) -> bool:
    """Whether a JSON number means the same to a reader that knows doubles only (ASR-032)."""
    if re.fullmatch(r"-?\d+", text):
        return abs(int(text)) <= MAX_SAFE
    value = float(text)
    return math.isfinite(value) and Decimal(text) == Decimal(repr(value))


def loses_nothing(text: str) -> bool:
    """The definition: every number survives, no key repeats, no surrogate stands alone."""
    good = True

    def number(digits: str) -> int:
        nonlocal good
        good = good and survives(digits)
        return 0

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal good
        good = good and len(dict(found)) == len(found)
        for key, _ in found:
            good = good and not lone(key)
        return dict(found)

    def lone(string: str) -> bool:
        return any("\ud800" <= char <= "\udfff" for char in string)

    def walk(value: Any) -> None:
        nonlocal good
        if isinstance(value, str):
            good = good and not lone(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(item)

    walk(json.loads(text, parse_int=number, parse_float=number, object_pairs_hook=pairs))
    return good


VALID_NUMBERS = [text for text in NUMBERS if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text)]
STRINGS = st.one_of(
    st.sampled_from(
        [
            '""',
            '"a"',
            '"\\ud83d"',
            '"\\udc4d x"',
            '"\\ud83d\\udc4d"',
            '"\\u0041"',
            '"é"',
            '"9999999999999999999"',
            '"1e999"',
            '"a\\"b"',
            '"\\\\ud83d"',
            '"\\/"',
        ]
    ),
    st.text(max_size=6).map(json.dumps),
)
KEYS = st.sampled_from(['"a"', '"b"', '"\\u0061"', '"é"', '"\\ud800"', '"a\\\\"', '""'])
BLANK = st.sampled_from(["", " ", "\n", "\t "])


@st.composite
def texts(draw: st.DrawFn, deep: int = 0) -> str:
    """JSON texts with blanks, escapes, repeated keys and every kind of number."""
    kind = draw(st.integers(0, 5 if deep < 3 else 3))
    blank = draw(BLANK)
    if kind == 0:
        return draw(st.sampled_from(["null", "true", "false"])) + blank
    if kind in (1, 2):
        return draw(st.one_of(st.sampled_from(VALID_NUMBERS), st.integers(-(2**60), 2**60).map(str))) + blank
    if kind == 3:
        return draw(STRINGS)
    items = [draw(texts(deep=deep + 1)) for _ in range(draw(st.integers(0, 4)))]
    if kind == 4:
        return "[" + blank + ",".join(items) + "]"
    pairs = [f"{draw(KEYS)}{blank}:{draw(BLANK)}{item}" for item in items]
    return "{" + blank + ",".join(pairs) + "}" + blank


@settings(max_examples=200, deadline=None)
@given(texts())
def test_lossless_is_the_definition(text: str) -> None:
    assert lossless.lossless(text.encode()) is loses_nothing(text)


@settings(max_examples=250, deadline=None)
@given(texts())
def test_fits_says_the_same_of_what_the_fast_lane_reads(text: str) -> None:
    if lossless.readable(text.encode()):
        assert fits(text.encode()) is lossless.lossless(text.encode())


@pytest.mark.parametrize("blank", ["", " ", "\n  "])
@pytest.mark.parametrize(
    "text",
    [
        '{{"a":{0}1,{0}"a":1}}',
        '{{"a":[[{{"b":"x",{0}"b":"x"}}]]}}',
        '[{0}{{"a":1,"\\u0061":2}}]',
        '{{"long":"' + "x" * 300 + '",{0}"c":{{"a":null,"b":2,"a":null}}}}',
    ],
)
def test_a_member_twice_fits_no_reader(text: str, blank: str) -> None:
    assert not fits(text.format(blank).encode())


@settings(max_examples=200, deadline=None)
@given(texts())
def test_what_is_lossless_comes_back(text: str) -> None:
    if lossless.lossless(text.encode()):
        again = lossless.encode_clean(decode(text.encode()))
        assert json.loads(again) == json.loads(text)


def as_doubles(value: Any) -> Any:
    """The value with every fraction as the double that the fast lane makes of it."""
    if isinstance(value, dict):
        return {key: as_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_doubles(item) for item in value]
    return float(value) if isinstance(value, Decimal) and abs(value) < 1 else value


@settings(max_examples=200, deadline=None)
@given(texts())
def test_the_exact_text_says_the_same(text: str) -> None:
    value = decode(text.encode())
    # A fraction too small for a double stays what it is in the slow lane, and in the text; the fast lane reads 0.
    assert as_doubles(decode(lossless.exact_text(value).encode())) == as_doubles(value)
    clean = lossless.encode_clean(value)
    clean.decode("utf-8")
    # A number beyond every double stays what it is; the fast lane refuses that one.
    assert lossless.readable(clean) or re.search(rb"E\+[0-9]{3}|[0-9]{300}", clean)


@pytest.mark.parametrize("text", VALID_NUMBERS)
def test_numbers(text: str) -> None:
    assert number_fits(text) is survives(text)
    for form in (text, f"[{text}]", f'{{"a":{text}}}', f'{{"a":[0,{text}],"b":"x"}}', " " * 300 + text):
        assert lossless.lossless(form.encode()) is survives(text), form
        assert fits(form.encode()) is survives(text), form


def test_digits_inside_strings_are_no_numbers() -> None:
    text = json.dumps(
        {"sha": "0e999" + "1" * 70, "n": 1, "id": "9" * 40, "long": "x" * 500 + "9" * 30}
    ).encode()
    assert lossless.lossless(text)
    assert fits(text)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "bad_json"),
        (b"{", "bad_json"),
        (b"NaN", "bad_json"),
        (b"[Infinity]", "bad_json"),
        (b"{'a':1}", "bad_json"),
        (b'"\xff"', "bad_utf8"),
        (b'{"a":1}\0\0', "nul"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "too_deep"),
    ],
)
def test_what_is_no_json_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(NotJson) as caught:
        decode(data)
    assert caught.value.reason == reason


def test_decoding_keeps_integers_of_any_size() -> None:
    assert decode(b"12345678901234567890123") == 12345678901234567890123
    huge = b"9" * 5000
    assert str(decode(huge)) == huge.decode()
    assert decode(b'"\\ud83d"') == "\ud83d"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_not_json(data: bytes) -> None:
    reason, value = "", None
    try:
        value = decode(data)
    except NotJson as error:
        reason = error.reason
    assert reason in ("bad_json", "bad_utf8", "too_deep", "nul") if reason else value == json.loads(data)
