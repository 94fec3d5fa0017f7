"""Frames of ``codex app-server`` (kind ``codex-app-server``): logs of them, and a live connection.

``shapes`` reads lines and items, ``fold`` is the pure fold of one connection, which a log and a live client feed
alike; ``thread`` folds one thread, with ``calls``, ``asks``, ``talk`` and ``terminals`` as its parts. ``survey``
finds what must not be kept, ``layout`` says which files are logs, ``stored`` is the adapter.
"""

from __future__ import annotations

from callsheet.harness.codex.app_server.fold import Fold
from callsheet.harness.codex.app_server.stored import CODEX_APP_SERVER

__all__ = ["CODEX_APP_SERVER", "Fold"]
