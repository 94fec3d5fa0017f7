"""Logs of frames as sources (kind ``claude-code-stream``): which files are some, and the passes over one.

Owns: the guess that a file is such a log (by its content), the one session per file (a connection; its sessions and
agents are streams of one bundle), answers to secret questions, which the fold must not see, and writing what the fold
settles.

Must never know: what a frame means.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import PurePosixPath

import msgspec
from msgspec import Raw

from callsheet.harness._port import Desk, Folder, Session, Stream
from callsheet.harness._port.attested import Attested
from callsheet.harness._port.fold import Settled
from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness._port.units import Hole, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.claude_code.stream.asks import words_in
from callsheet.harness.claude_code.stream.fold import Fold
from callsheet.harness.claude_code.stream.masks import Secrets
from callsheet.harness.claude_code.stream.shapes import CONTROL, frame_of, is_frame, reading
from callsheet.records import SourceEntry

KIND = "claude-code-stream"
HEAD = 1 << 20
"""Bytes in which a session id is looked for."""
LINES_MOST = 50
"""Lines that are looked at to guess the kind of a file."""


class ClaudeCodeStream:
    """The adapter (``harness._port.Stored``)."""

    kind = KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether one of a file's first lines is a frame of this protocol."""
        del name  # any name will do
        return any(is_frame(line) for line in head.split(b"\n")[:LINES_MOST] if line.strip())

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
        """A log lies wherever its caller put it."""
        del environ, home
        return []

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one log."""
        source = desk.source(session.main, KIND)
        veil = Veil(desk)
        if not hide_secrets(veil, source):
            return
        frames = Fold(desk, veil, [source])
        fold = Attested(frames)
        with ExitStack() as stack:
            streams: dict[str | None, Stream] = {}
            unnamed = PurePosixPath(session.main).stem  # what came before any session said who it is

            def write(settled: list[Settled]) -> None:
                for name, record in settled:
                    stream = streams.get(name)
                    if stream is None:
                        opened = desk.stream(name or unnamed, frames.parents.get(name or ""))
                        stream = streams[name] = stack.enter_context(opened)
                    stream.write(record)

            for unit in native_units(veil.lines(source), reading):
                write(fold.gap(source, unit) if isinstance(unit, Hole) else fold.feed(source, unit))
            write(fold.close())


def hide_secrets(veil: Veil, source: SourceEntry) -> int:
    """Hides answers to secret questions from the fold and the copy (ASR-283); returns how many units there are."""
    secrets = Secrets()
    count = 0
    for unit in native_units(veil.lines(source), reading):
        count += 1
        frame = None if isinstance(unit, Hole) else frame_of(unit)
        if frame is None or frame.kind not in CONTROL:
            continue
        for raw in secrets.of(frame.members(), from_agent=frame.from_agent):
            at = frame.unit.data.find(bytes(raw))
            if at >= 0:
                veil.hide(source, frame.unit.line.offset + frame.unit.start + at, len(raw))
            for word in words_in(value_of(raw)):
                veil.secret(word, [source])
    return count


def session_in(head: bytes) -> str | None:
    """The session that a log's first frames of the agent name."""
    for line in head.split(b"\n"):
        if not is_frame(line):
            continue
        try:
            wrapped = reading.decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        members = members_of(wrapped.frame if wrapped.frame else Raw(line))
        name = text_of(members.get("session_id", ABSENT))
        if name and "uuid" in members:
            return name
    return None


CLAUDE_CODE_STREAM = ClaudeCodeStream()
