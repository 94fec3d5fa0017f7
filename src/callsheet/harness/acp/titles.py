"""The title of a session, which its agent tells late and may tell again.

Owns: the last title in the head of the session's stream, with the frame that told it, and the frames before, which
nothing maps. An import knows the last title beforehand; a live fold completes the head that it has settled
(``harness._port.fold``).

Must never know: other updates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, text_of, value_of
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.units import Unit
from callsheet.harness.acp.shapes import LogLine
from callsheet.records import Ref, Session, SourceEntry

UPDATE = "session_info_update"


class Held(NamedTuple):
    """A frame that told a title, and how it is kept when a later one tells another."""

    source: SourceEntry
    unit: Unit[LogLine]
    ts: str | None
    session: str | None
    keep: Callable[[Pen], None]


class Titles:
    """The titles of one session.

    Args:
        head: The head of its stream.
        before: How many refs of it stand before the title's.
        known: The head has its title already.
    """

    def __init__(self, head: Session, before: int, *, known: bool) -> None:
        self._head = head
        self._before = before
        self._known = known
        self._cites = False
        self._held: Held | None = None

    def told(self, pen: Pen, update: dict[str, Raw], pointer: str, keep: Callable[[Pen], None]) -> bool:
        """Takes an update; whether the head cites it.

        Args:
            pen: At the unit of the update.
            update: The update.
            pointer: Where it stands in the unit.
            keep: Keeps its frame, should a later one tell another title.
        """
        title = title_in(update)
        if title is None:
            return False
        before, self._held = self._held, None
        now = Held(pen.source, pen.unit, pen.ts, pen.inherited.session if pen.inherited else None, keep)
        if before is not None:
            pen.take(before.source, before.unit, before.ts, before.session)
            before.keep(pen)
            pen.take(now.source, now.unit, now.ts, now.session)
        if not self._known:
            self._complete(title or None, pen.ref("title", pointer) if title else None)
        if title:
            self._held = now
        return bool(title)

    def _complete(self, title: str | None, ref: Ref | None) -> None:
        self._head.title = title
        if self._head.native is not None:
            refs = self._head.native.refs
            refs[self._before : self._before + self._cites] = [ref] if ref is not None else []
        self._cites = ref is not None


def title_in(update: dict[str, Raw]) -> str | None:
    """The title that an update tells; empty where it takes the title back (null), None where it tells none."""
    if "title" not in update:
        return None
    if value_of(update["title"]) is None:
        return ""
    return text_of(update.get("title", ABSENT)) or None
