"""Sessions of T3 Code with those of the agents that it drove: one bundle, streams of their own, nothing merged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner
from tests.native.t3code.conftest import THREAD, State

from callsheet.audit import audit_bundle
from callsheet.faces.cli import cli
from callsheet.harness._port import Drives
from callsheet.harness.codex import CODEX
from callsheet.harness.t3code import T3CODE
from callsheet.library.folders import DiskFolder
from callsheet.library.importing import Failure, Imported, Providers, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules.bundle import check_bundle
from callsheet.wire.lossless import decode

EXAMPLES = Path(__file__).parents[2] / "examples"
CODEX_SESSION = "01a22e82-3842-7042-8068-72851f37f907"
CLAUDE_SESSION = "858837b5-8915-443b-bfa2-93fd580a1421"
ENVIRON = {"CODEX_HOME": str(EXAMPLES / "codex"), "CLAUDE_CONFIG_DIR": str(EXAMPLES / "claude-code")}


def driven(state: State, driver: str, session: str) -> None:
    """A provider's own session under the thread."""
    value = {"id": session, "driver": driver, "nativeThreadRef": {"driver": driver, "nativeId": session}}
    row = {"provider_thread_id": session, "thread_id": THREAD, "payload_json": json.dumps(value)}
    state.insert("orchestration_v2_projection_provider_threads", row)


@pytest.fixture
def new(tmp_path: Path) -> State:
    state = State(tmp_path / "userdata-v2" / "state.sqlite", 2)
    state.thread()
    state.item("command_execution", input="ls", output="a\n", exitCode=0)
    return state


def imported(state: State, out: Path, providers: Providers | None) -> Imported:
    (one,) = import_sources([state.close()], out, providers=providers)
    assert not isinstance(one, Failure), one
    return one


@pytest.mark.parametrize(
    ("driver", "session", "agent"),
    [("codex", CODEX_SESSION, "codex"), ("claudeAgent", CLAUDE_SESSION, "claude-code")],
)
def test_both_streams_stand_in_one_bundle(
    new: State, tmp_path: Path, driver: str, session: str, agent: str
) -> None:
    driven(new, driver, session)
    alone = imported(new, tmp_path / "alone", None)
    both = imported(new, tmp_path / "both", Providers(ENVIRON, tmp_path))
    assert (alone.calls, both.calls) == (1, 1)  # what the agent called is not counted twice
    bundle = Bundle(both.bundle)
    assert [entry.id for entry in bundle.manifest.streams][:2] == [THREAD, session]
    streams = {entry.id: bundle.read(entry.file) for entry in bundle.manifest.streams}
    heads = {name: decode(data.split(b"\n", 1)[0]) for name, data in streams.items()}
    assert heads[session]["agent"]["name"] == agent
    assert heads[THREAD]["native"]["extra"]["providerSessions"] == [heads[session]["nativeSessionId"]]
    assert streams[THREAD] == Bundle(alone.bundle).read(f"streams/{THREAD}.jsonl")  # nothing of it is changed
    assert {source["id"] for source in heads[session]["sources"]} & {"s0"} == set()
    assert list(check_bundle(bundle)) == []
    assert list(audit_bundle(bundle)) == []


def test_a_session_that_is_not_there_is_said(new: State, tmp_path: Path) -> None:
    driven(new, "codex", "01a22e82-0000-7000-8000-000000000000")
    driven(new, "cursor", "agent-1")
    one = imported(new, tmp_path / "out", Providers(ENVIRON, tmp_path))
    assert [told.code for told in one.diagnostics if told.code.startswith("provider")] == ["provider_missing"]
    assert len(Bundle(one.bundle).manifest.streams) == 1


def test_a_session_that_cannot_be_read_costs_nothing_else(new: State, tmp_path: Path) -> None:
    folder = tmp_path / "codex" / "sessions"
    folder.mkdir(parents=True)
    name = f"rollout-2026-11-30T22-10-15-{CODEX_SESSION}.jsonl"
    source = next((EXAMPLES / "codex").glob(f"sessions/**/{name}"))
    (folder / name).write_bytes(source.read_bytes())
    driven(new, "codex", CODEX_SESSION)
    providers = Providers({"CODEX_HOME": str(tmp_path / "codex")}, tmp_path)
    path = new.close()
    (session,) = T3CODE.sessions(str(path), DiskFolder(path))
    assert providers.under(T3CODE, session)[0].found is not None
    (folder / name).unlink()
    (one,) = import_sources([path], tmp_path / "out", providers=providers)
    assert isinstance(one, Imported)
    assert "provider_unread" in {told.code for told in one.diagnostics}
    assert one.calls == 1


def test_a_secret_of_one_is_hidden_in_all(new: State, tmp_path: Path) -> None:
    """What was given to T3 Code as a secret stands in the agent's own file as an ordinary text."""
    secret = "zz-FAKE-token-000333"
    name = f"rollout-2026-11-30T22-10-15-{CODEX_SESSION}.jsonl"
    source = next((EXAMPLES / "codex").glob(f"sessions/**/{name}"))
    lines = source.read_text().splitlines()
    said = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": f"It is {secret}."}],
    }
    lines.append(
        json.dumps({"timestamp": "2026-11-30T22:30:00.000Z", "type": "response_item", "payload": said})
    )
    folder = tmp_path / "codex" / "sessions"
    folder.mkdir(parents=True)
    (folder / name).write_text("\n".join(lines) + "\n")
    driven(new, "codex", CODEX_SESSION)
    questions = [{"id": "t", "header": "Token", "question": "Token?", "options": [], "isSecret": True}]
    new.item("user_input_request", requestId="rq", questions=questions, native="q")
    new.request("rq", kind="user_input", answers={"t": [secret]})
    one = imported(new, tmp_path / "out", Providers({"CODEX_HOME": str(tmp_path / "codex")}, tmp_path))
    assert len(Bundle(one.bundle).manifest.streams) == 2
    for file in one.bundle.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            if file.suffix == ".zst":
                data = zstandard.ZstdDecompressor().stream_reader(data).read()
            assert secret.encode() not in data, file
    assert list(audit_bundle(Bundle(one.bundle))) == []
    assert list(check_bundle(Bundle(one.bundle))) == []


def test_only_a_harness_that_drives_agents_has_sessions_underneath() -> None:
    assert isinstance(T3CODE, Drives)
    assert not isinstance(CODEX, Drives)


def test_the_command(new: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven(new, "claudeAgent", CLAUDE_SESSION)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    told = ["import", "--with-provider", "--out", str(tmp_path / "out"), str(new.close())]
    done = CliRunner().invoke(cli, told, catch_exceptions=False)
    assert done.exit_code == 0
    bundle = tmp_path / "out" / THREAD
    shown = CliRunner().invoke(cli, ["show", str(bundle)], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "T3 Code" in shown.output
    other = CliRunner().invoke(cli, ["show", "--stream", CLAUDE_SESSION, str(bundle)], catch_exceptions=False)
    assert "Claude Code" in other.output
