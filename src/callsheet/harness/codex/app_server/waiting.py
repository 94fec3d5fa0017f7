"""What the server asks of a person, and the frames that answer it.

Owns: approvals with every answer that the server takes (it takes more than it
lists: ``acceptForSession`` and ``decline``), permissions, MCP tools that ask by an elicitation, questions, forms,
URLs (shown, never opened). Their ids are those of the records. No answer carries words. An approval that nobody
decides is answered with an error, as the protocol has no word for it; an elicitation has 'cancel'.

Must never know: who answers, records, turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port.asking import Ask, Asking, Fit, Told, answers_in, elicited, option_in
from callsheet.harness._port.client import UNDECIDED
from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.rpc import CANCELLED, Frame, Names, Rpc
from callsheet.harness.codex.app_server.asks import MCP_APPROVAL
from callsheet.harness.codex.app_server.survey import ELICITATION, QUESTIONS
from callsheet.harness.codex.asides import questions_in
from callsheet.harness.codex.secrets import questions_of
from callsheet.records import Option
from callsheet.registry import load
from callsheet.seam import (
    Answer,
    Cancelled,
    Chosen,
    Declined,
    FormAsked,
    Permission,
    Questions,
    Rejected,
    UrlAsked,
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


RPC = Rpc()
"""How frames are written."""
Made = tuple[Waiting, dict[str, Any]] | None
"""What a person sees, and the answer that stands for each option; None for what is not understood."""


class Requests(Asking):
    """The requests of one connection."""

    def __init__(self) -> None:
        super().__init__(FITS, RPC.response)
        self._kinds = {row.value: row.then for row in load("codex").terminal_status if row.entity == "option"}
        self._names: dict[str | None, Names] = {}
        self._made: dict[str, Callable[[str, str, dict[str, Raw]], Made]] = {
            COMMAND: self._approval,
            PATCH: self._approval,
            PERMISSIONS: self._permissions,
            QUESTIONS: self._questions,
            ELICITATION: self._elicitation,
        }

    def asked(self, frame: Frame) -> Ask | None:
        """A request; None for one that is not understood."""
        make = self._made.get(frame.method or "")
        if make is None or frame.id is None:
            return None
        params = members_of(frame.params)
        thread = text_of(params.get("threadId", ABSENT))
        key, _ = self._names.setdefault(thread, Names()).of(frame.id, frame.params)
        made = make(frame.method or "", key, params)
        if made is None:
            return None
        number = Raw(bytes(frame.number))
        if frame.method == ELICITATION:
            nobody = RPC.response(number, _elicitation_answer(CANCEL, None))
        else:
            nobody = RPC.refusal(number, CANCELLED, UNDECIDED)
        return Ask(waiting=made[0], wire=number, unanswered=nobody, answers=made[1])

    def _option(self, word: str, name: str | None = None) -> Option:
        return Option(option_id=word, name=name, kind=self._kinds.get(word))

    def _approval(self, method: str, key: str, params: dict[str, Raw]) -> Made:
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
        return waiting, answers

    def _permissions(self, _method: str, key: str, params: dict[str, Raw]) -> Made:
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
        return waiting, answers

    def _elicitation(self, _method: str, key: str, params: dict[str, Raw]) -> Made:
        title = text_of(params.get("message", ABSENT)) or ""
        meta = members_of(params.get("_meta", ABSENT))
        if text_of(meta.get("codex_approval_kind", ABSENT)) == MCP_APPROVAL:
            return self._tool(key, title, meta)
        url = text_of(params.get("url", ABSENT))
        if url:
            return UrlAsked(request_id=key, title=title, url=url), {}
        schema = params.get("requestedSchema", ABSENT)
        if mark(schema) != b"{":
            return None
        whole, names = secrets_of(params)
        secret = whole or (
            bool(names) and names == set(members_of(members_of(schema).get("properties", ABSENT)))
        )
        return FormAsked(request_id=key, title=title, schema=Raw(bytes(schema)), secret=secret), {}

    def _tool(self, key: str, title: str, meta: dict[str, Raw]) -> Made:
        told = value_of(meta.get("persist", ABSENT))
        kept = told if isinstance(told, list) else [told]
        answers: dict[str, Any] = {"accept": {"action": "accept", "content": {}, "_meta": None}}
        options = [self._option("accept")]
        for word, name in PERSISTS:
            if word in kept:
                answers[name] = {"action": "accept", "content": {}, "_meta": {"persist": word}}
                options.append(Option(option_id=name, kind=f"allow_{word}"))
        for word in ("decline", CANCEL):
            answers[word] = _elicitation_answer(word, None)
            options.append(self._option(word))
        arguments = meta.get("tool_params", ABSENT)
        waiting = Permission(
            request_id=key,
            title=title or "Run an MCP tool",
            options=tuple(options),
            input=Raw(bytes(arguments)) if arguments else None,
        )
        return waiting, answers

    def _questions(self, _method: str, key: str, params: dict[str, Raw]) -> Made:
        listed = questions_in(questions_of({"questions": value_of(params.get("questions", ABSENT))}))
        call = text_of(params.get("itemId", ABSENT))
        return (Questions(request_id=key, call=call, questions=tuple(listed)), {}) if listed else None


def _rule_in(raw: Raw) -> str | None:
    """The rule that an offered decision would add."""
    inner = next(iter(members_of(raw).values()), ABSENT)
    rule = value_of(members_of(inner).get("execpolicy_amendment", ABSENT))
    if isinstance(rule, list) and all(isinstance(word, str) for word in rule):
        return " ".join(rule)
    host = text_of(members_of(members_of(inner).get("network_policy_amendment", ABSENT)).get("host", ABSENT))
    return host or None


# -- what is answered ---------------------------------------------------------------------------------------------


def _to_permission(ask: Ask, answer: Answer) -> Told:
    if isinstance(answer, Cancelled) and CANCEL in ask.answers:
        answer = Chosen(CANCEL)
    chosen = option_in(ask, answer)
    return chosen if isinstance(chosen, Rejected) else (ask.answers[chosen], chosen)


def _to_questions(ask: Ask, answer: Answer) -> Told:
    if isinstance(answer, Declined | Cancelled):
        return {"answers": {}}, "declined"
    given = answers_in(ask, answer)
    if isinstance(given, Rejected):
        return given
    return {"answers": {name: {"answers": list(words)} for name, words in given.items()}}, "answered"


def _elicitation_answer(action: str, content: Raw | None) -> dict[str, Any]:
    return {"action": action, "content": content, "_meta": None}


FITS: dict[type, Fit] = {
    Permission: _to_permission,
    Questions: _to_questions,
    **elicited(_elicitation_answer),
}
"""How each kind of request takes an answer."""
