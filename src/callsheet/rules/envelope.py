"""What holds for every record alone: its shape (P-SHAPE), its capture states (P-CAPTURE), its text (P-JSON).

Owns the profile's codes for a single record. Where a rule of the tool records speaks about the same member,
the rule's finding stands and the shape finding is dropped (``check`` does that).

Must never know: other records of the stream.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from callsheet.records import TYPES, Record
from callsheet.rules.call import STATES
from callsheet.rules.finding import Json, Problem, Problems, shown, step
from callsheet.rules.shape import OPEN, PART_NEEDS, members
from callsheet.rules.text import text_problems
from callsheet.rules.walk import Check, checker

PART_LISTS = ("content", "displayContent", "output", "summary")
"""Members that hold content parts."""


@cache
def _walk(kind: str | None) -> Check:
    return checker(OPEN.of(TYPES.get(kind or "", Record)))


def p_shape(record: Json) -> Problems:
    """Required members are there, and every known member has its type."""
    kind = record.get("type")
    if not isinstance(kind, str):
        yield Problem("/type", "a record needs a type, a string")
    found: list[Problem] = []
    _walk(kind if isinstance(kind, str) and kind in TYPES else None)(record, "", found)
    yield from (problem for problem in found if problem.path not in ("/seq", "/id", "/type"))
    for member in PART_LISTS:
        parts = record.get(member)
        if isinstance(parts, list) and isinstance(kind, str) and kind in TYPES:
            for index, part in enumerate(parts):
                yield from _part(part, f"/{member}/{index}")


def _part(part: Any, path: str) -> Problems:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str):
        for member in PART_NEEDS.get(kind, ()):
            if member not in part:
                yield Problem(f"{path}/{member}", f"a content part of type {shown(kind)} needs {member}")


def p_capture(record: Json) -> Problems:
    """A capture state belongs to a member that may have one, and does not contradict that member."""
    capture = record.get("capture")
    kind = TYPES.get(record["type"]) if isinstance(record.get("type"), str) else None
    if not isinstance(capture, dict) or kind is None:
        return
    for key, entry in capture.items():
        path = step("/capture", key)
        if not isinstance(entry, dict):
            continue  # P-SHAPE
        state = entry.get("state")
        if state not in STATES:
            yield Problem(f"{path}/state", f"a capture state is one of {', '.join(STATES)}")
            continue
        if key.split(".")[0] not in members(kind):
            yield Problem(path, f"a {record['type']} has no member {shown(key)} whose state this could be")
        elif key not in kind.CAPTURE_KEYS and state not in ("external", "redacted"):
            yield Problem(
                path, f"the member {shown(key)} of a {record['type']} is never {state}: it is left out"
            )
        elif state == "absent" and key != "content" and _stands(record, key):
            yield Problem(path, f"{shown(key)} is said to be absent, but it stands in the record")
        if state == "external" and not isinstance(entry.get("blob"), dict):
            yield Problem(f"{path}/blob", "an external member needs the blob that holds it")


def _stands(record: Json, key: str) -> bool:
    holder: Any = record
    for name in key.split("."):
        if not isinstance(holder, dict) or name not in holder:
            return False
        holder = holder[name]
    return True


def p_json(record: Json) -> Problems:
    """The text means the same to every reader: no key twice, no number that is rounded, no half character."""
    arguments = record.get("type") == "tool_call"
    for problem in text_problems(record):
        inside = problem.path.startswith("/input/") or (
            problem.path == "/input" and not isinstance(record["input"], (list, dict))
        )
        if not (arguments and inside):  # ASR-254 speaks about arguments
            yield problem
