"""What a live agent asks of a person, while it waits: the same for every protocol.

Owns the open requests of a connection, each answered once; which answers fit which kind of request; and the words for
one that does not fit. What is asked, and what an answer is on the wire, is the adapter's: a table from the kind of
request to what makes the answer, and the frame around it. A URL that a person agrees to open is 'accept', which says
no more than that.

Must never know: the protocol, who answers, records, turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Raw, Struct

from callsheet.harness._port.parts import mark, value_of
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
    Rejected,
    RequestClosed,
    UrlAsked,
    UrlOpened,
    Waiting,
)

Told = tuple[Any, str] | Rejected
"""An answer in the protocol's shape and in its word, or why it does not fit."""


class Ask(Struct, kw_only=True):
    """One open request.

    Attributes:
        waiting: What a person sees.
        wire: The request's id, as an answer repeats it.
        members: What of the request an answer needs.
        answers: Of a permission: the answer that stands for each option, where the request makes them.
        unanswered: The frame that says that nobody decides.
    """

    waiting: Waiting
    wire: Any
    unanswered: bytes
    members: dict[str, Raw] = {}
    answers: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """Its id in the records."""
        return self.waiting.request_id


Fit = Callable[[Ask, Answer], Told]


class Given(NamedTuple):
    """An answer on its way.

    Attributes:
        frame: What is sent.
        closed: What readers are told.
    """

    frame: bytes
    closed: RequestClosed


class Asking:
    """The requests of one connection.

    Args:
        fits: How each kind of request takes an answer.
        frame: The frame around an answer, from the request's ``wire`` and the answer.
    """

    def __init__(self, fits: Mapping[type, Fit], frame: Callable[[Any, Any], bytes]) -> None:
        self.open: dict[str, Ask] = {}
        self._fits = fits
        self._frame = frame

    def keep(self, ask: Ask) -> None:
        """Keeps a request until it is answered."""
        self.open[ask.key] = ask

    def answer(self, request_id: str, answer: Answer) -> Given | Rejected:
        """Answers an open request, if the answer fits it."""
        ask = self.open.get(request_id)
        if ask is None:
            return Rejected("the request is not open any more")
        told = self._fits[type(ask.waiting)](ask, answer)
        if isinstance(told, Rejected):
            return told
        del self.open[request_id]
        result, said = told
        return Given(self._frame(ask.wire, result), RequestClosed(request_id, "answered", said))

    def withdrawn(self, is_it: Callable[[Ask], bool]) -> Ask | None:
        """The agent takes a request back: it is not open any more."""
        found = next((ask for ask in self.open.values() if is_it(ask)), None)
        return None if found is None else self.open.pop(found.key)

    def all(self) -> list[Ask]:
        """Takes every open request: none is open any more."""
        asked = list(self.open.values())
        self.open.clear()
        return asked


# -- answers that fit ---------------------------------------------------------------------------------------------


def option_in(ask: Ask, answer: Answer) -> str | Rejected:
    """The option that a permission is answered with; ``Cancelled`` is no option."""
    asked = ask.waiting
    assert isinstance(asked, Permission)
    if not isinstance(answer, Chosen):
        return Rejected("a permission is answered by one of its options, or cancelled")
    if answer.option_id not in {option.option_id for option in asked.options}:
        return Rejected(f"no option {answer.option_id} was offered")
    if answer.words is not None and answer.option_id not in asked.takes_words:
        return Rejected(f"the option {answer.option_id} takes no words")
    return answer.option_id


def answers_in(ask: Ask, answer: Answer) -> dict[str, tuple[str, ...]] | Rejected:
    """What each question is answered with: the chosen labels, and what was typed."""
    asked = ask.waiting
    assert isinstance(asked, Questions)
    if not isinstance(answer, Answered):
        return Rejected("questions are answered one by one, or declined")
    if strange := sorted(set(answer.answers) - {question.id for question in asked.questions}):
        return Rejected(f"no question {strange[0]} was asked")
    return {name: (*chosen, *([words] if words else [])) for name, (chosen, words) in answer.answers.items()}


def action_of(action: str, content: Raw | None) -> dict[str, Any]:
    """The answer to an MCP elicitation."""
    return {"action": action} if content is None else {"action": action, "content": content}


def elicited(shape: Callable[[str, Raw | None], Any] = action_of) -> dict[type, Fit]:
    """How forms and URLs take an answer, in the words of an MCP elicitation.

    Args:
        shape: The answer, from its action and the filled form.
    """

    def to_form(_ask: Ask, answer: Answer) -> Told:
        if not isinstance(answer, FormFilled):
            return refused(answer, "a form is filled, declined or cancelled")
        if mark(answer.content) != b"{" or not isinstance(value_of(answer.content), dict):
            return Rejected("a form is answered by a JSON object")
        return shape("accept", answer.content), "accept"

    def to_url(_ask: Ask, answer: Answer) -> Told:
        if isinstance(answer, UrlOpened):
            return shape("accept", None), "accept"
        return refused(answer, "a URL is opened, declined or cancelled")

    def refused(answer: Answer, what: str) -> Told:
        word = {Declined: "decline", Cancelled: "cancel"}.get(type(answer))
        return (shape(word, None), word) if word else Rejected(what)

    return {FormAsked: to_form, UrlAsked: to_url}
