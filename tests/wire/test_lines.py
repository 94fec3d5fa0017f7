"""Lines and what can be had from damaged ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.wire import damage
from callsheet.wire.damage import BOM, salvage
from callsheet.wire.lines import Line, split_lines

BYTES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\n\n", b"\r\n", b"\0", b"\xff", "\u2028".encode(), b"\x85", b"\x0b\x0c"]),
        st.binary(max_size=5),
    ),
    max_size=12,
).map(b"".join)


@settings(max_examples=200)
@given(BYTES, st.lists(st.integers(0, 60), max_size=8))
def test_any_split_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(data), *(cut for cut in cuts if cut <= len(data))})
    chunks = [data[start:end] for start, end in zip(places, [*places[1:], None], strict=True)]
    lines = list(split_lines(chunks))
    assert lines == list(split_lines([data]))
    assert b"".join(line.data + b"\n" * line.ended for line in lines) == data
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    for line in lines:
        assert data[line.offset : line.offset + len(line.data)] == line.data
        assert b"\n" not in line.data
    assert all(line.ended for line in lines[:-1])


def test_only_lf_ends_a_line() -> None:
    text = "a\rb\u2028c\u2029d\u0085e\x0bf\x0cg\x1ch".encode()
    assert list(split_lines([text])) == [Line(1, 0, text, False)]


def test_no_bytes_are_no_lines() -> None:
    assert list(split_lines([])) == []
    assert list(split_lines([b"", b""])) == []
    assert [line.data for line in split_lines([b"\n"])] == [b""]


# -- damaged lines -------------------------------------------------------------------------------------------------


def is_record(value: dict[str, Any]) -> bool:
    return "id" in value


ONE, TWO = b'{"id":1,"a":{"b":"}{"}}', b'{"id":2}'


def found(line: bytes, ended: bool = True) -> list[tuple[bytes, str]]:
    pieces = list(salvage(line, ended=ended, unit=is_record))
    for piece in pieces:
        assert line[piece.start : piece.start + len(piece.data)] == piece.data
    return [(piece.data, piece.reason) for piece in pieces]


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        (ONE + TWO, [(ONE, ""), (TWO, "")]),
        (b" " + ONE + b" \t" + TWO + b"\r", [(ONE, ""), (TWO, "")]),
        (BOM + ONE, [(ONE, "")]),
        (ONE + b"\0\0\0", [(ONE, ""), (b"\0\0\0", "nul")]),
        (b"\0\0" + ONE, [(b"\0\0", "nul"), (ONE, "")]),
        (ONE[:9] + TWO, [(ONE[:9], "bad_json"), (TWO, "")]),
        (ONE + b"trailing", [(ONE, ""), (b"trailing", "bad_json")]),
        (b'{"x":[{"y":1},{"z":2}' + TWO, [(b'{"x":[{"y":1},{"z":2}', "bad_json"), (TWO, "")]),
        (b"words", [(b"words", "bad_json")]),
        (b'{"a":NaN}', [(b'{"a":NaN}', "bad_json")]),
        ('{"é":"\u2028'.encode() + TWO, [('{"é":"\u2028'.encode(), "bad_json"), (TWO, "")]),
        (b'{"n":' + b"9" * 6000 + b"}" + TWO, [(b'{"n":' + b"9" * 6000 + b"}", ""), (TWO, "")]),
        (b"   ", []),
    ],
)
def test_whole_objects_are_had_from_damaged_lines(line: bytes, pieces: list[tuple[bytes, str]]) -> None:
    assert found(line) == pieces


def test_an_unfinished_end_is_a_torn_tail_only_without_lf() -> None:
    torn = ONE[:-1]
    assert found(TWO + torn, ended=False) == [(TWO, ""), (torn, "torn_tail")]
    assert found(TWO + torn, ended=True) == [(TWO, ""), (torn, "bad_json")]


SCRAPS = [
    b"{",
    b"}",
    b'"',
    b"[",
    b",",
    b"\0",
    b"\0\0",
    b" ",
    b"\\",
    b'{"',
    "é".encode(),
    "\u2028".encode(),
    b"{}",
]
PIECES = st.sampled_from([ONE, TWO, BOM, *SCRAPS, b'{"id":3', b"\r", b"1e999", b"9" * 5000, b"[" * 2000])


@settings(max_examples=250, deadline=None)
@given(st.lists(PIECES, max_size=8).map(b"".join), st.booleans())
def test_pieces_cover_every_byte_and_objects_are_json(line: bytes, ended: bool) -> None:
    pieces = list(salvage(line, ended=ended, unit=is_record))
    at = 0
    for piece in pieces:
        assert not line[at : piece.start].strip(b" \t\r\n" + BOM), "bytes between pieces"
        assert line[piece.start : piece.start + len(piece.data)] == piece.data
        if not piece.reason:
            assert isinstance(json.loads(piece.data, parse_int=str), dict)
        at = piece.start + len(piece.data)
    assert not line[at:].strip(b" \t\r\n" + BOM)
    assert all(piece.reason != "torn_tail" for piece in pieces[:-1])
    assert not ended or all(piece.reason != "torn_tail" for piece in pieces)


def test_very_many_objects_on_one_line_are_all_had() -> None:
    assert found(TWO * 50_000) == [(TWO, "")] * 50_000


@pytest.mark.parametrize("size", [900, 1023, 1024, 1025, 4096, 5000, 100_000])
@pytest.mark.parametrize("torn", [b'{"torn":["', b'{"x":tru', b""])
def test_objects_of_any_length_are_whole(size: int, torn: bytes) -> None:
    """An object that ends behind what is looked at first is had as well, with a number or an escape at the edge."""
    for filler in (
        b"y" * size,
        b"\\u00e9" * (size // 6),
        b"\\\\" * (size // 2),
        "é😀".encode() * (size // 2),
    ):
        one = b'{"id":"' + filler + b'","n":[1.5e10,-' + b"9" * (size // 3) + b",true,null]}"
        assert found(torn + one + TWO) == [(torn, "bad_json")] * bool(torn) + [(one, ""), (TWO, "")]


def test_a_torn_line_of_many_inner_objects_costs_little() -> None:
    line = b'{"x":[' + b'{"y":1},' * 300_000
    assert found(line) == [(line, "bad_json")]


MANY = 4000
COSTLY = [
    b'{"k":[{"type":"a","id":"b"},' * 400 + b"1," * 100_000,
    b'{"k":[' * MANY + b"1," * 100_000,
    b'{"k":[' * MANY + b"1," * 100_000 + b"NaN",
    b'{"k":"' * MANY + b"x" * 200_000,
    b'{"k' * MANY + b"x" * 200_000,
    b'{"' * 100_000,
    b'{"id":1},' * 20_000,
    b'{"id":1},{"y":' * 10_000,
    b'{"id":1}x\0' * 10_000 + b"x" * 200_000,
    b'{"a":{"id":' * MANY + b"1" + b"}" * MANY,
    b"[" * 200_000 + b'{"' * MANY,
]


@pytest.mark.parametrize("line", COSTLY)
def test_looking_for_objects_costs_a_bounded_multiple(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    scan = damage._scan.raw_decode

    def counting(text: str) -> Any:
        nonlocal looked
        try:
            value, end = scan(text)
        except (ValueError, RecursionError):
            looked += len(text)
            raise
        looked += end
        return value, end

    monkeypatch.setattr(damage._scan, "raw_decode", counting)
    pieces = list(salvage(line, unit=is_record))
    assert looked < (8 * damage.TRIED + 16) * len(line) + (8 << 20)
    assert sum(len(piece.data) for piece in pieces) == len(line)


def test_records_behind_torn_ones_are_had() -> None:
    torn = b'{"id":3,"message":{"content":[{"type":"text","text":"never to e'
    assert found((torn + TWO) * 300) == [(torn, "bad_json"), (TWO, "")] * 300
