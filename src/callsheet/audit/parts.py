"""Content parts against the native texts and blocks that they were made of.

Owns which native block answers to which part (profile, 'Shared shapes'): a text to its text, base64 data to the
blob with its digest, any other block to a ``json`` part that holds it whole; parts of other types to a block with
members of the same names. Order is kept; a block may be left out only where the caller says so.

Must never know: lines, where a content stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from callsheet.audit.finding import Path
from callsheet.audit.values import agree, differences
from callsheet.registry.via import base64
from callsheet.registry.when import MISSING
from callsheet.wire.blobs import digest
from callsheet.wire.lossless import NotJson, decode

Wrong = tuple[Path, Any, str]
"""A leaf of a part that has no evidence: path in the part, value, what stands there instead."""
Blobs = Callable[[Any], bytes | None]
"""The bytes of a blob by its name; None when it is not there."""

_HOLDS = {
    "text": "text",
    "json": "value",
    "image": "blob",
    "audio": "blob",
    "file": "blob",
    "resource_link": "uri",
}
_MEDIA = {
    "image": "image",
    "document": "file",
    "audio": "audio",
    "input_image": "image",
    "inputImage": "image",
}


def blocks_of(values: list[Any]) -> list[Any]:
    """The blocks of native contents one after the other: a text is one, an empty one is none."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, list):
            found.extend(value)
        elif value is not MISSING and value is not None and value != "":
            found.append(value)
    return found


def check_parts(parts: Any, blocks: list[Any], blobs: Blobs, *, whole: bool) -> tuple[list[int], list[Wrong]]:
    """Ties parts to blocks, in order.

    Args:
        parts: What the record says.
        blocks: What the source says.
        blobs: Reads the bundle's blobs.
        whole: Whether every block must have its part.

    Returns:
        The block of each part, and the leaves without evidence.
    """
    if not isinstance(parts, list):
        return [], [((), parts, "is no list of parts")]
    ties: list[int] = []
    wrong: list[Wrong] = []
    at = 0
    for index, part in enumerate(parts):
        best: list[Wrong] | None = None
        for tried in range(at, len(blocks) if not whole else min(at + 1, len(blocks))):
            found = list(check_part(part, blocks[tried], blobs))
            if not found:
                ties.append(tried)
                at = tried + 1
                break
            best = best or found
        else:
            for path, value, why in best or differences(part, MISSING):
                wrong.append(((index, *path), value, why))
            at += 1
            ties.append(-1)
    if whole and not wrong and len(blocks) > len(parts):
        wrong.append(((), len(parts), f"the source has {len(blocks)} parts"))
    return ties, wrong


def check_part(part: Any, block: Any, blobs: Blobs) -> Iterator[Wrong]:
    """Leaves of one part that a block is no evidence for."""
    if not isinstance(part, dict):
        yield (), part, "is no part"
        return
    holds = _HOLDS.get(str(part.get("type")))
    if holds is not None and holds not in part:
        yield ("type",), part.get("type"), f"the part holds no {holds}"
        return
    match part.get("type"):
        case "text":
            text = (
                block.get("text", MISSING)
                if _is_text(block)
                else block
                if isinstance(block, str)
                else MISSING
            )
            if not isinstance(text, str) and _spells(part.get("text"), block):
                text = part["text"]  # a block that would not survive as a value: its own JSON text (ASR-035)
            yield from _members(part, {"type": "text", "text": text})
        case "json":
            yield from _members(part, {"type": "json", "value": block})
        case "image" | "file" | "audio" as kind:
            yield from _media(part, kind, block, blobs)
        case _:
            wanted = block if isinstance(block, dict) else {}
            url = _url(block)
            if url is not None and not url.startswith("data:"):
                wanted = {"type": "resource_link", "uri": url}
            yield from _members(part, wanted)


def _spells(text: Any, block: Any) -> bool:
    """Whether a text is the JSON text of a block."""
    return (
        isinstance(text, str)
        and not isinstance(block, str)
        and agree(json_of(text.encode("utf-8", "replace")), block)
    )


def _is_text(block: Any) -> bool:
    kind = block.get("type", "text") if isinstance(block, dict) else None
    return isinstance(kind, str) and "text" in kind.lower()


def _members(part: dict[str, Any], wanted: dict[str, Any]) -> Iterator[Wrong]:
    for name, value in part.items():
        native = wanted.get(name, MISSING)
        if not agree(value, native):
            yield from differences(value, native, (name,))


def _media(part: dict[str, Any], kind: str, block: Any, blobs: Blobs) -> Iterator[Wrong]:
    blob = part.get("blob")
    data, mime = _data(block)
    if data is None and kind == "file" and isinstance(blob, dict):
        # A block that would not survive in the record stands in a blob, whole (ASR-035).
        kept = blobs(blob.get("blob"))
        json_type = {"type": "file", "mimeType": "application/json", "blob": blob}
        if kept is None or not agree(json_of(kept), block):
            yield ("blob", "blob"), blob.get("blob"), "the blob does not hold the block"
        yield from _members(part, json_type)
        return
    wanted: dict[str, Any] = {"type": _kind(block, mime)}
    if mime is not None:
        wanted["mimeType"] = mime
    if data is not None:
        wanted["blob"] = {"blob": f"sha256:{digest(data)}", "size": len(data)}
        if isinstance(blob, dict) and "mimeType" in blob and mime is not None:
            wanted["blob"]["mimeType"] = mime
    yield from _members(part, wanted)


def _kind(block: Any, mime: str | None) -> str | None:
    """The type of part that a block of media becomes."""
    if not isinstance(block, dict):
        return None
    if "inlineData" in block:
        return "image" if (mime or "").startswith("image/") else "file"
    return _MEDIA.get(str(block.get("type")))


def _url(block: Any) -> str | None:
    """The address of an image, as text or in an object of its own."""
    url = block.get("image_url") if isinstance(block, dict) else None
    url = url.get("url") if isinstance(url, dict) else url
    return url if isinstance(url, str) else None


def _data(block: Any) -> tuple[bytes | None, str | None]:
    """The bytes in a media block and their type, in the shapes that agents and the Model Context Protocol use."""
    if not isinstance(block, dict):
        return None, None
    source = block.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        mime = source.get("media_type")
        data = (
            source["data"].encode("utf-8", "surrogatepass")
            if source.get("type") == "text"
            else base64(source["data"])
        )
        return data, mime if isinstance(mime, str) else None
    inline = block.get("inlineData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        mime = inline.get("mimeType")
        return base64(inline["data"]), mime if isinstance(mime, str) else None
    if isinstance(block.get("data"), str):
        mime = block.get("mimeType")
        return base64(block["data"]), mime if isinstance(mime, str) else None
    url = _url(block)
    if url is not None and url.startswith("data:"):
        head, _, text = url.removeprefix("data:").partition(",")
        return base64(text), head.partition(";")[0] or None
    return None, None


def json_of(data: bytes) -> Any:
    """The value of a JSON blob, ``MISSING`` when it is none."""
    try:
        return decode(data)
    except NotJson:
        return MISSING
