"""Gemini CLI: stored chats, JSONL and the older JSON documents (see notes.md beside this file).

``shapes`` reads lines and documents, ``survey`` is the first pass, ``chat`` writes records, ``stored`` is the
adapter. ``registry/gemini.toml`` holds the tables.
"""

from __future__ import annotations

from callsheet.harness.gemini.stored import GEMINI

__all__ = ["GEMINI"]
