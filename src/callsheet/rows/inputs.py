"""The title of a call, and what of its input the title does not say.

Owns ``KNOWN_KEYS``, for tools that nobody described, and ``EDIT_KEYS``, the members of an edit that its patch
repeats. A composite name is never split (ASR-256): the fallback is the whole name.

Must never know: how a title or an input is drawn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from callsheet.records import ToolCall
from callsheet.registry import Tool
from callsheet.registry.when import MISSING, follow
from callsheet.rows.text import command_text, compact, cut

KNOWN_KEYS: tuple[str, ...] = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "uri",
    "description",
    "prompt",
    "title",
    "name",
)
"""Keys that name the main input of a tool that the registry doesn't know, best first."""

OLD_KEYS: frozenset[str] = frozenset(
    ("old_string", "oldString", "old_str", "oldText", "old_text", "old_source", "oldContent")
)
NEW_KEYS: frozenset[str] = frozenset(
    ("new_string", "newString", "new_str", "newText", "new_text", "new_source", "newContent")
)
TEXT_KEYS: frozenset[str] = frozenset(
    ("content", "contents", "file_text", "text", "patch", "patchText", "diff")
)
EDIT_KEYS: frozenset[str] = OLD_KEYS | NEW_KEYS | TEXT_KEYS | {"edits", "changes"}
"""Members of an edit's input that say what is to be written: what is replaced, by what, or the whole."""


class Title(NamedTuple):
    """A title, and the JSON pointer to the member of the input that it is; None when it is none."""

    text: str
    pointer: str | None = None


def title_of(call: ToolCall, value: Any, tool: Tool | None, most: int, instead: str = "") -> Title:
    """The title of a call's row.

    The registry's main input; the source's own label; for an unknown tool a well-known key of its input or
    its only text; the name.

    Args:
        call: The call.
        value: Its decoded input; ``MISSING`` without one.
        tool: Its registry entry, if any.
        most: Characters at most.
        instead: What to call a call of which only its id is recorded.
    """
    for pointer in tool.inputs if tool else ():
        text = _shown(follow(value, pointer))
        if text:
            return Title(cut(text, most), pointer)
    if call.title:
        return Title(cut(call.title, most), _says(value, call.title))
    if isinstance(value, str) and value:
        return Title(cut(value, most), "")
    if tool is None:
        found = _guessed(value)
        if found is not None:
            return Title(cut(found.text, most), found.pointer)
    if call.name:
        return Title(cut(call.name, most))
    return (
        Title(cut(call.input_text, most), "")
        if call.input_text
        else Title(cut(instead or call.call_id, most))
    )


def _says(value: Any, title: str) -> str | None:
    """The pointer to the member of an input that is the very title."""
    members = value.items() if isinstance(value, dict) else ()
    return next((pointer_to(key) for key, one in members if _shown(one) == title), None)


def _guessed(value: Any) -> Title | None:
    if not isinstance(value, dict):
        return None
    for key in KNOWN_KEYS:
        text = _shown(value.get(key, MISSING))
        if text:
            return Title(text, f"/{key}")
    texts = [(key, text) for key, text in value.items() if isinstance(text, str)]
    return Title(texts[0][1], pointer_to(texts[0][0])) if len(texts) == 1 and texts[0][1] else None


def _shown(value: Any) -> str | None:
    if value is MISSING or value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return command_text(value) if value else None
    return compact(value)


def pointer_to(key: str) -> str:
    """The JSON pointer to a member of an object."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def more_input(
    call: ToolCall, value: Any, title: Title, *, patched: bool, asked: bool, most: int
) -> list[str]:
    """Pointers to the members of an input that nothing else of the sheet shows.

    Args:
        call: The call.
        value: Its decoded input; ``MISSING`` without one.
        title: The title of its row.
        patched: Its row shows a patch, so what was to be written is not said again.
        asked: A plan or questions have a row of their own, so lists are not said again.
        most: Pointers at most.
    """
    if title.pointer == "" or (value is MISSING and call.input_text is None):
        return []
    if not isinstance(value, dict):
        return [""]
    found = []
    for key, one in value.items():
        pointer = pointer_to(key)
        drawn = (patched and key in EDIT_KEYS) or (asked and isinstance(one, list))
        if pointer != title.pointer and not drawn:
            found.append(pointer)
            if len(found) == most:
                break
    return found
