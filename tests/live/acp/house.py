"""Where real agents of the Agent Client Protocol live in these tests: a home, a folder, a model; and their readings.

Of one run there are three readings: the bundle that was recorded live, its frame log imported, and what the agent
itself stored, imported. ``agree`` holds them against each other.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from callsheet.audit import audit_bundle
from callsheet.harness import LIVE
from callsheet.live import Limits, Session, Unopened, open_session, prepare
from callsheet.live.answers import AnswerPort
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import Event, Installed, Opened, TurnResult, Wish
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import inflate

LIMITS = Limits(version=30, handshake=60, acknowledge=5, leave=5, drain=2, sync=0.1)
TAP = [sys.executable, "-m", "callsheet", "tap"]


class Ran(Struct):
    """One turn of a real agent."""

    opened: Opened
    events: list[Event]
    result: TurnResult
    bundle: Path


class House(Struct):
    """A home of an agent, and the model that it talks to.

    Attributes:
        name: Its word in ``callsheet run``.
        command: What starts it.
        mode: The mode in which it asks before it does something; None when its settings say so.
        home: Its home.
        cwd: The folder that it works in.
        out: Where bundles go.
        stored: Where it keeps its own record.
        model: The scripted model.
    """

    name: str
    command: tuple[str, ...]
    mode: str | None
    home: Path
    cwd: Path
    out: Path
    stored: Path
    model: Any

    def run(
        self,
        port: AnswerPort,
        during: Callable[[Session, Event], Awaitable[None]] | None = None,
        *,
        before: tuple[str, ...] = (),
        resume: str | None = None,
    ) -> Ran:
        """One turn, through the live shell."""
        return asyncio.run(self._run(port, during, before, resume))

    async def _run(
        self,
        port: AnswerPort,
        during: Callable[[Session, Event], Awaitable[None]] | None,
        before: tuple[str, ...],
        resume: str | None,
    ) -> Ran:
        agent = next(one for one in LIVE if one.name == self.name)
        found = await prepare(agent, self.command, limits=LIMITS)
        assert isinstance(found, Installed), found
        installed = Installed(
            command=(*before, *found.command), version=found.version, evidence=found.evidence
        )
        wish = Wish(cwd=str(self.cwd), mode=self.mode, resume=resume, version=found.version)
        session = await open_session(agent, installed, wish, out=self.out, port=port, limits=LIMITS)
        assert not isinstance(session, Unopened), session
        events: list[Event] = []
        async with session:
            turn = session.start("Please do the task.")
            async for event in turn:
                events.append(event)
                if during is not None:
                    await during(session, event)
            result = await turn.result()
        closed = await session.close()
        assert closed.problems == ()
        return Ran(session.opened, events, result, session.bundle)


# -- readings -------------------------------------------------------------------------------------------------------


def log_of(bundle: Path, where: Path) -> Path:
    """The frame log of a recording."""
    opened = Bundle(bundle)
    with opened.open(opened.manifest.sources[0].native or "") as packed:
        where.write_bytes(b"".join(inflate(read_chunks(packed))))
    return where


def records(bundle: Path) -> list[dict[str, Any]]:
    """All records of a bundle, of the session's own stream first."""
    opened = Bundle(bundle)
    return [
        json.loads(line) for one in opened.manifest.streams for line in opened.read(one.file).splitlines()
    ]


def last(bundle: Path, kind: str) -> list[dict[str, Any]]:
    """Records of a type that no other supersedes."""
    found = records(bundle)
    old = {one.get("supersedes") for one in found}
    return [one for one in found if one["type"] == kind and one["id"] not in old]


def compared(left: Path, right: Path) -> list[dict[str, Any]]:
    """What ``callsheet compare`` says of two readings: a call an entry. Nothing may contradict."""
    done = subprocess.run(
        [sys.executable, "-m", "callsheet", "compare", str(left), str(right), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-4000:], done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def stored_by(house: House, session: str) -> Path:
    """What the agent itself stored of a session: its database, or the fullest file that names the session."""
    if house.stored.is_file():
        return house.stored
    files = [file for file in house.stored.rglob("*.jsonl") if session.encode() in file.read_bytes()]
    return max(files, key=lambda file: file.stat().st_size)


def agree(ran: Ran, house: House, *more: Path, unstored: frozenset[str] = frozenset()) -> None:
    """The rules hold, and no two of the readings of a run contradict each other.

    Args:
        ran: The run.
        house: Where it ran.
        more: Other recordings of it.
        unstored: Calls that the agent itself keeps no record of.
    """
    assert list(check_bundle(Bundle(ran.bundle))) == []
    assert list(audit_bundle(Bundle(ran.bundle))) == []
    log = log_of(ran.bundle, house.out.parent / "log.jsonl")
    assert ran.opened.session is not None
    stored = stored_by(house, ran.opened.session)
    calls = {one["callId"] for one in last(ran.bundle, "tool_call")}
    assert unstored <= calls
    readings = [ran.bundle, log, *more, stored]
    for number, left in enumerate(readings):
        for right in readings[number + 1 :]:
            found = compared(left, right)
            alone = {one["left"]["callId"] for one in found if "right" not in one}
            assert len(found) == len(calls), (left, right, found)
            assert all("left" in one for one in found), (left, right, found)
            assert alone == (unstored if right == stored else set()), (left, right, found)
