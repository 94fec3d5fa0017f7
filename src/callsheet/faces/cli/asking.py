"""Requests on a plain terminal: what is asked, the options numbered, one line read.

Owns ``TerminalPort`` (``live.AnswerPort``), and ``InOrder``, which keeps its questions and printed lines in order. A
key pressed here is the user's (decision 16). What it reads as a secret is not shown. A line that fits nothing is asked
for again; an empty one leaves a request declined, but in a form's required field only once it was said that it would.

Must never know: protocols.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import msgspec
from msgspec import Raw

from callsheet.live.answers import AnswerPort
from callsheet.live.forms import Field, Misfit, fields_of
from callsheet.paint.safe import visible
from callsheet.rows.talk import option_words
from callsheet.seam import (
    Answer,
    Answered,
    Cancelled,
    Chosen,
    Declined,
    Event,
    FormAsked,
    FormFilled,
    Permission,
    Questions,
    RequestOpened,
    UrlAsked,
    UrlOpened,
    Waiting,
)


class TerminalPort:
    """Asks the person at the terminal, one request after another."""

    by = "user"

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._typed = bytearray()

    async def answer(self, request: Waiting) -> Answer | None:
        """The person's answer."""
        async with self._one:
            match request:
                case Permission():
                    return await self._permission(request)
                case Questions():
                    return await self._questions(request)
                case FormAsked():
                    return await self._form(request)
                case UrlAsked():
                    _say(f"? {request.title}: {request.url}")
                    words = await self._read("open it yourself; did you? [y/N] ")
                    return UrlOpened() if words.strip().lower() in ("y", "yes") else Declined()

    async def _read(self, prompt: str, *, hidden: bool = False) -> str:
        """A line from the terminal; given up when the request is, without a thread that would go on waiting."""
        terminal = sys.stdin.fileno()
        loop = asyncio.get_running_loop()
        line: asyncio.Future[bytes] = loop.create_future()

        def take() -> None:
            data = os.read(terminal, 4096)
            self._typed += data
            if not line.done() and (not data or b"\n" in self._typed):
                line.set_result(self._line())

        with _unseen(terminal) if hidden else nullcontext():
            sys.stderr.write(prompt)
            sys.stderr.flush()
            if b"\n" in self._typed:
                return self._line().decode("utf-8", "replace")
            loop.add_reader(terminal, take)
            try:
                return (await line).decode("utf-8", "replace")
            finally:
                loop.remove_reader(terminal)

    def _line(self) -> bytes:
        """The first line that was typed; what was typed ahead waits for the next question."""
        line, end, rest = bytes(self._typed).partition(b"\n")
        self._typed = bytearray(rest)
        return line + end

    async def _permission(self, request: Permission) -> Answer:
        _say(f"? {request.title}")
        for words in (request.command, request.description, request.reason):
            if words:
                _say(f"    {words}")
        for number, option in enumerate(request.options, 1):
            _say(f"  {number}  {option_words(option)}")
        while True:
            words = (await self._read("choose: ")).strip()
            if not words:
                return Cancelled()
            if not words.isascii() or not words.isdigit() or not 1 <= int(words) <= len(request.options):
                _say(f"  a number from 1 to {len(request.options)} (an empty line cancels)")
                continue
            option = request.options[int(words) - 1]
            takes = option.option_id in request.takes_words
            said = await self._read("words for the agent: ") if takes else ""
            return Chosen(option.option_id, said.strip() or None)

    async def _questions(self, request: Questions) -> Answer:
        answers: dict[str, tuple[tuple[str, ...], str | None]] = {}
        for question in request.questions:
            options = question.options or []
            _say(f"? {question.header or request.title or ''} {question.text}".replace("?  ", "? "))
            for number, option in enumerate(options, 1):
                _say(f"  {number}  {option.label}")
            words = (await self._read("answer: ", hidden=bool(question.secret))).strip()
            if not words:
                return Declined()
            numbers = [
                int(word) for word in words.replace(",", " ").split() if word.isascii() and word.isdigit()
            ]
            if options and numbers and all(1 <= number <= len(options) for number in numbers):
                labels = tuple(options[number - 1].label for number in numbers)
                answers[question.id] = (labels if question.multi_select else labels[:1], None)
            else:
                answers[question.id] = ((), words)
        return Answered(answers)

    async def _form(self, request: FormAsked) -> Answer:
        _say(f"? {request.title}")
        content: dict[str, object] = {}
        for field in fields_of(request):
            if field.about:
                _say(f"  {field.about}")
            _say(f"  {field.wants()}")
            value = await self._value(field)
            if value is not None:
                content[field.name] = value
            elif field.required:
                _say("  the form is declined")
                return Declined()
        return FormFilled(Raw(msgspec.json.encode(content))) if content else Declined()

    async def _value(self, field: Field) -> object:
        """What was typed for a field, once it fits; None for an empty line that may stand, or when the input ended."""
        told = not field.required
        while True:
            words = await self._read(f"{visible(field.label)}: ", hidden=field.secret)
            if not words or (told and not words.strip()):
                return None
            if not words.strip():
                _say("  this is required (another empty line declines the form)")
                told = True
                continue
            try:
                return field.take(words.rstrip("\r\n"))
            except Misfit as error:
                _say(f"  {error} (an empty line {'declines' if field.required else 'leaves it out'})")
                told = True


class InOrder:
    """Asks between the lines that are printed on the same terminal.

    What is older stands before the question; what is newer waits until it is answered or withdrawn.

    Args:
        port: Asks.
    """

    def __init__(self, port: AnswerPort) -> None:
        self._port = port
        self._turns: dict[str, asyncio.Event] = {}
        self.terminal = asyncio.Lock()
        """Held by whoever writes to the terminal."""

    @property
    def by(self) -> str:
        """Who answers."""
        return self._port.by

    async def answer(self, request: Waiting) -> Answer | None:
        """The answer of the port, which is asked when all that is older is printed."""
        try:
            await self._turn(request.request_id).wait()
            async with self.terminal:
                return await self._port.answer(request)
        finally:
            self._turns.pop(request.request_id, None)

    def printed(self, event: Event) -> None:
        """Everything up to this event is printed."""
        if isinstance(event, RequestOpened):
            self._turn(event.request.request_id).set()

    def _turn(self, request_id: str) -> asyncio.Event:
        return self._turns.setdefault(request_id, asyncio.Event())


def _say(words: str) -> None:
    sys.stderr.write("\n".join(visible(line) for line in words.splitlines()) + "\n")
    sys.stderr.flush()


@contextmanager
def _unseen(terminal: int) -> Iterator[None]:
    """While this is open, what is typed is not shown."""
    before = termios.tcgetattr(terminal)
    quiet = list(before)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stderr.write("\n")
