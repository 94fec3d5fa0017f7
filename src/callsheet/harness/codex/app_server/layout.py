"""Which files are app-server logs, and what each is called.

Owns the marks of a frame of this protocol. A log lies wherever its client put it: there is no usual place.

Must never know: what becomes of a frame.
"""

from __future__ import annotations

from callsheet.harness._port.parts import ABSENT, members_of, text_of
from callsheet.harness._port.rpc import Frame
from callsheet.harness._port.units import unit_of
from callsheet.harness.codex.app_server.shapes import ASKS, frame_of, log_reading

KIND = "codex-app-server"
METHODS = ("item/", "turn/", "thread/", "codex/event/", "rawResponse")
"""How the methods begin that no other protocol has, where their params name a thread."""


def frame_on(line: bytes) -> Frame | None:
    """The frame of a line by itself."""
    unit = unit_of(line, log_reading)
    return frame_of(unit) if unit is not None else None


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


def is_frame(line: bytes) -> bool:
    """Whether a line holds a frame of this protocol, and of no other that speaks JSON-RPC."""
    frame = frame_on(line)
    if frame is None:
        return False
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
