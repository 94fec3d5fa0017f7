"""Where OpenClaw lives in these tests: its settings, its model, its folder; and what must hold of every run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.live.npm import NODE, OPENCLAW

from callsheet.audit import audit_bundle
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.testing.scripted_models.messages import MessagesModel, Script, Use
from callsheet.testing.scripted_models.serving import serving

KEY = "agent:main:main"
TOKEN = "test-token"
PATIENCE = 300
"""Seconds that a run, or the start of a gateway, may take: hundreds of megabytes of modules are loaded."""
OPERATOR = Path(__file__).with_name("operator.mjs")


class House(Struct):
    """A home of OpenClaw, and the model that it talks to.

    Attributes:
        home: Its home.
        cwd: The folder that it works in.
        out: Where bundles go.
        model: The scripted model.
        port: Where its gateway listens, if it is started.
    """

    home: Path
    cwd: Path
    out: Path
    model: MessagesModel
    port: int

    @property
    def state(self) -> Path:
        """Its state folder."""
        return self.home / ".openclaw"

    def command(self, *words: str) -> list[str]:
        """A command of its program."""
        return [str(NODE.path), str(OPENCLAW.path), *words]

    def run(self) -> None:
        """One turn, without a gateway."""
        words = ("agent", "--local", "--agent", "main", "--message", "Please do the task.", "--json")
        done = subprocess.run(
            self.command(*words),
            cwd=self.cwd,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def ask(self, decisions: list[str], answers: Mapping[str, list[str]]) -> None:
        """One turn through its gateway, with an operator who decides and answers."""
        log = self.home / "gateway.log"
        with (
            log.open("wb") as told,
            subprocess.Popen(
                self.command("gateway", "run"), cwd=self.cwd, stdout=told, stderr=told
            ) as gateway,
        ):
            try:
                until = time.monotonic() + PATIENCE
                while b"http server listening" not in log.read_bytes():
                    assert gateway.poll() is None, log.read_text(errors="replace")
                    assert time.monotonic() < until, log.read_text(errors="replace")
                    time.sleep(0.2)
                done = subprocess.run(
                    [
                        str(NODE.path),
                        str(OPERATOR),
                        f"ws://127.0.0.1:{self.port}",
                        TOKEN,
                        "Please do the task.",
                        json.dumps(decisions),
                        json.dumps(answers),
                    ],
                    cwd=self.cwd,
                    capture_output=True,
                    encoding="utf-8",
                    timeout=PATIENCE,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
            finally:
                gateway.terminate()
                gateway.wait(PATIENCE)


@contextmanager
def living(
    home: Path, tmp_path: Path, script: Script, *, window: int = 200_000, mode: str = "full"
) -> Iterator[House]:
    """A house with a model in it.

    Args:
        home: A home.
        tmp_path: Where everything else goes.
        script: What the model says.
        window: Tokens of its context window.
        mode: Whether commands need leave: ``full``, ``ask``.
    """
    cwd, out = tmp_path / "work", tmp_path / "out"
    for folder in (cwd, home / ".openclaw"):
        folder.mkdir()
    model = MessagesModel({"": script})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(model) as base:
        told = {"id": "demo", "name": "Demo", "contextWindow": window, "maxTokens": min(8192, window // 8)}
        provider = {"baseUrl": base, "apiKey": "none", "api": "anthropic-messages", "models": [told]}
        settings = {
            "models": {"mode": "replace", "providers": {"scripted": provider}},
            "agents": {
                "defaults": {
                    "workspace": str(cwd),
                    "skipBootstrap": True,
                    "model": {"primary": "scripted/demo"},
                }
            },
            "tools": {"exec": {"mode": mode}, "toolSearch": False},
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "port": port,
                "auth": {"mode": "token", "token": TOKEN},
            },
            "logging": {"file": str(home / "openclaw.log")},
            "update": {"checkOnStart": False},
        }
        (home / ".openclaw" / "openclaw.json").write_text(json.dumps(settings), encoding="utf-8")
        os.environ["OPENCLAW_STATE_DIR"] = str(home / ".openclaw")
        os.environ["NODE_DISABLE_COMPILE_CACHE"] = "1"
        yield House(home, cwd, out, model, port)


def shell(call_id: str, command: str, **more: Any) -> Use:
    """A command."""
    return Use(call_id, "exec", {"command": command, **more})


class Sheet:
    """The records of the only session, as they ended."""

    def __init__(self, bundle: Bundle) -> None:
        (stream,) = bundle.manifest.streams
        self.bundle = bundle
        self.records: list[dict[str, Any]] = [
            json.loads(one) for one in bundle.read(stream.file).splitlines()
        ]

    def last(self, kind: str) -> list[dict[str, Any]]:
        """Records of a type that no other supersedes."""
        old = {record.get("supersedes") for record in self.records}
        return [one for one in self.records if one["type"] == kind and one["id"] not in old]

    def calls(self) -> dict[str, dict[str, Any]]:
        """Calls by id."""
        return {one["callId"]: one for one in self.last("tool_call")}

    def results(self) -> dict[str, dict[str, Any]]:
        """Results by call id."""
        return {one["callId"]: one for one in self.last("tool_result")}


def held(house: House) -> Sheet:
    """What must hold of every run: rules, evidence, and that each content is what the model got."""
    (done,) = import_sources([house.state], house.out, kind="openclaw")
    assert isinstance(done, Imported), done
    assert [one.code for one in done.diagnostics] == []
    bundle = Bundle(done.bundle)
    assert list(check_bundle(bundle)) == []
    assert list(audit_bundle(bundle)) == []
    sheet = Sheet(bundle)
    got = sent(house.model)
    for name, result in sheet.results().items():
        if "content" in result:
            assert plain(result["content"]) == plain(got[as_sent(name)]), name
    return sheet


def sent(model: MessagesModel) -> dict[str, Any]:
    """What reached the model first, by call id."""
    found: dict[str, Any] = {}
    for asked in model.asked:
        for name, content in asked.results.items():
            found.setdefault(as_sent(name), content)
    return found


def as_sent(call_id: str) -> str:
    """A call id as OpenClaw spells it to a provider."""
    return call_id.replace("_", "")


def plain(content: Any) -> list[str]:
    """The texts of a content."""
    return [content] if isinstance(content, str) else [part["text"] for part in content]
