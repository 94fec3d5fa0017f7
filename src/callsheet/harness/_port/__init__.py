"""The port between an adapter of stored files and the engine that reads and writes for it.

An adapter knows one agent's native shapes. It says which files of a folder make a session (``sessions``),
and turns one session into records (``read``). It opens nothing itself: every byte comes through ``Desk``,
every record, blob and diagnostic goes back through it, so an adapter runs the same over a folder, a test's
dictionary or a frame log.

Must never know: pairing, rows, rules, another harness.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from callsheet.records import BlobRef, Record, SourceEntry
from callsheet.wire.lines import Line

if TYPE_CHECKING:
    from callsheet.wire.database import Selection  # few sources are databases

INLINE_MOST = 64 * 1024
"""Bytes up to which ``raw``, ``displayContent``, ``exec`` output and ``unmapped.value`` stand inline (profile)."""


class Folder(Protocol):
    """Read access to the neighbourhood of a source: names only, no contents. Paths are POSIX texts."""

    def files(self, path: str, pattern: str) -> list[str]:
        """Files below ``path`` that match a glob pattern (``**/`` descends), sorted; empty when there is none."""

    def is_file(self, path: str) -> bool:
        """Whether a file is there."""

    def head(self, path: str, size: int = 65536) -> bytes:
        """The first bytes of a file, empty when it cannot be read."""

    def tables(self, path: str) -> list[str]:
        """Names of the tables of a database, empty when it cannot be read: its first bytes may name none of them."""

    def rows(self, path: str, selections: list[Selection]) -> list[list[dict[str, Any]]]:
        """A few small rows of a database, one list per selection; empty for tables that are not there.

        Raises:
            SourceError: The database cannot be read.
        """


class Session(NamedTuple):
    """One session to import, found by an adapter.

    Attributes:
        kind: The source kind (``claude-code``, ``codex``, …).
        native_id: The native session id.
        main: The file that stands for the session in messages.
        parts: Whatever the adapter needs to read it; opaque to the engine.
        files: Every file that belongs to it, so that files of no session can be told.
    """

    kind: str
    native_id: str
    main: str
    parts: Any
    files: tuple[str, ...] = ()


class Stream(Protocol):
    """An open stream of the bundle."""

    id: str

    def write(self, record: Record) -> str:
        """Appends a record; gives it ``seq`` and, unless it has one, an id; returns the id."""


class Desk(Protocol):
    """What the engine lends to an adapter while it reads one session."""

    keep_reasoning: bool
    """Whether raw chain of thought was asked for (decision 11)."""

    def source(self, path: str, kind: str) -> SourceEntry:
        """Registers a native source and returns its entry (``s0``, ``s1``, …; size and digest filled in).

        Raises:
            OSError: It cannot be read.
        """

    def database(self, path: str, kind: str, selections: list[Selection]) -> SourceEntry:
        """Registers the chosen rows of a database as a source of lines (``cells`` reads them).

        Raises:
            SourceError: The database cannot be read.
        """

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        """The physical lines of a source, from the start; may be called again for another pass."""

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        """Bytes of a source at a place."""

    def whole(self, source: SourceEntry) -> bytes:
        """All bytes of a small source."""

    def keep(self, source: SourceEntry, mime_type: str | None = None) -> BlobRef:
        """Keeps all bytes of a source, of any size, under their digest."""

    def digest(self, source: SourceEntry) -> str:
        """SHA-256 of all bytes of a source, of any size, as hex digits."""

    def stream(self, native_id: str, parent: str | None = None) -> AbstractContextManager[Stream]:
        """Opens a new stream of the bundle."""

    def blob(self, data: bytes, mime_type: str | None = None) -> BlobRef:
        """Keeps bytes under their digest."""

    def diagnose(
        self, code: str, message: str, source: SourceEntry | None = None, line: int | None = None
    ) -> None:
        """Says something worth knowing about a source; never a fact of the session."""

    def mask(self, source: SourceEntry, secret: str) -> None:
        """Names a marked secret: it is removed from every native copy before that is written (ASR-283)."""

    def hide(self, source: SourceEntry, offset: int, size: int) -> None:
        """Names a JSON value whose strings are not to be kept: they are masked in the native copy (decision 11)."""


class Stored(Protocol):
    """An adapter of stored files: one entry of ``HARNESSES``."""

    kind: str
    """Source kind, as in the command line."""

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file's first bytes are of this kind; content decides, the name may only help."""

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The sessions of a file or below a folder."""

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """Folders where this user's agent keeps its sessions."""

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one session: writes its streams through the desk."""


@runtime_checkable
class Drives(Protocol):
    """An adapter of a program that drives other agents, which keep sessions of their own."""

    def driven(self, session: Session, folder: Folder) -> list[tuple[str, str]]:
        """Kind and id of the sessions that the agents underneath keep of this one, as far as it names them."""
