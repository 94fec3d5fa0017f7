"""Runs of the real OpenClaw, cases and public files (``--shared=DIR``), held against what they hold natively."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.native.openclaw.conftest import Sheet, Store, captured, database, insert, sheets

from callsheet.harness.openclaw import OPENCLAW
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files

SCENARIOS = (
    "approvals",
    "ask-answered",
    "ask-noanswer",
    "auto-review",
    "background",
    "basic",
    "code-mode",
    "compaction",
    "duplicate-ids",
    "noroute",
    "subagent-parent",
)

SENT = dict(zip(SCENARIOS, (3, 1, 1, 3, 2, 5, 3, 5, 1, 4, 2), strict=True))
"""How many contents each run's own report of a turn holds; it cuts a long list of messages short."""


@pytest.fixture
def run(shared: Path, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Sheet, list[Any], Store]:
    """A captured run, built into databases of the owner's schema: the sheet, its native entries, the store."""
    folder = shared / "captures" / "openclaw" / f"openclaw-{request.param}"
    store = captured(folder, tmp_path / "openclaw")
    path = store.close()
    (sheet,) = sheets(path, Files.below(store.root))
    return sheet, [json.loads(line) for line in (folder / "transcript.jsonl").read_text().splitlines()], store


every = pytest.mark.parametrize("run", SCENARIOS, indirect=True)


def blocks(entries: list[Any], kind: str) -> Iterator[dict[str, Any]]:
    for entry in entries:
        content = entry.get("message", {}).get("content")
        if entry.get("message", {}).get("role") == "assistant":
            yield from (one for one in content if one["type"] == kind)


def messages(entries: list[Any], role: str) -> list[dict[str, Any]]:
    return [entry["message"] for entry in entries if entry.get("message", {}).get("role") == role]


@every
def test_every_call_and_result_is_a_record(run: tuple[Sheet, list[Any], Store]) -> None:
    sheet, entries, _ = run
    nested = [one for one in messages(entries, "custom") if one["customType"] == "openclaw.nested-tool.v1"]
    made = [one for one in sheet.of("tool_call") if one["native"]["refs"][0]["role"] != "traced"]
    calls = [call["native"].get("callId", call["callId"]) for call in made]
    wanted = [one["id"] for one in blocks(entries, "toolCall")]
    wanted += [one["details"]["toolCallId"] for one in nested]
    assert Counter(calls) == Counter(wanted)
    # OpenClaw takes calls of a tool that it does not have out of the transcript; its trace keeps them.
    lost = [one["title"] for one in sheet.of("tool_call") if one not in made]
    assert lost == ["frobnicate"] * any(
        one["toolName"] == "frobnicate" for one in messages(entries, "toolResult")
    )
    results = [one.get("nativeCallId", one.get("callId")) for one in sheet.of("tool_result")]
    told = [one["toolCallId"] for one in messages(entries, "toolResult")]
    told += [one["details"]["toolCallId"] for one in nested]
    assert Counter(results) == Counter(told)


@every
def test_texts_and_exit_codes_are_the_stored_ones(run: tuple[Sheet, list[Any], Store]) -> None:
    sheet, entries, _ = run
    stored: dict[str, list[dict[str, Any]]] = {}
    for message in messages(entries, "toolResult"):
        stored.setdefault(message["toolCallId"], []).append(message)
    shown = 0
    for result in sheet.of("tool_result"):
        if result["native"]["refs"][0]["role"] != "result":
            continue
        native = stored[str(result.get("nativeCallId", result.get("callId")))].pop(0)
        details = native.get("details") or {}
        if "content" in result:
            shown += 1
            assert result["content"] == native["content"]
            assert result.get("raw", {}) == details
        else:
            assert result["raw"]["content"] == native["content"]
        code = details.get("exitCode")
        assert result.get("exec", {}).get("exitCode") == (code if isinstance(code, int) else None)
        assert result.get("durationMs") == details.get("durationMs")
    assert shown or "duplicate" in str(entries)


def sent(folder: Path) -> dict[str, list[str]]:
    """Texts of the results among the messages that OpenClaw says it completed a turn with, by call id.

    Ids are as the provider's adapter cleans them; what looked like a credential is ``***``.
    """
    found: dict[str, list[str]] = {}
    for line in (folder / "trajectory.jsonl").read_text().splitlines():
        told = json.loads(line)
        snapshot = told["data"].get("messagesSnapshot", []) if told["type"] == "model.completed" else []
        for message in snapshot:
            if isinstance(message, dict) and message.get("role") == "toolResult":
                texts = [block["text"] for block in message["content"]]
                found.setdefault(message["toolCallId"].replace("_", ""), []).append("\0".join(texts))
    return found


@every
def test_contents_are_what_the_scripted_model_was_sent(
    run: tuple[Sheet, list[Any], Store], shared: Path, request: pytest.FixtureRequest
) -> None:
    sheet, _, _ = run
    name = str(request.node.callspec.params["run"])
    told = sent(shared / "captures" / "openclaw" / f"openclaw-{name}")
    compared = 0
    for result in sheet.of("tool_result"):
        texts = told.get(str(result.get("nativeCallId", result.get("callId"))).replace("_", ""), [])
        if "content" not in result or not texts:
            continue
        own = "\0".join(block["text"] for block in result["content"])
        alike = [re.escape(text).replace(re.escape("***"), r"\S+") for text in texts]
        assert any(re.fullmatch(text, own) for text in alike), (own, texts)
        compared += 1
    assert compared == SENT[name]


@every
def test_rows_of_the_shared_database_are_records(run: tuple[Sheet, list[Any], Store]) -> None:
    sheet, _, store = run
    wanted = {}
    import sqlite3

    connection = sqlite3.connect(store.state)
    for (row,) in connection.execute(
        "SELECT json_array(approval_id, status, decision) FROM operator_approvals"
    ):
        name, status, decision = json.loads(row)
        wanted[name] = (status, decision)
    tasks = [one for (one,) in connection.execute("SELECT source_id FROM task_runs WHERE task_kind = 'exec'")]
    connection.close()
    found = {one["requestId"]: one for one in sheet.of("permission")}
    assert set(found) == set(wanted)
    for name, (status, decision) in wanted.items():
        if status == "cancelled":
            assert found[name]["decision"] == "cancelled"
        else:
            assert (
                found[name].get("decision") == {"allow-once": "allow_once", "deny": "reject_once"}[decision]
            )
    ended = {one["terminalId"]: one for one in sheet.last("terminal")}
    assert set(tasks) <= set(ended)


def test_the_kit_finds_nothing_in_the_native_databases(shared: Path) -> None:
    assert check_harness(OPENCLAW, shared / "captures" / "openclaw" / "openclaw-native-db") == []


def test_exports_and_native_databases_agree(shared: Path, tmp_path: Path) -> None:
    """The database that OpenClaw wrote, and the one built from its export, give the same facts."""
    folder = shared / "captures" / "openclaw"
    native = {
        sheet.main: sheet
        for path in sorted((folder / "openclaw-native-db").glob("*.agent.sqlite"))
        for sheet in sheets(path, Files.below(path.parent))
    }
    compared = 0
    for scenario in ("basic", "compaction", "subagent-parent"):
        path = captured(folder / f"openclaw-{scenario}", tmp_path / scenario).close()
        (built,) = sheets(path, Files.below(tmp_path / scenario))
        other = native.get(built.main)
        if other is None:
            continue
        compared += 1
        for kind in ("tool_call", "tool_result"):
            for one, two in zip(built.of(kind), other.of(kind), strict=True):
                for member in ("callId", "name", "status", "linkage"):
                    assert one.get(member) == two.get(member)
    assert compared >= 2


def test_the_mocks_two_calls_of_one_id(shared: Path, tmp_path: Path) -> None:
    path = captured(shared / "captures/openclaw/openclaw-duplicate-ids", tmp_path / "o").close()
    (sheet,) = sheets(path, Files.below(tmp_path))
    told = sheet.tally()
    assert (told.calls, told.paired, told.ambiguous, told.orphan) == (3, 3, 0, 0)
    by_id = {call["callId"]: call["input"]["command"] for call in sheet.of("tool_call")}
    pairs = {
        by_id[one["callId"]]: one["raw"]["details"]["aggregated"]
        if "content" not in one
        else one["content"][0]["text"]
        for one in sheet.of("tool_result")
    }
    assert pairs == {"echo one": "one", "echo two": "two", "echo three": "three"}


# -- cases --------------------------------------------------------------------------------------------------------


def case(shared: Path, name: str) -> tuple[Sheet, dict[str, Any]]:
    (folder,) = (shared / "cases").glob(f"{name}-*")
    (sheet,) = sheets(folder / "session.jsonl", Files.below(folder))
    return sheet, json.loads((folder / "case.json").read_text())["expected"]["facts"]


def test_case_007(shared: Path) -> None:
    sheet, facts = case(shared, "007")
    told = sheet.tally()
    assert (told.calls, told.results, told.orphan) == (facts["calls"], facts["results"], facts["orphans"])
    assert told.paired in facts["paired_allowed"]
    assert {call["native"]["callId"] for call in sheet.of("tool_call")} == {"exec_0"}
    asked = {call["callId"]: call["input"]["command"] for call in sheet.of("tool_call")}
    pairs = {asked[one["callId"]]: one["raw"]["content"][0]["text"] for one in sheet.of("tool_result")}
    assert pairs == facts["if_paired_exact"]


def test_case_009(shared: Path) -> None:
    sheet, facts = case(shared, "009")
    told = sheet.tally()
    assert (told.calls, told.results, told.dangling) == (facts["calls"], facts["results"], facts["dangling"])
    assert facts["message_error"] not in json.dumps(sheet.of("tool_call"))
    assert facts["message_error"] in json.dumps(sheet.of("message"))


def test_case_045(shared: Path) -> None:
    sheet, facts = case(shared, "045")
    told = sheet.tally()
    assert (told.calls, told.paired) == (facts["calls"], facts["paired"])
    assert len([gap for gap in sheet.of("gap") if gap["reason"] == "missing_parent"]) == facts["broken_links"]


def test_case_029(shared: Path, tmp_path: Path) -> None:
    """The events of the case as rows of the owner's table: what a late answer was refused changes nothing."""
    (folder,) = (shared / "cases").glob("029-*")
    facts = json.loads((folder / "case.json").read_text())["expected"]["facts"]
    rows: dict[str, dict[str, Any]] = {}
    for line in (folder / "approvals.jsonl").read_text().splitlines():
        event = json.loads(line)
        payload = event.get("payload", {})
        if event.get("event") == "exec.approval.requested":
            request = payload["request"]
            rows[payload["id"]] = {
                "approval_id": payload["id"],
                "resolution_ref": f"{len(rows):043}",
                "kind": "exec",
                "status": "pending",
                "presentation_json": json.dumps({"kind": "exec", "commandText": request["command"]}),
                "reviewer_device_ids_json": "[]",
                "audience_session_keys_json": "[]",
                "runtime_epoch": "e",
                "created_at_ms": payload["createdAtMs"],
                "expires_at_ms": payload["expiresAtMs"],
                "updated_at_ms": payload["createdAtMs"],
            }
        elif event.get("event") == "exec.approval.expired":
            end = {"status": "expired", "decision": "deny", "terminal_reason": payload["reason"]}
            rows[payload["id"]] |= {**end, "resolver_kind": "system", "resolver_id": "timer"}
            rows[payload["id"]] |= {"resolved_at_ms": payload["ts"], "updated_at_ms": payload["ts"]}
        elif event.get("event") == "exec.approval.resolved":
            end = {"status": "denied", "decision": payload["decision"], "terminal_reason": "user"}
            rows[payload["id"]] |= {**end, "resolver_kind": "device", "resolver_id": payload["resolvedBy"]}
            rows[payload["id"]] |= {"resolved_at_ms": payload["ts"], "updated_at_ms": payload["ts"]}
    connection = database(tmp_path / "state.sqlite", "state-18.sql")
    for row in rows.values():
        insert(connection, "operator_approvals", row)
    connection.close()
    (sheet,) = sheets(tmp_path / "state.sqlite", Files.below(tmp_path))
    states = {one["requestId"]: [one["status"], one["decision"]] for one in sheet.of("permission")}
    assert states == facts["permission_states"]


# -- public files -------------------------------------------------------------------------------------------------


def test_public_files(shared: Path) -> None:
    """Counts of calls and results as the corpus's own index has them; the kit finds nothing."""
    root = shared / "corpus" / "openclaw-pi"
    assert check_harness(OPENCLAW, root) == []
    index = {}
    for line in (shared / "corpus" / "index.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["file"].startswith("openclaw-pi/"):
            index[entry["file"]] = entry["pairing"]
    seen = 0
    for path in sorted(root.rglob("*.jsonl")):
        (sheet,) = sheets(path, Files({str(path): path.read_bytes()}))
        told = sheet.tally()
        wanted = index[path.relative_to(shared / "corpus").as_posix()]
        assert (told.calls, told.results) == (wanted["calls"], wanted["results"])
        seen += 1
    assert seen == len(index)


def test_other_agents_files_are_not_taken(shared: Path) -> None:
    for folder in (shared / "corpus").iterdir():
        if folder.is_dir() and folder.name != "openclaw-pi":
            assert OPENCLAW.sessions(str(folder), Files.below(folder)) == [], folder.name


MEASURE = """
import re, resource, sys
from pathlib import Path
from callsheet.library.importing import import_sources
(one,) = import_sources([Path(sys.argv[1])], Path(sys.argv[2]))
# On Linux ru_maxrss counts what the starting process had before it became this one.
status = Path("/proc/self/status")
own = re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text()) if status.exists() else None
peak = int(own[1]) if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(one.calls, one.records, one.gaps, peak)
"""


@pytest.mark.parametrize("megabytes", [60])
def test_a_huge_session_stays_small_in_memory(shared: Path, tmp_path: Path, megabytes: int) -> None:
    """Case 077 at 60 MB: the ceiling of 250 MB holds at 300 MB too, which is measured by hand."""
    (folder,) = (shared / "cases").glob("077-*")
    made = tmp_path / "big.jsonl"
    done = subprocess.run(
        [sys.executable, str(folder / "make_input.py"), str(made), str(megabytes)],
        capture_output=True,
        text=True,
        check=True,
    )
    calls = int(done.stdout)
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(made), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
    )
    found, records, gaps, peak = map(int, run.stdout.split())
    assert (found, records, gaps) == (calls, 2 * calls + 1, 0)
    assert peak < 250 * 1024
