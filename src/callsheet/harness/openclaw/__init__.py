"""OpenClaw: agent databases, archives and legacy JSONL files, the pi family's too (see notes.md beside this file).

``layout`` says which files and rows make a session, ``feed`` reads its entries from wherever they stand, ``survey`` is
the first pass (the tree, ids used twice, secrets), ``stored`` the second that writes records; ``calls``, ``results``,
``talk``, ``effects``, ``processes`` and ``approvals`` turn single entries and rows into records.
``registry/openclaw.toml`` holds the tables.
"""

from __future__ import annotations

from callsheet.harness.openclaw.stored import OPENCLAW

__all__ = ["OPENCLAW"]
