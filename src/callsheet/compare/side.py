"""One reading of a run: its calls with what identifies them, and what its records say of each.

Owns a first pass over every stream (pairing, ids, a digest of each call's arguments) and reading records again by
place. A run may be one stream in one reading and several in another, so calls are those of all streams. Memory: the
pairing, and a few texts for each call.

Must never know: the other reading.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec import UNSET

from callsheet.errors import CallsheetError
from callsheet.pairing import Pairing, Place
from callsheet.records import Message, Record, Session, ToolCall, ToolResult
from callsheet.records.stream import Entry, read_stream
from callsheet.registry import of_session
from callsheet.wire.blobs import digest
from callsheet.wire.lossless import NotJson, decode

Json = dict[str, Any]
OpenFile = Callable[[str], AbstractContextManager[BinaryIO]]
Blob = Callable[[str], bytes]
MADE = re.compile("log-[0-9a-f]{16}")
"""An id that is made for a log which names no session: it says nothing of which session that is."""

OPEN_MOST = 16
"""Streams that are open at a time."""


class Call(NamedTuple):
    """One call of a reading.

    Attributes:
        stream: The stream that it stands in.
        number: Its record there: the first of its entity.
        record: Id of its latest record.
        call_id: Its callId.
        native_id: The id that the source gave it; the callId where that is the one.
        has_id: The source gave it an id.
        name: The tool's name, if known.
        asked: Digest of its arguments; empty where it has none that tell it from others.
        ran: Digest of the command that was run, by its result; empty where none is recorded.
    """

    stream: str
    number: int
    record: str
    call_id: str
    native_id: str
    has_id: bool
    name: str | None
    asked: str
    ran: str = ""


class Head(NamedTuple):
    """What the session records of a reading say.

    Attributes:
        agent: Name and version of the agent.
        kinds: Kinds of the sources.
    """

    agent: str
    kinds: tuple[str, ...]


class Side:
    """One reading. Close it, or use it as a context manager.

    Args:
        files: Stream ids and the names of their files.
        open_file: Opens a file by name.
        blob: Reads a blob by name; raises OSError, KeyError or ValueError where it cannot.

    Attributes:
        calls: Its calls, in the order of the streams.
        sessions: Ids of its sessions that the source gave; not those of agents that they started.
        agents: Names of the agents of these.
        prompts: Digests of what a person wrote in them.
        bad: Lines that are no legal records.
    """

    def __init__(self, files: dict[str, str], open_file: OpenFile, blob: Blob | None = None) -> None:
        self._files = files
        self._open_file = open_file
        self._blob = blob
        self._open: dict[str, tuple[BinaryIO, ExitStack]] = {}
        self._pairings: dict[str, Pairing] = {}
        self._roots: dict[str, dict[str, str]] = {}
        self._rewritten: set[str] = set()
        self.calls: list[Call] = []
        self.sessions: set[str] = set()
        self.agents: set[str] = set()
        self.prompts: set[str] = set()
        self.bad = 0
        self._agents: dict[str, None] = {}
        self._kinds: dict[str, None] = {}
        for stream in files:
            self._read(stream)
        self._counts = Counter(call.call_id for call in self.calls)
        self._native_ids = {call.call_id: call.native_id for call in self.calls}

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of every stream."""
        for _, stack in self._open.values():
            stack.close()
        self._open.clear()

    @property
    def head(self) -> Head:
        """Which agent it is about, and what it was read from."""
        return Head(", ".join(self._agents), tuple(self._kinds))

    def _file(self, stream: str) -> BinaryIO:
        found = self._open.pop(stream, None)
        if found is None:
            while len(self._open) >= OPEN_MOST:
                self._open.pop(next(iter(self._open)))[1].close()
            stack = ExitStack()
            found = stack.enter_context(self._open_file(self._files[stream])), stack
        self._open[stream] = found
        return found[0]

    def _read(self, stream: str) -> None:
        pairing = self._pairings[stream] = Pairing()
        roots = self._roots[stream] = {}
        calls: dict[int, Call] = {}
        ran: dict[int, str] = {}
        below = False
        for entry in read_stream(self._file(stream), stream):
            place = Place(entry.line.offset, len(entry.line.data))
            if not isinstance(entry, Entry):
                self.bad += 1
                pairing.add_bad(place)
                continue
            record = entry.record
            number = pairing.add(record, place)
            if isinstance(record, ToolCall):
                first = pairing.first(number)
                calls[first] = _call(stream, first, record)
            elif isinstance(record, ToolResult):
                if record.exec is not None and record.exec.command is not None:
                    ran[number] = digest(msgspec.json.encode(words_of(record.exec.command)))
            elif isinstance(record, Session):
                below = record.parent is not None
                self._note(stream, record)
                roots.update(record.roots or {})
            elif isinstance(record, Message) and record.author == "user" and not below:
                self.prompts |= _said(record)
        for call in calls.values():
            answer = pairing.result(call.call_id)
            self.calls.append(call if answer is None else call._replace(ran=ran.get(answer, "")))

    def _note(self, stream: str, record: Session) -> None:
        agent = record.agent
        kinds = [source.kind for source in record.sources or ()]
        registry = of_session(agent.name if agent is not None else None, kinds)
        if record.parent is None:
            name = record.native_session_id
            self.sessions |= {name} if name and not MADE.fullmatch(name) else set()
            self.agents |= {agent.name} if agent is not None else set()
        if agent is not None:
            rules = registry.agent if registry is not None else []
            if any(rule.rewrites for rule in rules if rule.name == agent.name):
                self._rewritten.add(stream)
            self._agents.setdefault(" ".join(word for word in (agent.name, agent.version) if word))
        self._kinds.update(dict.fromkeys(kinds))

    # -- what is asked ------------------------------------------------------------------------------------------

    def pairing(self, stream: str) -> Pairing:
        """The pairing of one stream."""
        return self._pairings[stream]

    def record(self, stream: str, number: int) -> Json:
        """A record, read again; its latest state is asked for by who asks."""
        place = self._pairings[stream].place(number)
        file = self._file(stream)
        file.seek(place.offset)
        try:
            value = decode(file.read(place.size))
        except NotJson:
            return {}
        return value if isinstance(value, dict) else {}

    def linked(self, call: Call, kind: type[Record]) -> Iterator[Json]:
        """Latest records of one type that name a call, wherever in the reading they stand."""
        for stream, pairing in self._pairings.items():
            if stream == call.stream or self._counts[call.call_id] == 1:
                for number in pairing.linked(call.call_id, kind):
                    yield self.record(stream, number)

    def native_id(self, call_id: str) -> str:
        """The id that the source gave to the call with this callId, so that a derived one compares with it."""
        return self._native_ids.get(call_id, call_id)

    def rewrites(self, stream: str) -> bool:
        """Whether the agent of a stream words arguments by itself, by its registry."""
        return stream in self._rewritten

    def path(self, stream: str, value: Any) -> str | None:
        """The path of a PathRef, absolute where the session tells its root."""
        if not isinstance(value, dict) or not isinstance(value.get("path"), str):
            return None
        root = self._roots[stream].get(str(value.get("root")))
        inner: str = value["path"]
        if root is None:
            return inner if value.get("root") == "host" else f"{value.get('root')}:{inner}"
        return root if inner in ("", ".") else f"{root.rstrip('/')}/{inner}"

    def bytes_of(self, value: Any) -> bytes | None:
        """The bytes of a blob, if they can be read."""
        name = value.get("blob") if isinstance(value, dict) else None
        if self._blob is None or not isinstance(name, str):
            return None
        try:
            return self._blob(name)
        except (OSError, KeyError, ValueError, CallsheetError):
            return None


def _call(stream: str, number: int, record: ToolCall) -> Call:
    native = record.native.call_id if record.native is not None else None
    return Call(
        stream,
        number,
        record.id,
        record.call_id,
        native or record.call_id,
        native is not None or record.call_id_source == "native",
        record.name,
        _asked(record),
    )


def _said(record: Message) -> set[str]:
    """A digest of what a person wrote, however the blanks around it were kept; none where that is nothing."""
    words = " ".join(" ".join(part.text or "" for part in record.content or ()).split())
    return {digest(words.encode("utf-8", "surrogatepass"))} if words else set()


def _asked(record: ToolCall) -> str:
    """A digest of the arguments, the same however they are kept; none where there is nothing in them."""
    value: Any
    if record.input is not UNSET:
        value = canonical(bytes(record.input))
    elif record.input_text is not None:
        value = canonical(record.input_text.encode("utf-8", "surrogatepass"))
    else:
        return ""
    return "" if value in (b"{}", b"null", b"[]", b'""') else digest(value)


def words_of(command: str | list[str]) -> list[str]:
    """A command as the list of its words; a text that no shell could split is one."""
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def canonical(text: bytes) -> bytes:
    """A JSON text in one form of its own; other bytes as they are."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
