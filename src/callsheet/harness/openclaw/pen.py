"""What every record of one transcript needs beyond the shared pen: branches that were left.

Owns the mark on records of entries that stand on a branch the session left, and members kept in ``native.extra``.

Must never know: what an entry says.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from callsheet.harness._port.cells import RowPen
from callsheet.records import Native

LEFT = {"branch": "left"}
"""``native.extra`` of a record whose entry is not on the active branch."""


class TreePen(RowPen):
    """A pen for entries of a tree.

    Attributes:
        dead: Whether the entry at hand stands on a branch that was left.
    """

    dead = False

    def native(self, role: str, pointer: str | None = None) -> Native:
        """Provenance of a record, with the mark of a branch that was left."""
        native = super().native(role, pointer)
        if self.dead:
            native.extra = Raw(msgspec.json.encode(LEFT))
        return native


def keep(native: Native, **members: Any) -> None:
    """Adds members to ``native.extra``; those without a value are left out."""
    told = {name: value for name, value in members.items() if value is not None}
    if not told:
        return
    before = {} if native.extra is UNSET else msgspec.json.decode(native.extra)
    native.extra = Raw(msgspec.json.encode({**before, **told}))
