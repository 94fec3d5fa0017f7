"""Claude Code's ``stream-json``: its stdout, and frame logs of both directions (see notes.md beside this file).

``shapes`` reads lines, ``fold`` is the pure fold of one connection (a live turn feeds it the same), ``track`` writes
one stream with the writers of the stored importer, ``seen``, ``sides``, ``asks``, ``hooks`` and ``pieces`` are its
parts, ``stored`` the adapter. ``registry/claude-code.toml`` holds the tables of files and frames alike.
"""

from __future__ import annotations

from callsheet.harness.claude_code.stream.fold import Fold
from callsheet.harness.claude_code.stream.stored import CLAUDE_CODE_STREAM

__all__ = ["CLAUDE_CODE_STREAM", "Fold"]
