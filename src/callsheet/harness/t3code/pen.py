"""What every record of one thread needs, and what both generations of T3 Code say alike.

Owns: questions and their answers (ASR-282 to 285), the words for decisions (ASR-269, 281), the mark of a question that
asks for a secret, members kept in ``native.extra``.

Must never know: tables.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from callsheet.records import Answer, Native, Option, Question, QuestionOption

DECISIONS = {
    "accept": "allow_once",
    "acceptForSession": "allow_session",
    "acceptAlways": "allow_always",
    "decline": "reject_once",
    "cancel": "cancelled",
}
"""T3 Code's decisions and those of records."""
SECRET = ("secret", "isSecret", "is_secret")


def text(value: Any) -> str | None:
    """The value if it is a text with something in it."""
    return value if isinstance(value, str) and value else None


def dig(value: Any, *names: str) -> Any:
    """A member of a member, or None."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def keep(native: Native, **members: Any) -> None:
    """Adds members to ``native.extra``; those without a value are left out."""
    told = {name: value for name, value in members.items() if value is not None}
    if told:
        before = {} if native.extra is UNSET else msgspec.json.decode(native.extra)
        native.extra = Raw(msgspec.json.encode({**before, **told}))


def is_secret(question: Any) -> bool:
    """Whether a question, or a whole request, asks for a secret."""
    return isinstance(question, dict) and any(question.get(mark) is True for mark in SECRET)


def listed(questions: Any) -> list[dict[str, Any]]:
    """The questions of a request."""
    return [one for one in questions if isinstance(one, dict)] if isinstance(questions, list) else []


def question_id(question: dict[str, Any], index: int) -> str:
    """A question's id: its own, else its position (decision 19)."""
    return text(question.get("id")) or str(index)


def questions_of(value: Any) -> list[Question]:
    """The questions of a request as record members; ids that repeat become positions."""
    found = [_question(one, index) for index, one in enumerate(listed(value))]
    if len({one.id for one in found}) != len(found):
        for index, one in enumerate(found):
            one.id = str(index)
    return found


def _question(value: dict[str, Any], index: int) -> Question:
    options = value.get("options")
    offered = [
        QuestionOption(
            label=one["label"], value=text(one.get("value")), description=text(one.get("description"))
        )
        for one in (options if isinstance(options, list) else [])
        if isinstance(one, dict) and isinstance(one.get("label"), str)
    ]
    multi, other = value.get("multiSelect"), value.get("allowCustomAnswer")
    return Question(
        id=question_id(value, index),
        header=text(value.get("header")),
        text=value["question"] if isinstance(value.get("question"), str) else "",
        options=offered or None,
        multi_select=multi if isinstance(multi, bool) else None,
        allow_other=other if isinstance(other, bool) else None,
        secret=True if is_secret(value) else None,
    )


def answers_of(questions: list[Question], given: Any) -> list[Answer]:
    """Answers by question: an offered label or value is chosen, anything else was typed. Secrets are left out."""
    found: list[Answer] = []
    for question in questions:
        value = given.get(question.id) if isinstance(given, dict) else None
        values = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
        if not values or question.secret:
            continue
        labels = {option.label: option.value or option.label for option in question.options or ()}
        labels |= {option.value: option.value for option in question.options or () if option.value}
        chosen = [labels[one] for one in values if one in labels]
        typed = [one for one in values if one not in labels]
        found.append(
            Answer(question_id=question.id, selected=chosen or None, text=typed[0] if typed else None)
        )
        found += [Answer(question_id=question.id, text=more) for more in typed[1:]]
    return found


def secret_values(questions: Any, given: Any, *, whole: bool) -> list[str]:
    """What was typed for a secret among the answers to a request."""
    secret = {question_id(one, at) for at, one in enumerate(listed(questions)) if whole or is_secret(one)}
    labels = {option.get("label") for one in listed(questions) for option in listed(one.get("options"))}
    found: list[str] = []
    for name, value in given.items() if isinstance(given, dict) else ():
        if name in secret or whole:
            values = value if isinstance(value, list) else [value]
            found += [one for one in values if isinstance(one, str) and one and one not in labels]
    return found


def options_of(value: Any) -> list[Option] | None:
    """The answers that a request offers."""
    found = [
        Option(option_id=one["decision"], name=text(one.get("label")), kind=DECISIONS.get(one["decision"]))
        for one in listed(value)
        if isinstance(one.get("decision"), str)
    ]
    return found or None
