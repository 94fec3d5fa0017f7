"""What a recorder itself knows of a live turn, written into the frame log and read back, live and on import alike.

Owns the recorder's own lines (``{"dir":"recorder","ts":…}`` with ``launch``, ``preview``, ``turn``, ``exit`` or
``hangup``), the member ``answered_by`` on the line of an answer (decision 16), and ``Attested``: a fold around a
protocol's fold that adds what they say to its records, with a ref to the line that says it. So a record never holds a
word of the recorder's without evidence, and a live turn and an import of its log end in the same records.

Must never know: the protocol.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from callsheet.harness._port.fold import Folding, Settled
from callsheet.harness._port.units import Hole, Reading, Unit
from callsheet.harness._port.veil import original_of
from callsheet.records import (
    Actor,
    InputRequest,
    Native,
    Permission,
    Preview,
    Record,
    Ref,
    Session,
    SourceEntry,
    ToolCall,
    ToolResult,
    Turn,
    Unmapped,
)
from callsheet.wire.blobs import digest

RECORDER = "recorder"
"""``dir`` of the recorder's own lines, and the role of refs to what it says."""
_is_own = re.compile(rb'\s*\{\s*"dir"\s*:\s*"recorder"').match
_ANSWERED = b'"answered_by"'
ANSWERED_MOST = 1000
"""Requests whose answerer is kept in mind, for later states of them."""
_ENDS = {"lost": "lost", "not_started": "unknown"}
"""Ends of a turn that only the recorder saw, and the status of the turn's record."""


class Launch(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """How a session was started: what was asked for, never what the agent made of it.

    Attributes:
        program: The program's name; none for an agent that was not started, but found at an address.
        address: Where it was found, without credentials.
        version: What it printed of its version.
        switches: Reporting switches that were set (decision 14).
        model: The model asked for.
        mode: The mode asked for.
        resume: The session to go on with.
    """

    program: str | None = None
    address: str | None = None
    version: str | None = None
    switches: tuple[str, ...] = ()
    cwd: str | None = None
    model: str | None = None
    mode: str | None = None
    resume: str | None = None


class LastPreview(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The last live output of a call whose turn has ended."""

    call_id: str
    output: str
    omitted_bytes: int = 0


class TurnEnd(Struct, kw_only=True, omit_defaults=True):
    """An end of a turn that no frame of the agent tells: ``lost`` or ``not_started``."""

    result: str
    reason: str | None = None


class Exit(Struct, kw_only=True):
    """The end of the agent's process, as the system tells it."""

    code: int | None = None
    signal: str | None = None


class Hangup(Struct, kw_only=True, omit_defaults=True):
    """The end of the connection to an agent at an address.

    Attributes:
        by: Who closed it: ``agent`` or ``client``; absent when it was lost.
        code: The code of a closed WebSocket.
        reason: Why, in the words of who closed it, or of the system.
    """

    by: str | None = None
    code: int | None = None
    reason: str | None = None


OwnFact = Launch | LastPreview | TurnEnd | Exit | Hangup
_NAMES: dict[type[OwnFact], str] = {
    Launch: "launch",
    LastPreview: "preview",
    TurnEnd: "turn",
    Exit: "exit",
    Hangup: "hangup",
}


def own_line(fact: OwnFact, ts: str) -> bytes:
    """The recorder's own line for a fact, without LF."""
    return msgspec.json.encode({"dir": RECORDER, "ts": ts, _NAMES[type(fact)]: fact})


class _Own(Struct):
    ts: Any = None
    launch: Raw | UnsetType = UNSET
    preview: LastPreview | UnsetType = UNSET
    turn: TurnEnd | UnsetType = UNSET
    exit: Raw | UnsetType = UNSET


class _Line(Struct):
    dir: Any = None
    answered_by: Any = None


_own = msgspec.json.Decoder(_Own)
_line = msgspec.json.Decoder(_Line)
_FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Attested:
    """A fold that also reads what the recorder says (``harness._port.fold.Folding``).

    Args:
        inner: The protocol's fold.
    """

    def __init__(self, inner: Folding) -> None:
        self._inner = inner
        self._count = 0
        self._launch: tuple[Raw, Ref] | None = None
        self._main: tuple[str | None] | None = None
        self._launched: list[tuple[Session, Ref, Raw | UnsetType]] = []
        self._waiting: list[Record] = []
        self._calls: dict[str, str | None] = {}
        self._turns: dict[str | None, Turn] = {}
        self._revised: dict[tuple[str | None, str], str] = {}
        self._answering: dict[tuple[str, int | None], tuple[str, Ref]] = {}
        self._answered: dict[tuple[str | None, str], tuple[str, Ref]] = {}
        self._shown: set[tuple[str | None, str]] = set()

    @property
    def reading(self) -> Reading[Any]:
        """How its lines are decoded."""
        return self._inner.reading

    def is_open(self, call: str) -> bool:
        """Whether a call has settled, and neither a result nor a last preview of it has."""
        return call in self._calls

    def feed(self, source: SourceEntry, unit: Unit[Any]) -> list[Settled]:
        """Folds one line; returns what has settled, in order."""
        data = unit.data
        if _is_own(data):
            said = self._said(source, unit)
            if said is not None:
                return said
        by = _answerer(data) if _ANSWERED in data else None
        if by is not None:
            _keep(self._answering, (source.id, unit.line.number), (by, _ref(source, unit, "/answered_by")))
        return self._given(self._inner.feed(source, unit))

    def gap(self, source: SourceEntry, hole: Hole) -> list[Settled]:
        """Bytes that hold no frame."""
        return self._given(self._inner.gap(source, hole))

    def close(self) -> list[Settled]:
        """The end of the connection."""
        settled = self._given(self._inner.close())
        for record, ref, extra in self._launched:
            if record.parent is not None and record.native is not None:
                # Its head was completed meanwhile: another session started it.
                record.native.refs = [one for one in record.native.refs if one is not ref]
                record.native.extra = extra
        return settled

    # -- what the fold settled ----------------------------------------------------------------------------------

    def _given(self, settled: list[Settled]) -> list[Settled]:
        out: list[Settled] = []
        for one in settled:
            if isinstance(one.record, Preview) and (one.session, one.record.call_id) in self._shown:
                continue  # the recorder has said it
            self._look(*one)
            out.append(one)
            if self._main is None:
                self._main = (one.session,)
                out += [Settled(one.session, record) for record in self._waiting]
                self._waiting.clear()
        return out

    def _look(self, session: str | None, record: Record) -> None:
        later = self._revised.pop((session, record.supersedes), None) if record.supersedes else None
        if later is not None:
            record.supersedes = later
        if isinstance(record, Session):
            self._begun(record)
        elif isinstance(record, ToolCall):
            self._calls.setdefault(record.call_id, session)
        elif isinstance(record, ToolResult | Preview):
            # A fold may keep the last that was shown of a call by itself.
            self._calls.pop(record.call_id or "", None)
        elif isinstance(record, Turn):
            if record.status in (None, "running"):
                self._turns[session] = record
            else:
                self._turns.pop(session, None)
        elif isinstance(record, Permission | InputRequest):
            self._credit(session, record)

    def _begun(self, record: Session) -> None:
        """Says how the connection's first session was started, and every other one that no session started."""
        first = self._main is None
        if self._launch is None or (record.parent is not None and not first):
            return
        raw, ref = self._launch
        native = record.native = record.native or Native()
        if not first:
            self._launched.append((record, ref, native.extra))
        native.refs = [*native.refs, ref]
        extra: dict[str, Any] = {}
        if native.extra is not UNSET:
            found = msgspec.json.decode(native.extra, type=dict[str, Raw])
            extra.update(found)
        native.extra = Raw(msgspec.json.encode({**extra, "launch": raw}))

    def _credit(self, session: str | None, record: Permission | InputRequest) -> None:
        """Says who answered, where the recorder knows and the source does not say it itself."""
        if not _is_answered(record):
            return
        key = (session, record.request_id)
        for told in record.native.refs if record.native is not None else ():
            # A line that came before any session is folded later than the recorder's word on it.
            if (told.source, told.line) in self._answering:
                _keep(self._answered, key, self._answering[(told.source, told.line)])
        known = self._answered.get(key)
        if known is None:
            return
        by, ref = known
        if isinstance(record, Permission):
            if record.decided_by is not None:
                return
            record.decided_by = by
        else:
            if record.answered_by is not None:
                return
            record.answered_by = Actor(name=by)
        native = record.native = record.native or Native()
        native.refs = [*native.refs, ref]

    # -- what the recorder says ---------------------------------------------------------------------------------

    def _said(self, source: SourceEntry, unit: Unit[Any]) -> list[Settled] | None:
        try:
            own = _own.decode(unit.data)
        except _FAILS:
            return None
        ts = own.ts if isinstance(own.ts, str) else None
        if own.launch is not UNSET and self._launch is None and self._main is None:
            self._launch = (Raw(bytes(own.launch)), _ref(source, unit, "/launch"))
            return []
        if own.preview is not UNSET and own.preview.call_id in self._calls:
            session = self._calls.pop(own.preview.call_id)
            self._shown.add((session, own.preview.call_id))
            preview = Preview(
                call_id=own.preview.call_id,
                output=own.preview.output,
                omitted_bytes=own.preview.omitted_bytes or None,
            )
            return self._write(session, preview, ts, _ref(source, unit, "/preview"))
        status = _ENDS.get(own.turn.result) if own.turn is not UNSET else None
        if own.turn is not UNSET and status is not None and self._turns:
            out: list[Settled] = []
            for session, turn in list(self._turns.items()):
                ended = Turn(turn_id=turn.turn_id, status=status, reason=own.turn.reason)
                ended.supersedes, ended.id_source = turn.id, turn.id_source
                out += self._write(session, ended, ts, _ref(source, unit, "/turn"))
                self._revised[(session, turn.id)] = ended.id
            self._turns.clear()
            return out
        kept = Unmapped(native_type=RECORDER, value=Raw(unit.data))
        return self._write(self._main[0] if self._main else None, kept, ts, _ref(source, unit, None, "line"))

    def _write(self, session: str | None, record: Record, ts: str | None, ref: Ref) -> list[Settled]:
        record.id = f"own{self._count}"
        self._count += 1
        record.ts = ts
        record.native = Native(refs=[ref])
        if self._main is None:
            self._waiting.append(record)
            return []
        return [Settled(session, record)]


def _keep(kept: dict[Any, tuple[str, Ref]], key: Any, value: tuple[str, Ref]) -> None:
    """Keeps what is known of an answer; of too many the oldest is forgotten."""
    while len(kept) >= ANSWERED_MOST:
        kept.pop(next(iter(kept)))
    kept[key] = value


def _answerer(data: bytes) -> str | None:
    """Who answered, by the line of a frame that the client sent."""
    try:
        line = _line.decode(data)
    except _FAILS:
        return None
    return line.answered_by if isinstance(line.answered_by, str) and line.answered_by else None


def _is_answered(record: Permission | InputRequest) -> bool:
    if isinstance(record, Permission):
        return record.decision is not None
    return record.status not in (None, "pending")


def _ref(source: SourceEntry, unit: Unit[Any], pointer: str | None, role: str = RECORDER) -> Ref:
    line = unit.line
    data = original_of(line)[unit.start : unit.start + len(unit.data)]
    return Ref(
        source=source.id,
        line=line.number,
        offset=line.offset + unit.start,
        bytes=len(data),
        sha256=digest(data),
        role=role,
        pointer=pointer,
    )
