"""Content of messages and outputs as content parts (profile, 'Shared shapes').

Owns the table from item types to parts. A ``data:`` URL becomes a blob; parts of a type that has no place in the
profile stand as ``json`` with all they have. Texts keep their own JSON text: long ones are never decoded.

Must never know: lines, results.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port import Desk
from callsheet.harness._port.pen import verbatim
from callsheet.harness.codex.shapes import ABSENT, FAILS, mark, parts_of
from callsheet.records import Part
from callsheet.wire.lossless import lossless

TEXTS = frozenset(
    {"input_text", "output_text", "text", "Text", "inputText", "summary_text", "reasoning_text"}
)
IMAGES = frozenset({"input_image", "image", "inputImage"})


class _Item(Struct, gc=False):
    type: str | None = None
    text: Raw = ABSENT
    image_url: Any = None
    data: Any = None
    mimeType: Any = None


_item = msgspec.json.Decoder(_Item)


def parts(raw: Raw, desk: Desk) -> list[Part]:
    """Parts of a content: a text, a list of items, one item, or nothing at all."""
    first = mark(raw)
    if first == b'"':
        return text_parts(raw)
    if first == b"[":
        return [part(item, desk) for item in parts_of(raw)]
    return [] if not raw or bytes(raw) == b"null" else [part(raw, desk)]


def text_parts(raw: Raw) -> list[Part]:
    """A text as one part; an empty one is none."""
    return [Part(type="text", text=verbatim(raw))] if len(raw) > 2 else []


def part(raw: Raw, desk: Desk) -> Part:
    """One item as a content part."""
    try:
        item = _item.decode(raw)
    except FAILS:
        return Part(type="text", text=verbatim(raw)) if mark(raw) == b'"' else _json(raw, desk)
    if item.type in TEXTS and mark(item.text) == b'"':
        return Part(type="text", text=verbatim(item.text))
    if item.type in IMAGES:
        made = _image(item, desk)
        if made is not None:
            return made
    return _json(raw, desk)


def _json(raw: Raw, desk: Desk) -> Part:
    """A value as it stands; one that would not survive (ASR-032) goes to a blob."""
    if lossless(bytes(raw)):
        return Part(type="json", value=raw)
    return Part(type="file", mime_type="application/json", blob=desk.blob(bytes(raw), "application/json"))


def _image(item: _Item, desk: Desk) -> Part | None:
    url = item.image_url.get("url") if isinstance(item.image_url, dict) else item.image_url
    if isinstance(url, str) and not url.startswith("data:"):
        return Part(type="resource_link", uri=url)
    if isinstance(url, str):
        head, _, data = url.removeprefix("data:").partition(",")
        mime, _, coding = head.partition(";")
        if coding != "base64":
            return None
    elif isinstance(item.data, str) and isinstance(item.mimeType, str):
        mime, data = item.mimeType, item.data
    else:
        return None
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not mime:
        return None
    return Part(type="image", mime_type=mime, blob=desk.blob(content, mime))
