"""Which files make a Claude Code session.

Owns: the folder layout of every version. Since 2.0.77 a session ``<id>.jsonl`` has a folder ``<id>/``
beside it: its agents in ``subagents/**/agent-*.jsonl`` (each with a ``.meta.json``), large outputs in
``tool-results/``, other files. Before, ``agent-*.jsonl`` lay beside the session file and names its session
inside. A folder whose session file is gone, and an agent file whose session is, are sessions of their own,
so that nothing is lost.

Must never know: what the lines mean (but for the session id at the head of an agent file).
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from callsheet.harness._port import Folder, Session

KIND = "claude-code"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_TYPED = re.compile(rb'"type"\s*:\s*"')
_TALK = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
_MARKS = (
    b'"sessionId"',
    b'"parentUuid"',
    b'"isSidechain"',
    b'"leafUuid"',
    b'"toolUseResult"',
    b'"isSnapshotUpdate"',
    b'"fork-context-ref"',
)
_META = ".meta.json"


class Agent(NamedTuple):
    """One subagent's files, at least one of them."""

    agent_id: str
    path: str | None
    meta: str | None


class Parts(NamedTuple):
    """The files of one session. ``main`` is None when only the files in its folder are left."""

    main: str | None
    agents: tuple[Agent, ...]
    files: tuple[str, ...] = ()
    """The other files of its folder: ``tool-results/`` and whatever else lies there."""


def recognises(_name: str, head: bytes) -> bool:
    """Whether a file begins like a Claude Code session file.

    Only whole lines of the head are looked at; damage before the first good line does not matter.
    """
    seen = 0
    for line in head.split(b"\n")[:200]:
        data = line.strip(b"\0\r\t \xef\xbb\xbf")
        if not data:
            continue
        seen += 1
        if _is_frame(data):
            continue
        if data.startswith(b"{") and _TYPED.search(data) and any(mark in data for mark in _MARKS):
            return True
        if data.startswith((b'{"type":"summary"', b'{"type": "summary"')):
            return True
        if _is_bare_talk(data):
            return True
        if seen > 50:
            break
    return False


class _Frame(msgspec.Struct):
    dir: Any = None
    frame: msgspec.Raw = msgspec.Raw()
    jsonrpc: Any = None


def _is_frame(data: bytes) -> bool:
    """Whether a line is a frame of some protocol, which may carry what a session file has."""
    if b'"frame"' not in data and b'"jsonrpc"' not in data:
        return False
    try:
        line = msgspec.json.decode(data, type=_Frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return line.jsonrpc is not None or (line.dir is not None and len(line.frame) > 0)


def _is_bare_talk(data: bytes) -> bool:
    """A user or assistant record without the members that name its session; a live frame is none."""
    return (
        data.startswith(b"{")
        and _TALK.search(data) is not None
        and b'"message"' in data
        and b'"uuid"' in data
        and b'"timestamp"' in data
        and b'"session_id"' not in data
    )


def agent_id(path: str) -> str:
    """The agent id in a file name ``agent-<id>.jsonl``."""
    return PurePath(path).name.removesuffix(_META).removesuffix(".jsonl").removeprefix("agent-")


def is_session_id(name: str) -> bool:
    """Whether a name is a UUID, as session ids are."""
    return _UUID.match(name) is not None


def _is_agent(path: str) -> bool:
    return PurePath(path).name.startswith("agent-")


def _stem(path: str) -> str:
    return PurePath(path).name.removesuffix(".jsonl")


def _session_in(path: str, folder: Folder) -> str | None:
    found = _SESSION_ID.search(folder.head(path))
    return found.group(1).decode("utf-8", "replace") if found else None


def _home(path: str) -> str | None:
    """The folder of the session that a file lies in, by its place: ``…/<session id>/<kind of file>/…``."""
    for parent in PurePath(path).parents:
        if parent.name in ("subagents", "tool-results") and is_session_id(parent.parent.name):
            return str(parent.parent)
    return None


def sessions(path: str, folder: Folder) -> list[Session]:
    """The sessions of one file, or of all files below a folder."""
    if folder.is_file(path):
        return [_of_file(path, folder)]
    files = [file for file in folder.files(path, "**/*.jsonl") if recognises(file, folder.head(file))]
    mains = [file for file in files if not _is_agent(file) and _home(file) is None]
    beside: dict[tuple[str, str], list[str]] = {}
    for file in files:
        if _is_agent(file) and _home(file) is None:
            session = _session_in(file, folder)
            if session:
                beside.setdefault((str(PurePath(file).parent), session), []).append(file)
    found = [
        _session(main, beside.get((str(PurePath(main).parent), _stem(main)), []), folder) for main in mains
    ]
    used = {file for session in found for file in session.files}
    left = [*files, *folder.files(path, "**/tool-results/*"), *folder.files(path, f"**/agent-*{_META}")]
    lonely = [file for file in left if file not in used and file not in mains]
    for home in sorted({home for file in lonely if (home := _home(file))}):
        found.append(_of_home(home, folder))
    used = {file for session in found for file in session.files}
    found.extend(_of_file(file, folder) for file in files if file not in used)
    return found


def _of_home(home: str, folder: Folder) -> Session:
    """A session by its folder; its file lies beside that, or is gone."""
    main = f"{home}.jsonl"
    if folder.is_file(main):
        return _session(main, [], folder)
    agents, files = _below(home, folder)
    return _made(PurePath(home).name, None, agents, files)


def _of_file(path: str, folder: Folder) -> Session:
    if _is_agent(path):
        return _made(_stem(path), path, [], [])
    home = str(PurePath(path).parent)
    own = {_stem(path), _session_in(path, folder)}
    beside = [file for file in folder.files(home, "agent-*.jsonl") if _session_in(file, folder) in own]
    return _session(path, beside, folder)


def _session(main: str, beside: list[str], folder: Folder) -> Session:
    stem = _stem(main)
    agents, files = _below(main.removesuffix(".jsonl"), folder) if main.endswith(".jsonl") else ([], [])
    agents += [Agent(agent_id(path), path, None) for path in beside]
    # The file is named after its session; a copy under another name still says inside whose it is.
    native_id = stem if is_session_id(stem) else _session_in(main, folder) or stem
    return _made(native_id, main, agents, files)


def _made(native_id: str, main: str | None, agents: list[Agent], files: list[str]) -> Session:
    of_agents = [path for agent in agents for path in (agent.path, agent.meta) if path]
    all_files = ([main] if main else []) + of_agents + files
    return Session(KIND, native_id, all_files[0], Parts(main, tuple(agents), tuple(files)), tuple(all_files))


def _below(home: str, folder: Folder) -> tuple[list[Agent], list[str]]:
    """The agents and the other files of a session's folder."""
    agents: dict[str, Agent] = {}
    others = []
    for path in folder.files(home, "**/*"):
        above = PurePath(path).relative_to(home).parts[:-1]
        inside = "subagents" in above
        stem = path.removesuffix(_META)
        if inside and path.endswith(".jsonl") and (_is_agent(path) or recognises(path, folder.head(path))):
            stem = path.removesuffix(".jsonl")
            agents[stem] = Agent(agent_id(path), path, agents[stem].meta if stem in agents else None)
        elif inside and path.endswith(_META) and _is_agent(path):
            agents[stem] = Agent(agent_id(path), agents[stem].path if stem in agents else None, path)
        elif inside or "tool-results" in above or _may_own(home, path):
            others.append(path)
    return list(agents.values()), others


def _may_own(home: str, path: str) -> bool:
    """Whether a file in a folder of unknown use is the session's; what may be a session is looked at apart."""
    return is_session_id(PurePath(home).name) and not path.endswith(".jsonl")


def places(environ: dict[str, str], home: str) -> list[str]:
    """Where this user's sessions lie: ``$CLAUDE_CONFIG_DIR/projects``, else the usual folder."""
    base = environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    return [f"{base}/projects"]
