"""A stored session, as the screen gets it: its beginning at once, the whole when it is read.

A bundle or a stream is read in a thread. What an agent stored is imported by a process of its own, so that reading
hundreds of megabytes slows no key; its beginning is imported here, and its rows are provisional. When it is to be read
again, the library's watcher says.

Must never know: how a sheet is drawn, native shapes.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from itertools import chain, repeat
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from callsheet.errors import CallsheetError, SourceError
from callsheet.faces.tui.reading import command
from callsheet.harness._port import Session as NativeSession
from callsheet.library.opening import OpenSession, Reading, bundles_in, is_stream, open_sessions
from callsheet.library.watching import WAITING, Due, Happened, Watched, Watcher
from callsheet.pairing import Tally
from callsheet.records import Session
from callsheet.records.bundle import Bundle, Diagnostic, is_bundle, stream_id
from callsheet.rows import Reported, Roll, Rows, Sheet, View

HEAD_BYTES = 200_000
"""Bytes of a session that are read at once."""
WHOLE_AT_ONCE = 2_000_000
"""Bytes of a stream up to which there is no need to show its beginning first."""
LOOK_AGAIN = 1.0
"""Seconds between two looks at a source that may grow; more where reading it takes longer."""
VIEW = View(harness=False)


class Shown(Struct, kw_only=True):
    """What a screen shows of a session: all at once, in place of what it showed before.

    Attributes:
        rows: Its rows.
        session: Its head, if it has one.
        tally: Counts of all its streams.
        provisional: It is still being read, and anything may change.
        bundle: Where its evidence can be looked up.
        growing: The bundle is still being recorded.
        hidden: What has no row, and how often.
        doubts: What was worth saying about its sources.
        usage: What it last reported of its use.
    """

    rows: Rows
    session: Session | None = None
    tally: Tally = field(default_factory=Tally)
    provisional: bool = False
    bundle: Path | None = None
    growing: bool = False
    hidden: dict[str, int] = {}
    doubts: Sequence[Diagnostic] = ()
    usage: Reported = field(default_factory=Reported)


class Feed(Protocol):
    """Where a screen gets a session from: a store, or one that is still being written.

    Attributes:
        name: What the person named.
        tell: Takes what happened to the source, in words.
    """

    name: str
    tell: Callable[[str], None]

    def looks(self) -> AsyncIterator[Shown]:
        """What to show, each in place of the one before; ends when nothing more can change.

        Raises:
            CallsheetError: Nothing can be shown.
        """
        ...

    def close(self) -> None:
        """Lets go of files and processes."""
        ...


class Several(CallsheetError):
    """The source holds more than one session.

    Attributes:
        folder: Where their bundles are, as long as ``stack`` is not closed.
        name: What the person named.
    """

    def __init__(self, name: str, folder: Path, stack: ExitStack) -> None:
        super().__init__(f"{name}: several sessions")
        self.name = name
        self.folder = folder
        self.stack = stack


def shown_of(session: OpenSession, stack: ExitStack, *, bundle: Path | None, provisional: bool) -> Shown:
    """Opens every stream of a session; they stay open as long as the stack."""
    sheets = stack.enter_context(session.sheets())
    main = sheets[session.main]
    roll = Roll(session.main, sheets)
    return Shown(
        rows=roll,
        session=main.session,
        tally=roll.tally(),
        provisional=provisional,
        bundle=bundle,
        hidden=dict(roll.hidden()),
        doubts=session.diagnostics,
        usage=main.usage,
    )


class Stored:
    """A feed of one stored session.

    Args:
        source: A bundle, a stream, or what an agent stored.
        stream: Only this stream of a bundle, and what it leads to.
        kind: What it is, where that is not to be guessed.
        growing: An agent is writing it: what has no result since the last prompt may be running.

    Attributes:
        tell: Takes what happened to the source, in words.
    """

    def __init__(
        self,
        source: Path,
        *,
        name: str | None = None,
        stream: str | None = None,
        kind: str | None = None,
        growing: bool = False,
    ) -> None:
        self.path = source
        self._kind = kind
        self.tell: Callable[[str], None] = _ignore
        self._growing = growing
        self.name = name or str(source)
        self._stream = stream
        self._stack = ExitStack()
        self._process: asyncio.subprocess.Process | None = None
        self.problems: list[str] = []

    @classmethod
    def of_nothing(cls, name: str) -> Stored:
        """A feed with nothing to read yet: of a session that runs."""
        return cls(Path(), name=name)

    def close(self) -> None:
        """Lets go of files and processes."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
        self._stack.close()

    async def looks(self) -> AsyncIterator[Shown]:
        """The beginning, where the whole takes a while; then the whole, and the whole again when it has grown."""
        path = self.path
        if not path.exists():
            raise SourceError("no such file or folder", path=self.name)
        own = is_bundle(path) or (path.is_file() and is_stream(path))
        changes = self._writings() if own else self._due()
        with ExitStack() as early:
            first = await asyncio.to_thread(self._head_of_stream if own else self._head_of_native, early)
            if first is not None:
                yield first
            is_read = False
            async for _ in changes:
                before = self._stack
                self._stack = ExitStack()
                try:
                    shown = await asyncio.to_thread(self._whole, path if own else await self._import())
                except BaseException as error:
                    self._stack.close()
                    self._stack = before
                    if not isinstance(error, SourceError) or isinstance(error, Several):
                        raise
                    waits = self._growing and error.message.endswith(WAITING)
                    if not is_read and not waits:
                        raise
                    self.tell(f"{'waiting' if waits else 'cannot be read now'}: {error}")
                    continue
                is_read = True
                yield shown
                before.close()
                early.close()

    async def _due(self) -> AsyncIterator[None]:
        """When what an agent stored is to be read: at once, and whenever it was written since."""
        watcher = Watcher([(self.path, self._kind)], Watched, wants=self._is_wanted)
        if self._stream is not None:
            await asyncio.to_thread(list, watcher.look())
            if not watcher.watched:  # it is the stream of an agent within a session
                watcher = Watcher([(self.path, self._kind)], Watched)
        clock = watcher.clock
        for is_first in chain([True], repeat(False)):
            seen = await asyncio.to_thread(lambda: list(watcher.look()))
            due = [one.watched for one in seen if isinstance(one, Due)]
            if is_first or due:
                begun = clock()
                yield
                watcher.paid(begun)
                for watched in due:
                    watched.is_told = True
            for one in seen:
                if isinstance(one, Happened):
                    self.tell(f"{Path(one.path).name} {one.message}")
            await asyncio.sleep(watcher.pace.every)

    def _is_wanted(self, session: NativeSession) -> bool:
        return self._stream is None or stream_id(session.native_id) == self._stream

    async def _writings(self) -> AsyncIterator[None]:
        """When a bundle or a stream is to be read: at once, and whenever it was written since."""
        clock = asyncio.get_running_loop().time
        while True:
            mark, begin = self._mark(), clock()
            yield
            pause = max(LOOK_AGAIN, 3 * (clock() - begin))
            while self._mark() in (mark, None):
                await asyncio.sleep(pause)

    def _mark(self) -> tuple[tuple[str, int, int], ...] | None:
        """Changes when a bundle or a stream was written to; None while it is not there."""
        path = self.path
        files = [path]
        if path.is_dir():
            files = sorted([*path.glob("*.json"), *path.glob("streams/*.jsonl")])
        found = []
        for file in files:
            try:
                about = file.stat()
            except OSError:
                continue
            found.append((file.name, about.st_mtime_ns, about.st_size))
        return tuple(found) or None

    def _reading(self, *, provisional: bool = False) -> Reading:
        return Reading(
            near=Path.cwd(),
            view=VIEW,
            outlined=True,
            provisional=provisional,
            on_bad=lambda error: self.problems.append(str(error)) if len(self.problems) < 20 else None,
        )

    def _whole(self, path: Path) -> Shown:
        sessions = self._stack.enter_context(
            open_sessions(
                str(path),
                self._reading(provisional=self._growing),
                stream=self._stream,
                on_failure=self.problems.append,
            )
        )
        session = next(iter(sessions))
        session.name = self.name
        bundle = path if is_bundle(path) else None
        return shown_of(session, self._stack, bundle=bundle, provisional=False)

    # -- the beginning ------------------------------------------------------------------------------------------

    def _head_of_stream(self, stack: ExitStack) -> Shown | None:
        """The beginning of a stream that takes a while to read."""
        blob: Callable[[str], bytes] | None = None
        if is_bundle(self.path):
            bundle = Bundle(self.path)
            entries = bundle.manifest.streams
            main = next((one for one in entries if one.id == self._stream or one.parent is None), None)
            if main is None:
                return None
            file = stack.enter_context(bundle.open(main.file))
            blob, name = bundle.blob, main.id
        else:
            file, name = stack.enter_context(self.path.open("rb")), self.path.stem
        if file.seek(0, 2) < WHOLE_AT_ONCE:
            return None
        file.seek(0)
        data = file.read(HEAD_BYTES)
        head = io.BytesIO(data[: data.rfind(b"\n") + 1])
        sheet = Sheet(head, name=self.name, blob=blob, view=VIEW, provisional=True, outlined=True)
        roll = Roll(name, {name: sheet})
        return (
            Shown(rows=roll, session=sheet.session, tally=roll.tally(), provisional=True, usage=sheet.usage)
            if len(roll)
            else None
        )

    def _head_of_native(self, stack: ExitStack) -> Shown | None:
        """The beginning of a file as an agent stored it, imported like a file of its own.

        Where that makes no session (a database, a first line that is longer), there is nothing to show yet.
        """
        if not self.path.is_file():
            return None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="callsheet-")))
        with self.path.open("rb") as file:
            data = file.read(HEAD_BYTES)
        head = folder / self.path.name
        head.write_bytes(data if len(data) < HEAD_BYTES else data[: data.rfind(b"\n") + 1])
        inner = stack.enter_context(ExitStack())
        try:
            sessions = inner.enter_context(
                open_sessions(str(head), self._reading(provisional=True), on_failure=_ignore)
            )
            shown = shown_of(next(iter(sessions)), inner, bundle=None, provisional=True)
        except CallsheetError:
            return None
        for source in (shown.session.sources or ()) if shown.session else ():
            source.path, source.size = self.name, self.path.stat().st_size
        return shown if len(shown.rows) else None

    # -- the whole ----------------------------------------------------------------------------------------------

    async def _import(self) -> Path:
        """Imports what an agent stored, in a process; returns the bundle."""
        out = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="callsheet-")))
        self._process = process = await asyncio.create_subprocess_exec(
            *command(self.path, out, settled=self._growing, kind=self._kind, stream=self._stream),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await process.communicate()
        except asyncio.CancelledError:
            if process.returncode is None:
                process.terminate()
            raise
        self.problems += said.decode("utf-8", "replace").splitlines()[:20]
        found = await asyncio.to_thread(bundles_in, out)
        if not found:
            raise SourceError(self.problems[-1] if self.problems else "no session here can be read")
        if self._stream is not None:
            found = [one for one in found if any(e.id == self._stream for e in Bundle(one).manifest.streams)]
            if not found:
                raise SourceError(f"no stream {self._stream} in any session here", path=self.name)
        if len(found) > 1:
            raise Several(self.name, out, self._stack.pop_all())
        return found[0]


def _ignore(_: str) -> None:
    """The whole file will say it."""
