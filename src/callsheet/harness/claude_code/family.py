"""The files of one session and how they hang together.

Owns: opening them as sources, the agents' ``.meta.json``, which stream and call each agent was started
from, the name of each agent's stream, and which sources a stream's session record lists. A file that cannot
be opened is a gap and a diagnostic; the others go on.

Must never know: what the lines mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from callsheet.harness._port import Desk
from callsheet.harness.claude_code import layout
from callsheet.harness.claude_code.shapes import text
from callsheet.harness.claude_code.survey import Survey
from callsheet.records import Gap, Native, Ref, SourceEntry, Subagent
from callsheet.records.bundle import stream_id
from callsheet.wire.blobs import digest
from callsheet.wire.damage import BOM
from callsheet.wire.lossless import NotJson, decode

META_KIND = "claude-code-agent-meta"
META_MOST = 1_000_000
"""Bytes up to which an agent's meta file is read; real ones have a few hundred."""


class File:
    """One source file on its way into one stream."""

    def __init__(self, desk: Desk, path: str) -> None:
        self.path = path
        self.source = desk.source(path, layout.KIND)
        self.survey = Survey(lambda: desk.lines(self.source))


class Meta:
    """An agent's ``.meta.json``: which call started it. Without such a file every member is empty."""

    def __init__(self, desk: Desk, path: str | None) -> None:
        self.call_id: str | None = None
        self.name: str | None = None
        self.depth: int | None = None
        self.source: SourceEntry | None = None
        self.ref: Ref | None = None
        self.unread: Gap | None = None
        if path is None:
            return
        data = b""
        try:
            source = desk.source(path, META_KIND)
            size = source.size or 0
            if size > META_MOST:
                hashed = desk.digest(source)
            else:
                data = desk.whole(source)
                size, hashed = len(data), digest(data)
        except OSError as error:
            desk.diagnose("missing_file", f"{path}: {error.strerror or error}")
            return
        self.source = source
        self.ref = Ref(source=source.id, line=1, offset=0, bytes=size, sha256=hashed, role="meta")
        if size > META_MOST:
            desk.diagnose("too_large", f"{size:,} bytes are not read as an agent's meta file", source)
            self._unread("no_decoder", size)
            return
        value, why = _object_in(data)
        if value is None:
            desk.diagnose(why, "no JSON object", source, 1)
            self._unread(why, size)
            return
        self.call_id = text(value.get("toolUseId"))
        self.name = text(value.get("agentType"))
        depth = value.get("spawnDepth")
        self.depth = depth if isinstance(depth, int) and not isinstance(depth, bool) else None

    def _unread(self, reason: str, size: int) -> None:
        if self.source is not None and self.ref is not None:
            self.unread = Gap(reason=reason, source=self.source.id, line=1, offset=0, bytes=size)
            self.unread.native = Native(refs=[self.ref])


def _object_in(data: bytes) -> tuple[dict[str, Any] | None, str]:
    """The object that a whole file is, or why it is none."""
    if data and not data.strip(b"\0"):
        return None, "nul"
    try:
        value = decode(data.removeprefix(BOM))
    except NotJson as error:
        return None, error.reason if error.reason != "nul" else "bad_json"
    return (value, "") if isinstance(value, dict) else (None, "bad_json")


class Child(NamedTuple):
    """One agent of the session.

    Attributes:
        agent_id: From its file's name; with a number when two files have one name.
        file: None when only its meta file is there.
        meta: Its meta file.
        stream: Name of its stream; None without file.
        owner: The agent that started it, as its meta file says; None for the session itself, or unknown.
        call_id: The call that started it, where one call alone is named.
    """

    agent_id: str
    file: File | None
    meta: Meta
    stream: str | None
    owner: str | None = None
    call_id: str | None = None


class Family:
    """A session's own file and its agents.

    Attributes:
        main: None when the session file is gone.
        children: By agent id, those that were started first before those they started.
    """

    def __init__(self, desk: Desk, native_id: str, parts: layout.Parts) -> None:
        self.main = File(desk, parts.main) if parts.main else None
        self.stream = stream_id(native_id)
        found: dict[str, Child] = {}
        ids, streams = _Names(), _Names(self.stream)
        for agent in parts.agents:
            agent_id = ids.free(agent.agent_id)
            if agent_id != agent.agent_id:
                desk.diagnose("same_agent", f"another file of agent {agent.agent_id}: {agent.path}")
            file = _opened(desk, agent.path)
            stream = streams.free(stream_id(agent_id)) if file else None
            found[agent_id] = Child(agent_id, file, Meta(desk, agent.meta), stream)
        homes = _homes(found)
        linked = [self._linked(child, found, homes) for child in found.values()]
        linked.sort(key=lambda child: (child.meta.depth or 1, child.agent_id))
        self.children = {child.agent_id: child for child in linked}
        self._of: dict[str | None, list[Child]] = {}
        for child in linked:
            self._of.setdefault(child.owner, []).append(child)

    def _linked(self, child: Child, found: Mapping[str, Child], homes: Mapping[str, list[str]]) -> Child:
        """Looks up the call that the meta file names: in the session's own file and in the agents' files.

        A call of the first level stands in the session's own file only. An id on several calls names none of them.
        """
        meta = child.meta
        if meta.call_id is None:
            return child
        there: list[tuple[str | None, File]] = []
        if self.main is not None and self.main.survey.call(meta.call_id):
            there.append((None, self.main))
        if not there or meta.depth != 1:
            # Three say as much as thousands: more than one other home names none.
            for owner in homes.get(meta.call_id, [])[:3]:
                file = found[owner].file
                if owner != child.agent_id and file is not None:
                    there.append((owner, file))
        if len(there) != 1:
            return child
        owner_id, file = there[0]
        single = not file.survey.duplicates(meta.call_id)
        return child._replace(owner=owner_id, call_id=meta.call_id if single else None)

    def of(self, owner: str | None) -> list[Child]:
        """The agents that a stream's agent started, as their meta files say; the session has the others."""
        return self._of.get(owner, [])

    def sources(self, owner: str | None) -> list[SourceEntry]:
        """The session and meta files that the records of one stream may cite."""
        own = self.main if owner is None else self.children[owner].file
        metas = [child.meta for child in self.of(owner)]
        if owner is not None:
            metas.insert(0, self.children[owner].meta)
        elif own is None:
            metas = [child.meta for child in self.children.values()]
        files = [own] if own else [child.file for child in self.children.values()]
        if own:
            files += [child.file for child in self.of(owner) if child.meta.source is None]
        return [file.source for file in files if file] + [meta.source for meta in metas if meta.source]

    def streams(self) -> dict[str, str]:
        """Agent ids and the names of their streams."""
        return {child.agent_id: child.stream for child in self.children.values() if child.stream}

    def without_main(self, others: list[Ref]) -> list[Gap | Subagent]:
        """What is known of a session whose own file is gone: that, and which agents it had.

        Args:
            others: Refs to the other files of its folder, which are evidence of the session too.
        """
        members = [
            Ref(source=child.file.source.id, role="member") for child in self.children.values() if child.file
        ]
        metas = [child.meta.ref for child in self.children.values() if child.meta.ref]
        gap = Gap(reason="missing_file", native=Native(refs=members + metas + others))
        return [gap, *(subagent(child, None) for child in self.of(None))]


def subagent(child: Child, source: SourceEntry | None) -> Subagent:
    """The record of an agent that only its own files tell of.

    Args:
        child: The agent.
        source: The file of the stream that the record stands in; None when that is gone.
    """
    own = child.file.source if child.file else source
    cited = child.meta.ref or (Ref(source=own.id, role="member") if own else None)
    return Subagent(
        agent_id=child.agent_id,
        call_id=child.call_id,
        name=child.meta.name,
        stream=child.stream,
        status="unknown",
        native=Native(refs=[cited] if cited else []),
    )


def _opened(desk: Desk, path: str | None) -> File | None:
    if path is None:
        return None
    try:
        return File(desk, path)
    except OSError as error:
        desk.diagnose("missing_file", f"{path}: {error.strerror or error}")
        return None


def _homes(children: Mapping[str, Child]) -> dict[str, list[str]]:
    """Which agents' files have the calls that meta files name."""
    wanted = {
        hash(child.meta.call_id): child.meta.call_id for child in children.values() if child.meta.call_id
    }
    homes: dict[str, list[str]] = {}
    for agent_id, child in children.items():
        if child.file is not None:
            for call_id in child.file.survey.calls_among(wanted):
                homes.setdefault(call_id, []).append(agent_id)
    return homes


class _Names:
    """Names that are given once; a second one gets a number."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def free(self, name: str) -> str:
        free = name
        while free in self._taken:
            self._numbers[name] = number = self._numbers.get(name, 1) + 1
            free = f"{name[:56]}-{number}"
        self._taken.add(free)
        return free
