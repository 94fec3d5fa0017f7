"""What is silent about every call of a session, and what is not."""

from __future__ import annotations

import io
import json
from typing import Any

from callsheet.rows import Everywhere, Sheet, Silences

CALL = {"type": "tool_call", "callIdSource": "native"}
RESULT = {"type": "tool_result", "linkage": "exact", "status": "completed"}
NONE = {"content": {"state": "absent", "reason": "no field"}}


def silences(*records: dict[str, Any]) -> Silences:
    whole = [{"seq": number, "id": f"r{number}", **record} for number, record in enumerate(records)]
    return Sheet(io.BytesIO(b"".join(json.dumps(record).encode() + b"\n" for record in whole))).silences


def everywhere(*records: dict[str, Any]) -> Everywhere:
    return silences(*records).everywhere()


def test_a_stream_without_calls_is_silent_about_nothing() -> None:
    assert everywhere({"type": "message", "author": "user"}) == Everywhere()


def test_one_record_that_has_it_speaks_for_all() -> None:
    silent = {**CALL, "callId": "a", "capture": {"name": {"state": "absent"}}}
    assert everywhere(silent).members == {"requestedBy", "name"}
    assert everywhere(silent, {**CALL, "callId": "b", "name": "Sh"}).members == {"requestedBy"}
    assert everywhere(silent, {**CALL, "callId": "b", "requestedBy": "user"}).members == {"name"}
    # Nothing says that the name of this one is missing; it is all the same.
    assert everywhere(silent, {**CALL, "callId": "b"}).members == {"requestedBy", "name"}
    kept = {**silent, "capture": {"input": {"state": "unavailable", "blob": {"blob": "b", "size": 1}}}}
    assert everywhere({**silent, "capture": {"input": {"state": "absent"}}}, kept).members == {"requestedBy"}


def test_what_reached_the_model_is_silent_for_one_reason() -> None:
    first, again = {**RESULT, "callId": "a", "capture": NONE}, {**RESULT, "callId": "b", "capture": NONE}
    assert everywhere(first, again) == Everywhere(frozenset({"content"}), "no field")
    assert everywhere(first, {**RESULT, "callId": "b"}) == Everywhere()
    assert everywhere(first, {**again, "capture": {}, "content": []}) == Everywhere()
    assert everywhere({**RESULT, "callId": "a"}) == Everywhere(frozenset({"content"}))


def test_exit_codes_are_silent_by_the_registry() -> None:
    head = {"type": "session", "format": "callsheet/1", "agent": {"name": "claude-code"}}
    command = {**CALL, "callId": "a", "name": "Bash", "requestedBy": "model"}
    assert everywhere(head, command).members == {"exec.exitCode"}
    assert everywhere(head, {**command, "name": "Read"}).members == set()
    coded = {**RESULT, "callId": "b", "exec": {"exitCode": 0}, "content": []}
    assert everywhere(head, command, coded).members == set()


def test_agents_count_too() -> None:
    own = silences({**CALL, "callId": "a"})
    own.update(silences({**CALL, "callId": "b", "requestedBy": "model"}))
    assert own.everywhere() == Everywhere()
