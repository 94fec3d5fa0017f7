"""Safe text, widths, blocks and patches."""

from __future__ import annotations

import unicodedata

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from callsheet.paint import Line, Span, coloured, line_width, plain, visible
from callsheet.paint.block import WHOLE, Collapse, block
from callsheet.paint.cells import clusters, cut, settled, width, wrap
from callsheet.paint.diff import changed_lines, patch_lines
from callsheet.paint.safe import output_line
from callsheet.paint.span import packed
from callsheet.records import Patch

# Format characters that are drawn as something: signs that enclose the digits after them.
DRAWN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
NASTY = "\x00\x07\x08\x1b\x7f\x85\x9b\r\n\t\u200b\u202e\u2066\u2069\ufeff\ud83d\udc00\u0301\ufe0f\u200d漢👩[]"
HOSTILE = st.text(st.characters() | st.sampled_from(NASTY))


def is_harmless(text: str) -> bool:
    """Whether no character of a text can do anything but be drawn."""
    return not any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
        or (unicodedata.category(char) == "Cf" and ord(char) not in DRAWN and char not in "\u200c\u200d")
        for char in text
    )


def texts(lines: list[Line]) -> list[str]:
    return [plain(line) for line in lines]


def test_every_character_alone_is_harmless_and_seen() -> None:
    wrong = [
        code for code in range(0x110000) if not is_harmless(visible(chr(code))) or not visible(chr(code))
    ]
    assert wrong == []
    for invisible in (0x200C, 0x200D, 0xFE0F, 0x034F, 0x115F, 0x3164, 0xE0041, 0xE0100, 0xFFFE, 0x180E):
        assert visible(chr(invisible)) == f"<U+{invisible:04X}>"


@given(HOSTILE)
def test_no_text_stays_harmful(text: str) -> None:
    assert is_harmless(visible(text))
    assert is_harmless(output_line(text.replace("\n", "")))
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\nb", "a␊b"),
        ("\x1b]0;owned\x07", "␛]0;owned␇"),
        ("\x9b31m", "<U+009B>31m"),
        ("\x7f", "␡"),
        ("x\u202etxt.exe", "x<U+202E>txt.exe"),
        ("pay\u200bpal", "pay<U+200B>pal"),
        ("pay\u200dpal", "pay<U+200D>pal"),
        ("cut \ud83d end", "cut <U+D83D> end"),
        ("a\ufe0f", "a<U+FE0F>"),
        (FAMILY, FAMILY),
        ("❤\ufe0f 1\ufe0f\u20e3", "❤\ufe0f 1\ufe0f\u20e3"),
        ("\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f3f3\ufe0f\u200d\U0001f308"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("क्\u200dष", "क्\u200dष"),
        ("[bold]x[/bold] [/] `a` <b>", "[bold]x[/bold] [/] `a` <b>"),
        ("漢字 é 한", "漢字 é 한"),
    ],
)
def test_visible(text: str, seen: str) -> None:
    assert visible(text) == seen


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[?25l\x1b[2Kx", "x"),
        ("\x1b[2Aup", "␛[2Aup"),
        ("10%\r50%\r100%", "100%  (2 earlier states)"),
        ("10%\r100%\r", "100%  (1 earlier state)"),
        ("windows\r", "windows"),
        ("a\tb", "a       b"),
        ("a\bb", "a␈b"),
    ],
)
def test_output_lines(line: str, seen: str) -> None:
    assert output_line(line) == seen


@pytest.mark.parametrize(
    ("text", "cells"),
    [("abc", 3), ("漢字", 4), ("e\u0301", 1), (FAMILY, 2), ("🇫🇷", 2), ("", 0), ("한", 2), ("\u0301", 1)],
)
def test_width(text: str, cells: int) -> None:
    assert width(text) == cells


def test_piles_of_marks_are_cut() -> None:
    assert len(settled("e" + "\u0301" * 500)) <= 8


MARKED = st.text(
    st.sampled_from("0 漢ka<>\u25cc\u1087\u1038\u102b\u0903\u09be\u0d3e\u0301\u1161\u200d👩"), max_size=12
)


@given(HOSTILE | MARKED | st.text(st.characters(min_codepoint=0x1000, max_codepoint=0x11FF)))
@example("0\u1087")
@example("\u1161\u1087")
def test_settled_text_stays_as_wide_as_it_is(text: str) -> None:
    seen = settled(visible(text))
    assert width(seen) == width(visible(text)) == sum(cells for _, cells in clusters(seen))
    assert settled(seen) == seen


@given(HOSTILE | MARKED, st.integers(1, 30))
@example("0\u1087", 1)
@example("0\u1087", 2)
def test_cut_and_wrap_keep_within_the_cells(text: str, most: int) -> None:
    seen = visible(text)
    assert width(cut(seen, most)) <= most
    if width(seen) <= most:
        assert cut(seen, most) == settled(seen)
    widest = max((size for _, size in clusters(seen)), default=1)
    for line in wrap(seen, most):
        assert width(line) <= max(most, widest)


@given(st.text("ab 漢é", max_size=60), st.integers(2, 20))
def test_wrapping_loses_only_blanks(text: str, most: int) -> None:
    lines = wrap(text, most)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(st.text("ab ", max_size=60), st.integers(2, 20))
def test_ascii_wraps_as_anything_else_does(text: str, most: int) -> None:
    wide = wrap(text.replace("a", "é"), most)
    assert wrap(text, most) == [line.replace("é", "a") for line in wide]


def test_wrap_breaks_at_blanks() -> None:
    assert wrap("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert cut("漢字漢字", 5) == "漢字…"


def test_a_short_block_is_shown_whole() -> None:
    assert texts(block("a\nb\n", 20, Collapse(5, 5))) == ["a", "b"]
    assert block("", 20, Collapse(5, 5)) == []
    assert texts(block("\n\n", 20, Collapse(5, 5))) == ["", ""]


def test_ten_lines_are_shown_and_the_rest_is_counted() -> None:
    def lines(count: int) -> str:
        return "\n".join(str(number) for number in range(count))

    assert len(block(lines(11), 20, Collapse(5, 5))) == 11
    assert texts(block(lines(1234), 20, Collapse(5, 5))) == [
        *"01234",
        "… 1,224 more lines",
        *("1229", "1230", "1231", "1232", "1233"),
    ]
    assert texts(block(lines(12), 20, Collapse(3, 0))) == ["0", "1", "2", "… 9 more lines"]
    assert len(block(lines(1234), 20, WHOLE)) == 1234


def test_the_words_about_hidden_lines_are_told_apart_from_the_same_words_of_an_agent() -> None:
    lines = block("… 7 more lines\n" + "x\n" * 20, 40, Collapse(5, 5))
    assert [line[0].style for line in lines if line[0].text.startswith("…")] == ["", "hidden"]


def test_a_text_whose_middle_is_gone_counts_its_lines() -> None:
    lines = texts(block("a\nb", 30, Collapse(1, 1), tail="c\nd", omitted=500, omitted_lines=41))
    assert lines == ["a", "… 42 more lines", "d"]
    assert texts(block("aa", 30, Collapse(5, 5), tail="bb", omitted=5, omitted_lines=0)) == [
        "aa",
        "… 5 more characters",
        "bb",
    ]


def test_long_lines_wrap_while_there_is_room_and_are_cut_then() -> None:
    assert texts(block("x" * 45, 20, Collapse(5, 5))) == ["x" * 20, "x" * 20, "x" * 5]
    cut_short = texts(block("x" * 100_000, 20, Collapse(5, 5)))
    assert len(cut_short) == 10
    assert cut_short[-1].endswith("…")
    many = texts(block(("y" * 50 + "\n") * 30, 20, Collapse(5, 5)))
    assert many[0] == "y" * 19 + "…"


HUNKS = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" a", "-b", "+c\x1b[31m"]}]


def patch(value: object, form: str = "hunks") -> Patch:
    return Patch(format=form, value=Raw(msgspec.json.encode(value)))


def test_hunks_are_drawn_with_signs() -> None:
    lines = patch_lines(patch(HUNKS), 40, Collapse(16, 0))
    assert [(line[0].text, line[0].style) for line in lines] == [
        ("@@ -1,2 +1,2 @@", "place"),
        (" a", ""),
        ("-b", "removed"),
        ("+c", "added"),
    ]
    assert changed_lines(patch(HUNKS)) == (1, 1)


UNIFIED = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ def f():\n same\n--- old\n+++ new\n"


def test_a_unified_patch_is_coloured_by_its_hunks() -> None:
    lines = patch_lines(patch(UNIFIED, "unified"), 40, WHOLE)
    assert [line[0].style for line in lines] == ["quiet", "quiet", "place", "", "removed", "added"]
    assert changed_lines(patch(UNIFIED, "unified")) == (1, 1)
    renamed = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"
    assert {line[0].style for line in patch_lines(patch(renamed, "git"), 40, WHOLE)} == {"quiet"}


@pytest.mark.parametrize(
    "text",
    [
        "+ a list\n- of things\n",
        "@@ -1,2 +1,1 @@\n-a\nb\n",
        "@@ -1 +1 @@\n-a\n-b\n+c\n",
        "*** Begin Patch\n*** Update File: x\n-a\n+b\n*** End Patch",
        "@@ -1,99999999999999 +1 @@\n",
    ],
)
def test_what_parses_as_no_patch_is_shown_as_text(text: str) -> None:
    lines = patch_lines(patch(text, "unified"), 60, WHOLE)
    assert texts(lines) == text.rstrip("\n").split("\n")
    assert {span.style for line in lines for span in line} == {""}
    assert changed_lines(patch(text, "unified")) is None


def test_a_patch_of_another_shape_is_text() -> None:
    odd: list[object] = [{"lines": 5}, [{"lines": [5]}], "text", 7, None, [1]]
    for value in odd:
        assert is_harmless("".join(texts(patch_lines(patch(value), 40, WHOLE))))
        assert changed_lines(patch(value)) is None
    assert texts(patch_lines(patch("one\ntwo"), 40, WHOLE)) == ["one", "two"]
    assert patch_lines(Patch(format="hunks"), 40, WHOLE) == []
    assert patch_lines(Patch(format="hunks", value=Raw(b"{broken")), 40, WHOLE) != []


def test_other_formats() -> None:
    unified = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"
    assert texts(patch_lines(patch(unified, "unified"), 40, WHOLE)) == unified.strip().split("\n")
    assert changed_lines(patch(unified, "git")) == (1, 1)
    replace = patch({"oldText": "a\nb", "newText": "c"}, "replace")
    assert texts(patch_lines(replace, 40, WHOLE)) == ["-a", "-b", "+c"]
    for old, new, lines in (
        (None, "a\nb\n", ["+a", "+b"]),
        ("a\n", "b\n", ["-a", "+b"]),
        ("a\n", "a", ["-a", "-", "+a"]),
        ("", "b", ["-", "+b"]),
    ):
        both = patch({"oldText": old, "newText": new}, "replace")
        assert texts(patch_lines(both, 40, WHOLE)) == lines
    assert changed_lines(replace) is None
    assert texts(patch_lines(patch("whole\nfile", "full_text"), 40, WHOLE)) == ["whole", "file"]


def test_a_long_patch_is_collapsed_with_its_number() -> None:
    long = [{"lines": ["+x"] * 50}]
    assert texts(patch_lines(patch(long), 40, Collapse(16, 0)))[-1] == "… 34 more lines"


def test_spans_pack_and_colours_close() -> None:
    lines = packed([Span("one"), Span("two"), Span("x" * 25)], 12)
    assert texts(lines) == ["one · two", "x" * 12, "x" * 12, "x"]
    assert all(line_width(line) <= 12 for line in lines)
    assert coloured([Span("a", "bad"), Span("b")]) == "\x1b[31ma\x1b[0mb"
    assert plain([Span("a", "bad"), Span("  ")]) == "a"
