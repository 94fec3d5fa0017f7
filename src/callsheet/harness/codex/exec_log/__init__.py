"""Logs of ``codex exec --json``, old and new format (kind ``codex-exec``).

``layout`` says which files are some, ``survey`` counts items, ``items`` reads the new format and ``events`` the old
one, ``outcomes`` makes results for both, ``stored`` is the adapter.
"""

from __future__ import annotations

from callsheet.harness.codex.exec_log.stored import CODEX_EXEC

__all__ = ["CODEX_EXEC"]
