"""Which files are ``exec --json`` logs, and what each is called.

Owns: the marks of both formats in a file's first lines, and the id of a session: the thread's own where the log names
it, else a digest of the first two lines (the old header and the prompt), which do not change while a log grows. A log
lies wherever its caller put it: there is no usual place.

Must never know: what becomes of a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callsheet.harness._port import Folder, Session
from callsheet.harness.codex.exec_log.shapes import TYPES, is_event, is_header, is_new
from callsheet.harness.codex.shapes import clean_value, text
from callsheet.wire.blobs import digest
from callsheet.wire.inflate import head_of

KIND = "codex-exec"
HEAD = 1 << 16
LOOKS = 40
"""Objects that are looked at to know a log; what a program writes before it begins may come first."""


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    """The whole lines of a file's beginning that are objects."""
    seen = 0
    for line in head_of(head, HEAD).split(b"\n"):
        data = line.strip(b"\0\r\t \xef\xbb\xbf")
        if not data.startswith(b"{"):
            continue
        seen += 1
        if seen > LOOKS:
            return
        value = clean_value(data)
        if isinstance(value, dict):
            yield value


def recognises(head: bytes) -> bool:
    """Whether a file begins like a log of either format."""
    for value in _objects(head):
        if is_new(value) or is_header(value) or is_event(value):
            return True
        kind = value.get("type")
        if not isinstance(kind, str) or kind not in TYPES:
            return False
    return False


def sessions(path: str, folder: Folder) -> list[Session]:
    """The log at a path, or every log below it."""
    if folder.is_file(path):
        return [_session(path, folder)]
    return [
        _session(file, folder)
        for file in folder.files(path, "**/*.jsonl")
        if recognises(folder.head(file, HEAD))
    ]


def _session(path: str, folder: Folder) -> Session:
    head = folder.head(path, HEAD)
    return Session(KIND, native_id(head), path, None, (path,))


def native_id(head: bytes) -> str:
    """The session id that a log names, or one made of its first two lines."""
    for value in _objects(head):
        named = text(value.get("thread_id")) if value.get("type") == "thread.started" else _configured(value)
        if named is not None:
            return named
    first = [line.strip() for line in head_of(head, HEAD).split(b"\n") if line.strip()][:2]
    return "log-" + digest(b"\n".join(first))[:16]


def _configured(value: dict[str, Any]) -> str | None:
    """The id in the ``session_configured`` message of the old format."""
    event = value.get("msg")
    if isinstance(event, dict) and event.get("type") == "session_configured":
        return text(event.get("session_id"))
    return None
