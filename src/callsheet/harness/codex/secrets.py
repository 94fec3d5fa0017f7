"""Answers to secret questions: which calls asked for one, and where the answer stands (ASR-283, decision 10).

Codex keeps the answer to a question marked ``isSecret`` in clear: in the call's output, in ``retained_context``, in a
compaction's replacement history, and, for a question that does not block, in a later message of the person that names
the call. Owns finding these places and values; masking them is the veil's affair.

Must never know: records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from callsheet.harness.codex.shapes import json_in, mark, members_of, parts_of, text_of, value_of

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


class Answers:
    """Collects the answers of secret calls from the lines that name them.

    Attributes:
        values: Values that nothing may hold.
    """

    def __init__(self, secret_calls: dict[str, set[str]]) -> None:
        self._labels = secret_calls
        self._marks = [call_id.encode() for call_id in secret_calls]
        self.values: dict[str, None] = {}

    def names_one(self, data: bytes) -> bool:
        """Whether a line may name a secret call."""
        return any(mark in data for mark in self._marks)

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Offset and size, inside a line, of every value that holds an answer."""
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
        called = next(
            (named for name in NAMES if (named := text_of(members.get(name, Raw()))) in self._labels), None
        )
        for name, value in members.items():
            if called is not None and name in ANSWERS:
                self._take(called, value_of(value))
                yield value
            elif called is not None and name == "questions":
                for question in parts_of(value):
                    answer = members_of(question).get("answer")
                    if answer is not None:
                        self._take(called, value_of(answer))
                        yield answer
            elif name == "text" and mark(value) == b'"':
                if self._reply(text_of(value) or ""):
                    yield value
            elif mark(value) in (b"{", b"[") and self.names_one(bytes(value)):
                yield from self._walk(value, depth + 1)

    def _reply(self, words: str) -> bool:
        found = False
        for item in replies(words):
            named = replied_call(item)
            if named is not None and named[0] in self._labels:
                self._take(named[0], item.get("answer"))
                found = True
        return found

    def _take(self, call_id: str, value: Any) -> None:
        """Notes the values in an answer: texts that the person typed, not options that were offered."""
        if isinstance(value, str):
            inner = json_in(value) if value.lstrip()[:1] in ("{", "[") else None
            if isinstance(inner, dict | list):
                self._take(call_id, inner)
                return
            for piece in {value, *value.split("\n")}:
                piece = piece.removeprefix(NOTE).strip()
                if piece and piece not in self._labels[call_id]:
                    self.values.setdefault(piece)
        elif isinstance(value, list):
            for item in value:
                self._take(call_id, item)
        elif isinstance(value, dict):
            for item in value.values():
                self._take(call_id, item)
