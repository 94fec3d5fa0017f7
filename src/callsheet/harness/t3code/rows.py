"""The rows of one thread as units, and the first pass over them: what must not be kept is named before anything is.

Owns: reading a thread's source table by table, secrets among questions and answers (ASR-283), raw chain of thought
(decision 11), call ids that stand on several items.

Must never know: records but their units.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.cells import Cell, Damage, rows_of
from callsheet.harness._port.parts import ABSENT, mark, part_at
from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.t3code import layout
from callsheet.harness.t3code.pen import dig, is_secret, listed, secret_values, text
from callsheet.records import SourceEntry

Native = dict[str, Any]
_READING: Reading[Native] = Reading(
    msgspec.json.Decoder(dict[str, Any]), lambda value: value, lambda value: isinstance(value, dict)
)


PAYLOADS = frozenset({layout.ACTIVITIES, layout.EVENTS})
"""Tables whose columns say what their payload does not."""


class Row(NamedTuple):
    """One row.

    Attributes:
        cell: Where it stands.
        unit: Its value as a unit; None when that is damaged, see ``hole``.
        hole: What is damaged.
        key: The columns that name it; of a row that is its own unit all of them.
        inner: Where its payload stands in its unit: in a column of it, or it is the unit.
    """

    cell: Cell
    unit: Unit[Native] | None
    hole: Hole | None
    key: dict[str, Any]
    inner: str = ""

    @property
    def value(self) -> Native:
        """The decoded payload, an empty object where it is none."""
        value = self.unit.native if self.unit is not None else None
        found = value.get(self.inner) if value is not None and self.inner else value
        return found if isinstance(found, dict) else {}

    def part(self, pointer: str) -> Raw:
        """A part of the payload as its own text."""
        if self.unit is None:
            return ABSENT
        return part_at(Raw(self.unit.data), f"{self.inner}/{pointer}" if self.inner else pointer)

    def pointer(self, pointer: str) -> str:
        """Where a part of the payload stands in the unit."""
        return f"/{self.inner}{pointer}" if self.inner else pointer


def rows(veil: Veil, source: SourceEntry, table: str | None = None) -> Iterator[Row | Damage]:
    """The rows of a thread's source, of one table or of all."""
    for cell in rows_of(veil.lines(source)):
        if isinstance(cell, Damage):
            if table is None:
                yield cell
        elif table is None or cell.table == table:
            yield _row(cell)


def _row(cell: Cell) -> Row:
    key = msgspec.json.decode(cell.key)
    found = list(native_units([cell], _READING))
    only = found[0] if len(found) == 1 else None
    if isinstance(only, Unit) and len(only.data) == len(cell.data):
        if cell.table in PAYLOADS:
            return Row(cell, only, None, {**key, **(only.native or {})}, "payload_json")
        return Row(cell, only, None, key)
    reason = only.reason if isinstance(only, Hole) else "bad_json"
    return Row(cell, None, Hole(cell, 0, len(cell.data), reason), key)


class Survey:
    """What the first pass over a thread found."""

    def __init__(self, desk: Desk, veil: Veil, source: SourceEntry) -> None:
        self._veil = veil
        self._source = source
        self.counts: dict[str, int] = {}
        """Native call ids to how many items have them."""
        self._owners: dict[tuple[str, Any], int] = {}
        self.calls: dict[str, str] = {}
        """Turn item ids to native call ids."""
        self.secret: dict[str, tuple[Any, bool]] = {}
        """Requests that ask for a secret: their questions, and whether all of it is one."""
        self.secret_values: list[str] = []
        """What was given for them."""
        for row in rows(veil, source):
            if isinstance(row, Row):
                self._look(row, keep_reasoning=desk.keep_reasoning)
        if self.secret:
            self._name_secrets()

    def _look(self, row: Row, *, keep_reasoning: bool) -> None:
        value = row.value
        if row.cell.table == layout.ITEMS:
            kind = text(value.get("type"))
            if kind == "user_input_request":
                self._ask(value.get("requestId"), value)
            elif kind == "reasoning" and not keep_reasoning:
                self._hide(row, "text")
            elif kind in CALLS:
                found = native_id(value)
                if found is not None:
                    self.counts[found] = self.counts.get(found, 0) + 1
                    owner = (found, text(value.get("id")))
                    self._owners[owner] = self._owners.get(owner, 0) + 1
                    if text(value.get("id")):
                        self.calls[value["id"]] = found
        elif row.cell.table == layout.ACTIVITIES:
            kind = row.key.get("kind")
            if kind == "user-input.requested":
                self._ask(value.get("requestId"), value)
            item = dig(value, "data", "item", "id")
            if kind == "tool.denied":
                item = value.get("toolUseId")
            if kind in ("tool.completed", "tool.denied") and isinstance(item, str) and item:
                self.counts[item] = self.counts.get(item, 0) + 1
        elif row.cell.table == layout.REQUESTS and is_secret(value):
            self._ask(value.get("id"), value)

    def _ask(self, request: Any, value: Native) -> None:
        questions = value.get("questions")
        whole = is_secret(value)
        if isinstance(request, str) and (whole or any(is_secret(one) for one in listed(questions))):
            before, was = self.secret.get(request, (None, False))
            self.secret[request] = (questions or before, whole or was)

    def _hide(self, row: Row, *names: str) -> None:
        """Hides a member's text wherever it stands in a row."""
        if row.unit is None:
            return
        for name in names:
            raw = row.part(name)
            if raw and mark(raw) in (b'"', b"{", b"[") and len(raw) > 2:
                self._hide_piece(row, bytes(raw))

    def _hide_piece(self, row: Row, piece: bytes) -> None:
        if row.cell.quoted:
            words = msgspec.json.decode(piece)
            if isinstance(words, str):
                self._veil.secret(words, [self._source])
            return
        at = row.cell.data.find(piece)
        while at >= 0:
            self._veil.hide(self._source, row.cell.offset + at, len(piece))
            at = row.cell.data.find(piece, at + len(piece))

    def _name_secrets(self) -> None:
        values: dict[str, None] = {}
        for row in rows(self._veil, self._source):
            if not isinstance(row, Row) or row.unit is None:
                continue
            value = row.value
            request = value.get("requestId", value.get("id"))
            if not isinstance(request, str) or request not in self.secret:
                continue
            questions, whole = self.secret[request]
            for given in (value.get("answers"), dig(value, "questionAnswer", "answers")):
                values.update(dict.fromkeys(secret_values(questions, given, whole=whole)))
            for pointer in ("answers", "questionAnswer/answers", "response"):
                piece = row.part(pointer)
                if piece and mark(piece) in (b'"', b"{", b"["):
                    self._hide_piece(row, bytes(piece))
        self.secret_values = list(values)

    def is_shared(self, call_id: str) -> bool:
        """Whether a native call id stands on several items."""
        return self.counts.get(call_id, 0) > 1

    def tells_apart(self, call_id: str, item: str) -> bool:
        """Whether of the items with a native call id one alone has this id of its own."""
        return self._owners.get((call_id, item)) == 1

    def has_call(self, call_id: str | None) -> bool:
        """Whether exactly one item has this native call id."""
        return call_id is not None and self.counts.get(call_id) == 1


CALLS = frozenset(
    {"command_execution", "file_change", "file_search", "web_search", "dynamic_tool", "subagent"}
)
"""Turn items that are calls."""


def native_id(item: Native) -> str | None:
    """The provider's own id of an item, where T3 Code calls it a strong one."""
    ref = item.get("nativeItemRef")
    if isinstance(ref, dict) and ref.get("strength") == "strong":
        return text(ref.get("nativeId"))
    return None


def raw_of(row: Row, name: str) -> Raw:
    """A member of a row's value as its own text."""
    return row.part(name)
