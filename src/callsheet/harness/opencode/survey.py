"""The first pass over a session: roles, call ids used twice, first names of tools, where the model went on.

Owns: the identity of a call (OpenCode's call ids are unique within a session, but redacted copies repeat them;
decision 3), the name that a tool had when the model asked for it (the final row of an unknown tool says
``invalid``, the event before does not), and the last message of the model, before which results were sent
(decision 7).

Must never know: records but refs.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec import Raw

from callsheet.harness._port.cells import RowPen
from callsheet.harness._port.parts import ABSENT, members_of, part_at, text_of, value_of
from callsheet.harness.opencode.feed import Feed, Trouble
from callsheet.harness.opencode.shapes import Piece, id_of
from callsheet.records import Ref

SPEECH = frozenset({"text", "reasoning"})
"""Types of parts that hold words."""


class Asked(NamedTuple):
    """A tool as the model first asked for it."""

    name: str
    ref: Ref
    row: str | None


class Survey:
    """What the first pass found."""

    def __init__(self, feed: Feed, pen: RowPen) -> None:
        self.roles: dict[str, tuple[str, Ref]] = {}
        self.session: Piece | None = None
        self.asked: dict[str, Asked] = {}
        self.last_reply = -1
        self.pieces = 0
        self._order: dict[str, int] = {}
        self._ids: Counter[str] = Counter()
        for piece in feed.pieces():
            self.pieces += 1
            if isinstance(piece, Trouble):
                continue
            if piece.what == "session" and self.session is None:
                self.session = piece
            elif piece.what == "message":
                self._message(piece, pen)
            elif piece.what == "part":
                self._part(piece)
            elif piece.what == "event":
                self._event(piece, pen)

    def _message(self, piece: Piece, pen: RowPen) -> None:
        role = text_of(piece.members.get("role", ABSENT)) or ""
        name = piece.message or ""
        number = len(self._order)
        self._order[name] = number
        pen.take(piece.source, piece.unit)
        self.roles[name] = (role, pen.ref("message", piece.pointer or None))

    def _part(self, piece: Piece) -> None:
        kind = text_of(piece.members.get("type", ABSENT))
        if kind == "tool":
            self._ids[text_of(piece.members.get("callID", ABSENT)) or ""] += 1
        role, _ = self.roles.get(piece.message or "", ("", None))
        words = kind in SPEECH and bool(text_of(piece.members.get("text", ABSENT)))
        own = value_of(piece.members.get("synthetic", ABSENT)) is not True
        if role == "assistant" and own and (words or kind == "tool"):
            # A message of which nothing came may be a request that failed.
            self.last_reply = max(self.last_reply, self._order[piece.message or ""])

    def _event(self, piece: Piece, pen: RowPen) -> None:
        part = members_of(piece.members.get("part", ABSENT))
        name, tool = id_of(part), text_of(part.get("tool", ABSENT))
        if text_of(part.get("type", ABSENT)) == "tool" and name and tool and name not in self.asked:
            pen.take(piece.source, piece.unit)
            self.asked[name] = Asked(tool, pen.ref("asked", "/part"), piece.id)

    def identity(self, piece: Piece, seen: Counter[str]) -> tuple[str, str, str | None]:
        """A call's id, where it is from, and its native id where another stands in the record."""
        native = text_of(piece.members.get("callID", ABSENT)) or ""
        if native and self._ids[native] < 2:
            return native, "native", None
        derived = f"{native}#{piece.id or ''}"
        seen[derived] += 1
        if seen[derived] > 1:
            derived = f"{derived}/{seen[derived]}"
        return derived, "derived", native or None

    def was_sent(self, piece: Piece) -> bool:
        """Whether the model went on after the message of a part."""
        return self._order.get(piece.message or "", 1 << 60) < self.last_reply

    def head(self, member: str) -> Raw:
        """A member of the session's own piece."""
        return part_at(self.session.raw, member) if self.session is not None else ABSENT
