"""Stored sessions of OpenCode: which there are, and the stream of each.

Owns the places: the database (1.18), the storage folder (1.1: ``session/<project>/<id>.json``,
``message/<id>/``, ``part/<message>/``) and exported documents. A session and its agents' sessions
(``parent_id``) are one bundle.

Must never know: what a part means.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from callsheet.errors import SourceError
from callsheet.harness._port import Desk, Folder, Session
from callsheet.harness._port.cells import RowPen, layout_ref
from callsheet.harness._port.parts import text_of
from callsheet.harness._port.veil import Veil, original_of
from callsheet.harness.opencode.chat import Chat
from callsheet.harness.opencode.feed import Feed, Files, Trouble, selections
from callsheet.harness.opencode.shapes import KIND, Piece, is_export, is_session_file, is_store, recognises
from callsheet.harness.opencode.survey import Survey
from callsheet.records import FORMAT, Agent, Native, Parent, Ref, SourceEntry
from callsheet.records import Session as SessionRecord
from callsheet.registry import load
from callsheet.wire.blobs import digest
from callsheet.wire.damage import BOM
from callsheet.wire.database import Selection

HEAD = 1 << 18


class Member(NamedTuple):
    """One session of a store.

    Attributes:
        name: Its id.
        parent: The session that started it, if any.
        place: The database or document, or its files.
        database: Whether ``place`` is a database.
        main: The file that stands for it.
    """

    name: str
    parent: str | None
    place: str | Files
    database: bool
    main: str


class OpenCode:
    """The adapter (``harness._port.Stored``)."""

    kind = KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file's first bytes are OpenCode's."""
        del name  # any name will do
        return recognises(head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The sessions of a database, a document or a storage folder."""
        return list(_families(list(_members(path, folder))))

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """Where this user's sessions lie."""
        data = environ.get("XDG_DATA_HOME") or f"{home.rstrip('/')}/.local/share"
        return [f"{data}/opencode"]

    def read(self, session: Session, desk: Desk) -> None:
        """Imports a session and its agents'."""
        members: list[Member] = session.parts
        streams = {member.name for member in members}
        first = members[0]
        rows = None
        if first.database and isinstance(first.place, str):
            rows = desk.database(first.place, KIND, selections([member.name for member in members]))
        for member in members:
            _read(member, member.parent if member is not first else None, streams, rows, desk)


def _members(path: str, folder: Folder) -> Iterator[Member]:
    if folder.is_file(path):
        head = folder.head(path, HEAD)
        if is_store(head):
            yield from _of_database(path, folder)
        elif is_session_file(head):
            yield _of_file(path, folder)
        else:
            yield Member(_named(head, b"info") or PurePosixPath(path).stem, None, path, False, path)
        return
    for pattern in ("**/*.db", "**/*.json", "**/*.jsonl"):
        for file in folder.files(path, pattern):
            kin = PurePosixPath(file).parts[-3:-2]
            if pattern == "**/*.json" and kin in (("message",), ("part",)):
                continue
            head = folder.head(file, HEAD)
            if is_store(head):
                yield from _of_database(file, folder)
            elif kin == ("session",) and is_session_file(head):
                yield _of_file(file, folder)
            elif is_export(head):
                yield Member(_named(head, b"info") or PurePosixPath(file).stem, None, file, False, file)


def _of_database(path: str, folder: Folder) -> Iterator[Member]:
    (rows,) = folder.rows(path, [Selection("session", columns=("id", "parent_id"), order=("id",))])
    for row in rows:
        if isinstance(row.get("id"), str) and row["id"]:
            parent = row.get("parent_id")
            yield Member(row["id"], parent if isinstance(parent, str) else None, path, True, path)


def _of_file(path: str, folder: Folder) -> Member:
    at = PurePosixPath(path)
    storage, name = at.parent.parent.parent, at.stem
    messages = []
    for message in folder.files(str(storage / "message" / name), "*.json"):
        parts = folder.files(str(storage / "part" / PurePosixPath(message).stem), "*.json")
        messages.append((message, tuple(parts)))
    others = [
        file
        for file in (str(storage / "session_diff" / at.name), str(storage / "todo" / at.name))
        if folder.is_file(file)
    ]
    parent = _named(folder.head(path, HEAD), b"parentID")
    return Member(name, parent, Files(path, tuple(messages), tuple(others)), False, path)


def _named(head: bytes, member: bytes) -> str | None:
    """A text in the first bytes of a document: a member, or the id in its ``info``."""
    try:
        whole = msgspec.json.decode(head.removeprefix(BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _scanned(head, b"id" if member == b"info" else member)
    value = whole.get(member.decode()) if isinstance(whole, dict) else None
    if isinstance(value, dict):
        value = value.get("id")
    return value if isinstance(value, str) and value else None


def _scanned(head: bytes, member: bytes) -> str | None:
    _, found, rest = head.partition(b'"' + member + b'"')
    pieces = rest.split(b'"', 2)
    if not found or len(pieces) < 3 or pieces[0].strip() != b":":
        return None
    return pieces[1].decode("utf-8", "replace") or None


def _families(members: list[Member]) -> Iterator[Session]:
    """Each session without a parent here, with all that descend from it; a ring of parents is cut once."""
    names = {(member.main if member.database else "", member.name): member for member in members}
    children: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        key = (member.main if member.database else "", member.parent or "")
        if key in names and names[key] is not member:
            children.setdefault(key, []).append(member)
    done: set[int] = set()
    roots = [one for one in members if (one.main if one.database else "", one.parent or "") not in names]
    for root in [*roots, *members]:
        if id(root) in done:
            continue
        family, waiting = [], [root]
        while waiting:
            one = waiting.pop(0)
            if id(one) not in done:
                done.add(id(one))
                family.append(one)
                waiting += children.get((one.main if one.database else "", one.name), [])
        files = tuple(dict.fromkeys(file for one in family for file in _files_of(one)))
        yield Session(KIND, root.name, root.main, family, files)


def _files_of(member: Member) -> Iterator[str]:
    yield member.main
    if isinstance(member.place, Files):
        for message, parts in member.place.messages:
            yield message
            yield from parts
        yield from member.place.others


def _read(
    member: Member, parent: str | None, streams: set[str], rows: SourceEntry | None, desk: Desk
) -> None:
    veil = Veil(desk)
    feed = Feed(desk, veil, member.name, member.place, rows)
    with desk.stream(member.name, parent) as stream:
        survey = Survey(feed, RowPen(desk, veil, stream, {}))
        if not survey.pieces or not any(source.size for source in feed.sources):
            raise SourceError("holds no records", path=member.main)
        folder = text_of(survey.head("directory"))
        roots = {"project": folder} if folder else {}
        pen = RowPen(desk, veil, stream, roots)
        record = SessionRecord(format=FORMAT, sources=feed.sources, roots=roots or None)
        record.agent = Agent(name=KIND, version=text_of(survey.head("version")))
        record.native_session_id = survey.session.id if survey.session is not None else None
        if survey.session is None and isinstance(member.place, Files):
            record.native_session_id = member.name  # the name of its file, where the document is broken
        record.title = text_of(survey.head("title"))
        above = text_of(survey.head("parentID")) or text_of(survey.head("parent_id")) or member.parent
        record.parent = Parent(session=above) if above else None
        record.native = Native(refs=_head_refs(survey, feed, pen))
        if rows is not None and (layout := layout_ref(rows, veil.lines(rows))) is not None:
            record.native.refs.append(layout)
        stream.write(record)
        chat = Chat(pen, survey, load(KIND), streams)
        for piece in feed.pieces():
            chat.take(piece)


def _head_refs(survey: Survey, feed: Feed, pen: RowPen) -> list[Ref]:
    """What a session record is made of: the session's own piece, else the first bytes that there are of it."""
    piece: Piece | Trouble | None = survey.session or next(feed.pieces(), None)
    if isinstance(piece, Piece):
        pen.take(piece.source, piece.unit)
        return [pen.ref("session" if piece.what == "session" else "member", piece.pointer or None)]
    if piece is None:
        return []
    line = piece.what.line
    data = original_of(line)
    ref = Ref(
        source=piece.source.id, line=line.number, offset=line.offset, bytes=len(data), sha256=digest(data)
    )
    ref.role = "member"
    return [ref]


OPENCODE = OpenCode()
