"""What the audit says: a fact without evidence is a value, never an exception.

Owns ``Finding`` (the shape that ``callsheet audit --json`` prints), ``Claim`` (a fact with the evidence that was
found for it, or with none), and which rule speaks of which member.

Must never know: where evidence stands, how it is found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

Json = dict[str, Any]
"""A record as decoded JSON."""
Path = tuple[str | int, ...]
"""Where a value stands in a record: member names and list positions."""

FACT = "P-FACT"
"""A member of a companion record, which no rule of the Tools chapter speaks of."""
REF = "P-REF"
COUNT = "P-COUNT"


class Evidence(NamedTuple):
    """Where a fact was found again.

    Attributes:
        via: The way from the native value to the member, or the name of the table.
        ref: Index of the record's ref; -1 when the evidence is no line of its own refs.
        place: ``source:line``, or the file, or another record.
        pointer: JSON pointer into the line.
        native: The native value there.
    """

    via: str
    ref: int = -1
    place: str = ""
    pointer: str = ""
    native: Any = None


class Claim(NamedTuple):
    """One fact of a record; without evidence it is a finding.

    Attributes:
        path: Where it stands.
        value: What the record says.
        evidence: Where that was found again.
        why: Without evidence: what was found instead.
        rule: The rule, where it is not the member's own.
    """

    path: Path
    value: Any
    evidence: Evidence | None
    why: str = ""
    rule: str = ""


class Finding(Struct, frozen=True, omit_defaults=True):
    """One fact without evidence.

    Attributes:
        record: Id of the record; None for a finding about a source or a stream.
        path: JSON pointer to the member.
        value: What the record says there, shortened.
        rule: The rule that asks for evidence.
        message: What was found instead, one line.
        stream: Id of the stream.
        line: 1-based line of the stream, or of the source.
    """

    record: str | None
    path: str
    value: Any
    rule: str
    message: str
    stream: str | None = None
    line: int | None = None


RULES: dict[str, dict[str, str]] = {
    "*": {
        "seq": "P-SEQ",
        "id": "P-ID",
        "supersedes": "P-CHAIN",
        "native": REF,
        "idSource": FACT,
    },
    "tool_call": {
        "callId": "ASR-250",
        "callIdSource": "ASR-250",
        "name": "ASR-252",
        "kind": "ASR-253",
        "input": "ASR-254",
        "inputText": "ASR-254",
        "provider": "ASR-255",
        "requestedBy": "ASR-274",
        "parentCallId": "ASR-275",
    },
    "tool_result": {
        "callId": "ASR-262",
        "nativeCallId": "ASR-262",
        "linkage": "ASR-262",
        "status": "ASR-258",
        "content": "ASR-259",
        "displayContent": "ASR-259",
        "raw": "ASR-267",
        "error": "ASR-267",
        "exec": "ASR-267",
        "exec.exitCode": "ASR-260",
        "exec.signal": "ASR-288",
        "exec.terminalId": "ASR-290",
        "exec.processId": "ASR-291",
        "startedAt": "ASR-261",
        "completedAt": "ASR-261",
        "durationMs": "ASR-261",
        "provider": "ASR-276",
        "permission": "ASR-270",
    },
    "permission": dict.fromkeys(
        ("decision", "decidedBy", "decider", "rule", "reviews", "rationale", "decidedAt", "feedback"),
        "ASR-270",
    )
    | {"subject": "ASR-268", "status": "ASR-281", "selectedOptionId": "ASR-270", "requestId": "ASR-268"}
    | dict.fromkeys(("title", "description", "options", "reason"), "ASR-279"),
    "input_request": dict.fromkeys(
        ("status", "answers", "response", "answeredBy", "answerRef", "blocking"), "ASR-285"
    )
    | dict.fromkeys(("requestId", "mode", "questions", "message", "requestedSchema", "url"), "ASR-282"),
    "terminal": dict.fromkeys(
        ("terminalId", "kind", "callId", "command", "description", "status", "awaited"), "ASR-271"
    )
    | {
        "cwd": "ASR-267",
        "exitCode": "ASR-260",
        "signal": "ASR-288",
        "output": "ASR-272",
        "startedAt": "ASR-261",
        "completedAt": "ASR-261",
    },
    "hook": dict.fromkeys(
        ("event", "hookId", "name", "handlerKind", "command", "callId", "status", "decision"), "ASR-273"
    )
    | dict.fromkeys(("exitCode", "timedOut", "stdout", "stderr", "output", "durationMs"), "ASR-287"),
    "message": {"author": "ASR-273"},
    "subagent": dict.fromkeys(("agentId", "callId", "status"), "ASR-286"),
}
"""Record type, then member (the longest that fits), to the rule that asks for its evidence."""


def rule_of(kind: str, path: Path) -> str:
    """The rule that speaks of a member; a capture state follows the member it is about."""
    if path and path[0] == "capture":
        path = (*str(path[1]).split("."), *path[2:]) if len(path) > 1 else ()
    names = [step for step in path if isinstance(step, str)]
    for table in (RULES.get(kind, {}), RULES["*"]):
        for end in range(len(names), 0, -1):
            rule = table.get(".".join(names[:end]))
            if rule is not None:
                return rule
    return FACT


def pointer_of(path: Path) -> str:
    """The JSON pointer of a path."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Every leaf of a value with its path; an empty container is a leaf."""
    found: list[tuple[Path, Any]] = []
    stack: list[tuple[Path, Any]] = [(path, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, dict) and item:
            stack.extend((*((*at, name), inner),) for name, inner in reversed(item.items()))
        elif isinstance(item, list) and item:
            stack.extend(((*at, index), inner) for index, inner in reversed(list(enumerate(item))))
        else:
            found.append((at, item))
    return found
