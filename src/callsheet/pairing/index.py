"""Pairing of one stream: fed record by record, asked at any time.

A record is known by its number, 0 for the first one fed. What is kept of it is its place in the file, its
type and two bytes of words; strings are kept only where something has to be found by them: call ids, terminal
ids, and record ids that do not follow ``r<number>``. About 150 bytes a record.

A chain of ``supersedes`` is one entity; its number is that of its first record. A record supersedes only
one that stands before it, has its type and entity key, and was not superseded yet; any other link is broken
and means nothing here, so that a broken chain never hides a record. Terminal records with one terminalId
are one entity (ASR-271). A plan that a later call revises is told apart from what the call before made of
it: each call's part of the chain is an entity here, so that each can be drawn as it was then.

Carries ASR-262 to 266, 269, 271, 276.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from callsheet.pairing.words import (
    Linkage,
    Reach,
    Verdict,
    compact_in,
    has_call_id_in,
    linkage_in,
    pack_permission,
    pack_result,
    reach_in,
    status_in,
)
from callsheet.records import (
    RECORDS,
    FileChange,
    Permission,
    Plan,
    Provider,
    Record,
    Subagent,
    Terminal,
    ToolCall,
    ToolResult,
    Unknown,
)

PairingWord = Literal["paired", "dangling", "orphan", "ambiguous"]
Reason = Literal["no_result", "several_results", "several_calls", "unlinked", "no_call"]
"""Why a call or result is not paired: nothing came back; several results claim the call (264); several
calls have this id (262, 263); the source's own linkage is ambiguous or none; the call named is not in the
stream (266)."""


class Place(NamedTuple):
    """Where a record's line stands: byte offset and length without the line end."""

    offset: int
    size: int


NOWHERE = Place(-1, 0)
"""The place of a record that is not in a file (a live stream)."""

_CODES: dict[type[Any], int] = {kind: code for code, kind in enumerate(RECORDS, 1)}
_CALL = _CODES[ToolCall]
_RESULT = _CODES[ToolResult]
_PERMISSION = _CODES[Permission]
_TERMINAL = _CODES[Terminal]
_BAD = 127
_ODD_ID = 128
_CODE = 127


def _key_member(kind: type[Record]) -> str | None:
    members = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    return members[kind.ENTITY_KEY] if kind.ENTITY_KEY else None


_KEYS: dict[type[Any], str | None] = {kind: _key_member(kind) for kind in RECORDS}


class _Link(Struct, gc=False):
    """What carries one callId: a call, a result, and (rarely) further calls, results and other records."""

    call: int = -1
    result: int = -1
    calls: list[int] | None = None
    results: list[int] | None = None
    others: list[int] | None = None


def call_id_of(record: Record | Unknown) -> str | None:
    """The callId that a record names, wherever its type keeps it; a turn's file change names none."""
    if isinstance(record, Permission):
        return record.subject.call_id if record.subject else None
    if isinstance(record, FileChange) and record.scope != "call":
        return None
    found = getattr(record, "call_id", None)
    return found if isinstance(found, str) else None


def provider_of(call: ToolCall, result: ToolResult | None) -> Provider | None:
    """A call's provider: its own, or when it has none that of its paired result (ASR-276)."""
    return call.provider or (result.provider if result else None)


class Pairing:
    """The pairing of one stream."""

    def __init__(self) -> None:
        self._types = bytearray()
        self._words = array("H")
        self._offsets = array("q")
        self._sizes = array("q")
        self._keys = array("q")
        self._odd_ids: dict[str, int] = {}
        self._firsts: dict[int, int] = {}
        self._lasts: dict[int, int] = {}
        self._superseded: set[int] = set()
        self._links: dict[str, _Link] = {}
        self._terminals: dict[str, int] = {}
        self._plan_calls: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._types)

    def add(self, record: Record | Unknown, place: Place = NOWHERE) -> int:
        """Takes the next record of the stream.

        Args:
            record: The record; it is not kept.
            place: Where it can be read again.

        Returns:
            The record's number.
        """
        number = self._append(_CODES.get(type(record), 0), place)
        key = _KEYS.get(type(record))
        if key is not None:
            self._keys[number] = hash(getattr(record, key))
        before = self._find(getattr(record, "supersedes", None), number)
        self._name(record.id, number)
        if isinstance(record, ToolResult):
            self._words[number] = pack_result(record)
        elif isinstance(record, Permission):
            self._words[number] = pack_permission(record)
        elif isinstance(record, Terminal):
            first = self._terminals.setdefault(record.terminal_id, number)
            before = self.latest(first) if first != number else None
        if before is not None:
            first = self.first(before)
            self._superseded.add(before)
            if not (isinstance(record, Plan) and self._is_new_plan(record, first)):
                self._firsts[number] = first
                self._lasts[first] = number
        call_id = call_id_of(record)
        if call_id is not None:
            self._attach(call_id, number, before)
            if isinstance(record, Plan):
                self._plan_calls.setdefault(self.first(number), call_id)
        return number

    def _is_new_plan(self, record: Plan, first: int) -> bool:
        """Whether a revision is the work of another call (or of none) than the revisions from ``first`` on."""
        return self._plan_calls.get(first) != record.call_id

    def add_bad(self, place: Place = NOWHERE) -> int:
        """Takes the place of a line that is no legal record; it belongs to nothing."""
        return self._append(_BAD, place)

    # What a record is.

    def type_of(self, number: int) -> type[Record] | None:
        """The record's type; None for an unknown type or a bad line."""
        code = self._types[number] & _CODE
        return RECORDS[code - 1] if 0 < code < _BAD else None

    def is_bad(self, number: int) -> bool:
        """Whether the line is no legal record."""
        return self._types[number] & _CODE == _BAD

    def place(self, number: int) -> Place:
        """Where the record can be read again."""
        return Place(self._offsets[number], self._sizes[number])

    def first(self, number: int) -> int:
        """The first record of this record's entity."""
        return self._firsts.get(number, number)

    def latest(self, number: int) -> int:
        """The last record of this record's entity: its state."""
        first = self._firsts.get(number, number)
        return self._lasts.get(first, first)

    def is_superseded(self, number: int) -> bool:
        """Whether a later record supersedes this one."""
        return number in self._superseded

    def status_of(self, number: int) -> str:
        """Status of a result's record; any word that is not defined is ``unknown``."""
        return status_in(self._words[number])

    def verdict_of(self, number: int) -> Verdict:
        """Verdict of a permission's record, or of the compact decision on a result's."""
        word = self._words[number]
        return compact_in(word) if self._types[number] & _CODE == _RESULT else Verdict(word)

    def reach_of(self, number: int) -> Reach:
        """What a result's record shows of its way to the model."""
        return reach_in(self._words[number])

    def has_call_id(self, number: int) -> bool:
        """Whether a result's record has a callId."""
        return has_call_id_in(self._words[number])

    # What belongs together.

    def call_ids(self) -> Iterator[str]:
        """Every callId that a record names, in the order of first mention."""
        return iter(self._links)

    def calls(self, call_id: str) -> list[int]:
        """The call entities with this id, as numbers of their first records; more than one never pairs."""
        link = self._links.get(call_id)
        return [] if link is None or link.call < 0 else [link.call, *(link.calls or ())]

    def call(self, call_id: str | None) -> int | None:
        """The call entity with this id if there is exactly one, else None (ASR-263)."""
        link = self._links.get(call_id) if call_id is not None else None
        return None if link is None or link.call < 0 or link.calls else link.call

    def results(self, call_id: str) -> Iterator[int]:
        """The unsuperseded result records that have this callId, whatever their linkage."""
        link = self._links.get(call_id)
        if link is not None and link.result >= 0:
            if link.result not in self._superseded:
                yield link.result
            yield from (number for number in link.results or () if number not in self._superseded)

    def result(self, call_id: str) -> int | None:
        """The latest record of the result that is paired with the call of this id, or None (ASR-263, 264)."""
        if self.call(call_id) is None:
            return None
        found = list(islice(self.results(call_id), 2))
        if len(found) != 1 or linkage_in(self._words[found[0]]) is not Linkage.LINKED:
            return None
        return found[0]

    def linked(self, call_id: str | None, kind: type[Record]) -> list[int]:
        """Latest records of the entities of one type that name this callId; not for calls and results."""
        link = self._links.get(call_id) if call_id is not None else None
        if link is None or not link.others:
            return []
        code = _CODES[kind]
        return [n for n in link.others if self._types[n] & _CODE == code and self.latest(n) == n]

    def named(self, call_id: str) -> list[int]:
        """First records of all entities that name this callId: calls, results and others, each once."""
        link = self._links.get(call_id)
        if link is None:
            return []
        numbers = [*self.calls(call_id), *([link.result] if link.result >= 0 else []), *(link.results or ())]
        return list(dict.fromkeys(self.first(number) for number in (*numbers, *(link.others or ()))))

    def why_dangling(self, call_id: str) -> Reason | None:
        """Why the calls of this id (there is at least one) have no paired result; None if there is one."""
        if self.call(call_id) is None:
            return "several_calls"
        found = list(islice(self.results(call_id), 2))
        if len(found) > 1:
            return "several_results"
        if not found:
            return "no_result"
        return None if self.result(call_id) is not None else "unlinked"

    def why_unpaired(self, number: int, call_id: str | None) -> Reason | None:
        """Why a result is not paired; None if it is.

        Args:
            number: The latest record of the result.
            call_id: The callId that it has.
        """
        linkage = linkage_in(self._words[number])
        if linkage is not Linkage.LINKED or call_id is None:
            return "unlinked"
        if self.call(call_id) is None:
            return "several_calls" if self.calls(call_id) else "no_call"
        return None if self.result(call_id) == number else "several_results"

    def pairing_of(self, number: int, call_id: str | None) -> PairingWord:
        """The word for a call or a result: paired, dangling, orphan or ambiguous.

        Args:
            number: A call, or the latest record of a result.
            call_id: The callId that it has.
        """
        if self._types[number] & _CODE == _CALL:
            return "paired" if call_id is not None and self.result(call_id) is not None else "dangling"
        reason = self.why_unpaired(number, call_id)
        if reason is None:
            return "paired"
        if reason == "no_call" or (
            reason == "unlinked" and linkage_in(self._words[number]) is not Linkage.AMBIGUOUS
        ):
            return "orphan"
        return "ambiguous"

    def verdict(self, call_id: str) -> Verdict:
        """Latest decision about the one call of this id: of its permissions, else the compact one."""
        if self.call(call_id) is None:
            return Verdict.OPEN
        asked = self.linked(call_id, Permission)
        if asked:
            return self.verdict_of(max(asked))
        answer = self.result(call_id)
        return self.verdict_of(answer) if answer is not None else Verdict.OPEN

    def home(self, number: int, record: Record | Unknown) -> int:
        """The entity in whose row a record is drawn: the call it folds into, or its own entity.

        A paired result, a file change of call scope and a subagent fold into their call's row.
        """
        if isinstance(record, ToolResult):
            call_id = record.call_id
            if call_id is not None and self.result(call_id) == self.latest(number):
                call = self.call(call_id)
                if call is not None:
                    return call
        elif isinstance(record, (FileChange, Subagent)):
            call = self.call(call_id_of(record))
            if call is not None:
                return call
        return self.first(number)

    def numbers(self, kind: type[Record] | None = None) -> Iterator[int]:
        """Numbers of all records of a type (or of all), in stream order."""
        wanted = _CODES[kind] if kind is not None else None
        for number, code in enumerate(self._types):
            if wanted is None or code & _CODE == wanted:
                yield number

    def count(self, kind: type[Record] | None) -> int:
        """How many records of a type there are, revisions included; None counts records of unknown types."""
        code = _CODES[kind] if kind is not None else 0
        return self._types.count(code) + self._types.count(code | _ODD_ID)

    def count_bad(self) -> int:
        """How many lines are no legal record."""
        return self._types.count(_BAD)

    # How it is kept.

    def _append(self, code: int, place: Place) -> int:
        number = len(self._types)
        self._types.append(code)
        self._words.append(0)
        self._offsets.append(place.offset)
        self._sizes.append(place.size)
        self._keys.append(0)
        return number

    def _name(self, record_id: str, number: int) -> None:
        if record_id != f"r{number}":
            self._types[number] |= _ODD_ID
            if record_id:
                self._odd_ids[record_id] = number

    def _find(self, record_id: str | None, number: int) -> int | None:
        """The record with this id that ``number`` may supersede."""
        if record_id is None:
            return None
        found = self._odd_ids.get(record_id)
        if found is None and record_id[:1] == "r" and record_id[1:].isascii() and record_id[1:].isdigit():
            digits = record_id[1:]
            if len(digits) < 18 and (digits == "0" or digits[0] != "0"):
                found = int(digits)
                if found >= number or self._types[found] & _ODD_ID:
                    return None
        if found is None or found in self._superseded or self._keys[found] != self._keys[number]:
            return None
        return None if (self._types[found] ^ self._types[number]) & _CODE else found

    def _attach(self, call_id: str, number: int, before: int | None) -> None:
        link = self._links.get(call_id)
        if link is None:
            link = self._links[call_id] = _Link()
        code = self._types[number] & _CODE
        if code == _CALL:
            if before is not None:
                return  # the entity is listed under its first record
            if link.call < 0:
                link.call = number
            else:
                link.calls = _grown(link.calls, number)
        elif code == _RESULT:
            if link.result < 0 or link.result == before:
                link.result = number
            else:
                link.results = _grown(link.results, number)
        else:
            link.others = _grown(link.others, number)


def _grown(numbers: list[int] | None, number: int) -> list[int]:
    if numbers is None:
        return [number]
    numbers.append(number)
    return numbers
