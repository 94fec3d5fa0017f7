"""The real agents of these tests, each in a house with a scripted model, and what that model says in its words.

A script is written once, in three verbs (``run``, ``read``, ``edit``), and told to each agent as calls of its tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.live.acp.house import House
from tests.live.codex.house import SETTINGS
from tests.live.npm import CLAUDE, CODEX, GEMINI, NODE, OPENCODE, Package

import callsheet
from callsheet.testing.scripted_models import messages
from callsheet.testing.scripted_models.completions import CompletionsModel
from callsheet.testing.scripted_models.gemini import GeminiModel
from callsheet.testing.scripted_models.messages import MessagesModel
from callsheet.testing.scripted_models.responses import Call, Custom, Item, ResponsesModel, Say, respond
from callsheet.testing.scripted_models.serving import serving

Said = tuple[str, str, dict[str, Any]] | str
"""A call as (id, verb, arguments), or words."""
Turns = tuple[list[Said], ...]
"""What the model says, response by response."""
Make = Callable[..., AbstractContextManager[House]]

TITLE = "Your task is to gen"
"""In the words with which Codex has a title made: a request of its own business."""


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
def codex(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Iterator[House]:
    """Codex behind its adapter: version 2 of the protocol."""
    needs(NODE, CODEX)
    cwd, out, config = _folders(home, tmp_path, ".codex")
    model = ResponsesModel({"": answers, TITLE: [respond(Say("A title"))] * 9})
    with serving(model) as base:
        settings = SETTINGS.format(
            model="gpt-5.5", approval="on-request", sandbox="read-only", base=base, cwd=cwd, features=""
        )
        (config / "config.toml").write_text(settings, encoding="utf-8")
        _set(
            monkeypatch,
            PATH=f"{NODE.path.parent}:/usr/bin:/bin",
            CODEX_HOME=str(config),
            SCRIPTED_KEY="scripted",
            MODEL_PROVIDER="scripted",
            NO_BROWSER="1",
        )
        command = (str(NODE.path), str(CODEX.path))
        yield House("codex-acp", command, "read-only", home, cwd, out, config / "sessions", model)


@contextmanager
def gemini(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Iterator[House]:
    """The Gemini CLI: version 1 of the protocol."""
    needs(NODE, GEMINI)
    cwd, out, config = _folders(home, tmp_path, ".gemini")
    model = GeminiModel({"": answers})
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"name": "gemini-2.5-pro"},
    }
    (config / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    with serving(model) as base:
        _set(
            monkeypatch,
            PATH=f"{NODE.path.parent}:/usr/bin:/bin",
            GEMINI_API_KEY="scripted",
            GOOGLE_GEMINI_BASE_URL=base,
            GEMINI_CLI_TRUST_WORKSPACE="true",
            GEMINI_TELEMETRY_ENABLED="false",
            NO_COLOR="1",
        )
        command = (str(NODE.path), str(GEMINI.path))
        yield House("gemini", command, "default", home, cwd, out, config / "tmp", model)


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


# -- what a model says in each agent's words ------------------------------------------------------------------------

Words = dict[str, str]


def _told(names: Words, keys: Words, said: Said) -> tuple[str, str, dict[str, Any]]:
    """A call with the agent's own names."""
    assert not isinstance(said, str)
    call, verb, given = said
    return call, names[verb], {keys.get(key, key): value for key, value in given.items()}


def _items(names: Words, keys: Words, turn: list[Said]) -> list[Item]:
    return [Say(one) if isinstance(one, str) else Call(*_told(names, keys, one)) for one in turn]


CLAUDE_WORDS = (
    {"run": "Bash", "read": "Read", "edit": "Edit"},
    {"file": "file_path", "old": "old_string", "new": "new_string"},
)
OPENCODE_WORDS = (
    {"run": "bash", "read": "read", "edit": "edit"},
    {"file": "filePath", "old": "oldString", "new": "newString"},
)
GEMINI_WORDS = (
    {"run": "run_shell_command", "read": "read_file", "edit": "replace"},
    {"file": "file_path", "old": "old_string", "new": "new_string"},
)


def claude_says(*turns: list[Said]) -> list[Any]:
    """A script of the Messages API."""
    return [
        messages.say(
            *(one if isinstance(one, str) else messages.Use(*_told(*CLAUDE_WORDS, one)) for one in turn)
        )
        for turn in turns
    ]


def opencode_says(*turns: list[Said]) -> list[Any]:
    """A script of the Chat Completions API."""
    return [respond(*_items(*OPENCODE_WORDS, turn)) for turn in turns]


def gemini_says(*turns: list[Said]) -> list[Any]:
    """A script of the Gemini API."""
    told = [[_explained(said) for said in turn] for turn in turns]
    return [respond(*_items(*GEMINI_WORDS, turn)) for turn in told]


def _explained(said: Said) -> Said:
    """An edit with the instruction that this tool demands."""
    if isinstance(said, str) or said[1] != "edit":
        return said
    return said[0], said[1], {**said[2], "instruction": "Change it."}


def codex_says(*turns: list[Said]) -> list[Any]:
    """A script of the Responses API: Codex reads with commands, and edits with patches."""
    return [respond(*map(_codex_item, turn)) for turn in turns]


def _codex_item(said: Said) -> Item:
    if isinstance(said, str):
        return Say(said)
    call, verb, given = said
    if verb == "edit":
        lines = ("*** Begin Patch", f"*** Update File: {given['file']}", "@@")
        changed = (f"-{given['old']}", f"+{given['new']}", "*** End Patch")
        return Custom(call, "apply_patch", "\n".join((*lines, *changed)))
    if verb == "read":
        return Call(call, "exec_command", {"cmd": f"cat {given['file']}"})
    asked = {"sandbox_permissions": "require_escalated", "justification": given["description"]}
    return Call(call, "exec_command", {"cmd": given["command"], **asked})


def an_hour_old(house: House) -> None:
    """Renames Gemini's chats as if begun an hour ago: version 0.61.0 empties one that it loads in its first minute."""
    for file in house.stored.rglob("session-*T*.jsonl"):
        day, _, time = file.name.partition("T")
        file.rename(file.with_name(f"{day}T{(int(time[:2]) - 1) % 24:02}{time[2:]}"))


class Agent(NamedTuple):
    """A real agent, and what is its own in what it tells.

    Attributes:
        make: Its house.
        says: Makes its model's script.
        version: The version of the protocol that it speaks.
        prefixes: Verb to what stands before a call's id in its frames.
        exits: It tells exit codes.
        forgets: It keeps no record of a call that was refused, or broken off.
        aged: Makes what it stored older than it is.
    """

    make: Make
    says: Callable[..., list[Any]]
    version: int
    prefixes: dict[str, str]
    exits: bool = True
    forgets: bool = False
    aged: Callable[[House], None] | None = None

    def call(self, number: int, verb: str) -> str:
        """The id of a call in its frames."""
        return f"{self.prefixes.get(verb, '')}call_{number}"


AGENTS: dict[str, Agent] = {
    "claude": Agent(claude, claude_says, 2, {}),
    "codex": Agent(codex, codex_says, 2, {}),
    "gemini": Agent(
        gemini,
        gemini_says,
        1,
        {verb: f"{name}__" for verb, name in GEMINI_WORDS[0].items()},
        exits=False,
        forgets=True,
        aged=an_hour_old,
    ),
    "opencode": Agent(opencode, opencode_says, 1, {}),
}
