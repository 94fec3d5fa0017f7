"""Which stored tool results a recorded request carried to the model, and with which text.

Owns: a fold over one session or agent file, which since 2.1.300 records its own requests. An
``api-request`` lists the messages it adds to those of its ``base`` as hashes in ``tail``. Each hash is that
of an ``api-request-blob``, or of stored user records joined (every prefix of a run of them). A message that
a request keeps from its base was in the tail of an earlier one, so the tails of all requests name every
message sent, whichever thread sent it: nothing is rebuilt, and a cycle of bases or a huge ``keep`` costs
nothing. A request that contradicts itself or its base proves nothing. Which stored result a sent block is,
``claims`` decides.

Memory: no text is kept; some hundred bytes a result until ``close``, then what ``deliveries`` packs. What
comes in an unusual order is held in bounded tables, the oldest given up first.

Must never know: files, records, pairing, what a result means. Rules: ASR-259, decision 7.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from callsheet.harness.claude_code.claims import Claims, Doubt, Sent
from callsheet.harness.claude_code.deliveries import Deliveries, Delivery, Place, Request, Result
from callsheet.harness.claude_code.runs import Prefix, Runs
from callsheet.harness.claude_code.sent_block import stored_content
from callsheet.registry.versions import version_key
from callsheet.wire.lossless import NotJson, decode

LAST_WITHOUT: Final = (2, 1, 260)
"""The newest version known to record no requests; results of later ones are worth a look."""
LIMIT: Final = 16_384
"""Entries of each table of things whose other half has not come yet."""
_VERSIONED = ("user", "attachment", "assistant")
"""Types of lines that are worth a look only where requests are recorded."""
_ABSENT = Raw()
_FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_CONTRADICTS = -1

_K = TypeVar("_K")
_V = TypeVar("_V")


class RequestLine(Struct, gc=False):
    """What the fold reads of a native record. A reader with a struct of its own may inherit this one."""

    type: Any = None
    subtype: Any = None
    version: Any = None
    timestamp: Any = None
    message: Raw = _ABSENT
    rendered: Any = None
    id: Any = None
    base: Any = None
    keep: Any = None
    tail: Any = None
    hash: Any = None


class _Message(Struct, gc=False):
    id: Any = None
    content: Any = None


class _MessageId(Struct, gc=False):
    id: Any = None


_line = msgspec.json.Decoder(RequestLine)
_message = msgspec.json.Decoder(_Message)
_message_id = msgspec.json.Decoder(_MessageId)


class RequestEvidence:
    """The fold. Feed lines in file order, close, then ask.

    Records of type user, assistant, attachment, system and ``api-request*`` matter; others may be left out.

    Files of versions that record no requests are not worth the work: until a record of a newer version or a
    request record comes by, results are passed over. ``incomplete`` tells that this was wrong (an old
    session that a newer version resumed): then a fold with ``eager=True`` must be fed from the start.

    Attributes:
        present: The file has an ``api-request`` record.
    """

    def __init__(self, *, eager: bool = False) -> None:
        self.present = False
        self._eager = eager
        self._skipped = False
        self._version: Any = None
        self._claims = Claims()
        self._runs = Runs(self._claims.results)
        self._joined: dict[int, Prefix] = {}
        self._blobs: dict[int, list[Sent]] = {}
        self._unmet: dict[int, Request] = {}  # tail keys that nothing answers to yet
        self._counts: dict[str, int | None] = {}  # messages of each request, where known
        self._unbased: dict[str, list[tuple[str, Request, list[int]]]] = {}  # by a base that is not there
        self._deliveries: Deliveries | None = None

    @property
    def doubts(self) -> list[Doubt]:
        """Evidence that decided nothing."""
        return self._claims.doubts

    @property
    def incomplete(self) -> bool:
        """Requests are recorded, and records before them were passed over."""
        return self.present and self._skipped

    def feed(self, number: int, offset: int, data: bytes) -> None:
        """Takes one native record in.

        Args:
            number: 1-based line.
            offset: Byte offset of the record in the file; it grows from call to call.
            data: The record. A bad one is passed over.
        """
        line = _read(data)
        if line is not None:
            self.take(number, offset, len(data), line)

    def take(self, number: int, offset: int, size: int, line: RequestLine) -> None:
        """Takes one native record in that is decoded already (see ``feed``)."""
        if not self._eager and line.type in _VERSIONED:
            if line.version != self._version:
                self._look_at(line.version)
            if not self._eager:
                self._skipped = True
                return
        match line.type:
            case "user":
                self._take_user(number, offset, size, line)
            case "attachment":
                self._take_attachment(line)
            case "assistant":
                message_id = _member(line.message, "id", _message_id)
                self._runs.end(message_id if isinstance(message_id, str) else None)
            case "system":
                if line.subtype == "compact_boundary":
                    self._runs.end()
            case "api-request-blob":
                self._eager = True
                self._take_blob(Place(number, offset, size), line)
            case "api-request":
                self._eager = self.present = True
                self._take_request(Place(number, offset, size), line)
                self._join(self._runs.passed())
            case _:
                pass

    def close(self) -> None:
        """Ends the file and lets go of everything but the deliveries."""
        self._join(self._runs.passed())
        for waiting in self._unbased.values():
            for _, request, keys in waiting:
                self._prove(request, keys)
        self._deliveries = self._claims.close()
        doubts = self.doubts
        self._claims = Claims()
        self._claims.doubts = doubts
        self._runs = Runs(self._claims.results)
        self._joined.clear()
        self._blobs.clear()
        self._unmet.clear()
        self._counts.clear()
        self._unbased.clear()

    def tell_apart(self, copies: Container[int]) -> None:
        """Drops what one sent block proved of several records; to be called after ``close``.

        Args:
            copies: Offsets of records that repeat an earlier one (decision 2): they are no other results.
        """
        if self._deliveries is None:
            raise ValueError("close the evidence before telling results apart")
        for twins in self._deliveries.tell_apart(copies):
            lines = ", ".join(str(twin.line) for twin in twins[:8])
            self._claims.doubt(
                "ambiguous_delivery",
                twins[0].line,
                f"results of call {twins[0].call_id[:80]!a} are equal and one was sent: "
                f"nothing tells which (lines {lines})",
            )

    def delivery(self, offset: int, block: int) -> Delivery | None:
        """The proof for one stored result, None when no recorded request carries it.

        Args:
            offset: Byte offset of its record, as fed.
            block: Index of the tool_result block in ``message.content``.
        """
        if self._deliveries is None:
            raise ValueError("close the evidence before asking")
        return self._deliveries.find(offset, block)

    def _look_at(self, version: Any) -> None:
        """Lines of a version that records requests are worth a look, whether one is there yet or not."""
        self._version = version
        key = version_key(version) if isinstance(version, str) else None
        self._eager = key is not None and key > LAST_WITHOUT

    # Stored records.

    def _take_user(self, number: int, offset: int, size: int, line: RequestLine) -> None:
        content = _member(line.message, "content", _message)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            self._runs.end()
            return
        stamp = _stamp(line.timestamp)
        for index, block in enumerate(blocks):
            if not isinstance(block, dict):
                continue
            call_id, text = block.get("tool_use_id"), block.get("text")
            if block.get("type") == "tool_result" and isinstance(call_id, str):
                facts = stored_content(block.get("content"))
                self._claims.store(Result(call_id, number, offset, index, stamp, facts))
            elif block.get("type") == "text" and isinstance(text, str):
                self._claims.own.add(text, rendered=False)
        self._join(self._runs.add(blocks, size))

    def _take_attachment(self, line: RequestLine) -> None:
        for item in line.rendered if isinstance(line.rendered, list) else ():
            content = item.get("content") if isinstance(item, dict) else None
            for part in content if isinstance(content, list) else (content,):
                text = part.get("text") if isinstance(part, dict) else part
                if isinstance(text, str):
                    self._claims.rendered(text)

    # Request records.

    def _take_blob(self, place: Place, line: RequestLine) -> None:
        content = _member(line.message, "content", _message)
        if not _is_hash(line.hash) or not isinstance(content, list):
            return
        found = []
        for index, block in enumerate(content):
            if isinstance(block, dict) and block.get("type") == "tool_result":
                call_id, sent = block.get("tool_use_id"), block.get("content")
                if isinstance(call_id, str):
                    size = place.size // len(content)
                    found.append(Sent(call_id, place, index, size, "" if sent is None else sent))
        for one in found:
            self._claims.sent(one)
        if found:
            key = hash(line.hash)
            self._blobs[key] = found
            self._answer(key)

    def _take_request(self, place: Place, line: RequestLine) -> None:
        name, base, keep, tail = line.id, line.base, line.keep, line.tail
        keys = [hash(key) for key in tail if _is_hash(key)] if isinstance(tail, list) else []
        if (
            not isinstance(tail, list)
            or len(keys) < len(tail)
            or not isinstance(name, str)
            or not (base is None or isinstance(base, str))
            or not (type(keep) is int and keep >= 0)
        ):
            self._claims.doubt(
                "request_unreadable", place.line, "request record with a member of a wrong type"
            )
            return
        for other, request, _ in self._unbased.pop(name, ()):
            self._claims.doubt(
                "request_contradicts", request.place.line, "request whose base stands after it"
            )
            _put(self._counts, other, _CONTRADICTS)
        known = 0 if base is None else self._counts.get(base)
        if base == name or (known is not None and keep > known):
            self._claims.doubt("request_contradicts", place.line, "request that can't be built on its base")
            _put(self._counts, name, _CONTRADICTS)
            return
        request = Request(place, _stamp(line.timestamp))
        if base is None or base in self._counts:
            self._prove(request, keys)
        else:
            if base not in self._unbased:
                _put(self._unbased, base, [])
            self._unbased[base].append((name, request, keys))
        _put(self._counts, name, None if known is None else keep + len(keys))

    def _join(self, prefixes: Sequence[Prefix]) -> None:
        for prefix in prefixes:
            self._joined.setdefault(prefix.key, prefix)
            self._answer(prefix.key)

    def _answer(self, key: int) -> None:
        """A message is known now that a request may have named before."""
        request = self._unmet.pop(key, None)
        if request is not None:
            self._prove(request, [key])

    def _prove(self, request: Request, keys: list[int]) -> None:
        for key in keys:
            sent = self._blobs.pop(key, None)
            if sent is not None:
                for one in sent:
                    self._claims.prove(one, request)
                continue
            prefix = self._joined.pop(key, None)
            if prefix is not None:
                for result in self._claims.results[prefix.first : prefix.end]:
                    self._claims.prove_stored(result, request)
                continue
            _put(self._unmet, key, request)


def _put(table: dict[_K, _V], key: _K, value: _V) -> None:
    """Sets an entry of a bounded table; when it is full, the older half goes."""
    table[key] = value
    if len(table) > LIMIT:
        for old in list(table)[: LIMIT // 2]:
            del table[old]


def _read(data: bytes) -> RequestLine | None:
    try:
        return _line.decode(data)
    except _FAILS:
        pass  # the slow lane below reads what a fast one refuses
    try:
        value = decode(data)
    except NotJson:
        return None
    if not isinstance(value, dict):
        return None
    return RequestLine(**{name: value[name] for name in RequestLine.__struct_fields__ if name in value})


def _member(message: Any, name: str, decoder: msgspec.json.Decoder[Any]) -> Any:
    """A member of a message, which stands as text or (read in the slow lane) as a value."""
    if isinstance(message, Raw):
        try:
            return getattr(decoder.decode(message), name)
        except _FAILS:
            pass  # the slow lane below reads what a fast one refuses
        try:
            message = decode(bytes(message))
        except NotJson:
            return None
    return message.get(name) if isinstance(message, dict) else None


def _is_hash(value: Any) -> bool:
    """Whether it can be a native hash; what Python hashes it to is the ``key`` it is known by here."""
    return type(value) is str and len(value) == 64


def _stamp(value: Any) -> str | None:
    """A native time in the one form that sorts as text (``2026-11-30T22:02:42.189Z``), None for any other."""
    return value if isinstance(value, str) and len(value) == 24 and value[19] + value[23] == ".Z" else None
