"""Every capture and every public file: promises kept, content equal to what was sent, nothing without evidence.

One test per version (captures) and per kind (public files), from the folder given as --shared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.native.codex.conftest import Sheet, readings, text_of

from callsheet.audit import audit_bundle
from callsheet.harness._port import Stored
from callsheet.harness.codex import CODEX, CODEX_EXEC
from callsheet.library.importing import import_session
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.testing.check_harness import check_harness, check_reading
from callsheet.testing.desk import Files, read_session

VERSIONS = ["0.20.0", "0.36.0", "0.50.0", "0.63.0", "0.98.0", "0.115.0", "0.130.0", "0.163.0", "0.171.0"]
ADAPTERS: list[Stored] = [CODEX, CODEX_EXEC]


def folders(shared: Path, version: str) -> list[Path]:
    found = sorted(path for path in (shared / "captures" / "codex" / version).iterdir() if path.is_dir())
    assert found
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_captures_keep_the_promises(version: str, shared: Path) -> None:
    flaws = [
        (folder.name, flaw)
        for folder in folders(shared, version)
        for sheet in readings(folder)
        for flaw in check_reading(sheet.reading)
    ]
    assert flaws == []


@pytest.mark.parametrize("version", ["0.20.0", "0.36.0", "0.98.0", "0.115.0"])
def test_captures_read_the_same_from_any_desk(version: str, shared: Path) -> None:
    for folder in folders(shared, version):
        for adapter in ADAPTERS:
            assert check_harness(adapter, folder) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_captures_have_evidence_for_every_fact(version: str, shared: Path, tmp_path: Path) -> None:
    found: list[tuple[str, object]] = []
    for bundle in bundles(folders(shared, version), tmp_path):
        found += [(bundle.path.name, finding) for finding in audit_bundle(bundle)]
        found += [(bundle.path.name, breach) for breach in check_bundle(bundle)]
    assert found == []


def bundles(paths: list[Path], out: Path) -> Iterator[Bundle]:
    for number, path in enumerate(paths):
        files = Files.below(path if path.is_dir() else path.parent)
        for adapter in ADAPTERS:
            if path.is_file() and not adapter.recognises(str(path), files.head(str(path))):
                continue
            for session in adapter.sessions(str(path), files):
                yield Bundle(import_session(adapter, session, out / f"{number}-{adapter.kind}").bundle)


# -- what reached the model ---------------------------------------------------------------------------------------


def sent_in(folder: Path) -> list[tuple[str, Any]]:
    """Every output in the requests that the scripted model got."""
    return [
        (item["call_id"], plain(item["output"]))
        for log in sorted(folder.rglob("reached_model.jsonl"))
        for line in log.read_text(encoding="utf-8").splitlines()
        for item in json.loads(line).get("new_items") or ()
        if str(item.get("type", "")).endswith("_output") and item["type"] != "tool_search_output"
    ]


def plain(content: Any) -> Any:
    """Texts, and that there is an image: what the request log and a record both have."""
    if isinstance(content, str):
        return [content]
    return [part.get("text", part["type"].removeprefix("input_")) for part in content]


@pytest.mark.parametrize("version", VERSIONS)
def test_content_is_what_was_sent(version: str, shared: Path) -> None:
    equal = Counter[str]()
    for folder in folders(shared, version):
        sent = sent_in(folder)
        if not sent:
            continue  # files that another run left, or a run without a call
        kept: list[tuple[str, Any]] = []
        for sheet in readings(folder):
            for stream in sheet.streams:
                for result in sheet.last("tool_result", stream):
                    if "content" in result:
                        call_id = str(result.get("callId", result.get("nativeCallId")))
                        kept.append((call_id, plain(result["content"])))
        searches = tool_searches(folder)
        assert [one for one in kept if one not in sent and one[0] not in searches] == [], folder.name
        missing = [one for one in sent if one not in kept and not is_excused(folder, *one)]
        assert missing == [], folder.name
        equal["sent"] += len(sent)
    assert equal["sent"] > 0


def tool_searches(folder: Path) -> set[str]:
    """Ids of tool searches: the request log leaves their tools out."""
    found = set()
    for sheet in readings(folder):
        for stream in sheet.streams:
            found |= {call["callId"] for call in sheet.of("tool_call", stream) if call.get("name") is None}
    return found


def is_excused(folder: Path, call_id: str, content: Any) -> bool:
    """Whether an output that was sent is known to stand in no rollout as sent.

    Runs that store nothing; what Codex makes up after a crash or for a fork; the answer to a secret; and the last
    outputs of 0.20, which wrote no later response.
    """
    if folder.name == "ephemeral" or content == ["aborted"] or folder.name == "secret_question":
        return True
    return folder.parent.name == "0.20.0" and call_id in ("call_o4", "call_o4b")


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_later_response_there_is_no_content(version: str, shared: Path) -> None:
    """Decision 7: an output that no response of its thread follows may not have been sent."""
    for folder in folders(shared, version):
        for sheet in readings(folder):
            for stream, records in sheet.streams.items():
                last = max((place(one) for one in records if is_of_model(one)), default=(0, 0))
                late = [one for one in sheet.last("tool_result", stream) if place(one) > last]
                assert [one for one in late if "content" in one] == [], folder.name


def place(record: dict[str, Any]) -> tuple[int, int]:
    ref = record["native"]["refs"][0]
    return int(ref["source"][1:]), ref.get("line", 0)


def is_of_model(record: dict[str, Any]) -> bool:
    by_model = record.get("requestedBy") == "model" or record.get("author") == "model"
    return by_model or record["type"] == "reasoning" or record.get("scope") == "inference"


# -- public files -------------------------------------------------------------------------------------------------


def public(shared: Path, kind: str) -> list[Path]:
    found = sorted(
        path for path in (shared / "corpus" / kind).rglob("*") if path.suffix in (".jsonl", ".zst")
    )
    assert len(found) > 30
    return found


@pytest.mark.parametrize(("kind", "adapter"), [("codex", CODEX), ("codex-exec", CODEX_EXEC)])
def test_public_files_lose_no_line(kind: str, adapter: Stored, shared: Path) -> None:
    for path in public(shared, kind):
        assert adapter.recognises(str(path), Files.below(path.parent).head(str(path))), path.name
        assert check_harness(adapter, path) == [], path.name


@pytest.mark.parametrize("kind", ["codex", "codex-exec"])
def test_public_files_have_evidence_for_every_fact(kind: str, shared: Path, tmp_path: Path) -> None:
    found = []
    for bundle in bundles(public(shared, kind), tmp_path):
        found += [(bundle.path, finding) for finding in audit_bundle(bundle)]
    assert found == []


def test_the_capture_with_one_id_on_three_calls(shared: Path) -> None:
    folder = shared / "captures" / "codex" / "0.163.0" / "duplicate_call_ids"
    files = Files.below(folder)
    found = CODEX.sessions(str(folder), files)
    assert found
    for session in found:
        sheet = Sheet(read_session(CODEX, session, files))
        calls, results = sheet.last("tool_call"), sheet.last("tool_result")
        assert [call["callId"] for call in calls] == ["call_dup"] * 3
        assert {result["linkage"] for result in results} == {"ambiguous"}
        assert not any("callId" in result for result in results)
        texts = [text_of(result) for result in results if text_of(result)]
        assert [text.splitlines()[-1] for text in texts] == ["first", "second", "third"]
        outputs = sorted(result["exec"]["output"] for result in results if "exec" in result)
        assert outputs == ["first\n", "second\n", "third\n"]
