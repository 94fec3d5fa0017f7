"""Where a session's pieces come from: rows of a database, files of a storage folder, an exported document.

Owns ``Feed``: the pieces of one session in the order of the conversation (each message followed by its parts),
as often as a pass is made, and the holes between them.

Must never know: what a part means.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.cells import Cell, Damage, rows_of
from callsheet.harness._port.documents import document_unit, one_line
from callsheet.harness._port.parts import ABSENT, items_of, members_of, text_of
from callsheet.harness._port.units import Hole, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.opencode.shapes import KIND, Native, Piece, id_of, reading
from callsheet.records import SourceEntry
from callsheet.wire import lossless
from callsheet.wire.database import Selection

PART_EVENT = "message.part.updated.1"


class Trouble(NamedTuple):
    """A hole or a broken table with its source."""

    source: SourceEntry
    what: Hole | Damage


class Files(NamedTuple):
    """The files of one session.

    Attributes:
        session: Its own file; None when only messages are left.
        messages: Message file and the files of its parts, in order.
        others: Files of the session that are neither.
    """

    session: str | None
    messages: tuple[tuple[str, tuple[str, ...]], ...]
    others: tuple[str, ...] = ()


class Feed:
    """The pieces of one session."""

    def __init__(
        self, desk: Desk, veil: Veil, session: str, place: str | Files, rows: SourceEntry | None
    ) -> None:
        self._veil = veil
        self._session = session
        self._rows = rows
        self.sources: list[SourceEntry] = []
        self._files: Files | None = None
        self._by_path: dict[str, SourceEntry] = {}
        if isinstance(place, Files):
            self._files = place
            for path in _paths(place):
                self._by_path[path] = desk.source(path, KIND)
                desk.whole(self._by_path[path])
            self.sources = list(self._by_path.values())
        elif rows is not None:
            self.sources = [rows]
        else:
            self.sources = [desk.source(place, KIND)]
            desk.whole(self.sources[0])

    def pieces(self) -> Iterator[Piece | Trouble]:
        """Every piece in order."""
        if self._files is not None:
            yield from self._of_files(self._files)
        elif self._rows is not None:
            yield from self._of_rows(self._rows)
        else:
            yield from self._of_export(self.sources[0])

    # -- an exported document -----------------------------------------------------------------------------------

    def _of_export(self, source: SourceEntry) -> Iterator[Piece | Trouble]:
        unit = document_unit(self._veil, source, reading)
        if isinstance(unit, Hole) or unit.native is None:
            yield Trouble(
                source, unit if isinstance(unit, Hole) else Hole(unit.line, 0, len(unit.data), "bad_json")
            )
            return
        native = unit.native
        if native.info:
            info = members_of(native.info)
            yield Piece("session", source, unit, "/info", info, native.info, id_of(info))
        elif not native.messages:
            # No export: a file of a store by itself, or a document of another kind.
            whole = self._whole(source, unit, "other", None)
            name = id_of(whole.members)
            of = "part" if "messageID" in whole.members else "message" if "role" in whole.members else "other"
            yield whole._replace(what=of, message=name if of == "message" else None)
            return
        for number, item in enumerate(items_of(native.messages)):
            told = members_of(item)
            message = told.get("info", ABSENT)
            if not message:
                yield from self._alone(source, unit, f"/messages/{number}", item)
                continue
            members = members_of(message)
            name = id_of(members)
            yield Piece("message", source, unit, f"/messages/{number}/info", members, message, name, name)
            for place, part in enumerate(items_of(told.get("parts", ABSENT))):
                members = members_of(part)
                pointer = f"/messages/{number}/parts/{place}"
                yield Piece("part", source, unit, pointer, members, part, id_of(members), name)

    def _alone(self, source: SourceEntry, unit: Unit[Native], pointer: str, item: Raw) -> Iterator[Piece]:
        """The parts of a message that lacks its own head; where there are none, what stands there."""
        told = members_of(item)
        parts = items_of(told.get("parts", ABSENT))
        if not parts:
            yield Piece("other", source, unit, pointer, told, item, None)
        for place, part in enumerate(parts):
            members = members_of(part)
            yield Piece("part", source, unit, f"{pointer}/parts/{place}", members, part, id_of(members))

    # -- files --------------------------------------------------------------------------------------------------

    def _of_files(self, files: Files) -> Iterator[Piece | Trouble]:
        if files.session is not None:
            yield self._file(files.session, "session", None)
        for path, parts in files.messages:
            message = self._file(path, "message", None)
            if (
                isinstance(message, Piece)
                and "messageID" in message.members
                and "role" not in message.members
            ):
                # A part that was put among the messages: what it is, it says itself.
                yield message._replace(what="part", message=text_of(message.members["messageID"]))
                name = PurePosixPath(path).stem
            else:
                # Where the message's own file is broken, the name of that file still says which one it is.
                name = (message.id if isinstance(message, Piece) else None) or PurePosixPath(path).stem
                yield message._replace(message=name) if isinstance(message, Piece) else message
            for part in parts:
                yield self._file(part, "part", name)
        for other in files.others:
            yield self._file(other, "other", None)

    def _file(self, path: str, what: str, message: str | None) -> Piece | Trouble:
        source = self._by_path[path]
        unit = document_unit(self._veil, source, reading)
        if isinstance(unit, Hole):
            return Trouble(source, unit)
        return self._whole(source, unit, what, message)

    def _whole(self, source: SourceEntry, unit: Unit[Native], what: str, message: str | None) -> Piece:
        """A document that is one piece."""
        raw = Raw(one_line(unit.data) if unit.exact is None else lossless.encode_clean(unit.exact))
        members = members_of(raw)
        return Piece(what, source, unit, "", members, raw, id_of(members), message)

    # -- rows ---------------------------------------------------------------------------------------------------

    def _of_rows(self, source: SourceEntry) -> Iterator[Piece | Trouble]:
        parts = self._cells(source, "part")
        part = next(parts, None)
        yield from self._cells(source, "session")
        for message in self._cells(source, "message"):
            # Ids sort by time; a part without its message comes where it would stand.
            while (
                isinstance(part, Piece)
                and isinstance(message, Piece)
                and (part.message or "") < (message.id or "")
            ):
                yield part
                part = next(parts, None)
            yield message
            while part is not None and (
                isinstance(part, Trouble) or (isinstance(message, Piece) and part.message == message.id)
            ):
                yield part
                part = next(parts, None)
        while part is not None:
            yield part
            part = next(parts, None)
        yield from self._cells(source, "event")
        yield from self._cells(source, "todo")

    def _cells(self, source: SourceEntry, table: str) -> Iterator[Piece | Trouble]:
        for cell in rows_of(self._veil.lines(source)):
            if cell.table != table:
                continue
            if isinstance(cell, Damage):
                yield Trouble(source, cell)
                continue
            key = msgspec.json.decode(cell.key)
            if key.get(OWNER[table]) == self._session:
                yield self._cell(source, cell, table, key)

    def _cell(self, source: SourceEntry, cell: Cell, table: str, key: dict[str, Any]) -> Piece | Trouble:
        found: list[Unit[Native] | Hole] = list(native_units([cell], reading))
        unit = found[0] if len(found) == 1 else None
        if not isinstance(unit, Unit) or len(unit.data) != len(cell.data):
            reason = unit.reason if isinstance(unit, Hole) else "bad_json"
            return Trouble(source, Hole(cell, 0, len(cell.data), reason))
        raw = Raw(one_line(unit.data) if unit.exact is None else lossless.encode_clean(unit.exact))
        name, message = (
            one if isinstance(one, str) else None for one in (key.get("id"), key.get("message_id"))
        )
        what = table if table in ("session", "message", "part", "event") else "other"
        return Piece(
            what, source, unit, "", members_of(raw), raw, name, name if table == "message" else message
        )


def _paths(files: Files) -> Iterator[str]:
    if files.session is not None:
        yield files.session
    for message, parts in files.messages:
        yield message
        yield from parts
    yield from files.others


OWNER = {
    "session": "id",
    "message": "session_id",
    "part": "session_id",
    "event": "aggregate_id",
    "todo": "session_id",
}
"""Which member of a row's key names its session."""


def selections(sessions: list[str]) -> list[Selection]:
    """The rows of a session and its agents."""
    of = {"session_id": sessions}
    return [
        Selection("session", key=("id",), where={"id": sessions}, order=("id",)),
        Selection("message", key=("id", "session_id"), value=("data",), where=of, order=("id",)),
        Selection(
            "part",
            key=("id", "message_id", "session_id"),
            value=("data",),
            where=of,
            order=("message_id", "id"),
        ),
        Selection(
            "event",
            key=("id", "aggregate_id"),
            value=("data",),
            where={"aggregate_id": sessions, "type": [PART_EVENT]},
            order=("aggregate_id", "seq"),
        ),
        Selection("todo", key=("session_id", "position"), where=of, order=("position",)),
    ]
