"""The pane beside the rows: the selected row whole, its evidence, or the session.

Owns what the pane shows, and looking up evidence without holding up a key.

Must never know: which row is selected, keys.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual import work

from callsheet.faces.tui.evidence import Evidence, evidence_lines
from callsheet.faces.tui.lines import LinesView
from callsheet.faces.tui.stored import Shown
from callsheet.paint import Line, Look, paint_foot, paint_head, paint_row, paint_usage
from callsheet.pairing import Tally
from callsheet.rows import Row

TITLES = {"row": "the row whole", "evidence": "evidence", "session": "the session"}
"""What stands above each sort of contents."""
SOON = 0.05
"""Seconds before evidence is looked up: keys that follow at once leave the row again."""


class SidePane(LinesView):
    """The pane.

    Attributes:
        shows: What it shows: ``row``, ``evidence`` or ``session``; empty while it is closed.
    """

    # Who has the keys is told by the line itself and by words: colours may not be there.
    DEFAULT_CSS = """
    SidePane { border-top: solid $primary; border-left: solid $primary; }
    SidePane:focus { border-top: heavy $primary; border-left: heavy $primary; }
    """

    def __init__(self, looks: str, id: str | None = None) -> None:  # noqa: A002
        super().__init__(looks, id)
        self.shows = ""
        self._evidence = Evidence(None)

    def turn_to(self, what: str) -> None:
        """Shows another sort of contents from now on, or nothing."""
        self.shows = what
        self._put_title()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Says whether the keys move in here."""
        super().watch_has_focus(has_focus)
        self._put_title()

    def _put_title(self) -> None:
        keys = "o: back to the rows" if self.has_focus else "o: into it"
        self.border_title = f"{TITLES.get(self.shows, '')} · {keys} · Esc: close"

    def put_bundle(self, bundle: Path | None, *, growing: bool = False) -> None:
        """Says where evidence is found from now on; lets go of what was open."""
        self._evidence.close()
        self._evidence = Evidence(bundle, growing=growing)

    def put_row(self, row: Row, folders: tuple[str, ...]) -> None:
        """Shows a row whole."""

        def paint(width: int) -> list[Line]:
            return paint_row(row, Look(width=width, full=True, audit=True, folders=folders))

        self.put(paint)

    def put_session(self, shown: Shown, tally: Tally, look: Look) -> None:
        """Shows what the sheet says of the whole session, without moving a reader of it."""

        def paint(width: int) -> list[Line]:
            head = Look(width=width, audit=look.audit, folders=look.folders)
            foot = Look(
                width=width, folders=look.folders
            )  # what it counts is drawn by `show` alone, by no key
            usage = paint_usage(shown.usage, width)
            last = paint_foot(tally, Tally(), shown.hidden, foot, by="callsheet show ")
            return [
                *paint_head(shown.session, tally, head, shown.doubts, by="a"),
                *usage,
                *last[0 if usage else 1 :],  # its rule, where there is something above it
            ]

        self.put(paint, keep=True)

    @work(exclusive=True, group="evidence")
    async def put_evidence(self, row: Row) -> None:
        """Shows where each fact of a row stands in its source, once that is found."""
        evidence = self._evidence
        self.put(lambda width: evidence_lines(row, "looking it up …", width))
        await asyncio.sleep(SOON)
        found = await asyncio.to_thread(evidence.of, row)
        if evidence is self._evidence:
            self.put(lambda width: evidence_lines(row, found, width))
