"""The panel of open requests: what the agent asks, answered in its place on the screen.

Several may be open; one is shown, Tab leads to the next. What is typed for a secret is not shown and not kept.

Must never know: how an answer reaches the agent.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key as KeyPressed
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input

from callsheet.faces.tui.asks import Ask
from callsheet.faces.tui.lines import LinesView
from callsheet.paint import Line, Span
from callsheet.paint.cells import cut
from callsheet.seam import Answer, Waiting

MOST = 14
"""Lines of the panel."""


class AskPanel(Vertical):
    """The open requests; one that was answered goes at once, whether or not the agent has said that it is closed."""

    DEFAULT_CSS = """
    AskPanel { display: none; height: auto; max-height: 50%; border-top: solid $warning; }
    AskPanel:focus-within { border-top: heavy $warning; }
    AskPanel.-open { display: block; }
    AskPanel LinesView { height: auto; }
    AskPanel #answer { display: none; height: 1; border: none; padding: 0 1; }
    AskPanel.-typing #answer { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("space", "tick", show=False),
        Binding("enter", "choose", show=False),
        Binding("o", "type", show=False),
        Binding("x", "decline", show=False),
        Binding("ctrl+d", "decline", show=False, priority=True),
        Binding("tab", "next", show=False, priority=True),
        Binding("escape", "later", show=False, priority=True),
    ]

    class Given(Message):
        """An answer to a request."""

        def __init__(self, request_id: str, answer: Answer) -> None:
            super().__init__()
            self.request_id = request_id
            self.answer = answer

    class Left(Message):
        """The person goes back to the sheet; the requests stay open."""

    def __init__(self, looks: str) -> None:
        super().__init__(id="asks")
        self.looks = looks
        self.asks: list[Ask] = []
        self._at = 0
        self._given: set[str] = set()

    def compose(self) -> ComposeResult:
        """Lines and, where text is wanted, a line to type."""
        yield LinesView(self.looks)
        yield Input(placeholder="type here", id="answer")

    @property
    def ask(self) -> Ask | None:
        """The request that is shown."""
        return self.asks[self._at] if self.asks else None

    @property
    def _input(self) -> Input:
        return self.query_one("#answer", Input)

    def put(self, requests: list[Waiting]) -> None:
        """Shows the requests that are open now; what was begun for one that still is stays."""
        held = {id(ask.request): ask for ask in self.asks if ask.request.request_id not in self._given}
        self._given &= {request.request_id for request in requests}
        requests = [request for request in requests if request.request_id not in self._given]
        shown = self.ask
        self.asks = [held.get(id(request)) or Ask(request) for request in requests]
        self._at = self.asks.index(shown) if shown is not None and shown in self.asks else 0
        if shown is not self.ask:
            self._input.value = ""
        self._draw()

    def _draw(self) -> None:
        ask = self.ask
        self.set_class(ask is not None, "-open")
        self.set_class(ask is not None and ask.typing, "-typing")
        view = self.query_one(LinesView)
        had_focus = self.has_focus_within
        if ask is None:
            self._input.value = ""
            view.put(lambda _: [])
            if had_focus:
                self.post_message(self.Left())
            return
        self._input.password = ask.is_secret
        view.put(self._lines)
        self._fit()
        if had_focus:
            self.enter()

    def _fit(self) -> None:
        """As high as the lines need; the line to type has its place in any case."""
        ask = self.ask
        if ask is not None:
            screen = self.screen.size
            most = max(screen.height // 2 - (2 if ask.typing else 1), 3)
            needed = len(self._lines(max(screen.width - 1, 20)))
            self.query_one(LinesView).styles.height = min(needed, MOST, most)

    def on_descendant_focus(self) -> None:
        """The keys move in here now."""
        self._redraw()

    def on_descendant_blur(self) -> None:
        """The keys move elsewhere."""
        self._redraw()

    def _redraw(self) -> None:
        if self.ask is not None:
            self.query_one(LinesView).put(self._lines, keep=True)

    def on_resize(self, _: Resize) -> None:
        """Lays out for another size."""
        self._fit()

    def _lines(self, width: int) -> list[Line]:
        ask = self.ask
        if ask is None:
            return []
        lines = ask.lines(width, active=self.has_focus_within)
        hint = ask.hint() if self.has_focus_within else "Tab: to this request"
        if len(self.asks) > 1:
            more = ", Tab: next" if self.has_focus_within else ""
            hint = f"{self._at + 1} of {len(self.asks)} requests{more} · {hint}"
        return [*lines, [Span(cut(hint, width), "quiet")]]

    def enter(self) -> None:
        """Goes into the panel."""
        ask = self.ask
        if ask is not None:
            (self._input if ask.typing else self.query_one(LinesView)).focus()

    def _give(self, answer: Answer | None) -> None:
        ask = self.ask
        self._input.value = ""
        if answer is not None and ask is not None:
            self._given.add(ask.request.request_id)
            self.asks.remove(ask)
            self._at = 0
            self.post_message(self.Given(ask.request.request_id, answer))
        self._draw()

    def not_taken(self, request_id: str) -> None:
        """An answer was not passed on: its request can be answered again."""
        self._given.discard(request_id)

    # -- keys ---------------------------------------------------------------------------------------------------

    def on_key(self, event: KeyPressed) -> None:
        """A number chooses."""
        ask = self.ask
        if ask is None or ask.typing or event.character is None or event.character not in "123456789":
            return
        number = int(event.character) - 1
        if number < len(ask.options):
            event.stop()
            if ask.takes_several:
                ask.tick(number)
                self._draw()
            else:
                self._give(ask.choose(number))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """What was typed is the answer, if it fits."""
        event.stop()
        ask = self.ask
        if ask is not None:
            answer = ask.type(event.value)
            if ask.problem:  # what was typed stays, to be mended
                self._draw()
            else:
                self._give(answer)

    def action_move(self, by: int) -> None:
        """Another option."""
        if self.ask is not None:
            self.ask.move(by)
            self._draw()

    def action_tick(self) -> None:
        """Ticks an option of several."""
        if self.ask is not None:
            self.ask.tick()
            self._draw()

    def action_choose(self) -> None:
        """Takes the option under the bar."""
        if self.ask is not None:
            self._give(self.ask.choose())

    def action_type(self) -> None:
        """Other words than the options."""
        if self.ask is not None and self.ask.takes_text:
            self.ask.typing = True
            self._draw()

    def action_decline(self) -> None:
        """Refuses to answer."""
        if self.ask is not None:
            self._give(self.ask.decline())

    def action_next(self) -> None:
        """The next open request."""
        if self.asks:
            self._at = (self._at + 1) % len(self.asks)
            self._input.value = ""
            self._draw()

    def action_later(self) -> None:
        """Back to choosing, or to the sheet."""
        if self.ask is not None and self.ask.back():
            self._input.value = ""
            self._draw()
        else:
            self.post_message(self.Left())
