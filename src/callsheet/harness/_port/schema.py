"""What is said of a database whose schema is not the one that was seen.

Owns: how the database had to be read, a newer version, tables and columns never seen, tables that are not there. None
of it stops an import.

Must never know: what a table holds.
"""

from __future__ import annotations

from callsheet.harness._port import Desk
from callsheet.harness._port.cells import layout_of
from callsheet.records import SourceEntry
from callsheet.registry import Registry


def look(desk: Desk, source: SourceEntry, registry: Registry, role: str) -> None:
    """Tells what is unusual about a database, by the registry's store of this role."""
    layout = layout_of(desk.lines(source))
    for note in layout.notes:
        desk.diagnose("database_read", note, source)
    for store in registry.store:
        if store.role != role:
            continue
        if store.schema and layout.user_version > store.schema:
            message = (
                f"schema {layout.user_version} is newer than any seen ({store.schema}): read as far as known"
            )
            desk.diagnose("newer_schema", message, source)
        unknown = sorted(
            name for name in layout.tables if not _is_known(name, {*store.tables, *store.others})
        )
        if unknown:
            message = f"the database has tables not seen before: {', '.join(unknown)}"
            desk.diagnose("unknown_tables", message, source)
        for table, columns in store.tables.items():
            if table not in layout.tables:
                desk.diagnose("missing_table", f"the database has no table {table}", source)
                continue
            unknown = sorted(set(layout.tables[table]) - set(columns))
            if unknown:
                message = f"{table} has columns not seen before: {', '.join(unknown)}"
                desk.diagnose("unknown_columns", message, source)


def _is_known(name: str, seen: set[str]) -> bool:
    return name in seen or name.startswith("sqlite_")
