"""Text that cannot do anything: what an agent wrote, made harmless and visible.

Owns the one gate between agent text and a terminal. Control characters (C0, C1, DEL), unpaired surrogates,
direction marks, and everything that a terminal draws as nothing are replaced by something that can be seen;
a joiner or variation selector stays where writing needs it. Colours of captured output are dropped here
(``tints`` keeps of them what cannot hide anything), a progress line is reduced to its last state, tabs become
blanks. No markup is read: brackets, backticks and tags are text like any other.

Must never know: widths, rows, colours of ours.
"""

from __future__ import annotations

import re
import unicodedata

_SUSPECT = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)
DROPPED = re.compile("\x1b\\[[0-9;:]*[mK]|\x1b\\[\\?[0-9;]*[hl]")
"""Sequences that a program writes for looks alone: colours, clearing to the end of a line, the cursor's
visibility."""

ZWNJ, ZWJ, TEXT_STYLE, EMOJI_STYLE = "\u200c", "\u200d", "\ufe0e", "\ufe0f"
_JOINING = (
    (0x0600, 0x0DFF),
    (0x0F00, 0x109F),
    (0x1780, 0x18AF),
    (0xA840, 0xA87F),
    (0xFB50, 0xFDCF),
    (0xFE70, 0xFEFC),
)
"""Blocks of scripts that are written with joiners: Arabic and its kin, Indic, Tibetan, Burmese, Khmer,
Mongolian."""


def visible(text: str) -> str:
    """The text on one line, with a visible mark for every character that is none.

    Args:
        text: Anything.

    Returns:
        Text without control, direction and invisible characters; a line break is such a character too.
    """
    return text if text.isascii() and text.isprintable() else _SUSPECT.sub(_mark, text)


def _mark(found: re.Match[str]) -> str:
    char = found.group()
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if char in (ZWNJ, ZWJ, TEXT_STYLE, EMOJI_STYLE) and _belongs(char, found.string, found.start()):
        return char
    return f"<U+{code:04X}>"


def _belongs(char: str, text: str, at: int) -> bool:
    before = text[at - 1] if at else ""
    after = text[at + 1] if at + 1 < len(text) else ""
    if char in (TEXT_STYLE, EMOJI_STYLE):
        return bool(before) and (_is_pictographic(before) or before in "#*0123456789")
    if not before or not after:
        return False
    if char == ZWJ and _is_pictographic(after):
        return _is_pictographic(before) or (
            before == EMOJI_STYLE and at > 1 and _is_pictographic(text[at - 2])
        )
    return _is_joining(before) and _is_joining(after)


def _is_pictographic(char: str) -> bool:
    code = ord(char)
    return 0x1F000 <= code <= 0x1FAFF or (
        0x203C <= code <= 0x3299 and unicodedata.category(char) in ("So", "Sm", "Po", "Cn")
    )


def _is_joining(char: str) -> bool:
    code = ord(char)
    return any(low <= code <= high for low, high in _JOINING) and unicodedata.category(char)[0] in "LM"


def output_line(line: str) -> str:
    """One line of captured output as it would have looked in the end, made harmless.

    A progress bar that overwrote itself is shown in its last state, with the number of states before it.
    """
    if "\x1b" in line:
        line = DROPPED.sub("", line)
    begin, end, suffix = last_state(line)
    line = line[begin:end]
    if "\t" in line:
        line = line.expandtabs(8)
    return visible(line) + suffix


def last_state(line: str) -> tuple[int, int, str]:
    """Where the last state of a line that overwrote itself begins and ends, and words about those before it."""
    if "\r" not in line:
        return 0, len(line), ""
    states = sum(bool(state) for state in line.split("\r"))
    end = len(line.rstrip("\r"))
    begin = line.rfind("\r", 0, end) + 1
    words = f"  ({states - 1:,} earlier state{'s' if states > 2 else ''})" if states > 1 else ""
    return begin, end, words
