"""Who answers what an agent asks: a port, and the answers that an option of the command line gives.

Owns ``AnswerPort`` (a workbench, a page and a program implement it) and ``Policy``. A port says who answers: a key
pressed by a person is ``user``, an option that was set beforehand is ``policy`` (decision 16). A policy never makes up
an answer: it picks an option that is offered, the narrowest of its kind, or declines.

Must never know: the protocol, how a request is shown.
"""

from __future__ import annotations

from typing import Literal, Protocol, assert_never

import msgspec

from callsheet.seam import (
    Answer,
    Cancelled,
    Chosen,
    Declined,
    FormAsked,
    Permission,
    Questions,
    UrlAsked,
    Waiting,
)


class AnswerPort(Protocol):
    """Answers requests. It is asked once for each; the question goes away (is cancelled) when the request does."""

    @property
    def by(self) -> str:
        """Who answers: ``user`` or ``policy``."""

    async def answer(self, request: Waiting) -> Answer | None:
        """The answer; None leaves the request open, for somebody else to answer."""


ALLOWING = ("allow_once", "allow_session", "allow_always")
"""Kinds of options that allow, the narrowest first."""
REFUSING = ("reject_once", "reject_session", "reject_always")


class Policy:
    """Answers every permission alike, and declines what only a person can answer.

    Args:
        way: What it does with permissions.
    """

    by = "policy"

    def __init__(self, way: Literal["allow", "reject"]) -> None:
        self._kinds = ALLOWING if way == "allow" else REFUSING

    async def answer(self, request: Waiting) -> Answer | None:
        """The answer."""
        match request:
            case Permission():
                for kind in self._kinds:
                    for option in request.options:
                        if option.kind == kind:
                            return Chosen(option.option_id)
                return Cancelled()
            case Questions() | FormAsked() | UrlAsked():
                return Declined()
            case _:
                assert_never(request)


def typed_value(words: str, kind: object) -> object:
    """A typed line as the value that a form's schema asks for.

    Args:
        words: What was typed.
        kind: The ``type`` of the member in the schema.
    """
    if kind in ("number", "integer", "boolean", "array"):
        try:
            return msgspec.json.decode(words.encode())
        except msgspec.DecodeError:
            return words
    return words
