"""Which files, and which rows of a database, make an OpenClaw session.

Owns: recognising a transcript file (legacy, archived, of the pi family), an agent's database and the shared state
database by their content; the folder layout (``agents/<id>/agent/openclaw-agent.sqlite``, ``state/openclaw.sqlite``,
``agents/<id>/sessions/``, ``sessions/cold/``); which sessions of a database are agents of another, because one bundle
holds a session with its subagents. Tables with secrets are never named here, so they are never read.

Must never know: what an entry says (but for the head of a file).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from callsheet.errors import SourceError
from callsheet.harness._port import Folder, Session
from callsheet.harness.openclaw.shapes import FAILS, text
from callsheet.harness.openclaw.trajectory import ENDING, TABLE, session_of
from callsheet.wire.database import Selection, is_database

KIND = "openclaw"
AGENT_DB = "openclaw-agent.sqlite"
STATE_DB = "openclaw.sqlite"
ENTRY_TYPES = frozenset(
    {
        "message",
        "model_change",
        "thinking_level_change",
        "custom",
        "custom_message",
        "compaction",
        "branch_summary",
        "session_info",
        "label",
    }
)
OURS = (frozenset({"transcript_events"}), frozenset({"operator_approvals", "task_runs"}))
"""Tables of an agent's database, and of the shared one."""
HEAD_LINES = 50
DATABASES = ("**/*.sqlite", "**/*.sqlite3", "**/*.db")
FILES = ("**/*.jsonl", "**/*.jsonl.zst", "**/*.jsonl.*")


class Member(NamedTuple):
    """One session of a database.

    Attributes:
        session_id: Its id.
        key: Its session key; several sessions may share one.
        parent: Id of the session that started it.
        current: Whether it is the session that its key stands for now (or the only one).
        since: When it was made, in milliseconds, if it is not the only session of its key.
    """

    session_id: str
    key: str | None
    parent: str | None
    current: bool
    since: int


class Parts(NamedTuple):
    """What a session is read from.

    Attributes:
        file: A transcript file.
        database: The agent's database.
        state: The shared database.
        members: The session of a database, then its agents'.
        keys: Session keys of a state database without transcripts.
        wrong: Why it cannot be read.
        traces: Legacy trajectories: the session that each is of, and its file.
    """

    file: str | None = None
    database: str | None = None
    state: str | None = None
    members: tuple[Member, ...] = ()
    keys: tuple[str | None, ...] = ()
    wrong: str | None = None
    traces: tuple[tuple[str, str], ...] = ()


# -- recognising --------------------------------------------------------------------------------------------------


def recognises(name: str, head: bytes) -> bool:  # noqa: ARG001 (the content decides)
    """Whether a file begins like a transcript, or is one of OpenClaw's databases."""
    if is_database(head):
        return any(all(name.encode() in head for name in names) for names in OURS)
    return head_of(head) is not None or session_of(head) is not None


def _is_ours(tables: list[str]) -> bool:
    """Whether a database with these tables is one of OpenClaw's."""
    return any(names <= set(tables) for names in OURS)


def head_of(head: bytes) -> dict[str, Any] | None:
    """The ``session`` line of a transcript file, or an empty object for one that begins with another entry."""
    seen = 0
    for line in head.split(b"\n")[: 4 * HEAD_LINES]:
        data = line.strip(b"\0\r\t \xef\xbb\xbf")
        if not data:
            continue
        seen += 1
        if seen > HEAD_LINES:
            break
        if not data.startswith(b"{"):
            continue
        try:
            value = msgspec.json.decode(data)
        except FAILS:
            continue
        if not isinstance(value, dict):
            continue
        if value.get("type") == "session":
            return value if text(value.get("id")) and text(value.get("timestamp")) else None
        if text(value.get("type")) in ENTRY_TYPES and _is_entry(value):
            return {}
        if seen > 3:
            return None
    return None


def _is_entry(value: dict[str, Any]) -> bool:
    message = value.get("message")
    role = message.get("role") if isinstance(message, dict) else None
    named = text(value.get("id")) is not None and "parentId" in value
    return named and text(value.get("timestamp")) is not None and (value["type"] != "message" or bool(role))


# -- sessions -----------------------------------------------------------------------------------------------------


def sessions(path: str, folder: Folder) -> list[Session]:
    """The sessions of one file or database, or of all below a folder."""
    if folder.is_file(path):
        if is_database(folder.head(path, 16)):
            return list(_of_database(path, folder)) or [_elsewhere(path, folder)]
        return [_of_file(path, folder)]
    found: list[Session] = []
    for database in _below(path, DATABASES, folder):
        named = PurePath(database).name in (AGENT_DB, STATE_DB)
        if not is_database(folder.head(database, 16)):
            found += [_broken(database)] if named else []
        elif _is_ours(folder.tables(database)) or (named and not folder.tables(database)):
            found += _of_database(database, folder)
    traces = []
    for file in _below(path, FILES, folder):
        head = folder.head(file)
        if head_of(head) is not None:
            found.append(_of_file(file, folder))
        elif session_of(head) is not None:
            traces.append(file)
    taken = {file for session in found for file in session.files}
    return found + [_of_file(trace, folder) for trace in traces if trace not in taken]


def _broken(path: str) -> Session:
    """A file of the name of one of OpenClaw's databases that is none."""
    parts = Parts(database=path, wrong="not a SQLite database (or empty, or encrypted)")
    return Session(KIND, PurePath(path).name, path, parts, (path,))


def _elsewhere(path: str, folder: Folder) -> Session:
    """A shared database that was named by itself: it has no session of its own."""
    wrong = f"the sessions of this database are in {', '.join(_agents_of(path, folder))}"
    return Session(KIND, PurePath(path).name, path, Parts(database=path, wrong=wrong), (path,))


def _below(path: str, patterns: tuple[str, ...], folder: Folder) -> list[str]:
    return sorted({file for pattern in patterns for file in folder.files(path, pattern)})


def _of_file(path: str, folder: Folder) -> Session:
    """A transcript with the trajectory beside it, or a trajectory whose transcript is not there."""
    data = folder.head(path)
    traced = session_of(data) if head_of(data) is None else None
    stem = PurePath(path).name.split(".jsonl")[0]
    if traced is not None:
        beside = f"{path.removesuffix(ENDING)}.jsonl"
        if path.endswith(ENDING) and head_of(folder.head(beside)) is not None:
            return _of_file(beside, folder)
        return Session(KIND, traced, path, Parts(traces=((traced, path),)), (path,))
    session = text((head_of(data) or {}).get("id")) or stem
    trace = f"{path.removesuffix('.jsonl')}{ENDING}"
    if session_of(folder.head(trace)) != session:
        return Session(KIND, session, path, Parts(file=path), (path,))
    return Session(KIND, session, path, Parts(file=path, traces=((session, trace),)), (path, trace))


def _of_database(path: str, folder: Folder) -> Iterator[Session]:
    try:
        members, keys = _listed(path, folder)
    except SourceError as error:
        yield Session(KIND, PurePath(path).name, path, Parts(database=path, wrong=error.message), (path,))
        return
    if members:
        state = state_beside(path, folder)
        traces = _traces_of(path, folder)
        children: dict[str, list[Member]] = {}
        for member in members:
            if member.parent is not None:
                children.setdefault(member.parent, []).append(member)
        told: set[str] = set()
        # Members of a ring of parents belong to none of them: each that is left begins a session.
        for member in sorted(members, key=lambda one: one.parent is not None):
            if member.session_id not in told and (member.parent is None or member.parent not in told):
                family = tuple(_family(member, children))
                told.update(one.session_id for one in family)
                own = tuple(
                    (one.session_id, traces[one.session_id]) for one in family if one.session_id in traces
                )
                parts = Parts(database=path, state=state, members=family, traces=own)
                files = (path, *([state] if state else []), *(file for _, file in own))
                yield Session(KIND, member.session_id, path, parts, files)
        return
    agents = _agents_of(path, folder)
    lost = keys - _keys_of(agents, folder)
    for key in sorted(lost, key=lambda one: one or ""):
        parts = Parts(state=path, keys=(key,))
        yield Session(KIND, key or PurePath(path).name.partition(".")[0], path, parts, (path,))
    if not lost and not agents:
        parts = Parts(database=path, wrong="the database holds no sessions")
        yield Session(KIND, PurePath(path).name, path, parts, (path,))


def _keys_of(databases: list[str], folder: Folder) -> set[str | None]:
    """Session keys that some agents' databases know; their sessions take the rows of the shared one along."""
    found: set[str | None] = set()
    for database in databases:
        try:
            (windows,) = folder.rows(database, [_WINDOWS])
        except SourceError:
            continue  # it says so when it is read itself
        found.update(text(row.get("session_key")) for row in windows)
    return found


def _family(member: Member, children: dict[str, list[Member]]) -> Iterator[Member]:
    seen = set()
    waiting = [member]
    while waiting:
        one = waiting.pop(0)
        if one.session_id not in seen:
            seen.add(one.session_id)
            yield one
            waiting += children.get(one.session_id, [])


_WINDOWS = Selection(
    "session_windows",
    order=("created_at",),
    columns=("session_id", "session_key", "created_at", "parent_session_key", "spawned_by"),
)
_NODES = Selection("session_nodes", columns=("session_key", "current_session_id"))
_IDS = Selection("transcript_events", columns=("session_id",), distinct=True)
_COLD = Selection("session_transcript_cold_archives", columns=("session_id",))
_TRACED = Selection(TABLE, columns=("session_id",), distinct=True)
_KEYS = tuple(
    Selection(table, columns=(column,), distinct=True)
    for table, column in (
        ("operator_approvals", "source_session_key"),
        ("task_runs", "requester_session_key"),
        ("subagent_runs", "requester_session_key"),
    )
)


def _listed(path: str, folder: Folder) -> tuple[list[Member], set[str | None]]:
    """The sessions that a database has entries of, or the session keys that a state database tells of."""
    asked = [_WINDOWS, _NODES, _IDS, _COLD, _TRACED, *_KEYS]
    windows, nodes, ids, cold, traced, *keyed = folder.rows(path, asked)
    filled = {row["session_id"] for row in (*ids, *cold, *traced) if text(row["session_id"])}
    current = {row.get("session_key"): row.get("current_session_id") for row in nodes}
    of_key: dict[str, list[dict[str, Any]]] = {}
    for row in windows:
        if text(row.get("session_key")):
            of_key.setdefault(row["session_key"], []).append(row)
    members = []
    known = set()
    for row in windows:
        session_id, key = text(row.get("session_id")), text(row.get("session_key"))
        if session_id is None or session_id not in filled:
            continue
        known.add(session_id)
        above = text(row.get("parent_session_key")) or text(row.get("spawned_by"))
        since = row.get("created_at")
        since = since if isinstance(since, int) else 0
        siblings = of_key.get(key or "", [])
        now = len(siblings) == 1 or current.get(key) == session_id
        parent = _parent(of_key.get(above or "", []), since, session_id, filled)
        members.append(Member(session_id, key, parent, now, since if len(siblings) > 1 else 0))
    members += [Member(one, None, None, True, 0) for one in sorted(filled - known)]
    keys = {value for rows in keyed for row in rows for value in row.values()}
    return members, {key if isinstance(key, str) else None for key in keys}


def _parent(rows: list[dict[str, Any]], since: int, own: str, filled: set[str]) -> str | None:
    """The session of the parent's key that was the last one when this one was made."""
    before = [
        row["session_id"]
        for row in rows
        if row["session_id"] in filled
        and row["session_id"] != own
        and isinstance(row.get("created_at"), int)
        and row["created_at"] <= since
    ]
    return before[-1] if before else None


# -- neighbours ---------------------------------------------------------------------------------------------------


def state_beside(path: str, folder: Folder) -> str | None:
    """The shared database of an agent's: ``<root>/state/openclaw.sqlite``, or one that lies beside it."""
    at = PurePath(path)
    near = [at.with_name(STATE_DB), at.with_name(at.name.replace("agent", "state"))]
    if len(at.parents) > 3:
        near.insert(0, at.parents[3] / "state" / STATE_DB)
    for one in near:
        if str(one) != path and folder.is_file(str(one)) and is_database(folder.head(str(one), 16)):
            return str(one)
    return None


def _traces_of(path: str, folder: Folder) -> dict[str, str]:
    """Trajectories that older versions left where an agent's transcripts were, by session."""
    at = PurePath(path)
    if len(at.parents) < 2:
        return {}
    files = folder.files(str(at.parents[1] / "sessions"), f"*{ENDING}")
    found = {session_of(folder.head(file)): file for file in files}
    return {session: file for session, file in found.items() if session is not None}


def _agents_of(path: str, folder: Folder) -> list[str]:
    """Agents' databases that belong to a shared one."""
    at = PurePath(path)
    near = [str(at.with_name(AGENT_DB)), str(at.with_name(at.name.replace("state", "agent")))]
    found = [one for one in near if one != path and folder.is_file(one)]
    return (
        [*found, *folder.files(str(at.parents[1] / "agents"), f"**/{AGENT_DB}")]
        if len(at.parents) > 1
        else found
    )


def cold_archive(path: str, name: str) -> str:
    """Where a cold archive of an agent's session lies."""
    at = PurePath(path)
    root = at.parents[1] if len(at.parents) > 1 else at.parent
    return str(root / "sessions" / "cold" / PurePath(name).name)


def places(environ: dict[str, str], home: str) -> list[str]:
    """Where this user's sessions lie."""
    base = environ.get("OPENCLAW_STATE_DIR") or f"{home}/.openclaw"
    pi = environ.get("PI_CODING_AGENT_DIR") or f"{home}/.pi/agent"
    return [f"{base}/agents", f"{pi}/sessions"]
