"""The error tree: whose fault is it?

    CallsheetError
    ├── SourceError     native bytes are bad, or a file cannot be read: file, line, offset
    │   └── RecordError a line of a callsheet stream is no legal record
    ├── ProducerError   callsheet itself was about to write an illegal record (a bug here)
    └── UsageError      the person asked for something that cannot be done

Findings about a stream are values (room ``rules``), never exceptions. Damage inside a native file is a ``gap``
record and a diagnostic, not an exception: one bad line never costs the rest of the file. Exceptions are for
what stops a whole file or command.
"""

from __future__ import annotations

DEBUG = "CALLSHEET_DEBUG"
"""Environment variable that lets unexpected errors through with their traceback."""


class CallsheetError(Exception):
    """Base of every error that callsheet raises on purpose."""


class SourceError(CallsheetError):
    """Native bytes are bad, or a source cannot be opened.

    Args:
        message: What is wrong, one line, without the place.
        path: The file, as the person named it.
        line: 1-based physical line, where there is one.
        offset: Byte offset, where it is known.
    """

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.offset = offset

    def __str__(self) -> str:
        place = [str(part) for part in (self.path, self.line) if part is not None]
        return ": ".join([":".join(place), self.message]) if place else self.message


class RecordError(SourceError):
    """A line of a callsheet stream is not a legal record."""


class ProducerError(CallsheetError):
    """An adapter built a record that the rules forbid; always a bug in callsheet."""


class UsageError(CallsheetError):
    """The person asked for something that cannot be done; exit code 2."""


def reason_of(error: BaseException) -> str:
    """Why something could not be read, in words that are the same for every command."""
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return getattr(error, "strerror", None) or str(error)
