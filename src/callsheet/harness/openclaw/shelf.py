"""The databases of one session, opened: an agent's and the shared one, each as lines of chosen rows.

Owns the selections (what is read of which table; nothing else is), the rows around a transcript that are facts of the
session as a whole, rows of the shared database by session.

Must never know: what an entry says, records but the session's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from callsheet.harness._port import Desk
from callsheet.harness._port.cells import Cell, Damage, row_ref, rows_of, values_of
from callsheet.harness._port.veil import Veil
from callsheet.harness.openclaw.feed import EVENTS
from callsheet.harness.openclaw.layout import KIND, Member
from callsheet.harness.openclaw.shapes import text
from callsheet.harness.openclaw.trajectory import COLUMN, REPEATS, TABLE
from callsheet.records import Ref, SourceEntry
from callsheet.wire.database import Selection

META = "schema_meta"
WINDOWS = "session_windows"
NODES = "session_nodes"
INDEX = "session_transcript_index_state"
COLD = "session_transcript_cold_archives"
META_COLUMNS = ("meta_key", "role", "schema_version", "agent_id", "app_version")
NODE_COLUMNS = (
    "session_key",
    "current_session_id",
    "status",
    "created_via",
    "created_actor_type",
    "created_actor_id",
    "parent_session_key",
    "spawned_by",
    "fork_source_session_key",
    "fork_source_session_id",
    "fork_source_entry_id",
    "label",
    "display_name",
)
"""Not ``entry_json``: it repeats the system prompt."""
INDEX_COLUMNS = ("session_id", "indexed_seq", "leaf_event_id", "needs_rebuild")
COLD_COLUMNS = (
    "session_id",
    "generation",
    "archive_name",
    "archive_sha256",
    "event_count",
    "last_seq",
    "storage",
)
APPROVALS = "operator_approvals"
TASKS = "task_runs"
AGENTS = "subagent_runs"
AUDIT = "audit_events"
HEADS = {META: "meta", WINDOWS: "window", NODES: "node", INDEX: "index", COLD: "cold"}
"""Tables whose rows are facts of the session record, and the role of its refs to them."""


def agent_selections(member: Member) -> list[Selection]:
    """What is read of an agent's database for one session."""
    own: dict[str, list[Any]] = {"session_id": [member.session_id]}
    found = [
        Selection(META, ("meta_key",), where={"meta_key": ["primary"]}, columns=META_COLUMNS),
        Selection(WINDOWS, ("session_id",), where=own),
    ]
    if member.key is not None:
        by_key = {"session_key": [member.key]}
        found.append(Selection(NODES, ("session_key",), where=by_key, columns=NODE_COLUMNS))
    return [
        *found,
        Selection(INDEX, ("session_id",), where=own, columns=INDEX_COLUMNS),
        Selection(COLD, ("session_id",), where=own, columns=COLD_COLUMNS),
        Selection(EVENTS, ("session_id", "seq"), ("event_json", "event_zstd"), own, ("seq",)),
        Selection(TABLE, ("session_id", "seq"), (COLUMN,), own, ("seq",), without=("type", REPEATS)),
    ]


def state_selections(keys: list[str | None], ids: list[str]) -> list[Selection]:
    """What is read of the shared database for some sessions."""
    by_key: dict[str, list[Any]] = {"source_session_key": list(keys)}
    requester: dict[str, list[Any]] = {"requester_session_key": list(keys)}
    audit: dict[str, list[Any]] = {"session_id": list(ids), "kind": ["agent_run"]}
    return [
        Selection(APPROVALS, ("approval_id",), where=by_key, order=("created_at_ms",)),
        Selection(TASKS, ("task_id",), where={**requester, "runtime": ["cli"]}, order=("created_at",)),
        Selection(AGENTS, ("run_id",), where=requester, order=("created_at",)),
        Selection(AUDIT, ("sequence",), where=audit, order=("sequence",)),
    ]


class Around(NamedTuple):
    """What an agent's database says of a session as a whole.

    Attributes:
        rows: Table to the row.
        refs: Refs to all of them, and to the layout.
        damages: Tables that broke off, the transcript's apart.
    """

    rows: dict[str, dict[str, Any]]
    refs: list[Ref]

    def get(self, table: str, column: str) -> Any:
        """A value of the session's row in a table."""
        return self.rows.get(table, {}).get(column)


def around(veil: Veil, source: SourceEntry) -> Around:
    """Reads what stands around a transcript."""
    found = Around({}, [])
    for row in rows_of(veil.lines(source)):
        if isinstance(row, Cell) and row.table in HEADS:
            # Of two rows where there should be one, the first counts, and the other is named.
            again = row.table in found.rows
            found.rows.setdefault(row.table, values_of(row))
            found.refs.append(row_ref(source, row, "elsewhere" if again else HEADS[row.table]))
    return found


class StateRow(NamedTuple):
    """A row of the shared database."""

    cell: Cell
    values: dict[str, Any]

    @property
    def key(self) -> str | None:
        """The session key that it belongs to."""
        return text(self.values.get("source_session_key")) or text(self.values.get("requester_session_key"))


def state_rows(veil: Veil, source: SourceEntry) -> Iterator[StateRow | Damage]:
    """The rows of the shared database."""
    for row in rows_of(veil.lines(source)):
        yield row if isinstance(row, Damage) else StateRow(row, values_of(row))


def open_agent(desk: Desk, path: str, member: Member) -> SourceEntry:
    """Opens an agent's database for one session."""
    return desk.database(path, KIND, agent_selections(member))
