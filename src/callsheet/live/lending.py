"""What an agent may use of its client: files and terminals, inside the session's folder only.

Owns the two file methods and the five terminal methods that agents of the Agent Client Protocol, version 1, call. A
path must be absolute, without ``..``, and lie inside the folder when every symbolic link is followed; it is then opened
step by step without following any, so that nothing can be exchanged in between. Only regular files of UTF-8 text are
read.
A terminal's command runs where the folder is, and ends with the session at the latest, with all that it started.

Must never know: who asks, what is recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.errors import reason_of
from callsheet.live.guard import Guarded
from callsheet.seam import NotServed, Serve, Served

FILE_MOST = 64 << 20
"""Bytes of a file that is read."""
OUTPUT_MOST = 16 << 20
"""Bytes of a terminal's output that are kept, whatever the agent asks for."""
OUTPUT_USUAL = 1 << 20
TERMINALS_MOST = 64
AT_ONCE = 4
"""Files that are read or written at once."""
PATIENCE = 2.0
"""Seconds that a command gets to go when it is asked to."""
DRAIN = 0.5
"""Seconds that the rest of an output is waited for when its process is gone."""


class _Refusal(Exception):
    """The request is not carried out."""

    def __init__(self, reason: str, kind: Any = "invalid") -> None:
        super().__init__(reason)
        self.outcome = NotServed(reason, kind)


class Terminal:
    """A command that an agent started through its client."""

    def __init__(self, process: Guarded, limit: int) -> None:
        self._process = process
        self._limit = limit
        self._kept = bytearray()
        self._cut = False
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while chunk := await stream.read(1 << 16):
            self._kept += chunk
            if len(self._kept) > self._limit:
                self._cut = True
                start = len(self._kept) - self._limit
                while start < len(self._kept) and self._kept[start] & 0xC0 == 0x80:
                    start += 1  # a character is cut off whole
                del self._kept[:start]

    def output(self) -> dict[str, Any]:
        """What it wrote so far, and how it ended if it did."""
        told: dict[str, Any] = {"output": self._kept.decode("utf-8", "replace"), "truncated": self._cut}
        status = self.status()
        return told if status is None else {**told, "exitStatus": status}

    def status(self) -> dict[str, Any] | None:
        """How the command ended; None while it runs."""
        code = self._process.returncode
        if code is None:
            return None
        if code >= 0:
            return {"exitCode": code, "signal": None}
        with contextlib.suppress(ValueError):
            return {"exitCode": None, "signal": signal.Signals(-code).name}
        return {"exitCode": None, "signal": f"signal {-code}"}

    async def ended(self) -> dict[str, Any]:
        """Waits for the command; the output is whole then, unless something it left behind still writes."""
        await self._process.wait()
        await asyncio.wait({self._reading}, timeout=DRAIN)
        return self.status() or {}

    async def kill(self) -> None:
        """Ends the command and all that it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._process.signal(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE)
                break
        await self._process.sweep()

    async def release(self) -> None:
        """Ends it and lets go of its output."""
        await self.kill()
        await asyncio.wait({self._reading}, timeout=DRAIN)
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        await self._process.close()


class Lender:
    """Serves one session.

    Args:
        folder: The session's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._terminals: dict[str, Terminal] = {}
        self._count = 0
        self._closed = False
        self._files = asyncio.Semaphore(AT_ONCE)

    async def serve(self, wanted: Serve) -> Served | NotServed:
        """Carries a request out, or says why not."""
        method = METHODS.get(wanted.method)
        if method is None:
            return NotServed(f"{wanted.method} is not served", "invalid")
        params: Any = None
        try:
            params = msgspec.json.decode(wanted.params)
            if not isinstance(params, dict):
                raise _Refusal("params must be an object")
            return Served(Raw(msgspec.json.encode(await method(self, params))))
        except _Refusal as refusal:
            return refusal.outcome
        except FileNotFoundError as error:
            place = error.filename or params.get("path") or params.get("command")
            return NotServed(f"Resource not found: {place} (No such file or directory)", "missing")
        except OSError as error:
            return NotServed(reason_of(error), "failed")
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return NotServed("params are no JSON that can be read", "invalid")

    async def close(self) -> None:
        """Ends every terminal, and lends none any more; may be called twice."""
        self._closed = True
        terminals, self._terminals = list(self._terminals.values()), {}
        await asyncio.gather(*(terminal.release() for terminal in terminals))

    # -- places -------------------------------------------------------------------------------------------------

    def _inside(self, path: Any) -> tuple[str, ...]:
        """The steps from the folder to a place inside it, free of symbolic links; empty for the folder itself."""
        if not isinstance(path, str) or not path or "\0" in path:
            raise _Refusal("path must be a text")
        if not os.path.isabs(path):  # noqa: PTH117 (the text as it came)
            raise _Refusal(f"{path}: the path must be absolute")
        if ".." in Path(path).parts:
            raise _Refusal(f"{path}: leads out of the folder, or may", "refused")
        try:
            real = Path(os.path.realpath(path))
            return real.relative_to(self._folder).parts
        except (OSError, ValueError):
            raise _Refusal(f"{path}: is outside of {self._folder}", "refused") from None

    def _open(self, path: str, flags: int, *, make: bool = False) -> int:
        """Opens a file inside the folder; no step may be a symbolic link by now."""
        steps = self._inside(path)
        if not steps:
            raise _Refusal(f"{path}: is a folder")
        at = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for step in steps[:-1]:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(step, dir_fd=at)
                below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = below
            # Not to wait for ever at a pipe or a device.
            held = os.open(steps[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=at)
            if not stat.S_ISREG(os.fstat(held).st_mode):
                os.close(held)
                raise _Refusal(f"{path}: is no regular file")
            return held
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _Refusal(f"{path}: changed while it was opened, or is no file", "refused") from None
            error.filename = path
            raise
        finally:
            os.close(at)

    # -- files --------------------------------------------------------------------------------------------------

    async def read_text_file(self, params: dict[str, Any]) -> dict[str, Any]:
        """A file's text, or some lines of it."""
        line, limit = _number(params, "line", least=1), _number(params, "limit")
        async with self._files:
            text = await asyncio.to_thread(self._read, params.get("path"))
        if line is not None or limit is not None:
            lines = _lines(text)
            start = (line or 1) - 1
            text = "".join(lines[start:] if limit is None else lines[start : start + limit])
        return {"content": text}

    def _read(self, path: Any) -> str:
        held = self._open(path, os.O_RDONLY)
        with os.fdopen(held, "rb") as file:
            size = os.fstat(held).st_size
            if size > FILE_MOST:
                raise _Refusal(f"{path}: has {size:,} bytes, and at most {FILE_MOST:,} are read", "failed")
            data = file.read(FILE_MOST + 1)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _Refusal(f"{path}: is no UTF-8 text (byte {error.start})", "failed") from None

    async def write_text_file(self, params: dict[str, Any]) -> dict[str, Any]:
        """Writes a file, and the folders that it stands in."""
        content = params.get("content")
        if not isinstance(content, str):
            raise _Refusal("content must be a text")
        async with self._files:
            await asyncio.to_thread(self._write, params.get("path"), content.encode("utf-8"))
        return {}

    def _write(self, path: Any, data: bytes) -> None:
        held = self._open(path, os.O_WRONLY | os.O_CREAT, make=True)
        with os.fdopen(held, "wb") as file:
            file.truncate(0)
            file.write(data)

    # -- terminals ----------------------------------------------------------------------------------------------

    async def create(self, params: dict[str, Any]) -> dict[str, Any]:
        """Starts a command: with arguments as it is, a line without any through the shell."""
        command, arguments = params.get("command"), params.get("args") or []
        if not isinstance(command, str) or not command or not _texts(arguments):
            raise _Refusal("command must be a text, args a list of texts")
        if len(self._terminals) >= TERMINALS_MOST:
            raise _Refusal(f"{TERMINALS_MOST} terminals are open: release some", "failed")
        where = (
            self._folder.joinpath(*self._inside(params["cwd"]))
            if params.get("cwd") is not None
            else self._folder
        )
        environment = {**os.environ, **_variables(params.get("env"))}
        limit = _number(params, "outputByteLimit")
        process = await Guarded.start(
            [command, *arguments] if arguments else ["/bin/sh", "-c", command],
            cwd=where,
            environment=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self._count += 1
        name = f"terminal-{self._count}"
        terminal = Terminal(process, min(OUTPUT_USUAL if limit is None else limit, OUTPUT_MOST))
        if self._closed:  # while it was started
            await terminal.release()
            raise _Refusal("the session is being closed", "failed")
        self._terminals[name] = terminal
        return {"terminalId": name}

    def _terminal(self, params: dict[str, Any]) -> Terminal:
        found = self._terminals.get(str(params.get("terminalId")))
        if found is None:
            raise _Refusal(f"no terminal {params.get('terminalId')}", "missing")
        return found

    async def output(self, params: dict[str, Any]) -> dict[str, Any]:
        """What a command wrote so far."""
        return self._terminal(params).output()

    async def wait_for_exit(self, params: dict[str, Any]) -> dict[str, Any]:
        """How a command ended, when it has."""
        return await self._terminal(params).ended()

    async def kill(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ends a command; its output can still be read."""
        await self._terminal(params).kill()
        return {}

    async def release(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ends a command and forgets it."""
        terminal = self._terminal(params)
        del self._terminals[params["terminalId"]]
        await terminal.release()
        return {}


METHODS: dict[str, Callable[[Lender, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "fs/read_text_file": Lender.read_text_file,
    "fs/write_text_file": Lender.write_text_file,
    "terminal/create": Lender.create,
    "terminal/output": Lender.output,
    "terminal/wait_for_exit": Lender.wait_for_exit,
    "terminal/kill": Lender.kill,
    "terminal/release": Lender.release,
}
"""What is served, by the protocol's words."""


def _lines(text: str) -> list[str]:
    """Lines that end with LF alone, as an editor counts them: other breaks are part of a line."""
    pieces = text.split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _number(params: dict[str, Any], name: str, least: int = 0) -> int | None:
    value = params.get(name)
    if value is None:
        return None
    if type(value) is not int or value < least:
        raise _Refusal(f"{name} must be a whole number from {least}")
    return value


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and "\0" not in one for one in value)


def _variables(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in value or ():
        if not isinstance(one, dict) or not _texts([one.get("name"), one.get("value")]) or "=" in one["name"]:
            raise _Refusal("env must be a list of names and values")
        found[one["name"]] = one["value"]
    return found
