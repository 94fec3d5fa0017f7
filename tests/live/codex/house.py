"""Where Codex lives in these tests: its settings, its model, its folder; and what must hold of every run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from callsheet.audit import audit_bundle
from callsheet.harness import HARNESSES
from callsheet.harness.codex import CODEX_AGENT
from callsheet.library.folders import DiskFolder
from callsheet.live import Address, Limits, Session
from callsheet.live.answers import AnswerPort
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import Chosen, Event, OutputPreview, Permission, RequestOpened, Waiting
from callsheet.testing.check_live import imports_alike
from callsheet.testing.live_run import During, Ran, run_turn
from callsheet.testing.scripted_models.responses import Call, ResponsesModel, Say, Script, respond
from callsheet.testing.scripted_models.serving import serving

_INSTALLED = find_spec("codex_cli_bin")
PROGRAM = Path(_INSTALLED.origin if _INSTALLED and _INSTALLED.origin else "x").parent / "bin" / "codex"
"""Where it is; tests skip themselves where it is not."""
DONE = respond(Say("Done."))
TICKS = "i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.2; done"
"""A command that never ends."""
LIMITS = Limits(version=20, handshake=30, acknowledge=5, leave=5, drain=2, sync=0.1)
SETTINGS = """\
model = "{model}"
model_provider = "scripted"
approval_policy = "{approval}"
sandbox_mode = "{sandbox}"
check_for_update_on_startup = false

[model_providers.scripted]
name = "Scripted"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[skills.bundled]
enabled = false

[projects."{cwd}"]
trust_level = "trusted"

[features]
enable_request_compression = false
plugins = false
apps = false
shell_snapshot = false
{features}
"""


Server = subprocess.Popen[bytes]


class House(Struct):
    """A home of Codex, and the model that it talks to.

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
    model: ResponsesModel

    def run(
        self,
        port: AnswerPort | None = None,
        during: During | None = None,
        *,
        at: Address | None = None,
        limits: Limits = LIMITS,
    ) -> Ran:
        """One turn, through the live shell."""
        turn = run_turn(
            CODEX_AGENT,
            at or (str(self.program),),
            self.out,
            prompt="Please do the task.",
            cwd=self.cwd,
            port=port,
            during=during,
            limits=limits,
        )
        return asyncio.run(turn)

    @contextmanager
    def listening(self, where: str = "ws://127.0.0.1:0", *options: str) -> Iterator[tuple[str, Server]]:
        """Its app server at an address; gives the address, and the process."""
        command = [str(self.program), "app-server", "--listen", where, *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=self.cwd) as server:
            assert server.stderr is not None
            try:
                if where.startswith("ws:"):
                    words = b"listening on: "
                    where = (
                        next(line for line in server.stderr if words in line).split(words)[1].decode().strip()
                    )
                else:
                    path = Path(where.removeprefix("unix://"))
                    while not path.exists():
                        assert server.poll() is None, server.stderr.read()
                        time.sleep(0.05)
                # What it says further is read, or it would wait for that.
                threading.Thread(target=server.stderr.read, daemon=True).start()
                yield where, server
            finally:
                server.kill()

    def trust_hooks(self) -> None:
        """Trusts the hooks of its settings, as a person would, by their hashes."""
        asked = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "0"}}},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(self.cwd)]}},
        ]
        asked[0]["params"]["capabilities"] = {"experimentalApi": True}  # type: ignore[index]
        with subprocess.Popen(
            [str(self.program), "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            found: list[Any] = []
            for request in asked:
                server.stdin.write(json.dumps(request).encode() + b"\n")
                server.stdin.flush()
                reply = next(one for one in map(json.loads, server.stdout) if one.get("id") == request["id"])
                found = reply["result"].get("data", [])
            server.kill()
        with (self.home / ".codex" / "config.toml").open("a", encoding="utf-8") as settings:
            for hook in (one for place in found for one in place["hooks"]):
                settings.write(f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n')


@contextmanager
def living(
    home: Path,
    tmp_path: Path,
    program: Path,
    scripts: dict[str, Script] | Script,
    *,
    model: str = "demo",
    approval: str = "never",
    sandbox: str = "danger-full-access",
    features: str = "",
    tables: str = "",
) -> Iterator[House]:
    """A house with a model in it."""
    cwd, out = tmp_path / "work", tmp_path / "out"
    for folder in (cwd, out, home / ".codex"):
        folder.mkdir()
    scripted = ResponsesModel(scripts if isinstance(scripts, dict) else {"": scripts})
    with serving(scripted) as base:
        settings = SETTINGS.format(
            model=model, approval=approval, sandbox=sandbox, base=base, cwd=cwd, features=features
        )
        (home / ".codex" / "config.toml").write_text(settings + tables, encoding="utf-8")
        yield House(home, cwd, out, program, scripted)


def once(then: Callable[[Session], object]) -> Any:
    """Does something once a command has shown its output."""
    done = False

    async def during(session: Session, event: Event) -> None:
        nonlocal done
        if not done and isinstance(event, OutputPreview) and "tick 3" in event.text:
            done = True
            then(session)

    return during


class Answering:
    """Answers permissions in turn, as a person would; may wait until several are open.

    Args:
        options: The option for each request.
        together: How many must be open before any is answered.
    """

    by = "user"

    def __init__(self, *options: str, together: int = 1) -> None:
        self._options = list(options)
        self._together = together
        self._open = 0
        self._all = asyncio.Event()
        self.asked: list[Waiting] = []

    async def answer(self, request: Waiting) -> Chosen | None:
        """The next answer."""
        self.asked.append(request)
        assert isinstance(request, Permission)
        option = self._options.pop(0)
        if len(self.asked) >= self._together:
            self._all.set()
        await self._all.wait()
        return Chosen(option)


MakeHouse = Callable[..., AbstractContextManager[House]]


def shell(call_id: str, command: str, **more: Any) -> Call:
    """A command."""
    return Call(call_id, "exec_command", {"cmd": command, **more})


def outside(call_id: str, command: str) -> Call:
    """A command that asks to be run outside the sandbox."""
    return shell(call_id, command, sandbox_permissions="require_escalated", justification="To see.")


class Sheet:
    """The records of a run: those of its own thread, as they ended."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.streams = {
            entry.id: [json.loads(line) for line in bundle.read(entry.file).splitlines()]
            for entry in bundle.manifest.streams
        }
        self.records: list[dict[str, Any]] = self.streams[bundle.manifest.streams[0].id]

    def last(self, kind: str) -> list[dict[str, Any]]:
        """Records of a type that no other supersedes."""
        old = {record.get("supersedes") for record in self.records}
        return [one for one in self.records if one["type"] == kind and one["id"] not in old]

    def one(self, kind: str) -> dict[str, Any]:
        """The only one of a type."""
        (found,) = self.last(kind)
        return found

    def results(self) -> dict[str, dict[str, Any]]:
        """Results by call id."""
        return {one["callId"]: one for one in self.last("tool_result")}


def held(ran: Ran, house: House) -> Sheet:
    """What must hold of every run: rules, evidence, import, contents, and the file that Codex wrote itself."""
    assert ran.closed is not None, ran.unopened
    assert ran.closed.problems == ()
    assert ran.unwritten == []
    assert ran.late == [] or all(not isinstance(one, RequestOpened) for one in ran.late)
    bundle = Bundle(ran.bundle)
    assert list(check_bundle(bundle)) == []
    assert list(audit_bundle(bundle)) == []
    assert imports_alike(CODEX_AGENT, ran.bundle) == []
    sheet = Sheet(bundle)
    said = outputs_in(house.model)
    for name, result in sheet.results().items():
        if "content" in result:
            assert plain(result["content"]) == plain(said[name]), name
    agrees_with_rollout(ran.bundle, house)
    return sheet


def outputs_in(model: ResponsesModel) -> dict[str, Any]:
    """What reached the model, by call id."""
    return {name: output for asked in model.asked for name, output in asked.outputs.items()}


def plain(content: Any) -> list[str]:
    """The texts of an output."""
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def agrees_with_rollout(bundle: Path, house: House) -> None:
    """Nothing that Codex stored of the main thread contradicts the recording."""
    sessions = house.home / ".codex" / "sessions"
    name = Bundle(bundle).manifest.streams[0].id
    (rollout,) = sessions.rglob(f"rollout-*-{name}.jsonl")
    (stored,) = (one for one in HARNESSES if one.kind == "codex")
    assert stored.sessions(str(rollout), DiskFolder(rollout))
    command = [sys.executable, "-m", "callsheet", "compare", str(bundle), str(rollout)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
