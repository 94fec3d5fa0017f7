"""SQLite files that belong to someone else: rows out of them, not a byte into them or beside them.

Owns: opening read-only, also while the owner writes (its write-ahead log is read along), without leaving files beside
a database that nobody has open; the copy that is read instead when its log has no index or its schema cannot be
parsed by the SQLite at hand; and the extract, a private database of the chosen rows alone, made in one snapshot, so
that every later pass, the digest and the native copy speak of the same rows.

Must never know: what a table means, records.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from callsheet.errors import SourceError

MAGIC = b"SQLite format 3\0"
WAIT_SECONDS = 5.0
"""How long a lock of the owner is waited for."""
BATCH = 256
COPY_TRIES = 3
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
        where: Which rows; empty for all.
        order: Columns to sort by.
        columns: Which columns; empty for all.
    """

    table: str
    where: Where = {}  # noqa: RUF012 (never changed)
    order: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


class Layout(NamedTuple):
    """What a database is made of.

    Attributes:
        tables: Table to its columns, as the owner's database has them.
        user_version: ``PRAGMA user_version``.
        damaged: Table to what SQLite said when its rows broke off.
        notes: What was done to read it, one line each.
    """

    tables: dict[str, list[str]]
    user_version: int
    damaged: dict[str, str]
    notes: tuple[str, ...] = ()


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


def _said(error: sqlite3.Error, path: Path) -> SourceError:
    message = str(error)
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
            connection = _connect(still, "mode=ro&immutable=1" if quiet else "mode=ro")
            try:
                parses = _parses(connection)
            except sqlite3.OperationalError:
                if still is not path or not journal.exists():
                    raise
                # A journal that a crash left behind has to be played back, which only a copy may be.
                connection.close()
                still = _copied(path, Path(room))
                notes.append("its journal was left behind by a crash: a copy of both was read")
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
                raise SourceError("the database was written while it was read; try again", path=str(path))
        except sqlite3.Error as error:
            raise _said(error, path) from None
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
    return Layout(tables, version, {}, tuple(notes))


def _query(selection: Selection, columns: Sequence[str]) -> tuple[str, list[Value]] | None:
    """The statement of a selection; None when the table has not all the columns that it names."""
    wanted = selection.columns or tuple(columns)
    named = {*selection.where, *selection.order}
    if not named <= set(columns):
        return None
    chosen = [name for name in wanted if name in columns]
    terms: list[str] = []
    values: list[Value] = []
    for name, choices in selection.where.items():
        terms.append(f"{_quoted(name)} IN ({', '.join('?' * len(choices))})")
        values += choices
    text = f"SELECT {', '.join(map(_quoted, chosen))} FROM {_quoted(selection.table)}"
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


def extract(path: Path, selections: Sequence[Selection], out: Path) -> Layout:
    """Copies the chosen rows, in one snapshot, into a new database.

    Tables and columns have the names they have in the owner's database; values keep their storage class. Where a
    table breaks off, the rows before it stand and ``Layout.damaged`` says so.

    Raises:
        SourceError: The database cannot be read.
    """
    with _opened(path) as (connection, notes):
        layout = _layout(connection, notes)
        target = sqlite3.connect(out, isolation_level=None)
        try:
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "secure_delete = ON"):
                target.execute(f"PRAGMA {pragma}")
            for selection in selections:
                columns = layout.tables.get(selection.table)
                query = None if columns is None else _query(selection, columns)
                if query is not None:
                    _copy(connection, query, target, selection.table, layout)
        finally:
            target.close()
    return layout


def _copy(
    connection: sqlite3.Connection,
    query: tuple[str, list[Value]],
    target: sqlite3.Connection,
    table: str,
    layout: Layout,
) -> None:
    target.execute("BEGIN")
    try:
        rows = connection.execute(*query)
        names = ", ".join(_quoted(column[0]) for column in rows.description)
        marks = ", ".join("?" * len(rows.description))
        target.execute(f"CREATE TABLE IF NOT EXISTS {_quoted(table)} ({names})")
        while batch := rows.fetchmany(BATCH):
            target.executemany(f"INSERT INTO {_quoted(table)} VALUES ({marks})", batch)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise
        layout.damaged[table] = str(error)
    target.execute("COMMIT")


class Extract:
    """An extract opened for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _connect(path, "mode=ro&immutable=1")
        self._columns = {
            _name(name): [
                _name(column[1])
                for column in self._connection.execute(f"PRAGMA table_info({_quoted(_name(name))})")
            ]
            for (name,) in self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        }

    def rows(self, selection: Selection) -> Iterator[dict[str, Value]]:
        """The rows of a selection, one at a time; none for a table or column that is not there."""
        query = _query(selection, self._columns.get(selection.table, []))
        if query is None or selection.table not in self._columns:
            return
        found = self._connection.execute(*query)
        names = [column[0] for column in found.description]
        while batch := found.fetchmany(BATCH):
            for row in batch:
                yield dict(zip(names, row, strict=True))

    def close(self) -> None:
        """Closes it."""
        self._connection.close()


Change = Callable[[str, str, Value], tuple[Value, int]]
"""Given table, column and value: what is to stand there, and how many places were masked."""


def rewrite(path: Path, out: Path, change: Change) -> int:
    """Copies an extract and changes its texts and blobs on the way; returns how many places were changed."""
    shutil.copyfile(path, out)
    count = 0
    target = sqlite3.connect(out, isolation_level=None)
    target.text_factory = _text
    try:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "secure_delete = ON"):
            target.execute(f"PRAGMA {pragma}")
        target.execute("BEGIN")
        for (name,) in target.execute("SELECT name FROM sqlite_master").fetchall():
            count += _rewritten(target, _name(name), change)
        target.execute("COMMIT")
        if count:
            target.execute("VACUUM")  # nothing of what was there stays in free pages
    finally:
        target.close()
    return count


def _rewritten(target: sqlite3.Connection, table: str, change: Change) -> int:
    count = last = 0
    select = f"SELECT rowid, * FROM {_quoted(table)} WHERE rowid > ? ORDER BY rowid LIMIT {BATCH}"
    while True:
        rows = target.execute(select, (last,))
        columns = [_name(column[0]) for column in rows.description][1:]
        batch = rows.fetchall()
        if not batch:
            return count
        last = batch[-1][0]
        for number, *values in batch:
            for column, value in zip(columns, values, strict=True):
                if isinstance(value, str | bytes):
                    changed, more = change(table, column, value)
                    if more:
                        count += more
                        target.execute(
                            f"UPDATE {_quoted(table)} SET {_quoted(column)} = ? WHERE rowid = ?",
                            (changed, number),
                        )
