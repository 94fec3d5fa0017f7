"""One pass over a stream before its facts are checked: what can only be known when the whole stream was seen.

Owns: where each record stands (to read a superseded one or a call again), the tool of each call, which units repeat
others, which texts stand in messages of their own, the last reply of the model, and how often a record is superseded.
Memory: numbers for each record, no text.

Must never know: native lines.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from callsheet.audit.finding import Json
from callsheet.audit.values import unit_index, unit_key
from callsheet.records.stream import stream_lines
from callsheet.wire.files import read_chunks
from callsheet.wire.lossless import NotJson, decode

BLANKS = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's ``trim`` takes off."""


Place = tuple[int, int]
"""A 1-based line, and where on it a unit begins: a torn line holds several."""
NO_PLACE = (0, 0)


class Head(NamedTuple):
    """What the session record of a stream says.

    Attributes:
        agent: Name of the agent.
        kind: Kind of the first listed source.
        version: Its version.
        native_id: The native session id.
        roots: Names and absolute folders.
        sources: Ids of the listed sources, None when none are listed.
        protocol: The version of a protocol that was negotiated.
    """

    agent: str | None
    kind: str | None
    version: str | None
    native_id: str | None
    roots: dict[str, str]
    sources: frozenset[str] | None
    protocol: int | None = None


def head_of(record: Json) -> Head:
    """The head of a stream, from its session record or (when it has none) from nothing."""
    agent = record.get("agent")
    agent = agent if isinstance(agent, dict) else {}
    roots = record.get("roots")
    listed = record.get("sources")
    first = listed[0] if isinstance(listed, list) and listed else None
    return Head(
        _text(agent.get("name")),
        _text(first.get("kind")) if isinstance(first, dict) else None,
        _text(agent.get("version")),
        _text(record.get("nativeSessionId")),
        {name: path for name, path in roots.items() if isinstance(path, str)}
        if isinstance(roots, dict)
        else {},
        frozenset(str(one.get("id")) for one in listed if isinstance(one, dict))
        if isinstance(listed, list)
        else None,
        _protocol(record),
    )


def _protocol(record: Json) -> int | None:
    native = record.get("native")
    extra = native.get("extra") if isinstance(native, dict) else None
    version = extra.get("protocolVersion") if isinstance(extra, dict) else None
    return version if type(version) is int else None


class Ledger:
    """What a stream holds.

    Attributes:
        head: Its session record.
        records: How many records it has.
        sha256: Digest of its bytes.
        repeats: Units that repeat another, by source.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.head = head_of({})
        self.records = 0
        self.repeats: dict[str, set[int]] = {}
        self._offsets = array("Q")
        self._sizes = array("Q")
        self._ids: dict[int, int] = {}
        self._calls: dict[int, int] = {}
        self._tools: dict[str, int] = {"": 0}
        self._tool_names = [""]
        self._texts: set[int] = set()
        self.lengths: set[int] = set()
        self._replies: dict[str, tuple[Place, int, Place]] = {}
        self._spoken_again: list[tuple[str, Place, int]] = []
        self._responses: dict[str, Place] = {}
        self._unplaced = array("Q")
        self._superseded: dict[int, int] = {}
        self._shared: Counter[int] = Counter()
        self._gone: set[int] = set()
        self._terminals: dict[int, list[int]] = {}
        self._turns = array("Q")
        self._made = array("q")
        self._makers = array("Q")
        for position, record in self._read():
            self._take(position, record)
        for said in sorted(self._spoken_again):
            self._spoke(*said)
        order = sorted(range(len(self._made)), key=self._made.__getitem__)
        self._made = array("q", (self._made[index] for index in order))
        self._makers = array("Q", (self._makers[index] for index in order))
        self.sha256 = _digest(file)

    def _read(self) -> Iterator[tuple[int, Json]]:
        self._file.seek(0)
        for line in stream_lines(self._file):
            position = self.records
            self.records += 1
            self._offsets.append(line.offset)
            self._sizes.append(len(line.data))
            try:
                record = decode(line.data)
            except NotJson:
                continue
            if isinstance(record, dict):
                yield position, record

    def _take(self, position: int, record: Json) -> None:
        name = record.get("id")
        if isinstance(name, str) and name != f"r{position}":
            self._ids.setdefault(hash(name), position)
        made = _made_of(record)
        if made is not None:
            self._made.append(made)
            self._makers.append(position)
        if position == 0 and record.get("type") == "session":
            self.head = head_of(record)
        if isinstance(record.get("supersedes"), str):
            self._gone.add(hash(record["supersedes"]))
        match record.get("type"):
            case "terminal" if isinstance(record.get("terminalId"), str):
                self._terminals.setdefault(hash(record["terminalId"]), []).append(position)
            case "turn" if "supersedes" not in record:
                self._turns.append(position)
            case "tool_call":
                self._note_call(position, record)
                self._note_reply(position, record, record.get("requestedBy") == "model")
                self._note_repeats(record)
            case "tool_result":
                self._note_repeats(record)
            case "message":
                if record.get("author") == "model":
                    self._note_reply(position, record, True)
                else:
                    self._note_texts(record)
            case "reasoning":
                self._note_reply(position, record, True)
            case "usage" if record.get("scope") == "inference":
                self._note_usage(record)
            case _:
                pass

    def _note_call(self, position: int, record: Json) -> None:
        tool = record.get("name")
        number = self._tools.get(tool, 0) if isinstance(tool, str) else 0
        if number == 0 and isinstance(tool, str) and tool and len(self._tool_names) < 0xFFFF:
            number = self._tools[tool] = len(self._tool_names)
            self._tool_names.append(tool)
        native = record.get("native")
        own = native.get("callId") if isinstance(native, dict) else None
        shared = own if isinstance(own, str) else record.get("callId")
        if "supersedes" not in record and isinstance(shared, str):
            self._shared[hash(shared)] += 1
        for name in (record.get("callId"), own):
            if isinstance(name, str):
                self._calls.setdefault(hash(name), position << 16 | number)

    def _note_repeats(self, record: Json) -> None:
        refs = _refs(record)
        first = refs[0] if refs else {}
        for ref in refs[1:]:
            if ref.get("role") == first.get("role") and ref.get("pointer") == first.get("pointer"):
                line, index = ref.get("line"), unit_index(ref.get("pointer"))
                if isinstance(line, int) and line > 0:
                    self.repeats.setdefault(str(ref.get("source")), set()).add(unit_key(line, index))

    def _note_texts(self, record: Json) -> None:
        content = record.get("content")
        for part in content if isinstance(content, list) else ():
            text = part.get("text") if isinstance(part, dict) else None
            text = text.strip(BLANKS) if isinstance(text, str) else ""
            if text:
                self._texts.add(hash(text))
                self.lengths.add(len(text))

    def _note_reply(self, position: int, record: Json, by_model: bool) -> None:
        refs = _refs(record)
        place = _place(refs[0]) if refs else None
        if by_model and refs and place is None and "table" in refs[0]:
            self._unplaced.append(position)
        if not by_model or place is None:
            return
        inference = record.get("inferenceId")
        mark = hash(inference) if isinstance(inference, str) else 0
        self._spoke(str(refs[0].get("source")), place, mark)
        # A record that is written twice was said each time; only the whole stream tells what stands in between.
        named = ("source", "role", "pointer", "sha256")
        self._spoken_again += (
            (str(ref.get("source")), again, mark)
            for ref in refs[1:]
            if (again := _place(ref)) is not None and all(ref.get(one) == refs[0].get(one) for one in named)
        )

    def _spoke(self, source: str, place: Place, mark: int) -> None:
        last, last_mark, first = self._replies.get(source, (NO_PLACE, 0, NO_PLACE))
        if place >= last:
            self._replies[source] = (place, mark, first if mark and mark == last_mark else place)

    def place_replies(self, line_of: Callable[[Json], int]) -> None:
        """Notes the replies whose refs name a row and no line: only the source tells where those stand."""
        unplaced, self._unplaced = self._unplaced, array("Q")
        for position in unplaced:
            ref = _refs(self.at(position) or {})[0]
            self._spoke(str(ref.get("source")), (line_of(ref), 0), 0)

    def _note_usage(self, record: Json) -> None:
        refs = _refs(record)
        place = _place(refs[0]) if refs else None
        if place is not None:
            source = str(refs[0].get("source"))
            self._responses[source] = max(place, self._responses.get(source, NO_PLACE))

    def records_of(self, kind: str) -> Iterator[Json]:
        """The records of one type, read again."""
        self._file.seek(0)
        for line in stream_lines(self._file):
            if kind.encode() not in line.data:
                continue
            try:
                record = decode(line.data)
            except NotJson:
                continue
            if isinstance(record, dict) and record.get("type") == kind:
                yield record

    # -- what is asked ------------------------------------------------------------------------------------------

    def at(self, position: int) -> Json | None:
        """The record at a position, read again."""
        if not 0 <= position < len(self._offsets):
            return None
        self._file.seek(self._offsets[position])
        try:
            record = decode(self._file.read(self._sizes[position]))
        except NotJson:
            return None
        return record if isinstance(record, dict) else None

    def position_of(self, name: str) -> int | None:
        """Where the first record with this id stands."""
        found = self._ids.get(hash(name))
        return self._numbered(name) if found is None else found

    def _numbered(self, name: str) -> int | None:
        """The position in an id of the usual form, if the record there has that id."""
        if name[:1] == "r" and name[1:].isascii() and name[1:].isdigit() and len(name) < 20:
            position = int(name[1:])
            record = self.at(position)
            return position if record is not None and record.get("id") == name else None
        return None

    def is_alone(self, name: str, position: int) -> bool:
        """Whether the record at a position is the first, and no other, with this id."""
        other = self._ids.get(hash(name))
        if name == f"r{position}":
            return other is None
        return other == position and self._numbered(name) is None

    def call_at(self, call_id: Any) -> int | None:
        """Where the first call with this id stands."""
        found = self._calls.get(hash(call_id)) if isinstance(call_id, str) else None
        return None if found is None else found >> 16

    def calls_with(self, native_id: str) -> int:
        """How many calls of the stream have this native id."""
        return self._shared[hash(native_id)]

    def is_superseded(self, name: Any) -> bool:
        """Whether a later record supersedes the one with this id."""
        return isinstance(name, str) and hash(name) in self._gone

    def terminal_before(self, terminal_id: Any, position: Any) -> Json | None:
        """The last state of a terminal before a position."""
        found = self._terminals.get(hash(terminal_id), []) if isinstance(terminal_id, str) else []
        before = [at for at in found if type(position) is int and at < position]
        return self.at(before[-1]) if before else None

    def turns_before(self, position: int) -> int:
        """How many turns began before a position."""
        return bisect_left(self._turns, position)

    def tool_of(self, call_id: Any) -> str | None:
        """The tool of the call with this id."""
        found = self._calls.get(hash(call_id)) if isinstance(call_id, str) else None
        return None if found is None else self._tool_names[found & 0xFFFF] or None

    def twin_of(self, record: Json, position: int) -> str | None:
        """Another entity of this type that is made of the same native unit."""
        made = _made_of(record)
        if made is None:
            return None
        at = bisect_left(self._made, made)
        while at < len(self._made) and self._made[at] == made:
            other = self.at(self._makers[at]) if self._makers[at] != position else None
            if other is not None and "supersedes" not in other and "supersedes" not in record:
                return str(other.get("id"))
            at += 1
        return None

    def supersede(self, position: int, by: int) -> bool:
        """Notes that a record is superseded by another; False when a third one did it before."""
        return self._superseded.setdefault(position, by) == by

    def says(self, text: str) -> bool:
        """Whether a message of its own holds this text (blanks at its ends apart)."""
        text = text.strip(BLANKS)
        return not text or hash(text) in self._texts

    def response_follows(self, source: str, place: Place) -> bool:
        """Whether the usage of a response is told after a place."""
        return self._responses.get(source, NO_PLACE) > place

    def reply_follows(self, source: str, place: Place, call: Place | None) -> bool:
        """Whether the model replied after a place, in a message later than the one that made the call."""
        last, _, first = self._replies.get(source, (NO_PLACE, 0, NO_PLACE))
        return last > place and (call is None or call < first)


def _place(ref: Json) -> Place | None:
    line, offset = ref.get("line"), ref.get("offset")
    return (line, offset if isinstance(offset, int) else 0) if isinstance(line, int) else None


def _made_of(record: Json) -> int | None:
    """A mark of the native unit that a record is made of, with its type; None for one that stands for a file."""
    refs = _refs(record)
    if not refs or refs[0].get("offset") is None or record.get("type") in ("session", "gap"):
        return None
    first = refs[0]
    named = (record.get("type"), first.get("source"), first.get("offset"), first.get("pointer"))
    return hash(tuple(map(str, named)))


def _refs(record: Json) -> list[Json]:
    native = record.get("native")
    refs = native.get("refs") if isinstance(native, dict) else None
    return [ref for ref in refs if isinstance(ref, dict)] if isinstance(refs, list) else []


def _digest(file: BinaryIO) -> str:
    file.seek(0)
    hashed = hashlib.sha256()
    for chunk in read_chunks(file):
        hashed.update(chunk)
    return hashed.hexdigest()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
