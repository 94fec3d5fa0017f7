"""Agents at addresses, for tests: any program that speaks over its standard streams, served where one can connect.

Owns ``listening``. Every connection gets a program of its own, whose lines are the frames: messages of a WebSocket
(``ws``), or lines (``tcp``, ``unix``). The program ends when its connection does, and the connection when the program
does; the listener stays until it is closed.

Must never know: what a frame means.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

LINE_MOST = 64 << 20
PATIENCE = 2.0
"""Seconds that a program gets to go when its connection is closed."""


@contextmanager
def listening(
    command: Sequence[str],
    scheme: Literal["ws", "tcp", "unix"] = "tcp",
    *,
    folder: Path | None = None,
    token: str | None = None,
) -> Iterator[str]:
    """Serves a program at an address of this machine; gives the address.

    Args:
        command: Starts the program.
        scheme: How.
        folder: Where the socket's file goes (``unix``).
        token: A bearer token without which nobody gets in (``ws``).
    """
    ready = threading.Event()
    over = asyncio.Event()
    address = ""
    loop: asyncio.AbstractEventLoop | None = None

    async def serve() -> None:
        nonlocal address, loop
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            if scheme == "ws":
                address = await _messages(stack, command, token)
            else:
                address = await _lines(stack, command, folder if scheme == "unix" else None)
            ready.set()
            await over.wait()

    # What is still being played when all is over is broken off, and waited for.
    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        if not ready.wait(30):
            raise RuntimeError(f"nothing listens at {scheme}://")
        yield address
    finally:
        if loop is not None:
            loop.call_soon_threadsafe(over.set)
        thread.join(30)


async def _lines(stack: contextlib.AsyncExitStack, command: Sequence[str], folder: Path | None) -> str:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def put(frame: bytes) -> None:
            writer.write(frame + b"\n")
            await writer.drain()

        try:
            await _played(command, _lines_of(reader), put)
        finally:
            writer.close()

    if folder is not None:
        path = str(folder / "agent.sock")
        server = await asyncio.start_unix_server(connected, path, limit=LINE_MOST)
        address = f"unix://{path}"
    else:
        server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=LINE_MOST)
        address = f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await stack.enter_async_context(server)
    return address


async def _messages(stack: contextlib.AsyncExitStack, command: Sequence[str], token: str | None) -> str:
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Request, Response

    async def connected(peer: ServerConnection) -> None:
        async def frames() -> AsyncIterator[bytes]:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    yield bytes(await peer.recv(decode=False))

        async def put(frame: bytes) -> None:
            with contextlib.suppress(ConnectionClosed):
                await peer.send(frame, text=True)

        await _played(command, frames(), put)

    def check(peer: ServerConnection, request: Request) -> Response | None:
        if token is None or request.headers.get("Authorization") == f"Bearer {token}":
            return None
        return peer.respond(401, "no token\n")

    server = serve(
        connected,
        "127.0.0.1",
        0,
        family=socket.AF_INET,
        compression=None,
        max_size=None,
        ping_interval=None,
        close_timeout=PATIENCE,
        process_request=check,
    )
    made = await stack.enter_async_context(server)
    return f"ws://127.0.0.1:{next(iter(made.sockets)).getsockname()[1]}/acp"


async def _played(
    command: Sequence[str], frames: AsyncIterator[bytes], put: Callable[[bytes], Awaitable[None]]
) -> None:
    """One connection and its program, until one of them ends."""
    program = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LINE_MOST,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    stdin, stdout = program.stdin, program.stdout

    async def there() -> None:
        async for frame in frames:
            with contextlib.suppress(ConnectionError):
                stdin.write(frame + b"\n")
                await stdin.drain()

    async def back() -> None:
        async for line in _lines_of(stdout):
            await put(line)

    ways = [asyncio.create_task(there()), asyncio.create_task(back())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(program.wait(), PATIENCE)
        finally:  # also when the listener is closed meanwhile
            if program.returncode is None:
                program.kill()
            for way in ways:
                way.cancel()
            await asyncio.gather(program.wait(), *ways, return_exceptions=True)


async def _lines_of(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines without their ends; what a peer that is gone left over is one, too."""
    with contextlib.suppress(ConnectionError):
        while line := await reader.readline():
            yield line.rstrip(b"\n")
