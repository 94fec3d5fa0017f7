"""Planted lies: every leaf of every record of a true bundle, changed one at a time, and whether the audit sees it.

Owns: the change of a leaf into another value of its kind (another word of the same vocabulary, another digit, another
case), the few leaves that no native line can speak of, and ``unseen``, which holds an audit to all of them.

Must never know: any one harness.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from callsheet.audit import Audit
from callsheet.audit.bundle import findings_of
from callsheet.audit.finding import Json, leaves, pointer_of
from callsheet.records.bundle import Bundle
from callsheet.records.stream import stream_lines
from callsheet.wire.lossless import decode

UNCHECKED: dict[str, str] = {
    "/id": "our own name for the record; nothing native has it, and it only has to be its own",
    "/capture/*/reason": "our own words for why a member is not there",
}
"""Leaves without evidence, and why. ``*`` is one step."""
MASKED = "the digest is that of the line as the source has it; of what a mask hides nobody else can tell it"
"""Why a lie about the digest of a masked line is not told."""

DEEP = frozenset({"input", "raw", "value", "before", "after"})
"""Members that hold native JSON whole: a few of their leaves stand for all."""
_DEEP_MOST = 6
_LOOSE = ("/type", "/native/refs/")
"""Leaves that decide which facts are asked for: a lie in them shows at other members of the record."""

_WORDS: tuple[tuple[str, ...], ...] = (
    ("completed", "failed", "denied", "cancelled", "interrupted", "unknown"),
    ("exact", "derived", "ambiguous", "none"),
    ("native", "derived"),
    ("model", "user", "harness", "code"),
    ("user", "model", "harness", "hook", "system", "unknown"),
    ("allow_once", "allow_session", "allow_always", "reject_once", "reject_always"),
    ("policy", "user", "hook", "classifier", "auto_mode", "agent"),
    ("parsed", "exact", "unknown"),
    ("mcp", "plugin", "connector", "builtin"),
    ("running", "exited", "killed", "stopped", "unknown"),
    ("shell", "monitor"),
    ("answered", "declined", "cancelled", "pending"),
    ("proposed", "applied", "declined", "unknown"),
    ("add", "modify", "delete", "move"),
    ("hunks", "unified", "git", "full_text", "replace"),
    ("absent", "truncated", "redacted", "unavailable", "external"),
    ("read", "edit", "search", "execute", "fetch", "other", "think", "switch_mode"),
    ("inference", "turn", "session"),
    ("pre_tool_use", "post_tool_use", "stop", "session_start", "user_prompt_submit"),
    ("pending", "in_progress", "completed", "cancelled"),
    ("text", "json", "image"),
)


class Lie(NamedTuple):
    """One leaf, changed.

    Attributes:
        path: JSON pointer to the leaf.
        old: What it says.
        new: What the lie says.
        record: The record with the lie in it.
    """

    path: str
    old: Any
    new: Any
    record: Json


def lies(record: Json) -> Iterator[Lie]:
    """Every lie about a record."""
    deep = 0
    for path, old in leaves(record):
        pointer = pointer_of(path)
        if any(_fits(pointer, pattern) for pattern in UNCHECKED):
            continue
        if path[0] in DEEP:
            deep += 1
            if deep > _DEEP_MOST:
                continue
        for new in changes(old, path[-1]):
            lying = copy.deepcopy(record)
            at: Any = lying
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = new
            yield Lie(pointer, old, new, lying)


def changes(value: Any, name: str | int) -> Iterator[Any]:
    """Other values of the same kind."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1 if value + 1 != value else value / 2
        if value:
            yield 0
    elif isinstance(value, str):
        yield from _other_texts(value, name)
    elif isinstance(value, list):
        yield [*value, "x"]
    elif isinstance(value, dict):
        yield {**value, "x": 1}
    else:
        yield "x"


def _other_texts(value: str, name: str | int) -> Iterator[str]:
    words = next((words for words in _WORDS if value in words and name not in ("text", "path")), ())
    found = dict.fromkeys(word for word in words if word != value)
    if not found:
        if value[-1:].isdigit():
            found[value[:-1] + str((int(value[-1]) + 1) % 10)] = None
        elif value[-1:] == "Z" and value[-2:-1].isdigit():
            found[f"{value[:-2]}{(int(value[-2]) + 1) % 10}Z"] = None
        elif value.swapcase() != value:
            found[value.swapcase()] = None
        found[value + "x"] = None
    yield from found


def _fits(pointer: str, pattern: str) -> bool:
    steps, wanted = pointer.split("/"), pattern.split("/")
    return len(steps) == len(wanted) and all(
        one in ("*", step) for one, step in zip(wanted, steps, strict=True)
    )


def is_named(path: str, lie: str) -> bool:
    """Whether a finding at a path names a lie: the leaf itself, or what it stands in."""
    if lie.startswith(_LOOSE):
        return True
    return path == lie or lie.startswith(f"{path}/") or path.startswith(f"{lie}/")


def is_hidden(audit: Audit, record: Json, path: str) -> bool:
    """Whether a leaf is the digest of cited bytes that a mask hides (``MASKED``)."""
    steps = path.split("/")
    if steps[1:3] != ["native", "refs"] or steps[4:] != ["sha256"]:
        return False
    ref = record["native"]["refs"][int(steps[3])]
    source = audit.sources.get(ref["source"])
    return (
        source is not None
        and source.masked
        and b"**" in source.read(ref.get("offset", 0), ref.get("bytes", 0))
    )


class Unseen(NamedTuple):
    """A lie that the audit did not name."""

    stream: str
    record: str
    kind: str
    lie: Lie


def unseen(folder: Path, told: list[tuple[str, str]] | None = None) -> Iterator[Unseen]:
    """Lies about the records of a true bundle that the audit does not name, each told alone.

    Args:
        folder: The bundle.
        told: Takes record type and path of every lie.
    """
    bundle = Bundle(folder)
    with Audit(bundle) as audit:
        for entry in bundle.manifest.streams:
            with audit.stream(entry) as stream, bundle.open(entry.file) as file:
                for position, line in enumerate(stream_lines(file)):
                    record = decode(line.data)
                    for lie in lies(record):
                        if is_hidden(audit, record, lie.path):
                            continue
                        if told is not None:
                            told.append((str(record["type"]), lie.path))
                        claims = list(stream.claims(lie.record, position))
                        found = findings_of(lie.record, claims, entry.id, line.number)
                        if not any(is_named(finding.path, lie.path) for finding in found):
                            yield Unseen(entry.id, str(record.get("id")), str(record["type"]), lie)
