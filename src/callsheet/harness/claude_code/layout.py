"""Which files make a Claude Code session.

Owns: the folder layout of every version. Since 2.0.77 a session ``<id>.jsonl`` has its agents in
``<id>/subagents/**/agent-*.jsonl`` (each with a ``.meta.json``) and large outputs in ``<id>/tool-results/``; before,
``agent-*.jsonl`` lay beside the session file and names its session inside. An agent file whose session file is gone is
a session of its own, so that nothing is lost.

Must never know: what the lines mean (but for the session id at the head of an agent file).
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import NamedTuple

from callsheet.harness._port import Folder, Session

KIND = "claude-code"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_TYPED = re.compile(rb'"type"\s*:\s*"')
_MARKS = (
    b'"sessionId"',
    b'"parentUuid"',
    b'"isSidechain"',
    b'"leafUuid"',
    b'"toolUseResult"',
    b'"isSnapshotUpdate"',
    b'"fork-context-ref"',
)


class Agent(NamedTuple):
    """One subagent's files."""

    agent_id: str
    path: str
    meta: str | None


class Parts(NamedTuple):
    """The files of one session. ``main`` is None when only agent files are left."""

    main: str | None
    agents: tuple[Agent, ...]
    files: tuple[str, ...] = ()
    """The files of ``<id>/tool-results/``."""


def recognises(name: str, head: bytes) -> bool:
    """Whether a file begins like a Claude Code session file.

    Only whole lines of the head are looked at; damage before the first good line does not matter.
    """
    seen = 0
    for line in head.split(b"\n")[:200]:
        data = line.strip(b"\0\r\t \xef\xbb\xbf")
        if not data:
            continue
        seen += 1
        if data.startswith(b"{") and _TYPED.search(data) and any(mark in data for mark in _MARKS):
            return True
        if data.startswith(b'{"type":"summary"') or data.startswith(b'{"type": "summary"'):
            return True
        if seen > 50:
            break
    return False


def agent_id(path: str) -> str:
    """The agent id in a file name ``agent-<id>.jsonl``."""
    return PurePath(path).name.removesuffix(".jsonl").removeprefix("agent-")


def _is_agent(path: str) -> bool:
    return PurePath(path).name.startswith("agent-")


def _agent(path: str, folder: Folder) -> Agent:
    meta = path.removesuffix(".jsonl") + ".meta.json"
    return Agent(agent_id(path), path, meta if folder.is_file(meta) else None)


def _session_in(path: str, folder: Folder) -> str | None:
    found = _SESSION_ID.search(folder.head(path))
    return found.group(1).decode("utf-8", "replace") if found else None


def sessions(path: str, folder: Folder) -> list[Session]:
    """The sessions of one file, or of all files below a folder."""
    if folder.is_file(path):
        return [_of_file(path, folder)]
    files = [file for file in folder.files(path, "**/*.jsonl") if recognises(file, folder.head(file))]
    mains = [file for file in files if not _is_agent(file)]
    used: set[str] = set()
    found = []
    beside: dict[tuple[str, str], list[str]] = {}
    for file in files:
        if _is_agent(file) and PurePath(file).parent.name != "subagents":
            session = _session_in(file, folder)
            if session:
                beside.setdefault((str(PurePath(file).parent), session), []).append(file)
    for main in mains:
        stem = PurePath(main).name.removesuffix(".jsonl")
        home = str(PurePath(main).parent)
        paths = _below(main, folder) + beside.get((home, stem), [])
        used.update(paths)
        found.append(_session(main, paths, folder))
    lost: dict[str, list[str]] = {}
    for file in files:
        if _is_agent(file) and file not in used:
            lost.setdefault(_home_of_lost(file), []).append(file)
    for home, paths in sorted(lost.items()):
        found.extend(_lost(home, paths, folder))
    return found


def _home_of_lost(file: str) -> str:
    path = PurePath(file)
    for parent in path.parents:
        if parent.name == "subagents":
            return str(parent.parent)
    return file


def _lost(home: str, paths: list[str], folder: Folder) -> list[Session]:
    if not home.endswith(".jsonl"):
        agents = tuple(_agent(path, folder) for path in paths)
        return [Session(KIND, PurePath(home).name, paths[0], Parts(None, agents, _outputs(home, folder)))]
    return [_of_file(path, folder) for path in paths]


def _below(main: str, folder: Folder) -> list[str]:
    return folder.files(main.removesuffix(".jsonl") + "/subagents", "**/agent-*.jsonl")


def _of_file(path: str, folder: Folder) -> Session:
    if _is_agent(path):
        return Session(KIND, PurePath(path).name.removesuffix(".jsonl"), path, Parts(path, ()))
    home = str(PurePath(path).parent)
    own = {PurePath(path).name.removesuffix(".jsonl"), _session_in(path, folder)}
    beside = [file for file in folder.files(home, "agent-*.jsonl") if _session_in(file, folder) in own]
    return _session(path, _below(path, folder) + beside, folder)


def _outputs(home: str, folder: Folder) -> tuple[str, ...]:
    return tuple(folder.files(f"{home}/tool-results", "**/*"))


def is_session_id(name: str) -> bool:
    """Whether a name is a UUID, as session ids are."""
    return _UUID.match(name) is not None


def _session(main: str, agents: list[str], folder: Folder) -> Session:
    stem = PurePath(main).name.removesuffix(".jsonl")
    outputs = _outputs(main.removesuffix(".jsonl"), folder)
    parts = Parts(main, tuple(_agent(path, folder) for path in agents), outputs)
    # The file is named after its session; a copy under another name still says inside whose it is.
    native_id = stem if is_session_id(stem) else _session_in(main, folder) or stem
    return Session(KIND, native_id, main, parts)


def places(environ: dict[str, str], home: str) -> list[str]:
    """Where this user's sessions lie: ``$CLAUDE_CONFIG_DIR/projects``, else the usual folder."""
    base = environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    return [f"{base}/projects"]
