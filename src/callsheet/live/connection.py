"""A connection to an agent that somebody else has started: over TCP, TLS or a socket of the file system.

Owns connecting, sending and receiving, and letting go. How frames are told apart is a ``Framing``: lines here,
messages in ``websocket``. Nothing is ended but the connection: the agent is not ours. A peer that is gone without a
word is noticed by the system (keep-alive), never by how long an agent is silent.

Must never know: what a frame means, who may be at the other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Protocol

from callsheet.errors import UsageError, reason_of
from callsheet.harness._port.attested import Hangup
from callsheet.harness._port.live import Framed
from callsheet.live.address import Address
from callsheet.live.limits import Limits
from callsheet.live.transport import CHUNK, Cut, How, LineCutter, NotRead, Unreachable

KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""The system asks a peer that says nothing for 30 s, every 10 s, 3 times; it answers without the agent."""

_ERRNO = re.compile(r"\[Errno (\d+)\]")


class Framing(Protocol):
    """How frames are told apart on a connection."""

    @property
    def opened(self) -> bool:
        """Whether frames may be sent."""

    @property
    def over(self) -> bool:
        """Whether no frame will come any more."""

    def hello(self) -> bytes:
        """What is sent first."""

    def feed(self, data: bytes) -> list[bytes | Cut]:
        """The frames that are whole now."""

    def eof(self) -> list[bytes | Cut]:
        """What is left when nothing comes any more."""

    def replies(self) -> bytes:
        """What the framing itself has to say now."""

    def wrap(self, frame: bytes) -> bytes:
        """A frame as it is sent."""

    def bye(self) -> bytes:
        """What closes the connection from our side."""

    def hangup(self) -> Hangup:
        """How it was closed, when it was not by us."""


class Lines:
    """A frame a line."""

    opened = True
    over = False

    def __init__(self, most: int) -> None:
        self._cutter = LineCutter(most)

    def hello(self) -> bytes:
        """Nothing."""
        return b""

    def feed(self, data: bytes) -> list[bytes | Cut]:
        """The lines that are whole now."""
        return self._cutter.feed(data)

    def eof(self) -> list[bytes | Cut]:
        """A last line without its end."""
        return self._cutter.rest()

    def replies(self) -> bytes:
        """Nothing."""
        return b""

    def wrap(self, frame: bytes) -> bytes:
        """A line."""
        return frame + b"\n"

    def bye(self) -> bytes:
        """Nothing: the end of what we send is the word."""
        return b""

    def hangup(self) -> Hangup:
        """The other side sends nothing any more."""
        return Hangup(by="agent")


class Connection:
    """An open connection (``Transport``)."""

    ours = False
    pid = None
    reach = None
    stderr = ""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, framing: Framing, limits: Limits
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._framing = framing
        self._limits = limits
        self._first: list[bytes | Cut] = []
        self._gone = asyncio.Event()
        self._hangup: Hangup | None = None
        self._ending: asyncio.Task[How] | None = None

    @classmethod
    async def open(cls, address: Address, framed: Framed, limits: Limits) -> Connection:
        """Connects.

        Raises:
            Unreachable: That does not come about, or takes too long.
        """
        framing = _framing(address, framed, limits)
        try:
            async with asyncio.timeout(limits.connect):
                reader, writer = await _streams(address)
                made = cls(reader, writer, framing, limits)
                try:
                    await made._shake_hands()
                except BaseException:
                    writer.transport.abort()
                    raise
        except TimeoutError:
            raise Unreachable(f"no connection after {limits.connect:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"its certificate is not trusted: {error.verify_message}") from None
        except (OSError, UnicodeError) as error:
            raise Unreachable(_why(error)) from None
        return made

    async def _shake_hands(self) -> None:
        self._writer.write(self._framing.hello())
        while not self._framing.opened:
            data = await self._reader.read(CHUNK)
            self._first += self._framing.feed(data) if data else self._framing.eof()
            if not data and not self._framing.opened:
                raise Unreachable("the connection was closed before it was open")

    async def chunks(self) -> AsyncIterator[list[bytes | Cut]]:
        """The frames that come, as many at a time as have come, until the connection ends."""
        try:
            async for frames in self._frames():
                yield frames
        finally:
            self._gone.set()

    async def _frames(self) -> AsyncIterator[list[bytes | Cut]]:
        framing = self._framing
        if self._first:
            yield self._first
            self._first = []
        while not framing.over:
            try:
                data = await self._reader.read(CHUNK)
            except OSError as error:
                self._ended(Hangup(reason=_why(error)))
                break
            frames = framing.feed(data) if data else framing.eof()
            if replies := framing.replies():
                self._put(replies)
            if frames:
                yield frames
            if not data:
                break
        self._ended(framing.hangup())

    def _ended(self, how: Hangup) -> None:
        if self._hangup is None:
            self._hangup = Hangup(by="client") if self._ending is not None else how

    def send(self, frame: bytes) -> None:
        """Sends a frame; nothing happens when the connection is closed.

        Raises:
            NotRead: More waits to be read than may wait.
        """
        if self._ending is not None or self._gone.is_set():
            return
        if self._writer.transport.get_write_buffer_size() > self._limits.unread:
            raise NotRead(f"the agent does not read: {self._limits.unread:,} bytes wait for it")
        self._put(self._framing.wrap(frame))

    def _put(self, data: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # as with a process: its end is seen by reading
            self._writer.write(data)

    async def wait(self) -> None:
        """Waits until the connection has ended."""
        await self._gone.wait()

    async def end(self) -> How:
        """Closes the connection: a word that we go, then the connection. Bounded, idempotent."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return await asyncio.shield(self._ending)

    async def _end(self) -> How:
        if not self._gone.is_set():
            self._put(self._framing.bye())
            with contextlib.suppress(OSError, RuntimeError):
                if self._writer.can_write_eof():
                    self._writer.write_eof()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), self._limits.leave)
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), self._limits.drain)
        self._writer.transport.abort()
        return "kept"

    def outcome(self) -> Hangup:
        """How it ended, as far as that was seen by now."""
        return self._hangup or Hangup(by="client" if self._ending is not None else None)


def _why(error: Exception) -> str:
    """Why something on a connection failed; of several tries, why the first one did."""
    number = getattr(error, "errno", None)
    if isinstance(error, ssl.SSLError) or error.__class__ is socket.gaierror:
        return reason_of(error)
    found = _ERRNO.search(str(error)) if number is None else None
    number = int(found.group(1)) if found is not None else number
    return os.strerror(number) if isinstance(number, int) else reason_of(error)


def check_framing(address: Address, framed: Framed) -> None:
    """Makes sure that frames can be told apart as they are there.

    Raises:
        UsageError: A library is missing.
    """
    if framed == "messages" and find_spec("websockets") is None:
        raise UsageError(f"{address.shown}: needs websockets: pip install 'callsheet[address]'")


def _framing(address: Address, framed: Framed, limits: Limits) -> Framing:
    if framed == "lines":
        return Lines(limits.line)
    from callsheet.live.websocket import WebSocket

    return WebSocket(address, limits.line)


async def _streams(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.host is None:
        return await asyncio.open_unix_connection(address.path, limit=4 * CHUNK)
    secure = ssl.create_default_context() if address.scheme == "wss" else None
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=secure, limit=4 * CHUNK)
    plug = writer.get_extra_info("socket")
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            plug.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return reader, writer
