"""Rows: records to the lines of a sheet, one row a call, pure and bounded.

``Sheet`` reads one stream, ``nested_rows`` a session with its agents. ``row_at`` makes a single row again,
for a stream that still grows. A row holds what the records say and no more; what they do not say is listed
in ``not_recorded``.

Must never know: how a row is drawn, where records come from.
"""

from callsheet.rows.context import HIDDEN, Context, View, has_captures, registry_of
from callsheet.rows.everywhere import Everywhere, Silences
from callsheet.rows.nested import Nested, nested_rows
from callsheet.rows.reduce import row_at, rows_of
from callsheet.rows.roll import NoRows, Roll, Rows
from callsheet.rows.row import (
    ROW_KINDS,
    AgentShown,
    ChangeShown,
    Count,
    Limits,
    NativePlace,
    Output,
    PermissionShown,
    Reached,
    Remark,
    Row,
    RowKind,
    State,
)
from callsheet.rows.sheet import Sheet
from callsheet.rows.usage import Reported

__all__ = [
    "HIDDEN",
    "ROW_KINDS",
    "AgentShown",
    "ChangeShown",
    "Context",
    "Count",
    "Everywhere",
    "Limits",
    "NativePlace",
    "Nested",
    "NoRows",
    "Output",
    "PermissionShown",
    "Reached",
    "Remark",
    "Reported",
    "Roll",
    "Row",
    "RowKind",
    "Rows",
    "Sheet",
    "Silences",
    "State",
    "View",
    "has_captures",
    "nested_rows",
    "registry_of",
    "row_at",
    "rows_of",
]
