"""The first pass over an app-server log: what must not be kept of it, and who started each thread.

Owns finding answers to secret questions and raw chain of thought in frames, for a live connection too, before it
writes a frame. The
answer to a question marked ``isSecret`` is hidden where the client gives it, and wherever its words stand again; of
raw reasoning (deltas, items, raw response items) only where it stands.

Must never know: records other than refs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.fold import Tray
from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.masks import Hidden
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.rpc import Frame, Id
from callsheet.harness._port.units import Hole, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.app_server.lineage import Lineage, Origin
from callsheet.harness.codex.app_server.shapes import frame_of, log_reading
from callsheet.harness.codex.secrets import is_secret, options_of, questions_of
from callsheet.records import SourceEntry

QUESTIONS = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"
ITEMS = (b'"reasoning"', b'"Reasoning"')
DEEPEST = 12
"""Depth to which items are looked for."""
RAW_ITEM = "rawResponseItem/completed"
OPEN_MOST = 1000
"""Open requests for a secret that are kept in mind."""


class Secrets:
    """Follows the frames of one connection.

    Args:
        keep_reasoning: Whether raw chain of thought was asked for.
    """

    def __init__(self, *, keep_reasoning: bool) -> None:
        self._keep_reasoning = keep_reasoning
        self._asked: dict[Id | None, tuple[str, dict[str, Raw]]] = {}
        self._calls: dict[str, None] = {}

    def of(self, frame: Frame) -> Hidden:
        """What is to be hidden of a frame; frames come in their order."""
        found = Hidden()
        method = frame.method
        if method == "initialize":
            self._asked.clear()
        elif method is None and not frame.from_agent:
            if frame.id is not None:
                self._answered(frame, found)
        elif method in (QUESTIONS, ELICITATION):
            if frame.id is not None:
                self._asked[frame.id] = (method, members_of(frame.params))
                if len(self._asked) > OPEN_MOST:
                    self._asked.pop(next(iter(self._asked)))
        elif frame.from_agent:
            if not self._keep_reasoning:
                found.parts.extend(_reasoning(method or "", frame.params if method else frame.result))
            if method == RAW_ITEM and self._calls:
                item = members_of(members_of(frame.params).get("item", ABSENT))
                if text_of(item.get("call_id", ABSENT)) in self._calls and "output" in item:
                    found.parts.append(item["output"])
        return found

    def _answered(self, frame: Frame, found: Hidden) -> None:
        method, params = self._asked.pop(frame.id, ("", {}))
        result = members_of(frame.result)
        if method == QUESTIONS:
            self._questions(params, members_of(result.get("answers", ABSENT)), found)
        elif method == ELICITATION:
            content = result.get("content", ABSENT)
            whole, names = secrets_of(params)
            given = members_of(content)
            secret = [content] if whole and content else [given[name] for name in given if name in names]
            found.parts.extend(secret)
            found.words.extend(word for raw in secret for word in _words(value_of(raw)))

    def _questions(self, params: dict[str, Raw], answers: dict[str, Raw], found: Hidden) -> None:
        questions = questions_of({"questions": value_of(params.get("questions", ABSENT))})
        labels = options_of(questions)
        for question in questions:
            raw = answers.get(str(question.get("id")), ABSENT)
            if is_secret(question) and raw:
                call_id = text_of(params.get("itemId", ABSENT))
                if call_id is not None:
                    self._calls[call_id] = None
                found.parts.append(members_of(raw).get("answers", raw))
                found.words.extend(word for word in _words(value_of(raw)) if word not in labels)


def _reasoning(method: str, part: Raw, depth: int = 0) -> Iterator[Raw]:
    """Raw chain of thought in a frame of the server: in items wherever they stand, and in deltas."""
    if depth == 0 and ("raw_content" in method or method == "item/reasoning/textDelta"):
        params = members_of(part)
        event = members_of(params.get("msg", ABSENT)) or params
        yield from (event[name] for name in ("delta", "text") if name in event)
    if depth > DEEPEST or not any(word in bytes(part) for word in ITEMS):
        return
    for item in items_of(part):
        yield from _reasoning(method, item, depth + 1)
    members = members_of(part)
    if text_of(members.get("type", ABSENT)) in ("reasoning", "Reasoning"):
        yield from (members[name] for name in ("content", "raw_content") if name in members)
        return
    for member in members.values():
        yield from _reasoning(method, member, depth + 1)


def _words(value: Any) -> list[str]:
    """The texts of an answer."""
    if isinstance(value, dict):
        return [word for item in value.values() for word in _words(item)]
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [value] if isinstance(value, str) and value else []


class Surveyed(NamedTuple):
    """What the first pass found.

    Attributes:
        units: How many units the log has.
        origins: Who started each thread.
    """

    units: int
    origins: dict[str, Origin]


def survey(desk: Desk, veil: Veil, source: SourceEntry) -> Surveyed:
    """The first pass over a log."""
    secrets = Secrets(keep_reasoning=desk.keep_reasoning)
    lineage = Lineage()
    scratch = Pen(desk, veil, Tray(None, []), {})  # makes refs, and writes nothing
    count = 0
    for unit in native_units(veil.lines(source), log_reading):
        count += 1
        if isinstance(unit, Hole):
            continue
        frame = frame_of(unit)
        if frame is None:
            continue
        scratch.take(source, unit)
        lineage.take(frame, scratch.ref)
        hidden = secrets.of(frame)
        for part in hidden.parts:
            _hide(veil, source, unit.line.offset + unit.start, unit.readable(), part)
        for word in hidden.words:
            veil.secret(word, [source])
    return Surveyed(count, lineage.origins)


def _hide(veil: Veil, source: SourceEntry, offset: int, data: bytes, part: Raw) -> None:
    """Hides a value at every place of its line where it stands to the letter."""
    text = bytes(part)
    if not text or mark(part) not in (b'"', b"[", b"{"):
        return
    at = data.find(text) if text not in (b'""', b"[]", b"{}") else -1
    while at >= 0:
        veil.hide(source, offset + at, len(text))
        at = data.find(text, at + len(text))
