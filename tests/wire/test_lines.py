"""Lines and what can be had from damaged ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.wire.damage import BOM, Piece, salvage
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
    pieces = salvage(line, ended=ended, unit=is_record)
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
    pieces = salvage(line, ended=ended, unit=is_record)
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


def test_very_many_objects_on_one_line_end_in_one_hole() -> None:
    pieces = salvage(TWO * 1500, unit=is_record, most=1000)
    assert len(pieces) == 1001
    assert pieces[-1] == Piece(len(TWO) * 1000, TWO * 500, "bad_json")


def test_a_torn_line_of_many_inner_objects_costs_little() -> None:
    line = b'{"x":[' + b'{"y":1},' * 300_000
    assert found(line) == [(line, "bad_json")]
