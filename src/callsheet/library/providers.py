"""The sessions of agents that another program drove: found where these agents keep them, read into the same bundle.

Owns: the search for a session by its own id, the reading of several sessions of different harnesses into one bundle (a
stream each, nothing of them merged), and that a secret which one of them names is hidden in all of them.

Must never know: native shapes, how the streams differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from callsheet import harness
from callsheet.errors import SourceError
from callsheet.harness._port import Drives, Session, Stored
from callsheet.harness._port.veil import Veil
from callsheet.library.folders import DiskFolder, is_folder
from callsheet.library.workbench import Workbench
from callsheet.records import BlobRef, SourceEntry
from callsheet.records.bundle import stream_id
from callsheet.wire.database import Selection
from callsheet.wire.lines import Line


class Wanted(NamedTuple):
    """A session underneath another: the kind of its agent, its id, and where it was found, if it was."""

    kind: str
    native_id: str
    found: tuple[Stored, Session] | None


class Providers:
    """Looks sessions up by their own ids.

    Args:
        environ: The environment, which may say where agents keep their sessions.
        home: The user's home folder.
    """

    def __init__(self, environ: Mapping[str, str], home: Path) -> None:
        self._environ = dict(environ)
        self._home = home
        self._known: dict[str, dict[str, tuple[Stored, Session]]] = {}

    def under(self, adapter: Stored, session: Session) -> list[Wanted]:
        """The sessions underneath one; none where its harness drives no other agents."""
        if not isinstance(adapter, Drives):
            return []
        named = adapter.driven(session, DiskFolder(Path(session.main)))
        return [Wanted(kind, name, self._of(kind).get(name)) for kind, name in dict.fromkeys(named)]

    def _of(self, kind: str) -> dict[str, tuple[Stored, Session]]:
        if kind not in self._known:
            self._known[kind] = dict(self._listed(kind))
        return self._known[kind]

    def _listed(self, kind: str) -> Iterator[tuple[str, tuple[Stored, Session]]]:
        for adapter in harness.HARNESSES:
            for place in adapter.places(self._environ, str(self._home)) if adapter.kind == kind else ():
                if is_folder(Path(place)):
                    for session in adapter.sessions(place, DiskFolder(Path(place))):
                        yield session.native_id, (adapter, session)


class Covered:
    """A desk on which some values are hidden, in every source that is opened through it (ASR-283).

    Args:
        desk: The desk.
        values: What must not be seen.
    """

    def __init__(self, desk: Workbench, values: list[str]) -> None:
        self._desk = desk
        self._values = values
        self._veil = Veil(desk)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)

    def _hidden(self, source: SourceEntry) -> SourceEntry:
        for value in self._values:
            self._veil.secret(value, [source])
        return source

    def source(self, path: str, kind: str) -> SourceEntry:
        """Registers a file."""
        return self._hidden(self._desk.source(path, kind))

    def database(self, path: str, kind: str, selections: list[Selection]) -> SourceEntry:
        """Registers chosen rows of a database."""
        return self._hidden(self._desk.database(path, kind, selections))

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        """The lines of a source."""
        return self._veil.lines(source)

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        """Bytes of a source at a place."""
        return self._veil.read(source, offset, size)

    def whole(self, source: SourceEntry) -> bytes:
        """All bytes of a small source."""
        return b"".join(line.data + b"\n" * line.ended for line in self.lines(source))

    def keep(self, source: SourceEntry, mime_type: str | None = None) -> BlobRef:
        """Keeps all bytes of a source."""
        return self._desk.blob(self.whole(source), mime_type)


def read_under(desk: Workbench, wanted: list[Wanted], hidden: list[str]) -> None:
    """Reads the sessions underneath one into its bundle; what is not there, or cannot be read, is said."""
    for one in wanted:
        if one.found is None:
            continue
        adapter, session = one.found
        try:
            adapter.read(session, Covered(desk, hidden) if hidden else desk)
        except (SourceError, OSError) as error:
            desk.diagnose("provider_unread", f"{session.main}: {error}")
    there = {entry.id for entry in desk.streams}
    for one in wanted:
        if one.found is None and stream_id(one.native_id) not in there:
            desk.diagnose(
                "provider_missing", f"the {one.kind} session {one.native_id} is not on this machine"
            )
