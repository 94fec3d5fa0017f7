"""Frame logs as sources, the same for every protocol: which files are some, and the passes over one.

Owns: the guess that a file is a frame log (by its content), the one session per file (a connection; the sessions in it
are streams of one bundle), and writing what the fold settles. A protocol says which lines are its frames, which session
a line names, and what has to be known before the fold begins.

Must never know: what a frame means.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import PurePosixPath

from msgspec import Struct

from callsheet.harness._port import Desk, Folder, Session, Stream
from callsheet.harness._port.attested import Attested
from callsheet.harness._port.fold import Folding, Settled
from callsheet.harness._port.units import Hole, native_units
from callsheet.harness._port.veil import Veil
from callsheet.records import Session as SessionRecord
from callsheet.records import SourceEntry
from callsheet.wire.damage import BOM

HEAD = 1 << 20
"""Bytes in which a session's name is looked for."""
LOOKS = 50
"""Lines that are looked at to guess the kind of a file."""
_AROUND = b" \t\r" + BOM
"""What may stand around a line's value."""


class FrameLogs(Struct):
    """The adapter of one protocol's logs (``harness._port.Stored``).

    Attributes:
        kind: Source kind.
        is_frame: Whether a line holds a frame of this protocol, and of no other.
        named: The session that a line names; empty for one that names none.
        fold: The first pass over a log, and the fold that then reads it; None for a log without a unit.
        by_session: What no session of the log says is named after the first one that it names, and not after the file.
    """

    kind: str
    is_frame: Callable[[bytes], bool]
    named: Callable[[bytes], str | None]
    fold: Callable[[Desk, Veil, SourceEntry], Folding | None]
    by_session: bool = True

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether one of a file's first lines is a frame of this protocol."""
        del name  # any name will do
        lines = (line.strip(_AROUND) for line in head.split(b"\n", LOOKS)[:LOOKS])
        return any(self.is_frame(line) for line in lines if line)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """A file is one session; of a folder, every file that is recognised."""
        if folder.is_file(path):
            return [self._one(path, folder)]
        return [
            self._one(file, folder)
            for file in folder.files(path, "**/*.jsonl")
            if self.recognises(PurePosixPath(file).name, folder.head(file))
        ]

    def _one(self, path: str, folder: Folder) -> Session:
        named = (self.named(line.strip(_AROUND)) for line in folder.head(path, HEAD).split(b"\n"))
        name = next((one for one in named if one), None) or PurePosixPath(path).stem
        return Session(self.kind, name, path, None, (path,))

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """A log lies wherever its client put it."""
        del environ, home
        return []

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one log."""
        source = desk.source(session.main, self.kind)
        veil = Veil(desk)
        inner = self.fold(desk, veil, source)
        if inner is None:
            return
        fold = Attested(inner)
        unnamed = session.native_id if self.by_session else PurePosixPath(session.main).stem
        with ExitStack() as stack:
            streams: dict[str | None, Stream] = {}

            def write(settled: list[Settled]) -> None:
                for name, record in settled:
                    stream = streams.get(name)
                    if stream is None:
                        parent = record.parent if isinstance(record, SessionRecord) else None
                        opened = desk.stream(name or unnamed, parent.session if parent is not None else None)
                        stream = streams[name] = stack.enter_context(opened)
                    stream.write(record)

            for unit in native_units(veil.lines(source), fold.reading):
                write(fold.gap(source, unit) if isinstance(unit, Hole) else fold.feed(source, unit))
            write(fold.close())
