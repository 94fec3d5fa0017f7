"""Which rows of T3 Code's state database make a session: one thread, with the threads that it started.

Owns: recognising ``state.sqlite`` of both generations by its content, the list of its threads, what is read of which
table for one thread, and the transcripts of terminals that lie beside it. V1 keeps projections of messages and
activities, V2 (``orchestration_v2_*``) turn items, runs and runtime requests; a database of V2 has the older tables
beside them.

Must never know: what a row says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from callsheet.errors import SourceError
from callsheet.harness._port import Folder, Session
from callsheet.harness.t3code.terminals import Transcript, transcripts
from callsheet.wire.database import Selection, is_database

KIND = "t3code"
DATABASES = ("**/*.sqlite", "**/*.sqlite3", "**/*.db")

V2 = "orchestration_v2_projection_"
THREADS, RUNS, ITEMS = f"{V2}threads", f"{V2}runs", f"{V2}turn_items"
REQUESTS, SUBAGENTS, PROVIDERS = f"{V2}runtime_requests", f"{V2}subagents", f"{V2}provider_threads"
TURNS = f"{V2}provider_turns"
OUTBOX = "orchestration_v2_effect_outbox"
LAUNCHES = "orchestration_v2_thread_launch_workflows"
OLD_THREADS, OLD_MESSAGES = "projection_threads", "projection_thread_messages"
ACTIVITIES, OLD_TURNS = "projection_thread_activities", "projection_turns"
PENDING, OLD_SESSIONS, PROJECTS = (
    "projection_pending_approvals",
    "projection_thread_sessions",
    "projection_projects",
)
OLD_PLANS, DIFFS, RUNTIME = (
    "projection_thread_proposed_plans",
    "checkpoint_diff_blobs",
    "provider_session_runtime",
)
EVENTS = "orchestration_events"
ANSWERS = ("thread.approval-response-requested", "thread.user-input-response-requested")
"""V1 events that hold what nothing else keeps: the answer to a request, as a client sent it."""
RESPONSE = "runtime-request.respond"
MARKED = frozenset({ACTIVITIES, ITEMS, THREADS, EVENTS})
"""Tables that a state database of either generation has."""


class Thread(NamedTuple):
    """One thread.

    Attributes:
        thread_id: Its id.
        project_id: Its project.
        parent: The thread that started it.
        new: Whether it is a thread of V2.
        source: The thread that it was forked from.
    """

    thread_id: str
    project_id: str | None
    parent: str | None
    new: bool
    source: str | None = None


class Parts(NamedTuple):
    """What a session is read from: the database, the thread and those that it started, their terminals' transcripts."""

    database: str
    threads: tuple[Thread, ...] = ()
    wrong: str | None = None
    transcripts: tuple[Transcript, ...] = ()


def recognises(name: str, head: bytes) -> bool:  # noqa: ARG001 (the content decides)
    """Whether a file is a state database of T3 Code."""
    return is_database(head) and any(name.encode() in head for name in MARKED)


def sessions(path: str, folder: Folder) -> list[Session]:
    """The sessions of one database, or of all below a folder."""
    if folder.is_file(path):
        return list(_of_database(path, folder))
    found: list[Session] = []
    for database in sorted({file for pattern in DATABASES for file in folder.files(path, pattern)}):
        at = PurePath(database)
        named = at.name == "state.sqlite" and at.parent.name in ("userdata", "userdata-v2")
        if not is_database(folder.head(database, 16)):
            wrong = "not a SQLite database (or empty, or encrypted)"
            found += (
                [Session(KIND, at.name, database, Parts(database, (), wrong), (database,))] if named else []
            )
        elif not MARKED.isdisjoint(folder.tables(database)) or (named and not folder.tables(database)):
            found += _of_database(database, folder)
    return found


def _of_database(path: str, folder: Folder) -> Iterator[Session]:
    try:
        threads = _threads(path, folder)
    except SourceError as error:
        yield Session(KIND, PurePath(path).name, path, Parts(path, (), error.message), (path,))
        return
    if not threads:
        parts = Parts(path, (), "the database holds no threads")
        yield Session(KIND, PurePath(path).name, path, parts, (path,))
    children: dict[str, list[Thread]] = {}
    for thread in threads:
        if thread.parent is not None:
            children.setdefault(thread.parent, []).append(thread)
    known = {thread.thread_id for thread in threads}
    beside = transcripts(path, known, folder)
    told: set[str] = set()
    # Threads of a ring of parents belong to none of them: each that is left begins a session.
    for thread in sorted(threads, key=lambda one: one.parent in known):
        if thread.thread_id not in told and thread.parent not in told:
            family = tuple(_family(thread, children))
            told.update(one.thread_id for one in family)
            own = tuple(one for member in family for one in beside.get(member.thread_id, ()))
            files = (path, *(one.path for one in own))
            yield Session(KIND, thread.thread_id, path, Parts(path, family, None, own), files)


def _family(thread: Thread, children: dict[str, list[Thread]]) -> Iterator[Thread]:
    seen = set()
    waiting = [thread]
    while waiting:
        one = waiting.pop(0)
        if one.thread_id not in seen:
            seen.add(one.thread_id)
            yield one
            waiting += children.get(one.thread_id, [])


def _threads(path: str, folder: Folder) -> list[Thread]:
    ids = [
        Selection(table, columns=("thread_id",), distinct=True)
        for table in (ITEMS, RUNS, ACTIVITIES, OLD_MESSAGES)
    ]
    new, old, *rows = folder.rows(
        path,
        [
            Selection(THREADS, columns=("thread_id", "project_id", "payload_json")),
            Selection(OLD_THREADS, columns=("thread_id", "project_id")),
            *ids,
        ],
    )
    filled = {row["thread_id"] for listed in rows for row in listed if isinstance(row["thread_id"], str)}
    items = {row["thread_id"] for row in (*rows[0], *rows[1])}
    found: dict[str, Thread] = {}
    for row in new:
        if isinstance(row.get("thread_id"), str):
            project = _text(row.get("project_id"))
            found[row["thread_id"]] = Thread(row["thread_id"], project, *_lineage(row.get("payload_json")))
    for row in old:
        name = row.get("thread_id")
        if isinstance(name, str) and name not in found and name in filled:
            found[name] = Thread(name, _text(row.get("project_id")), None, name in items)
    for name in sorted(filled - set(found)):
        found[name] = Thread(name, None, None, name in items)
    return list(found.values())


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _lineage(payload: Any) -> tuple[str | None, bool, str | None]:
    """The thread that started one of V2, and the one that it was forked from (the last three members of Thread)."""
    try:
        value = msgspec.json.decode(payload) if isinstance(payload, str) else None
    except (msgspec.DecodeError, RecursionError):
        return None, True, None
    lineage = value.get("lineage") if isinstance(value, dict) else None
    if not isinstance(lineage, dict):
        return None, True, None
    parent, relation = _text(lineage.get("parentThreadId")), lineage.get("relationshipToParent")
    if relation in (None, "subagent"):
        return parent, True, None
    return None, True, parent if relation == "fork" else None


RESUMES = {"codex": ("threadId",), "claudeAgent": ("resume", "sessionId")}
"""Providers of V1, and where their cursor names their own session."""


def resumed(row: dict[str, Any]) -> str | None:
    """The provider's own session, from a row of ``provider_session_runtime``."""
    cursor = row.get("resume_cursor_json")
    if not isinstance(cursor, dict):
        return None
    named = RESUMES.get(str(row.get("provider_name")), ())
    return next((found for name in named if (found := _text(cursor.get(name)))), None)


AGENTS = {"codex": "codex", "claudeAgent": "claude-code"}
"""Providers, by the name that T3 Code has for them, that keep sessions which callsheet can read."""


def driven(parts: Parts, folder: Folder) -> list[tuple[str, str]]:
    """The sessions that the providers of these threads keep themselves: kind of the agent, and id."""
    threads = {"thread_id": [thread.thread_id for thread in parts.threads]}
    new, old, runtime = folder.rows(
        parts.database,
        [
            Selection(PROVIDERS, columns=_PAYLOAD, where=threads),
            Selection(OLD_SESSIONS, columns=OLD_SESSION_COLUMNS, where=threads),
            Selection(RUNTIME, columns=RUNTIME_COLUMNS, where=threads),
        ],
    )
    found: list[tuple[Any, Any]] = []
    for row in new:
        value = _object(row.get("payload_json"))
        found.append((value.get("driver"), _object(value.get("nativeThreadRef")).get("nativeId")))
    found += [(row.get("provider_name"), row.get("provider_thread_id")) for row in old]
    for row in runtime:
        cursor = {**row, "resume_cursor_json": _object(row.get("resume_cursor_json"))}
        found.append((row.get("provider_name"), resumed(cursor)))
    return [(AGENTS[name], session) for name, session in found if name in AGENTS and _text(session)]


def _object(value: Any) -> dict[str, Any]:
    """An object, or the one that a JSON text holds; an empty one for anything else."""
    try:
        value = msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def selections(thread: Thread) -> list[Selection]:
    """What is read for one thread."""
    own: dict[str, list[Any]] = {"thread_id": [thread.thread_id]}
    project = (
        [
            Selection(
                PROJECTS, ("project_id",), where={"project_id": [thread.project_id]}, columns=PROJECT_COLUMNS
            )
        ]
        if thread.project_id
        else []
    )
    return [*project, *(_new(own) if thread.new else _old(own, thread.thread_id))]


PROJECT_COLUMNS = ("project_id", "title", "workspace_root")
PLAN_COLUMNS = ("plan_id", "thread_id", "turn_id", "plan_markdown", "created_at", "updated_at")
DIFF_COLUMNS = ("thread_id", "from_turn_count", "to_turn_count", "diff", "created_at")
RUNTIME_COLUMNS = ("thread_id", "provider_name", "provider_instance_id", "resume_cursor_json")
LAUNCH_COLUMNS = (
    "command_id",
    "thread_id",
    "status",
    "worktree_path",
    "branch",
    "setup_committed",
    "last_error",
    "created_at",
    "updated_at",
)
OLD_THREAD_COLUMNS = (
    "thread_id",
    "project_id",
    "title",
    "branch",
    "worktree_path",
    "model_selection_json",
    "runtime_mode",
)
OLD_SESSION_COLUMNS = (
    "thread_id",
    "status",
    "provider_name",
    "provider_session_id",
    "provider_thread_id",
    "provider_instance_id",
    "last_error",
)
_PAYLOAD = ("payload_json",)


def _new(own: dict[str, list[Any]]) -> list[Selection]:
    responses = {**own, "effect_type": [RESPONSE]}
    return [
        Selection(THREADS, ("thread_id",), _PAYLOAD, own),
        Selection(PROVIDERS, ("provider_thread_id",), _PAYLOAD, own),
        Selection(REQUESTS, ("runtime_request_id",), _PAYLOAD, own, ("created_at",)),
        Selection(OUTBOX, ("effect_id", "status"), _PAYLOAD, responses, ("created_at",)),
        Selection(LAUNCHES, ("command_id",), where=own, columns=LAUNCH_COLUMNS),
        Selection(ITEMS, ("turn_item_id", "thread_id"), _PAYLOAD, own, ("ordinal",)),
        Selection(SUBAGENTS, ("subagent_id",), _PAYLOAD, own, ("updated_at",)),
        Selection(RUNS, ("run_id", "thread_id"), _PAYLOAD, own, ("ordinal",)),
        Selection(TURNS, ("provider_turn_id",), _PAYLOAD, own, ("ordinal",)),
    ]


def _old(own: dict[str, list[Any]], thread_id: str) -> list[Selection]:
    answers: dict[str, list[Any]] = {"stream_id": [thread_id], "event_type": list(ANSWERS)}
    return [
        Selection(OLD_THREADS, ("thread_id",), where=own, columns=OLD_THREAD_COLUMNS),
        Selection(OLD_SESSIONS, ("thread_id",), where=own, columns=OLD_SESSION_COLUMNS),
        Selection(RUNTIME, ("thread_id",), where=own, columns=RUNTIME_COLUMNS),
        Selection(PENDING, ("request_id",), where=own, order=("created_at",)),
        Selection(EVENTS, ("sequence",), where=answers, order=("sequence",), columns=EVENT_COLUMNS),
        Selection(OLD_MESSAGES, ("message_id",), where=own, order=("created_at",)),
        Selection(ACTIVITIES, ("activity_id",), where=own, order=("created_at",)),
        Selection(OLD_PLANS, ("plan_id",), where=own, order=("created_at",), columns=PLAN_COLUMNS),
        Selection(OLD_TURNS, ("row_id",), where=own, order=("row_id",)),
        Selection(DIFFS, DIFF_COLUMNS[:3], where=own, order=("to_turn_count",), columns=DIFF_COLUMNS),
    ]


EVENT_COLUMNS = ("sequence", "event_id", "event_type", "actor_kind", "occurred_at", "payload_json")


def places(environ: dict[str, str], home: str) -> list[str]:
    """Where this user's threads lie: the folders of both generations."""
    base = environ.get("T3CODE_HOME") or f"{home}/.t3"
    return [f"{base}/userdata", f"{base}/userdata-v2"]
