"""Claude Code: stored session files, 1.0 to 2.1.332 (see notes.md beside this file).

``layout`` says which files make a session, ``survey`` is the first pass over a file (what repeats, which ids are used
twice, what a request carried), ``stored`` the second pass that writes records, ``calls``, ``results``, ``asides`` and
``events`` turn single lines into records. ``stream`` reads frames of ``stream-json`` with the same writers.
``registry/claude-code.toml`` holds the tables.
"""

from __future__ import annotations

from callsheet.harness.claude_code.live import CLAUDE_CODE_AGENT
from callsheet.harness.claude_code.stored import CLAUDE_CODE
from callsheet.harness.claude_code.stream import CLAUDE_CODE_STREAM

__all__ = ["CLAUDE_CODE", "CLAUDE_CODE_AGENT", "CLAUDE_CODE_STREAM"]
