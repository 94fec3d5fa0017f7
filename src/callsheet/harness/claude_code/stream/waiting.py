"""What the agent asks its host, and the frames that answer it.

Owns the open requests of a connection: ``can_use_tool`` (a permission, or the questions of AskUserQuestion) and MCP
elicitations. Ids and options are those of the records (``asks``). Each request is answered once. Only a refusal takes
words: they reach the model as the call's result.

Must never know: who answers, records, turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of, value_of
from callsheet.harness.claude_code.asides import ASKS, questions_of
from callsheet.harness.claude_code.stream.asks import ALL, DENY, options_of, secrets_in
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

REFUSED = "Permission was refused."
"""What the model is told of a refusal without words: the protocol wants some."""
UNANSWERED = "The questions were not answered."


class Ask(Struct):
    """One open request: what a person sees, and the members of the frame."""

    waiting: Waiting
    members: dict[str, Raw]


class Given(Struct):
    """An answer on its way: what is sent, and what readers are told."""

    frame: bytes
    closed: RequestClosed


class Requests:
    """The requests of one connection."""

    def __init__(self) -> None:
        self.open: dict[str, Ask] = {}

    def asked(self, name: str, members: dict[str, Raw]) -> Waiting | None:
        """Keeps a request until it is answered; None for one that is not understood."""
        kept = {member: Raw(bytes(raw)) for member, raw in members.items()}
        made = {"can_use_tool": _permission, "elicitation": _elicitation}.get(
            text_of(members.get("subtype", ABSENT)) or ""
        )
        waiting = made(name, kept) if made is not None else None
        if waiting is not None:
            self.open[name] = Ask(waiting, kept)
        return waiting

    def answer(self, name: str, answer: Answer) -> Given | Rejected:
        """Answers an open request, if the answer fits it; ``Cancelled`` is an interrupt, and none of these."""
        ask = self.open.get(name)
        if ask is None:
            return Rejected("the request is not open any more")
        told = FITS[type(ask.waiting)](ask, answer)
        if isinstance(told, Rejected):
            return told
        del self.open[name]
        response, said = told
        return Given(success(name, response), RequestClosed(name, "answered", said))

    def withdrawn(self, name: str) -> RequestClosed | None:
        """The agent takes a request back."""
        return RequestClosed(name, "withdrawn", "cancelled") if self.open.pop(name, None) else None

    def ended(self) -> list[RequestClosed]:
        """The turn is over: what was not answered will not be."""
        closed = [RequestClosed(name, "ended") for name in self.open]
        self.open.clear()
        return closed


def success(name: str, response: Any) -> bytes:
    """The frame of an answer."""
    told = {"subtype": "success", "request_id": name, "response": response}
    return msgspec.json.encode({"type": "control_response", "response": told})


def failure(name: str, error: str) -> bytes:
    """The frame that says why there is no answer."""
    told = {"subtype": "error", "request_id": name, "error": error}
    return msgspec.json.encode({"type": "control_response", "response": told})


# -- what is asked ------------------------------------------------------------------------------------------------


def _permission(name: str, members: dict[str, Raw]) -> Waiting:
    call = text_of(members.get("tool_use_id", ABSENT))
    tool = text_of(members.get("tool_name", ABSENT)) or ""
    asked = value_of(members.get("input", ABSENT))
    asked = asked if isinstance(asked, dict) else {}
    if tool == ASKS and (questions := questions_of(asked.get("questions"))):
        return Questions(request_id=name, call=call, questions=tuple(questions))
    command = asked.get("command")
    return Permission(
        request_id=name,
        call=call,
        title=text_of(members.get("display_name", ABSENT)) or tool or "Use a tool",
        command=command if isinstance(command, str) else None,
        description=text_of(members.get("description", ABSENT)),
        reason=text_of(members.get("decision_reason", ABSENT)),
        options=tuple(options_of(members.get("permission_suggestions", ABSENT))),
        takes_words=frozenset({DENY}),
        input=members.get("input"),
    )


def _elicitation(name: str, members: dict[str, Raw]) -> Waiting | None:
    title = text_of(members.get("message", ABSENT)) or ""
    url = text_of(members.get("url", ABSENT))
    if url is not None:
        return UrlAsked(request_id=name, title=title, url=url)
    schema = members.get("requested_schema", ABSENT)
    if mark(schema) != b"{":
        return None
    whole, names = secrets_in(members)
    asked_for = set(members_of(members_of(schema).get("properties", ABSENT)))
    secret = whole or bool(names and names == asked_for)
    return FormAsked(request_id=name, title=title, schema=schema, secret=secret)


# -- how it is answered -------------------------------------------------------------------------------------------

Told = tuple[Any, str] | Rejected


def _to_permission(ask: Ask, answer: Answer) -> Told:
    waiting = ask.waiting
    assert isinstance(waiting, Permission)
    if not isinstance(answer, Chosen):
        return Rejected("a permission is answered by one of its options, or cancelled")
    chosen = answer.option_id
    if chosen not in {option.option_id for option in waiting.options}:
        return Rejected(f"no option {chosen} was offered")
    if chosen == DENY:
        return {"behavior": "deny", "message": answer.words or REFUSED}, DENY
    if answer.words is not None:
        return Rejected("only a refusal takes words")
    told: dict[str, Any] = {"behavior": "allow", "updatedInput": ask.members.get("input", Raw(b"{}"))}
    number = chosen.partition(":")[2]
    if number:
        offered = items_of(ask.members.get("permission_suggestions", ABSENT))
        told["updatedPermissions"] = offered if number == ALL else [offered[int(number)]]
    return told, chosen


def _to_questions(ask: Ask, answer: Answer) -> Told:
    waiting = ask.waiting
    assert isinstance(waiting, Questions)
    if isinstance(answer, Declined):
        return {"behavior": "deny", "message": UNANSWERED}, "declined"
    if not isinstance(answer, Answered):
        return Rejected("questions are answered one by one, or declined")
    texts = {question.id: question.text for question in waiting.questions}
    if strange := sorted(set(answer.answers) - set(texts)):
        return Rejected(f"no question {strange[0]} was asked")
    given = {
        texts[name]: ", ".join([*chosen, *([words] if words else [])])
        for name, (chosen, words) in answer.answers.items()
    }
    asked = members_of(ask.members.get("input", ABSENT))
    return {"behavior": "allow", "updatedInput": {**asked, "answers": given}}, "answered"


def _to_form(_ask: Ask, answer: Answer) -> Told:
    if isinstance(answer, FormFilled):
        if not isinstance(value_of(answer.content), dict):
            return Rejected("a form is answered by a JSON object")
        return {"action": "accept", "content": answer.content}, "accept"
    return _refused(answer, "a form is filled, declined or cancelled")


def _to_url(_ask: Ask, answer: Answer) -> Told:
    if isinstance(answer, UrlOpened):
        return {"action": "accept"}, "accept"
    return _refused(answer, "a URL is opened, declined or cancelled")


def _refused(answer: Answer, what: str) -> Told:
    word = "decline" if isinstance(answer, Declined) else "cancel" if isinstance(answer, Cancelled) else None
    return ({"action": word}, word) if word else Rejected(what)


FITS: dict[type, Callable[[Ask, Answer], Told]] = {
    Permission: _to_permission,
    Questions: _to_questions,
    FormAsked: _to_form,
    UrlAsked: _to_url,
}
"""How each kind of request takes an answer."""
