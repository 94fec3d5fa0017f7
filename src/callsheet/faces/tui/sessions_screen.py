"""The list of sessions: one for each line pair, with counts that stay true, and one key to its sheet.

Must never know: how a session is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
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

from callsheet.errors import CallsheetError
from callsheet.faces.tui.bar import Bar, Part, count_parts, count_spans
from callsheet.faces.tui.dialogs import HelpScreen
from callsheet.faces.tui.keys import LEAVING_SESSIONS, SESSIONS, SESSIONS_HELP, bindings
from callsheet.faces.tui.looks import looks_of, segments
from callsheet.faces.tui.shelf import Counts, Entry, Mark, Root, Writing, entries_in, in_order, read_head
from callsheet.faces.tui.stored import Feed, Stored
from callsheet.paint import Line, Span, visible
from callsheet.paint.cells import cut, cut_start, width
from callsheet.pairing import Tally
from callsheet.rows.text import counted
from callsheet.wire.locks import is_locked

EVERY = 1.0
"""Seconds between two looks at the folder."""
COUNTING = 3.0
"""Seconds of counting between two looks at the folder."""
COUNTED = 200
"""Sessions whose counts are kept, the latest first."""
LINES = 2


Tried = dict[tuple[str, str | None], Mark]
"""Entries that were read, by their keys, and how they were marked then."""


class Shelf(Protocol):
    """Where the list of sessions comes from.

    Attributes:
        places: Where they lie, in words.
        following: Agents are writing there: a sheet begins with following.
    """

    places: list[str]
    following: bool

    def entries(self) -> list[Entry]:
        """The sessions now; may take a while.

        Raises:
            CallsheetError: There is nothing that could be listed, and will not be.
        """
        ...

    def read_head(self, entry: Entry) -> None:
        """Puts into an entry what can be known of it soon."""
        ...

    def count(self, entry: Entry) -> None:
        """Puts its counts into an entry; may take a while."""
        ...

    def feed(self, entry: Entry) -> Feed:
        """What the sheet of a session comes from."""
        ...


class FolderShelf:
    """The sessions of folders.

    Args:
        roots: The folders.
        name: What to call them.
        growing: Agents are writing there: the library's watcher says when a session is to be read again.

    Attributes:
        places: Where they lie, in words.
        following: Whether a sheet begins with following.
    """

    def __init__(self, *roots: Root, name: str | None = None, growing: bool = False) -> None:
        self._entries = Writing(*roots).entries if growing else lambda: entries_in(*roots)
        self._counts = Counts()
        self.following = growing
        self.places = [name] if name is not None else [short_path(folder) for folder, _ in roots]

    def entries(self) -> list[Entry]:
        """The sessions now."""
        return self._entries()

    def read_head(self, entry: Entry) -> None:
        """Puts into an entry what the head of its bundle says."""
        read_head(entry)

    def count(self, entry: Entry) -> None:
        """Puts its counts into an entry."""
        self._counts.put(entry)

    def feed(self, entry: Entry) -> Feed:
        """What the sheet of a session comes from."""
        return Stored(entry.path, stream=entry.stream, kind=entry.kind, growing=self.following)


def short_path(path: Path) -> str:
    """A path with ``~`` for the person's home."""
    try:
        return str(Path("~") / path.absolute().relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


def entry_lines(entry: Entry, room: int) -> list[Line]:
    """A session on two lines."""
    when = entry.began or f"saved {entry.saved[:10]}"
    first: Line = [Span(f"{when:<16}  ", "quiet"), _title(entry, max(room - 18, 8))]
    second: Line = [Span("  ")]
    for number, span in enumerate(_facts(entry)):
        second += [*([Span(" · ", "quiet")] if number else []), span]
    rest = room - sum(width(span.text) for span in second) - 3
    if rest > 8:
        path = visible(short_path(entry.path) + (f" {entry.stream}" if entry.stream else ""))
        second.append(Span("   " + cut_start(path, rest), "quiet"))
    return [first, second]


def _title(entry: Entry, room: int) -> Span:
    asked = visible(" ".join((entry.asked or "").split()))
    if asked:
        return Span(cut(asked, room), "strong")
    if not entry.head_read:
        return Span(cut_start(visible(entry.name or entry.path.name), room), "quiet")
    return Span(cut("nothing ran" if entry.is_empty else "no prompt is recorded", room), "hidden")


def _facts(entry: Entry) -> Iterator[Span]:
    if entry.running:
        yield Span("running", "open")
    if entry.who:
        yield Span(entry.who, "label")
    if entry.why is not None:
        yield Span(visible(entry.why), "bad")
    elif entry.tally is not None:
        yield from count_spans(entry.tally, entry.waiting, entry.undecided)
    elif entry.is_large:
        yield Span("large: counted when it is opened", "quiet")
    else:
        yield Span("not read yet", "quiet")


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
        self._chosen = False

    def put(self, entries: list[Entry]) -> None:
        """Shows other entries; the one that a person selected stays selected."""
        key = self.entries[self.cursor].key if self.entries and self._chosen else None
        self.entries = entries
        self.cursor = next((at for at, entry in enumerate(entries) if entry.key == key), 0)
        self._lay_out()

    def on_screen(self) -> list[Entry]:
        """The entries that can be seen."""
        first = self.scroll_offset.y // LINES
        return self.entries[first : first + self.scrollable_content_region.height // LINES + 1]

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
        self._chosen = True
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

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(SESSIONS, LEAVING_SESSIONS)]
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
        self._heads: Tried = {}
        self._tried: Tried = {}
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
        while True:
            try:
                found = await asyncio.to_thread(self._shelf.entries)
            except CallsheetError as error:
                self._said = str(error)
                self._draw()
                return
            entries = [self._current(entry) for entry in found]
            self._known = {entry.key: entry for entry in entries}
            said, self._said = self._said, "" if entries else "no sessions found in this folder"
            self._put(entries, anew=said != self._said)
            await self._read_some(entries, self._heads, self._shelf.read_head)
            self._put(entries)
            wanted = {entry.key: entry for entry in [*self.view.on_screen(), *self.view.entries[:COUNTED]]}
            await self._read_some(list(wanted.values()), self._tried, self._shelf.count)
            self._put(entries)
            await asyncio.sleep(EVERY)

    async def _read_some(self, entries: list[Entry], tried: Tried, read: Callable[[Entry], None]) -> None:
        """Reads entries that were written since they were tried, as many as there is time for."""
        clock = asyncio.get_running_loop().time
        until = clock() + COUNTING
        for entry in entries:
            if clock() > until:
                return  # those that are written now come first in the next look
            if tried.get(entry.key) != entry.mark:
                tried[entry.key] = entry.mark
                await asyncio.to_thread(read, entry)
                self.view.refresh()
                self._draw()

    def _put(self, entries: list[Entry], *, anew: bool = False) -> None:
        ordered = in_order(entries, by_writing=self._shelf.following)
        if anew or ordered != self.view.entries:
            self.view.put(ordered)
        self.view.refresh()
        self._draw()

    def _current(self, entry: Entry) -> Entry:
        """What was known of an entry; what is new of it is read soon."""
        known = self._known.get(entry.key)
        if known is None:
            return entry
        known.mark = entry.mark
        known.written = entry.written
        known.running = known.running and is_locked(known.path)
        return known

    def _draw(self) -> None:
        entries = self.view.entries
        self.query_one("#top", Bar).put(
            [
                Part(Span(counted(len(entries), "session"), "strong"), 0),
                self._places(),
            ]
        )
        counted_ones = [entry for entry in entries if entry.tally is not None]
        left = [Part(Span(self._said, "open"), 0, "end")] if self._said else []
        if counted_ones:
            total = Tally()
            for entry in counted_ones:
                total.add(entry.tally or Tally())
            waiting = sum(entry.waiting for entry in counted_ones)
            left += count_parts(total, waiting, sum(entry.undecided for entry in counted_ones))
        self.query_one("#bottom", Bar).put(
            [*left, Part(Span("Enter: open", "quiet")), Part(Span("? help", "quiet"), 3)]
        )

    def _places(self) -> Part:
        places = [visible(place) for place in self._shelf.places]
        if len(places) == 1:
            return Part(Span(places[0], "quiet"), 1, "start")
        return Part(Span(f"in {counted(len(places), 'place')}: {', '.join(places)}", "quiet"), 1, "end")

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
        self.app.push_screen(HelpScreen(SESSIONS_HELP, looks=self.looks))

    def action_leave(self) -> None:
        """Out."""
        self.app.exit()
