"""Rules that terminals and hooks have to keep alone (ASR-271, 273).

Owns the list of members that make a terminal's snapshot. That a later snapshot is whole, and that one
terminal has one state, is checked across the stream.

Must never know: other records of the stream.
"""

from __future__ import annotations

from callsheet.rules.finding import Json, Problem, Problems

SNAPSHOT: tuple[str, ...] = (
    "kind",
    "callId",
    "command",
    "description",
    "cwd",
    "status",
    "awaited",
    "exitCode",
    "signal",
    "output",
    "startedAt",
    "completedAt",
)
"""What a terminal record says about its process; a later record says all of it again (ASR-271)."""


def asr_271(record: Json) -> Problems:
    """A terminal has an id."""
    if not isinstance(record.get("terminalId"), str):
        yield Problem("/terminalId", "a terminal needs a terminalId, a string")


def asr_273(record: Json) -> Problems:
    """A hook names its event; what it put into the conversation is a message with author 'hook'."""
    if not isinstance(record.get("event"), str):
        yield Problem("/event", "a hook needs the event it ran for, a string")
    if "content" in record:
        yield Problem("/content", "what a hook put into the conversation is a message with author 'hook'")
