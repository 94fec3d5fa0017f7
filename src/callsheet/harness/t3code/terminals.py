"""Transcripts of T3 Code's own terminals, which lie beside its database (ASR-271).

Owns: which file of ``logs/terminals`` is which terminal of which thread (``terminal_<thread>[_<terminal>].log``, both
in base64 as URLs have it; older ones ``<thread>.log``), and the terminal record that a transcript is. A transcript is
what the terminal showed, without a time, a command or a status; nothing in it is read as a fact.

Must never know: what a row of the database says.
"""

from __future__ import annotations

import base64
import re
from pathlib import PurePath
from typing import NamedTuple

from callsheet.harness._port import INLINE_MOST, Desk, Folder, Stream
from callsheet.harness._port.veil import Veil
from callsheet.records import Native, Ref, SourceEntry, Terminal
from callsheet.records.terminal import TerminalOutput

KIND = "t3code-terminal"
FOLDER = ("logs", "terminals")
ROLE = "transcript"
DEFAULT = "default"
"""The terminal whose file names none."""


class Transcript(NamedTuple):
    """One transcript: the thread that it lies beside, its terminal (None where the file names none), its path."""

    thread_id: str
    terminal_id: str | None
    path: str


def transcripts(database: str, threads: set[str], folder: Folder) -> dict[str, list[Transcript]]:
    """The transcripts beside a database, by thread."""
    heads = {f"terminal_{_encoded(thread)}": thread for thread in threads}
    older: dict[str, list[str]] = {}
    for thread in threads:
        older.setdefault(re.sub(r"[^a-zA-Z0-9._-]", "_", thread), []).append(thread)
    found: dict[str, list[Transcript]] = {}
    for path in folder.files(str(PurePath(database).parent.joinpath(*FOLDER)), "*.log"):
        name = PurePath(path).name.removesuffix(".log")
        # An underscore is a character of the encoding too: the longest head that fits is the thread's.
        head = max((one for one in heads if name == one or name.startswith(f"{one}_")), key=len, default=None)
        if head is not None:
            terminal = _decoded(name[len(head) + 1 :]) if name != head else None
            if terminal is not None or name == head:
                found.setdefault(heads[head], []).append(Transcript(heads[head], terminal, path))
        elif len(named := older.get(name, [])) == 1:
            found.setdefault(named[0], []).append(Transcript(named[0], None, path))
    return found


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _decoded(text: str) -> str | None:
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return None
    return found if found and _encoded(found) == text else None


class Terminals:
    """The transcripts of one thread, opened."""

    def __init__(self, desk: Desk, listed: list[Transcript]) -> None:
        self._desk = desk
        self._opened: list[tuple[Transcript, SourceEntry, str]] = []
        for one in listed:
            try:
                source = desk.source(one.path, KIND)
                self._opened.append((one, source, desk.digest(source)))
            except OSError as error:
                desk.diagnose("missing_file", f"{one.path}: {error.strerror or error}")

    @property
    def sources(self) -> list[SourceEntry]:
        """Their sources."""
        return [source for _, source, _ in self._opened]

    def write(self, veil: Veil, stream: Stream) -> None:
        """Writes a record for each."""
        for one, source, sha256 in self._opened:
            data = b"".join(line.data + b"\n" * line.ended for line in veil.lines(source))
            record = Terminal(terminal_id=one.terminal_id or DEFAULT, kind="shell")
            record.id_source = "native" if one.terminal_id else "derived"
            record.output = self._output(data)
            ref = Ref(source=source.id, offset=0, bytes=len(data), sha256=sha256, role=ROLE)
            record.native = Native(refs=[ref])
            stream.write(record)

    def _output(self, data: bytes) -> TerminalOutput:
        try:
            if len(data) <= INLINE_MOST:
                return TerminalOutput(text=data.decode())
        except UnicodeDecodeError:
            pass  # what is no text is kept as the bytes that it is
        return TerminalOutput(blob=self._desk.blob(data, "text/plain"))
