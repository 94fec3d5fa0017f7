"""How styles of meaning look on a screen: dark, light, and without colour.

Owns the only place where a painted span gets a colour of the terminal program. Without colour, weight and slant alone
carry the meaning; every sign of the sheet differs without them too.

Must never know: rows.
"""

from __future__ import annotations

from functools import cache

from rich.segment import Segment
from rich.style import Style as Look

from callsheet.paint import Line, Style
from callsheet.paint.cells import width as cells_of

_DARK: dict[Style, str] = {
    "": "#d8d8d8",
    "strong": "bold #f2f2f2",
    "quiet": "#949494",
    "hidden": "italic #8a8a8a",
    "label": "#5fafd7",
    "good": "#87c05f",
    "bad": "#ff7a7a",
    "refused": "#d787d7",
    "open": "#e0b050",
    "added": "#87c05f",
    "removed": "#ff8787",
    "place": "#6fa8a8",
}
_LIGHT: dict[Style, str] = {
    "": "#202020",
    "strong": "bold #000000",
    "quiet": "#626262",
    "hidden": "italic #6c6c6c",
    "label": "#005f87",
    "good": "#2f6f00",
    "bad": "#b00000",
    "refused": "#870087",
    "open": "#7a5200",
    "added": "#2f6f00",
    "removed": "#b00000",
    "place": "#005f5f",
}
_PLAIN: dict[Style, str] = {
    "": "none",
    "strong": "bold",
    "quiet": "none",
    "hidden": "italic",
    "label": "none",
    "good": "none",
    "bad": "bold",
    "refused": "bold",
    "open": "none",
    "added": "none",
    "removed": "none",
    "place": "none",
}
GROUNDS = {"dark": "#161719", "light": "#fbfaf7"}
"""What lies under everything; without colours, the terminal's own."""
_SELECTED = {"dark": "#2c3845", "light": "#d9e5f1"}

Looks = dict[Style, Look]


@cache
def looks_of(name: str) -> Looks:
    """The looks of a screen: ``dark``, ``light`` or ``plain``."""
    table = {"dark": _DARK, "light": _LIGHT}.get(name, _PLAIN)
    ground = Look(bgcolor=GROUNDS[name]) if name in GROUNDS else Look()
    return {style: ground + Look.parse(words) for style, words in table.items()}


def selected_look(name: str) -> Look:
    """What lies under the lines of the selected row."""
    ground = _SELECTED.get(name)
    return Look(bgcolor=ground) if ground else Look()


def tint_look(tint: str, looks: Looks) -> Look:
    """How a tint of captured output looks: its hue by the styles of meaning, which can be read on every ground."""
    look = Look()
    for code in tint.split(";"):
        if code in _MARKS:
            look += _MARKS[code]
        elif len(code) == 2 and code[1] in _HUES:
            colour = looks[_HUES[code[1]]].color
            look += Look(color=colour)
    return look


_MARKS = {"1": Look(bold=True), "3": Look(italic=True), "4": Look(underline=True)}
_HUES: dict[str, Style] = {"1": "bad", "2": "good", "3": "open", "4": "label", "5": "refused", "6": "place"}


def segments(line: Line, looks: Looks, width: int) -> list[Segment]:
    """A painted line as segments that fill a width; what does not fit was cut by the painter."""
    found = [
        Segment(
            span.text, looks[span.style] + tint_look(span.tint, looks) if span.tint else looks[span.style]
        )
        for span in line
        if span.text
    ]
    room = width - sum(cells_of(span.text) for span in line)
    if room > 0:
        found.append(Segment(" " * room, looks[""]))
    return found
