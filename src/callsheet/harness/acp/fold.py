"""The fold of one connection: frames in, records out. No clock, no file: a log and a live client feed it alike.

Owns: which frame belongs to which session, the protocol version as negotiated, the requests that wait for an
answer (ids count per direction), replays (frames between ``session/load`` or ``session/resume`` and its
response) and the promise that every frame becomes a record or is kept unmapped. Sessions of one connection have
a stream each.

Must never know: where frames come from, files.
"""

from __future__ import annotations

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from callsheet.harness._port import Desk
from callsheet.harness._port.fold import Settled, Tray
from callsheet.harness._port.parts import ABSENT, members_of, part_at, text_of, whole_number_of
from callsheet.harness._port.pen import Pen, raw_json
from callsheet.harness._port.rpc import Frame, Id, id_of
from callsheet.harness._port.units import Hole, Reading, Unit
from callsheet.harness._port.veil import Veil, original_of
from callsheet.harness.acp.agents import Agents
from callsheet.harness.acp.asks import Asked, Asks
from callsheet.harness.acp.calls import VERSIONS, Calls
from callsheet.harness.acp.held import as_role
from callsheet.harness.acp.replies import Replies
from callsheet.harness.acp.shapes import LogLine, frames_of, log_reading, received
from callsheet.harness.acp.talk import Talk
from callsheet.harness.acp.terminals import Terminals
from callsheet.harness.acp.titles import UPDATE, Titles
from callsheet.harness.acp.updates import GOES_ON, UPDATES, Context
from callsheet.records import FORMAT, Agent, Native, Parent, Ref, SourceEntry
from callsheet.records import Session as SessionRecord
from callsheet.registry import AgentRule, Registry, load
from callsheet.registry.versions import in_ranges
from callsheet.wire.blobs import digest

SESSIONS_MOST = 100
"""Sessions of one connection that get a stream of their own."""
WAITING_MOST = 1000
"""Frames before the first session, and open requests, that are kept in mind."""
OPENING = frozenset({"initialize", "session/new", "session/load", "session/resume", "session/fork"})
"""Methods that negotiate, or begin or load a session."""
MEMBER = "member"
"""Role of a frame that names a session and has a record of its own besides."""
TERMINAL_METHODS = frozenset(
    {"terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"}
)


class Known(Struct):
    """What is known before the fold begins; empty for a live connection.

    Attributes:
        version: The version of a log without a negotiation.
        agent: What the agent calls itself, and its version.
        folders: Session to working folder.
        titles: Session to title, and the frame that says so.
        parents: Session to the session that started its agent.
        places: The frames that say so: of the agent under ``""``, of a session's folder under its name.
        sessions: Sessions with frames of their own.
        replied: (session, call id) of calls after whose end the model spoke; of a live connection the fold finds
            that out by and by, and revises their results.
    """

    version: int | None = None
    agent: tuple[str, str | None] | None = None
    folders: dict[str, str] = {}
    titles: dict[str, tuple[str, Ref]] = {}
    parents: dict[str, str] = {}
    places: dict[str, Ref] = {}
    sessions: set[str] = set()
    replied: set[tuple[str, str]] = set()


class Request(Struct):
    """A request that waits for its answer."""

    method: str
    session: str | None
    params: Raw
    ref: Ref
    asked: Asked | None = None


class SessionFold(Struct):
    """One session of the connection."""

    id: str | None
    record: SessionRecord
    pen: Pen
    terminals: Terminals
    calls: Calls
    talk: Talk
    asks: Asks
    agents: Agents
    titles: Titles
    replies: Replies = field(default_factory=Replies)
    head: set[tuple[str, int | None]] = field(default_factory=set)
    lived: bool = False
    replaying: bool = False
    replay_known: bool = False


class Fold:
    """Folds the frames of one log or connection.

    Args:
        desk: Keeps blobs, takes diagnostics.
        veil: Digests of earlier places.
        sources: The sources that streams are made from.
        known: What a survey found out, for a log.
    """

    reading: Reading[LogLine] = log_reading

    def __init__(
        self, desk: Desk, veil: Veil, sources: list[SourceEntry], known: Known | None = None
    ) -> None:
        self._desk = desk
        self._veil = veil
        self._sources = sources
        self.known = known or Known()
        self._registry: Registry = load("acp")
        self._out: list[Settled] = []
        self._sessions: dict[str | None, SessionFold] = {}
        self._early: list[tuple[SourceEntry, Unit[LogLine], str | None, Frame | None]] = []
        self._origin: list[Ref] = []
        self._coming: list[Ref] = []
        self._requests: dict[tuple[bool, Id | None], Request] = {}
        self._version = VERSIONS[self.known.version or 1]
        self._agent = self.known.agent
        # Refs of frames that come before their session are made with this pen; it writes nothing.
        self._scratch = Pen(desk, veil, Tray(None, []), {})
        self._last: str | None = None
        self._agreed: int | None = None
        self._here: Ref | None = None
        self._named_by = self.known.places.get("")

    # -- in and out ---------------------------------------------------------------------------------------------

    def feed(self, source: SourceEntry, unit: Unit[LogLine]) -> list[Settled]:
        """Folds one line; returns what has settled."""
        frames = list(frames_of(unit))
        self._scratch.take(source, unit)
        self._here = self._scratch.ref(MEMBER)
        if not frames:
            self._unmapped(source, unit, _kind_of_line(unit))
        for frame in frames:
            self._here = self._scratch.ref(MEMBER, frame.pointer)
            self._frame(source, unit, frame, len(frames) == 1)
        return self._given()

    def gap(self, source: SourceEntry, hole: Hole) -> list[Settled]:
        """Bytes that hold no frame."""
        if not self._sessions:
            data = original_of(hole.line)[hole.start : hole.start + hole.size]
            offset = hole.line.offset + hole.start
            ref = Ref(source=source.id, line=hole.line.number, offset=offset, bytes=len(data), role=MEMBER)
            ref.sha256 = digest(data)
            self._here = ref
        self._main().pen.gap(source, hole)
        return self._given()

    def close(self) -> list[Settled]:
        """The end of the log: what has not settled yet is written as it stands."""
        self._main()
        for session in self._sessions.values():
            session.talk.flush()
            session.talk.write_prompts()
            session.terminals.settle(last=True)
            session.calls.settle(last=True)
            session.calls.ended()
        return self._given()

    def _given(self) -> list[Settled]:
        given, self._out[:] = list(self._out), []
        return given

    # -- sessions -----------------------------------------------------------------------------------------------

    def _main(self) -> SessionFold:
        """The session whose stream takes what belongs to none."""
        for session in self._sessions.values():
            return session
        return self._begin(None, [])

    def _begin(self, name: str | None, refs: list[Ref]) -> SessionFold:
        known = self.known
        key = name or ""
        folder = known.folders.get(key)
        roots = {"project": folder} if folder else {}
        pen = Pen(self._desk, self._veil, Tray(name, self._out), roots)
        agent, version = self._agent or (None, None)
        record = SessionRecord(
            format=FORMAT, native_session_id=name, sources=self._sources, ts_meaning="received"
        )
        if agent is not None:
            record.agent = Agent(name=agent, version=version)
        record.roots = roots or None
        cited = [*self._origin, *as_role(refs, "start")]
        if not any(name is not None and ref.role == "start" for ref in refs) and self._here is not None:
            # No frame of this log began the session: the one at hand is the first that names it.
            cited.append(self._here)
        before = len({(ref.source, ref.offset, ref.pointer) for ref in cited})
        if key in known.titles:
            record.title, ref = known.titles[key]
            cited.append(ref)
        if key in known.parents:
            record.parent = Parent(session=known.parents[key])
        # Who the agent is and where it works may stand in frames that did not begin this session.
        told = [self._named_by if agent is not None else None, known.places.get(key) if folder else None]
        at = {(ref.source, ref.offset, ref.pointer) for ref in cited if ref.role == "start"}
        cited += [ref for ref in told if ref is not None and (ref.source, ref.offset, ref.pointer) not in at]
        record.native = Native(
            refs=list({(ref.source, ref.offset, ref.pointer): ref for ref in reversed(cited)}.values())[::-1]
        )
        if self._agreed is not None:
            record.native.extra = raw_json({"protocolVersion": self._agreed})
        pen.stream.write(record)
        terminals = Terminals(pen)
        calls = Calls(
            pen,
            terminals,
            {call for session, call in known.replied if session == key},
            self._rule(),
        )
        asks = Asks(pen, calls, self._registry)
        agents = Agents(pen, self._registry, self._has_stream)
        titles = Titles(record, before, known=key in known.titles)
        session = SessionFold(
            name, record, pen, terminals, calls, Talk(pen, self._registry), asks, agents, titles
        )
        session.head = {(ref.source, ref.line) for ref in cited if ref.role != MEMBER}
        self._sessions[name] = session
        if name is not None:
            for other in self._sessions.values():
                other.agents.began(name)
        early, self._early = self._early, []
        for source, unit, kind, part in early:
            if (source.id, unit.line.number) not in session.head:
                self._unmapped(source, unit, kind, part)
        return session

    def descends(self, child: str, parent: str) -> None:
        """A session started another one, whose stream may have begun: its head says so then."""
        above = self.known.parents.setdefault(child, parent)
        session = self._sessions.get(child)
        if session is not None and session.record.parent is None:
            session.record.parent = Parent(session=above)

    def _has_stream(self, name: str) -> bool:
        return name in self._sessions or name in self.known.sessions

    def _rule(self) -> AgentRule | None:
        name, version = self._agent or (None, None)
        for rule in self._registry.agent:
            if rule.name == name:
                return rule if in_ranges(rule.versions, version) else replace(rule, content=None)
        return None

    def _session(self, name: str | None, refs: list[Ref] | None = None) -> SessionFold:
        """The session of a name; a name beyond the bound shares the first one's stream as unmapped frames."""
        if name is None:
            return self._main()
        found = self._sessions.get(name)
        if found is None:
            found = self._begin(name, refs or [])
        return found

    def _unmapped(
        self, source: SourceEntry, unit: Unit[LogLine], kind: str | None, part: Frame | None = None
    ) -> None:
        """Keeps what belongs to no session: a line, or a frame of a batch (``part``).

        Before the first session it waits for that one's stream.
        """
        if not self._sessions:
            if len(self._early) < WAITING_MOST:
                self._early.append((source, unit, kind, part))
                return
            self._begin(None, [])
        pen = self._main().pen
        pen.take(source, unit, received(unit.native) if unit.native is not None else None)
        _keep(pen, kind, part)

    # -- one frame ----------------------------------------------------------------------------------------------

    def _frame(self, source: SourceEntry, unit: Unit[LogLine], frame: Frame, alone: bool) -> None:
        request = None
        if frame.method is None:
            request = self._requests.pop((not frame.from_agent, frame.id), None) or self._guess(frame)
            kind = f"{request.method} response" if request is not None else "response"
            name = request.session if request is not None else None
        else:
            kind, name = frame.method, self._named(frame)
        if (frame.method or (request.method if request is not None else "")) in OPENING:
            name = self._open(frame, request) or name
        part = None if alone else frame
        full = name not in self._sessions and len(self._sessions) >= SESSIONS_MOST
        if name is None or full:
            if full:
                self._desk.diagnose(
                    "many_sessions", "more sessions than get a stream", source, unit.line.number
                )
            self._ask(frame, name, None)
            if full or not self._is_origin(unit):
                self._unmapped(source, unit, kind, part)
            return
        session = self._session(name)
        ts = received(unit.native) if unit.native is not None else None
        again = session.replaying and frame.method not in OPENING
        session.pen.take(source, unit, ts, name if again else None)
        self._last = name
        if frame.method is None:
            mapped = request is not None and self._answer(session, frame, request)
        elif frame.method == "session/update":
            kind, mapped = self._update(session, frame, alone)
        else:
            mapped = self._call(session, frame)
        mapped = mapped or (source.id, unit.line.number) in session.head
        if not mapped:
            _keep(session.pen, kind, part)

    def _named(self, frame: Frame) -> str | None:
        """The session that a request or notification is about."""
        params = members_of(frame.params)
        name = text_of(params.get("sessionId", ABSENT))
        if name is None and frame.method == "elicitation/create":
            about = self._requests.get((False, id_of(params.get("requestId", ABSENT))))
            name = (about.session if about is not None else None) or self._last
        return name

    def _is_origin(self, unit: Unit[LogLine]) -> bool:
        """Whether the head of the coming stream cites this line."""
        here = any(ref.line == unit.line.number for ref in self._origin)
        return here and not self._sessions

    def _open(self, frame: Frame, request: Request | None) -> str | None:
        """Negotiation and session set-up; returns the session that it is about."""
        ref = self._scratch.ref("start", frame.pointer)
        method = frame.method or (request.method if request is not None else "")
        if method == "initialize":
            if frame.method is not None:
                # A new process: its request ids begin again, and what it was asked to replay it does not any more.
                self._requests.clear()
                for session in self._sessions.values():
                    if session.replaying:
                        self._end_replay(session)
                if self._sessions:
                    self._coming = [ref]  # what was agreed before holds until this is answered
                else:
                    self._origin.append(ref)
            else:
                self._negotiated(frame.result, ref)
                self._origin = [*(self._coming or self._origin), ref]
                self._coming = []
            self._ask(frame, None, ref)
            return None
        if frame.method is not None:
            self._ask(frame, None, ref)
            name = text_of(members_of(frame.params).get("sessionId", ABSENT))
            if name is not None and method in ("session/load", "session/resume"):
                self._folder(name, frame.params)
                if name in self._sessions or len(self._sessions) < SESSIONS_MOST:
                    session = self._session(name, [ref])
                    session.replaying, session.replay_known = True, session.lived
            elif not self._sessions:
                self._origin.append(ref)
            return name if method != "session/fork" else None
        assert request is not None
        if method in ("session/load", "session/resume") and request.session in self._sessions:
            self._end_replay(self._sessions[request.session])
            return request.session
        name = text_of(members_of(frame.result).get("sessionId", ABSENT))
        if name is not None and name not in self._sessions and len(self._sessions) < SESSIONS_MOST:
            self._folder(name, request.params)
            self._session(name, [request.ref, ref])
        return name or request.session

    def _folder(self, name: str, params: Raw) -> None:
        folder = text_of(members_of(params).get("cwd", ABSENT))
        if folder and name not in self.known.folders:
            self.known.folders[name] = folder

    def _end_replay(self, session: SessionFold) -> None:
        session.talk.flush()
        session.terminals.settle()
        session.calls.settle()
        session.replaying = False

    def _negotiated(self, result: Raw, ref: Ref) -> None:
        told = members_of(result)
        version = whole_number_of(told.get("protocolVersion", ABSENT))
        if version is not None:
            if version not in VERSIONS:
                self._desk.diagnose("unknown_version", f"protocol version {version} is not known")
            self._version = VERSIONS[min(max(version, 1), 2)]
            self._agreed = version
        agent = agent_of(told)
        if agent is not None:
            self._agent, self._named_by = agent, ref

    def _guess(self, frame: Frame) -> Request | None:
        """The request of an answer in a log that has the agent's half only, by what the answer alone can be."""
        if not frame.from_agent:
            return None
        told = members_of(frame.result)
        for member, method in (
            ("protocolVersion", "initialize"),
            ("sessionId", "session/new"),
            ("stopReason", "session/prompt"),
        ):
            if member in told:
                ref = self._scratch.ref("start", frame.pointer)
                session = self._last if method == "session/prompt" else None
                return Request(method, session, ABSENT, ref)
        return None

    def _ask(self, frame: Frame, session: str | None, ref: Ref | None, asked: Asked | None = None) -> None:
        """Remembers a request until it is answered."""
        if frame.method is None or frame.id is None:
            return
        while len(self._requests) >= WAITING_MOST:
            self._requests.pop(next(iter(self._requests)))
        name = session or text_of(members_of(frame.params).get("sessionId", ABSENT))
        ref = ref or self._scratch.ref("request", frame.pointer)
        self._requests[(frame.from_agent, frame.id)] = Request(
            frame.method, name, Raw(bytes(frame.params)), ref, asked
        )

    # -- requests and notifications -----------------------------------------------------------------------------

    def _call(self, session: SessionFold, frame: Frame) -> bool:
        method, pointer = frame.method, frame.pointer
        if method == "session/prompt" and not frame.from_agent:
            session.lived = True
            session.talk.prompt(frame.id, frame.params, pointer, self._version.null_clears)
            self._ask(frame, session.id, session.pen.ref("start", f"{pointer}/params"))
            return True
        if method in ("session/request_permission", "elicitation/create") and frame.from_agent:
            session.lived = True
            session.talk.flush()
            if frame.id is None:
                return False
            asked = session.asks.begin(frame.id, frame.params, pointer)
            if method == "elicitation/create":
                session.asks.elicitation(asked)
            else:
                session.asks.permission(asked, pointer, self._version)
            self._ask(frame, session.id, asked.ref, asked)
            return True
        self._ask(frame, session.id, session.pen.ref("request", pointer))
        return False

    def _answer(self, session: SessionFold, frame: Frame, request: Request) -> bool:
        method, pointer = request.method, frame.pointer
        if request.asked is not None:
            if method == "elicitation/create":
                session.asks.elicitation_answer(request.asked, frame.result, pointer)
            else:
                session.asks.permission_answer(request.asked, frame.result, pointer)
            return True
        if method == "session/prompt":
            return self._prompt_answered(session, frame)
        if method == "terminal/create":
            name = text_of(members_of(frame.result).get("terminalId", ABSENT))
            if name:
                session.terminals.created(name, request.params, f"{pointer}/result", request.ref)
                return True
        elif method in TERMINAL_METHODS:
            name = text_of(members_of(request.params).get("terminalId", ABSENT))
            return bool(name) and session.terminals.answered(
                name or "", method, frame.result, f"{pointer}/result"
            )
        return False

    def _prompt_answered(self, session: SessionFold, frame: Frame) -> bool:
        talk, pointer = session.talk, frame.pointer
        if frame.error:
            ended = talk.end(frame.id, members_of(frame.error), f"{pointer}/error")
        elif self._version.null_clears:
            name = text_of(members_of(frame.result).get("messageId", ABSENT))
            talk.prompt_accepted(frame.id, name, pointer)
            if "stopReason" not in members_of(frame.result):
                session.pen.cited()
                talk.begin(session.pen.ref("start", f"{pointer}/result"), None, True)
                return True
            ended = talk.end(None, members_of(frame.result), f"{pointer}/result")
        else:
            ended = talk.end(frame.id, members_of(frame.result), f"{pointer}/result")
            if not ended:
                talk.begin(session.pen.ref("end", f"{pointer}/result"), frame.id, False, silent=True)
                ended = talk.end(frame.id, members_of(frame.result), f"{pointer}/result")
        if "stopReason" in members_of(frame.result):
            session.replies.turn_over()
        self.turn_over(session)
        return ended

    def turn_over(self, session: SessionFold) -> None:
        """What settles when a turn ends."""
        session.terminals.settle()
        session.calls.ended()

    # -- updates ------------------------------------------------------------------------------------------------

    def _update(self, session: SessionFold, frame: Frame, alone: bool) -> tuple[str, bool]:
        update = members_of(members_of(frame.params).get("update", ABSENT))
        name = text_of(update.get("sessionUpdate", ABSENT)) or "?"
        pointer = f"{frame.pointer}/params/update"
        kind = f"session/update/{name}"
        if not frame.from_agent:
            return kind, False
        if name == UPDATE:
            part = None if alone else frame
            return kind, session.titles.told(session.pen, update, pointer, lambda pen: _keep(pen, kind, part))
        handler = UPDATES.get(name)
        if session.replaying and session.replay_known and self._repeats(session, name, update):
            return f"{kind} (replay)", False
        if handler is None:
            return kind, False
        if not session.replaying:
            session.lived = True
        if name == "state_update" and session.replaying:
            return f"{kind} (replay)", False
        if name not in GOES_ON:
            session.talk.flush()
        if not session.replaying:
            session.calls.answered(session.replies.told(name, update))
        return kind, handler(Context(self, session, update, pointer, self._version))

    def _repeats(self, session: SessionFold, name: str, update: dict[str, Raw]) -> bool:
        """Whether a replayed frame tells again what was recorded live in this connection."""
        if name.startswith("tool_call"):
            call = text_of(update.get("toolCallId", ABSENT)) or ""
            return call in session.calls and not session.calls.ends(call, update)
        if name.startswith("terminal_"):
            return (text_of(update.get("terminalId", ABSENT)) or "") in session.terminals
        if name == "user_message_chunk" and not self._version.null_clears:
            return True  # v1 prompts have no id by which the replay could be told
        if name.startswith(("user_message", "agent_message", "agent_thought")):
            return session.talk.knows(text_of(update.get("messageId", ABSENT)))
        return True


def agent_of(result: dict[str, Raw]) -> tuple[str, str | None] | None:
    """What an agent calls itself in its answer to ``initialize``: ``agentInfo`` in v1, ``info`` in v2."""
    for member in ("agentInfo", "info"):
        name = text_of(part_at(result.get(member, ABSENT), "name"))
        if name:
            return name, text_of(part_at(result[member], "version"))
    return None


def _keep(pen: Pen, kind: str | None, part: Frame | None) -> None:
    """Keeps a frame that nothing maps: of a batch the frame itself, else the line as it is."""
    if part is None:
        pen.unmapped(kind)
    else:
        pen.unmapped(kind, part.raw, part.pointer)


def _kind_of_line(unit: Unit[LogLine]) -> str | None:
    """What a line is that holds no frame."""
    if unit.native is None:
        return None
    return "raw" if unit.native.dir is not None and not unit.native.frame else "line"
