"""What the agent asks of a person, and the frames that answer it.

Owns the open requests of a connection: permissions with every option as offered, forms and URLs (which are shown and
never opened), their ids (those of the records), and what each answer is in the protocol's words. Each is answered
once. A URL that a person agrees to open is 'accept', which says no more than that.

Must never know: who answers, records, turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Raw, Struct

from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, part_at, text_of, value_of
from callsheet.harness.acp.asks import Names, option_of
from callsheet.harness.acp.sending import response
from callsheet.harness.acp.shapes import Frame, id_text
from callsheet.seam import (
    Answer,
    Cancelled,
    Chosen,
    Declined,
    FormAsked,
    FormFilled,
    Permission,
    Rejected,
    RequestClosed,
    RequestOpened,
    Send,
    Step,
    UrlAsked,
    UrlOpened,
    Waiting,
)

PERMISSION, ELICITATION = "session/request_permission", "elicitation/create"
ASKS = frozenset({PERMISSION, ELICITATION})
"""Methods by which an agent asks a person."""
NO_TITLE = "Permission"
CANCELLED: dict[str, dict[str, Any]] = {
    PERMISSION: {"outcome": {"outcome": "cancelled"}},
    ELICITATION: {"action": "cancel"},
}


class Ask(Struct):
    """One open request.

    Attributes:
        number: Its JSON-RPC id, as the agent wrote it.
        method: Which kind.
        waiting: What a person sees.
    """

    number: Raw
    method: str
    waiting: Waiting

    def cancelled(self) -> bytes:
        """The frame that answers it with nothing chosen."""
        return response(self.number, CANCELLED[self.method])


class Given(NamedTuple):
    """An answer on its way.

    Attributes:
        frame: What is sent.
        closed: What readers are told.
    """

    frame: bytes
    closed: RequestClosed


class Requests:
    """The requests of one connection."""

    def __init__(self) -> None:
        self.open: dict[str, Ask] = {}
        self._names: dict[str | None, Names] = {}

    def asked(self, frame: Frame, main: str | None) -> Ask | None:
        """A request; None when it cannot be understood.

        Args:
            frame: The request.
            main: The session that a request without one is about.
        """
        params = members_of(frame.params)
        if mark(frame.params) != b"{":
            return None
        session = text_of(params.get("sessionId", ABSENT)) or main
        key, _ = self._names.setdefault(session, Names()).of(frame.id or "", frame.params)
        while key in self.open:
            # The agent uses an id again that still waits: an answer to either goes out under that id.
            key += "'"
        number = Raw(bytes(frame.number))
        if frame.method == PERMISSION:
            return Ask(number, PERMISSION, _permission(key, params))
        waiting = _elicitation(key, params)
        return Ask(number, ELICITATION, waiting) if waiting is not None else None

    def opened(self, ask: Ask) -> list[Step]:
        """Keeps a request until it is answered."""
        self.open[ask.waiting.request_id] = ask
        return [RequestOpened(ask.waiting)]

    def answer(self, request_id: str, answer: Answer) -> Given | Rejected:
        """Answers an open request, if the answer fits it."""
        ask = self.open.get(request_id)
        if ask is None:
            return Rejected("the request is not open any more")
        told = FITS[type(ask.waiting)](ask.waiting, answer)
        if isinstance(told, Rejected):
            return told
        del self.open[request_id]
        result, said = told
        return Given(response(ask.number, result), RequestClosed(request_id, "answered", said))

    def all_cancelled(self) -> list[Step]:
        """Answers every open request with nothing chosen."""
        steps: list[Step] = []
        for key, ask in list(self.open.items()):
            steps += [Send(ask.cancelled()), RequestClosed(key, "answered", "cancelled")]
        self.open.clear()
        return steps

    def taken_back(self, number: str | None) -> list[Step]:
        """The agent cancels a request of its own; it still wants an answer."""
        for key, ask in list(self.open.items()):
            if id_text(ask.number) == number:
                del self.open[key]
                return [Send(ask.cancelled()), RequestClosed(key, "withdrawn", "cancelled")]
        return []

    def ended(self) -> list[Step]:
        """The turn is over: what was not answered will not be."""
        closed: list[Step] = [RequestClosed(key, "ended") for key in self.open]
        self.open.clear()
        return closed


# -- what is asked ----------------------------------------------------------------------------------------------


def _permission(key: str, params: dict[str, Raw]) -> Permission:
    subject = params.get("subject", ABSENT)
    call = members_of(params.get("toolCall", ABSENT)) or members_of(part_at(subject, "toolCall"))
    arguments = call.get("rawInput", ABSENT)
    command = text_of(part_at(subject, "command")) or text_of(part_at(arguments, "command"))
    title = text_of(params.get("title", ABSENT)) or text_of(call.get("title", ABSENT))
    return Permission(
        request_id=key,
        call=text_of(call.get("toolCallId", ABSENT)) or text_of(part_at(subject, "toolCallId")),
        title=title or NO_TITLE,
        command=command,
        description=text_of(params.get("description", ABSENT)),
        options=tuple(
            option
            for item in items_of(params.get("options", ABSENT))
            if (option := option_of(item)) is not None
        ),
        input=Raw(bytes(arguments)) if arguments else None,
    )


def _elicitation(key: str, params: dict[str, Raw]) -> Waiting | None:
    mode = text_of(params.get("mode", ABSENT)) or ("url" if "url" in params else "form")
    title = text_of(params.get("message", ABSENT)) or ""
    call = text_of(params.get("toolCallId", ABSENT))
    url = text_of(params.get("url", ABSENT))
    schema = params.get("requestedSchema", ABSENT)
    if mode == "url" and url:
        return UrlAsked(request_id=key, call=call, title=title, url=url)
    if mode != "form" or mark(schema) != b"{":
        return None
    whole, names = secrets_of(params)
    fields = set(members_of(part_at(schema, "properties")))
    secret = whole or (bool(names) and names == fields)
    return FormAsked(request_id=key, call=call, title=title, schema=Raw(bytes(schema)), secret=secret)


# -- what is answered -------------------------------------------------------------------------------------------

Told = tuple[dict[str, Any], str] | Rejected


def _to_permission(asked: Waiting, answer: Answer) -> Told:
    assert isinstance(asked, Permission)
    if isinstance(answer, Cancelled):
        return CANCELLED[PERMISSION], "cancelled"
    if not isinstance(answer, Chosen):
        return Rejected("a permission is answered by one of its options, or cancelled")
    if answer.option_id not in {option.option_id for option in asked.options}:
        return Rejected(f"no option {answer.option_id} was offered")
    if answer.words is not None:
        return Rejected("no option of this protocol takes words")
    return {"outcome": {"outcome": "selected", "optionId": answer.option_id}}, answer.option_id


def _to_form(asked: Waiting, answer: Answer) -> Told:
    if isinstance(answer, FormFilled):
        if mark(answer.content) != b"{" or not isinstance(value_of(answer.content), dict):
            return Rejected("a form is answered by a JSON object")
        return {"action": "accept", "content": answer.content}, "accept"
    return _refused(asked, answer)


def _to_url(asked: Waiting, answer: Answer) -> Told:
    return ({"action": "accept"}, "accept") if isinstance(answer, UrlOpened) else _refused(asked, answer)


def _refused(asked: Waiting, answer: Answer) -> Told:
    if isinstance(answer, Declined):
        return {"action": "decline"}, "decline"
    if isinstance(answer, Cancelled):
        return CANCELLED[ELICITATION], "cancel"
    what = (
        "a URL is opened, declined or cancelled"
        if isinstance(asked, UrlAsked)
        else "a form is filled, declined or cancelled"
    )
    return Rejected(what)


FITS: dict[type, Callable[[Waiting, Answer], Told]] = {
    Permission: _to_permission,
    FormAsked: _to_form,
    UrlAsked: _to_url,
}
"""How each kind of request takes an answer."""
