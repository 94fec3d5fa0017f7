"""Native shapes of OpenCode: sessions, messages and parts, in a database, in files or in an exported document.

Owns ``Piece`` (one of them, wherever it stands) and what marks a file as OpenCode's.

Must never know: records but refs.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.parts import ABSENT, text_of
from callsheet.harness._port.units import Reading, Unit
from callsheet.records import SourceEntry
from callsheet.wire.damage import BOM
from callsheet.wire.database import is_database

KIND = "opencode"


class Native(Struct, gc=False):
    """Any object of a source: its members, each as its own text."""

    id: Raw = ABSENT
    info: Raw = ABSENT
    messages: Raw = ABSENT
    role: Raw = ABSENT
    type: Raw = ABSENT


def _loose(value: dict[str, Any]) -> Native:  # noqa: ARG001 (every member is raw: nothing can be refused)
    return Native()


def _own(value: dict[str, Any]) -> bool:  # noqa: ARG001 (a document or a cell has no second object)
    return False


reading: Reading[Native] = Reading(msgspec.json.Decoder(Native), _loose, _own)


class Piece(NamedTuple):
    """A session, message or part.

    Attributes:
        what: ``session``, ``message``, ``part``, ``event`` or ``other``.
        source: Where it stands.
        unit: The unit.
        pointer: Where in the unit.
        members: Its members.
        raw: Its text.
        id: Its native id.
        message: The message that a part belongs to.
    """

    what: str
    source: SourceEntry
    unit: Unit[Native]
    pointer: str
    members: dict[str, Raw]
    raw: Raw
    id: str | None
    message: str | None = None


def id_of(members: dict[str, Raw]) -> str | None:
    """The id of a session, message or part."""
    return text_of(members.get("id", ABSENT)) or None


_EXPORT = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"info"\s*:\s*\{')


def is_export(head: bytes) -> bool:
    """Whether a file is an exported session."""
    return _EXPORT.match(head) is not None and b'"projectID"' in head and b'"directory"' in head


def is_session_file(head: bytes) -> bool:
    """Whether a file is the file of a session (``storage/session/<project>/<session>.json``)."""
    return (
        head.removeprefix(BOM).lstrip()[:1] == b"{"
        and _EXPORT.match(head) is None
        and all(mark in head for mark in (b'"projectID"', b'"directory"', b'"version"', b'"time"'))
        and b'"messages"' not in head
    )


def is_store(head: bytes) -> bool:
    """Whether a file is OpenCode's database."""
    return is_database(head) and b"message_id" in head and b"session_id" in head and b"project_id" in head


def recognises(head: bytes) -> bool:
    """Whether a file's first bytes are OpenCode's."""
    return is_store(head) or is_export(head) or is_session_file(head)
