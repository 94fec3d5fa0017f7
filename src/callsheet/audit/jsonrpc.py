"""Frames of a logged connection: whose they are, what they answer, which are a replay, which version is spoken.

Owns, for sources that the registry marks as frame logs: the JSON-RPC frames in a line (wrapped, bare, in a batch),
the time at which a line was received, the request that a response answers (ids count for each direction), the lines
between a request to load a session and its answer, and the version of the protocol that was agreed last. It is read
anew; no importer code takes part. Memory: a few words for each request.

Must never know: records, what a frame means for one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from callsheet.registry.via import ms_to_rfc3339, utc
from callsheet.registry.when import MISSING, follow

EARLIEST_MS = 100_000_000_000
"""A smaller count of milliseconds is one from the start of a recording, and no time."""
SENDERS = ("agent_to_client", "client_to_agent", "agent", "client", "server", "recv", "send", "out", "in")
"""Words for who sent a frame."""
LOADS = ("session/load", "session/resume")


class Id(NamedTuple):
    """The id of a request: the text "5" and the number 5 are two."""

    text: str
    is_text: bool = False


class Asked(NamedTuple):
    """A request: its line, its id, who sent it, its method, the session that it names, a mark of its parameters."""

    line: int
    id: Id
    sender: Any
    method: str
    session: Any
    params: int


class Frames:
    """The requests and replays of one log.

    Attributes:
        version: The version of the protocol that was agreed last, up to the line taken in last.
    """

    def __init__(self) -> None:
        self.version: int | None = None
        self._asked: dict[str, list[Asked]] = {}
        self._replays: list[tuple[int, int, Any]] = []

    def take(self, line: int, root: Any) -> None:
        """Takes a line in; lines come in order."""
        for _, frame in frames_of(root):
            name, sender, method = id_of(frame.get("id")), follow(root, "/dir"), frame.get("method")
            if name is None:
                continue
            if isinstance(method, str):
                session = follow(frame, "/params/sessionId")
                mark = hash(repr(frame.get("params")))
                self._asked.setdefault(name.text, []).append(Asked(line, name, sender, method, session, mark))
                continue
            asked = self.answered(line, sender, name)
            if asked is not None and asked.method in LOADS:
                self._replays.append((asked.line, line, asked.session))
            agreed = follow(frame, "/result/protocolVersion")
            if type(agreed) is int and (asked is None or asked.method == "initialize"):
                self.version = agreed

    def answered(self, line: int, sender: Any, name: Id) -> Asked | None:
        """The request that a response on a line answers: the last one before it of that id, from the other side."""
        for asked in reversed(self._asked.get(name.text, [])):
            if (
                asked.id == name
                and asked.line <= line
                and (asked.sender is MISSING or asked.sender != sender)
            ):
                return Asked(*asked)
        return None

    def number_of(self, line: int, name: Id, methods: frozenset[str], session: Any) -> int:
        """Which request of an id's words a line holds.

        Counted by ids and parameters: one that is sent again is the same one.
        """
        told = [
            (asked.id, asked.params)
            for asked in self._asked.get(name.text, [])
            if asked.line <= line and asked.method in methods and asked.session == session
        ]
        own = [one for one in told if one[0] == name]
        return list(dict.fromkeys(told)).index(own[-1]) + 1 if own else 0

    def replay_at(self, line: int) -> Any:
        """The session that is told again on a line, ``MISSING`` where none is."""
        for start, end, session in self._replays:
            if start < line < end:
                return session
        for asked in (one for found in self._asked.values() for one in found if one.method in LOADS):
            open_ended = all(start != asked.line for start, _, _ in self._replays)
            if open_ended and asked.line < line:
                return asked.session
        return MISSING


def frames_of(root: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The frames of a decoded line, each with its pointer."""
    base, held = "", root
    if isinstance(root, dict) and ("frame" in root or root.get("dir") is not None):
        if root.get("dir") is not None and root["dir"] not in SENDERS:
            return
        base, held = "/frame", root.get("frame")
    elif isinstance(root, dict) and root.get("jsonrpc") is None and root.get("method") is None:
        return
    for step, frame in enumerate(held) if isinstance(held, list) else [(-1, held)]:
        if isinstance(frame, dict) and _is_frame(frame):
            yield base if step < 0 else f"{base}/{step}", frame


def _is_frame(frame: dict[str, Any]) -> bool:
    """Whether an object is a request, a notification or a response."""
    answers = "result" in frame or "error" in frame
    return isinstance(frame.get("method"), str) or (answers and id_of(frame.get("id")) is not None)


def frame_at(root: Any, pointer: str) -> tuple[str, dict[str, Any]] | None:
    """The frame that a pointer leads into; without a pointer the only one of the line."""
    if not pointer:
        found = list(frames_of(root))
        return found[0] if len(found) == 1 else None
    for base, frame in frames_of(root):
        if pointer == base or pointer.startswith(f"{base}/"):
            return base, frame
    return None


def id_of(value: Any) -> Id | None:
    """A value that is a JSON-RPC id, a text or a number; None for anything else."""
    if isinstance(value, str):
        return Id(value, is_text=True)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return Id(json.dumps(int(value) if value == int(value) else value))
    return Id(str(value)) if type(value) is int else None


def received(root: Any) -> Any:
    """When a line was received, ``MISSING`` where it does not say so."""
    found = utc(follow(root, "/ts"))
    if found is not MISSING:
        return found
    ms, seconds = follow(root, "/ms"), follow(root, "/t")
    if type(ms) is int and ms >= EARLIEST_MS:
        return ms_to_rfc3339(ms)
    if type(seconds) in (int, float) and EARLIEST_MS / 1000 <= seconds < EARLIEST_MS:
        return ms_to_rfc3339(round(seconds * 1000))
    return MISSING
