"""Trajectories: OpenClaw's own trace of a run, and where in it something of the sheet is told.

Owns: the rows of ``trajectory_runtime_events`` and the lines of a legacy ``*.trajectory.jsonl``; when each call was
handed to its tool and when it came back, by call id; when each run began and ended. A trace repeats the transcript
with texts that were cut and masked, so it is evidence for times and for what no transcript holds, never for what a
call asked or a result said. Of a call id that a trace tells of more than once it says nothing.

Must never know: entries, records but refs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.cells import Cell
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, value_of
from callsheet.harness._port.pen import utc
from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness._port.veil import Veil, Veiled
from callsheet.harness.openclaw import secrets
from callsheet.harness.openclaw.feed import Feed, rows_in
from callsheet.harness.openclaw.shapes import FAILS, text
from callsheet.records import Ref, SourceEntry
from callsheet.wire.lines import Line

if TYPE_CHECKING:
    from callsheet.harness.openclaw.survey import Survey

TABLE = "trajectory_runtime_events"
COLUMN = "event_json"
NO_TRANSCRIPT = "the transcript of this session is not there: what is told comes from OpenClaw's trace of it"
SCHEMA = "openclaw-trajectory"
ENDING = ".trajectory.jsonl"
BEGAN, ENDED, CALL, RESULT = "session.started", "session.ended", "tool.call", "tool.result"
REPEATS = frozenset(
    {
        "trace.metadata",
        "context.compiled",
        "prompt.submitted",
        "prompt.skipped",
        "model.completed",
        "trace.artifacts",
    }
)
"""Kinds of rows that only repeat prompts, settings and messages: of a database they are not read."""


class Event(Struct, gc=False):
    """One event of a trace."""

    traceSchema: Any = None
    source: Any = None
    type: Any = None
    ts: Any = None
    sessionId: Any = None
    runId: Any = None
    provider: Any = None
    modelId: Any = None
    modelApi: Any = None
    data: Raw = ABSENT


class About(Struct, gc=False):
    """What an event tells, as far as facts need it."""

    toolCallId: Any = None
    name: Any = None
    success: Any = None
    status: Any = None
    trigger: Any = None
    stopReason: Any = None
    promptError: Any = None
    args: Raw = ABSENT
    result: Raw = ABSENT


def _loose(value: dict[str, Any]) -> Event:
    found = Event()
    for name in ("traceSchema", "source", "type", "ts", "sessionId", "runId"):
        setattr(found, name, value.get(name))
    return found


EVENTS = Reading(msgspec.json.Decoder(Event), _loose, lambda value: value.get("traceSchema") == SCHEMA)
"""How the units of a trace are read."""
_about = msgspec.json.Decoder(About)
NOTHING = About()


def about(event: Event) -> About:
    """What an event tells; nothing for one of another shape."""
    try:
        return _about.decode(event.data) if mark(event.data) == b"{" else NOTHING
    except FAILS:
        return NOTHING


def is_ours(event: Event | None) -> bool:
    """Whether an event is of a run itself; an exported trace has the transcript's entries as events too."""
    return event is not None and event.traceSchema == SCHEMA and event.source == "runtime"


class At(NamedTuple):
    """Where an event stands, and the little that is asked of it.

    Attributes:
        source: The source.
        line: Its line there.
        offset: Byte offset of its text.
        size: Bytes of its text.
        key: Key of the row; None in a file.
        ts: When it was recorded.
        name: The tool that it names.
        told: Whether the call succeeded; how the run ended (a text); with what it began (an object).
    """

    source: SourceEntry
    line: int
    offset: int
    size: int
    key: bytes | None
    ts: str | None
    name: str | None
    told: Any

    @property
    def place(self) -> tuple[str, int]:
        """What tells it from all others."""
        return self.source.id, self.line


class Found(NamedTuple):
    """An event or a hole, with its source."""

    source: SourceEntry
    unit: Unit[Event] | Hole


class Trajectory:
    """The events of one session.

    Args:
        veil: Reads the sources.
        feeds: A table of the session's database, a legacy file, or both.
    """

    def __init__(self, veil: Veil, feeds: list[Feed]) -> None:
        self.veil = veil
        self.feeds = feeds
        self.claimed: set[tuple[str, int]] = set()
        """Events that a record of a transcript, or of the shared database, cites."""
        self.size = 0
        self._calls: dict[int, list[At]] = {}
        self._results: dict[int, list[At]] = {}
        self._runs: dict[int, list[At]] = {}

    def units(self) -> Iterator[Found]:
        """Every event in order."""
        for feed in self.feeds:
            if feed.table is None:
                for unit in native_units(self.veil.lines(feed.source), EVENTS):
                    yield Found(feed.source, unit)
            else:
                for one in rows_in(self.veil, feed, EVENTS):
                    if isinstance(one, Unit | Hole):
                        yield Found(feed.source, one)

    def look(self, *, keep_reasoning: bool) -> None:
        """The first pass: notes where calls and runs are told of, and hides thoughts."""
        for source, unit in self.units():
            self.size += 1
            if not isinstance(unit, Unit) or unit.native is None:
                continue
            event = unit.native
            if not keep_reasoning and b'"thinking"' in unit.data:
                for thought in _thoughts(event.data):
                    self._hide(source, unit, bytes(thought))
            told = about(event) if is_ours(event) else NOTHING
            if event.type in (CALL, RESULT) and isinstance(told.toolCallId, str):
                kept = self._calls if event.type == CALL else self._results
                _note(kept, told.toolCallId, _at(source, unit, event, told.success, text(told.name)))
            elif event.type in (BEGAN, ENDED) and text(event.runId) and is_ours(event):
                how = began_with(event, told) if event.type == BEGAN else text(told.status) or ""
                _note(self._runs, event.runId, _at(source, unit, event, how, None))

    def _hide(self, source: SourceEntry, unit: Unit[Event], piece: bytes) -> None:
        if isinstance(unit.line, Cell) and unit.line.quoted:
            return
        at = unit.data.find(piece)
        while at >= 0:
            self.veil.hide(source, unit.line.offset + unit.start + at, len(piece))
            at = unit.data.find(piece, at + len(piece))

    def secret_answers(self, known: set[str]) -> list[str]:
        """Values that were given to questions which ask for a secret; what else their results say is hidden.

        Args:
            known: Ids of calls that the transcript says ask for one.
        """
        asked = {}
        for _, unit in self.units():
            if isinstance(unit, Unit) and unit.native is not None and unit.native.type == CALL:
                told = about(unit.native)
                question = secrets.asked(told.name, told.args)
                if question is not None and isinstance(told.toolCallId, str):
                    asked[told.toolCallId] = question
        found: dict[str, None] = {}
        for source, unit in self.units() if asked or known else ():
            if not isinstance(unit, Unit) or unit.native is None or unit.native.type != RESULT:
                continue
            told = about(unit.native)
            call_id = told.toolCallId
            if isinstance(call_id, str) and (call_id in asked or call_id in known) and told.result:
                if call_id in asked:
                    details = members_of(told.result).get("details", ABSENT)
                    found.update(dict.fromkeys(secrets.answers_in(asked[call_id], details)))
                # OpenClaw shortens what looks like a credential: parts of the value may stand anywhere in it.
                self._hide(source, unit, bytes(told.result))
        return list(found)

    def forget(self) -> None:
        """Drops what was noted, once its records are written."""
        self._calls, self._results, self._runs = {}, {}, {}
        self.claimed = set()

    def heads(self) -> list[Ref]:
        """A ref to the first event that names its session."""
        for source, unit in self.units():
            if isinstance(unit, Unit) and unit.native is not None and text(unit.native.sessionId):
                at = _at(source, unit, unit.native, None, None)
                if at is not None:
                    return [self.ref(at, "traced")]
        return []

    # -- what is asked ------------------------------------------------------------------------------------------

    def call(self, call_id: str | None) -> At | None:
        """Where a call was handed to its tool."""
        return _only(self._calls, call_id)

    def result(self, call_id: str | None) -> At | None:
        """Where a call came back."""
        return _only(self._results, call_id)

    def calls_of(self, call_id: str) -> int:
        """How many calls were handed to a tool under this id."""
        return len(self._calls.get(hash(call_id), ()))

    def run(self, run: str) -> list[At]:
        """Where a run began and ended, for each attempt."""
        return self._runs.get(hash(run), [])

    def unit(self, at: At) -> Unit[Event]:
        """An event, read again."""
        masked, original = self.veil.both(at.source, at.offset, at.size)
        line: Line = Veiled(at.line, at.offset, masked, True, original)
        if at.key is not None:
            line = Cell(
                number=at.line,
                offset=at.offset,
                data=masked,
                original=original,
                table=TABLE,
                key=at.key,
                column=COLUMN,
            )
        return next(one for one in native_units([line], EVENTS) if isinstance(one, Unit))

    def claim(self, at: At, role: str) -> Ref:
        """A ref to an event, which then has its record."""
        self.claimed.add(at.place)
        return self.ref(at, role)

    def ref(self, at: At, role: str) -> Ref:
        """A ref to an event."""
        ref = Ref(
            source=at.source.id,
            line=at.line,
            offset=at.offset,
            bytes=at.size,
            sha256=self.veil.sha256(at.source, at.offset, at.size),
            role=role,
        )
        if at.key is not None:
            ref.table, ref.key, ref.column = TABLE, msgspec.json.decode(at.key), COLUMN
        return ref


def hide_answers(
    trajectories: list[Trajectory], surveys: Sequence[Survey], sources: list[SourceEntry], veil: Veil
) -> bool:
    """Masks what trajectories tell of answers to secret questions, everywhere; returns whether there were any.

    Args:
        trajectories: Those of one bundle.
        surveys: What the transcripts say, in the same order; none before they were read.
        sources: All sources of the bundle.
        veil: Masks.
    """
    values: dict[str, None] = {}
    for number, trajectory in enumerate(trajectories):
        known = set(surveys[number].asked) if surveys else set[str]()
        values.update(dict.fromkeys(trajectory.secret_answers(known)))
    for value in values:
        veil.secret(value, sources)
    return bool(values)


def began_with(event: Event, told: About) -> dict[str, str]:
    """The model of a run, where it came from, and what set the run off."""
    named = {
        "provider": text(event.provider),
        "model": text(event.modelId),
        "api": text(event.modelApi),
        "trigger": text(told.trigger),
    }
    return {name: value for name, value in named.items() if value is not None}


def _at(source: SourceEntry, unit: Unit[Event], event: Event, told: Any, name: str | None) -> At | None:
    line = unit.line
    if isinstance(line, Cell) and (line.quoted or len(unit.data) != len(line.data)):
        return None  # a text inside a text has no place of its own
    key = line.key if isinstance(line, Cell) else None
    place = (line.offset + unit.start, len(unit.data))
    return At(source, line.number, *place, key, utc(event.ts), name, told)


def _note(kept: dict[int, list[At]], name: str, at: At | None) -> None:
    if at is not None:
        kept.setdefault(hash(name), []).append(at)


def _only(kept: dict[int, list[At]], name: str | None) -> At | None:
    found = kept.get(hash(name), []) if name is not None else []
    return found[0] if len(found) == 1 else None


def _thoughts(raw: Raw, deep: int = 0) -> Iterator[Raw]:
    """The words of thoughts among the messages that an event repeats."""
    if b'"thinking"' not in bytes(raw) or deep > 20:
        return
    members = members_of(raw)
    words = members.get("thinking", ABSENT)
    if value_of(members.get("type", ABSENT)) == "thinking" and mark(words) == b'"' and len(words) > 2:
        yield words
    for inner in members.values() if members else items_of(raw):
        if mark(inner) in (b"{", b"["):
            yield from _thoughts(inner, deep + 1)


def session_of(head: bytes) -> str | None:
    """The session of a file that begins like a trace; None for any other file."""
    for line in head.split(b"\n")[:5]:
        if not line.strip():
            continue
        try:
            event = EVENTS.decoder.decode(line)
        except FAILS:
            return None
        return text(event.sessionId) if event.traceSchema == SCHEMA else None
    return None
