"""Where real agents of the Agent Client Protocol live in these tests: a home, a folder, a model; and their readings.

Of one run there are three readings: the bundle that was recorded live, its frame log imported, and what the agent
itself stored, imported. ``agree`` holds them against each other.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.live.npm import CLAUDE, NODE, OPENCODE, Package

import callsheet
from callsheet.audit import audit_bundle
from callsheet.harness import LIVE
from callsheet.live import Limits, Session, Unopened, open_session, prepare
from callsheet.live.answers import AnswerPort
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import Event, Installed, Opened, TurnResult, Wish
from callsheet.testing.scripted_models.completions import CompletionsModel
from callsheet.testing.scripted_models.messages import MessagesModel
from callsheet.testing.scripted_models.serving import serving
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


def needs(*packages: Package) -> None:
    """Skips the test, aloud, where a package is not there."""
    for package in packages:
        if not package.path.exists():
            pytest.skip(
                f"needs npm package {package.name} {package.version} (make test-live fetches it with npm)"
            )


@contextmanager
def claude(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Iterator[House]:
    """Claude Code behind its adapter: version 2 of the protocol."""
    needs(NODE, CLAUDE)
    cwd, out, config = _folders(home, tmp_path, ".claude")
    model = MessagesModel({"": answers})
    with serving(model) as base:
        _set(
            monkeypatch,
            PATH=f"{NODE.path.parent}:/usr/bin:/bin",
            ANTHROPIC_BASE_URL=base,
            ANTHROPIC_API_KEY="sk-ant-scripted",
            CLAUDE_CONFIG_DIR=str(config),
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_TELEMETRY="1",
            DISABLE_AUTOUPDATER="1",
            DISABLE_ERROR_REPORTING="1",
            IS_SANDBOX="1",
        )
        command = (str(NODE.path), str(CLAUDE.path))
        yield House("claude-acp", command, "default", home, cwd, out, config / "projects", model)


@contextmanager
def opencode(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Iterator[House]:
    """OpenCode: version 1 of the protocol."""
    needs(OPENCODE)
    cwd, out, config = _folders(home, tmp_path, ".config/opencode")
    model = CompletionsModel({"": answers})
    with serving(model) as base:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": f"{base}/v1", "apiKey": "scripted"},
            "models": {"demo": {"name": "Demo"}},
        }
        settings = {
            "model": "scripted/demo",
            "autoupdate": False,
            "share": "disabled",
            "permission": {"bash": "ask", "edit": "ask"},
            "provider": {"scripted": provider},
        }
        (config / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
        _set(
            monkeypatch,
            OPENCODE_DISABLE_AUTOUPDATE="1",
            OPENCODE_DISABLE_MODELS_FETCH="1",
            OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        )
        stored = home / ".local" / "share" / "opencode" / "opencode.db"
        yield House("opencode", (str(OPENCODE.path),), None, home, cwd, out, stored, model)


def _folders(home: Path, tmp_path: Path, config: str) -> tuple[Path, Path, Path]:
    made = tmp_path / "app", tmp_path / "out", home / config
    for folder in made:
        folder.mkdir(parents=True)
    (made[0] / "lib.py").write_text("a = 1\n", encoding="utf-8")
    return made


def _set(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    variables["PYTHONPATH"] = str(Path(callsheet.__file__).parents[1])  # for the tap and for compare
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


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


def agree(ran: Ran, house: House, *more: Path) -> None:
    """The rules hold, and no two of the readings of a run contradict each other."""
    assert list(check_bundle(Bundle(ran.bundle))) == []
    assert list(audit_bundle(Bundle(ran.bundle))) == []
    log = log_of(ran.bundle, house.out.parent / "log.jsonl")
    stored = house.stored if house.stored.is_file() else next(house.stored.rglob("*.jsonl"))
    calls = {one["callId"] for one in last(ran.bundle, "tool_call")}
    readings = [ran.bundle, log, stored, *more]
    for number, left in enumerate(readings):
        for right in readings[number + 1 :]:
            found = compared(left, right)
            assert len(found) == len(calls), (left, right, found)
            assert all(one.get("left") and one.get("right") for one in found), (left, right, found)
