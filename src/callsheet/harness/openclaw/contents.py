"""Content of messages and results as content parts (profile, 'Shared shapes').

Owns the table from block types to parts. An image's data becomes a blob; a block of another type stands as ``json``
with all it has. Texts keep their own JSON text: long ones are never decoded.

Must never know: entries, results.
"""

from __future__ import annotations

import base64
import binascii

import msgspec
from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.parts import items_of, mark
from callsheet.harness._port.pen import verbatim
from callsheet.harness.openclaw.shapes import FAILS, Block, text
from callsheet.records import Part
from callsheet.wire.lossless import lossless

_block = msgspec.json.Decoder(Block)
MEDIA = frozenset({"image", "audio"})


def parts(raw: Raw, desk: Desk) -> list[Part]:
    """Parts of a content: a text, a list of blocks, or nothing at all."""
    if mark(raw) == b'"':
        return [Part(type="text", text=verbatim(raw))]
    if mark(raw) == b"[":
        return [part(item, desk) for item in items_of(raw)]
    return [] if not raw or bytes(raw) == b"null" else [_json(raw, desk)]


def part(raw: Raw, desk: Desk) -> Part:
    """One block as a content part."""
    if mark(raw) == b'"':
        return Part(type="text", text=verbatim(raw))
    try:
        block = _block.decode(raw)
    except FAILS:
        return _json(raw, desk)
    if block.type == "text" and mark(block.text) == b'"':
        return Part(type="text", text=verbatim(block.text))
    if text(block.type) in MEDIA and isinstance(block.data, str) and isinstance(block.mimeType, str):
        try:
            data = base64.b64decode(block.data, validate=True)
        except (binascii.Error, ValueError):
            return _json(raw, desk)
        return Part(type=block.type, mime_type=block.mimeType, blob=desk.blob(data, block.mimeType))
    return _json(raw, desk)


def _json(raw: Raw, desk: Desk) -> Part:
    """A value as it stands; one that would not survive (ASR-032) goes to a blob."""
    if lossless(bytes(raw)):
        return Part(type="json", value=raw)
    return Part(type="file", mime_type="application/json", blob=desk.blob(bytes(raw), "application/json"))
