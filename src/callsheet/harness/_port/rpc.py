"""JSON-RPC, as every protocol speaks it whose frames are requests, notifications and answers.

Owns the shape of a frame, ids (the text "5" and the number 5 are two, and each side counts its own), what a request
is called in the records, the codes of errors, and the frames that a client sends.

Must never know: what a method means.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, mark, members_of, text_of, value_of
from callsheet.wire.blobs import digest

NOT_FOUND, INVALID, INTERNAL, CANCELLED, MISSING = -32601, -32602, -32603, -32800, -32002
"""Error codes: no such method, wrong parameters, our own failure, a request that was cancelled, no such thing."""
_WHOLE = re.compile(r"0|-?[1-9]\d*")


class Id(NamedTuple):
    """The id of a request: a text or a number, and nothing else.

    Attributes:
        text: Its words: a text's own, of a number its value.
        is_text: It is a text.
    """

    text: str
    is_text: bool = False


def id_of(raw: Raw) -> Id | None:
    """A part that is an id; None for anything else."""
    words = text_of(raw)
    if words is not None:
        return Id(words, is_text=True)
    if not mark(raw).isdigit() and mark(raw) != b"-":
        return None
    written = bytes(raw).decode()
    if _WHOLE.fullmatch(written):
        return Id(written)
    value = value_of(raw)
    if not isinstance(value, int | float):
        return None
    return Id(json.dumps(int(value) if value == int(value) else value))


class Frame(NamedTuple):
    """One frame.

    Attributes:
        from_agent: Who sent it.
        pointer: Where it stands in its line.
        id: The id of a request or an answer; None on a notification.
        method: None on an answer.
        params: Parameters of a request or notification.
        result: Of an answer.
        error: Of an answer.
        number: The id as it is written.
        raw: All of it.
    """

    from_agent: bool
    pointer: str
    id: Id | None
    method: str | None
    params: Raw
    result: Raw
    error: Raw
    number: Raw = ABSENT
    raw: Raw = ABSENT


def frame_in(raw: Raw, *, from_agent: bool, pointer: str = "") -> Frame | None:
    """A JSON value as a frame; None for one that is none."""
    members = members_of(raw)
    method = text_of(members.get("method", ABSENT))
    number = members.get("id", ABSENT)
    name = id_of(number)
    if method is None and (name is None or not ("result" in members or "error" in members)):
        return None
    return Frame(
        from_agent,
        pointer,
        name,
        method,
        members.get("params", ABSENT),
        members.get("result", ABSENT),
        members.get("error", ABSENT),
        number,
        raw,
    )


class Names:
    """What the requests of one session are called: one that comes again with another id or other parameters is another.

    Ids begin again in every process, so that one id may be that of several requests.
    """

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[bool, str]]] = {}

    def of(self, name: Id, params: Raw) -> tuple[str, int]:
        """The requestId of a request, and how many requests of these words there have been."""
        told = (name.is_text, digest(bytes(params)))
        seen = self._seen.setdefault(name.text, [])
        if told not in seen:
            seen.append(told)
        number = seen.index(told) + 1
        return name.text if number == 1 else f"{name.text}#{number}", number


class Rpc:
    """How one protocol's client writes its frames.

    Args:
        marks: What stands in every frame.
    """

    def __init__(self, **marks: str) -> None:
        self._marks = marks

    def _frame(self, **members: Any) -> bytes:
        return msgspec.json.encode({**self._marks, **members})

    def request(self, number: int, method: str, params: dict[str, Any]) -> bytes:
        """A frame that wants an answer."""
        return self._frame(id=number, method=method, params=params)

    def notification(self, method: str, **params: Any) -> bytes:
        """A frame that wants no answer."""
        return self._frame(method=method, **({"params": params} if params else {}))

    def response(self, number: Raw, result: Any) -> bytes:
        """The answer to a request of the agent, under its id as it was written."""
        return self._frame(id=number, result=result)

    def refusal(self, number: Raw, code: int, message: str) -> bytes:
        """The error with which a request of the agent is refused."""
        return self._frame(id=number, error={"code": code, "message": message})


def message_of(error: Raw) -> str | None:
    """What an error says."""
    return text_of(members_of(error).get("message", ABSENT))
