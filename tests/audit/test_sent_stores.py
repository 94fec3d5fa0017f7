"""What chats and stores call content stands in what the scripted model of the same run was sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.audit.telling import bundles_of
from tests.native.acp.test_captures import texts_sent

FOLDER = re.compile(r"/home/dev/acmeapp/[\w-]+")
"""How the captured database names the folder; the log of requests names it otherwise."""
NOT_LOGGED = ("parallel", "acp-agent-killed")
"""Runs whose log of requests lacks some: of two results of one request it kept the last one only."""


def logs(shared: Path, session: str) -> list[Path]:
    """The logs of the runs in which a session stands."""
    captures = (shared / "captures" / "acp").glob("*/frames.jsonl")
    named = [path for path in captures if f'"{session}"'.encode() in path.read_bytes()]
    return [path.with_name("model.log") for path in named]


@pytest.mark.parametrize(("kind", "least"), [("gemini", 4), ("opencode", 12)])
def test_content_is_what_the_model_got(shared: Path, tmp_path: Path, kind: str, least: int) -> None:
    proved = 0
    for bundle in bundles_of(kind, [shared / "captures" / f"{kind}-stored"], tmp_path):
        for entry in bundle.manifest.streams:
            records = [json.loads(line) for line in bundle.read(entry.file).split(b"\n") if line]
            told = logs(shared, records[0].get("nativeSessionId", ""))
            sent = [words for path in told for words in texts_sent(path)]
            for one in records:
                for part in one.get("content", ()) if one["type"] == "tool_result" and told else ():
                    text = FOLDER.sub("/home/dev/acme-app", part["text"])
                    if any(text in words for words in sent):
                        proved += 1
                    else:
                        assert any(name in str(path) for path in told for name in NOT_LOGGED), (
                            told,
                            part["text"],
                        )
    assert proved >= least
