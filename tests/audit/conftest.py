"""True bundles to tell lies about: the examples, the golden sessions, and made-up ones with all that these lack."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.audit.frames import LOGS
from tests.audit.sessions import SESSION, agent_session, main_session, session_with_requests, titled

from callsheet.audit import Finding, audit_bundle
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.wire.blobs import digest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up sessions as files."""
    folder = tmp_path_factory.mktemp("native") / "-home-dev-acme-app"
    beside = folder / SESSION
    (beside / "subagents").mkdir(parents=True)
    (beside / "tool-results").mkdir()
    (folder / f"{SESSION}.jsonl").write_text(main_session())
    (folder / "5e551011-0000-4000-8000-0000000000bb.jsonl").write_text(session_with_requests())
    for number, line in enumerate(
        (
            {"type": "summary", "summary": "A summary", "leafUuid": "leaf"},
            {"type": "ai-title", "title": "An old title"},
            {"type": "ai-title", "aiTitle": "An own title"},
            {"type": "fork-context-ref", "parentSessionId": SESSION, "agentId": "x"},
        )
    ):
        session = f"5e551011-0000-4000-8000-00000000001{number}"
        (folder / f"{session}.jsonl").write_text(titled(session, line))
    for agent, meta in (
        ("a1", {"agentType": "Explore", "toolUseId": "a-ok", "spawnDepth": 1}),
        ("a7", {"agentType": "Plan", "toolUseId": "c-run", "spawnDepth": 1}),
        ("a8", None),
    ):
        (beside / "subagents" / f"agent-{agent}.jsonl").write_text(agent_session(agent))
        if meta is not None:
            (beside / "subagents" / f"agent-{agent}.meta.json").write_text(json.dumps(meta))
    (beside / "subagents" / "agent-a9.meta.json").write_text("[]")
    fork = {"type": "fork-context-ref", "parentSessionId": SESSION, "agentId": "f0"}
    torn = '{"type":"user","sessionId":"5e551011-0000-4000-8000-0000000000dd","uuid":"u","message":{"role":'
    (folder / "agent-f0.jsonl").write_text(json.dumps(fork, separators=(",", ":")) + "\n" + torn + "\n")
    (beside / "tool-results" / "b1.txt").write_text("123456789")
    (beside / "tool-results" / "lone.bin").write_bytes(b"\x00\x01")
    lost = folder / "5e551011-0000-4000-8000-0000000000cc" / "subagents"
    lost.mkdir(parents=True)
    (lost / "agent-b1.jsonl").write_text(agent_session("b1"))
    return folder


@pytest.fixture(scope="session")
def made(native: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Bundles of the made-up sessions."""
    return imported([native], tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="session")
def bundles(made: list[Path], streamed: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every true bundle."""
    out = tmp_path_factory.mktemp("bundles")
    golden = sorted((ROOT / "tests" / "native" / "claude_code").glob("*/*/native"))
    examples = ROOT / "examples"
    codex = examples / "codex"
    return [
        *made,
        *streamed,
        *imported([examples / "claude-code" / "projects", *golden], out),
        *imported([examples / "claude-code" / "frames"], out, "claude-code-stream"),
        *imported([codex / "sessions", codex / "archived_sessions"], out, "codex"),
        *imported([codex / "exec"], out, "codex-exec"),
        *imported([codex / "app-server"], out, "codex-app-server"),
    ]


@pytest.fixture(scope="session")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Bundles of the made-up frame logs."""
    folder = tmp_path_factory.mktemp("frames")
    bundles = []
    for name, text in LOGS.items():
        (folder / f"{name}.jsonl").write_text(text)
        bundles += imported([folder / f"{name}.jsonl"], folder / name, "claude-code-stream")
    return bundles


def imported(paths: list[Path], out: Path, kind: str = "claude-code") -> list[Path]:
    """The bundles of some sources."""
    found = list(import_sources(paths, out, kind=kind))
    assert not [one for one in found if isinstance(one, Failure)]
    return [one.bundle for one in found if not isinstance(one, Failure)]


class Forged:
    """A bundle whose records can be changed, as a liar would: the manifest fits again afterwards."""

    def __init__(self, true: Path, out: Path) -> None:
        self.folder = Path(shutil.copytree(true, out))
        self.manifest = json.loads((self.folder / "manifest.json").read_text())

    def records(self, stream: int = 0) -> list[dict[str, Any]]:
        path = self.folder / self.manifest["streams"][stream]["file"]
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def write(self, records: list[dict[str, Any]], stream: int = 0) -> None:
        data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        entry = self.manifest["streams"][stream]
        (self.folder / entry["file"]).write_bytes(data)
        entry["sha256"], entry["records"] = digest(data), len(records)
        self.save()

    def save(self) -> None:
        (self.folder / "manifest.json").write_text(json.dumps(self.manifest))

    def findings(self) -> list[Finding]:
        return list(audit_bundle(Bundle(self.folder)))


@pytest.fixture
def forged(made: list[Path], tmp_path: Path) -> Forged:
    """The made-up session without requests, to tell lies about."""
    return Forged(next(bundle for bundle in made if bundle.name == SESSION), tmp_path / "forged")
