"""The screen of one session: its rows, the side pane, the search line, the bar.

Owns what keys do here, and what the bar says. Rows come from a feed, each look of which replaces the one before
without moving the reader.

Must never know: where a feed gets its rows, what a row says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Key as KeyPressed
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen

from callsheet.errors import CallsheetError
from callsheet.faces.tui.bar import Bar, Part, count_parts, usage_parts
from callsheet.faces.tui.canvas import SheetView
from callsheet.faces.tui.dialogs import HelpScreen
from callsheet.faces.tui.filter_screen import FilterScreen
from callsheet.faces.tui.filters import Filter
from callsheet.faces.tui.keys import LEAVING, LOOKING, MOVING, STORED_HELP, Help, bindings
from callsheet.faces.tui.lines import LinesView
from callsheet.faces.tui.pauses import PAUSES
from callsheet.faces.tui.places import same_place
from callsheet.faces.tui.search import copied
from callsheet.faces.tui.search_line import SearchLine
from callsheet.faces.tui.side_pane import SidePane
from callsheet.faces.tui.sorts import SORT_WORDS, SORTS
from callsheet.faces.tui.stored import Feed, Shown
from callsheet.paint import Look, Span, Style, head_words, visible
from callsheet.paint.row import look_with_folders
from callsheet.pairing import Tally
from callsheet.rows import NoRows

SAID_LEAST = 0.3
"""Seconds for which something that was said stays, even if it was said because the reader moved."""
WIDE = 110
"""Cells from which the side pane stands beside the sheet, not below it."""


class SheetScreen(Screen[None]):
    """One session.

    Args:
        feed: Where it comes from.
        looks: dark, light or plain.
        alone: There is no list of sessions to go back to.
        following: New rows are followed from the start.

    Attributes:
        shown: What is shown now.
        sheet: The rows.
        pane: The side pane.
    """

    DEFAULT_CSS = """
    SheetScreen { layers: base; }
    SheetScreen #middle { height: 1fr; }
    SheetScreen.-below #middle { layout: vertical; }
    SheetScreen #pane { display: none; width: 45%; padding: 0 0 0 1; }
    SheetScreen.-pane #pane { display: block; }
    SheetScreen.-below #pane { width: 100%; height: 45%; border-left: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MOVING, LOOKING, LEAVING)]
    KEYS: ClassVar[Help] = STORED_HELP
    AUTO_FOCUS = "#sheet"

    def __init__(self, feed: Feed, *, looks: str, alone: bool = True, following: bool = False) -> None:
        super().__init__()
        self.feed = feed
        feed.tell = lambda words: self.say(words, "open")
        self.looks = looks
        self._alone = alone
        self.shown = Shown(rows=NoRows())
        self.filter = Filter()
        self._said: Span | None = Span("reading …", "open")
        self._said_at = 0.0
        self._look = Look()
        self.sheet = SheetView(self.shown.rows, self._look, looks=looks, id="sheet")
        self.sheet.following = following
        self.pane = SidePane(looks, id="pane")
        self.search = SearchLine(self.sheet, self.say, id="search")
        self.top = Bar(looks, id="top")
        self.bottom = Bar(looks, id="bottom")

    class Failed(Message):
        """The session cannot be read, or the source holds several."""

        def __init__(self, error: CallsheetError) -> None:
            super().__init__()
            self.error = error

    # -- what it is made of -------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Sheet, pane, search line, bar."""
        yield self.top
        with Horizontal(id="middle"):
            yield self.sheet
            yield self.pane
        yield from self.compose_below()
        yield self.search
        yield self.bottom

    def compose_below(self) -> ComposeResult:
        """What stands between the rows and the bar: nothing, for a stored session."""
        yield from ()

    def on_mount(self) -> None:
        """Begins to read."""
        self.set_interval(0.12, self.sheet.tick)
        self._read()

    async def on_unmount(self) -> None:
        """Lets go of everything."""
        self.pane.put_bundle(None)
        self.feed.close()
        PAUSES.settle()

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        try:
            async for shown in self.feed.looks():
                self.show(shown)
        except CallsheetError as error:
            self.say(str(error), "bad")
            self.post_message(self.Failed(error))

    # -- what is shown ------------------------------------------------------------------------------------------

    def show(self, shown: Shown) -> None:
        """Shows another look at the session in place of the one before; the reader stays where they are."""
        before, at = self.shown.rows, self.sheet.at
        follows = self.sheet.following and (self.sheet.at_end or not len(before))
        self.pane.put_bundle(shown.bundle, growing=shown.growing)
        self.shown = shown
        self._look = look_with_folders(self._look, shown.session)
        self.sheet.put_look(self._look)
        place = same_place(before, at, shown.rows) if len(before) else None
        self.sheet.put_rows(shown.rows, place, provisional=shown.provisional)
        if not self.filter.is_all:
            self._apply()
        if follows:
            self.sheet.to_end()
        self._said = Span("provisional: the file is still being read", "open") if shown.provisional else None
        self._draw_bar()
        PAUSES.settle()

    def changed(self, changed: list[int], added: list[int]) -> None:
        """Draws rows of a session that goes on."""
        self.sheet.changed(changed, added, None if self.filter.is_all else self._shows)
        if self.pane.shows == "session":
            self._draw_pane()
        self._draw_bar()

    def say(self, words: str, style: Style = "quiet") -> None:
        """Says something in the bar, until the reader moves on; nothing takes back what was said."""
        self._said = Span(visible(words), style) if words else None
        self._said_at = monotonic()
        self._draw_bar()

    def tally(self) -> Tally:
        """Counts of the session."""
        return self.shown.tally

    def waiting(self) -> int:
        """Requests that wait for an answer."""
        return 0

    def state_parts(self) -> Iterator[Part]:
        """What else the bar says."""
        if not self.filter.is_all:
            yield Part(Span(f"only {self.filter.words()}", "label"), 2, "end")
        yield from usage_parts(self.shown.usage)
        if self.sheet.following:
            at_end = self.sheet.at_end
            yield Part(
                Span("following" if at_end else "following paused (End)", "good" if at_end else "open"), 5
            )

    def _draw_bar(self) -> None:
        total = len(self.sheet)
        right = [
            *self.state_parts(),
            Part(Span(f"{min(self.sheet.cursor + 1, total):,}/{total:,}", "quiet"), 3),
        ]
        said = [Part(self._said, 0, "end")] if self._said else []
        left = [*said, *count_parts(self.tally(), self.waiting()), Part(Span("? help", "quiet"), 3)]
        self.bottom.put(left, right)
        who = head_words(self.shown.session)
        self.top.put(
            [Part(Span(who, "strong"), 0, "end"), Part(Span(visible(self.feed.name), "quiet"), 1, "start")]
        )

    def on_key(self, _: KeyPressed) -> None:
        """Whatever key comes next: what was said is read."""
        if self._said and not self.shown.provisional and monotonic() > self._said_at + SAID_LEAST:
            self._said = None
            self._draw_bar()

    def on_sheet_view_selected(self, _: SheetView.Selected) -> None:
        """Shows another row in the pane."""
        self._draw_bar()
        if self.pane.shows:
            self._draw_pane()

    def on_sheet_view_moved(self, event: SheetView.Moved) -> None:
        """What was said is read."""
        if not self.shown.provisional and event.when > self._said_at + SAID_LEAST:
            self._said = None
        self._draw_bar()

    def on_resize(self, event: Resize) -> None:
        """Puts the pane where there is room for it."""
        self.set_class(event.size.width < WIDE, "-below")

    # -- the pane -----------------------------------------------------------------------------------------------

    def _draw_pane(self) -> None:
        at = self.sheet.at
        if at is None:
            self.pane.put(lambda _: [])
        elif self.pane.shows == "evidence":
            self.pane.put_evidence(self.shown.rows.nested(at).row)
        elif self.pane.shows == "session":
            self.pane.put_session(self.shown, self.tally(), self._look)
        else:
            self.pane.put_row(self.shown.rows.nested(at, whole=True).row, self._look.folders)

    def _show_pane(self, what: str) -> None:
        self.pane.turn_to("" if self.pane.shows == what else what)
        self.set_class(bool(self.pane.shows), "-pane")
        if self.pane.shows:
            self._draw_pane()
        else:
            self.sheet.focus()

    def action_pane(self) -> None:
        """The selected row whole, beside the sheet."""
        self._show_pane("row")

    def action_session(self) -> None:
        """What is known of the session as a whole."""
        self._show_pane("session")

    def action_evidence(self) -> None:
        """The evidence of the selected row."""
        self._show_pane("evidence")

    def action_enter_pane(self) -> None:
        """Into the pane, or back to the rows."""
        if self.pane.shows and self.focused is not self.pane:
            self.pane.focus()
        else:
            self.sheet.focus()

    # -- moving -------------------------------------------------------------------------------------------------

    @property
    def _reader(self) -> SheetView | SidePane:
        """What keys move in: the rows, or the pane."""
        return self.pane if self.focused is self.pane else self.sheet

    def action_move(self, by: int) -> None:
        """The next or the previous row; in the pane, a line."""
        self._reader.move(by)

    def action_page(self, by: int) -> None:
        """A screen up or down."""
        self._reader.turn_page(by)

    def action_home(self) -> None:
        """The first row; in the pane, its first line."""
        self._reader.to_start()

    def action_end(self) -> None:
        """The last row; in the pane, its last line."""
        self._reader.to_end()
        self._draw_bar()

    def action_jump(self, what: str, by: int) -> None:
        """The next or previous row of a sort."""
        self._said = None
        if not self.sheet.find(SORTS[what](self.shown.rows), by):
            where = "after" if by > 0 else "before"
            self.say(f"no {SORT_WORDS[what]} {where} this row")

    # -- looking ------------------------------------------------------------------------------------------------

    def action_open_row(self) -> None:
        """Opens the row, or closes it."""
        self.sheet.toggle()

    def action_fold_all(self) -> None:
        """One line for each row, or as usual."""
        self.sheet.fold_all()

    def action_follow(self) -> None:
        """Follows new rows, or stops it."""
        self.sheet.following = not self.sheet.following
        if self.sheet.following:
            self.sheet.to_end()
        self._draw_bar()

    def action_audit(self) -> None:
        """When and where each row stands, or not."""
        self._look = Look(audit=not self._look.audit, folders=self._look.folders)
        self.sheet.put_look(self._look)
        if self.pane.shows == "session":
            self._draw_pane()

    def action_theme(self) -> None:
        """Light or dark."""
        if self.looks == "plain":
            self.say("no colours: NO_COLOR is set")
            return
        self.looks = "light" if self.looks == "dark" else "dark"
        self.app.theme = f"callsheet-{self.looks}"
        self.sheet.put_look(self._look, self.looks)
        for view in (*self.query(LinesView), *self.query(Bar)):
            view.looks = self.looks
            view.refresh()

    def action_copy(self, what: str) -> None:
        """Copies a part of the selected row, made harmless, to the clipboard."""
        at = self.sheet.at
        if at is None:
            return
        text = copied(self.shown.rows.nested(at, whole=True).row, what)
        self.app.copy_to_clipboard(text)
        self.say(f"copied {len(text):,} characters")

    def action_help(self) -> None:
        """The keys."""
        self.app.push_screen(HelpScreen(self.KEYS, looks=self.looks))

    # -- search -------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Asks what to search for."""
        self.search.open()

    def action_again(self, by: int) -> None:
        """The next or previous place that was searched for."""
        self.search.again(by)

    # -- filter -------------------------------------------------------------------------------------------------

    def _shows(self, at: int) -> bool:
        return self.filter.shows(self.shown.rows, at)

    def _apply(self) -> None:
        self.sheet.renewed(None if self.filter.is_all else self._shows)
        self._draw_bar()

    def action_filter(self) -> None:
        """Chooses what is shown."""
        rows = self.shown.rows
        if not len(rows):
            self.say("there are no rows yet")
            return
        kinds = Counter[str](rows.kind(at) for at in range(len(rows)))
        states = Counter[str](rows.state(at) for at in range(len(rows)))
        chosen = FilterScreen(self.filter, kinds, states, looks=self.looks)
        self.app.push_screen(chosen, self._filtered)

    def _filtered(self, chosen: Filter | None) -> None:
        if chosen is not None:
            self.filter = chosen
            self._apply()
            if chosen.is_all:
                self.say("no filter: all rows are shown")

    def action_unfilter(self) -> None:
        """Shows everything."""
        self.filter = Filter()
        self._apply()

    # -- leaving ------------------------------------------------------------------------------------------------

    def action_back(self) -> None:
        """Closes what is open, one after another."""
        if self.search.is_open:
            self.search.close()
        elif self.pane.shows:
            self._show_pane(self.pane.shows)
        elif not self.filter.is_all:
            self.action_unfilter()
        elif not self._alone:
            self.dismiss(None)

    def action_leave(self) -> None:
        """Back to the list, or out."""
        if self._alone:
            self.app.exit()
        else:
            self.dismiss(None)
