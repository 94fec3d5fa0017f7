"""Where Claude Code lives in these tests: its settings, its model, its folder; and what must hold of every run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from callsheet.audit import audit_bundle
from callsheet.harness.claude_code import CLAUDE_CODE_AGENT
from callsheet.live import Limits, Session, Unopened, open_session, prepare
from callsheet.live.answers import AnswerPort
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import Answer, Chosen, Event, Installed, Permission, Waiting, Wish
from callsheet.testing.check_live import imports_alike
from callsheet.testing.live_run import During, Ran, run_turn
from callsheet.testing.scripted_models.messages import MessagesModel, Script, Use
from callsheet.testing.scripted_models.serving import serving

VERSION = "2.1.332"
LIMITS = Limits(version=30, handshake=60, acknowledge=5, leave=5, drain=2, sync=0.1)
KNOWN = {
    "call.input": "the file has the arguments as the tool's schema made them; the pieces are the model's own"
}
"""What a file and a live run of Claude Code are known to tell differently."""
QUIET = {
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
}
"""Nothing but the model is asked for anything; the tests may run as root."""


class House(Struct):
    """A home of Claude Code, and the model that it talks to.

    Attributes:
        home: Its home.
        cwd: The folder that it works in.
        out: Where bundles go.
        program: Its program.
        model: The scripted model.
    """

    home: Path
    cwd: Path
    out: Path
    program: Path
    model: MessagesModel

    def run(
        self,
        port: AnswerPort | None = None,
        during: During | None = None,
        *,
        prompt: str = "Please do the task.",
        limits: Limits = LIMITS,
    ) -> Ran:
        """One turn, through the live shell."""
        turn = run_turn(
            CLAUDE_CODE_AGENT,
            (str(self.program),),
            self.out,
            prompt=prompt,
            cwd=self.cwd,
            port=port,
            during=during,
            limits=limits,
            version=VERSION,
        )
        return asyncio.run(turn)

    async def opened(self, port: AnswerPort | None = None, **wish: Any) -> Session:
        """An open session, for more than one turn."""
        installed = await prepare(CLAUDE_CODE_AGENT, [str(self.program)])
        assert isinstance(installed, Installed)
        wanted = Wish(cwd=str(self.cwd), version=installed.version, **wish)
        session = await open_session(
            CLAUDE_CODE_AGENT, installed, wanted, out=self.out, port=port, limits=LIMITS
        )
        assert not isinstance(session, Unopened), session
        return session


@contextmanager
def living(
    home: Path,
    tmp_path: Path,
    program: Path,
    scripts: Mapping[str, Script] | Script,
    monkeypatch: pytest.MonkeyPatch,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[House]:
    """A house with a model in it."""
    cwd, out, kept = tmp_path / "work", tmp_path / "out", home / ".claude"
    for folder in (cwd, out, kept):
        folder.mkdir()
    (cwd / "README.md").write_text("# acme\n\nA demo.\n", encoding="utf-8")
    trusted = {"hasCompletedOnboarding": True, "projects": {str(cwd): {"hasTrustDialogAccepted": True}}}
    (kept / ".claude.json").write_text(json.dumps(trusted), encoding="utf-8")
    (kept / "settings.json").write_text(json.dumps(settings or {}), encoding="utf-8")
    model = MessagesModel(scripts if isinstance(scripts, Mapping) else {"": scripts})
    with serving(model) as base:
        environment = {**QUIET, "ANTHROPIC_BASE_URL": base, "CLAUDE_CONFIG_DIR": str(kept)}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield House(home, cwd, out, program, model)


class Answering:
    """Answers requests in turn, as a person would; may wait until several are open.

    Args:
        answers: For each request an option of a permission, or an answer.
        together: How many must be open before any is answered.
    """

    by = "user"

    def __init__(self, *answers: str | Answer, together: int = 1) -> None:
        self._answers = list(answers)
        self._together = together
        self._all = asyncio.Event()
        self.asked: list[Waiting] = []

    async def answer(self, request: Waiting) -> Answer | None:
        """The next answer."""
        self.asked.append(request)
        given = self._answers.pop(0)
        if len(self.asked) >= self._together:
            self._all.set()
        await self._all.wait()
        if isinstance(given, str):
            assert isinstance(request, Permission)
            return Chosen(given)
        return given


def shell(call_id: str, command: str, **more: Any) -> Use:
    """A command."""
    return Use(call_id, "Bash", {"command": command, **more})


class Sheet:
    """The records of a run: those of its own conversation, as they ended."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.streams = {
            entry.id: [json.loads(line) for line in bundle.read(entry.file).splitlines()]
            for entry in bundle.manifest.streams
        }
        self.name = next(entry.id for entry in bundle.manifest.streams if entry.parent is None)
        self.records: list[dict[str, Any]] = self.streams[self.name]

    def last(self, kind: str, stream: str | None = None) -> list[dict[str, Any]]:
        """Records of a type that no other supersedes."""
        records = self.streams[stream or self.name]
        old = {record.get("supersedes") for record in records}
        return [one for one in records if one["type"] == kind and one["id"] not in old]

    def one(self, kind: str) -> dict[str, Any]:
        """The only one of a type."""
        (found,) = self.last(kind)
        return found

    def calls(self) -> dict[str, dict[str, Any]]:
        """Calls by id."""
        return {one["callId"]: one for one in self.last("tool_call")}

    def results(self) -> dict[str, dict[str, Any]]:
        """Results by call id."""
        return {one["callId"]: one for one in self.last("tool_result")}


def held(ran: Ran, house: House) -> Sheet:
    """What must hold of every run: see ``held_bundle``; and nothing was given out before it was written."""
    assert ran.closed is not None, ran.unopened
    assert ran.closed.problems == ()
    assert ran.unwritten == []
    return held_bundle(ran.bundle, house)


def held_bundle(folder: Path, house: House, *, stored: bool = True) -> Sheet:
    """Rules, evidence, import, contents, and the file that Claude Code wrote itself."""
    bundle = Bundle(folder)
    assert list(check_bundle(bundle)) == []
    assert list(audit_bundle(bundle)) == []
    assert imports_alike(CLAUDE_CODE_AGENT, folder) == []
    sheet = Sheet(bundle)
    sent = {name: content for asked in house.model.asked for name, content in asked.results.items()}
    for stream in sheet.streams:
        for result in sheet.last("tool_result", stream):
            if "content" in result:
                told = "".join(part.get("text", "") for part in result["content"]).strip()
                assert told in _words(sent[result["callId"]]), result["callId"]
    if stored:
        agrees_with_file(folder, house, sheet)
    return sheet


def _words(content: Any) -> str:
    """The texts of a result as it was sent."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, dict))


def agrees_with_file(folder: Path, house: House, sheet: Sheet) -> None:
    """Nothing that Claude Code stored itself contradicts the recording."""
    name = sheet.records[0]["nativeSessionId"]
    (file,) = (house.home / ".claude" / "projects").rglob(f"{name}.jsonl")
    command = [sys.executable, "-m", "callsheet", "compare", "--json", str(folder), str(file)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode in (0, 1), done.stderr
    compared = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [(one.get("name"), fact) for one in compared for fact in one.get("contradicts", ())]
    assert [(name, fact) for name, fact in wrong if fact["path"] not in KNOWN] == []
    assert any("left" in one and "right" in one for one in compared) == bool(sheet.calls())


def events_of(ran: Ran, kind: type[Event]) -> list[Any]:
    """The events of one kind."""
    return [event for event in ran.events if isinstance(event, kind)]
