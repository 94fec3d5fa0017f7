"""What the records say, against what the model's side of the wire saw.

``requests.jsonl`` of a capture is what the scripted model received. It is never input of the product, always a check
on it: content is what was sent (ASR-259, decision 7), and nothing but that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from callsheet.registry.versions import version_key
from tests.native.claude_code.conftest import Run, Sheet

BLANKS = "\t\n\v\f\r \u00a0\ufeff"
RECORDS_REQUESTS = version_key("2.1.300")


def sent_results(run: Run) -> dict[str, list[Any]]:
    """Contents of every tool_result block that the model got, by call id."""
    found: dict[str, list[Any]] = defaultdict(list)
    for request in run.requests():
        for message in request.get("messages") or []:
            if isinstance(message["content"], list):
                for block in message["content"]:
                    if block["type"] == "tool_result":
                        found[block["tool_use_id"]].append(block.get("content", ""))
    return found


def told_texts(sheets: list[Sheet]) -> set[str]:
    """Texts with a message record of their own, as they are appended to results: trimmed."""
    return {
        part["text"].strip(BLANKS)
        for sheet in sheets
        for records in sheet.streams.values()
        for record in records
        if record["type"] == "message"
        for part in record.get("content", [])
        if part["type"] == "text"
    }


def is_told(rest: str, told: set[str], unrecorded: bool) -> bool:
    """Whether a text is nothing but told texts, each after an empty line."""
    ends = {0}
    for at in range(len(rest) + 1):
        if at in ends:
            ends.update(at + 2 + len(text) for text in told if rest.startswith(f"\n\n{text}", at))
    # Versions before 2.1.300 sent reminders of which their files have no text, and trimmed the result before them.
    lone = rest.strip("\n")
    return len(rest) in ends or (
        unrecorded and lone.startswith("<system-reminder>") and lone.endswith("</system-reminder>")
    )


def text_as_sent(sent: str, text: str, told: set[str], unrecorded: bool) -> bool:
    if text == "":
        return sent == "" or is_told("\n\n" + sent, told, unrecorded)
    return sent.startswith(text) and is_told(sent[len(text) :], told, unrecorded)


def parts_as_sent(sent: list[Any], parts: list[Any], told: set[str]) -> bool:
    if len(sent) < len(parts):
        return False
    for index, (block, part) in enumerate(zip(sent, parts, strict=False)):
        if part["type"] == "text":
            # An LF is added to the last text before appended blocks.
            glued = len(sent) > len(parts) and block.get("text") == part["text"] + "\n"
            if block.get("text") != part["text"] and not glued:
                return False
        elif part["type"] == "image":
            if block["type"] != "image":
                return False
        elif block != part["value"]:
            return False
    rest = [block.get("text", "").strip(BLANKS) for block in sent[len(parts) :]]
    return all(text in told for text in rest)


def as_sent(sent: Any, parts: list[Any], told: set[str], unrecorded: bool) -> bool:
    if isinstance(sent, list):
        return parts_as_sent(sent, parts, told)
    if any(part["type"] != "text" for part in parts):
        return False
    return text_as_sent(sent, "".join(part["text"] for part in parts), told, unrecorded)


def test_content_is_what_was_sent(version: str, runs: list[Run]) -> None:
    proven = (version_key(version) or ()) >= (RECORDS_REQUESTS or ())
    seen: Counter[str] = Counter()
    for run in runs:
        sent = sent_results(run)
        sheets = list(run.sheets())
        told = told_texts(sheets)
        for sheet in sheets:
            for records in sheet.streams.values():
                for record in records:
                    if record["type"] != "tool_result":
                        continue
                    native_id = record.get("nativeCallId", record.get("callId"))
                    where = f"{run.name} {native_id}"
                    got = sent.get(native_id, [])
                    if "content" in record:
                        assert got, f"{where}: content, but nothing was sent"
                        parts = record["content"]
                        assert any(as_sent(one, parts, told, not proven) for one in got), (
                            f"{where}: {parts!r} was not sent, but {got!r}"
                        )
                        seen["content"] += 1
                    else:
                        assert record["capture"]["content"]["state"] == "absent", where
                        assert record["capture"]["content"]["reason"], where
                        if proven and "duplicate_ids" not in run.name:
                            assert not got, f"{where}: was sent, and the file records its requests"
                        seen["absent"] += 1
    assert seen["content"], "a version without any content shows nothing"


def native_blocks(run: Run, kind: str, member: str) -> list[str]:
    """Ids of the native blocks of a type, records written twice counted once, a fork's copies in each file."""
    found = []
    for record in run.native():
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if record.get("type") in ("assistant", "user") and isinstance(content, list):
            found += [block[member] for block in content if block.get("type") == kind]
    return found


def test_every_native_call_and_result_is_a_record(version: str, runs: list[Run]) -> None:
    for run in runs:
        calls: list[str] = []
        results: list[str] = []
        for sheet in run.sheets():
            for records in sheet.streams.values():
                for record in records:
                    if record.get("supersedes") or record.get("requestedBy") == "user":
                        continue
                    native = record.get("native", {})
                    if record["type"] == "tool_call":
                        calls.append(native.get("callId", record["callId"]))
                    elif record["type"] == "tool_result" and native["refs"][0]["role"] == "result":
                        results.append(record.get("nativeCallId", record.get("callId")))
        assert sorted(calls) == sorted(native_blocks(run, "tool_use", "id")), run.name
        assert sorted(results) == sorted(native_blocks(run, "tool_result", "tool_use_id")), run.name


def test_every_result_of_a_capture_finds_its_call(version: str, runs: list[Run]) -> None:
    """No capture has an orphan or an ambiguous result: all of them were linked, by id or by the file's own link."""
    for run in runs:
        for sheet in run.sheets():
            for stream in sheet.streams:
                told = sheet.tally(stream)
                assert (told.orphan, told.ambiguous) == (0, 0), f"{run.name} {stream}"
                assert told.paired == told.results, f"{run.name} {stream}"


def test_duplicate_ids(shared: Path) -> None:
    """One id on three calls: the file links each result to its call, and only the second one's text was sent."""
    run = Run(next((shared / "captures/claude-code").glob("*/duplicate_ids/*/projects")).parent)
    (sheet,) = run.sheets()
    assert sheet.pairs() == [("echo first", "first"), ("echo second", "second"), ("echo third", "third")]
    assert [result["linkage"] for result in sheet.results()] == ["derived"] * 3
    assert {result["nativeCallId"] for result in sheet.results()} == {"toolu_dup"}
    sent = {result["raw"]["stdout"] if "content" in result else None for result in sheet.results()}
    assert sent == {None, "second"}
    assert [record["content"] for record in sheet.results() if "content" in record] == [
        [{"type": "text", "text": "second"}]
    ]
