"""Colours of captured output: kept where they cannot hide anything, and never part of the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callsheet.paint import coloured, plain
from callsheet.paint.block import Collapse, block
from callsheet.paint.safe import output_line
from callsheet.paint.tints import State, after, pieces, tinted

ALLOWED = re.compile(r"(?:[1-4]|3[1-6]|9[1-6])(?:;(?:[1-4]|3[1-6]|9[1-6]))*\Z")
captured = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "\x1b[31m",
                "\x1b[0m",
                "\x1b[1;4;38;5;196m",
                "\x1b[38;2;255;0;0m",
                "\x1b[K",
                "\x1b[m",
                "\x1b[7;8m",
            ]
        ),
        st.sampled_from(
            ["\r", "\t", "\x1b", "\x1b[", "…", "👩‍👩‍👧", "e\u0301\u0301", "\u202e", "漢字", " ", "word "]
        ),
        st.text(max_size=6),
        st.from_regex(r"\x1b\[[0-9;:]{0,12}m", fullmatch=True),
    ),
    max_size=12,
).map("".join)


@given(captured)
@example("\x1b[31mone\r\x1b[32mtwo\r")
@example("\ta\x1b[1m\tb")
def test_the_text_is_the_same_with_and_without_colours(line: str) -> None:
    found = tinted(line)
    assert found.text == output_line(line)
    assert "".join(text for text, _ in pieces(found.text, found.runs, 0, len(found.text))) == found.text
    for _, tint in found.runs:
        assert not tint or ALLOWED.match(tint)


@given(st.lists(captured, max_size=4).map("\n".join), st.integers(4, 30), st.integers(1, 12))
def test_lines_break_where_they_would_without_colours(text: str, width: int, most: int) -> None:
    text += "x"
    bare = re.sub("\x1b\\[[0-9;:]*m", "", text)
    found = block(text, width, Collapse(most, 1))
    if len(text) == len(bare):
        return
    if all(
        len(line) < width for line in text.split("\n")
    ):  # a long raw line is cut before its colours are read
        assert [plain(line) for line in found] == [
            plain(line) for line in block(bare, width, Collapse(most, 1))
        ]
    for line in found:
        seen = re.sub(r"\x1b\[(?:[0-9]+;?)+m", "", coloured(line))
        assert seen.rstrip(" ") == plain(line)


@pytest.mark.parametrize(
    ("sequence", "tint"),
    [
        ("31", "31"),
        ("1;31", "1;31"),
        ("01;32", "1;32"),
        ("91", "91"),
        ("38;5;196", "31"),
        ("38;5;9", "91"),
        ("38;5;28", "32"),
        ("38;2;255;80;80", "91"),
        ("38:2:0:200:0", "32"),
        ("3;4", "3;4"),
        ("", ""),
        ("0", ""),
        ("999", ""),
        ("31;0", ""),
        ("1;22", ""),
        ("31;39", ""),
        ("48;5;31", ""),
        ("48;2;31;32;33", ""),
        ("58;5;31", ""),
    ],
)
def test_what_is_kept(sequence: str, tint: str) -> None:
    assert after(State(), sequence).tint == tint


@pytest.mark.parametrize(
    "hiding",
    [
        "30",
        "37",
        "90",
        "97",
        "40",
        "41",
        "107",
        "7",
        "8",
        "5",
        "30;40",
        "38;5;0",
        "38;5;15",
        "38;5;232",
        "38;2;0;0;0",
        "38;2;250;250;250",
        "38;2;10;10;30",
    ],
)
def test_no_letters_in_the_colour_of_the_ground(hiding: str) -> None:
    assert after(State(), hiding).tint == ""


def test_a_colour_goes_on_over_lines() -> None:
    lines = block("\x1b[32m+ one\n+ two\x1b[0m\nthree", 40, Collapse(10, 0))
    assert [[(span.text, span.tint) for span in line] for line in lines] == [
        [("+ one", "32")],
        [("+ two", "32")],
        [("three", "")],
    ]


def test_colours_of_a_progress_bar_are_those_of_its_last_state() -> None:
    (line,) = block("\x1b[31m10%\r\x1b[33m50%\r\x1b[32m100%\x1b[0m done\r", 60, Collapse(10, 0))
    assert [(span.text, span.tint) for span in line] == [
        ("100%", "32"),
        (" done", ""),
        ("  (2 earlier states)", ""),
    ]


def test_colours_are_closed_on_every_line() -> None:
    (line,) = block("\x1b[1;31merror", 40, Collapse(10, 0))
    assert coloured(line) == "\x1b[1;31merror\x1b[0m"
    assert plain(line) == "error"
