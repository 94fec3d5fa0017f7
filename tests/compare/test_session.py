"""Whether two readings are of one session: what shows that they are not, and where nothing does."""

from __future__ import annotations

import io
import json
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

import pytest

from callsheet.compare import Side, strangers


def side(
    session: str | None = None,
    agent: str = "claude-code",
    prompt: str | None = None,
    calls: tuple[str, ...] = (),
) -> Side:
    """A reading with as much as is given."""
    head: dict[str, Any] = {"type": "session", "format": "callsheet/1", "agent": {"name": agent}}
    if session is not None:
        head["nativeSessionId"] = session
    records = [head]
    if prompt is not None:
        records.append(message("user", prompt))
    records += [
        {"type": "tool_call", "callId": call, "callIdSource": "native", "name": "x"} for call in calls
    ]
    return of(s=records)


def message(author: str, text: str) -> dict[str, Any]:
    return {"type": "message", "author": author, "content": [{"type": "text", "text": text}]}


def of(**streams: list[dict[str, Any]]) -> Side:
    files = {
        name: b"".join(
            json.dumps({"seq": number, "id": f"r{number}", **record}).encode() + b"\n"
            for number, record in enumerate(records)
        )
        for name, records in streams.items()
    }

    def opened(name: str) -> AbstractContextManager[BinaryIO]:
        return nullcontext(io.BytesIO(files[name]))

    return Side({name: name for name in files}, opened)


IDS, WORDS, CALLS = (
    "their sessions have other ids",
    "no prompt stands in both",
    "no call stands in both",
)


@pytest.mark.parametrize(
    ("left", "right", "signs"),
    [
        (side("a"), side("b"), (IDS,)),
        (side("a", prompt="Do."), side("b", prompt="Do."), (IDS,)),
        (side("a", prompt="Do."), side("b", prompt="Stop.", calls=("c",)), (IDS, WORDS)),
        (side("a", "acp", "Do.", ("c1",)), side("b", "gemini", "Stop.", ("c1",)), (IDS, WORDS)),
        (side(None, prompt="Do.", calls=("c1",)), side("b", prompt="Stop.", calls=("c2",)), (WORDS, CALLS)),
    ],
)
def test_two_sessions(left: Side, right: Side, signs: tuple[str, ...]) -> None:
    found = strangers(left, right)
    assert found is not None
    assert found.signs == signs
    turned = strangers(right, left)
    assert turned is not None
    assert (turned.left, turned.right) == (found.right, found.left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (side("a"), side("a")),
        (side("a", prompt="Do."), side("a", prompt="Stop.")),
        (side("a", "acp", " Do.  it\n"), side("b", "gemini", "Do. it")),
        (side("a", "acp", calls=("c1",)), side("b", "gemini", calls=("c2",))),
        (side(), side("b")),
        (side(prompt="Do.", calls=("c1",)), side("b", prompt="Stop.", calls=("c1",))),
        (side(prompt="Do."), side("b", prompt="Stop.")),
        (side("a", "acp", "Do."), side("b", "gemini")),
        (side("log-0123456789abcdef", "codex"), side("a", "codex")),
    ],
)
def test_nothing_shows_that_they_are_two(left: Side, right: Side) -> None:
    assert strangers(left, right) is None


def test_agents_that_a_session_started_do_not_count() -> None:
    """Their prompts are their agent's words, and their ids those of other sessions."""
    head = {"type": "session", "format": "callsheet/1", "agent": {"name": "x"}}
    below = {**head, "nativeSessionId": "below", "parent": {"session": "a"}}
    left = of(s=[{**head, "nativeSessionId": "a"}], t=[below, message("user", "Look around.")])
    right = of(s=[{**head, "nativeSessionId": "b"}], t=[below, message("user", "Look around.")])
    found = strangers(left, right)
    assert found is not None
    assert (found.left, found.right) == (("a",), ("b",))


def test_what_others_say_is_no_prompt() -> None:
    left = of(s=[{"type": "session", "format": "callsheet/1"}, message("model", "Hm.")])
    assert left.prompts == set()
