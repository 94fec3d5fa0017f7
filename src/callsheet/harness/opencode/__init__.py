"""OpenCode: stored sessions of 1.18 (SQLite) and 1.1 (JSON files), and exported documents (see notes.md).

``feed`` gives the pieces of a session, ``survey`` is the first pass, ``chat`` writes records, ``stored`` is the
adapter. ``registry/opencode.toml`` holds the tables.
"""

from __future__ import annotations

from callsheet.harness.opencode.stored import OPENCODE

__all__ = ["OPENCODE"]
