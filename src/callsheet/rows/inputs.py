"""The title of a call: its main input, by the registry or, for tools nobody described, by one short table.

Owns ``KNOWN_KEYS``. A composite name is never split (ASR-256): the fallback is the whole name.

Must never know: how a title is drawn.
"""

from __future__ import annotations

from typing import Any

from callsheet.records import ToolCall
from callsheet.registry import Tool
from callsheet.registry.when import MISSING, follow
from callsheet.rows.text import command_text, compact, cut, raw_value

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


def title_of(call: ToolCall, tool: Tool | None, most: int) -> str:
    """The title of a call's row.

    The registry's main input; the source's own label; for an unknown tool a well-known key of its input or
    its only text; the name.

    Args:
        call: The call.
        tool: Its registry entry, if any.
        most: Characters at most.
    """
    value = raw_value(call.input)
    for pointer in tool.inputs if tool else ():
        text = _shown(follow(value, pointer))
        if text:
            return cut(text, most)
    if call.title:
        return cut(call.title, most)
    if tool is None or not tool.inputs:
        text = _guessed(value)
        if text:
            return cut(text, most)
    return cut(call.name or call.input_text or call.call_id, most)


def _guessed(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return None
    for key in KNOWN_KEYS:
        text = _shown(value.get(key, MISSING))
        if text:
            return text
    texts = [text for text in value.values() if isinstance(text, str)]
    return texts[0] if len(texts) == 1 else None


def _shown(value: Any) -> str | None:
    if value is MISSING or value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return command_text(value) if value else None
    return compact(value)
