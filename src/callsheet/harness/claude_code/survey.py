"""The first pass over a session file: what can only be known when the whole file was seen (design, law 2).

Owns, for one file: which native records repeat earlier ones (decision 2), which call ids stand on several calls and
which of these the file tells apart (decision 3), where each call stands, the dictionary of MCP servers (decision 9),
which requests carried which results (decision 7), what a fork inherited (decision 13), and the facts for the session
record. Memory: small integers per call and record, nothing of their size.

A file without repeats and duplicates costs one pass. Where a record id or call id is met again, a second look over
the file settles whether it is a repeat or another call.

Must never know: records, what becomes of a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct

from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness.claude_code.mcp_servers import Servers
from callsheet.harness.claude_code.replies import CallPlace, Replies
from callsheet.harness.claude_code.requests import RequestEvidence, RequestLine
from callsheet.harness.claude_code.shapes import ABSENT, CALLS, is_record, loose_message, members_for, text
from callsheet.wire.blobs import digest
from callsheet.wire.damage import BOM
from callsheet.wire.lines import Line
from callsheet.wire.lossless import NotJson, decode, encode_clean, exact_text

Lines = Callable[[], Iterator[Line]]
"""Gives the lines of the file from its start, as often as asked."""

Place = tuple[int, int]
"""A native unit: line number and byte offset inside the line."""


class SurveyLine(RequestLine, gc=False):
    """What the survey reads of every line. Each member costs on each line: rare ones are in ``RareLine``."""

    uuid: Any = None
    sessionId: Any = None
    cwd: Any = None
    requestSessionId: Any = None
    parentUuid: Any = UNSET
    isSidechain: Any = None
    isApiErrorMessage: Any = None
    attributionMcpServer: Any = None
    attributionMcpTool: Any = None


class RareLine(Struct, gc=False):
    """What the survey reads of the few lines that have it."""

    parentUuid: Any = None
    sourceToolAssistantUUID: Any = None
    permissionDecision: Any = None
    toolDenialKind: Any = None
    toolDenialBeforeRun: Any = None
    apiBlockIndex: Any = None
    leafUuid: Any = None
    parentSessionId: Any = None
    summary: Any = None
    title: Any = None
    toolUseID: Any = None
    data: Raw = ABSENT
    customTitle: Any = None
    aiTitle: Any = None


class SurveyBlock(Struct, gc=False):
    """What the survey reads of a content block."""

    type: Any = None
    id: Any = None
    name: Any = None
    tool_use_id: Any = None


class SurveyMessage(Struct, gc=False):
    """What the survey reads of a message."""

    id: Any = None
    model: Any = None
    content: list[SurveyBlock] = []


class McpProgress(Struct, gc=False):
    """``data`` of a progress line of 2.1.9 to 2.1.62 that names an MCP server and tool."""

    type: Any = None
    serverName: Any = None
    toolName: Any = None


_decoder = msgspec.json.Decoder(SurveyLine)
_rare = msgspec.json.Decoder(RareLine)
_message = msgspec.json.Decoder(SurveyMessage)
_progress = msgspec.json.Decoder(McpProgress)


_TITLES = {
    "custom-title": ("custom", "customTitle"),
    "ai-title": ("ai", "aiTitle"),
    "summary": ("summary", "summary"),
}


_EVIDENCE = frozenset(
    ("user", "assistant", "attachment", "system", "api-request", "api-request-blob", "api-request-shape")
)
"""Types of lines that bear on what was sent."""


_TALK = frozenset(("user", "assistant", "system"))
"""Types of lines that follow one another in a conversation."""


_RARE_KINDS = frozenset(("progress", "fork-context-ref", *_TITLES))


def rare_line(unit: Unit[SurveyLine]) -> RareLine:
    """The rarer members of a line, read again."""
    data = unit.readable().removeprefix(BOM)
    try:
        return _rare.decode(data)
    except msgspec.DecodeError:
        return RareLine(**members_for(RareLine, data))  # a number that the fast lane refuses


def _loose(data: bytes) -> SurveyLine:
    return SurveyLine(**members_for(SurveyLine, data))


_reading = Reading(_decoder, None, is_record, _loose)


class Spot(NamedTuple):
    """Where a unit stands: its line, byte offset in the file, and size."""

    line: int
    offset: int
    size: int


class Copy(NamedTuple):
    """A unit that repeats an earlier one: where it stands, for the earlier one's refs."""

    line: int
    offset: int
    size: int


class Duplicate(NamedTuple):
    """One of several calls with one native id."""

    place: Place
    block: int
    uuid: str | None
    call: CallPlace


class Survey:
    """What the first pass found out about one file.

    Attributes:
        session_id: The session id that the file names first.
        version: The last version it names.
        cwd: The first working directory it names.
        title: The last title, a person's before the agent's own.
        spots: Where the facts of the session record stand: ``version``, ``cwd``, ``session``, ``title``, ``fork``.
        forked_from: The session that a ``fork-context-ref`` names.
        mcp_calls: MCP server and tool that progress lines name for a call id; None where they disagree.
        evidence: Which requests carried which results.
        repeats: Places that repeat an earlier unit, with that unit's place.
        copies: Places of units that are repeated later, with the repeating units' places, offsets and sizes.
        inherited: Places of records that the file copied from another session, with that session's id.
    """

    def __init__(self, lines: Lines) -> None:
        self.session_id: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.title: str | None = None
        self.spots: dict[str, Spot] = {}
        self.evidence = RequestEvidence()
        self.repeats: dict[Place, Place] = {}
        self.copies: dict[Place, list[Copy]] = {}
        self.inherited: dict[Place, str] = {}
        self.mcp = Servers()
        self.mcp_calls: dict[str, tuple[str, str] | None] = {}
        self.forked_from: str | None = None
        self._replies = (Replies(), Replies())
        self._calls: dict[int, int] = {}
        self._names: dict[str, int] = {"": 0}
        self._name_list: list[str] = [""]
        self._twice: set[str] = set()
        self._duplicates: dict[str, list[Duplicate]] = {}
        self._alike: dict[str, CallPlace] = {}
        """Of several calls with one id: the first, where all name one tool."""
        self._told_apart: dict[str, dict[str, CallPlace]] = {}
        self._aliases: set[int] = set()
        self._uuids: set[int] = set()
        self._met_again: set[str] = set()
        self._foreign_until = 0
        self._summary_leaf: Any = None
        self._titles: dict[str, tuple[str, Spot]] = {}
        self._first_pass(lines())
        if self.evidence.incomplete:
            self._gather_evidence(lines())
        if self._twice or self._met_again:
            self._second_look(lines())
        self.evidence.tell_apart({copy.offset for copies in self.copies.values() for copy in copies})
        if self._foreign_until:
            self._find_inherited(lines())
        title = self._titles.get("custom") or self._titles.get("ai") or self._titles.get("summary")
        if title is not None:
            self.title, self.spots["title"] = title
        self._uuids.clear()

    # -- what the second pass asks ------------------------------------------------------------------------------

    def call(self, call_id: str) -> CallPlace | None:
        """Where the (first) call with this native id stands."""
        packed = self._calls.get(hash(call_id))
        if packed is None:
            return None
        return CallPlace(packed >> 44, self._name_list[packed & 0xFFF] or None, packed >> 12 & 0xFFFFFFFF)

    def calls_among(self, wanted: Mapping[int, str]) -> list[str]:
        """Which of some native call ids (by their hash) stand in this file; quick where few of many do."""
        return [wanted[key] for key in self._calls.keys() & wanted.keys()]

    def duplicates(self, call_id: str) -> list[Duplicate]:
        """The several calls with this native id; empty when there is at most one."""
        return self._duplicates.get(call_id, [])

    def sole(self, call_id: str | None) -> str | None:
        """The native id, unless it stands on several calls: then it names none of them."""
        return None if call_id in self._duplicates else call_id

    def derived_id(self, call_id: str, uuid: str | None) -> str | None:
        """The derived id of the call on the record ``uuid``, where results of this file prove which call is theirs.

        None when the id is not used twice, when nothing tells the calls apart (decision 3), or when another call
        has the derived id for its own.
        """
        if not uuid or uuid not in self._told_apart.get(call_id, ()):
            return None
        derived = f"{call_id}#{uuid}"
        return None if hash(derived) in self._calls else derived

    def free_id(self, wanted: str) -> str:
        """An id made for a call without one, other than every native id."""
        while hash(wanted) in self._calls:
            wanted = f"#{wanted}"
        return wanted

    def is_taken(self, call_id: str) -> bool:
        """Whether an id that no call of this file has is, or may be, one made for a call."""
        if "#" not in call_id or hash(call_id) in self._calls:
            return False
        if call_id.startswith("#"):
            return True
        cuts = (at for at, char in enumerate(call_id) if char == "#")
        return any(self.derived_id(call_id[:at], call_id[at + 1 :]) is not None for at in cuts)

    def answered(self, call_id: str, uuid: str | None) -> CallPlace | None:
        """The call that a result answers, as far as it is certain: of several with one id, the linked one.

        Where no link tells them apart but all name one tool, that name is certain.

        Args:
            call_id: The native id on the result.
            uuid: The call's record, as the result names it.
        """
        duplicates = self._duplicates.get(call_id)
        if not duplicates:
            return self.call(call_id)
        if uuid and self.derived_id(call_id, uuid) is not None:
            return self._told_apart[call_id][uuid]
        return self._alike.get(call_id)

    def contradicts(self, call_id: str, call: CallPlace, uuid: str | None) -> bool:
        """Whether a result names another record than that of ``call``, the only one with its id.

        The named record may be a damaged one, with another call of the same id.
        """
        if uuid is None or call.by == 0 or call_id in self._duplicates:
            return False
        return call.by != _short(uuid) and _short(uuid) not in self._aliases

    def reply_follows(self, line: int, sidechain: bool, call: CallPlace | None) -> bool:
        """Whether a reply of the model stands after a result: a message later than the one that made the call.

        Args:
            line: The result's line.
            sidechain: Whether it belongs to an agent within the same file.
            call: Where its call stands, if it is known.
        """
        return self._replies[sidechain].follow(line, call)

    # -- first pass ---------------------------------------------------------------------------------------------

    def _first_pass(self, lines: Iterator[Line]) -> None:
        uuids = self._uuids
        take = self.evidence.take
        version: Any = None
        for unit in native_units(lines, _reading):
            if isinstance(unit, Hole) or unit.native is None:
                continue
            native = unit.native
            kind = native.type if type(native.type) is str else None
            uuid = native.uuid
            if type(uuid) is str:
                key = hash(uuid)
                if key in uuids:
                    self._met_again.add(uuid)
                else:
                    uuids.add(key)
                    if native.parentUuid is None and kind in _TALK:
                        self._replies[native.isSidechain is True].begin(unit.line.number)
                if native.version is not None and native.version != version:
                    version = native.version
                    self.spots["version"] = _spot(unit)
                if native.requestSessionId and native.requestSessionId != native.sessionId:
                    self._foreign_until = unit.line.number
            if self.session_id is None and text(native.sessionId):
                self.session_id = native.sessionId
                self.spots["session"] = _spot(unit)
            if self.cwd is None and text(native.cwd):
                self.cwd = native.cwd
                self.spots["cwd"] = _spot(unit)
            if kind == "assistant":
                self._note_answer(unit)
            elif kind in _RARE_KINDS:
                self._note_rare(unit)
            if kind in _EVIDENCE:
                take(unit.line.number, unit.line.offset + unit.start, len(unit.data), native)
        self.version = text(version)
        self.evidence.close()
        summary = self._titles.get("summary")
        if summary is not None and hash(text(self._summary_leaf)) not in uuids:
            del self._titles["summary"]  # it sums up another session

    def _gather_evidence(self, lines: Iterator[Line]) -> None:
        """A session begun by an older version was gone on with by one that records requests: all lines count."""
        self.evidence = RequestEvidence(eager=True)
        for unit in native_units(lines, _reading):
            if isinstance(unit, Unit) and unit.native is not None and text(unit.native.type) in _EVIDENCE:
                place = unit.line.offset + unit.start
                self.evidence.take(unit.line.number, place, len(unit.data), unit.native)
        self.evidence.close()

    def _note_answer(self, unit: Unit[SurveyLine]) -> None:
        """An assistant line: its calls, whether the model itself replied, and MCP names beside it."""
        message = self._message(unit)
        native = unit.native
        assert native is not None
        if message.model != "<synthetic>" and native.isApiErrorMessage is not True:
            replies = self._replies[native.isSidechain is True]
            replies.add(unit.line.number, unit.line.offset + unit.start, text(message.id))
        self._note_calls(unit, message.content)
        server, tool = native.attributionMcpServer, native.attributionMcpTool
        if isinstance(server, str) and isinstance(tool, str):
            self.mcp.add(server, tool)

    def _note_rare(self, unit: Unit[SurveyLine]) -> None:
        assert unit.native is not None
        kind = unit.native.type
        if kind == "progress":
            if b'"mcp_progress"' in unit.data:
                self._note_progress(rare_line(unit))
        elif kind == "fork-context-ref":
            self.forked_from = text(rare_line(unit).parentSessionId)
            self.spots["fork"] = _spot(unit)
        else:
            self._note_title(kind, unit)

    def _note_calls(self, unit: Unit[SurveyLine], blocks: list[SurveyBlock]) -> None:
        for block in blocks:
            call_id = block.id
            if block.type not in CALLS or type(call_id) is not str:
                continue
            key = hash(call_id)
            if key in self._calls:
                self._twice.add(call_id)
                continue
            assert unit.native is not None
            place = (unit.line.offset + unit.start) << 32 | _short(unit.native.uuid)
            self._calls[key] = place << 12 | self._name_number(block.name)

    def _name_number(self, name: Any) -> int:
        if not isinstance(name, str):
            return 0
        number = self._names.get(name)
        if number is None:
            if len(self._name_list) >= 0xFFF or len(name) > 200:
                return 0
            number = self._names[name] = len(self._name_list)
            self._name_list.append(name)
        return number

    @staticmethod
    def _message(unit: Unit[SurveyLine]) -> SurveyMessage:
        assert unit.native is not None
        try:
            return _message.decode(unit.native.message)
        except msgspec.DecodeError:
            message = loose_message(unit.native.message)
        if message is None or not isinstance(message.content, list):
            return SurveyMessage()
        blocks = [
            SurveyBlock(type=one.type, id=one.id, name=one.name, tool_use_id=one.tool_use_id)
            for one in message.content
        ]
        return SurveyMessage(id=message.id, model=message.model, content=blocks)

    def _note_progress(self, line: RareLine) -> None:
        call_id = text(line.toolUseID)
        try:
            data = _progress.decode(line.data)
        except msgspec.DecodeError:
            return
        if call_id and data.type == "mcp_progress" and text(data.serverName) and text(data.toolName):
            pair = (data.serverName, data.toolName)
            self.mcp_calls[call_id] = pair if self.mcp_calls.setdefault(call_id, pair) == pair else None

    def _note_title(self, native_type: str, unit: Unit[SurveyLine]) -> None:
        line = rare_line(unit)
        kind, member = _TITLES[native_type]
        value = getattr(line, member) or (line.title if kind == "ai" else None)
        if isinstance(value, str) and value:
            self._titles[kind] = (value, _spot(unit))
            if kind == "summary":
                self._summary_leaf = line.leafUuid

    # -- second look: repeats and duplicates --------------------------------------------------------------------

    def _second_look(self, lines: Iterator[Line]) -> None:
        """Settles what is met again: a repeat of one native record, or another call (decisions 2 and 3)."""
        by_uuid: dict[tuple[str, bytes], Place] = {}
        logged: dict[bytes, Place] = {}
        calls: dict[str, list[Duplicate]] = {}
        links: dict[str, set[str]] = {}
        relogged = False
        held: list[tuple[Place, Copy, Place]] = []
        aliases: set[int] = set()
        for unit in native_units(lines, _reading):
            if isinstance(unit, Hole) or unit.native is None:
                continue
            native = unit.native
            place = (unit.line.number, unit.start)
            uuid = native.uuid
            first: Place | None = None
            if isinstance(uuid, str) and uuid in self._met_again:
                first = by_uuid.setdefault((uuid, _content_mark(unit)), place)
                first = None if first == place else first
            if first is None and native.type in ("assistant", "user") and text(native.timestamp):
                logged_as = _log_mark(unit)
                if logged_as is not None:
                    old = logged.setdefault(logged_as, place)
                    if old != place:
                        held.append((place, _copy(unit), old))
                        relogged = relogged or b'_use"' in unit.data
                        aliases.add(_short(uuid))
            if first is not None:
                self._repeat(place, _copy(unit), first)
                continue
            if native.type == "assistant" and b'_use"' in unit.data:
                for number, block in enumerate(self._message(unit).content):
                    if block.type in CALLS and type(block.id) is str and block.id in self._twice:
                        name = block.name if type(block.name) is str else None
                        call = CallPlace(unit.line.offset + unit.start, name, _short(uuid))
                        calls.setdefault(block.id, []).append(Duplicate(place, number, text(uuid), call))
            elif native.type == "user" and text(source := rare_line(unit).sourceToolAssistantUUID):
                for block in self._message(unit).content:
                    answers = block.tool_use_id
                    if block.type == "tool_result" and type(answers) is str and answers in self._twice:
                        links.setdefault(answers, set()).add(source)
        if relogged:
            for place, copy, old in held:
                self._repeat(place, copy, old)
            self._aliases = aliases
        for call_id, found in calls.items():
            kept = [one for one in found if one.place not in self.repeats]
            if len(kept) > 1:
                self._duplicates[call_id] = kept
                if len({one.call.name for one in kept}) == 1:
                    self._alike[call_id] = kept[0].call
                uuids = Counter(one.uuid for one in kept if one.uuid)
                if not uuids.keys().isdisjoint(links.get(call_id, ())):
                    self._told_apart[call_id] = {
                        one.uuid: one.call for one in kept if one.uuid and uuids[one.uuid] == 1
                    }

    def _repeat(self, place: Place, copy: Copy, first: Place) -> None:
        while first in self.repeats:
            first = self.repeats[first]
        self.repeats[place] = first
        # What repeats this one repeats the first as well.
        self.copies.setdefault(first, []).extend([copy, *self.copies.pop(place, [])])

    # -- forks --------------------------------------------------------------------------------------------------

    def _find_inherited(self, lines: Iterator[Line]) -> None:
        """Records a fork copied: answers to another session's request, and every record such an answer follows.

        A copied record keeps its uuid and its parentUuid, so the ancestors of a copied answer were copied with it.
        """
        parents: dict[str, str] = {}
        places: dict[str, Place] = {}
        origin: dict[str, str] = {}
        linked: dict[str, str] = {}
        for unit in native_units(lines, _reading):
            if isinstance(unit, Hole) or unit.native is None:
                continue
            if unit.line.number > self._foreign_until:
                break
            native = unit.native
            uuid = text(native.uuid)
            if uuid is None:
                continue
            places[uuid] = (unit.line.number, unit.start)
            rare = rare_line(unit)
            if text(rare.parentUuid):
                parents[uuid] = rare.parentUuid
            if text(rare.sourceToolAssistantUUID):
                linked[uuid] = rare.sourceToolAssistantUUID
            session = text(native.requestSessionId)
            if session and session != native.sessionId:
                origin[uuid] = session
                self.spots.setdefault("fork", _spot(unit))
        for uuid, session in list(origin.items()):
            at = parents.get(uuid)
            while at is not None and at not in origin:
                origin[at] = session
                at = parents.get(at)
        for uuid, call in linked.items():
            if uuid not in origin and call in origin and uuid in parents:
                # A result of a copied call stands in the copied part only if something copied follows it or it is
                # itself older than the last copied answer; ``_foreign_until`` bounds this pass to that part.
                origin[uuid] = origin[call]
        self.inherited = {places[uuid]: session for uuid, session in origin.items() if uuid in places}


def _spot(unit: Unit[SurveyLine]) -> Spot:
    return Spot(unit.line.number, unit.line.offset + unit.start, len(unit.data))


def _copy(unit: Unit[SurveyLine]) -> Copy:
    return Copy(unit.line.number, unit.line.offset + unit.start, len(unit.data))


def _content_mark(unit: Unit[SurveyLine]) -> bytes:
    """Digest of a unit's content: equal for two spellings of one JSON value."""
    if unit.exact is not None:
        return bytes.fromhex(digest(exact_text(unit.exact).encode()))[:16]
    return bytes.fromhex(digest(msgspec.json.encode(decode(unit.data), order="sorted")))[:16]


def _log_mark(unit: Unit[SurveyLine]) -> bytes | None:
    """Digest of what stays equal when history is logged again under a new record id (decision 2)."""
    native = unit.native
    assert native is not None
    try:
        message = decode(bytes(native.message))
        if not isinstance(message, dict):
            return None
        content = msgspec.json.encode(message.get("content"), order="sorted")
    except (msgspec.DecodeError, NotJson):
        return None
    rare = rare_line(unit)
    head = [native.type, native.timestamp, message.get("id"), rare.apiBlockIndex]
    if not all(item is None or isinstance(item, str | int) for item in head):
        return None
    # A copy that tells of a decision which the other does not tell of is another record.
    told = [rare.permissionDecision, rare.toolDenialKind, rare.toolDenialBeforeRun]
    facts = encode_clean([*head, *told])
    return bytes.fromhex(digest(facts + content))[:16]


def _short(uuid: Any) -> int:
    """A mark of a record id, in 32 bits; 0 for none."""
    return (hash(uuid) & 0xFFFFFFFF or 1) if type(uuid) is str and uuid else 0
