"""Content blocks of messages and results as content parts (profile, 'Shared shapes').

Owns the table from block types to parts. Base64 data becomes a blob; data that is no base64, and blocks of a type
that has no part, stand as ``json`` parts with the whole block; one with a number that no reader keeps is a file.

Must never know: lines, results.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.parts import items_of
from callsheet.harness._port.pen import raw_json
from callsheet.harness.claude_code.own_text import Ranges
from callsheet.harness.claude_code.sent_block import cut
from callsheet.harness.claude_code.shapes import mark, verbatim
from callsheet.records import Part
from callsheet.wire import lossless

_JSON = "application/json"
_MEDIA = {"image": "image", "document": "file", "audio": "audio"}


def part(block: Any, desk: Desk, raw: Raw | None = None) -> Part:
    """One decoded block as a content part.

    Args:
        block: The block.
        desk: Keeps what goes to a blob.
        raw: Its own text, so that numbers no reader keeps stay as they were written.
    """
    if isinstance(block, str):
        return Part(type="text", text=block)
    if isinstance(block, dict):
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            return Part(type="text", text=block["text"])
        if isinstance(kind, str) and kind in _MEDIA:
            made = _media(_MEDIA[kind], block, desk)
            if made is not None:
                return made
        if kind == "resource_link" and isinstance(block.get("uri"), str):
            name = block.get("name")
            return Part(type="resource_link", uri=block["uri"], name=name if isinstance(name, str) else None)
    value = raw_json(block) if raw is None else raw
    if lossless.fits(value):
        return Part(type="json", value=value)
    return Part(type="file", mime_type=_JSON, blob=desk.blob(bytes(value), _JSON))


def _media(kind: str, block: dict[str, Any], desk: Desk) -> Part | None:
    source = block.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("data"), str):
        return None
    media_type = source.get("media_type")
    mime = media_type if isinstance(media_type, str) else None
    if source.get("type") == "text":
        data = source["data"].encode()
    else:
        try:
            data = base64.b64decode(source["data"], validate=True)
        except (binascii.Error, ValueError):
            return None
    return Part(type=kind, mime_type=mime, blob=desk.blob(data, mime))


def text_part(raw: Raw) -> Part:
    """A JSON string as a text part, kept as its own text."""
    return Part(type="text", text=verbatim(raw))


def parts_of(raw: Raw, desk: Desk, keep: Ranges | None = None) -> list[Part]:
    """Parts of a ``content`` from its own text, or those of them that are kept."""
    if mark(raw) == b"[":
        return [part(lossless.decode(bytes(one)), desk, one) for one in cut(items_of(raw), keep)]
    if mark(raw) == b"{":
        return [part(lossless.decode(bytes(raw)), desk, raw)]
    value = lossless.decode(bytes(raw)) if raw else None
    return parts(value if value is None else cut(value, keep), desk)


def parts(content: Any, desk: Desk) -> list[Part]:
    """Parts of a decoded ``content``: a text, a list of blocks, or nothing at all."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [Part(type="text", text=content)]
    if isinstance(content, list):
        return [part(block, desk) for block in content]
    return [part(content, desk)]
