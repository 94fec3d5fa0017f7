"""``via = "table"``: members of chats and stores that log their messages again (Gemini CLI, OpenCode).

Owns: ids of calls that several calls of a stream have, who wrote a message by its type and the tag around its text,
what a terminal's grid shows. Each function reads the native value anew.

Must never know: importers.
"""

from __future__ import annotations

import re
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.cite import Cite
from callsheet.registry.facts import Fact
from callsheet.registry.when import MISSING, follow


def shared_id(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """The id of a call; where several calls of the stream have it, or it has none, ``<id>#<id of its holder>``.

    The pointers lead to the id and to that of the message or part that holds the call. With a third one, the call's
    place in its list, the holder may have several calls, and ``/<number>`` tells those of one id apart.
    """
    native, owner = (value if isinstance(value, str) else "" for value in values[:2])
    if native and case.ledger.calls_with(native) < 2:
        return native
    if owner == "" and fact.pointers[1].startswith("@key") and cite.key is None:
        return MISSING
    made = f"{native}#{owner}"
    if len(values) > 2:
        return made + _place(cite, native, str(values[2]), fact.pointers[0].rpartition("/")[2])
    return _numbered(case, made)


def _place(cite: Cite, native: str, step: str, member: str) -> str:
    """The number of a call among those of its list that have its id; nothing where it is the only one."""
    if not native:
        return f"/{step}"
    base = cite.pointer
    while base and not isinstance(follow(cite.root, base), list):
        base = base.rpartition("/")[0]
    listed = follow(cite.root, base)
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
    return "exact" if isinstance(native, str) and case.ledger.calls_with(native) < 2 else "derived"


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
    """The name of a line of a chat that nothing maps: its type, or what it changes."""
    root = cite.root if isinstance(cite.root, dict) else {}
    if root.get("$rewindTo") is not None:
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


CHATS = {
    "shared_id": shared_id,
    "shared_linkage": shared_linkage,
    "orphan_id": orphan_id,
    "chat_author": chat_author,
    "chat_line": chat_line,
    "grid": grid,
    "told": told,
}
"""Table names that a fact may give, beside those of ``tables``."""
