"""An open request and how far its answer has come: a small machine, without a screen.

A permission is one choice, with words where its option takes them. Questions and the members of a form are asked one
after another. What is typed for a secret is handed on and kept nowhere.

Must never know: the screen, protocols.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

import msgspec
from msgspec import Raw

from callsheet.live.forms import Misfit, fields_of
from callsheet.paint import Line, Span, visible
from callsheet.paint.cells import cut, wrap
from callsheet.rows.talk import option_words
from callsheet.seam import (
    Answer,
    Answered,
    Cancelled,
    Chosen,
    Declined,
    FormAsked,
    FormFilled,
    Permission,
    Questions,
    UrlAsked,
    UrlOpened,
    Waiting,
)

MOST_LINES = 6
"""Lines of a text of the agent that are shown."""


class Ask:
    """One open request.

    Attributes:
        request: The request.
        cursor: Which option is under the bar.
        chosen: Options that are ticked, of a question that takes several.
        typing: Text is wanted now: free text of a question, words for an option, a member of a form.
        problem: Why the line that was typed last was not taken.
    """

    def __init__(self, request: Waiting) -> None:
        self.request = request
        self.cursor = 0
        self.chosen: set[int] = set()
        self._step = 0
        self._answers: dict[str, tuple[tuple[str, ...], str | None]] = {}
        self._content: dict[str, Any] = {}
        self._option: str | None = None
        self._fields = list(fields_of(request)) if isinstance(request, FormAsked) else []
        self.typing = False
        self.problem = ""
        self._begin()

    def _begin(self) -> None:
        self.cursor = 0
        self.problem = ""
        self.chosen.clear()
        self.typing = bool(not self.options and not isinstance(self.request, Permission | UrlAsked))

    # -- what is asked now --------------------------------------------------------------------------------------

    @property
    def options(self) -> list[str]:
        """What can be chosen now."""
        request = self.request
        match request:
            case Permission():
                return [option_words(option) for option in request.options]
            case Questions():
                question = request.questions[self._step]
                return [option.label for option in question.options or ()]
            case UrlAsked():
                return ["I opened it", "decline"]
            case FormAsked():
                return []
            case _:
                assert_never(request)

    @property
    def takes_text(self) -> bool:
        """Whether text may be typed instead of choosing."""
        request = self.request
        if isinstance(request, Questions):
            question = request.questions[self._step]
            return question.allow_other is not False or not question.options
        return self._option is not None or isinstance(request, FormAsked)

    @property
    def takes_several(self) -> bool:
        """Whether several options may be ticked."""
        request = self.request
        return isinstance(request, Questions) and bool(request.questions[self._step].multi_select)

    @property
    def is_secret(self) -> bool:
        """Whether what is typed now must not be shown."""
        match self.request:
            case Questions():
                return bool(self.request.questions[self._step].secret)
            case FormAsked():
                return self.request.secret or (bool(self._fields) and self._fields[self._step].secret)
            case _:
                return False

    def lines(self, width: int, *, active: bool = True) -> list[Line]:
        """What is asked, and the options; which of them a key would take, where keys move here."""
        lines: list[Line] = []
        for number, text in enumerate(self._texts()):
            style = "strong" if not number else "quiet"
            pieces = [piece for part in text.split("\n") for piece in wrap(visible(part), max(width, 8))]
            lines += [
                [Span(piece, "strong" if style == "strong" else "quiet")] for piece in pieces[:MOST_LINES]
            ]
            if len(pieces) > MOST_LINES:
                lines.append([Span(f"… {len(pieces) - MOST_LINES} more lines", "hidden")])
        if self.problem:
            lines += [[Span(piece, "bad")] for piece in wrap(self.problem, max(width, 8))]
        for number, option in enumerate(self.options):
            bar = "▌ " if number == self.cursor and active and not self.typing else "  "
            tick = ("[x] " if number in self.chosen else "[ ] ") if self.takes_several else ""
            head = f"{number + 1}  {tick}" if number < 9 else f"   {tick}"
            words = cut(visible(" ".join(option.split())), max(width - len(head) - 2, 4))
            lines.append(
                [Span(bar, "label"), Span(head, "label"), Span(words, "strong" if bar[0] != " " else "")]
            )
        return lines

    def _texts(self) -> Iterator[str]:
        request = self.request
        match request:
            case Permission():
                if self._option is not None:
                    yield "Words for the agent (Enter without words: none)"
                    return
                texts = (request.command, request.description, request.reason)
                yield f"? {request.title}"
                yield from dict.fromkeys(text for text in texts if text and text != request.title)
            case Questions():
                question = request.questions[self._step]
                head = question.header or request.title
                yield f"? {f'{head}: ' if head else ''}{question.text}"
                if len(request.questions) > 1:
                    yield f"question {self._step + 1} of {len(request.questions)}"
            case FormAsked():
                yield f"? {request.title}"
                if self._fields:
                    field = self._fields[self._step]
                    place = f" ({self._step + 1} of {len(self._fields)})" if len(self._fields) > 1 else ""
                    yield f"{field.label}{place}:"
                    yield field.wants()
            case UrlAsked():
                yield f"? {request.title}"
                yield request.url

    def hint(self) -> str:
        """What keys do now."""
        if self.typing:
            words = ["Enter: answer"]
            if not isinstance(self.request, Permission):
                words.append("Ctrl+D: decline")
            return " · ".join([*words, "Esc: back" if self.options else "Esc: later"])
        words = ["1-9 or ↑↓ and Enter: choose"]
        if self.takes_several:
            words.append("Space: tick")
        if self.takes_text:
            words.append("o: other words")
        if not isinstance(self.request, Permission):
            words.append("x: decline")
        return " · ".join([*words, "Esc: later"])

    # -- what a person does -------------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Another option."""
        if self.options:
            self.cursor = (self.cursor + by) % len(self.options)

    def tick(self, number: int | None = None) -> None:
        """Ticks an option, or takes the tick away."""
        at = self.cursor if number is None else number
        if self.takes_several and 0 <= at < len(self.options):
            self.cursor = at
            self.chosen ^= {at}

    def choose(self, number: int | None = None) -> Answer | None:
        """Takes an option.

        Returns:
            The answer; None when more is asked.
        """
        at = self.cursor if number is None else number
        if not 0 <= at < len(self.options):
            return None
        self.cursor = at
        request = self.request
        match request:
            case Permission():
                option = request.options[at]
                if option.option_id in request.takes_words:
                    self._option, self.typing = option.option_id, True
                    return None
                return Chosen(option.option_id)
            case Questions():
                options = request.questions[self._step].options or []
                chosen = sorted(self.chosen) if self.takes_several and self.chosen else [at]
                return self._next_question(tuple(_value_of(options[one]) for one in chosen), None)
            case UrlAsked():
                return UrlOpened() if at == 0 else Declined()
            case FormAsked():
                return None
            case _:
                assert_never(request)

    def type(self, text: str) -> Answer | None:
        """Takes typed text; returns the answer, or None when more is asked."""
        request = self.request
        match request:
            case Permission():
                return Chosen(self._option, text.strip() or None) if self._option is not None else None
            case Questions():
                return self._next_question((), text) if text else None
            case FormAsked():
                return self._next_field(text)
            case UrlAsked():
                return None
            case _:
                assert_never(request)

    def decline(self) -> Answer:
        """Refuses to answer."""
        return Cancelled() if isinstance(self.request, Permission) else Declined()

    def back(self) -> bool:
        """Goes from typing back to choosing; False where there is nothing to go back to."""
        if self.typing and self.options:
            self.typing, self._option = False, None
            return True
        return False

    def _next_question(self, selected: tuple[str, ...], text: str | None) -> Answer | None:
        assert isinstance(self.request, Questions)
        self._answers[self.request.questions[self._step].id] = (selected, text)
        self._step += 1
        if self._step < len(self.request.questions):
            self._begin()
            return None
        return Answered(self._answers)

    def _next_field(self, text: str) -> Answer | None:
        if self._fields:
            field = self._fields[self._step]
            if text.strip():
                try:
                    self._content[field.name] = field.take(text)
                except Misfit as misfit:
                    self.problem = str(misfit)
                    return None
            elif field.required:
                self.problem = "an answer is required here (Ctrl+D declines the whole form)"
                return None
        self._step += 1
        if self._step < len(self._fields):
            self._begin()
            return None
        return FormFilled(Raw(msgspec.json.encode(self._content))) if self._content else Declined()


def _value_of(option: Any) -> str:
    return str(option.value) if option.value is not None else str(option.label)
