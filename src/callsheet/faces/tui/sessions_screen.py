"""The list of sessions: one for each line pair, with counts that stay true, and one key to its sheet.

Must never know: how a session is read.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Protocol

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from callsheet.faces.tui.bar import Bar, Part, count_parts, count_spans
from callsheet.faces.tui.dialogs import HelpScreen
from callsheet.faces.tui.keys import LEAVING, SESSIONS, bindings
from callsheet.faces.tui.looks import looks_of, segments
from callsheet.faces.tui.shelf import Entry, Root, counted_entry, entries_in
from callsheet.faces.tui.stored import Feed, Stored
from callsheet.paint import Line, Span, visible
from callsheet.paint.cells import cut, width
from callsheet.rows.text import counted

EVERY = 1.0
"""Seconds between two looks at the folder."""
COUNTING = 3.0
"""Seconds of counting between two looks at the folder."""
COUNTED = 200
"""Sessions whose counts are kept, the latest first."""
LINES = 2


class Shelf(Protocol):
    """Where the list of sessions comes from."""

    name: str
    following: bool

    def entries(self) -> list[Entry]:
        """The sessions now, the latest first; may take a while."""
        ...

    def counted(self, entry: Entry) -> Entry:
        """An entry with its counts; may take a while."""
        ...

    def feed(self, entry: Entry) -> Feed:
        """What the sheet of a session comes from."""
        ...


class FolderShelf:
    """The sessions of folders.

    Args:
        roots: The folders.
        name: What to call them.
        growing: Agents are writing there.

    Attributes:
        following: Whether a sheet begins with following.
    """

    def __init__(self, *roots: Root, name: str | None = None, growing: bool = False) -> None:
        self._roots = roots
        self.following = growing
        self.name = name or ", ".join(str(folder) for folder, _ in roots)

    def entries(self) -> list[Entry]:
        """The sessions now."""
        return entries_in(*self._roots)

    def counted(self, entry: Entry) -> Entry:
        """An entry with its counts."""
        return counted_entry(entry)

    def feed(self, entry: Entry) -> Feed:
        """What the sheet of a session comes from."""
        return Stored(entry.path, stream=entry.stream, growing=self.following)


def entry_lines(entry: Entry, room: int) -> list[Line]:
    """A session on two lines."""
    asked = visible(" ".join((entry.asked or "(no prompt)").split()))
    first: Line = [Span(f"{entry.when}  ", "quiet"), Span(cut(asked, max(room - 18, 8)), "strong")]
    if entry.why is not None:
        counts = [Span(visible(entry.why), "bad")]
    elif entry.tally is None:
        counts = [Span("not read yet", "quiet")]
    else:
        counts = count_spans(entry.tally, entry.tally.unresolved)
    second: Line = [Span("  ")]
    for number, span in enumerate(counts):
        second += [*([Span(" · ", "quiet")] if number else []), span]
    used = sum(width(span.text) for span in second)
    path = visible(str(entry.path) + (f" {entry.stream}" if entry.stream else ""))
    rest = room - used - 3
    if rest > 8:
        tail = (
            path if width(path) <= rest else "…" + path[-(rest - 1) :] if path.isascii() else cut(path, rest)
        )
        second.append(Span("   " + tail, "quiet"))
    return [first, second]


class SessionsView(ScrollView, can_focus=True, inherit_bindings=False):
    """The entries, two lines each."""

    DEFAULT_CSS = (
        "SessionsView { overflow-y: scroll; overflow-x: hidden; height: 1fr; scrollbar-size-vertical: 1; }"
    )

    class Opened(Message):
        """An entry was chosen."""

    def __init__(self, looks: str) -> None:
        super().__init__(id="sessions")
        self.looks = looks
        self.entries: list[Entry] = []
        self.cursor = 0

    def put(self, entries: list[Entry]) -> None:
        """Shows other entries; the selected one stays selected."""
        key = self.entries[self.cursor].key if self.entries else None
        self.entries = entries
        self.cursor = next((at for at, entry in enumerate(entries) if entry.key == key), 0)
        self._lay_out()

    def _lay_out(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, max(len(self.entries) * LINES, 1))
        self.refresh()

    def on_resize(self, _: Resize) -> None:
        """Lays out for another width."""
        self._lay_out()

    def select(self, at: int) -> None:
        """Selects an entry and shows it."""
        if not self.entries:
            return
        self.cursor = max(0, min(at, len(self.entries) - 1))
        top, page = self.scroll_offset.y, self.scrollable_content_region.height
        begin = self.cursor * LINES
        if begin < top:
            self.scroll_to(y=begin, animate=False, immediate=True)
        elif begin + LINES > top + page:
            self.scroll_to(y=begin + LINES - page, animate=False, immediate=True)
        self.refresh()

    def on_click(self, event: Click) -> None:
        """Selects the session that was clicked; a second click opens it."""
        at = (self.scroll_offset.y + event.y) // LINES
        if at >= len(self.entries):
            return
        if at == self.cursor:
            self.post_message(self.Opened())
        else:
            self.select(at)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        room = self.scrollable_content_region.width
        looks = looks_of(self.looks)
        at, inner = divmod(self.scroll_offset.y + y, LINES)
        if at >= len(self.entries):
            return Strip.blank(room, looks[""])
        mark = Span("▌ ", "label") if at == self.cursor else Span("  ")
        return Strip(segments([mark, *entry_lines(self.entries[at], room - 2)[inner]], looks, room), room)


class SessionsScreen(Screen[None]):
    """The list."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(SESSIONS, LEAVING)]
    AUTO_FOCUS = "#sessions"

    class Chosen(Message):
        """A session is to be shown."""

        def __init__(self, feed: Feed, following: bool) -> None:
            super().__init__()
            self.feed = feed
            self.following = following

    def __init__(self, shelf: Shelf, *, looks: str) -> None:
        super().__init__()
        self._shelf = shelf
        self.looks = looks
        self._known: dict[tuple[str, str | None], Entry] = {}
        self._tried: dict[tuple[str, str | None], tuple[int, int]] = {}
        self._said = "looking …"

    def compose(self) -> ComposeResult:
        """Where, what, counts."""
        yield Bar(self.looks, id="top")
        yield SessionsView(self.looks)
        yield Bar(self.looks, id="bottom")

    @property
    def view(self) -> SessionsView:
        """The entries."""
        return self.query_one(SessionsView)

    def on_mount(self) -> None:
        """Begins to look."""
        self._draw()
        self._look()

    @work(exclusive=True, group="look")
    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            begin = clock()
            found = await asyncio.to_thread(self._shelf.entries)
            entries = [self._current(entry) for entry in found]
            self._known = {entry.key: entry for entry in entries}
            said, self._said = self._said, "" if entries else "no sessions found in this folder"
            if entries != self.view.entries or said != self._said:
                self.view.put(entries)
                self._draw()
            for entry in entries[:COUNTED]:
                if clock() > begin + COUNTING:
                    break  # those that are written now come first in the next look
                if self._tried.get(entry.key) != entry.mark:
                    self._tried[entry.key] = entry.mark
                    await asyncio.to_thread(self._shelf.counted, entry)
                    self.view.refresh()
                    self._draw()
            await asyncio.sleep(EVERY)

    def _current(self, entry: Entry) -> Entry:
        """What is known of an entry, as long as it was not written anew."""
        known = self._known.get(entry.key)
        return known if known is not None and known.mark == entry.mark else entry

    def _draw(self) -> None:
        entries = self.view.entries
        self.query_one("#top", Bar).put(
            [
                Part(Span(counted(len(entries), "session"), "strong"), 0),
                Part(Span(visible(self._shelf.name), "quiet"), 1, True),
            ]
        )
        tallies = [entry.tally for entry in entries if entry.tally is not None]
        left = [Part(Span(self._said, "open"), 0, True)] if self._said else []
        if tallies:
            total = type(tallies[0])()
            for tally in tallies:
                total.add(tally)
            left += count_parts(total, total.unresolved)
        self.query_one("#bottom", Bar).put(
            [*left, Part(Span("Enter: open", "quiet")), Part(Span("? help", "quiet"), 3)]
        )

    def on_sessions_view_opened(self, _: SessionsView.Opened) -> None:
        """A click on the selected session."""
        self.action_open()

    def action_open(self) -> None:
        """The sheet of the session."""
        if self.view.entries:
            entry = self.view.entries[self.view.cursor]
            self.post_message(self.Chosen(self._shelf.feed(entry), self._shelf.following))

    def action_move(self, by: int) -> None:
        """Another session."""
        self.view.select(self.view.cursor + by)

    def action_page(self, by: int) -> None:
        """A screen up or down."""
        self.view.select(self.view.cursor + by * max(self.view.size.height // LINES - 1, 1))

    def action_home(self) -> None:
        """The first session."""
        self.view.select(0)

    def action_end(self) -> None:
        """The last session."""
        self.view.select(len(self.view.entries) - 1)

    def action_help(self) -> None:
        """The keys."""
        self.app.push_screen(HelpScreen(self.looks))

    def action_back(self) -> None:
        """There is nothing to go back to."""

    def action_leave(self) -> None:
        """Out."""
        self.app.exit()
