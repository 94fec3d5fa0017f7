"""Codex: rollouts of every generation, 0.20 to 0.171, exec --json logs, and frames of its app server (see notes.md).

``layout`` says which files make a session, ``lineage`` and ``tape`` which of their lines make a thread's history,
``survey`` is the first pass over it, ``stored`` the second pass that writes records; ``calls``, ``results``,
``executions``, ``changes``, ``agents``, ``talk`` and ``asides`` turn single lines into records, ``secrets`` finds
what must not be kept. ``exec_log`` reads the logs of ``codex exec --json``, ``app_server`` the frames of an app
server; ``live`` is the agent. ``registry/codex.toml`` holds the tables.
"""

from __future__ import annotations

from callsheet.harness.codex.app_server import CODEX_APP_SERVER
from callsheet.harness.codex.exec_log import CODEX_EXEC
from callsheet.harness.codex.live import CODEX_AGENT
from callsheet.harness.codex.stored import CODEX

__all__ = ["CODEX", "CODEX_AGENT", "CODEX_APP_SERVER", "CODEX_EXEC"]
