"""The fold of one connection: frames in, records out. No clock, no file: a log and a live client feed it alike.

Owns: which frame belongs to which thread, the requests that wait for an answer (ids count per direction, and begin
again in every process), the head of each stream, and the promise that every line becomes a record or is kept
unmapped. Threads of one connection have a stream each.

Must never know: where frames come from, files.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Raw, Struct
from msgspec.structs import replace

from callsheet.harness._port import Desk
from callsheet.harness._port.fold import Settled, Tray
from callsheet.harness._port.parts import ABSENT, members_of, text_of
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.rpc import Frame, Id, frame_in
from callsheet.harness._port.units import Hole, Reading, Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.app_server.asks import Asked
from callsheet.harness.codex.app_server.layout import thread_named
from callsheet.harness.codex.app_server.lineage import Lineage, Origin
from callsheet.harness.codex.app_server.shapes import LogLine, frame_of, log_reading, received
from callsheet.harness.codex.app_server.thread import NOTIFICATIONS, Thread
from callsheet.records import FORMAT, Agent, Native, Parent, Ref, SourceEntry
from callsheet.records import Session as SessionRecord
from callsheet.records.bundle import stream_id
from callsheet.registry import load

THREADS_MOST = 100
"""Threads of one connection that get a stream of their own."""
WAITING_MOST = 1000
"""Lines before the first thread, and open requests, that are kept in mind."""
OPENING = frozenset({"thread/start", "thread/resume", "thread/fork"})
"""Requests of the client whose answer has a thread."""
TERMINALS = "thread/backgroundTerminals/list"


class Request(Struct):
    """A request that waits for its answer."""

    method: str
    thread: str | None
    asked: Asked | None = None


class Fold:
    """Folds the frames of one log or connection (``harness._port.fold.Folding``).

    Args:
        desk: Keeps blobs, takes diagnostics.
        veil: Digests of earlier places.
        sources: The sources that streams are made from.
        known: Who started each thread, as a survey found out, for a log.
    """

    def __init__(
        self,
        desk: Desk,
        veil: Veil,
        sources: list[SourceEntry],
        known: Mapping[str, Origin] = MappingProxyType({}),
    ) -> None:
        self._desk = desk
        self._veil = veil
        self._sources = sources
        self._registry = load("codex")
        self._out: list[Settled] = []
        self._known = known
        self._lineage = Lineage()
        self._heads: dict[str, tuple[SessionRecord, int]] = {}
        """By thread: the head of its stream, and the place among its refs for the one that says who started it."""
        self._threads: dict[str | None, Thread] = {}
        self._streams: dict[str, str] = {}
        self._early: list[tuple[SourceEntry, Unit[LogLine]]] = []
        self._requests: dict[tuple[bool, Id | None], Request] = {}
        self._server: tuple[str, Ref] | None = None
        # Refs of frames that come before their thread are made with this pen; it writes nothing.
        self._scratch = Pen(desk, veil, Tray(None, []), {})

    @property
    def reading(self) -> Reading[LogLine]:
        """How its lines are decoded."""
        return log_reading

    # -- in and out ---------------------------------------------------------------------------------------------

    def feed(self, source: SourceEntry, unit: Unit[LogLine]) -> list[Settled]:
        """Folds one line; returns what has settled."""
        self._scratch.take(source, unit)
        frame = frame_of(unit)
        if frame is None:
            self._unmapped(source, unit)
        else:
            self._frame(source, unit, frame)
        return self._given()

    def gap(self, source: SourceEntry, hole: Hole) -> list[Settled]:
        """Bytes that hold no frame."""
        self._main().pen.gap(source, hole)
        return self._given()

    def close(self) -> list[Settled]:
        """The end of the connection: nothing is invented for what never ended."""
        self._main()
        for thread in self._threads.values():
            thread.close()
        return self._given()

    def _given(self) -> list[Settled]:
        given, self._out[:] = list(self._out), []
        return given

    # -- threads ------------------------------------------------------------------------------------------------

    def _main(self) -> Thread:
        """The thread whose stream takes what belongs to none."""
        for thread in self._threads.values():
            return thread
        return self._begin(None, ABSENT, [])

    def _begin(self, name: str | None, told: Raw, refs: list[Ref]) -> Thread:
        """A stream begins.

        Args:
            name: The thread.
            told: What the server says of it, where it does.
            refs: The frames that say so.
        """
        if not refs and self._early:
            # A log without a thread that speaks: the first line that names one, or its first line, says what it is.
            naming = (one for one in self._early if names_thread(one[1]))
            self._scratch.take(*next(naming, self._early[0]))
            refs = [self._scratch.ref("meta", "")]
        members = members_of(told)
        folder = text_of(members.get("cwd", ABSENT))
        version = text_of(members.get("cliVersion", ABSENT))
        if not told and self._server is not None and name is not None:
            # An agent's thread that no frame describes: it runs in the same program.
            version, ref = self._server
            refs = [*refs, replace(ref, role="server")]
        elif version and refs and self._server is None:
            self._server = version, refs[0]
        roots = {"project": folder} if folder else {}
        pen = Pen(self._desk, self._veil, Tray(name, self._out), roots)
        record = SessionRecord(format=FORMAT, native_session_id=name, sources=self._sources)
        record.agent = Agent(name="codex", version=version or None)
        record.ts_meaning = "received"
        record.roots = roots or None
        record.title = text_of(members.get("name", ABSENT)) or None
        record.forked_from = text_of(members.get("forkedFromId", ABSENT)) or None
        record.native = Native(refs=refs or [Ref(source=one.id, role="member") for one in self._sources])
        if name is not None:
            self._heads[name] = record, len(record.native.refs)
            self._descends(name)
        pen.stream.write(record)
        thread = Thread(name, pen, self._registry, version or None, self._streams)
        self._threads[name] = thread
        if name is not None:
            self._streams[name] = stream_id(name)
        early, self._early = self._early, []
        heads = {ref.offset for ref in refs}
        for source, unit in early:
            if unit.line.offset + unit.start not in heads:
                self._unmapped(source, unit)
        return thread

    def _descends(self, name: str) -> None:
        """The head of a thread's stream says who started it, as soon as both are there."""
        head, place = self._heads.get(name, (None, 0))
        origin = self._known.get(name) or self._lineage.origins.get(name)
        if head is None or head.native is None or head.parent is not None or origin is None:
            return
        head.parent = Parent(session=stream_id(origin.parent))
        head.native.refs.insert(place, origin.ref)

    def _unmapped(self, source: SourceEntry, unit: Unit[LogLine]) -> None:
        """Keeps a line that belongs to no thread; before the first one it waits for that one's stream."""
        if not self._threads:
            if len(self._early) < WAITING_MOST:
                self._early.append((source, unit))
                return
            self._begin(None, ABSENT, [])
        self._keep(self._main(), source, unit)

    @staticmethod
    def _keep(thread: Thread, source: SourceEntry, unit: Unit[LogLine]) -> None:
        pen = thread.pen
        pen.take(source, unit, received(unit.native) if unit.native is not None else None)
        pen.unmapped(kind_of(unit))

    # -- one frame ----------------------------------------------------------------------------------------------

    def _frame(self, source: SourceEntry, unit: Unit[LogLine], frame: Frame) -> None:
        request = None
        if frame.method is None:
            request = self._requests.pop((not frame.from_agent, frame.id), None)
        elif frame.method == "initialize":
            self._requests.clear()  # a new process: its request ids begin again
        name = thread_named(frame) or (request.thread if request is not None else None)
        started = self._lineage.take(frame, self._scratch.ref)
        opened = self._open(frame, request, name)
        thread = self._threads.get(name) if name is not None else None
        if thread is None and name is not None and self._speaks(frame):
            if len(self._threads) < THREADS_MOST:
                thread = self._begin(name, ABSENT, [self._scratch.ref("meta", frame.pointer)])
            else:
                self._desk.diagnose(
                    "many_threads", "more threads than get a stream", source, unit.line.number
                )
        self._ask(frame, name)
        for child in started:
            self._descends(child)
        if thread is None:
            self._unmapped(source, unit)
            return
        pen = thread.pen
        pen.take(source, unit, received(unit.native) if unit.native is not None else None)
        cited = opened or any(child in self._threads for child in started)
        if cited:
            pen.cited()
        if frame.method is None:
            mapped = request is not None and self._answer(thread, frame, request)
        elif frame.from_agent and frame.id is not None:
            mapped = self._asks(thread, frame)
        else:
            mapped = frame.from_agent and thread.notice(frame)
        if not (mapped or cited):
            pen.unmapped(kind_of(unit))

    @staticmethod
    def _speaks(frame: Frame) -> bool:
        """Whether a frame says something of its thread, which is more than that there is one."""
        if not frame.from_agent:
            return False
        if frame.method is None:
            return thread_named(frame) is not None
        return frame.method in NOTIFICATIONS or frame.id is not None

    def _open(self, frame: Frame, request: Request | None, name: str | None) -> bool:
        """Whether a frame begins a stream: it says what a thread is that nothing was heard of before."""
        if frame.method == "thread/started" and frame.from_agent:
            pointer, told = f"{frame.pointer}/params", frame.params
        elif frame.method is None and request is not None and request.method in OPENING:
            pointer, told = f"{frame.pointer}/result", frame.result
        else:
            return False
        thread = members_of(told).get("thread", ABSENT)
        if name is None or name in self._threads or len(self._threads) >= THREADS_MOST or not thread:
            return False
        self._begin(name, thread, [self._scratch.ref("meta", pointer)])
        return True

    def _ask(self, frame: Frame, name: str | None) -> None:
        """Remembers a request until it is answered."""
        if frame.method is None or frame.id is None:
            return
        while len(self._requests) >= WAITING_MOST:
            self._requests.pop(next(iter(self._requests)))
        self._requests[(frame.from_agent, frame.id)] = Request(frame.method, name)

    def _asks(self, thread: Thread, frame: Frame) -> bool:
        """A request of the server."""
        asked = thread.asks.begin(frame)
        if asked is None:
            return False
        self._requests[(True, frame.id)].asked = asked
        return True

    @staticmethod
    def _answer(thread: Thread, frame: Frame, request: Request) -> bool:
        if request.asked is not None:
            thread.asks.answered(request.asked, frame)
            return True
        if request.method == TERMINALS:
            return thread.terminals.listed(frame.result, f"{frame.pointer}/result")
        return False


def names_thread(unit: Unit[LogLine]) -> bool:
    """Whether a line names a thread."""
    frame = frame_of(unit)
    return frame is not None and thread_named(frame) is not None


def kind_of(unit: Unit[LogLine]) -> str | None:
    """The native type of a line that nothing maps: the method, with the item's type; else who wrote the line."""
    line = unit.native
    if line is None:
        return None
    frame = frame_in(line.frame, from_agent=True)
    if frame is None:
        return text_of(line.dir) or None
    if frame.method is None:
        return "response"
    item = text_of(members_of(members_of(frame.params).get("item", ABSENT)).get("type", ABSENT))
    return f"{frame.method}/{item}" if item else frame.method
