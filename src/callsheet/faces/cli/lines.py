"""What a headless run prints with ``--json``: records as they stand, and previews.

Owns the lines of ``--json``; docs/headless.md is their promise. What is no JSON, ``rowlog`` prints.

Must never know: the session's machinery, protocols, rows.
"""

from __future__ import annotations

import sys
from typing import Protocol, cast

import msgspec

from callsheet.faces.cli.terminal import write_json
from callsheet.live import Closed, Session
from callsheet.live.channel import key_of
from callsheet.records import encode
from callsheet.seam import (
    Completed,
    Event,
    Failed,
    Interrupted,
    Lost,
    NotStarted,
    Recorded,
    TurnResult,
)

RESULTS: dict[type[TurnResult], str] = {
    Completed: "completed",
    Failed: "failed",
    Interrupted: "interrupted",
    Lost: "lost",
    NotStarted: "not_started",
}
"""Words for the ends of a turn."""

PREVIEWS: dict[str, str] = {
    "CallPreview": "call",
    "OutputPreview": "output",
    "ThoughtPreview": "thought",
    "MessagePreview": "message",
    "RequestOpened": "request",
    "RequestClosed": "request_closed",
    "TurnChanged": "turn",
    "Noted": "note",
}
"""Words for what is no record."""


class Lines(Protocol):
    """Prints a run."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def result(self, result: TurnResult) -> None:
        """The turn has ended."""

    def end(self, closed: Closed) -> None:
        """The session is closed."""


class JsonLines:
    """``--json``: records as they settle, and what is asked for besides.

    Args:
        session: The session.
        previews: Also what is no record.
    """

    def __init__(self, session: Session, *, previews: bool) -> None:
        self._session = session
        self._previews = previews
        self._main: str | None = None
        self._result: TurnResult | None = None

    def event(self, event: Event) -> None:
        """A record as it stands in its stream, or a preview."""
        if isinstance(event, Recorded):
            self._main = self._main or event.stream
            line = encode(event.record)
            if event.stream != self._main:
                line = _of_other(line, event.stream)
            self._print(line)
        elif self._previews:
            self._print(msgspec.json.encode(preview_line(event)))

    def _print(self, line: bytes) -> None:
        write_json(line)
        sys.stdout.buffer.flush()

    def result(self, result: TurnResult) -> None:
        """Kept for the last line."""
        self._result = result

    def end(self, closed: Closed) -> None:
        """The last line."""
        result = self._result
        line: dict[str, object] = {
            "result": RESULTS[type(result)] if result is not None else "lost",
            "bundle": str(closed.bundle),
            "stream": self._main,
        }
        for name in ("reason", "message"):
            words = getattr(result, name, None)
            if words is not None:
                line[name] = words
        self._print(msgspec.json.encode(line))


def _of_other(line: bytes, stream: str) -> bytes:
    """A record of another stream than the session's own names it in ``_meta``."""
    members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    meta = msgspec.json.decode(members["_meta"], type=dict[str, msgspec.Raw]) if "_meta" in members else {}
    meta["callsheet/stream"] = msgspec.Raw(msgspec.json.encode(stream))
    return msgspec.json.encode({**members, "_meta": meta})


def preview_line(event: Event) -> dict[str, object]:
    """A preview as a line: ``preview`` says which kind, ``key`` what it replaces."""
    name = PREVIEWS[type(event).__name__]
    built = cast(dict[str, object], msgspec.to_builtins(event))
    built.pop("type", None)
    request = built.get("request")
    if isinstance(request, dict):
        kind = _camel_case_of(str(request.pop("type")))
        built["request"] = {"kind": kind, **_members(request)}
    return {"preview": name, "key": ":".join(key_of(event)), **_members(built)}


def _members(built: dict[str, object]) -> dict[str, object]:
    """Members in camelCase, without those that are absent."""
    return {_camel(name): value for name, value in built.items() if value is not None}


def _camel_case_of(name: str) -> str:
    return name[:1].lower() + name[1:]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
