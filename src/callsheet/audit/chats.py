"""``via = "table"``: members of chats and stores that log their messages again (Gemini CLI, OpenCode).

Owns: ids of calls that several calls of a stream have, who wrote a message by its type and the tag around its text,
what a terminal's grid shows, what the parts and metadata of a store tell. Each function reads the native value anew.

Must never know: importers.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.changes import path_ref
from callsheet.audit.cite import Cite
from callsheet.registry.facts import Fact
from callsheet.registry.via import base64, ms_to_rfc3339, numbers
from callsheet.registry.when import MISSING, follow
from callsheet.wire.blobs import digest


def shared_id(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """The id of a call; where several calls of the stream have it, or it has none, ``<id>#<id of its holder>``.

    The pointers lead to the id and to that of the message or part that holds the call. With a third one, the
    holder may have several calls, and ``/<number>`` tells those of one id apart.
    """
    native, owner = (value if isinstance(value, str) else "" for value in values[:2])
    if native and case.ledger.calls_with(native) < 2:
        return native
    if owner == "" and fact.pointers[1].startswith("@key") and cite.key is None:
        return MISSING
    made = f"{native}#{owner}"
    if len(values) > 2:
        return made + _place(cite, native, fact.pointers[0].rpartition("/")[2])
    return _numbered(case, made)


def _place(cite: Cite, native: str, member: str) -> str:
    """The number of a call among those of its list that have its id; nothing where it is the only one."""
    base, step = cite.pointer, ""
    listed: Any = None
    while base and not isinstance(listed, list):
        base, _, step = base.rpartition("/")
        listed = follow(cite.root, base)
    if not native:
        return f"/{step}"
    items = listed if isinstance(listed, list) else []
    twins = [str(number) for number, one in enumerate(items) if follow(one, f"/{member}") == native]
    return f"/{twins.index(step)}" if len(twins) > 1 and step in twins else ""


def _numbered(case: Case, made: str) -> str:
    """A made id, with the number that tells it from an earlier one of the stream, where the record has one."""
    said = case.record.get("callId")
    found = re.fullmatch(re.escape(made) + r"/(\d{1,9})", said) if isinstance(said, str) else None
    if found is None or int(found[1]) < 2:
        return made
    before = made if found[1] == "2" else f"{made}/{int(found[1]) - 1}"
    return made if case.ledger.call_at(before) is None else found[0]


def shared_linkage(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Linked by the call's own id, or by one that was made for it: the result stands in the call's own item."""
    native = values[0]
    alone = isinstance(native, str) and native != "" and case.ledger.calls_with(native) < 2
    return "exact" if alone else "derived"


def orphan_id(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The id that a result without a call names."""
    return values[0] if isinstance(values[0], str) and not case.ledger.calls_with(values[0]) else MISSING


def chat_author(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Who wrote a message, by the ``[[line]]`` row of its type; of the tag, where its only text stands in one."""
    kind, content = values[0], next((value for value in values[1:] if value is not MISSING), None)
    rows = [row for row in case.registry.line if row.becomes == "message" and row.type == kind]
    items = content if isinstance(content, list) else [content]
    shown = [one for one in items if not (isinstance(one, dict) and "functionResponse" in one)]
    text = (
        shown[0].get("text")
        if len(shown) == 1 and isinstance(shown[0], dict)
        else shown[0]
        if shown
        else None
    )
    clean = text.strip() if isinstance(text, str) and len(shown) == 1 else ""
    for row in rows:
        if row.tag is None or (clean.startswith(f"<{row.tag}>") and clean.endswith(f"</{row.tag}>")):
            return row.author if row.author is not None else MISSING
    return MISSING


def grid(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """What a display shows: a text, the text of a terminal's grid of coloured pieces, or the value as it stands."""
    value = values[0]
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    lines = []
    for line in value if isinstance(value, list) else [None]:
        pieces = [follow(piece, "/text") for piece in line] if isinstance(line, list) else [None]
        if not all(isinstance(piece, str) for piece in pieces):
            return [{"type": "json", "value": value}]
        lines.append("".join(str(piece) for piece in pieces))
    return [{"type": "text", "text": "\n".join(lines)}] if lines else [{"type": "json", "value": value}]


def chat_line(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The name of a line of a chat, or of an entry in one, that nothing maps: its type, or what it changes."""
    if cite.pointer:
        kind = follow(cite.part, "/type")
        return kind if isinstance(kind, str) and kind else "entry"
    root = cite.root if isinstance(cite.root, dict) else {}
    if "$rewindTo" in root:
        return "$rewindTo"
    if "$set" in root:
        changed = root["$set"]
        return "$set/" + "+".join(sorted(changed if isinstance(changed, dict) else ())[:8])
    if isinstance(root.get("sessionId"), str) and root.get("type") is None and not root.get("messages"):
        return "metadata"
    return root["type"] if isinstance(root.get("type"), str) else "line"


def told(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The texts among the pointed values, each as a part of its own."""
    return [
        {"type": "text", "text": value} for value in values if isinstance(value, str) and value
    ] or MISSING


def asked_name(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The name in a call's own part, unless an event tells the one that was replaced there."""
    return values[0] if isinstance(values[0], str) and not case.role_cites("asked") else MISSING


def part_author(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Who wrote a part of a message: by its role, but for what the harness marks as its own; no role tells nobody."""
    if follow(cite.part, "/synthetic") is True:
        return "harness"
    role = next((follow(one.part, "/role") for one in case.role_cites("message")), MISSING)
    rows = (row.author for row in case.registry.line if row.becomes == "message" and row.type == role)
    return next(rows, None) or "unknown"


def first_time(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The first of the pointed values that is a time: whole milliseconds since 1970."""
    times = (ms_to_rfc3339(value) for value in values if type(value) is int)
    return next((one for one in times if one is not MISSING), MISSING)


def stored_file(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """A file in a message: its bytes, where the address holds them, else a link."""
    part = cite.part if isinstance(cite.part, dict) else {}
    url, mime, name = part.get("url"), part.get("mime"), part.get("filename")
    if not isinstance(url, str):
        return MISSING
    known = {"mimeType": mime, "name": name}
    made = {member: value for member, value in known.items() if isinstance(value, str)}
    head, _, tail = url.partition(";base64,")
    data = base64(tail) if head.startswith("data:") and tail else None
    if data is None:
        return [{"type": "resource_link", "uri": url, **made}]
    blob = {"blob": f"sha256:{digest(data)}", "size": len(data)}
    if isinstance(mime, str):
        blob["mimeType"] = mime
    image = isinstance(mime, str) and mime.startswith("image/")
    return [{"type": "image" if image else "file", "blob": blob, **made}]


def step_counts(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """What a step used: its tokens, and its cost."""
    part = cite.part if isinstance(cite.part, dict) else {}
    found = numbers(part.get("tokens"))
    counts = list(found) if isinstance(found, list) else []
    cost = part.get("cost")
    if isinstance(cost, int | float | Decimal) and not isinstance(cost, bool):
        counts += numbers({"cost": cost})
    return counts or MISSING


_STORED = {"add": "add", "update": "modify", "modify": "modify", "delete": "delete", "move": "move"}


def stored_changes(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Changed files as a step, or a tool's metadata, tells them."""
    part, roots = cite.part if isinstance(cite.part, dict) else {}, case.ledger.head.roots
    files = part.get("files")
    listed = files if isinstance(files, list) else []
    if part.get("type") == "patch":
        return [{"path": path_ref(one, roots)} for one in listed if isinstance(one, str) and one] or MISSING
    found = []
    for one in listed:
        path = _word(one, "filePath") or _word(one, "file")
        if path:
            made = {"path": path_ref(path, roots), **_patch(_word(one, "diff") or _word(one, "patch"))}
            if _word(one, "type") in _STORED:
                made["change"] = _STORED[_word(one, "type")]
            if _word(one, "movePath"):
                made |= {"oldPath": made["path"], "path": path_ref(_word(one, "movePath"), roots)}
            found.append(made)
    single = part.get("filediff")
    if not found and _word(single, "file"):
        patch = _patch(_word(single, "patch") or _word(part, "diff"))
        found.append({"path": path_ref(_word(single, "file"), roots), **patch})
    if not found and _word(part, "filepath") and isinstance(part.get("exists"), bool):
        kind = "modify" if part["exists"] else "add"
        found.append({"path": path_ref(part["filepath"], roots), "change": kind})
    return found or MISSING


def _word(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _patch(text: str) -> dict[str, Any]:
    return {"patch": {"format": "unified", "value": text}} if text else {}


def piece_type(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """What a piece of a store is that nothing maps: a message by its role, a part by its type."""
    part = cite.part if isinstance(cite.part, dict) else {}
    key = cite.key if isinstance(cite.key, dict) else {}
    if "aggregate_id" in key:
        return "event"
    row = "message" if {"id", "session_id"} == key.keys() else None
    places = PurePath(cite.source.entry.path.replace("\\", "/")).parts if cite.key is None else ()
    kept = places[-3:-2]
    aside = not cite.pointer and places[-2:-1] in (("session_diff",), ("todo",))
    if aside:
        return "todo" if "content" in part else "other"
    if "message_id" in key or "messageID" in part or "/parts/" in cite.pointer or "part" in kept:
        return f"part/{_word(part, 'type')}"
    if "role" in part or cite.pointer.endswith("/info") or row or "message" in kept:
        return f"message/{_word(part, 'role') or None}"
    return "todo" if "content" in part else "other"


CHATS = {
    "shared_id": shared_id,
    "shared_linkage": shared_linkage,
    "orphan_id": orphan_id,
    "asked_name": asked_name,
    "part_author": part_author,
    "first_time": first_time,
    "stored_file": stored_file,
    "step_counts": step_counts,
    "stored_changes": stored_changes,
    "piece_type": piece_type,
    "chat_author": chat_author,
    "chat_line": chat_line,
    "grid": grid,
    "told": told,
}
"""Table names that a fact may give, beside those of ``tables``."""
