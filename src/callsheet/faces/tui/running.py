"""A session with an agent that runs, as the screen gets it: opened, turns, controls, the end.

Owns the way from the live shell's events to rows. What the agent says is recorded by the shell whatever happens here.

Must never know: the screen, protocols.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from callsheet.errors import CallsheetError, SourceError, reason_of
from callsheet.harness._port.live import LiveAgent
from callsheet.live import Address, Closed, Session, Turn, Unopened, open_session, prepare
from callsheet.live.answers import AnswerPort
from callsheet.records import Record, Unknown, decode
from callsheet.rows.live import LiveRows
from callsheet.seam import (
    Answer,
    Event,
    Installed,
    Missing,
    Receipt,
    Rejected,
    TurnResult,
    Unusable,
    Wish,
)
from callsheet.wire.blobs import blob_path


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be run.

    Attributes:
        agent: The adapter.
        command: What starts the agent; found in PATH when not given.
        at: Where it listens, if it is running already.
        wish: What is wanted of the session.
        prompt: The first prompt; asked for when there is none.
        out: Where the bundle goes.
        port: Answers requests in the person's place; None when they answer themselves.
    """

    agent: LiveAgent
    command: tuple[str, ...] | None = None
    at: Address | None = None
    wish: Wish
    prompt: str | None = None
    out: Path
    port: AnswerPort | None = None


class NotOpened(CallsheetError):
    """The agent is not there, or did not start: nothing ran."""


class RecordFiles:
    """The streams of a bundle that is being written, read again record by record."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle
        self._stack = ExitStack()
        self._files: dict[str, tuple[BinaryIO, array[int]]] = {}

    def read(self, stream: str, number: int) -> Record | Unknown:
        """A record by its stream and number.

        Raises:
            SourceError: It is not there.
        """
        if stream not in self._files:
            path = self._bundle / "streams" / f"{stream}.jsonl"
            try:
                self._files[stream] = (self._stack.enter_context(path.open("rb")), array("Q", [0]))
            except OSError as error:
                raise SourceError(reason_of(error), path=str(path)) from None
        file, ends = self._files[stream]
        if number + 1 >= len(ends):
            file.seek(ends[-1])
            for line in file:
                if line.endswith(b"\n"):
                    ends.append(ends[-1] + len(line))
        if number + 1 >= len(ends):
            raise SourceError(f"record {number} is not there", path=f"{self._bundle}/streams/{stream}.jsonl")
        file.seek(ends[number])
        return decode(file.read(ends[number + 1] - ends[number]).rstrip(b"\n"))

    def blob(self, name: str) -> bytes:
        """A blob of the bundle."""
        return blob_path(self._bundle, name).read_bytes()

    def close(self) -> None:
        """Lets go of the files."""
        self._stack.close()
        self._files.clear()


class Running:
    """One session with an agent.

    Args:
        wanted: What is to be run.

    Attributes:
        name: What it is called on the screen.
        rows: Its rows.
        result: How the last turn ended.
        closed: How the session ended.
        busy: A turn is running.
        on_end: Called when a turn has its result.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.name = wanted.agent.name
        self.rows = LiveRows(self._read, self._blob)
        self.result: TurnResult | None = None
        self.closed: Closed | None = None
        self.busy = False
        self.on_end: Callable[[], None] = lambda: None
        self._session: Session | None = None
        self._files: RecordFiles | None = None
        self._prompts: asyncio.Queue[str | None] = asyncio.Queue()
        self._closing: asyncio.Task[Closed] | None = None

    def _read(self, stream: str, number: int) -> Record | Unknown:
        if self._files is None:
            raise SourceError(f"stream {stream} is not open")
        return self._files.read(stream, number)

    def _blob(self, name: str) -> bytes:
        if self._files is None:
            raise KeyError(name)
        return self._files.blob(name)

    @property
    def bundle(self) -> Path | None:
        """The bundle that is being recorded."""
        return self._session.bundle if self._session is not None else None

    async def open(self) -> None:
        """Finds and starts the agent.

        Raises:
            NotOpened: It is not there, or did not start.
            SourceError: Nothing can be recorded.
        """
        wanted = self.wanted
        name = wanted.agent.name
        found = wanted.at or await prepare(wanted.agent, wanted.command)
        version = None
        match found:
            case Address():
                pass
            case Missing():
                raise NotOpened(f"{name}: not found: {', '.join(found.looked_for)}")
            case Unusable():
                raise NotOpened(f"{name}: {found.command[0]}: {found.reason}")
            case Installed():
                version = found.version
        wish = msgspec.structs.replace(wanted.wish, version=version)
        try:
            opened = await open_session(wanted.agent, found, wish, out=wanted.out, port=wanted.port)
        except OSError as error:
            place = str(error.filename or wanted.out)
            raise SourceError(f"nothing can be recorded: {reason_of(error)}", path=place) from None
        if isinstance(opened, Unopened):
            tail = opened.stderr.strip().splitlines()
            more = f" ({tail[-1][:200]})" if tail else ""
            raise NotOpened(f"{name}: did not start: {opened.reason}{more}")
        self._session = opened
        self._files = RecordFiles(opened.bundle)
        if wanted.prompt is not None:
            self.prompt(wanted.prompt)

    async def events(self) -> AsyncIterator[Event]:
        """The events of turn after turn, until the session is closed."""
        session = self._session
        if session is None:
            return
        while self._closing is None:
            prompt = await self._prompts.get()
            if prompt is None:
                break
            self.busy = True
            turn: Turn = session.start(prompt)
            async for event in turn:
                yield event
            self.result = await turn.result()
            self.busy = False
            self.on_end()
        self.closed = await self.close()
        async for event in session.rest():
            yield event

    # -- controls -----------------------------------------------------------------------------------------------

    def prompt(self, text: str) -> Receipt | None:
        """Begins the next turn, or adds words to the one that runs; None when a turn begins."""
        if self._session is None or self._closing is not None:
            return Rejected("the session is closed")
        if self.busy:
            return self._session.steer(text)
        self._prompts.put_nowait(text)
        return None

    def answer(self, request_id: str, answer: Answer) -> Receipt:
        """The person's answer to a request."""
        if self._session is None:
            return Rejected("the session is not open")
        return self._session.answer(request_id, answer, by="user")

    def interrupt(self) -> Receipt:
        """Asks the agent to break off."""
        return self._session.interrupt() if self._session is not None else Rejected("nothing is running")

    async def close(self) -> Closed:
        """Ends the session and the agent."""
        assert self._session is not None
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._session.close())
            self._prompts.put_nowait(None)
        return await asyncio.shield(self._closing)

    async def leave(self) -> None:
        """Ends everything; may be called whatever has happened so far."""
        if self._session is not None:
            self.closed = await self.close()
        if self._files is not None:
            self._files.close()
