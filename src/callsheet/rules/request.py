"""Rules that requests to a person have to keep: permission (ASR-268, 281), input_request (ASR-282 to 284).

Must never know: other records of the stream; what ``answerRef`` leads to is checked across the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callsheet.rules.finding import Json, Problem, Problems, shown


def asr_268(record: Json) -> Problems:
    """A permission has the request's id; its subject, if any, is a call or a command and not both."""
    if not isinstance(record.get("requestId"), str):
        yield Problem("/requestId", "a permission needs a requestId, a string")
    if "subject" not in record:
        return
    subject = record["subject"]
    if not isinstance(subject, dict):
        yield Problem("/subject", f"a subject is an object with callId or command, not {shown(subject)}")
        return
    named = [member for member in ("callId", "command") if member in subject]
    if len(named) != 1:
        found = "both" if named else "neither"
        yield Problem("/subject", f"a subject has exactly one of callId and command; this one has {found}")
    for member in named:
        if not isinstance(subject[member], str):
            yield Problem(f"/subject/{member}", f"{member} is a string, not {shown(subject[member])}")


def asr_281(record: Json) -> Problems:
    """Resolved means decided, waiting means undecided, and every review says who gave it."""
    status, decided = record.get("status"), "decision" in record
    if decided and not isinstance(record["decision"], str):
        yield Problem("/decision", f"a decision is a string, not {shown(record['decision'])}")
    elif status == "resolved" and not decided:
        yield Problem("/decision", "a resolved permission needs a decision")
    elif status in ("pending", "held") and decided:
        yield Problem("/decision", f"a {status} permission is not decided yet, so it can have no decision")
    for path, review in _elements(record, "reviews"):
        if not isinstance(review, dict):
            yield Problem(path, f"a review is an object, not {shown(review)}")
        elif not isinstance(review.get("by"), dict) or not review["by"]:
            yield Problem(f"{path}/by", "a review has to say who gave it: by is a reference to an actor")


def _elements(holder: Json, member: str, path: str = "") -> Iterator[tuple[str, Any]]:
    values = holder.get(member)
    if isinstance(values, list):
        for index, value in enumerate(values):
            yield f"{path}/{member}/{index}", value


def asr_282(record: Json) -> Problems:
    """An input_request has id and mode; questions id and text, options a label, answers their question."""
    for member in ("requestId", "mode"):
        if not isinstance(record.get(member), str):
            yield Problem(f"/{member}", f"an input_request needs a {member}, a string")
    if record.get("mode") == "questions" and not isinstance(record.get("questions"), list):
        yield Problem("/questions", "an input_request of mode 'questions' needs its questions, an array")
    for path, question in _elements(record, "questions"):
        if not isinstance(question, dict):
            yield Problem(path, f"a question is an object, not {shown(question)}")
            continue
        for member in ("id", "text"):
            if not isinstance(question.get(member), str):
                yield Problem(f"{path}/{member}", f"a question needs {member}, a string")
        for at, option in _elements(question, "options", path):
            if not isinstance(option, dict):
                yield Problem(at, f"an option is an object with a label, not {shown(option)}")
            elif not isinstance(option.get("label"), str):
                yield Problem(f"{at}/label", "an option needs a label, a string")
    for path, answer in _elements(record, "answers"):
        if not isinstance(answer, dict):
            yield Problem(path, f"an answer is an object with a questionId, not {shown(answer)}")
        elif not isinstance(answer.get("questionId"), str):
            yield Problem(f"{path}/questionId", "an answer needs the questionId it answers, a string")


def secret_questions(record: Json) -> list[str]:
    """Ids of the questions that ask for a secret."""
    return [
        question["id"]
        for _, question in _elements(record, "questions")
        if isinstance(question, dict)
        and question.get("secret") is True
        and isinstance(question.get("id"), str)
    ]


def asr_283(record: Json, known: frozenset[str] = frozenset()) -> Problems:
    """What a person gave for a secret is nowhere; that it was asked, and how that ended, is all.

    Args:
        record: The input_request.
        known: Ids of questions that an earlier revision marked as secret.
    """
    whole = record.get("secret") is True
    secret = known.union(secret_questions(record))
    for path, answer in _elements(record, "answers"):
        if not isinstance(answer, dict):
            continue
        named = answer.get("questionId")
        if not whole and not (isinstance(named, str) and named in secret):
            continue
        for member in ("selected", "text", "value"):
            if member in answer:
                yield Problem(f"{path}/{member}", "the answer to a secret question is not recorded")
    asked = [
        question.get("id") for _, question in _elements(record, "questions") if isinstance(question, dict)
    ]
    if "response" in record and (
        whole or (asked and all(isinstance(one, str) and one in secret for one in asked))
    ):
        yield Problem("/response", "the response to a request for a secret is not recorded")


def asr_284(record: Json) -> Problems:
    """Question ids are unique in their request, and an answer names a question of the same request."""
    asked: set[str] = set()
    for path, question in _elements(record, "questions"):
        name = question.get("id") if isinstance(question, dict) else None
        if not isinstance(name, str):
            continue
        if name in asked:
            yield Problem(f"{path}/id", f"the question id {shown(name)} was used before in this request")
        asked.add(name)
    for path, answer in _elements(record, "answers"):
        name = answer.get("questionId") if isinstance(answer, dict) else None
        if isinstance(name, str) and name not in asked:
            yield Problem(f"{path}/questionId", f"no question of this request has the id {shown(name)}")
    if "answerRef" in record:
        target = record["answerRef"]
        if not isinstance(target, dict) or not isinstance(target.get("record"), str):
            yield Problem("/answerRef", "answerRef is a reference to a message: an object with its record id")
