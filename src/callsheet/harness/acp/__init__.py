"""The Agent Client Protocol, v1 and v2: frame logs (see notes.md beside this file).

``shapes`` reads lines, ``fold`` is the pure fold of one connection (a live client feeds it the same),
``calls``, ``asks``, ``talk`` and ``terminals`` are its parts, ``survey`` is the first pass over a log,
``stored`` the adapter. ``client`` is the driver of a live agent, with ``offers`` (what can be set), ``waiting``
(what it asks a person), ``lent`` (files and terminals), ``previews`` and ``secrets``; ``live`` lists the
agents. ``registry/acp.toml`` holds the tables.
"""

from __future__ import annotations

from callsheet.harness.acp.fold import Fold, Known
from callsheet.harness.acp.live import ACP_AGENTS
from callsheet.harness.acp.stored import ACP

__all__ = ["ACP", "ACP_AGENTS", "Fold", "Known"]
