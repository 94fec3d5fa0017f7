"""What an agent asks while a turn waits, and the answers.

Owns the open request as a person sees it, and the closed set of answers. Each request is answered once. A secret is
marked before it is asked for; its value passes through to the agent and is kept nowhere (ASR-283).

Must never know: the protocol that carries it, who answers.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from callsheet.records import Option, Question


class Permission(Struct, frozen=True, kw_only=True, tag=True):
    """The agent asks whether it may do something.

    Attributes:
        request_id: Its id in the record (``permission.requestId``).
        call: The call it is about, as ``Recorded`` records and previews name it.
        title: What it asks.
        command: The command, when the request names one.
        description: More about it.
        reason: Why it asks, in its own words.
        options: Every option that the protocol offers, in order; the ids are the protocol's, or derived from what it
            offers and documented in the adapter's notes.
        takes_words: Options whose answer may carry words for the agent.
        input: The arguments that it asks about.
    """

    request_id: str
    call: str | None = None
    title: str
    command: str | None = None
    description: str | None = None
    reason: str | None = None
    options: tuple[Option, ...]
    takes_words: frozenset[str] = frozenset()
    input: Raw | None = None


class Questions(Struct, frozen=True, kw_only=True, tag=True):
    """Questions with options and typed answers (``input_request`` in mode questions)."""

    request_id: str
    call: str | None = None
    title: str | None = None
    questions: tuple[Question, ...]


class FormAsked(Struct, frozen=True, kw_only=True, tag=True):
    """A form (``input_request`` in mode form).

    Attributes:
        schema: JSON Schema of the form, as supplied.
        secret: The whole request asks for a secret.
    """

    request_id: str
    call: str | None = None
    title: str
    schema: Raw
    secret: bool = False


class UrlAsked(Struct, frozen=True, kw_only=True, tag=True):
    """The person is asked to open a URL; it is never opened by itself (ASR-562)."""

    request_id: str
    call: str | None = None
    title: str
    url: str


Waiting = Permission | Questions | FormAsked | UrlAsked
"""A request that waits for its answer."""


class Chosen(Struct, frozen=True, tag=True):
    """Answer to a permission: one of its options, with words where that option takes them."""

    option_id: str
    words: str | None = None


class Answered(Struct, frozen=True, tag=True):
    """Answer to questions: question id to the chosen labels (or values) and the typed text."""

    answers: dict[str, tuple[tuple[str, ...], str | None]]


class FormFilled(Struct, frozen=True, tag=True):
    """Answer to a form: a JSON object."""

    content: Raw


class UrlOpened(Struct, frozen=True, tag=True):
    """The person agreed to open the URL."""


class Declined(Struct, frozen=True, tag=True):
    """The person refuses to answer (questions, forms, URLs)."""


class Cancelled(Struct, frozen=True, tag=True):
    """The request is taken back unanswered, as when a turn is broken off."""


Answer = Chosen | Answered | FormFilled | UrlOpened | Declined | Cancelled
"""An answer; which ones fit, the request tells. One that does not fit is ``Rejected``."""
