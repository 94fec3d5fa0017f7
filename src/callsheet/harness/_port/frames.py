"""Frame logs: who sent which frame, and when it was received (the same spellings for every protocol).

Owns the members that wrap a frame (``dir``, ``frame``, ``ts``, ``ms``, ``t``, ``raw``), the words for the two
directions, the time of receipt, and the line that a live recorder writes.

Must never know: what a frame holds.
"""

from __future__ import annotations

from typing import Any

import msgspec

from callsheet.harness._port.pen import utc, utc_of_ms

FROM_AGENT: dict[str, bool] = {
    "agent_to_client": True,
    "client_to_agent": False,
    "agent": True,
    "client": False,
    "server": True,
    "recv": True,
    "send": False,
    "out": True,
    "in": False,
}
"""Spellings of ``dir``, and whether they mean a frame from the agent."""

EARLIEST_MS = 100_000_000_000
"""A smaller ``ms`` counts from the start of the recording: it is no time of day."""


def received_at(ts: Any, ms: Any, t: Any) -> str | None:
    """When a line was received, RFC 3339 UTC.

    Args:
        ts: RFC 3339.
        ms: Milliseconds since 1970.
        t: Seconds since 1970.
    """
    found = utc(ts)
    if found is None and type(ms) is int and ms >= EARLIEST_MS:
        found = utc_of_ms(ms)
    if found is None and type(t) in (int, float) and EARLIEST_MS / 1000 <= t < EARLIEST_MS:
        found = utc_of_ms(round(t * 1000))
    return found


def log_line(frame: bytes, *, from_agent: bool, ts: str, answered_by: str | None = None) -> bytes:
    """The line that a recorder writes for a frame, without LF: the frame stands in it as it was sent.

    Args:
        frame: One JSON value, without line breaks.
        from_agent: Who sent it.
        ts: Time of receipt, RFC 3339 UTC.
        answered_by: Of a frame that answers a request: who gave the answer, ``user`` or ``policy`` (decision 16).
    """
    way = b"agent_to_client" if from_agent else b"client_to_agent"
    who = b"" if answered_by is None else b',"answered_by":' + msgspec.json.encode(answered_by)
    return b'{"dir":"' + way + b'","ts":"' + ts.encode() + b'"' + who + b',"frame":' + frame + b"}"


def raw_line(text: bytes, *, from_agent: bool, ts: str, omitted: int = 0) -> bytes:
    """The line for bytes that are no JSON value: kept as text, unmapped when it is read.

    Args:
        text: The bytes.
        from_agent: Who sent them.
        ts: Time of receipt, RFC 3339 UTC.
        omitted: How many more there were, of a line that was too long to be kept.
    """
    way = "agent_to_client" if from_agent else "client_to_agent"
    line = {"dir": way, "ts": ts, "raw": text.decode("utf-8", "replace")}
    return msgspec.json.encode({**line, "omittedBytes": omitted} if omitted else line)
