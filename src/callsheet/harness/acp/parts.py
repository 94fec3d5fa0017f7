"""ACP content blocks as content parts, and diffs as file changes.

Owns the shapes of blocks (text, image, audio, resource_link, resource), of tool content (content, diff,
terminal) in both protocol versions, and the cut of a git patch into its files. A block of a type that we do not
know is kept as its JSON.

Must never know: calls, messages.
"""

from __future__ import annotations

import re

from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.parts import ABSENT, is_null, items_of, members_of, text_of
from callsheet.harness._port.pen import Pen, raw_json, verbatim
from callsheet.records import Change, Part, Patch
from callsheet.registry.via import base64
from callsheet.wire import lossless

CHANGES = {"add": "add", "delete": "delete", "modify": "modify", "move": "move"}
"""v2 operations that the record has a word for; others (copy) are left out."""
_GIT = re.compile(r"^diff --git ", re.MULTILINE)


def _json_part(raw: Raw) -> Part:
    """A block as it stands; where its numbers or surrogates do not survive, as text."""
    if lossless.fits(bytes(raw)) and lossless.readable(bytes(raw)):
        return Part(type="json", value=raw)
    return Part(type="text", text=bytes(raw).decode("utf-8", "replace"))


def _media(kind: str, members: dict[str, Raw], desk: Desk, raw: Raw) -> Part:
    data = base64(text_of(members.get("data", ABSENT)))
    mime = text_of(members.get("mimeType", ABSENT))
    if data is None or mime is None:
        return _json_part(raw)
    return Part(
        type=kind, mime_type=mime, blob=desk.blob(data, mime), uri=text_of(members.get("uri", ABSENT))
    )


def _resource(members: dict[str, Raw], desk: Desk, raw: Raw) -> Part:
    inner = members_of(members.get("resource", ABSENT))
    uri, mime = text_of(inner.get("uri", ABSENT)), text_of(inner.get("mimeType", ABSENT))
    words = text_of(inner.get("text", ABSENT))
    data = base64(text_of(inner.get("blob", ABSENT)))
    if words is not None:
        return Part(type="text", text=words, uri=uri, mime_type=mime)
    if data is not None and mime is not None:
        return Part(type="file", blob=desk.blob(data, mime), uri=uri, mime_type=mime)
    return _json_part(raw)


def block_part(raw: Raw, desk: Desk) -> Part:
    """One content block."""
    members = members_of(raw)
    kind = text_of(members.get("type", ABSENT))
    if kind == "text" and text_of(members.get("text", ABSENT)) is not None:
        return Part(type="text", text=verbatim(members["text"]))
    if kind in ("image", "audio"):
        return _media(kind, members, desk, raw)
    if kind == "resource_link":
        return Part(
            type="resource_link",
            uri=text_of(members.get("uri", ABSENT)),
            name=text_of(members.get("name", ABSENT)),
        )
    if kind == "resource":
        return _resource(members, desk, raw)
    return _json_part(raw)


def tool_part(raw: Raw, desk: Desk) -> Part:
    """One item of a tool call's content."""
    members = members_of(raw)
    kind = text_of(members.get("type", ABSENT))
    if kind == "content" and members.get("content"):
        return block_part(members["content"], desk)
    terminal = text_of(members.get("terminalId", ABSENT))
    if kind == "terminal" and terminal is not None:
        return Part(type="terminal", terminal_id=terminal)
    new, path = members.get("newText", ABSENT), text_of(members.get("path", ABSENT))
    if kind == "diff" and text_of(new) is not None and path is not None:
        old = members.get("oldText", ABSENT)
        return Part(
            type="diff",
            path=path,
            old_text=verbatim(old) if text_of(old) is not None else None,
            new_text=verbatim(new),
        )
    return _json_part(raw)


def terminals_in(content: Raw) -> list[str]:
    """Ids of the terminals that a call's content names."""
    found = []
    for item in items_of(content):
        members = members_of(item)
        name = text_of(members.get("terminalId", ABSENT))
        if text_of(members.get("type", ABSENT)) == "terminal" and name:
            found.append(name)
    return found


def changes_in(content: Raw, pen: Pen) -> list[Change]:
    """The file changes that a call's content shows, patches as supplied."""
    found: list[Change] = []
    for item in items_of(content):
        members = members_of(item)
        if text_of(members.get("type", ABSENT)) == "diff":
            found += _of_versions_2(members, pen) if "changes" in members else _of_version_1(members, pen)
    return found


def _of_version_1(members: dict[str, Raw], pen: Pen) -> list[Change]:
    path = text_of(members.get("path", ABSENT))
    old, new = members.get("oldText", ABSENT), members.get("newText", ABSENT)
    if not path or text_of(new) is None:
        return []
    if text_of(old) is None:
        # Null is the protocol's word for a new file; left out says nothing.
        kind = "add" if is_null(old) else None
        return [Change(path=pen.path(path), change=kind, patch=Patch(format="full_text", value=new))]
    both = raw_json({"oldText": old, "newText": new})
    # An empty text was an empty file, or (OpenCode 1.1 writes it so) none at all.
    kind = "modify" if text_of(old) else None
    return [Change(path=pen.path(path), change=kind, patch=Patch(format="replace", value=both))]


def _of_versions_2(members: dict[str, Raw], pen: Pen) -> list[Change]:
    patch = members_of(members.get("patch", ABSENT))
    text = text_of(patch.get("text", ABSENT)) if text_of(patch.get("format", ABSENT)) == "git_patch" else None
    changes = [members_of(item) for item in items_of(members["changes"])]
    pieces = sections(text) if text is not None else []
    found: list[Change] = []
    for number, change in enumerate(changes):
        path, old = text_of(change.get("path", ABSENT)), text_of(change.get("oldPath", ABSENT))
        if not path:
            continue
        told = Change(path=pen.path(path), change=CHANGES.get(text_of(change.get("operation", ABSENT)) or ""))
        if old:
            told.old_path = pen.path(old)
        if len(changes) == 1 and text is not None:
            told.patch = Patch(format="git", value=patch["text"])
        elif len(pieces) == len(changes) and _names(pieces[number], path, old):
            told.patch = Patch(format="git", value=raw_json(pieces[number]))
        found.append(told)
    return found


def sections(patch: str) -> list[str]:
    """A git patch cut into its files, none where no header parts them.

    A line of content never begins with the header's word: it has a sign in front.
    """
    starts = [found.start() for found in _GIT.finditer(patch)]
    ends = [*starts[1:], len(patch)]
    return [patch[start:end] for start, end in zip(starts, ends, strict=False)]


def _names(piece: str, path: str, old: str | None) -> bool:
    head = piece.split("\n", 1)[0]
    return head.endswith(path.lstrip("/")) and (old is None or old.lstrip("/") in head)
