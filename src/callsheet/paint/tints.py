"""Colours of captured output, kept as far as they cannot hide anything.

A program colours its output with SGR sequences. What they say about the colour of letters, weight, slant and
underlining is kept as a tint beside the text; the text is the same with and without it. Backgrounds, reversed, hidden
and blinking text are dropped, and greys with them: no letters may end up in the colour of the ground. All colours
become one of six hues, plain or bright, which every screen draws so that they can be read.

Must never know: layout, rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from callsheet.paint.safe import DROPPED, last_state, visible

Tint = str
"""SGR parameters out of ``1``, ``2``, ``3``, ``4``, ``31``-``36`` and ``91``-``96``; empty for none."""

MOST_RUNS = 200
"""Changes of colour in one line that are kept."""
_SGR = re.compile("\x1b\\[([0-9;:]*)m")
_HUES = {(1, 0, 0): 1, (0, 1, 0): 2, (1, 1, 0): 3, (0, 0, 1): 4, (1, 0, 1): 5, (0, 1, 1): 6}
_STEPS = (0, 95, 135, 175, 215, 255)
_ON = {1: "1", 2: "2", 3: "3", 4: "4"}
_OFF = {22: ("1", "2"), 23: ("3",), 24: ("4",)}


class State(NamedTuple):
    """What the sequences so far amount to.

    Attributes:
        hue: A parameter of ``31``-``36`` or ``91``-``96``; empty for the screen's own colour.
        marks: Weight, slant and underlining.
    """

    hue: str = ""
    marks: frozenset[str] = frozenset()

    @property
    def tint(self) -> Tint:
        """As parameters."""
        return ";".join([*sorted(self.marks), *([self.hue] if self.hue else [])])


def _hue(red: int, green: int, blue: int) -> str:
    """The hue of a colour; none for greys, and for what is nearly black or white."""
    most, least = max(red, green, blue), min(red, green, blue)
    if most - least < 40:
        return ""
    middle = (most + least) / 2
    number = _HUES.get((int(red > middle), int(green > middle), int(blue > middle)), 0)
    return f"{9 if least >= 80 else 3}{number}" if number else ""


def _of_palette(number: int) -> str:
    if number < 8:
        return f"3{number}" if 1 <= number <= 6 else ""
    if number < 16:
        return f"9{number - 8}" if 9 <= number <= 14 else ""
    if number < 232:
        number -= 16
        return _hue(_STEPS[number // 36], _STEPS[number // 6 % 6], _STEPS[number % 6])
    return ""


def after(state: State, parameters: str) -> State:
    """The state after a sequence with these parameters."""
    numbers = [
        int(one) if one.isdigit() and len(one) < 4 else -1 for one in re.split("[;:]", parameters or "0")
    ]
    hue, marks = state.hue, set(state.marks)
    at = 0
    while at < len(numbers):
        number = numbers[at]
        at += 1
        if number == 0 or numbers == [-1]:
            hue, marks = "", set()
        elif number in _ON:
            marks.add(_ON[number])
        elif number in _OFF:
            marks.difference_update(_OFF[number])
        elif 30 <= number <= 37 or 90 <= number <= 97:
            hue = str(number) if 1 <= number % 10 <= 6 else ""
        elif number == 39:
            hue = ""
        elif number in (38, 48, 58):
            kind = numbers[at] if at < len(numbers) else -1
            rest = numbers[at + 1 : at + (2 if kind == 5 else 4)]
            at += 2 if kind == 5 else 4
            if number == 38 and kind == 5 and len(rest) == 1 and 0 <= rest[0] < 256:
                hue = _of_palette(rest[0])
            elif number == 38 and kind == 2 and len(rest) == 3 and all(0 <= one < 256 for one in rest):
                hue = _hue(*rest)
    return State(hue, frozenset(marks))


class Tinted(NamedTuple):
    """A line of output with its tints.

    Attributes:
        text: Exactly what ``safe.output_line`` makes of the line.
        runs: Where a tint begins in the text, ascending.
        state: For the next line.
    """

    text: str
    runs: list[tuple[int, Tint]]
    state: State


def tinted(line: str, state: State = State()) -> Tinted:  # noqa: B008 (a tuple)
    """A line of captured output as it would have looked in the end, made harmless, with its tints.

    Args:
        line: The line, as captured.
        state: What the lines before it left on.
    """
    kept: list[str] = []
    marks: list[tuple[int, Tint]] = [(0, state.tint)]
    length = end = 0
    for found in _SGR.finditer(line):
        piece = DROPPED.sub("", line[end : found.start()])
        kept.append(piece)
        length += len(piece)
        end = found.end()
        state = after(state, found[1])
        if len(marks) < MOST_RUNS:
            marks.append((length, state.tint))
    kept.append(DROPPED.sub("", line[end:]))
    whole = "".join(kept)
    begin, stop, suffix = last_state(whole)
    seen = whole[begin:stop]
    runs: list[tuple[int, Tint]] = []
    for at, tint in marks:
        if at < stop:
            place = len(_seen(whole[begin:at])) if at > begin else 0
            while runs and runs[-1][0] >= place:
                runs.pop()
            if not runs or runs[-1][1] != tint:
                runs.append((place, tint))
    text = _seen(seen)
    if suffix:
        runs.append((len(text), ""))
    return Tinted(text + suffix, runs, state)


def _seen(text: str) -> str:
    return visible(text.expandtabs(8) if "\t" in text else text)


def pieces(text: str, runs: list[tuple[int, Tint]], begin: int, end: int) -> Iterator[tuple[str, Tint]]:
    """The part of a text from ``begin`` to ``end``, in pieces of one tint."""
    for number, (at, tint) in enumerate(runs):
        stop = runs[number + 1][0] if number + 1 < len(runs) else len(text)
        piece = text[max(at, begin) : min(stop, end)]
        if piece and max(at, begin) < min(stop, end):
            yield piece, tint
