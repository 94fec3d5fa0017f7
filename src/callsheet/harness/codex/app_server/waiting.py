"""What the server asks of a person, and the frames that answer it.

Owns the open requests of a connection: approvals with every answer that the server takes (it takes more than it
lists: ``acceptForSession`` and ``decline``), permissions, MCP tools that ask by an elicitation, questions, forms,
URLs (shown, never opened). Their ids are those of the records. Each is answered once. No answer carries words.

Must never know: who answers, records, turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, text_of, value_of
from callsheet.harness.codex.app_server.asks import MCP_APPROVAL
from callsheet.harness.codex.app_server.shapes import Frame
from callsheet.harness.codex.app_server.survey import ELICITATION, QUESTIONS
from callsheet.harness.codex.asides import questions_in
from callsheet.harness.codex.secrets import questions_of
from callsheet.records import Option
from callsheet.registry import load
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
    RequestOpened,
    Step,
    UrlAsked,
    UrlOpened,
    Waiting,
)

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
CANCEL = "cancel"
ALWAYS_TAKEN = ("accept", "acceptForSession", "decline", CANCEL)
"""Answers to a command or a patch that the server takes, whatever it lists."""
PERSISTS = (("session", "acceptForSession"), ("always", "acceptAlways"))
"""What an MCP approval may offer to remember, and the option's id here."""


class Ask(Struct):
    """One open request.

    Attributes:
        number: Its JSON-RPC id, as the server wrote it.
        waiting: What a person sees.
        answers: Of an approval: the result that stands for each option.
    """

    number: Raw
    waiting: Waiting
    answers: dict[str, Any] = {}


class Given(Struct):
    """An answer on its way: what is sent, and what readers are told."""

    frame: bytes
    closed: RequestClosed


class Requests:
    """The requests of one connection."""

    def __init__(self) -> None:
        self.open: dict[str, Ask] = {}
        self._kinds = {row.value: row.then for row in load("codex").terminal_status if row.entity == "option"}

    def asked(self, frame: Frame) -> list[Step] | None:
        """Keeps a request until it is answered; None for one that is not understood."""
        key = frame.id or ""
        params = members_of(frame.params)
        if key in self.open:
            return []  # delivered again
        ask = self._ask(frame.method or "", key, Raw(bytes(frame.number)), params)
        if ask is None:
            return None
        self.open[key] = ask
        return [RequestOpened(ask.waiting)]

    def _ask(self, method: str, key: str, number: Raw, params: dict[str, Raw]) -> Ask | None:
        if method in (COMMAND, PATCH):
            return self._approval(method, key, number, params)
        if method == PERMISSIONS:
            return self._permissions(key, number, params)
        if method == QUESTIONS:
            listed = questions_in(questions_of({"questions": value_of(params.get("questions", ABSENT))}))
            call = text_of(params.get("itemId", ABSENT))
            return (
                Ask(number, Questions(request_id=key, call=call, questions=tuple(listed))) if listed else None
            )
        if method == ELICITATION:
            return self._elicitation(key, number, params)
        return None

    def _option(self, word: str, name: str | None = None) -> Option:
        return Option(option_id=word, name=name, kind=self._kinds.get(word))

    def _approval(self, method: str, key: str, number: Raw, params: dict[str, Raw]) -> Ask:
        answers: dict[str, Any] = {}
        options = []
        offered = items_of(params.get("availableDecisions", ABSENT))
        for raw in [*offered, *(Raw(msgspec.json.encode(word)) for word in ALWAYS_TAKEN)]:
            word = text_of(raw) or next(iter(members_of(raw)), None)
            if word and word not in answers:
                answers[word] = {"decision": Raw(bytes(raw))}
                options.append(self._option(word, _rule_in(raw)))
        options.sort(key=lambda option: option.option_id == CANCEL)
        reason = text_of(params.get("reason", ABSENT)) or None
        command = text_of(params.get("command", ABSENT))
        title = "Run a command" if method == COMMAND else "Change files"
        if text_of(params.get("kind", ABSENT)) == "writeStdin":
            title = "Type into a running command"
        call = text_of(params.get("approvalId", ABSENT)) or text_of(params.get("itemId", ABSENT))
        waiting = Permission(
            request_id=key, call=call, title=title, command=command, reason=reason, options=tuple(options)
        )
        return Ask(number, waiting, answers)

    def _permissions(self, key: str, number: Raw, params: dict[str, Raw]) -> Ask:
        asked = members_of(params.get("permissions", ABSENT))
        wanted = Raw(msgspec.json.encode({name: raw for name, raw in asked.items() if not is_null(raw)}))
        answers = {
            "accept": {"permissions": wanted, "scope": "turn"},
            "acceptForSession": {"permissions": wanted, "scope": "session"},
            "decline": {"permissions": {}, "scope": "turn"},
        }
        waiting = Permission(
            request_id=key,
            call=text_of(params.get("itemId", ABSENT)),
            title="Grant permissions",
            reason=text_of(params.get("reason", ABSENT)) or None,
            options=tuple(self._option(word) for word in answers),
            input=wanted,
        )
        return Ask(number, waiting, answers)

    def _elicitation(self, key: str, number: Raw, params: dict[str, Raw]) -> Ask | None:
        title = text_of(params.get("message", ABSENT)) or ""
        meta = members_of(params.get("_meta", ABSENT))
        if text_of(meta.get("codex_approval_kind", ABSENT)) == MCP_APPROVAL:
            return self._tool(key, number, title, meta)
        url = text_of(params.get("url", ABSENT))
        if url:
            return Ask(number, UrlAsked(request_id=key, title=title, url=url))
        schema = params.get("requestedSchema", ABSENT)
        if mark(schema) != b"{":
            return None
        whole, names = secrets_of(params)
        secret = whole or (
            bool(names) and names == set(members_of(members_of(schema).get("properties", ABSENT)))
        )
        return Ask(number, FormAsked(request_id=key, title=title, schema=Raw(bytes(schema)), secret=secret))

    def _tool(self, key: str, number: Raw, title: str, meta: dict[str, Raw]) -> Ask:
        told = value_of(meta.get("persist", ABSENT))
        kept = told if isinstance(told, list) else [told]
        answers: dict[str, Any] = {"accept": {"action": "accept", "content": {}, "_meta": None}}
        options = [self._option("accept")]
        for word, name in PERSISTS:
            if word in kept:
                answers[name] = {"action": "accept", "content": {}, "_meta": {"persist": word}}
                options.append(Option(option_id=name, kind=f"allow_{word}"))
        for word in ("decline", CANCEL):
            answers[word] = {"action": word, "content": None, "_meta": None}
            options.append(self._option(word))
        arguments = meta.get("tool_params", ABSENT)
        waiting = Permission(
            request_id=key,
            title=title or "Run an MCP tool",
            options=tuple(options),
            input=Raw(bytes(arguments)) if arguments else None,
        )
        return Ask(number, waiting, answers)

    # -- what is answered ---------------------------------------------------------------------------------------

    def answer(self, request_id: str, answer: Answer) -> Given | Rejected:
        """Answers an open request, if the answer fits it."""
        ask = self.open.get(request_id)
        if ask is None:
            return Rejected("the request is not open any more")
        told = FITS[type(ask.waiting)](ask, answer)
        if isinstance(told, Rejected):
            return told
        del self.open[request_id]
        result, said = told
        frame = msgspec.json.encode({"id": ask.number, "result": result})
        return Given(frame, RequestClosed(request_id, "answered", said))

    def resolved(self, request_id: str | None) -> list[Step]:
        """The server does not wait for an answer any more; it does not say why."""
        if request_id is None or self.open.pop(request_id, None) is None:
            return []
        return [RequestClosed(request_id, "withdrawn", "resolved")]

    def ended(self) -> list[Step]:
        """The turn is over: what was not answered will not be."""
        closed: list[Step] = [RequestClosed(key, "ended") for key in self.open]
        self.open.clear()
        return closed


def _rule_in(raw: Raw) -> str | None:
    """The rule that an offered decision would add."""
    inner = next(iter(members_of(raw).values()), ABSENT)
    rule = value_of(members_of(inner).get("execpolicy_amendment", ABSENT))
    if isinstance(rule, list) and all(isinstance(word, str) for word in rule):
        return " ".join(rule)
    host = text_of(members_of(members_of(inner).get("network_policy_amendment", ABSENT)).get("host", ABSENT))
    return host or None


Told = tuple[Any, str] | Rejected


def _to_permission(ask: Ask, answer: Answer) -> Told:
    chosen = (
        answer.option_id if isinstance(answer, Chosen) else CANCEL if isinstance(answer, Cancelled) else None
    )
    if chosen is None:
        return Rejected("a permission is answered by one of its options, or cancelled")
    if chosen not in ask.answers:
        return Rejected(f"no option {chosen} was offered")
    if isinstance(answer, Chosen) and answer.words is not None:
        return Rejected("no option of this protocol takes words; steer the turn with them")
    return ask.answers[chosen], chosen


def _to_questions(ask: Ask, answer: Answer) -> Told:
    asked = ask.waiting
    assert isinstance(asked, Questions)
    if isinstance(answer, Declined | Cancelled):
        return {"answers": {}}, "declined"
    if not isinstance(answer, Answered):
        return Rejected("questions are answered one by one, or declined")
    known = {question.id for question in asked.questions}
    if strange := sorted(set(answer.answers) - known):
        return Rejected(f"no question {strange[0]} was asked")
    given = {
        name: {"answers": [*chosen, *([words] if words else [])]}
        for name, (chosen, words) in answer.answers.items()
    }
    return {"answers": given}, "answered"


def _to_form(_ask: Ask, answer: Answer) -> Told:
    if isinstance(answer, FormFilled):
        if not isinstance(value_of(answer.content), dict):
            return Rejected("a form is answered by a JSON object")
        return {"action": "accept", "content": answer.content, "_meta": None}, "accept"
    return _refused(answer, "a form is filled, declined or cancelled")


def _to_url(_ask: Ask, answer: Answer) -> Told:
    if isinstance(answer, UrlOpened):
        return {"action": "accept", "content": None, "_meta": None}, "accept"
    return _refused(answer, "a URL is opened, declined or cancelled")


def _refused(answer: Answer, what: str) -> Told:
    word = "decline" if isinstance(answer, Declined) else CANCEL if isinstance(answer, Cancelled) else None
    return ({"action": word, "content": None, "_meta": None}, word) if word else Rejected(what)


FITS: dict[type, Callable[[Ask, Answer], Told]] = {
    Permission: _to_permission,
    Questions: _to_questions,
    FormAsked: _to_form,
    UrlAsked: _to_url,
}
"""How each kind of request takes an answer."""
