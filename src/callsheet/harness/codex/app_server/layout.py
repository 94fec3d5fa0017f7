"""Which files are app-server logs, and what each is called.

Owns the marks of a frame of this protocol. A log lies wherever its client put it: there is no usual place.

Must never know: what becomes of a frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from callsheet.harness._port import Folder, Session
from callsheet.harness._port.parts import ABSENT, members_of, text_of
from callsheet.harness._port.units import Unit
from callsheet.harness.codex.app_server.shapes import ASKS, Frame, frame_of, log_reading
from callsheet.wire.lines import Line

KIND = "codex-app-server"
HEAD = 1 << 20
"""Bytes in which a thread's id is looked for."""
LOOKS = 50
"""Lines that are looked at to know a log."""
METHODS = ("item/", "turn/", "thread/", "codex/event/", "rawResponse")
"""How the methods begin that no other protocol has, where their params name a thread."""


def _frames(head: bytes) -> Iterator[Frame]:
    for number, data in enumerate(head.split(b"\n")):
        if not data.strip():
            continue
        try:
            native = log_reading.decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        frame = frame_of(Unit(Line(number + 1, 0, data), 0, data, native))
        if frame is not None:
            yield frame


def thread_named(frame: Frame) -> str | None:
    """The thread that a frame is about, as far as it names one."""
    for part in (frame.params, frame.result):
        members = members_of(part)
        for name in (
            members.get("threadId", ABSENT),
            members_of(members.get("thread", ABSENT)).get("id", ABSENT),
            members.get("conversationId", ABSENT),
        ):
            words = text_of(name)
            if words:
                return words
    return None


def _is_one(frame: Frame) -> bool:
    if frame.method is None:
        told = members_of(frame.result)
        return "userAgent" in told or "cliVersion" in members_of(told.get("thread", ABSENT))
    if frame.method == "initialize":
        params = members_of(frame.params)
        return "clientInfo" in params and "protocolVersion" not in params
    if frame.method == "thread/start":
        return True
    named = frame.method in ASKS or frame.method.startswith(METHODS)
    return named and thread_named(frame) is not None


def recognises(head: bytes) -> bool:
    """Whether one of a file's first lines is a frame of this protocol."""
    return any(_is_one(frame) for frame in _frames(b"\n".join(head.split(b"\n", LOOKS)[:LOOKS])))


def sessions(path: str, folder: Folder) -> list[Session]:
    """The log at a path, or every log below it."""
    if folder.is_file(path):
        return [_session(path, folder)]
    return [
        _session(file, folder) for file in folder.files(path, "**/*.jsonl") if recognises(folder.head(file))
    ]


def _session(path: str, folder: Folder) -> Session:
    named = (thread_named(frame) for frame in _frames(folder.head(path, HEAD)))
    name = next((one for one in named if one), None) or PurePosixPath(path).stem
    return Session(KIND, name, path, None, (path,))
