"""Frame logs as sources: which files are some, and the two passes over one.

Owns: the guess that a file is a frame log of this protocol (by its content), the one session per file (a
connection; its ACP sessions are streams of one bundle), and writing what the fold settles.

Must never know: what a frame means.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import PurePosixPath

import msgspec

from callsheet.harness._port import Desk, Folder, Session, Stream
from callsheet.harness._port.attested import Attested
from callsheet.harness._port.fold import Settled
from callsheet.harness._port.parts import ABSENT, members_of, text_of
from callsheet.harness._port.units import Hole, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.acp.fold import Fold
from callsheet.harness.acp.shapes import frames_of, log_reading, says_acp
from callsheet.harness.acp.survey import Survey

KIND = "acp"
HEAD = 1 << 20
"""Bytes in which a session id is looked for."""
LINES_MOST = 50
"""Lines that are looked at to guess the kind of a file."""


class Acp:
    """The adapter (``harness._port.Stored``)."""

    kind = KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether one of a file's first lines is a frame of this protocol."""
        del name  # any name will do
        return any(says_acp(line) for line in head.split(b"\n")[:LINES_MOST] if line.strip())

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
        name = session_in(folder.head(path, HEAD)) or PurePosixPath(path).stem
        return Session(KIND, name, path, path, (path,))

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """No agent stores frame logs by itself."""
        del environ, home
        return []

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one frame log."""
        source = desk.source(session.main, KIND)
        veil = Veil(desk)
        survey = Survey(veil, source)
        known = survey.run()
        if not survey.units:
            return
        fold = Attested(Fold(desk, veil, [source], known))
        with ExitStack() as stack:
            streams: dict[str | None, Stream] = {}

            def write(settled: list[Settled]) -> None:
                for name, record in settled:
                    stream = streams.get(name)
                    if stream is None:
                        opened = desk.stream(name or session.native_id, known.parents.get(name or ""))
                        stream = streams[name] = stack.enter_context(opened)
                    stream.write(record)

            for unit in native_units(veil.lines(source), log_reading):
                write(fold.gap(source, unit) if isinstance(unit, Hole) else fold.feed(source, unit))
            write(fold.close())


def session_in(head: bytes) -> str | None:
    """The first session that a log names."""
    for line in head.split(b"\n"):
        try:
            native = log_reading.decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        for frame in frames_of(Unit(line=None, start=0, data=line, native=native)):  # type: ignore[arg-type]
            for part in (frame.params, frame.result):
                name = text_of(members_of(part).get("sessionId", ABSENT))
                if name:
                    return name
    return None


ACP = Acp()
