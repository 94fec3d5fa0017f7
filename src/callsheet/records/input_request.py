"""input_request: a question to the user, and the answer when known (ASR-282 to 285)."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET

from callsheet.records._shapes import Actor, RawValue, Record, RecordRef, Shape


class QuestionOption(Shape, kw_only=True):
    """An option of a question; ``label`` is required (ASR-282)."""

    label: str
    value: str | None = None
    description: str | None = None


class Question(Shape, kw_only=True):
    """One question; ``secret`` answers are never recorded (ASR-283)."""

    id: str
    header: str | None = None
    text: str
    options: list[QuestionOption] | None = None
    multi_select: bool | None = None
    allow_other: bool | None = None
    secret: bool | None = None


class Answer(Shape, kw_only=True):
    """The answer to one question of the same record (ASR-284)."""

    question_id: str
    selected: list[str] | None = None
    text: str | None = None


class InputRequest(Record, tag="input_request", kw_only=True):
    """A request for input from the user: ``mode`` questions, form or url; a URL is never fetched."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("questions", "answers", "response")
    ENTITY_KEY: ClassVar[str | None] = "requestId"

    request_id: str
    call_id: str | None = None
    mode: str
    message: str | None = None
    questions: list[Question] | None = None
    requested_schema: RawValue = UNSET
    url: str | None = None
    secret: bool | None = None
    blocking: bool | None = None
    status: str | None = None
    answers: list[Answer] | None = None
    response: Any = None
    answer_ref: RecordRef | None = None
    answered_by: Actor | None = None
