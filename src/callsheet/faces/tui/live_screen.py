"""The screen of a session with an agent that runs: its rows as they change, its requests, the next prompt.

Owns how often the screen is drawn while events come (thirty times a second at most, whatever comes), and the keys of a
turn. When the session has ended, the bundle that was recorded takes the place of the live rows.

Must never know: protocols, what a row says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer
from textual.widgets import Input

from callsheet.errors import CallsheetError
from callsheet.faces.tui.ask_panel import AskPanel
from callsheet.faces.tui.bar import Part
from callsheet.faces.tui.keys import LIVE_HELP, TURN, Help, bindings
from callsheet.faces.tui.running import Running
from callsheet.faces.tui.sheet_screen import SheetScreen
from callsheet.faces.tui.stored import Shown, Stored
from callsheet.paint import Span, Style
from callsheet.pairing import Tally
from callsheet.seam import Event, Noted, Recorded, Rejected, RequestClosed, RequestOpened, TurnResult

EVERY = 1 / 30
"""Seconds between two drawings of what has changed."""

_ENDS: dict[str, tuple[str, Style]] = {
    "Completed": ("turn completed", "good"),
    "Failed": ("turn failed", "bad"),
    "Interrupted": ("turn interrupted", "open"),
    "Lost": ("turn lost: nobody saw its end", "bad"),
    "NotStarted": ("turn not started", "bad"),
}


def result_words(result: TurnResult) -> Span:
    """How a turn ended, in the agent's own words where it has some."""
    words, style = _ENDS[type(result).__name__]
    more = [getattr(result, name, None) for name in ("message", "reason")]
    detail = next((one for one in more if one), None)
    says_more = detail and detail != "end_turn" and detail.lower() not in words
    return Span(f"{words}: {detail}" if says_more else words, style)


def gone_words(event: RequestClosed) -> str:
    """Why a request that nobody answered here is no longer open, with the agent's own word."""
    why = "its turn ended" if event.how == "ended" else "the agent took it back"
    return f"a request is no longer open: {why}{f' ({event.said})' if event.said else ''}"


class LiveScreen(SheetScreen):
    """One session with an agent.

    Args:
        running: The session.
        looks: dark, light or plain.
    """

    DEFAULT_CSS = """
    LiveScreen #prompt { height: 1; border: none; padding: 0; display: none; }
    LiveScreen.-prompt #prompt { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(TURN)]
    KEYS: ClassVar[Help] = LIVE_HELP

    def __init__(self, running: Running, *, looks: str) -> None:
        super().__init__(Stored.of_nothing(running.name), looks=looks)
        self.running = running
        running.on_end = self._turn_ended
        self._events: list[Event] = []
        self._timer: Timer | None = None
        self._asked_to_stop = False
        self._gone = False
        self.panel = AskPanel(looks)
        self.prompt = Input(placeholder="the next prompt (Enter: send, Esc: back)", id="prompt")

    async def on_unmount(self) -> None:
        """Nothing that was started stays behind."""
        self._gone = True
        await self.running.leave()
        await super().on_unmount()

    def compose_below(self) -> ComposeResult:
        """The requests, and a line for the next prompt."""
        yield self.panel
        yield self.prompt

    # -- what comes ---------------------------------------------------------------------------------------------

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        running = self.running
        self.say(f"starting {running.name} …", "open")
        try:
            await running.open()
        except CallsheetError as error:
            self.post_message(self.Failed(error))
            return
        rows = running.rows
        self.show(Shown(rows=rows, bundle=running.bundle, growing=True, usage=rows.usage))
        self.sheet.following = True
        self._said = None
        if running.wanted.prompt is None:
            self.action_prompt()
        async for event in running.events():
            self._events.append(event)
            if self._timer is None:
                self._timer = self.set_timer(EVERY, self._draw_events)
        self._draw_events()
        if running.closed is not None and not self._gone:
            for problem in running.closed.problems:
                self.say(problem, "bad")
            await self._show_bundle()

    def _turn_ended(self) -> None:
        """What was asked of a turn does not count for the next."""
        self._asked_to_stop = False
        self._draw_events()

    def _draw_events(self) -> None:
        """Draws everything that has come."""
        self._timer = None
        if self._gone:
            return
        rows = self.running.rows
        events, self._events = self._events, []
        asks = False
        for event in events:
            rows.apply(event)
            match event:
                case RequestOpened():
                    asks = True
                case RequestClosed():
                    asks = True
                    if event.how != "answered":
                        self.say(gone_words(event), "open")
                case Noted():
                    self.say(event.text)
                case Recorded() if self.shown.session is None:
                    self.shown.session = rows.session
                case _:
                    pass
        asks |= rows.turn == "settled"
        change = rows.take()
        if change.anew:
            self.sheet.renewed(None if self.filter.is_all else self._shows)
        elif change.changed or change.added:
            self.changed(change.changed, change.added)
        if asks:
            self._show_requests()
        self._draw_bar()

    def _show_requests(self) -> None:
        requests = list(self.running.rows.waiting.values())
        was_open = bool(self.panel.asks)
        self.panel.put(requests)
        # A reader elsewhere is not interrupted in what they type; keys of the sheet are theirs until Tab.
        if requests and not was_open and self.focused is self.sheet and self.sheet.at_end:
            self.panel.enter()

    async def _show_bundle(self) -> None:
        bundle = self.running.bundle
        if bundle is None or not bundle.exists():
            return
        self.feed = Stored(bundle)
        try:
            async for shown in self.feed.looks():
                if not shown.provisional:
                    self.show(shown)
        except CallsheetError as error:
            self.say(str(error), "bad")

    # -- the bar ------------------------------------------------------------------------------------------------

    def tally(self) -> Tally:
        """Counts so far."""
        return self.running.rows.counts() if self.shown.rows is self.running.rows else self.shown.tally

    def waiting(self) -> int:
        """Requests that wait for an answer."""
        return len(self.running.rows.waiting)

    def state_parts(self) -> Iterator[Part]:
        """How the turn stands."""
        if self.running.busy:
            if not (self.running.rows.turn == "waiting" and self.waiting()):
                yield Part(Span(self.running.rows.turn, "open"), 2)
        elif self.running.result is not None:
            yield Part(result_words(self.running.result), 2, "end")
        yield from super().state_parts()

    # -- keys of a turn -----------------------------------------------------------------------------------------

    def action_ask(self) -> None:
        """Goes to the open request."""
        if self.panel.asks:
            self.panel.enter()
        else:
            self.say("no request is open")

    def on_ask_panel_given(self, event: AskPanel.Given) -> None:
        """Passes an answer on."""
        receipt = self.running.answer(event.request_id, event.answer)
        if isinstance(receipt, Rejected):
            self.say(f"not passed on: {receipt.reason}", "bad")
            self.panel.not_taken(event.request_id)
            self._show_requests()

    def on_ask_panel_left(self, _: AskPanel.Left) -> None:
        """Back to the sheet."""
        self.sheet.focus()

    def action_prompt(self) -> None:
        """A line for the next prompt."""
        self.add_class("-prompt")
        self.prompt.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Sends the prompt."""
        if event.input is not self.prompt:
            return
        text = event.value
        self._close_prompt()
        if text.strip():
            self._asked_to_stop = False
            receipt = self.running.prompt(text)
            if isinstance(receipt, Rejected):
                self.say(f"not passed on: {receipt.reason}", "bad")
            else:
                self.prompt.value = ""
                self.sheet.to_end()

    def _close_prompt(self) -> None:
        self.remove_class("-prompt")
        self.sheet.focus()

    def action_interrupt(self) -> None:
        """Asks the agent to break off; the second time, stops it."""
        if self._asked_to_stop:
            self.say("stopping the agent …", "open")
            self._stop()
            return
        if not self.running.busy:
            self.say("no turn is running")
            return
        receipt = self.running.interrupt()
        self._asked_to_stop = True
        if isinstance(receipt, Rejected):
            self.say(f"cannot interrupt: {receipt.reason}; Ctrl+X again stops the agent", "bad")
        else:
            self.say("interrupting; Ctrl+X again stops the agent", "open")

    @work(exclusive=True, group="stop")
    async def _stop(self) -> None:
        await self.running.leave()

    def action_back(self) -> None:
        """Closes the prompt, or what else is open."""
        if self.has_class("-prompt"):
            self._close_prompt()
        else:
            super().action_back()

    def action_leave(self) -> None:
        """Out; while a turn runs, only when asked twice."""
        if self.running.busy and not self._asked_to_stop:
            self._asked_to_stop = True
            self.say("a turn is running; q again stops it and leaves", "open")
            return
        self._leave_now()

    @work(exclusive=True, group="leave")
    async def _leave_now(self) -> None:
        self.say("closing the session …", "open")
        await self.running.leave()
        self.app.exit()
