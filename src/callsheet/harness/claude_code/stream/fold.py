"""The fold of one connection: frames of ``stream-json`` in, records out. No clock, no file.

A log and a live turn feed it alike. Owns: which frame belongs to which stream (a session of its own, each of its
agents), what waits until the session says who it is, the requests of the control protocol, and the promise that every
line becomes a record or is kept unmapped.

Must never know: where lines come from, files.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.fold import Settled, Tray
from callsheet.harness._port.parts import ABSENT, mark, members_of, text_of
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.units import Hole, Reading, Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.claude_code.shapes import text
from callsheet.harness.claude_code.stream.shapes import Frame, LogLine, frame_of, native_of, reading
from callsheet.harness.claude_code.stream.shapes import Native as NativeFrame
from callsheet.harness.claude_code.stream.track import Track
from callsheet.records import FORMAT, Agent, Native, Parent, Ref, SourceEntry
from callsheet.records import Session as SessionRecord
from callsheet.records.bundle import stream_id
from callsheet.registry import load

EARLY_MOST = 1000
"""Frames that wait for the session to say who it is."""
STREAMS_MOST = 1000
"""Streams of one connection: sessions and agents."""
OPENS = frozenset({"assistant", "user", "result"})
"""Types of frames of the agent that name a session which is there."""


class Fold:
    """Folds the frames of one log or connection.

    Args:
        desk: Keeps blobs, takes diagnostics.
        veil: Reads sources with what is secret masked.
        sources: The sources that streams are made from.
    """

    reading: Reading[LogLine] = reading

    def __init__(self, desk: Desk, veil: Veil, sources: list[SourceEntry]) -> None:
        self._desk = desk
        self._veil = veil
        self._sources = sources
        self._registry = load("claude-code")
        self._out: list[Settled] = []
        self._early: list[tuple[SourceEntry, Unit[LogLine] | Hole, Frame | None]] = []
        self._tracks: dict[str | None, Track] = {}
        self._main: Track | None = None
        self._session: str | None = None
        self._callers: dict[str, str] = {}
        self._origin: list[Ref] = []
        """Native id of an agent's stream to that of the stream that started it."""

    # -- in and out ---------------------------------------------------------------------------------------------

    def feed(self, source: SourceEntry, unit: Unit[LogLine]) -> list[Settled]:
        """Folds one line; returns what has settled."""
        frame = frame_of(unit)
        if self._waits(frame):
            if len(self._early) < EARLY_MOST:
                self._early.append((source, unit, frame))
                return []
            self._let_in(source)
        if self._opens(frame):
            assert frame is not None
            self._begin(text(frame.native.session_id), source, frame)
        self._take(source, unit, frame)
        return self._given()

    def gap(self, source: SourceEntry, hole: Hole) -> list[Settled]:
        """Bytes that hold no frame."""
        if self._main is None and len(self._early) < EARLY_MOST:
            self._early.append((source, hole, None))
        else:
            self._there(source).pen.gap(source, hole)
        return self._given()

    def close(self) -> list[Settled]:
        """The end of the log: what has not settled is written as it stands."""
        if self._early or self._main is None:
            self._let_in(self._sources[0])
        for track in self._tracks.values():
            track.close()
        return self._given()

    def _given(self) -> list[Settled]:
        given, self._out[:] = list(self._out), []
        return given

    # -- streams ------------------------------------------------------------------------------------------------

    def _names_other(self, frame: Frame) -> bool:
        """Whether the agent names a session that has no stream yet (a host writes what it likes)."""
        named = text(frame.native.session_id)
        return frame.from_agent and named is not None and named not in self._tracks

    def _opens(self, frame: Frame | None) -> bool:
        if frame is None or not frame.from_agent or len(self._tracks) >= STREAMS_MOST:
            return False
        kind, native = frame.kind, frame.native
        if kind == "system" and native.subtype == "init":
            return self._main is None or self._names_other(frame)
        return kind in OPENS and self._names_other(frame)

    def _waits(self, frame: Frame | None) -> bool:
        """Whether a line comes before its session says who it is."""
        if self._opens(frame):
            return False
        if self._main is None:
            return True
        # A program that runs an agent again into one log: its first frames name a session that is not there yet.
        return frame is not None and frame.kind == "system" and self._names_other(frame)

    def _there(self, source: SourceEntry) -> Track:
        if self._main is None:
            self._begin(None, source, None)
        assert self._main is not None
        return self._main

    def _begin(self, name: str | None, source: SourceEntry, frame: Frame | None) -> None:
        """Begins the stream of a session, at the frame that says who it is; what waited goes first."""
        pen = Pen(self._desk, self._veil, Tray(name, self._out), self._roots(frame))
        record = SessionRecord(format=FORMAT, agent=Agent(name="claude-code"), sources=self._sources)
        record.native_session_id = name
        record.native = Native(refs=[Ref(source=source.id, role="member")])
        version = None
        if frame is not None:
            version = text(frame.native.claude_code_version)
            record.agent = Agent(name="claude-code", version=version)
            record.roots = self._roots(frame) or None
            record.ts_meaning = "received" if frame.wrapped and frame.ts else None
            pen.take(source, frame.unit, frame.ts)
            self._origin = [pen.ref("member")]
            record.native = Native(refs=list(self._origin))
        pen.stream.write(record)
        track = Track(self._desk, pen, self._registry, version)
        self._main = self._tracks[name] = track
        self._session = name
        self._let_in(source)

    def _let_in(self, source: SourceEntry) -> None:
        """What waits is folded: into the session that has come, or that which is there."""
        early, self._early = self._early, []
        self._there(source)
        for place, unit, one in early:
            if isinstance(unit, Hole):
                self._there(place).pen.gap(place, unit)
            else:
                self._take(place, unit, one)

    @staticmethod
    def _roots(frame: Frame | None) -> dict[str, str]:
        folder = text(frame.native.cwd) if frame is not None else None
        return {"project": folder} if folder else {}

    def _agent(self, frame: Frame, source: SourceEntry) -> Track | None:
        """The stream of the agent that a frame is about; None for the session's own."""
        parent = text(frame.native.parent_tool_use_id)
        named = text(frame.native.agent_id) or self._callers.get(parent or "")
        name = named or parent
        if name is None:
            return None
        track = self._tracks.get(name)
        if track is None and len(self._tracks) < STREAMS_MOST:
            track = self._begin_agent(name, parent, source, frame, named is not None)
        return track

    def _begin_agent(
        self, name: str, parent: str | None, source: SourceEntry, frame: Frame, known: bool
    ) -> Track:
        main = self._there(source)
        home = next(
            (one for one, track in self._tracks.items() if parent and track.seen.call(parent) is not None),
            self._session,
        )
        above = self._tracks.get(home, main)
        pen = Pen(self._desk, self._veil, Tray(name, self._out), {})
        pen.take(source, frame.unit, frame.ts)
        own = pen.ref("member")
        record = SessionRecord(
            format=FORMAT,
            agent=Agent(name="claude-code", version=main.version),
            native_session_id=self._session,
            sources=self._sources,
            ts_meaning="received" if frame.wrapped and frame.ts else None,
            native=Native(refs=[*(ref for ref in self._origin if ref != own), own]),
        )
        if home is not None:
            record.parent = Parent(session=stream_id(home), call_id=above.seen.sole(parent))
        pen.stream.write(record)
        track = Track(self._desk, pen, self._registry, main.version)
        track.seen.servers = main.seen.servers
        self._tracks[name] = track
        if known:
            above.pen.take(source, frame.unit, frame.ts)
            above.asides.agent_speaks(name, stream_id(name))
        return track

    # -- one line -----------------------------------------------------------------------------------------------

    def _take(self, source: SourceEntry, unit: Unit[LogLine], frame: Frame | None) -> None:
        main = self._there(source)
        if frame is None:
            main.pen.take(source, unit)
            main.pen.unmapped(_type_in(unit))
            return
        if frame.from_agent:
            main = self._tracks.get(text(frame.native.session_id), main)
        kind = frame.kind
        track = main
        if kind in ("assistant", "user", "stream_event") and frame.from_agent:
            track = self._agent(frame, source) or main
        elif kind == "control_request":
            told = text_of(members_of(frame.native.request).get("agent_id", ABSENT))
            track = self._tracks.get(told, main) if told is not None else main
        track.pen.take(source, frame.unit, frame.ts)
        if not self._mapped(track, source, frame):
            track.pen.unmapped(_native_type(frame.native), Raw(frame.unit.readable()))

    def _mapped(self, track: Track, source: SourceEntry, frame: Frame) -> bool:
        """Writes the records of a frame; False when it is left unmapped."""
        match frame.kind:
            case "assistant":
                track.assistant(frame)
                return bool(track.pen.written)
            case "user":
                track.user(frame)
                return bool(track.pen.written)
            case "stream_event":
                return track.message_delta(frame) or track.pieces.take(source, frame)
            case "system" if frame.from_agent:
                if frame.native.subtype == "init":
                    track.seen.configured(frame.members().get("mcp_servers", ABSENT))
                    track.begin_turn(frame)
                    return False
                return track.system(frame, self._agent_begins)
            case "result":
                return frame.from_agent and track.result(frame)
            case "control_request":
                return frame.from_agent and self._asked(track, frame)
            case "control_response":
                return not frame.from_agent and self._responded(source, frame)
            case "control_cancel_request":
                return frame.from_agent and self._withdrawn(source, frame)
            case _:
                return False

    def _agent_begins(self, agent_id: str, call_id: str | None) -> None:
        if call_id is not None and len(self._callers) < STREAMS_MOST:
            self._callers[call_id] = agent_id

    # -- the control protocol -----------------------------------------------------------------------------------

    def _asked(self, track: Track, frame: Frame) -> bool:
        name = text(frame.native.request_id)
        members = members_of(frame.native.request)
        if name is None:
            return False
        match text_of(members.get("subtype", ABSENT)):
            case "can_use_tool" if track.asides.asked(name, members):
                call_id = text_of(members.get("tool_use_id", ABSENT))
                track.asks.begin(name, "question", members, call_id)
            case "can_use_tool":
                track.asks.permission(name, members)
                track.results.asked_about(text_of(members.get("tool_use_id", ABSENT)))
            case "elicitation":
                track.asks.elicitation(name, members)
            case "hook_callback":
                return track.hooks.callback(name, members)
            case _:
                return False
        return True

    def _responded(self, source: SourceEntry, frame: Frame) -> bool:
        response = members_of(frame.native.response)
        name = text_of(response.get("request_id", ABSENT))
        if name is None:
            return False
        for track in self._tracks.values():
            asked = track.asks.open.get(name)
            track.pen.take(source, frame.unit, frame.ts)
            if asked is not None and asked.kind == "question":
                del track.asks.open[name]
                track.asides.replied(asked.call_id or "", response)
                return True
            if track.asks.answered(name, response) or track.hooks.returned(name, response):
                return True
        return False

    def _withdrawn(self, source: SourceEntry, frame: Frame) -> bool:
        name = text(frame.native.request_id)
        if name is None:
            return False
        for track in self._tracks.values():
            asked = track.asks.open.get(name)
            track.pen.take(source, frame.unit, frame.ts)
            if asked is not None and asked.kind == "question":
                del track.asks.open[name]
                track.asides.replied(asked.call_id or "", None)
                return True
            if track.asks.withdrawn(name):
                return True
        return False


def _type_in(unit: Unit[LogLine]) -> str | None:
    """The type of a line that is no frame."""
    data = unit.readable()
    return _native_type(native_of(data)) if mark(Raw(data)) == b"{" else None


def _native_type(native: NativeFrame) -> str | None:
    kind, subtype = text(native.type), native.subtype
    return f"{kind}/{subtype}" if kind is not None and isinstance(subtype, str) else kind
