"""Frames of real agents: every log is read whole and audits clean, and says what the stored session says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.native.claude_code.conftest import Run, text_of

from callsheet.audit import Totals, audit_bundle
from callsheet.harness.claude_code import CLAUDE_CODE_STREAM
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.pairing import Pairing, tally
from callsheet.records import ToolCall, decode
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.testing.desk import Files, read_session

KIND = "claude-code-stream"
UNTOLD = {
    ("unknown", "interrupted"): "toolDenialBeforeRun is on no frame",
    ("unknown", "cancelled"): "toolDenialBeforeRun is on no frame",
    ("denied", "unknown"): "permission_denied frames and a host's deny are in no stored file",
    ("denied", "failed"): "before toolDenialKind, only the host's own deny records a refusal",
    ("denied", "cancelled"): "a host's deny with interrupt is stored like any call that was cut off",
    ("failed", "unknown"): "frames before 2.1.260 have no tool_result_meta: the error is all they tell",
    ("failed", "denied"): "frames before 2.1.260 have no tool_result_meta: the error is all they tell",
}
"""Statuses of a frame and of the stored line for it that differ, and what one of the two cannot tell."""


def logs(folder: Path) -> list[Path]:
    return sorted(
        path for name in ("stdout*.jsonl", "stdio*.jsonl") for path in folder.rglob(name) if path.stat().st_size
    )


def imported(paths: list[Path], out: Path) -> Iterator[Imported]:
    for path in paths:
        for made in import_sources([path], out, kind=KIND):
            assert not isinstance(made, Failure), made
            yield made


def test_every_captured_log_keeps_the_rules_and_audits_clean(
    runs: list[Run], version: str, tmp_path: Path
) -> None:
    del version
    totals = Totals()
    paths = [path for run in runs for path in logs(run.folder)]
    for made in imported(paths, tmp_path):
        assert list(check_bundle(Bundle(made.bundle))) == []
        assert list(audit_bundle(Bundle(made.bundle), totals)) == [], made.bundle
    assert totals.facts > 1000


def test_public_logs_keep_the_rules_and_audit_clean(shared: Path, tmp_path: Path) -> None:
    paths = [path for path in (shared / "corpus" / "claude-stream").rglob("*.jsonl") if path.stat().st_size]
    known = [path for path in paths if CLAUDE_CODE_STREAM.recognises(path.name, path.read_bytes()[:65536])]
    assert len(known) >= 10
    for made in imported(known, tmp_path):
        assert list(check_bundle(Bundle(made.bundle))) == []
        assert list(audit_bundle(Bundle(made.bundle))) == []


class Told(msgspec.Struct):
    """What a source tells of one call."""

    name: str | None
    kind: str | None
    status: str | None = None
    text: str | None = None
    sent: bool = False
    decision: str | None = None


def told(streams: dict[str, list[bytes]]) -> dict[str, Told]:
    """Calls by native id, of all streams; an id on several calls is left out."""
    found: dict[str, Told] = {}
    counts: Counter[str] = Counter()
    for lines in streams.values():
        pairing = Pairing()
        records = [msgspec.json.decode(line) for line in lines]
        for line in lines:
            pairing.add(decode(line))
        asked = {
            one["subject"]["callId"]: one.get("decision") for one in records if one["type"] == "permission"
        }
        for number in pairing.numbers(ToolCall):
            call = records[number]
            native = call.get("native", {}).get("callId", call["callId"])
            counts[native] += 1
            at = pairing.result(call["callId"])
            result: dict[str, Any] = {} if at is None else records[at]
            compact = result.get("permission", {}).get("decision")
            found[native] = Told(
                call.get("name"),
                call.get("kind"),
                result.get("status"),
                text_of(result) if result else None,
                "content" in result,
                asked.get(call["callId"], compact),
            )
    return {name: one for name, one in found.items() if counts[name] == 1}


def stored_streams(run: Run) -> dict[str, list[bytes]]:
    return {
        f"{index} {stream.id}": stream.lines
        for index, sheet in enumerate(run.sheets())
        for stream in sheet.reading.streams
    }


def test_frames_and_stored_sessions_do_not_contradict(runs: list[Run], version: str) -> None:
    compared: Counter[str] = Counter()
    for run in runs:
        paths = logs(run.folder)
        if len(paths) != 1:
            continue  # several runs of one session: what one log lacks, another has
        files = Files.below(run.folder)
        (session,) = CLAUDE_CODE_STREAM.sessions(str(paths[0]), files)
        reading = read_session(CLAUDE_CODE_STREAM, session, files)
        live, stored = told({one.id: one.lines for one in reading.streams}), told(stored_streams(run))
        for name, one in live.items():
            other = stored.get(name)
            if other is None:
                continue
            where = f"{run.name} {name}"
            compared["calls"] += 1
            assert (one.name, one.kind) == (other.name, other.kind), where
            if one.status is not None and other.status is not None:
                assert one.status == other.status or (one.status, other.status) in UNTOLD, where
                compared["statuses"] += one.status != "unknown"
            if one.sent and other.sent:
                compared["contents"] += 1
                assert (one.text or "").strip() == (other.text or "").strip(), where
            if one.decision is not None and other.decision is not None and other.decision != "allow_always":
                compared["decisions"] += 1
                assert one.decision == other.decision or {one.decision, other.decision} <= {
                    "allow_once",
                    "allow_session",
                    "allow_always",
                }, where
    assert compared["calls"] > 3, version
    assert compared["statuses"] > 3, version


def test_every_content_of_a_frame_was_sent(runs: list[Run], version: str) -> None:
    """Decision 7: a result's content stands in a request that the model's server got."""
    found = 0
    for run in runs:
        sent = "\n".join(json.dumps(one, ensure_ascii=False) for one in run.requests())
        for path in logs(run.folder):
            files = Files.below(run.folder)
            (session,) = CLAUDE_CODE_STREAM.sessions(str(path), files)
            for stream in read_session(CLAUDE_CODE_STREAM, session, files).streams:
                for line in stream.lines:
                    record = msgspec.json.decode(line)
                    for part in record.get("content", ()) if record["type"] == "tool_result" else ():
                        if part.get("type") == "text" and part["text"].strip():
                            found += 1
                            words = json.dumps(part["text"].strip(), ensure_ascii=False)[1:-1]
                            assert words in sent, (run.name, record["id"])
    assert found > 3, version


CASES = ("021-stream-interrupt-stamped-rejected", "023-stream-error-result-exit-zero")
MORE = ("047-stream-partials-then-final", "049-stream-unknown-event-types")


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_bug_reports(shared: Path, name: str) -> None:
    folder = shared / "cases" / name
    facts = json.loads((folder / "case.json").read_bytes())["expected"]["facts"]
    files = Files.below(folder)
    (session,) = CLAUDE_CODE_STREAM.sessions(str(folder / "stdout.jsonl"), files)
    reading = read_session(CLAUDE_CODE_STREAM, session, files)
    (stream,) = reading.streams
    records = [msgspec.json.decode(line) for line in stream.lines]

    def of(kind: str) -> list[dict[str, Any]]:
        return [one for one in records if one["type"] == kind]

    pairing = Pairing()
    for line in stream.lines:
        pairing.add(decode(line))
    count = tally(pairing)
    old = {one.get("supersedes") for one in records}
    results = [one for one in of("tool_result") if one["id"] not in old]
    said = [part["text"] for one in of("message") if one["author"] == "model" for part in one["content"]]
    known: dict[str, Callable[[Any], bool]] = {
        "calls": lambda wanted: len(of("tool_call")) == wanted,
        "results": lambda wanted: len(results) == wanted,
        "paired": lambda wanted: count.paired == wanted,
        "dangling": lambda wanted: count.dangling == wanted,
        "result_status": lambda wanted: all(
            one["status"] in ([allowed] if isinstance(allowed := wanted[one["callId"]], str) else allowed)
            for one in results
        ),
        "must_not_status": lambda wanted: not {one["status"] for one in results} & set(wanted),
        "diagnostics_min": lambda wanted: len(reading.diagnostics) >= wanted,
        "terminals_allowed": lambda wanted: len(of("terminal")) in wanted,
        "turn_is_error": lambda wanted: (of("turn")[-1]["status"] == "failed") == wanted,
        "turn_subtype": lambda wanted: of("turn")[-1]["reason"] == wanted,
        "assistant_texts": lambda wanted: said == wanted,
        "inputs": lambda wanted: [one["input"] for one in of("tool_call")] == wanted,
        "unknown_frames_kept": lambda wanted: len(
            [one for one in of("unmapped") if not one["nativeType"].startswith(("system", "stream_event"))]
        )
        == wanted,
        "transcript_rows_from_unknown": lambda wanted: len(of("notice")) == wanted,
    }
    assert {fact: known[fact](wanted) for fact, wanted in facts.items()} == dict.fromkeys(facts, True)
