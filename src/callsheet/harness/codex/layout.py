"""Which files make a Codex session.

Owns: finding rollouts (``rollout-*.jsonl`` and ``.jsonl.zst``, under ``sessions/YYYY/MM/DD`` and ``archived_sessions``,
or anywhere else: the content decides), what their first line says of thread, parent and origin, and the grouping: the
segments of one thread are one session, and the threads that it started (agents, reviews) are its further streams. Forks
are sessions of their own.

Must never know: what becomes of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, NamedTuple

from callsheet.harness._port import Folder, Session
from callsheet.harness.codex.shapes import clean_value, text
from callsheet.harness.codex.trace import traces_near
from callsheet.wire.inflate import head_of, is_compressed

KIND = "codex"
BASE = "codex-base"
"""Kind of a source that belongs to another session: this one's history goes on from it, or was compared with it."""
TYPES = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "token_usage_record",
        "retained_context",
        "inter_agent_communication_metadata",
    }
)
HEAD = 1 << 16
MORE = (1 << 19, 1 << 22)
"""Bytes read of a file to know its first line, and again where that is long: it holds the instructions."""
_BEGINS = re.compile(
    rb'\{\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*(?:"ordinal"\s*:\s*\d+\s*,\s*)?"type"\s*:\s*"session_meta"'
)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME = re.compile(rf"rollout-.*?({_UUID})(?:_{_UUID})?\.jsonl(?:\.zst)?\Z", re.IGNORECASE)


class Base(NamedTuple):
    """Where a file's history goes on from: the lines of a thread before an ordinal."""

    thread: str
    end: int


class RolloutFile(NamedTuple):
    """What the first lines of a rollout say.

    Attributes:
        path: The file.
        thread: Its thread; None when nothing says.
        started: When it was begun, as its first line says.
        ordinal: Ordinal of its first line.
        parent: The thread that started this one as an agent.
        agent: What kind of agent it is, if it is one.
        forked_from: The thread that it is a fork of.
        base: Where its history goes on from, if it does not begin in this file.
        copied_ordinal: Ordinal at which the copied history of an agent's file ends.
    """

    path: str
    thread: str | None
    started: str
    ordinal: int
    parent: str | None = None
    agent: str | None = None
    forked_from: str | None = None
    base: Base | None = None
    copied_ordinal: int = -1


class Parts(NamedTuple):
    """The files of one session.

    Attributes:
        files: The thread's own segments, oldest first.
        agents: The threads that it started, each with its segments.
        others: Files of other threads that it may go on from, by thread.
        trace: The trace bundle's event log, if one lies beside it.
    """

    files: tuple[RolloutFile, ...]
    agents: tuple[tuple[RolloutFile, ...], ...] = ()
    others: dict[str, tuple[RolloutFile, ...]] = {}  # noqa: RUF012 (never changed)
    trace: str | None = None


# -- one file -----------------------------------------------------------------------------------------------------


def recognises(head: bytes) -> bool:
    """Whether a file begins like a rollout of any generation; only whole lines are looked at."""
    seen = 0
    for line in head_of(head, HEAD).split(b"\n")[:200]:
        data = line.strip(b"\0\r\t \xef\xbb\xbf")
        if not data.startswith(b"{"):
            continue
        seen += 1
        if _is_line(data):
            return True
        if seen > 20:
            break
    return False


def _is_line(data: bytes) -> bool:
    value = _decoded(data)
    if value is None:
        return _BEGINS.match(data) is not None  # longer than what was read of it
    kind = value.get("type")
    if isinstance(kind, str) and isinstance(value.get("payload"), dict):
        return kind in TYPES
    if kind is None:
        bare = isinstance(value.get("id"), str) and "instructions" in value and "timestamp" in value
        return value.get("record_type") == "state" or bare
    marks = _BARE_MARKS.get(kind) if isinstance(kind, str) else None
    return marks is not None and isinstance(value.get(marks[0]), marks[1])


_BARE_MARKS: dict[str, tuple[str, type]] = {
    "message": ("content", list),
    "reasoning": ("summary", list),
    "function_call": ("call_id", str),
    "function_call_output": ("call_id", str),
    "custom_tool_call": ("call_id", str),
    "custom_tool_call_output": ("call_id", str),
    "local_shell_call": ("action", dict),
    "web_search_call": ("action", dict),
}
"""A member that every bare line of a type has."""


def _decoded(data: bytes) -> dict[str, Any] | None:
    value = clean_value(data)
    return value if isinstance(value, dict) else None


def file_at(path: str, folder: Folder) -> RolloutFile:
    """What the first lines of a file say."""
    head = folder.head(path, HEAD)
    found = _from_head(path, head_of(head, HEAD), len(head) < HEAD)
    for size in MORE:
        if found is None and len(head) == HEAD:
            more = folder.head(path, size)
            found = _from_head(path, head_of(more, size), len(more) < size or size == MORE[-1])
    if found is not None:
        return found
    name = _NAME.search(PurePath(path).name)
    return RolloutFile(path, name.group(1) if name else None, "", 0)


def _from_head(path: str, head: bytes, whole: bool) -> RolloutFile | None:
    lines = head.split(b"\n")
    for line in lines if whole else lines[:-1]:
        value = _decoded(line.strip(b"\0\r\t \xef\xbb\xbf"))
        if value is None:
            continue
        if value.get("type") == "session_meta" and isinstance(value.get("payload"), dict):
            return _from_meta(path, value["payload"], value.get("ordinal"))
        if value.get("type") is None and isinstance(value.get("id"), str) and "timestamp" in value:
            return _from_meta(path, value, None)
    return None


def _from_meta(path: str, meta: dict[str, Any], ordinal: Any) -> RolloutFile:
    inner = meta.get("meta")
    meta = inner if isinstance(inner, dict) else meta
    source = meta.get("source")
    agent = source.get("subagent") if isinstance(source, dict) else None
    spawn = agent.get("thread_spawn") if isinstance(agent, dict) else None
    spawn = spawn if isinstance(spawn, dict) else {}
    parent = text(meta.get("parent_thread_id")) or text(spawn.get("parent_thread_id"))
    base = meta.get("history_base")
    name = _NAME.search(PurePath(path).name)
    thread = text(meta.get("id")) or (name.group(1) if name else None)
    copied = meta.get("subagent_history_start_ordinal")
    return RolloutFile(
        path=path,
        thread=thread,
        started=text(meta.get("timestamp")) or "",
        ordinal=ordinal if type(ordinal) is int else 0,
        parent=parent if parent != thread else None,
        agent=_agent_name(agent, spawn) if agent is not None else None,
        forked_from=text(meta.get("forked_from_id")),
        base=_base(base) if isinstance(base, dict) else None,
        copied_ordinal=copied if type(copied) is int else -1,
    )


def _agent_name(agent: Any, spawn: dict[str, Any]) -> str:
    for name in ("agent_path", "agent_nickname", "agent_role"):
        if text(spawn.get(name)):
            return str(spawn[name])
    if isinstance(agent, dict):
        other = agent.get("other")
        return other if isinstance(other, str) and other else next(iter(agent), "agent")
    return agent if isinstance(agent, str) and agent else "agent"


def _base(value: dict[str, Any]) -> Base | None:
    thread, end = text(value.get("thread_id")), value.get("end_ordinal_exclusive")
    return Base(thread, end) if thread is not None and type(end) is int else None


# -- many files ---------------------------------------------------------------------------------------------------


class Threads:
    """The rollouts of a folder, by thread."""

    def __init__(self, files: Iterable[RolloutFile]) -> None:
        self.groups: list[tuple[RolloutFile, ...]] = []
        by_thread: dict[str, list[RolloutFile]] = {}
        for file in files:
            if file.thread is None:
                self.groups.append((file,))
            else:
                by_thread.setdefault(file.thread, []).append(file)
        self.by_thread = {thread: tuple(_ordered(found)) for thread, found in by_thread.items()}
        for found in self.by_thread.values():
            roots = [file for file in found if file.base is None or file.base.thread != file.thread]
            rest = [file for file in found if file not in roots]
            # Several files that begin the same thread are copies or exports: each is a session, none is lost.
            for number, root in enumerate(roots or rest[:1]):
                more = (rest if roots else rest[1:]) if number == 0 else []
                self.groups.append(tuple(_ordered([root, *more])))
        self.groups.sort(key=lambda group: group[0].path)

    def agents_of(self, group: tuple[RolloutFile, ...]) -> tuple[tuple[RolloutFile, ...], ...]:
        """The threads that a thread started, and those that these started."""
        threads = {group[0].thread}
        found: list[tuple[RolloutFile, ...]] = []
        left = [other for other in self.groups if other is not group and _is_agent(other)]
        while True:
            more = [other for other in left if other[0].parent in threads and other[0].thread not in threads]
            if not more:
                return tuple(found)
            found += more
            threads.update(other[0].thread for other in more)
            left = [other for other in left if other not in more]


def _is_agent(group: tuple[RolloutFile, ...]) -> bool:
    return group[0].agent is not None and group[0].parent is not None


def _ordered(files: list[RolloutFile]) -> list[RolloutFile]:
    return sorted(files, key=lambda file: (file.ordinal, file.started, file.path))


def sessions(path: str, folder: Folder) -> list[Session]:
    """The sessions of one file, or of all files below a folder."""
    if folder.is_file(path):
        return [_of_file(path, folder)]
    threads = Threads(file_at(file, folder) for file in _rollouts([path], folder))
    agents = [threads.agents_of(group) for group in threads.groups if not _is_agent(group)]
    claimed = {id(one) for found in agents for one in found}
    mains = [group for group in threads.groups if not _is_agent(group)]
    mains += [group for group in threads.groups if _is_agent(group) and id(group) not in claimed]
    traces = traces_near([path], folder)
    made = []
    taken: set[str] = set()
    for group in mains:
        native_id = group[0].thread or stem(group[0].path)
        if native_id in taken:
            native_id = stem(group[0].path)
        taken.add(native_id)
        made.append(_session(native_id, group, threads, traces))
    return made


def _session(
    native_id: str, group: tuple[RolloutFile, ...], threads: Threads, traces: dict[str, str]
) -> Session:
    agents = threads.agents_of(group)
    parts = Parts(group, agents, _others(group, threads), traces.get(group[0].thread or ""))
    paths = tuple(file.path for one in agents for file in one) + tuple(file.path for file in group[1:])
    return Session(KIND, native_id, group[0].path, parts, (group[0].path, *paths))


def _others(group: tuple[RolloutFile, ...], threads: Threads) -> dict[str, tuple[RolloutFile, ...]]:
    """Files of the threads whose history this one repeats or points at."""
    found: dict[str, tuple[RolloutFile, ...]] = {}
    wanted = {name for file in group for name in (file.base and file.base.thread, file.forked_from) if name}
    own = {group[0].thread}
    while wanted - own - found.keys():
        for name in list(wanted - own - found.keys()):
            files = threads.by_thread.get(name, ())
            found[name] = files
            wanted |= {file.base.thread for file in files if file.base is not None}
    return {name: files for name, files in found.items() if files}


def _of_file(path: str, folder: Folder) -> Session:
    """A file with what belongs to its session among its neighbours."""
    near = _neighbourhood(path)
    files = {file: file_at(file, folder) for file in _rollouts(near, folder)}
    files.setdefault(path, file_at(path, folder))
    threads = Threads(files.values())
    group = next(group for group in threads.groups if any(file.path == path for file in group))
    traces = traces_near(_trace_folders(path), folder)
    return _session(group[0].thread or stem(path), group, threads, traces)


def _neighbourhood(path: str) -> list[str]:
    """The folders that may hold a session's other files: both of a Codex home, else the file's own."""
    home = _home(path)
    if home is None:
        return [str(PurePath(path).parent)]
    return [str(home / name) for name in ("sessions", "archived_sessions")]


def _home(path: str) -> PurePath | None:
    for parent in PurePath(path).parents:
        if parent.name in ("sessions", "archived_sessions"):
            return parent.parent
    return None


def _trace_folders(path: str) -> list[str]:
    home = _home(path)
    near = PurePath(path).parent
    bases = [near] if home is None else [home, home.parent]
    return [str(base / "trace") for base in bases] + [str(near)]


def _rollouts(folders: list[str], folder: Folder) -> list[str]:
    found: list[str] = []
    for at in folders:
        plain = folder.files(at, "**/*.jsonl")
        # Codex itself takes the plain file where both are there.
        packed = [
            file for file in folder.files(at, "**/*.jsonl.zst") if file.removesuffix(".zst") not in plain
        ]
        found += [file for file in [*plain, *packed] if recognises(folder.head(file, HEAD))]
    return list(dict.fromkeys(found))


def stem(path: str) -> str:
    """A file's name without its endings."""
    return PurePath(path).name.removesuffix(".zst").removesuffix(".jsonl")


def places(environ: dict[str, str], home: str) -> list[str]:
    """Where this user's sessions lie: below ``$CODEX_HOME``, else the usual folder."""
    base = environ.get("CODEX_HOME") or f"{home}/.codex"
    return [f"{base}/sessions", f"{base}/archived_sessions"]


__all__ = ["KIND", "Parts", "RolloutFile", "is_compressed", "places", "recognises", "sessions"]
