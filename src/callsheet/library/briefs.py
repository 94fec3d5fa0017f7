"""A session in one line: when, where, what was asked, how many calls.

Owns what is read for it: the head of a stream, and the types of its lines. Anything may be missing, and is left out.

Must never know: native shapes, how a sheet is drawn.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from callsheet.errors import SourceError
from callsheet.records import Gap, Message, Notice, Session, Unmapped
from callsheet.records.bundle import Bundle, main_stream, streams_below
from callsheet.records.stream import Entry, read_stream
from callsheet.rows.text import first_line, parts_text

HEAD_RECORDS = 400
HEAD_BYTES = 4_000_000
"""Records and bytes of a stream within which its first prompt is looked for."""
PROMPT_MOST = 60
NOTHING_RAN = (Session, Unmapped, Notice, Gap)
"""What a stream may hold of a session in which nobody asked, answered or did anything."""
UNREADABLE = (SourceError, OSError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile)
"""What a stream that is not there, or a broken zip, may raise."""


class Brief(msgspec.Struct, kw_only=True):
    """What a session's head says.

    Attributes:
        when: Time of its first record that has one, to the minute.
        folder: The folder that it worked in.
        asked: Its title, or the first line of its first prompt.
        calls: Tool calls of the session, those of its subagents among them.
        agent_calls: Those of its subagents.
        unread: Files of subagents' streams that could not be read, so that their calls are not counted.
        ran: Somebody asked, answered or did something.
        session: Its head.
    """

    when: str | None = None
    folder: str | None = None
    asked: str | None = None
    calls: int = 0
    agent_calls: int = 0
    unread: list[str] = []
    ran: bool = False
    session: Session | None = None

    def words(self) -> Iterator[str]:
        """The parts that are known, but for the calls."""
        for word in (self.when, self.folder, self.asked):
            if word:
                yield word


def brief_of_bundle(bundle: Bundle, *, count: bool = False) -> Brief:
    """The brief of a bundle's session.

    Args:
        bundle: The bundle.
        count: Also count its calls, which reads its streams whole.

    Raises:
        SourceError, OSError, KeyError: The stream is not there, or cannot be read.
    """
    entries = bundle.manifest.streams
    if not entries:
        return Brief()
    main = main_stream(entries)
    with bundle.open(main.file) as file:
        found = brief_of_stream(file)
        if count:
            found.calls = _calls(file)
    if count:
        own = streams_below(entries, main.id)
        for entry in entries:
            if entry.id in own and entry is not main:
                try:
                    with bundle.open(entry.file) as file:
                        found.agent_calls += _calls(file)
                except UNREADABLE:
                    found.unread.append(entry.file)
        found.calls += found.agent_calls
    return found


def brief_of_stream(file: BinaryIO) -> Brief:
    """The brief of a stream, from its head."""
    found = Brief()
    for number, entry in enumerate(read_stream(file)):
        if number >= HEAD_RECORDS or entry.line.offset > HEAD_BYTES or (found.asked and found.when):
            break
        if not isinstance(entry, Entry):
            continue
        record = entry.record
        if found.when is None and getattr(record, "ts", None):
            found.when = str(record.ts)[:16].replace("T", " ")  # type: ignore[union-attr]
        found.ran = found.ran or not isinstance(record, NOTHING_RAN)
        if isinstance(record, Session):
            found.session = found.session or record
            found.folder = found.folder or next(iter((record.roots or {}).values()), None)
            found.asked = found.asked or record.title
        elif isinstance(record, Message) and record.author == "user" and not found.asked:
            found.asked = first_line(parts_text(record.content or ()), PROMPT_MOST) or None
    return found


class _Type(msgspec.Struct):
    type: str | None = None
    supersedes: str | None = None


def _calls(file: BinaryIO) -> int:
    """How many calls a stream has: only lines that may be calls are read as JSON."""
    decoder = msgspec.json.Decoder(_Type)
    file.seek(0)
    count = 0
    for line in file:
        if b'"tool_call"' in line:
            try:
                head = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            count += head.type == "tool_call" and head.supersedes is None
    return count
