"""Questions that ask for a secret, and the answers that nothing may hold (ASR-283, decision 10).

Owns: which calls ask for a secret (``secrets`` with action ``request``; a question of ``ask_user`` marked so) and which
values in a result are the answers. Masking them is the veil's affair.

Must never know: records, places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, value_of

MARKS = ("isSecret", "is_secret", "secret")
ASKING = "ask_user"
STORING = "secrets"


class Asked(NamedTuple):
    """What a call asks for.

    Attributes:
        secret: Ids of its secret questions.
        labels: Options that it offers: choosing one gives nothing away.
    """

    secret: frozenset[str]
    labels: frozenset[str]


def is_secret(question: dict[str, Any]) -> bool:
    """Whether a question asks for a secret."""
    return any(question.get(mark) is True for mark in MARKS)


def question_id(question: dict[str, Any], index: int) -> str:
    """A question's id: its own, else its position (decision 19)."""
    own = question.get("id", question.get("questionId"))
    return own if isinstance(own, str) and own else str(index)


def questions_of(arguments: Raw) -> list[dict[str, Any]]:
    """The questions among a call's arguments."""
    found = value_of(members_of(arguments).get("questions", ABSENT))
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def asked(name: Any, arguments: Raw) -> Asked | None:
    """What secret a call asks for; None when it asks for none."""
    if name != ASKING or b"ecret" not in bytes(arguments):
        return None
    questions = questions_of(arguments)
    secret = frozenset(question_id(one, at) for at, one in enumerate(questions) if is_secret(one))
    if not secret:
        return None
    return Asked(secret, frozenset(label for one in questions for label in labels_of(one)))


def labels_of(question: dict[str, Any]) -> list[str]:
    """Labels of the options that a question offers."""
    options = question.get("options")
    return [
        option["label"]
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, dict) and isinstance(option.get("label"), str)
    ]


def answers_in(call: Asked, details: Raw) -> list[str]:
    """The secret values among a result's answers."""
    answers = answers_of(details)
    found: list[str] = []
    for question, given in answers.items():
        if question in call.secret:
            found += [value for value in given if value and value not in call.labels]
    return found


def answers_of(details: Raw) -> dict[str, list[str]]:
    """Question id to what was answered, from ``details.answers`` (with or without an inner ``answers``)."""
    value = value_of(members_of(details).get("answers", ABSENT))
    if isinstance(value, dict) and isinstance(value.get("answers"), dict):
        value = value["answers"]
    if not isinstance(value, dict):
        return {}
    found = {}
    for question, given in value.items():
        if isinstance(given, str):
            given = [given]
        if isinstance(given, list):
            found[question] = [one for one in given if isinstance(one, str)]
    return found
