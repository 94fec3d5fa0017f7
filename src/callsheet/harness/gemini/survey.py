"""The first pass over a chat: which call ids are used twice, and which results the model was sent.

Owns: the identity of a call (its id, or a derived one where several calls have it or it has none; decision 3),
calls that are logged again under another message with equal content (decision 2), and where the function
response of a call stands that a user message carries: the chat's own record of what the model got (decision 7),
once the model has spoken after it.

Must never know: records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.pen import Place
from callsheet.harness._port.units import Hole, Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.gemini.shapes import ChatLine, Entry, call_id_of, entries_of, units_of
from callsheet.records import SourceEntry
from callsheet.registry.via import numbers
from callsheet.wire.blobs import digest


class CallItem(NamedTuple):
    """One item of ``toolCalls``.

    Attributes:
        call_id: The record's call id.
        native_id: The id as written.
        derived: Whether the record's id had to be derived.
        pointer: Where it stands in its unit.
        members: Its members.
        raw: Its text.
    """

    call_id: str
    native_id: str | None
    derived: bool
    pointer: str
    members: dict[str, Raw]
    raw: Raw


class Sent(NamedTuple):
    """A function response in a user message."""

    place: Place
    pointer: str
    part: str


class Survey:
    """What the first pass found."""

    def __init__(self, veil: Veil, source: SourceEntry, document: bool) -> None:
        self._owners: dict[str, dict[tuple[str, int], None]] = {}
        self._same: dict[tuple[str, str], tuple[str, int]] = {}
        self.sent: dict[str, list[Sent]] = {}
        self.called: dict[str, int] = {}
        self.replied = 0
        self.session: str | None = None
        self.named: Unit[ChatLine] | None = None
        self.units = 0
        self._run(veil, source, document)

    def _run(self, veil: Veil, source: SourceEntry, document: bool) -> None:
        spoken: set[str] = set()
        for unit in units_of(veil, source, document):
            self.units += 1
            if isinstance(unit, Hole) or unit.native is None:
                continue
            if self.session is None:
                changed = text_of(members_of(unit.native.set).get("sessionId", ABSENT))
                named = unit.native.sessionId if isinstance(unit.native.sessionId, str) else changed
                self.session = named or None
                self.named = unit if self.session is not None else None
            place = Place(source, unit.line.number, unit.line.offset + unit.start, len(unit.data))
            for entry in entries_of(unit):
                kind = text_of(entry.members.get("type", ABSENT))
                if kind in ("gemini", "model"):
                    name = text_of(entry.members.get("id", ABSENT))
                    if (name is None or name not in spoken) and _says(entry):
                        # A message that is logged again is no new word of the model.
                        self.replied = place.offset
                        spoken.update([name] if name is not None else ())
                    for native, owner, told in _calls(entry):
                        if native is None:
                            continue
                        self.called.setdefault(native, place.offset)
                        first = self._same.setdefault((native, told), owner)
                        self._owners.setdefault(native, {})[first] = None
                elif kind == "user":
                    self._responses(entry, place)

    def _responses(self, entry: Entry, place: Place) -> None:
        for number, part in enumerate(items_of(entry.members.get("content", ABSENT))):
            told = members_of(part).get("functionResponse", ABSENT)
            name = call_id_of(members_of(told))
            if name is not None:
                found = self.sent.setdefault(name, [])
                pointer = f"{entry.pointer}/content/{number}/functionResponse"
                one = Sent(place, pointer, digest(bytes(told)))
                if all(other.part != one.part for other in found):
                    found.append(one)
                else:
                    self.sent[name] = [one if other.part == one.part else other for other in found]

    def delivered(self, native_id: str | None) -> Sent | None:
        """The response of a call as the chat records that it was sent, if it is only one and the model replied."""
        found = self.sent.get(native_id or "", [])
        if len(found) != 1 or len(self._owners.get(native_id or "", {})) > 1:
            return None
        # The message that makes the call is no reply to its result, wherever that stands.
        after = max(found[0].place.offset, self.called.get(native_id or "", -1))
        return found[0] if after < self.replied else None

    def items(self, entry: Entry) -> Iterator[CallItem]:
        """The calls of a message, each under the identity that its record has."""
        owner_id = text_of(entry.members.get("id", ABSENT)) or ""
        seen: dict[str, int] = {}
        for number, raw in enumerate(items_of(entry.members.get("toolCalls", ABSENT))):
            if mark(raw) != b"{":
                continue
            members = members_of(raw)
            native = call_id_of(members)
            pointer = f"{entry.pointer}/toolCalls/{number}"
            if native is None:
                yield CallItem(f"#{owner_id}/{number}", None, True, pointer, members, raw)
                continue
            count = seen.get(native, 0)
            seen[native] = count + 1
            owners = self._owners.get(native, {})
            if len(owners) < 2:
                yield CallItem(native, native, False, pointer, members, raw)
                continue
            owner, place = self._same.get((native, digest(bytes(raw))), (owner_id, count))
            same_owner = sum(1 for one, _ in owners if one == owner)
            derived = f"{native}#{owner}" + (f"/{place}" if same_owner > 1 else "")
            yield CallItem(derived, native, True, pointer, members, raw)


def _says(entry: Entry) -> bool:
    """Whether a message says that the model was there: words, calls, thoughts or what it used."""
    members = entry.members
    words = text_of(members.get("content") or members.get("parts") or ABSENT)
    listed = ("content", "parts", "toolCalls", "thoughts")
    used = numbers(value_of(members.get("tokens", ABSENT)))
    return (
        bool(words)
        or any(items_of(members.get(name, ABSENT)) for name in listed)
        or bool(isinstance(used, list) and used)
    )


def _calls(entry: Entry) -> Iterator[tuple[str | None, tuple[str, int], str]]:
    owner = text_of(entry.members.get("id", ABSENT)) or ""
    seen: dict[str, int] = {}
    for raw in items_of(entry.members.get("toolCalls", ABSENT)):
        native = call_id_of(members_of(raw))
        count = seen.get(native or "", 0)
        seen[native or ""] = count + 1
        yield native, (owner, count), digest(bytes(raw))
