"""Requests of the server: approvals, reviews, questions, elicitations.

Owns the names of a thread's requests, permissions with the client's answer as their decision, input requests without
what was asked for as a secret (ASR-283), and the reviews of a model that stand for an approval (decision 6).
``serverRequest/resolved`` says only that a request is gone: no decision. Who answered is not in the frames (ASR-270).

Must never know: results, messages.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.pen import Pen, raw_json, utc_of_ms
from callsheet.harness._port.rpc import Frame, Names
from callsheet.harness.codex.app_server.calls import Calls
from callsheet.harness.codex.app_server.survey import ELICITATION, QUESTIONS
from callsheet.harness.codex.asides import answer_of, questions_in
from callsheet.harness.codex.secrets import questions_of
from callsheet.records import Actor, InputRequest, Native, Option, Permission, Ref, Review, Subject
from callsheet.registry import Registry, first
from callsheet.wire import lossless

APPROVALS = frozenset(
    {
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
    }
)
"""Requests for an approval that name the call."""
MCP_APPROVAL = "mcp_tool_call"
"""An elicitation of this kind asks whether an MCP tool may run."""
SECRET = "the answer to a secret is not kept"
EXTRA = ("kind", "approvalId", "grantRoot", "permissions", "serverName", "_meta")
"""Members of a request for an approval that are worth keeping beside it."""


class Asked(Struct):
    """A request that waits.

    Attributes:
        key: Its requestId.
        derived: Whether the id had to be told apart from an earlier one.
        method: What it asks.
        params: Its parameters.
        ref: The frame.
    """

    key: str
    derived: bool
    method: str
    params: dict[str, Raw]
    ref: Ref


class Asks:
    """The requests of one thread."""

    def __init__(self, pen: Pen, calls: Calls, registry: Registry, version: str | None) -> None:
        self._pen = pen
        self._calls = calls
        self._registry = registry
        self._version = version
        self._words = {
            row.value: row.then
            for row in registry.terminal_status
            if row.entity == "input_request" and row.value
        }
        self._kinds = {row.value: row.then for row in registry.terminal_status if row.entity == "option"}
        self._names = Names()

    def begin(self, frame: Frame) -> Asked | None:
        """A request; None for one that no record is made of."""
        method = frame.method or ""
        if frame.id is None or not (method in APPROVALS or method in (QUESTIONS, ELICITATION)):
            return None
        key, number = self._names.of(frame.id, frame.params)
        params = {member: Raw(bytes(raw)) for member, raw in members_of(frame.params).items()}
        ref = self._pen.ref("request", f"{frame.pointer}/params")
        asked = Asked(key, number > 1, method, params, ref)
        if self._pen.has(f"ask {asked.key}"):
            self._pen.cited()  # delivered again
            self._pen.unmapped(f"{method} (again)")
            return asked
        record: InputRequest | Permission | None
        if method == QUESTIONS:
            record = self._questions(asked)
        elif method == ELICITATION and not self._is_approval(asked):
            record = self._elicitation(asked)
        else:
            record = self._permission(asked)
        if record is None:
            return None
        record.status = "pending"
        self._pen.revise(f"ask {asked.key}", record)
        return asked

    def answered(self, asked: Asked, frame: Frame) -> None:
        """The client's answer; an error, or a word that we do not know, leaves the request unresolved."""
        member = "result" if frame.result else "error"
        ref = self._pen.ref("decision", f"{frame.pointer}/{member}")
        if asked.method == QUESTIONS:
            self._questions_answered(asked, frame, ref)
        elif asked.method == ELICITATION and not self._is_approval(asked):
            self._elicitation_answered(asked, frame, ref)
        else:
            self._decided(asked, frame, ref)

    @staticmethod
    def _is_approval(asked: Asked) -> bool:
        meta = members_of(asked.params.get("_meta", ABSENT))
        return text_of(meta.get("codex_approval_kind", ABSENT)) == MCP_APPROVAL

    # -- approvals ----------------------------------------------------------------------------------------------

    def _permission(self, asked: Asked) -> Permission:
        params = asked.params
        record = Permission(request_id=asked.key, id_source="derived" if asked.derived else "native")
        record.native = Native(refs=[asked.ref])
        record.description = text_of(params.get("reason", ABSENT)) or None
        record.title = text_of(params.get("message", ABSENT)) or None
        call_id = text_of(params.get("approvalId", ABSENT)) or text_of(params.get("itemId", ABSENT))
        command = text_of(params.get("command", ABSENT))
        if call_id is not None:
            record.subject = Subject(call_id=call_id)
            record.native.command = command
        elif command is not None:
            record.subject = Subject(command=command)
        options = [self._option(raw) for raw in items_of(params.get("availableDecisions", ABSENT))]
        record.options = [option for option in options if option is not None] or None
        extra = {name: params[name] for name in EXTRA if name in params and not is_null(params[name])}
        if extra and all(lossless.lossless(bytes(raw)) for raw in extra.values()):
            record.native.extra = raw_json(extra)
        return record

    def _option(self, raw: Raw) -> Option | None:
        """An offered decision: a word, or an object that its only member names."""
        word = text_of(raw) or next(iter(members_of(raw)), None)
        return Option(option_id=word, kind=self._kinds.get(word)) if word else None

    def _decided(self, asked: Asked, frame: Frame, ref: Ref) -> None:
        record = self._permission(asked)
        assert record.native is not None
        record.native.refs.append(ref)
        result = members_of(frame.result)
        decision = value_of(result.get("decision", ABSENT))
        word = next(iter(decision), None) if isinstance(decision, dict) else decision
        small: dict[str, Any] = {
            name: value_of(result[name])
            for name in ("action", "scope", "permissions", "_meta")
            if name in result
        }
        if isinstance(word, str):
            small["decision"] = decision
        rule = first(self._registry.decision, self._version, {"frame": {"result": small}})
        record.decision = rule.decision if rule is not None else None
        record.status = "resolved" if record.decision is not None else "pending"
        if isinstance(word, str) and any(option.option_id == word for option in record.options or ()):
            record.selected_option_id = word
        self._pen.revise(f"ask {asked.key}", record)

    def reviewed(self, params: dict[str, Raw], pointer: str) -> bool:
        """``item/autoApprovalReview``: a model reviews an action in the person's place (decision 6)."""
        pen = self._pen
        review_id = text_of(params.get("reviewId", ABSENT))
        if not review_id:
            return False
        review = members_of(params.get("review", ABSENT))
        word = text_of(review.get("status", ABSENT))
        small = {"frame": {"params": {"reviewId": review_id, "review": {"status": word}}}}
        rule = first(self._registry.decision, self._version, small)
        record = Permission(request_id=review_id, native=pen.native("review", pointer))
        assert record.native is not None
        target = text_of(params.get("targetItemId", ABSENT))
        command = text_of(members_of(params.get("action", ABSENT)).get("command", ABSENT))
        if target:
            record.subject = Subject(call_id=target)
            record.native.command = command
        elif command:
            record.subject = Subject(command=command)
        record.decision = rule.decision if rule is not None else None
        record.status = "pending" if record.decision is None else "resolved"
        if record.decision is not None and rule is not None:
            record.decided_by = rule.decidedBy
            rationale = text_of(review.get("rationale", ABSENT))
            record.reviews = [Review(by=Actor(agent="guardian"), verdict=word, rationale=rationale)]
            record.decided_at = utc_of_ms(value_of(params.get("completedAtMs", ABSENT)))
        pen.revise(f"review {review_id}", record)
        return True

    # -- questions ----------------------------------------------------------------------------------------------

    def _questions(self, asked: Asked) -> InputRequest | None:
        params = asked.params
        questions = questions_in(questions_of({"questions": value_of(params.get("questions", ABSENT))}))
        if not questions:
            return None
        call_id = text_of(params.get("itemId", ABSENT))
        blocking = value_of(params.get("isBlocking", ABSENT))
        record = InputRequest(
            request_id=asked.key,
            id_source="derived" if asked.derived else "native",
            call_id=call_id,
            mode="questions",
            questions=questions,
            blocking=blocking if isinstance(blocking, bool) else None,
        )
        record.native = Native(refs=[asked.ref])
        if call_id is not None and any(question.secret for question in questions):
            self._calls.secret(call_id, asked.ref)
        return record

    def _questions_answered(self, asked: Asked, frame: Frame, ref: Ref) -> None:
        record = self._questions(asked)
        if record is None:
            return
        assert record.native is not None
        record.native.refs.append(ref)
        given = value_of(members_of(frame.result).get("answers", ABSENT))
        if not isinstance(given, dict):
            record.status = "pending"
        else:
            # Without an answer the client declined: that is how this protocol says it.
            record.status = "answered" if given else "declined"
            answers = []
            for question in record.questions or ():
                told = given.get(question.id)
                words = told.get("answers") if isinstance(told, dict) else None
                if question.secret or not isinstance(words, list):
                    continue
                answers.append(answer_of(question, [word for word in words if isinstance(word, str)]))
            record.answers = answers or None
        if any(question.secret for question in record.questions or ()):
            self._pen.capture(record, "answers", "redacted", reason=SECRET)
        self._pen.revise(f"ask {asked.key}", record)

    # -- elicitations -------------------------------------------------------------------------------------------

    def _elicitation(self, asked: Asked) -> InputRequest:
        params = asked.params
        schema = params.get("requestedSchema", ABSENT)
        record = InputRequest(
            request_id=asked.key,
            id_source="derived" if asked.derived else "native",
            mode=text_of(params.get("mode", ABSENT)) or "form",
            message=text_of(params.get("message", ABSENT)),
            url=text_of(params.get("url", ABSENT)),
        )
        record.native = Native(refs=[asked.ref])
        server = text_of(params.get("serverName", ABSENT))
        if server is not None:
            record.native.extra = raw_json({"serverName": server})
        if mark(schema) == b"{" and lossless.lossless(bytes(schema)):
            record.requested_schema = schema
        whole, secret = secrets_of(params)
        if whole or (secret and secret == set(members_of(members_of(schema).get("properties", ABSENT)))):
            record.secret = True
        return record

    def _elicitation_answered(self, asked: Asked, frame: Frame, ref: Ref) -> None:
        record = self._elicitation(asked)
        assert record.native is not None
        record.native.refs.append(ref)
        told = members_of(frame.result)
        record.status = self._words.get(text_of(told.get("action", ABSENT)) or "", "pending")
        content = told.get("content", ABSENT)
        _, secret = secrets_of(asked.params)
        if record.secret or secret:
            self._pen.capture(record, "response", "redacted", reason=SECRET)
        kept = {name: raw for name, raw in members_of(content).items() if name not in secret}
        response = raw_json(kept) if secret else content
        if mark(content) == b"{" and not record.secret and lossless.lossless(bytes(response)):
            record.response = value_of(response)
        self._pen.revise(f"ask {asked.key}", record)
