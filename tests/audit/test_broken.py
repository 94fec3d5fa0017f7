"""Sessions of our own making that once gave a finding: each is imported, and the audit has nothing to say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.audit import audit_bundle
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle

SESSION = "00000000-0000-4000-8000-00000000000a"
NATIVE = Path(__file__).parents[1] / "native"


def imported(source: Path, out: Path) -> list[dict[str, Any]]:
    """The records of a source that keeps the rules and of which every fact is found again."""
    made = [one for one in import_sources([source], out) if not isinstance(one, Failure)]
    assert made
    records = []
    for one in made:
        bundle = Bundle(one.bundle)
        assert [str(finding) for finding in [*check_bundle(bundle), *audit_bundle(bundle)]] == []
        for stream in sorted(one.bundle.glob("streams/*.jsonl")):
            records += [json.loads(line) for line in stream.read_text().split("\n") if line]
    return records


def of_type(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["type"] == kind]


def claude(kind: str, content: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    uuid = f"00000000-0000-4000-8000-0000000000{number:02}"
    line = {"type": kind, "sessionId": SESSION, "version": "2.1.332", "uuid": uuid, "cwd": "/w", **more}
    return {**line, "timestamp": "2026-11-30T10:00:00.000Z", "message": {"role": kind, "content": content}}


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("blank", ["  ", "\t", "\r", "\ufeff "], ids=["blanks", "tab", "CR", "mark"])
def test_blanks_before_a_line_cost_no_fact(blank: str, tmp_path: Path) -> None:
    source = NATIVE / "claude_code_stream/2.1.332/duplicate_ids/native/stdout.jsonl"
    lines = source.read_text().splitlines()
    indented = tmp_path / "stdout.jsonl"
    indented.write_text(
        "\n".join([blank + lines[0], *(blank.strip("\ufeff") + line for line in lines[1:])]) + "\n"
    )
    turns = of_type(imported(indented, tmp_path / "out"), "turn")
    assert [turn["status"] for turn in turns] == ["running", "completed"]


def test_a_text_in_a_block_of_another_type_is_not_said(tmp_path: Path) -> None:
    block = {"type": "tool_use", "text": "not said"}
    source = written(tmp_path / f"{SESSION}.jsonl", claude("user", "hi"), claude("user", [block], 2))
    texts = [
        part.get("text")
        for record in of_type(imported(source, tmp_path / "out"), "message")
        for part in record["content"]
    ]
    assert texts == ["hi", None]


@pytest.mark.parametrize("entry", [{"content": ["x"]}, "x", {}], ids=["list", "text", "nothing"])
def test_a_plan_with_an_entry_of_no_text_is_none(entry: Any, tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "c", "name": "TodoWrite", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
    todos = [{"content": "a", "status": "pending"}]

    def plans(folder: str, todos: list[Any]) -> list[dict[str, Any]]:
        told = claude("user", [result], 3, toolUseResult={"oldTodos": [], "newTodos": todos})
        lines = (claude("user", "hi"), claude("assistant", [call], 2), told)
        source = written(tmp_path / folder / f"{SESSION}.jsonl", *lines)
        return of_type(imported(source, tmp_path / folder / "out"), "plan")

    assert [len(plan["entries"]) for plan in plans("good", todos)] == [1]
    assert plans("bad", [*todos, entry]) == []


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (b'{"agentType":"x\xff"}', "bad_utf8"),
        (b"\0" * 9, "nul"),
        (b'{"a"\0', "bad_json"),
        (b"[" * 5000, "too_deep"),
        (b"7", "bad_json"),
    ],
    ids=["utf8", "nul", "nul inside", "deep", "number"],
)
def test_an_agents_meta_file_says_what_is_wrong_with_it(meta: bytes, reason: str, tmp_path: Path) -> None:
    main = written(tmp_path / f"{SESSION}.jsonl", claude("user", "hi"))
    agent = written(
        tmp_path / SESSION / "subagents" / "agent-a1.jsonl",
        claude("user", "go", isSidechain=True, agentId="a1"),
    )
    agent.with_name("agent-a1.meta.json").write_bytes(meta)
    gaps = of_type(imported(main, tmp_path / "out"), "gap")
    assert [gap["reason"] for gap in gaps] == [reason]


def test_a_file_that_only_says_what_it_was_copied_from(tmp_path: Path) -> None:
    fork = {
        "type": "fork-context-ref",
        "agentId": "a1",
        "parentSessionId": SESSION,
        "parentLastUuid": "u",
        "contextLength": 1,
    }
    source = tmp_path / "agent-a1.jsonl"
    source.write_text(json.dumps(fork) + "\n" + json.dumps(claude("user", "hi"))[:-40] + "\n")
    (head,) = of_type(imported(source, tmp_path / "out"), "session")
    assert (head["nativeSessionId"], head["forkedFrom"]) == ("agent-a1", SESSION)


def test_an_error_without_words_is_none(tmp_path: Path) -> None:
    lines = (
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "turn.failed", "error": {}},
    )
    turn = of_type(imported(written(tmp_path / "stdout.jsonl", *lines), tmp_path / "out"), "turn")[-1]
    assert (turn["status"], turn.get("error")) == ("failed", None)


def test_an_event_of_the_old_log_with_a_type_of_its_own_is_no_call(tmp_path: Path) -> None:
    begin = {"type": "exec_command_begin", "call_id": "c", "command": ["true"], "cwd": "/w"}
    end = {"type": "exec_command_end", "call_id": "c", "stdout": "", "stderr": "", "exit_code": 0}
    lines = [{"id": "1", "msg": {"type": "task_started"}}]
    lines += [{"id": "1", "msg": msg, **more} for more in ({}, {"type": "new"}) for msg in (begin, end)]
    records = imported(written(tmp_path / "stdout.jsonl", *lines), tmp_path / "out")
    assert len(of_type(records, "tool_call")) == 1
    assert [one["nativeType"] for one in of_type(records, "unmapped")][-2:] == [
        "new/exec_command_begin",
        "new/exec_command_end",
    ]


def test_a_whole_part_of_a_line_that_is_nested_deeply_is_not_deep(tmp_path: Path) -> None:
    source = NATIVE / "claude_code_stream/2.1.332/duplicate_ids/native/stdout.jsonl"
    lines = source.read_text().splitlines()
    deep = "[" * 3000 + "]" * 3000
    torn = f'{{"deep":{deep}}} {lines[2]} {{"torn": tru'
    copy = tmp_path / "stdout.jsonl"
    copy.write_text("\n".join([*lines[:2], torn, *lines[3:]]) + "\n")
    assert [gap["reason"] for gap in of_type(imported(copy, tmp_path / "out"), "gap")] == [
        "too_deep",
        "bad_json",
    ]


def test_a_turn_whose_end_does_not_say_how(tmp_path: Path) -> None:
    source = NATIVE / "claude_code_stream/2.1.332/duplicate_ids/native/stdout.jsonl"
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    for line in lines:
        for name in ("subtype", "is_error", "terminal_reason") if line["type"] == "result" else ():
            line.pop(name, None)
    turns = of_type(imported(written(tmp_path / "stdout.jsonl", *lines), tmp_path / "out"), "turn")
    assert [turn["status"] for turn in turns] == ["running", "unknown"]


def test_reverted_lines_are_told_by_their_ordinals_in_any_order(tmp_path: Path) -> None:
    folder = NATIVE / "codex/0.163.0/revert/native/sessions/2026/11/30"
    first, second = sorted(folder.glob("*.jsonl"))
    lines = first.read_text().splitlines()
    (tmp_path / second.name).write_text(second.read_text())
    kept = []
    for name, order in (("plain", lines[1:]), ("turned", lines[:0:-1])):
        (tmp_path / first.name).write_text("\n".join([lines[0], *order]) + "\n")
        records = of_type(imported(tmp_path / second.name, tmp_path / name), "unmapped")
        kept.append(sum(record["nativeType"].startswith("reverted/") for record in records))
    assert kept[0] == kept[1] > 0


def test_a_history_that_another_first_line_tells_of(tmp_path: Path) -> None:
    base = {"history_base": {"thread_id": "gone", "end_ordinal_exclusive": 5}}
    lines = [{"type": "session_meta", "payload": base}, {"type": "session_meta", "payload": {"id": "t"}}]
    lines.append({"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}})
    source = tmp_path / "rollout-x.jsonl"
    source.write_text(
        "".join(json.dumps({"timestamp": "2026-11-30T10:00:00Z", **line}) + "\n" for line in lines)
    )
    assert [gap["reason"] for gap in of_type(imported(source, tmp_path / "out"), "gap")] == [
        "missing_session"
    ]


def test_a_process_that_ended_under_a_word_that_is_not_known(tmp_path: Path) -> None:
    item = {
        "type": "commandExecution",
        "id": "c",
        "command": "x",
        "cwd": "/w",
        "processId": "7",
        "source": "unifiedExecStartup",
    }
    frames = [{"method": "thread/started", "params": {"thread": {"id": "t", "cliVersion": "0.163.0"}}}]
    frames += [
        {
            "method": f"item/{word}",
            "params": {"threadId": "t", "turnId": "u", "item": {**item, "status": status, "exitCode": code}},
        }
        for word, status, code in (("started", "inProgress", None), ("completed", "new", 5))
    ]
    typed = {"threadId": "t", "turnId": "u", "itemId": "c", "processId": "7", "stdin": "x"}
    frames.insert(2, {"method": "item/commandExecution/terminalInteraction", "params": typed})
    source = written(tmp_path / "frames.jsonl", *({"dir": "server", "frame": frame} for frame in frames))
    terminals = of_type(imported(source, tmp_path / "out"), "terminal")
    assert [one["status"] for one in terminals] == ["running", "exited"]
