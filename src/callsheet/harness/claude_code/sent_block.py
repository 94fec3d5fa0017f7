"""A stored tool result against the block a request carries: is it the same, and which part of it.

Owns: the small facts kept of a stored result (lengths and hashes, never its text), and how well a sent
block fits them. What Claude Code does to a result on its way was seen in captures (docs of the harness):
the last one of a message is trimmed and gets own texts appended; an array gets them as parts of their own,
with an LF added to the text part before them. Anything else that differs is the model's to have seen: it
comes from the request's copy.

Must never know: lines, requests, call records. Rules: ASR-259.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, NamedTuple

import msgspec

from callsheet.harness.claude_code.own_text import BLANKS, JOINT, OwnTexts, Ranges

EXACT = 2
"""The stored text is there, and all the rest has records of its own."""
PARTIAL = 1
"""The stored text is there; something without a record of its own was sent with it."""
DIFFERENT = 0
"""Only the call id ties the two."""

UNWRITABLE = (ValueError, TypeError, RecursionError, OverflowError)
"""What ``canonical`` raises for a value that is no JSON."""

_encode = msgspec.json.Encoder(order="sorted").encode
_unequal = itertools.count()
_LONE = re.compile("[\ud800-\udfff]")


def canonical(value: Any) -> bytes:
    """The form that the native hashes are made of: sorted keys, no blanks, ``cache_control`` left out.

    Raises:
        UNWRITABLE: The value can't be written as JSON.
    """
    try:
        return _encode(value)
    except (msgspec.EncodeError, UnicodeEncodeError):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return _LONE.sub(lambda lone: f"\\u{ord(lone.group()):04x}", text).encode()


def uncached(value: Any) -> Any:
    """The value without any ``cache_control``."""
    if isinstance(value, dict):
        return {key: uncached(item) for key, item in value.items() if key != "cache_control"}
    return [uncached(item) for item in value] if isinstance(value, list) else value


def _part_hash(part: Any) -> int:
    if isinstance(part, dict) and len(part) == 2 and part.get("type") == "text":
        text = part.get("text")
        if isinstance(text, str):
            return hash((1, text))
    try:
        return hash((2, canonical(part)))
    except UNWRITABLE:
        return hash((3, next(_unequal)))


def _text_of(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    return text if isinstance(text, str) else None


class StoredContent(msgspec.Struct, gc=False):
    """What is kept of a stored result's content.

    Attributes:
        whole: Hash of all of it.
        length: Characters of a text, -1 for anything else.
        lead: Blanks before the trimmed text.
        trimmed: Hash of the trimmed text.
        trimmed_length: Its characters.
        parts: Hashes of the parts of an array.
    """

    whole: int
    length: int = -1
    lead: int = 0
    trimmed: int = 0
    trimmed_length: int = 0
    parts: tuple[int, ...] | None = None

    def has_text_of(self, other: StoredContent) -> bool:
        """Whether both look the same to a reader of a sent copy."""
        return self == other or (self.length >= 0 <= other.length and self.trimmed == other.trimmed)


def stored_content(content: Any) -> StoredContent:
    """The facts of one stored ``content`` (a missing one is an empty text)."""
    if content is None:
        content = ""
    if isinstance(content, str):
        whole = hash(content)
        size = len(content)
        if not size or (content[0] not in BLANKS and content[-1] not in BLANKS):
            return StoredContent(whole, size, 0, whole, size)
        right = content.lstrip(BLANKS)
        text = right.rstrip(BLANKS)
        return StoredContent(whole, size, size - len(right), hash(text), len(text))
    if isinstance(content, list):
        parts = tuple(map(_part_hash, content))
        return StoredContent(hash(parts), parts=parts)
    return StoredContent(_part_hash(content))


class Fit(NamedTuple):
    """How a sent block answers to a stored one.

    Attributes:
        rank: EXACT, PARTIAL or DIFFERENT.
        copied: The content must be read from the sent block; else from the stored one.
        keep: The ranges that are the result's; None for all.
    """

    rank: int
    copied: bool
    keep: Ranges | None


AS_STORED = Fit(EXACT, False, None)


def fit(stored: StoredContent, sent: Any, own: OwnTexts) -> Fit | None:
    """Compares a sent ``content`` with a stored one; None when the stored one isn't in it."""
    if sent is None:
        sent = ""
    if isinstance(sent, str):
        return _fit_text(stored, sent, own) if stored.length >= 0 else None
    if isinstance(sent, list):
        return None if stored.parts is None else _fit_parts(stored.parts, sent, own)
    return AS_STORED if stored == stored_content(sent) else None


def _fit_text(stored: StoredContent, sent: str, own: OwnTexts) -> Fit | None:
    size = stored.length
    whole = None
    if len(sent) >= size and hash(sent[:size]) == stored.whole:
        whole = own.left(sent, size)
        if not whole:
            return AS_STORED
    trimmed = stored.trimmed_length
    if trimmed != size and len(sent) >= trimmed and hash(sent[:trimmed]) == stored.trimmed:
        left = own.left(sent, trimmed)
        if not left:
            return Fit(EXACT, False, ((stored.lead, stored.lead + trimmed),))
        if sent.startswith(JOINT, trimmed):
            return Fit(PARTIAL, True, _joined((0, trimmed), left))
    if whole and sent.startswith(JOINT, size):
        return Fit(PARTIAL, True, _joined((0, size), whole))
    return None


def _fit_parts(stored: tuple[int, ...], sent: list[Any], own: OwnTexts) -> Fit | None:
    count = len(stored)
    if len(sent) < count:
        return None
    glued = False  # an LF was added to the text part before appended ones
    for index in range(count - 1, -1, -1):
        if _part_hash(sent[index]) == stored[index]:
            continue
        text = _text_of(sent[index])
        if glued or len(sent) == count or text is None or not text.endswith("\n"):
            return None
        if hash((1, text[:-1])) != stored[index] or any(
            _text_of(part) is not None for part in sent[index + 1 : count]
        ):
            return None
        glued = True
    keep = [index for index in range(count, len(sent)) if (_text_of(sent[index]) or "") not in own]
    if not keep:
        return AS_STORED
    return Fit(PARTIAL, True, _joined((0, count), tuple((index, index + 1) for index in keep)))


def _joined(first: tuple[int, int], rest: Ranges) -> Ranges:
    ranges = [first]
    for start, end in rest:
        if start == ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return tuple(ranges)


def without_own_end(sent: Any, own: OwnTexts) -> Ranges | None:
    """The part of a sent content before the own texts at its end; None for all of it."""
    if isinstance(sent, str):
        end = own.end(sent)
        return None if end == len(sent) else ((0, end),)
    if isinstance(sent, list):
        end = len(sent)
        while end and own.rendered(_text_of(sent[end - 1]) or ""):
            end -= 1
        return None if end == len(sent) else ((0, end),)
    return None


def cut(content: Any, keep: Ranges | None) -> Any:
    """The kept ranges of a content, in its own form (text or array)."""
    if keep is None:
        return content
    if isinstance(content, str):
        return "".join(content[start:end] for start, end in keep)
    return [part for start, end in keep for part in content[start:end]]
