"""SQLite files that belong to someone else: rows out of them, not a byte into them or beside them.

Owns: opening read-only, also while the owner writes (its write-ahead log is read along), without leaving files beside
a database that nobody has open; the copy that is read instead when its log has no index or its schema cannot be
parsed by the SQLite at hand; and the chosen rows as JSON lines, taken in one snapshot, so that every later pass, the
digest and the native copy speak of the same rows.

Must never know: what a table means, records.
"""

from __future__ import annotations

import base64
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from callsheet.errors import SourceError
from callsheet.wire import lossless
from callsheet.wire.inflate import Torn, inflate, is_compressed

MAGIC = b"SQLite format 3\0"
WAIT_SECONDS = 5.0
"""How long a lock of the owner is waited for."""
BATCH = 256
COPY_TRIES = 3
READ_TRIES = 3
MESSAGE_MOST = 200
VALUE_MOST = 1 << 28
"""Bytes at most that a compressed value may inflate to."""
_CHECK = re.compile(r"\bCHECK\s*\(", re.IGNORECASE)
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|[()]", re.DOTALL
)

Value = None | int | float | str | bytes
"""What a column may hold; a text that is no UTF-8 comes as bytes."""
Where = Mapping[str, Sequence[Value]]
"""Column to the values that are wanted; several columns must all fit."""


class Selection(NamedTuple):
    """Rows of one table.

    Attributes:
        table: Its name.
        key: Columns that name a row.
        value: Columns of which the first that is not null is the row's text (a compressed one is inflated); empty:
            the row itself is, as an object of its columns.
        where: Which rows; empty for all.
        order: Columns to sort by.
        columns: Which columns; empty for all.
        distinct: Whether equal rows count once.
        without: A member of the row's text, and words: rows that have one of them there are left out.
    """

    table: str
    key: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    where: Where = {}  # noqa: RUF012 (never changed)
    order: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    distinct: bool = False
    without: tuple[str, frozenset[str]] | None = None


class _Told(msgspec.Struct, forbid_unknown_fields=True):
    """A selection as JSON has it."""

    table: str
    key: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    where: dict[str, list[int | float | str | None]] = {}
    order: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    distinct: bool = False
    without: tuple[str, frozenset[str]] | None = None


def told(selections: Sequence[Selection]) -> list[dict[str, Any]]:
    """Selections as JSON, without what is as usual."""
    usual = Selection("")._asdict()
    return [
        {name: value for name, value in one._asdict().items() if value != usual[name]} for one in selections
    ]


def retold(rows: Sequence[Mapping[str, Any]]) -> list[Selection]:
    """The selections that such JSON tells of.

    Raises:
        ValueError: It tells of none.
    """
    try:
        return [Selection(**msgspec.structs.asdict(msgspec.convert(one, _Told))) for one in rows]
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


class Layout(NamedTuple):
    """What a database is made of.

    Attributes:
        tables: Table to its columns, as the owner's database has them.
        user_version: ``PRAGMA user_version``.
        notes: What was done to read it, one line each.
    """

    tables: dict[str, list[str]]
    user_version: int
    notes: tuple[str, ...] = ()


class Moved(SourceError):
    """The owner began to write while the file was read as one that nobody writes to: reading again helps."""


def is_database(head: bytes) -> bool:
    """Whether a file begins like a SQLite database."""
    return head.startswith(MAGIC)


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    opened = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=WAIT_SECONDS
    )
    opened.text_factory = _text
    opened.execute("PRAGMA trusted_schema = OFF")
    opened.execute("PRAGMA query_only = ON")
    return opened


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _one_line(error: Exception) -> str:
    """What SQLite said; it may repeat a whole schema."""
    return " ".join(str(error).split())[:MESSAGE_MOST]


def _said(error: sqlite3.Error, path: Path) -> SourceError:
    message = _one_line(error)
    if "locked" in message or "busy" in message:
        message = "the database is locked by the program that owns it; try again when it is idle"
    elif "not a database" in message:
        message = "not a SQLite database (or encrypted)"
    elif "malformed" in message or "disk image" in message:
        message = f"the database is damaged: {message}"
    else:
        message = f"the database cannot be read: {message}"
    return SourceError(message, path=str(path))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[sqlite3.Connection, list[str]]]:
    """A connection in one snapshot, and what had to be done to get it.

    Raises:
        SourceError: It cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="callsheet-db-") as room:
        connection: sqlite3.Connection | None = None
        notes: list[str] = []
        try:
            log, index, journal = (_beside(path, suffix) for suffix in ("-wal", "-shm", "-journal"))
            still = path
            if log.exists() and not index.exists():
                # Reading a log without its index would make one beside the owner's file.
                still = _copied(path, Path(room))
                notes.append("its log has no index: a copy of both was read")
            quiet = still is path and not log.exists() and not journal.exists()
            before = _stamp(path)
            # Readers of a log leave marks in its index, unless that is opened for reading only.
            ours = "mode=ro&immutable=1" if quiet else "mode=ro&readonly_shm=1"
            connection = _connect(still, ours if still is path else "mode=ro")
            try:
                parses = _parses(connection)
            except sqlite3.OperationalError as error:
                if still is not path or quiet or "locked" in str(error):
                    raise
                # A journal that a crash left behind has to be played back, which only a copy may be.
                connection.close()
                still = _copied(path, Path(room))
                what = "its journal was left behind by a crash" if journal.exists() else "its log is in use"
                notes.append(f"{what}: a copy of both was read")
                connection = _connect(still, "mode=rw")
                parses = _parses(connection)
            if not parses:
                connection.close()
                still = _copied(path, Path(room)) if still is path else still
                _simplified(still)
                connection = _connect(still, "mode=ro")
                notes.append(
                    "its schema says more than this SQLite can parse: read without CHECK constraints"
                )
            connection.execute("BEGIN")
            yield connection, notes
            if quiet and _stamp(path) != before:
                raise Moved("the database was written while it was read; try again", path=str(path))
        except sqlite3.Error as error:
            raise _said(error, path) from None
        except UnicodeDecodeError:
            # SQLite quoted damaged text in its own message.
            raise SourceError("the database is damaged", path=str(path)) from None
        except OSError as error:
            raise SourceError(error.strerror or str(error), path=str(path)) from None
        finally:
            if connection is not None:
                connection.close()


def _stamp(path: Path) -> tuple[int, ...]:
    """Sizes and times of a database and what belongs to it."""
    found: list[int] = []
    for file in (path, _beside(path, "-wal"), _beside(path, "-journal")):
        if file.exists():
            info = file.stat()
            found += (info.st_size, info.st_mtime_ns)
        else:
            found.append(-1)
    return tuple(found)


def _copied(path: Path, room: Path) -> Path:
    """A private copy of a database with its log or journal, taken while neither changed."""
    copy = room / "copy.sqlite"
    for _ in range(COPY_TRIES):
        before = _stamp(path)
        shutil.copyfile(path, copy)
        for suffix in ("-wal", "-journal"):
            if _beside(path, suffix).exists():
                shutil.copyfile(_beside(path, suffix), _beside(copy, suffix))
        if _stamp(path) == before:
            return copy
    raise SourceError("the database is being written all the time; try again", path=str(path))


def _parses(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        if "malformed database schema" in str(error) or "unsupported file format" in str(error):
            return False
        raise
    return True


def _simplified(copy: Path) -> None:
    """Takes CHECK constraints and newer table options out of a private copy's schema."""
    connection = sqlite3.connect(copy, isolation_level=None)
    try:
        connection.execute("PRAGMA writable_schema = ON")
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError:
            pass  # the first statement reports what the second ignores
        tables = connection.execute("SELECT rowid, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        for number, sql in tables:
            if isinstance(sql, str) and not sql.lstrip().upper().startswith("CREATE VIRTUAL"):
                connection.execute(
                    "UPDATE sqlite_master SET sql = ? WHERE rowid = ?", (without_checks(sql), number)
                )
        # Indices, views and triggers serve writing; a query needs none of them.
        connection.execute("DELETE FROM sqlite_master WHERE type IN ('view', 'trigger')")
        connection.execute("DELETE FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")
    finally:
        connection.close()


def without_checks(sql: str) -> str:
    """A CREATE TABLE text without CHECK constraints, and with no table option but WITHOUT ROWID."""
    kept = []
    at = 0
    while (found := _CHECK.search(sql, at)) is not None:
        kept.append(sql[at : found.start()])
        at = _closing(sql, found.end())
    kept.append(sql[at:])
    text = "".join(kept)
    end = text.rfind(")")
    rowid = re.search(r"WITHOUT\s+ROWID", text[end + 1 :], re.IGNORECASE)
    text = text[: end + 1] + (" WITHOUT ROWID" if rowid else "")
    return re.sub(r",(\s*\))", r"\1", re.sub(r",(?:\s*,)+", ",", text))


def _closing(sql: str, at: int) -> int:
    depth = 1
    for token in _TOKEN.finditer(sql, at):
        if token.group() == "(":
            depth += 1
        elif token.group() == ")":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(sql)


def _name(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _layout(connection: sqlite3.Connection, notes: Sequence[str]) -> Layout:
    tables: dict[str, list[str]] = {}
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
        columns = connection.execute(f"PRAGMA table_info({_quoted(_name(name))})").fetchall()
        tables[_name(name)] = [_name(column[1]) for column in columns]
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return Layout(tables, version, tuple(notes))


def _query(selection: Selection, columns: Sequence[str]) -> tuple[str, list[Value]] | None:
    """The statement of a selection; None when the table has not all the columns that it names."""
    wanted = selection.columns or tuple(columns)
    named = {*selection.where, *selection.order}
    if not named <= set(columns):
        return None
    chosen = [name for name in wanted if name in columns]
    if not chosen:
        return None
    terms: list[str] = []
    values: list[Value] = []
    for name, choices in selection.where.items():
        told = [choice for choice in choices if choice is not None]
        either = [f"{_quoted(name)} IN ({', '.join('?' * len(told))})"]
        if len(told) != len(choices):
            either.append(f"{_quoted(name)} IS NULL")
        terms.append(f"({' OR '.join(either)})")
        values += told
    distinct = "DISTINCT " if selection.distinct else ""
    text = f"SELECT {distinct}{', '.join(map(_quoted, chosen))} FROM {_quoted(selection.table)}"
    if terms:
        text += f" WHERE {' AND '.join(terms)}"
    if selection.order:
        text += f" ORDER BY {', '.join(map(_quoted, selection.order))}"
    return text, values


def read_rows(path: Path, selections: Sequence[Selection]) -> tuple[Layout, list[list[dict[str, Value]]]]:
    """The rows of a few small selections at once, in memory.

    Raises:
        SourceError: The database cannot be read.
    """
    for _ in range(READ_TRIES - 1):
        try:
            return _read_rows(path, selections)
        except Moved:
            continue
    return _read_rows(path, selections)


def _read_rows(path: Path, selections: Sequence[Selection]) -> tuple[Layout, list[list[dict[str, Value]]]]:
    found: list[list[dict[str, Value]]] = []
    with _opened(path) as (connection, notes):
        layout = _layout(connection, notes)
        for selection in selections:
            query = _query(selection, layout.tables.get(selection.table, []))
            if query is None or selection.table not in layout.tables:
                found.append([])
                continue
            rows = connection.execute(*query)
            names = [column[0] for column in rows.description]
            found.append([dict(zip(names, row, strict=True)) for row in rows])
    return layout, found


def text_of_rows(path: Path, selections: Sequence[Selection]) -> Iterator[bytes]:
    """The chosen rows of a database as JSON lines, read in one snapshot.

    The first line is ``{"layout": {"tables", "user_version", "notes"}}``. A row is ``{"table", "key", "column",
    "value"}`` with the column's JSON text as it stands, ``{…, "text"}`` where that is no JSON on one line, or
    ``{"table", "key", "value"}`` with an object of all columns (``…_json`` as JSON). Where a table breaks off,
    ``{"damaged": {"table", "message"}}`` stands in place of the rest.

    Raises:
        Moved: What was read so far is not of one moment: read again.
        SourceError: The database cannot be read.
    """
    with _opened(path) as (connection, notes):
        layout = _layout(connection, notes)
        yield _encode({"layout": layout._asdict()}) + b"\n"
        for selection in selections:
            columns = layout.tables.get(selection.table)
            query = None if columns is None else _query(selection, columns)
            if query is None:
                continue
            try:
                rows = connection.execute(*query)
                names = [_name(column[0]) for column in rows.description]
                while batch := rows.fetchmany(BATCH):
                    for values in batch:
                        row = dict(zip(names, values, strict=True))
                        if selection.without is None or not _is_left(selection, *selection.without, row):
                            yield _line(selection, row)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                    raise
                yield _encode({"damaged": {"table": selection.table, "message": _one_line(error)}}) + b"\n"


def _is_left(selection: Selection, member: str, words: frozenset[str], row: dict[str, Value]) -> bool:
    """Whether the text of a row says that it is left out; one that cannot be read is not."""
    value = next((row[column] for column in selection.value if row.get(column) is not None), None)
    try:
        found = _object(value if isinstance(value, str | bytes) else b"").get(member)
        return found is not None and _any_value(found) in words
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError):
        return False


def _line(selection: Selection, row: dict[str, Value]) -> bytes:
    key = _encode({name: _name_of(row[name]) for name in selection.key if name in row})
    head = b'{"table":' + _encode(selection.table) + b',"key":' + key
    for column in selection.value:
        value = row.get(column)
        if value is None:
            continue
        data = value.encode() if isinstance(value, str) else value
        if isinstance(data, bytes):
            data = _inflated(data)
            form = (
                b',"value":' + data
                if _stands(data)
                else b',"text":' + _encode(data.decode("utf-8", "replace"))
            )
            return head + b',"column":' + _encode(column) + form + b"}\n"
    whole = _encode({name: _member(name, value) for name, value in row.items()})
    return head + b',"value":' + whole + b"}\n"


def _member(name: str, value: Value) -> Any:
    """A column in a row's object; one that is named as JSON, and is, stands as the JSON that it holds."""
    if name.endswith("_json") and isinstance(value, str) and _stands(value.encode()):
        return msgspec.Raw(value.encode())
    return _plain(value)


def _name_of(value: Value) -> Any:
    """A value of a key: refs repeat it, so an integer that not every reader can take stands as text."""
    return str(value) if isinstance(value, int) and abs(value) > lossless.MAX_SAFE else _plain(value)


def _plain(value: Value) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _inflated(data: bytes) -> bytes:
    if not is_compressed(data):
        return data
    try:
        return b"".join(inflate([data], VALUE_MOST))
    except Torn:
        return data  # the adapter finds no JSON in it, and says so


def _stands(data: bytes) -> bool:
    """Whether a text may stand on a line of its own as a JSON value."""
    if b"\n" in data:
        return False
    try:
        data.decode("utf-8")
        _any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


_encode = msgspec.json.Encoder().encode
_any = msgspec.json.Decoder(msgspec.Raw).decode
_any_value = msgspec.json.Decoder().decode
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
