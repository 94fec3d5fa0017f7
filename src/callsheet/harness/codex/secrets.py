"""Answers to secret questions: which calls asked for one, and where the answer stands (ASR-283, decision 10).

Codex keeps the answer to a question marked ``isSecret`` in clear: in the call's output, in ``retained_context``, in a
compaction's replacement history, and, for a question that does not block, in a later message of the person that names
the call. Owns finding these places and values; masking them is the veil's affair.

Must never know: records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Raw

from callsheet.harness.codex.shapes import (
    ABSENT,
    json_in,
    mark,
    members_of,
    parts_of,
    text_of,
    value_of,
)
from callsheet.wire.masks import SHORTEST

REPLY = "send_user_message_question_reply"
"""The harness's tag around the answers to questions that do not block."""
OTHER = "None of the above"
"""The option that Codex adds itself; what the person typed follows in an answer of its own."""
NOTE = "user_note: "
ANSWERS = frozenset({"output", "answer", "answers", "response"})
"""Members that hold an answer, beside a member that names the call."""
NAMES = ("call_id", "callId", "id")
DEEPEST = 8

_REPLY = re.compile(rf"<{REPLY}>\s*(.*?)\s*</{REPLY}>", re.DOTALL)


def questions_of(arguments: Any) -> list[dict[str, Any]]:
    """The questions of a call that asks the person, by its arguments."""
    questions = arguments.get("questions") if isinstance(arguments, dict) else None
    return [one for one in questions if isinstance(one, dict)] if isinstance(questions, list) else []


def is_secret(question: dict[str, Any]) -> bool:
    """Whether a question asks for a secret."""
    return question.get("isSecret") is True or question.get("is_secret") is True


def options_of(questions: list[dict[str, Any]]) -> set[str]:
    """Labels that the questions offer: choosing one gives no secret away."""
    labels = {OTHER}
    for question in questions:
        options = question.get("options")
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict) and isinstance(option.get("label"), str):
                labels.add(option["label"])
    return labels


def replies(words: str) -> list[dict[str, Any]]:
    """The answers in a message that carries the harness's reply tag."""
    found = _REPLY.search(words)
    items = json_in(found.group(1)) if found else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def replied_call(item: dict[str, Any]) -> tuple[str, int] | None:
    """The call, and the number of its question, that an answer of ``replies`` names."""
    named = json_in(item.get("questionItemId")) if isinstance(item.get("questionItemId"), str) else None
    if isinstance(named, list) and len(named) == 3 and isinstance(named[1], str) and type(named[2]) is int:
        return named[1], named[2]
    return None


class Asked(NamedTuple):
    """A call that asks for a secret.

    Attributes:
        secret: Ids and texts of its secret questions.
        open: Ids of its other questions.
        labels: Options that it offers.
    """

    secret: dict[str, str]
    open: frozenset[str]
    labels: frozenset[str]


def asked(arguments: Any) -> Asked | None:
    """What a call asks for, by its arguments; None when nothing of it is secret."""
    questions = questions_of(arguments)
    secret = {str(one.get("id")): str(one.get("question")) for one in questions if is_secret(one)}
    if not secret:
        return None
    rest = frozenset(str(one.get("id")) for one in questions if not is_secret(one))
    return Asked(secret, rest, frozenset(options_of(questions)))


class Answers:
    """Collects the answers of secret calls from the lines that name them.

    Attributes:
        values: Values that nothing may hold.
        given: Calls that got an answer.
    """

    def __init__(self, calls: dict[str, Asked]) -> None:
        self._calls = calls
        self._marks = [call_id.encode() for call_id in calls]
        self.values: dict[str, None] = {}
        self.given: dict[str, bool] = {}

    def names_one(self, data: bytes) -> bool:
        """Whether a line may name a secret call."""
        return any(mark in data for mark in self._marks)

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Offset and size, inside a line, of every value that is not to be kept, and notes the answers."""
        for value in self._walk(Raw(data), 0):
            text = bytes(value)
            at = data.find(text)
            while at >= 0:
                yield at, len(text)
                at = data.find(text, at + len(text))

    def _walk(self, raw: Raw, depth: int) -> Iterator[Raw]:
        if depth > DEEPEST:
            return
        if mark(raw) == b"[":
            for item in parts_of(raw):
                if self.names_one(bytes(item)):
                    yield from self._walk(item, depth + 1)
            return
        members = members_of(raw)
        ids = [text_of(members.get(name, ABSENT)) for name in NAMES]
        named = next((one for one in ids if one is not None and one in self._calls), None)
        for name, value in members.items():
            if named is not None and name in ANSWERS:
                if self._answer(named, value):
                    yield value
            elif named is not None and name == "questions":
                yield from self._verified(self._calls[named], value)
            elif name == "text" and mark(value) == b'"':
                if self._reply(text_of(value) or ""):
                    yield value
            elif mark(value) in (b"{", b"[") and self.names_one(bytes(value)):
                yield from self._walk(value, depth + 1)

    def _answer(self, named: str, raw: Raw) -> bool:
        """Notes the answers in an output; says whether it has to be hidden whole."""
        call = self._calls[named]
        value = value_of(raw)
        words = value if isinstance(value, str) else None
        inner = json_in(words) if words is not None else value
        answers = inner.get("answers") if isinstance(inner, dict) else None
        if not isinstance(answers, dict):
            return True
        short = False
        for question, answer in answers.items():
            self.given[named] = True
            if question not in call.open:
                short = self._note(call, answer) or short
        return short or not call.open

    def _verified(self, call: Asked, raw: Raw) -> Iterator[Raw]:
        """The answers in ``retained_context``, where a question is known by its words."""
        for part in parts_of(raw):
            members = members_of(part)
            answer = members.get("answer")
            words = text_of(members.get("question", ABSENT)) or ""
            if answer is None or not any(words.startswith(text) for text in call.secret.values()):
                continue
            self._note(call, value_of(answer))
            yield answer

    def _reply(self, words: str) -> bool:
        """Notes the secret answers in a message with the harness's reply tag."""
        found = False
        for item in replies(words):
            named = replied_call(item)
            call = self._calls.get(named[0]) if named is not None else None
            if call is not None and named is not None:
                self._note(call, item.get("answer"))
                self.given[named[0]] = found = True
        return found

    def _note(self, call: Asked, value: Any) -> bool:
        """Notes what the person typed, not the options that were offered; says whether some of it is short."""
        if isinstance(value, list):
            return max((self._note(call, item) for item in value), default=False)  # every one is noted
        if isinstance(value, dict):
            return max((self._note(call, item) for item in value.values()), default=False)
        if not isinstance(value, str):
            return value is not None
        short = False
        for piece in dict.fromkeys((value, *value.split("\n"))):
            piece = piece.removeprefix(NOTE).strip()
            if piece and piece not in call.labels:
                self.values.setdefault(piece)
                short = short or len(piece) < SHORTEST
        return short
