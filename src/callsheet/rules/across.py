"""What holds between the records of one stream (P-SEQ, P-ID, P-CHAIN, P-REF; ASR-271, 278, 284, 286, 290).

Owns ``Stream``, the little that has to be remembered of each record while a stream is read once: its id,
type and entity key; of terminals their head and which members its snapshot had; of compact decisions and
references only the open ones. Memory grows with the number of records, never with their size.

``Stream`` finds what it can when a record arrives; ``end`` finds what only the whole stream shows. What a
bundle has to settle (a terminal or a message in another stream) is left in ``open_terminals`` and
``open_answers``.

Must never know: shapes, files, pairing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from callsheet.records import TYPES
from callsheet.rules.finding import Finding, Json, shown
from callsheet.rules.process import SNAPSHOT

KEY_OF: dict[str, str] = {
    name: kind.ENTITY_KEY for name, kind in TYPES.items() if kind.ENTITY_KEY is not None
}
"""Wire type to the member that is its entity key."""


class Place(NamedTuple):
    """Where a record stands."""

    record: str | None
    line: int


class _Terminal:
    """One terminalId: its unsuperseded record, that record's members, and how many entities share the id."""

    __slots__ = ("entities", "first", "head", "members")

    def __init__(self, first: Place, members: frozenset[str]) -> None:
        self.first = first
        self.head = first.record
        self.members = members
        self.entities = 1


class Answer(NamedTuple):
    """An answerRef that leads to another session."""

    place: Place
    session: str
    record: str


class Stream:
    """The memory of one stream.

    Attributes:
        records: Records noted so far.
        session: Native session id, from the session record.
        terminals: Every terminalId with its state.
        agents: Every agentId with its first place.
        messages: Whether a record id is a message is asked through ``is_message``.
        open_terminals: terminalIds that results name and this stream does not have.
        open_answers: answerRefs into other sessions.
        children: Streams that subagent records name, with their place.
    """

    def __init__(self) -> None:
        self.records = 0
        self.session: str | None = None
        self.terminals: dict[str, _Terminal] = {}
        self.agents: dict[str, Place] = {}
        self.open_terminals: dict[str, list[Place]] = {}
        self.open_answers: list[Answer] = []
        self.children: list[tuple[str, Place]] = []
        self.has_missing_session = False
        self.sources: set[str] | None = None
        self.roots: set[str] | None = None
        self.next_seq = 0
        self.ids: dict[str, tuple[str | None, str | None]] = {}
        self.superseded: set[str] = set()
        self.compact: dict[str, tuple[str, int]] = {}
        self.asked: set[str] = set()
        self.secrets: dict[str, frozenset[str]] = {}
        self._answers: list[tuple[Place, str]] = []
        self._unknown_targets: list[tuple[str, Place]] = []

    def lost_line(self) -> None:
        """A line that is no record: it takes one place in the order."""
        self.next_seq += 1

    def is_message(self, record: str) -> bool:
        """Whether a record of this stream is a message."""
        return self.ids.get(record, (None, None))[0] == "message"

    def note(self, record: Json, line: int) -> Iterator[Finding]:
        """Remembers a decoded record and yields what it breaks; members may have any type."""
        kind = _text(record.get("type"))
        name = _text(record.get("id"))
        supersedes = _text(record.get("supersedes"))
        key = _text(record.get(KEY_OF[kind])) if kind in KEY_OF else None
        yield from self.envelope(line, kind, record.get("seq"), name, supersedes, key)
        place = Place(name, line)
        if kind == "tool_result":
            execution = record.get("exec")
            terminal = _text(execution.get("terminalId")) if isinstance(execution, dict) else None
            self.result(place, supersedes, _text(record.get("callId")), "permission" in record, terminal)
        elif kind == "permission":
            subject = record.get("subject")
            self.permission(_text(subject.get("callId")) if isinstance(subject, dict) else None)
        elif kind == "terminal":
            yield from self._terminal(place, record, key, supersedes)
        elif kind == "subagent":
            if key is not None:
                self.agents.setdefault(key, place)
            if isinstance(record.get("stream"), str):
                self.children.append((record["stream"], place))
        elif kind == "input_request":
            self._request(place, record)
        elif kind == "session":
            yield from self._session(place, record, supersedes)
        elif kind == "gap":
            self.has_missing_session |= record.get("reason") == "missing_session"
        yield from self._references(place, record)

    def envelope(
        self, line: int, kind: str | None, seq: Any, name: str | None, supersedes: str | None, key: str | None
    ) -> Iterator[Finding]:
        """Order, identity and chain of one record."""
        place = Place(name, line)
        if not isinstance(seq, int) or isinstance(seq, bool):
            yield _finding(
                "P-SEQ", place, "/seq", "a record needs its place in the stream: seq, an integer from 0"
            )
            self.next_seq += 1
        else:
            if seq != self.next_seq:
                yield _finding(
                    "P-SEQ",
                    place,
                    "/seq",
                    f"seq is {shown(seq)} where {self.next_seq} comes next: 0, 1, 2 … in order",
                )
            self.next_seq = seq + 1
        self.records += 1
        if not name:
            yield _finding(
                "P-ID", place, "/id", "a record needs an id, a string that is unique in its stream"
            )
        elif name in self.ids:
            yield _finding("P-ID", place, "/id", f"the id {shown(name)} was used before in this stream")
        if supersedes is not None:
            yield from self._chain(place, kind, name, supersedes, key)
        if name and name not in self.ids:
            self.ids[name] = (kind, key)

    def _chain(
        self, place: Place, kind: str | None, name: str | None, target: str, key: str | None
    ) -> Iterator[Finding]:
        if target == name:
            yield _finding("P-CHAIN", place, "/supersedes", "a record cannot supersede itself")
            return
        before = self.ids.get(target)
        if before is None:
            self._unknown_targets.append((target, place))
            return
        if target in self.superseded:
            yield _finding(
                "P-CHAIN",
                place,
                "/supersedes",
                f"{shown(target)} was superseded before: a chain does not fork",
            )
        self.superseded.add(target)
        if before[0] != kind:
            yield _finding(
                "P-CHAIN",
                place,
                "/type",
                f"a revision keeps its type, and {shown(target)} is a {shown(before[0])}",
            )
        elif before[1] != key:
            yield _finding(
                "P-CHAIN",
                place,
                f"/{KEY_OF[kind or '']}",
                f"a revision keeps its {KEY_OF[kind or '']}; that of {shown(target)} is {shown(before[1])}",
            )

    def result(
        self, place: Place, supersedes: str | None, call: str | None, compact: bool, terminal: str | None
    ) -> None:
        """A tool_result: its compact decision and its terminal, if it has any."""
        if supersedes is not None:
            self.compact.pop(supersedes, None)
        if compact and call is not None and place.record is not None:
            self.compact[place.record] = (call, place.line)
        if terminal is not None and terminal not in self.terminals:
            self.open_terminals.setdefault(terminal, []).append(place)

    def permission(self, call: str | None) -> None:
        """A permission record about a call."""
        if call is not None:
            self.asked.add(call)

    def _terminal(
        self, place: Place, record: Json, name: str | None, supersedes: str | None
    ) -> Iterator[Finding]:
        if name is None:
            return
        present = frozenset(member for member in SNAPSHOT if member in record)
        known = self.terminals.get(name)
        if known is None:
            self.terminals[name] = _Terminal(place, present)
            return
        if supersedes is None or supersedes != known.head:
            known.entities += 1
            yield _finding(
                "ASR-271",
                place,
                "/supersedes",
                f"the terminal {shown(name)} has the record {shown(known.head)}; a later state supersedes it",
            )
        else:
            capture = record.get("capture")
            excused = {key.split(".")[0] for key in capture} if isinstance(capture, dict) else set()
            for member in SNAPSHOT:
                if member in known.members and member not in present and member not in excused:
                    yield _finding(
                        "ASR-271",
                        place,
                        f"/{member}",
                        f"a terminal record is a whole snapshot, but {member} of {shown(known.head)} is gone",
                    )
        known.head = place.record
        known.members = present

    def _request(self, place: Place, record: Json) -> None:
        target = record.get("answerRef")
        if not isinstance(target, dict) or not isinstance(target.get("record"), str):
            return
        session = target.get("session")
        if isinstance(session, str) and session != self.session:
            self.open_answers.append(Answer(place, session, target["record"]))
        else:
            self._answers.append((place, target["record"]))

    def _session(self, place: Place, record: Json, supersedes: str | None) -> Iterator[Finding]:
        if self.records > 1 and supersedes is None:
            yield _finding(
                "P-SEQ", place, "/type", "the session record is the first of its stream, and the only one"
            )
        if isinstance(record.get("nativeSessionId"), str):
            self.session = record["nativeSessionId"]
        self.sources = self.sources or set()
        sources = record.get("sources")
        for source in sources if isinstance(sources, list) else []:
            name = source.get("id") if isinstance(source, dict) else None
            if isinstance(name, str):
                self.sources.add(name)
        self.roots = self.roots or {"host"}
        if isinstance(record.get("roots"), dict):
            self.roots.update(record["roots"])

    def _references(self, place: Place, record: Json) -> Iterator[Finding]:
        if self.sources is None or self.roots is None:
            return
        native = record.get("native")
        refs = native.get("refs") if isinstance(native, dict) else None
        named = [
            (f"/native/refs/{index}/source", ref.get("source"))
            for index, ref in enumerate(refs if isinstance(refs, list) else [])
            if isinstance(ref, dict)
        ]
        if record.get("type") == "gap":
            named.append(("/source", record.get("source")))
        for path, source in named:
            if isinstance(source, str) and source not in self.sources:
                yield _finding("P-REF", place, path, f"the session record names no source {shown(source)}")
        for path, root in _roots(record):
            if root not in self.roots:
                yield _finding(
                    "P-REF",
                    place,
                    f"{path}/root",
                    f"the session record names no root {shown(root)}, nor is it 'host'",
                )

    def end(self) -> list[Finding]:
        """What the whole stream shows, in the order of its lines."""
        found = [
            _finding(
                "P-CHAIN",
                place,
                "/supersedes",
                f"{shown(target)} stands later in the stream; a revision names one before it"
                if target in self.ids
                else f"no record has the id {shown(target)}",
            )
            for target, place in self._unknown_targets
        ]
        found += [
            _finding(
                "ASR-278",
                Place(record, line),
                "/permission",
                f"a permission record is about the call {shown(call)}, so its result carries none",
            )
            for record, (call, line) in self.compact.items()
            if call in self.asked
        ]
        found += [
            _finding("ASR-284", place, "/answerRef", f"no message of this stream has the id {shown(target)}")
            for place, target in self._answers
            if not self.is_message(target)
        ]
        for name in self.terminals:
            self.open_terminals.pop(name, None)
        return sorted(found, key=lambda finding: finding.line or 0)


def unresolved_terminal(name: str, place: Place, where: str) -> Finding:
    """A result names a terminal that is nowhere, or at more than one place (ASR-290)."""
    return _finding(
        "ASR-290", place, "/exec/terminalId", f"{where} the terminal {shown(name)} that this result names"
    )


def agent_as_terminal(name: str, place: Place) -> Finding:
    """A terminal is a background agent under another name (ASR-286)."""
    return _finding(
        "ASR-286",
        place,
        "/terminalId",
        f"{shown(name)} is a subagent; the life of an agent is not recorded as a terminal too",
    )


def _finding(rule: str, place: Place, path: str, message: str) -> Finding:
    return Finding(rule, place.record, place.line, path, message)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _roots(record: Json) -> Iterator[tuple[str, str]]:
    """Every root that a record's paths stand under, with the pointer to the path reference."""
    execution = record.get("exec")
    places: list[tuple[str, Any]] = [("/cwd", record.get("cwd"))]
    if isinstance(execution, dict):
        places.append(("/exec/cwd", execution.get("cwd")))
    for member, inner in (("locations", ("",)), ("changes", ("/path", "/oldPath"))):
        values = record.get(member)
        for index, value in enumerate(values if isinstance(values, list) else []):
            for name in inner:
                holder = value.get(name[1:]) if name and isinstance(value, dict) else value
                places.append((f"/{member}/{index}{name}", holder))
    for path, holder in places:
        root = holder.get("root") if isinstance(holder, dict) else None
        if isinstance(root, str):
            yield path, root
