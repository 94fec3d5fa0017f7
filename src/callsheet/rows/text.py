"""Bounded texts out of records: content parts, raw values, arguments.

Owns: where a result's text is taken from (what reached the model first, stored text after it), how parts
that are no text are named, and the cut of a long text into head and tail. A text is never read as a fact.

Must never know: how a text is drawn; harnesses, but for the places in ``raw`` where their text stands
(``RAW_TEXTS``).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET, Raw

from callsheet.records import BlobRef, Part, Record, ToolResult
from callsheet.registry.when import MISSING, follow
from callsheet.rows.row import Output
from callsheet.wire.lossless import NotJson, decode, encode_clean, without_lone_surrogates

Blob = Callable[[str], bytes]
"""Reads a blob by name; raises OSError, KeyError or ValueError where it cannot."""

BLOB_MOST = 8_000_000
"""Bytes up to which a blob is read to draw a row."""

RAW_TEXTS: tuple[str, ...] = ("/block/content", "/content", "/stdout", "/output", "/text", "/block", "")
"""Where text stands in a raw result, first present wins."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counted_calls(calls: int, of_agents: int) -> str:
    """The calls of a session, with those of its subagents: ``12 calls, 3 of them of subagents``."""
    return counted(calls, "call") + (f", {of_agents:,} of them of subagents" if of_agents else "")


def first_line(text: str, most: int) -> str:
    """The first line that is not blank, cut to ``most`` characters."""
    at = len(text) - len(text.lstrip())
    end = text.find("\n", at, at + most + 1)
    line = text[at : end if end >= 0 else at + most].rstrip()
    return line if end >= 0 or len(text) <= at + most else line + "…"


def cut(text: str, most: int) -> str:
    """The text, with an ellipsis in place of what exceeds ``most`` characters."""
    text = without_lone_surrogates(text)
    return text if len(text) <= most else text[:most] + "…"


def bound(text: str, most: int, member: str) -> Output:
    """The text as an output: whole, or its head and tail."""
    text = without_lone_surrogates(text)
    if len(text) <= most:
        return Output(text=text, truncated=False, member=member)
    tail = most // 4
    head = most - tail
    return Output(
        text=text[:head],
        truncated=True,
        omitted=len(text) - head - tail,
        omitted_lines=text.count("\n", head, len(text) - tail),
        tail=text[len(text) - tail :],
        member=member,
    )


def command_text(command: Any) -> str:
    """A command line as text: an argument list is quoted for reading."""
    if isinstance(command, list):
        return shlex.join(str(part) for part in command)
    return command if isinstance(command, str) else compact(command)


def compact(value: Any) -> str:
    """A JSON value as one line."""
    try:
        return encode_clean(value).decode()
    except (TypeError, ValueError, RecursionError):
        return "(a value that cannot be shown)"


def raw_value(raw: Any) -> Any:
    """The decoded value of a ``Raw`` member; ``MISSING`` when it is absent or no JSON."""
    if raw is UNSET or not isinstance(raw, (Raw, bytes)):
        return MISSING
    try:
        return decode(bytes(raw))
    except NotJson:
        return MISSING


def stored_value(record: Record, member: str, raw: Any, blob: Blob | None) -> Any:
    """A value that stands inline or, when too large or too odd for that, in a blob.

    Args:
        record: The record, for its capture states.
        member: Wire name of the member.
        raw: The inline value.
        blob: Reads blobs; None when there are none.

    Returns:
        The decoded value, or ``MISSING``; an unreadable blob is no value.
    """
    if raw is not UNSET:
        return raw_value(raw)
    data = captured_blob(record, member, blob)
    if data is None:
        return MISSING
    try:
        return decode(data)
    except NotJson:
        return MISSING


def captured_blob(record: Record, member: str, blob: Blob | None) -> bytes | None:
    """The bytes of the blob that a capture state names, or None where it cannot be had."""
    capture = (record.capture or {}).get(member)
    return None if capture is None or capture.blob is None else blob_bytes(capture.blob, blob)


def blob_bytes(ref: BlobRef, blob: Blob | None) -> bytes | None:
    """The bytes of a blob, or None where it is too large or cannot be read."""
    if blob is None or ref.size > BLOB_MOST:
        return None
    try:
        return blob(ref.blob)
    except (OSError, KeyError, ValueError):
        return None


def part_text(part: Part) -> str:
    """A content part as text; what is no text is named in brackets."""
    match part.type:
        case "text":
            return part.text or ""
        case "json":
            return compact(raw_value(part.value)) if part.value is not UNSET else "[json]"
        case "resource_link":
            return " ".join(["[link", *(word for word in (part.name, part.uri) if word)]) + "]"
        case "terminal":
            return f"[terminal {part.terminal_id}]" if part.terminal_id else "[terminal]"
        case "diff":
            path = part.path if isinstance(part.path, str) else compact(part.path)
            return f"[diff {path}]"
        case kind:
            size = f"{part.blob.size:,} bytes" if part.blob else ""
            return "[" + ", ".join(word for word in (part.mime_type or kind, size) if word) + "]"


def parts_text(parts: Iterable[Part]) -> str:
    """Content parts as one text, a line break between them."""
    return "\n".join(part_text(part) for part in parts)


def native_text(value: Any) -> str | None:
    """The text in a raw result: of the first place that holds any, else the value as JSON."""
    for pointer in RAW_TEXTS:
        found = follow(value, pointer) if pointer else value
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            texts = [text for text in map(_block_text, found) if text is not None]
            if texts or not found:
                return "\n".join(texts)
    return None if value is MISSING else compact(value)


def _block_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return None
    text = block.get("text")
    if isinstance(text, str):
        return text
    kind = block.get("type")
    return f"[{kind}]" if isinstance(kind, str) else None


def result_output(result: ToolResult, blob: Blob | None, most: int) -> Output | None:
    """What came back, from the best place that the record has.

    What reached the model comes first; then the process's own output, what the user saw, and the stored raw
    result.
    """
    if result.content is not None:
        return _marked(bound(parts_text(result.content), most, "content"), result, "content")
    if result.exec is not None:
        streams = (result.exec.stdout, result.exec.stderr)
        if result.exec.output is not None or any(text is not None for text in streams):
            # A source may keep the streams together and apart: what is together has all of it, in order.
            whole = result.exec.output or _joined([text for text in streams if text])
            return _marked(bound(whole, most, "exec"), result, "exec.output", "exec.stdout", "exec.stderr")
    if result.display_content is not None:
        return _marked(
            bound(parts_text(result.display_content), most, "displayContent"), result, "displayContent"
        )
    for member in ("exec.output", "exec.stdout", "displayContent"):
        data = captured_blob(result, member, blob)
        if data is not None:
            return bound(data.decode("utf-8", "replace"), most, member.partition(".")[0])
    text = native_text(stored_value(result, "raw", result.raw, blob))
    return None if text is None else bound(text, most, "raw")


def _marked(output: Output, result: ToolResult, *members: str) -> Output:
    """The output, marked as cut where the source cut one of these members."""
    for member in members:
        capture = (result.capture or {}).get(member)
        if capture is not None and capture.state == "truncated":
            output.truncated = True
            output.original_bytes = capture.original_bytes
    return output


def _joined(texts: list[str]) -> str:
    return "".join(text if text.endswith("\n") else text + "\n" for text in texts[:-1]) + (texts or [""])[-1]
