"""What the agent asks its host, and the frames that answer it.

Owns: ``can_use_tool`` (a permission, or the questions of AskUserQuestion) and MCP elicitations, and how each takes an
answer. Ids and options are those of the records (``asks``). Only a refusal takes words: they reach the model as the
call's result. A call that nobody decides is answered with an error, as the protocol has no word for it; an
elicitation has 'cancel'.

Must never know: who answers, records, turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port.asking import (
    Ask,
    Asking,
    Fit,
    Told,
    action_of,
    answers_in,
    elicited,
    option_in,
)
from callsheet.harness._port.client import UNDECIDED
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of, value_of
from callsheet.harness.claude_code.asides import ASKS, questions_of
from callsheet.harness.claude_code.stream.asks import ALL, DENY, options_of, secrets_in
from callsheet.seam import (
    Answer,
    Chosen,
    Declined,
    FormAsked,
    Permission,
    Questions,
    Rejected,
    UrlAsked,
    Waiting,
)

REFUSED = "Permission was refused."
"""What the model is told of a refusal without words: the protocol wants some."""
UNANSWERED = "The questions were not answered."


class Requests(Asking):
    """The requests of one connection."""

    def __init__(self) -> None:
        super().__init__(FITS, success)

    def asked(self, name: str, members: dict[str, Raw]) -> Ask | None:
        """A request; None for one that is not understood."""
        kept = {member: Raw(bytes(raw)) for member, raw in members.items()}
        make, nobody = MADE.get(text_of(members.get("subtype", ABSENT)) or "", (None, None))
        waiting = make(name, kept) if make is not None else None
        if waiting is None:
            return None
        unanswered = failure(name, UNDECIDED) if nobody is None else success(name, nobody)
        return Ask(waiting=waiting, wire=name, unanswered=unanswered, members=kept)


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


MADE: dict[str, tuple[Callable[[str, dict[str, Raw]], Waiting | None], Any]] = {
    "can_use_tool": (_permission, None),
    "elicitation": (_elicitation, action_of("cancel", None)),
}
"""What a person sees of each kind of request, and the answer of one that nobody decides; None for an error."""


# -- how it is answered -------------------------------------------------------------------------------------------


def _to_permission(ask: Ask, answer: Answer) -> Told:
    chosen = option_in(ask, answer)
    if isinstance(chosen, Rejected):
        return chosen
    if chosen == DENY:
        words = answer.words if isinstance(answer, Chosen) else None
        return {"behavior": "deny", "message": words or REFUSED}, DENY
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
    given = answers_in(ask, answer)
    if isinstance(given, Rejected):
        return given
    texts = {question.id: question.text for question in waiting.questions}
    answers = {texts[name]: ", ".join(words) for name, words in given.items()}
    asked = members_of(ask.members.get("input", ABSENT))
    return {"behavior": "allow", "updatedInput": {**asked, "answers": answers}}, "answered"


FITS: dict[type, Fit] = {Permission: _to_permission, Questions: _to_questions, **elicited()}
"""How each kind of request takes an answer."""
