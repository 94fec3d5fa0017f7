"""The line that asks what to search for, and the search that goes through the rows while keys work.

Must never know: keys, what is searched of a row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual import work
from textual.widgets import Input

from callsheet.faces.tui.canvas import SheetView
from callsheet.faces.tui.search import Wanted, wanted

SLICE = 0.008
"""Seconds of searching between two looks at the keyboard."""


class SearchLine(Input):
    """The line, which is there while something is typed into it.

    Args:
        sheet: The rows.
        say: Takes what is to be told; nothing takes back what was.
    """

    DEFAULT_CSS = """
    SearchLine, SearchLine:focus { display: none; height: 1; border: none; padding: 0; }
    SearchLine.-open { display: block; }
    """

    def __init__(self, sheet: SheetView, say: Callable[[str], None], id: str | None = None) -> None:  # noqa: A002
        super().__init__(placeholder="search", id=id, select_on_focus=True)
        self._sheet = sheet
        self._say = say
        self._wanted: Wanted | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is there."""
        return self.has_class("-open")

    def open(self) -> None:
        """Asks what to search for."""
        self.add_class("-open")
        self.focus()

    def close(self) -> None:
        """Back to the rows."""
        self.remove_class("-open")
        self._sheet.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Searches from the selected row on."""
        event.stop()
        self.close()
        if event.value:
            self._wanted = wanted(event.value)
            self._search(1, True)

    def again(self, by: int) -> None:
        """Goes to the next or previous place that was searched for."""
        if self._wanted is None:
            self._say("nothing was searched for yet ( / )")
        else:
            self._search(by, False)

    @work(exclusive=True, group="search")
    async def _search(self, by: int, here: bool) -> None:
        wants, sheet, rows = self._wanted, self._sheet, self._sheet.rows
        if wants is None or not len(sheet):
            return
        clock = asyncio.get_running_loop().time
        total = len(sheet)
        start = sheet.cursor
        hits: list[int] = []
        until = clock() + SLICE
        for step in range(0 if here else 1, total + (0 if here else 1)):
            index = (start + by * step) % total
            if wants(rows.nested(sheet.position(index)).row):
                hits.append(index)
                if len(hits) == 1:
                    self._say("")
                    sheet.select(index)
            if clock() > until:
                self._say(f"{'counting' if hits else 'searching'} … {step / total:.0%}")
                await asyncio.sleep(0)
                if rows is not sheet.rows or len(sheet) != total:
                    return
                until = clock() + SLICE
        if not hits:
            self._say("not found")
            return
        place = sorted(hits).index(hits[0]) + 1
        turned = ", from the other end" if by * (hits[0] - start) < 0 else ""
        self._say(f"{place:,} of {len(hits):,}{turned}")
