"""Requests that an agent makes of a person: permissions and elicitations.

Owns the names of a session's requests, permission records with the client's answer as their decision, input requests,
and what marks a value as secret (ASR-283). Who answered is not in the frames (ASR-270).

Must never know: results, messages.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.pen import Pen, raw_json
from callsheet.harness._port.rpc import Id, Names
from callsheet.harness.acp.calls import Calls, Version
from callsheet.harness.acp.held import native_of
from callsheet.records import InputRequest, Option, Permission, Ref, Subject
from callsheet.registry import Registry
from callsheet.wire import lossless

REFUSALS = ("reject_once", "reject_always")


class Asked(Struct):
    """One request.

    Attributes:
        key: Its requestId.
        derived: Whether the id had to be told apart from an earlier one.
        ref: The frame.
        exact: Its JSON text, where it has unpaired surrogates.
    """

    key: str
    derived: bool
    ref: Ref
    members: dict[str, Raw]
    call_id: str | None = None
    exact: str | None = None


class Asks:
    """The requests of one session."""

    def __init__(self, pen: Pen, calls: Calls, registry: Registry) -> None:
        self._pen = pen
        self._calls = calls
        self._words = {
            row.value: row.then
            for row in registry.terminal_status
            if row.entity == "input_request" and row.value
        }
        self._names = Names()

    def begin(self, name: Id, params: Raw, pointer: str) -> Asked:
        """The identity of a request at hand."""
        key, number = self._names.of(name, params)
        ref = self._pen.ref("request", f"{pointer}/params")
        kept = {member: Raw(bytes(raw)) for member, raw in members_of(params).items()}
        return Asked(key, number > 1, ref, kept)

    # -- permissions --------------------------------------------------------------------------------------------

    def permission(self, asked: Asked, pointer: str, version: Version) -> None:
        """A ``session/request_permission``: pending, and maybe the first that is heard of its call."""
        subject = members_of(asked.members.get("subject", ABSENT))
        call = asked.members.get("toolCall", ABSENT)
        where = f"{pointer}/params/toolCall"
        if not call and text_of(subject.get("type", ABSENT)) == "tool_call":
            call, where = subject.get("toolCall", ABSENT), f"{pointer}/params/subject/toolCall"
        if call:
            asked.call_id = self._calls.named_by_request(members_of(call), where, version)
        if asked.call_id is None:
            asked.call_id = text_of(subject.get("toolCallId", ABSENT))
        record = self._permission(asked)
        record.status = "pending"
        self._pen.revise(f"ask {asked.key}", record)

    def _permission(self, asked: Asked, answer: Ref | None = None) -> Permission:
        pen = self._pen
        members = asked.members
        record = Permission(request_id=asked.key, id_source="derived" if asked.derived else "native")
        record.native = native_of([asked.ref, *([answer] if answer is not None else [])])
        record.title = text_of(members.get("title", ABSENT))
        record.description = text_of(members.get("description", ABSENT))
        subject = members_of(members.get("subject", ABSENT))
        command = text_of(subject.get("command", ABSENT))
        if asked.call_id is not None:
            record.subject = Subject(call_id=asked.call_id)
            record.native.command = command
        elif command is not None:
            record.subject = Subject(command=command)
        record.options = [
            option for item in items_of(members.get("options", ABSENT)) if (option := option_of(item))
        ]
        record.options = record.options or None
        extra = {name: members[name] for name in ("toolCall", "subject") if name in members}
        size = sum(len(raw) for raw in extra.values())
        if extra and size <= INLINE_MOST and all(lossless.fits(bytes(raw)) for raw in extra.values()):
            # Another wording of the call than the call's own: kept here, never merged into it.
            record.native.extra = raw_json(extra)
        if answer is None:
            asked.exact = pen.exact(asked.ref.pointer or "")
        if asked.exact is not None and not lossless.lossless(asked.exact.encode()):
            blob = pen.desk.blob(asked.exact.encode(), "application/json")
            pen.capture(record, "title", "external", blob=blob)
        return record

    def permission_answer(self, asked: Asked, result: Raw, pointer: str) -> None:
        """The client's answer; a JSON-RPC error or an outcome that we do not know leaves the request unresolved."""
        pen = self._pen
        answer = pen.ref("decision", f"{pointer}/result" if result else f"{pointer}/error")
        record = self._permission(asked, answer)
        outcome = members_of(members_of(result).get("outcome", ABSENT))
        word = text_of(outcome.get("outcome", ABSENT))
        chosen = text_of(outcome.get("optionId", ABSENT))
        if word == "selected" and chosen is not None:
            record.selected_option_id = chosen
            kinds = {option.kind for option in record.options or () if option.option_id == chosen}
            record.decision = kinds.pop() if len(kinds) == 1 else None
        elif word == "cancelled":
            record.decision = "cancelled"
        if record.decision is not None:
            record.status = "resolved"
        elif word is not None and word != "selected":
            assert record.native is not None
            record.native.extra = raw_json({"outcome": word})
        if record.decision in REFUSALS:
            self._calls.declined(asked.call_id, [asked.ref, answer])
        pen.revise(f"ask {asked.key}", record)

    # -- elicitations -------------------------------------------------------------------------------------------

    def elicitation(self, asked: Asked) -> None:
        """An ``elicitation/create``: a form, or a URL that is never opened."""
        asked.call_id = text_of(asked.members.get("toolCallId", ABSENT))
        record = self._elicitation(asked)
        record.status = "pending"
        self._pen.revise(f"ask {asked.key}", record)

    def _elicitation(self, asked: Asked, answer: Ref | None = None) -> InputRequest:
        members = asked.members
        schema = members.get("requestedSchema", ABSENT)
        mode = text_of(members.get("mode", ABSENT)) or ("url" if "url" in members else "form")
        record = InputRequest(
            request_id=asked.key,
            id_source="derived" if asked.derived else "native",
            mode=mode if mode != "questions" else "form",
            call_id=asked.call_id,
            message=text_of(members.get("message", ABSENT)),
            url=text_of(members.get("url", ABSENT)),
        )
        record.native = native_of([asked.ref, *([answer] if answer is not None else [])])
        record.native.id = text_of(members.get("elicitationId", ABSENT))
        if mark(schema) == b"{" and lossless.fits(bytes(schema)):
            record.requested_schema = schema
        whole, secret = secrets_of(members)
        if whole or (secret and secret == set(members_of(members_of(schema).get("properties", ABSENT)))):
            record.secret = True
        return record

    def elicitation_answer(self, asked: Asked, result: Raw, pointer: str) -> None:
        """The client's answer, without what was asked for as a secret."""
        pen = self._pen
        record = self._elicitation(asked, pen.ref("decision", f"{pointer}/result" if result else pointer))
        told = members_of(result)
        record.status = self._words.get(text_of(told.get("action", ABSENT)) or "")
        content = told.get("content", ABSENT)
        whole, secret = secrets_of(asked.members)
        if content and not is_null(content):
            if whole or record.secret:
                pen.capture(record, "response", "redacted")
            else:
                answers = {name: raw for name, raw in members_of(content).items() if name not in secret}
                if secret:
                    pen.capture(
                        record, "response", "redacted", reason="answers to secret questions are left out"
                    )
                response = raw_json(answers) if mark(content) == b"{" else content
                if mark(response) in (b"{", b'"') and lossless.lossless(bytes(response)):
                    record.response = value_of(response)
                else:
                    pen.capture(
                        record,
                        "response",
                        "external",
                        blob=pen.desk.blob(bytes(response), "application/json"),
                    )
        pen.revise(f"ask {asked.key}", record)


def option_of(raw: Raw) -> Option | None:
    """An offered answer; None for one without an id, which nobody can choose."""
    members = members_of(raw)
    name = text_of(members.get("optionId", ABSENT))
    if name is None:
        return None
    return Option(
        option_id=name,
        name=text_of(members.get("name", ABSENT)),
        kind=text_of(members.get("kind", ABSENT)),
    )
