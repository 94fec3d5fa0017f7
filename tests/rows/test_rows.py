"""Records to rows: what a row says, where it stands, and what it never says."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from callsheet.errors import RecordError
from callsheet.pairing import Pairing
from callsheet.records import RECORDS, Record, ToolCall, ToolResult
from callsheet.registry import Caution, CountRule, Harness, Never, Registry, Tool
from callsheet.rows import ROW_KINDS, Context, Limits, Sheet, View, row_at
from callsheet.rows.native import native_member
from callsheet.rows.reduce import REDUCERS

Records = list[dict[str, Any]]


def call(call_id: str = "a", name: str | None = "Bash", **more: Any) -> dict[str, Any]:
    return {"type": "tool_call", "callId": call_id, "callIdSource": "native", "name": name, **more}


def result(
    call_id: str | None = "a", status: str = "completed", linkage: str = "exact", **more: Any
) -> dict[str, Any]:
    found = {"type": "tool_result", "callId": call_id, "linkage": linkage, "status": status, **more}
    return {name: value for name, value in found.items() if value is not None}


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


def stream(records: Sequence[dict[str, Any]]) -> io.BytesIO:
    lines = [
        json.dumps({"seq": number, "id": f"r{number}", **record}).encode()
        for number, record in enumerate(records)
    ]
    return io.BytesIO(b"\n".join(lines) + b"\n")


REGISTRY = Registry(
    harness=Harness(name="test-agent"),
    tool=[
        Tool(name="Bash", kind="execute", row="command", input="/command"),
        Tool(
            name="Grep",
            row="search",
            input=["/pattern"],
            count=CountRule(pointer="/toolUseResult/numFiles", unit="files"),
        ),
        Tool(name="Odd", row="nonsense", input="/missing"),
        Tool(name="Sly", row="mcp_tool"),
        Tool(name="Todo", row="plan"),
    ],
    never=[
        Never(record="tool_result", member="exec.exitCode", note="only in text"),
        Never(record="tool_result", member="durationMs", tools=["Bash"]),
        Never(record="tool_result", member="startedAt"),
        Never(record="terminal", member="exitCode"),
    ],
    caution=[Caution(record="tool_result", member="exec.exitCode", value=-1, note="not created")],
)


def sheet_of(records: Sequence[dict[str, Any]], registry: Registry | None = REGISTRY, **more: Any) -> Sheet:
    return Sheet(stream(records), registry=registry, **more)


def rows_of(records: Sequence[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    return [msgspec.json.decode(msgspec.json.encode(row)) for row in sheet_of(records, **more).rows()]


def one(records: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    (row,) = rows_of(records, **more)
    return row


def test_a_command_with_all_its_facts() -> None:
    row = one(
        [
            call(input={"command": "make", "timeout": 5}, requestedBy="model", ts="2026-01-01T00:00:00Z"),
            result(
                status="failed",
                content=text("boom"),
                exec={"exitCode": 2},
                durationMs=12.5,
                error={"message": "it broke"},
                permission={"decision": "allow_once", "decidedBy": "policy", "rule": "r"},
            ),
        ]
    )
    assert row == {
        "row": "r0",
        "kind": "command",
        "state": "failed",
        "pairing": "paired",
        "callId": "a",
        "name": "Bash",
        "requestedBy": "model",
        "title": "make",
        "titleFrom": "/command",
        "input": {"command": "make", "timeout": 5},
        "moreInput": ["/timeout"],
        "error": "it broke",
        "exitCode": 2,
        "durationMs": 12.5,
        "output": {"text": "boom", "truncated": False, "member": "content"},
        "permissions": [{"decision": "allow_once", "decidedBy": "policy", "rule": "r"}],
        "record": "r0",
        "result": "r1",
        "ts": "2026-01-01T00:00:00Z",
    }


def test_an_exit_code_of_zero_is_a_fact_and_none_is_a_silence() -> None:
    assert one([call(), result(content=[], exec={"exitCode": 0})])["exitCode"] == 0
    silent = one([call(), result(content=[])])
    assert "exitCode" not in silent
    assert silent["notRecorded"] == ["exec.exitCode", "durationMs"]


def test_members_of_exec_mean_nothing_for_a_search() -> None:
    assert "notRecorded" not in one([call(name="Grep"), result(content=[])])


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("completed", "completed"),
        ("failed", "failed"),
        ("denied", "declined"),
        ("cancelled", "cancelled"),
        ("interrupted", "interrupted"),
        ("unknown", "unconfirmed"),
        ("splendid", "unconfirmed"),
    ],
)
def test_states_follow_the_status(status: str, state: str) -> None:
    row = one([call(), result(status=status)])
    assert row["state"] == state
    assert row.get("status") == (status if state == "unconfirmed" else None)


def test_a_rejection_declines_unless_the_call_completed() -> None:
    asked = {"type": "permission", "requestId": "p", "subject": {"callId": "a"}, "decision": "reject_once"}
    for status, state in (("failed", "declined"), ("unknown", "declined"), ("completed", "completed")):
        rows = rows_of([call(), asked, result(status=status)])
        assert [row["state"] for row in rows if row["kind"] == "command"] == [state]
    assert rows_of([call(), asked])[0]["state"] == "declined"


def test_the_latest_permission_counts() -> None:
    first = {"type": "permission", "requestId": "p", "subject": {"callId": "a"}, "decision": "reject_once"}
    second = {**first, "requestId": "q", "decision": "allow_once", "decidedBy": "user"}
    rows = rows_of([call(), first, second, result(status="failed")])
    assert rows[0]["state"] == "failed"
    assert rows[0]["permissions"] == [
        {"decision": "reject_once"},
        {"decision": "allow_once", "decidedBy": "user"},
    ]
    assert [row["kind"] for row in rows[1:]] == ["request", "request"]


def test_a_permission_without_decision_is_unresolved() -> None:
    row = rows_of([call(), {"type": "permission", "requestId": "p", "subject": {"callId": "a"}}])[1]
    assert (row["state"], row["permissions"], row["parent"]) == ("unconfirmed", [{}], "r0")


def test_dangling_calls_are_unconfirmed_and_running_only_while_the_stream_grows() -> None:
    row = one([call()])
    assert (row["state"], row["pairing"], row["reason"]) == ("unconfirmed", "dangling", "no_result")
    growing = one([call()], provisional=True)
    assert (growing["state"], growing["provisional"]) == ("running", True)


def test_unpaired_results_have_rows_of_their_own() -> None:
    rows = rows_of(
        [
            call(),
            call(),
            result(content=text("x")),
            result("gone", content=text("late")),
            result(None, linkage="ambiguous", nativeCallId="a", content=[]),
        ]
    )
    assert [(row["pairing"], row["state"]) for row in rows] == [
        ("dangling", "unconfirmed"),
        ("dangling", "unconfirmed"),
        ("ambiguous", "unconfirmed"),
        ("orphan", "unconfirmed"),
        ("ambiguous", "unconfirmed"),
    ]
    assert "result" not in rows[2]
    assert rows[3]["output"]["text"] == "late"
    assert rows[4]["nativeCallId"] == "a"
    assert "callId" not in rows[4]


def test_a_result_before_its_call_is_the_calls_row() -> None:
    rows = rows_of(
        [result(content=text("early")), {"type": "message", "author": "model", "content": text("m")}, call()]
    )
    assert [row["kind"] for row in rows] == ["message", "command"]
    assert rows[1]["output"]["text"] == "early"


def test_a_revised_result_is_shown_as_it_is_last() -> None:
    row = one(
        [call(), result(content=text("one")), result(status="failed", content=text("two"), supersedes="r1")]
    )
    assert (row["state"], row["output"]["text"], row["result"]) == ("failed", "two", "r2")


def test_row_kinds_come_from_provider_registry_or_record() -> None:
    mcp = {"kind": "mcp", "server": "s", "tool": "t", "identity": "exact"}
    assert one([call(name="mcp__a__b")])["kind"] == "other"
    assert one([call(name="Bash", provider=mcp)])["kind"] == "mcp_tool"
    assert one([call(name="X"), result(provider=mcp)])["provider"] == mcp
    assert (
        one([call(name="X"), result(provider={"kind": "plugin", "identity": "unknown"})])["kind"] == "other"
    )
    for kind, row in (
        ("execute", "command"),
        ("edit", "file_change"),
        ("fetch", "web"),
        ("think", "other"),
        ("new", "other"),
    ):
        assert one([call(name="X", kind=kind)])["kind"] == row
    assert one([call(name="Odd", kind="read")])["kind"] == "read"
    assert one([call(name="Sly")])["kind"] == "other"
    assert one([call(name="Todo")])["kind"] == "plan"


@pytest.mark.parametrize(
    ("record", "title"),
    [
        (call(name="Bash", input={"command": "ls"}), "ls"),
        (call(name="New", input={"command": ["bash", "-lc", "a b"]}), "bash -lc 'a b'"),
        (call(name="New", input={"x": 1, "file_path": "/f", "query": "q"}), "/f"),
        (call(name="New", input={"x": 1, "only": "text"}), "text"),
        (call(name="New", input={"one": "a", "two": "b"}), "New"),
        (call(name="New", input={"one": "a", "two": "b"}, title="label"), "label"),
        (call(name="Grep", input={"pattern": "", "path": "p"}), "Grep"),
        (call(name="Bash", inputText="{broken"), "Bash"),
        (call(name=None, capture={"name": {"state": "absent"}}, input={"command": ["make"]}), "make"),
        (call(name=None), "a"),
        (call(name="Odd", input={"missing": {"deep": 1}}), '{"deep":1}'),
    ],
)
def test_titles(record: dict[str, Any], title: str) -> None:
    assert one([record])["title"] == title


def test_a_large_input_is_left_out_and_says_so() -> None:
    row = one([call(input={"command": "x" * 500})], limits=Limits(input=100))
    assert "input" not in row
    assert row["inputBytes"] > 500


@pytest.mark.parametrize(
    "raw",
    [
        {"numFiles": 3},
        {"toolUseResult": {"numFiles": 3}, "block": {"content": "x"}},
        {"toolUseResult": {"numFiles": 3}},
    ],
)
def test_counts_are_found_in_both_forms_of_raw(raw: Any) -> None:
    assert one([call(name="Grep"), result(raw=raw)])["count"] == {"value": 3, "unit": "files"}


@pytest.mark.parametrize(
    "raw", [{"numFiles": "3"}, {"numFiles": True}, {}, "text", None, [], {"block": {"numFiles": 3}}]
)
def test_what_is_no_number_is_no_count(raw: Any) -> None:
    assert "count" not in one([call(name="Grep"), result(raw=raw)])


def test_native_members_of_other_harnesses_start_at_the_raw_itself() -> None:
    assert native_member({"payload": {"n": 1}}, "/payload/n") == 1
    assert native_member([1], "/toolUseResult") == [1]


def test_a_count_may_lie_in_a_blob() -> None:
    ref = {"blob": "sha256:" + "0" * 64, "size": 9}
    records = [call(name="Grep"), result(content=[], capture={"raw": {"state": "external", "blob": ref}})]
    assert one(records, blob=lambda _: b'{"numFiles": 4}')["count"]["value"] == 4

    def gone(name: str) -> bytes:
        raise KeyError(name)

    unreadable: list[Callable[[str], bytes] | None] = [
        None,
        gone,
        lambda _: b"\xff",
        lambda _: b"[" * 5000,
    ]
    for blob in unreadable:
        assert "count" not in one(records, blob=blob)


def test_output_is_what_reached_the_model_else_what_was_stored() -> None:
    sent = result(content=text("sent"), exec={"stdout": "ran"}, raw="stored")
    assert one([call(), sent])["output"]["member"] == "content"
    ran = result(exec={"stdout": "out", "stderr": "err"}, raw="stored")
    assert one([call(), ran])["output"] == {"text": "out\nerr", "truncated": False, "member": "exec"}
    both = result(exec={"output": "err\nout", "stdout": "out", "stderr": "err"})
    assert one([call(), both])["output"]["text"] == "err\nout"
    apart = result(exec={"output": "", "stdout": "out"})
    assert one([call(), apart])["output"]["text"] == "out"
    stored = result(raw={"toolUseResult": "Error", "block": {"type": "tool_result", "content": text("said")}})
    row = one([call(), stored])
    assert row["output"]["text"] == "said"
    assert "content" in row["notRecorded"]
    assert one([call(), result(raw={"stdout": "o"})])["output"]["text"] == "o"
    assert one([call(), result(raw={"n": [1]})])["output"]["text"] == '{"n":[1]}'
    assert "output" not in one([call(), result()])


def test_empty_content_is_content() -> None:
    row = one([call(), result(content=[])])
    assert row["output"] == {"text": "", "truncated": False, "member": "content"}
    assert "content" not in row["notRecorded"]


def test_parts_that_are_no_text_are_named() -> None:
    parts = [
        {"type": "image", "mimeType": "image/png", "blob": {"blob": "sha256:x", "size": 1234}},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "json", "value": {"a": 1}},
        {"type": "novel"},
    ]
    assert one([call(), result(content=parts)])["output"]["text"].split("\n") == [
        "[image/png, 1,234 bytes]",
        "[link x file:///x]",
        '{"a":1}',
        "[novel]",
    ]


def test_long_output_keeps_head_and_tail() -> None:
    body = "".join(f"{n:05}" for n in range(1000))
    output = one([call(), result(content=text(body))], limits=Limits(text=400))["output"]
    assert output["truncated"]
    assert body.startswith(output["text"])
    assert body.endswith(output["tail"])
    assert len(output["text"]) + output["omitted"] + len(output["tail"]) == len(body)


def test_a_source_that_cut_is_truncated() -> None:
    cut = result(content=text("x"), capture={"content": {"state": "truncated", "originalBytes": 9}})
    assert one([call(), cut])["output"]["truncated"]


def test_capture_states_feed_the_silences() -> None:
    row = one(
        [
            call(name=None, capture={"name": {"state": "absent"}}),
            result(capture={"content": {"state": "absent"}, "raw": {"state": "redacted"}}),
        ]
    )
    assert row["notRecorded"][:2] == ["name", "content"]
    assert row["redacted"] == ["raw"]


def test_cautions_stand_beside_their_value() -> None:
    row = one([call(), result(content=[], exec={"exitCode": -1})])
    assert row["remarks"] == [{"member": "exec.exitCode", "note": "not created"}]
    assert "remarks" not in one([call(), result(content=[], exec={"exitCode": 1})])


def test_changes_and_agents_fold_into_their_call() -> None:
    session = {"type": "session", "format": "callsheet/1", "roots": {"app": "/abs/app"}}
    change = {
        "type": "file_change",
        "scope": "call",
        "callId": "a",
        "state": "applied",
        "changes": [
            {
                "path": {"root": "app", "path": "x.py"},
                "change": "modify",
                "patch": {"format": "hunks", "value": [{"lines": ["-a"]}]},
            },
            {"path": {"root": "host", "path": "/etc/y"}},
        ],
    }
    agent = {"type": "subagent", "agentId": "g", "callId": "a", "stream": "s1", "status": "completed"}
    row = one([session, call(), change, agent, result()])
    assert row["changes"] == [
        {
            "path": "/abs/app/x.py",
            "kind": "modify",
            "patch": {"format": "hunks", "value": [{"lines": ["-a"]}]},
            "state": "applied",
        },
        {"path": "/etc/y", "kind": "unknown", "state": "applied"},
    ]
    assert row["agents"] == [{"agentId": "g", "stream": "s1", "status": "completed"}]


def test_changes_of_a_turn_or_of_a_repeated_id_stand_alone() -> None:
    change = {
        "type": "file_change",
        "scope": "turn",
        "changes": [{"path": {"root": "r", "path": "x"}, "change": "add"}],
    }
    assert one([change])["title"] == "r:x"
    rows = rows_of([call(), call(), {**change, "scope": "call", "callId": "a"}])
    assert [row["kind"] for row in rows] == ["command", "command", "file_change"]


def test_a_huge_patch_is_cut() -> None:
    hunks = [{"oldStart": 1, "lines": ["+" + "x" * 100] * 1000}]
    change = {
        "type": "file_change",
        "scope": "call",
        "callId": "a",
        "changes": [{"path": {"root": "r", "path": "x"}, "patch": {"format": "hunks", "value": hunks}}],
    }
    shown = one([call(), change], limits=Limits(patch=2000))["changes"][0]
    assert shown["truncated"]
    assert 1 < len(shown["patch"]["value"][0]["lines"]) < 30
    many = {**change, "changes": [{"path": {"root": "r", "path": str(n)}} for n in range(9)]}
    row = one([call(), many], limits=Limits(items=4))
    assert (len(row["changes"]), row["omittedChanges"]) == (4, 5)


def test_thoughts_are_drawn_when_they_are_summaries() -> None:
    thoughts: Records = [
        {"type": "reasoning", "form": "summary", "content": text("\n**Plan**\nmore"), "durationMs": 5},
        {"type": "reasoning", "content": text("who knows")},
        {"type": "reasoning", "form": "raw", "content": text("private")},
        {"type": "reasoning", "form": "summary", "content": text(" ")},
    ]
    sheet = sheet_of(thoughts)
    (row,) = sheet.rows()
    assert (row.kind, row.title, row.duration_ms) == ("thought", "**Plan**", 5)
    assert sum(sheet.hidden.values()) == 3
    assert [row["title"] for row in rows_of(thoughts, view=View(thoughts=True))] == [
        "**Plan**",
        "who knows",
        "private",
    ]


def test_the_audit_view_has_a_row_for_everything_but_hides_raw_reasoning() -> None:
    records: Records = [
        {"type": "session", "format": "callsheet/1", "nativeSessionId": "n"},
        {"type": "usage", "scope": "turn", "counts": [{"name": "input_tokens", "value": 1000}]},
        {"type": "unmapped", "nativeType": "mode", "value": {"x": 1}},
        {"type": "turn", "turnId": "t", "status": "completed"},
        {"type": "novelty"},
        {"type": "reasoning", "form": "raw", "content": text("private")},
    ]
    assert rows_of(records) == []
    rows = rows_of(records, view=View(audit=True))
    assert len(rows) == len(records)
    assert "private" not in json.dumps(rows)
    assert rows[1]["title"] == "usage of the turn: input_tokens 1,000"
    assert rows[2]["output"]["text"] == '{"x":1}'


def test_a_terminal_is_one_row_in_its_last_state() -> None:
    snapshots: Records = [
        {"type": "terminal", "terminalId": "t", "callId": "a", "command": "npm run dev", "status": "running"},
        {"type": "terminal", "terminalId": "t", "callId": "a", "command": "npm run dev", "status": "killed"},
    ]
    rows = rows_of([call(), *snapshots])
    assert [row["kind"] for row in rows] == ["command", "terminal"]
    assert (rows[1]["state"], rows[1]["parent"], rows[1]["notRecorded"]) == (
        "interrupted",
        "r0",
        ["exitCode"],
    )
    assert rows_of([call(), snapshots[0]])[1]["state"] == "unconfirmed"


def test_notices() -> None:
    session = {
        "type": "session",
        "format": "callsheet/1",
        "sources": [{"id": "s0", "kind": "k", "path": "/long/way/file.jsonl"}],
    }
    rows = rows_of(
        [
            session,
            {"type": "gap", "reason": "bad_json", "source": "s0", "line": 4, "bytes": 90},
            {"type": "compaction", "trigger": "auto", "summary": text("sum")},
            {"type": "turn", "turnId": "t", "status": "running"},
            {"type": "message", "author": "user", "content": text("hi")},
            {
                "type": "turn",
                "turnId": "t",
                "status": "failed",
                "error": {"message": "no"},
                "supersedes": "r3",
            },
        ]
    )
    assert [row["title"] for row in rows] == [
        "file.jsonl line 4 could not be read: bad_json (90 bytes)",
        "context compacted (auto)",
        "hi",
        "turn failed: no",
    ]
    assert [row["state"] for row in rows] == ["failed", "completed", "completed", "failed"]


def test_questions_show_options_and_answers_but_no_secret() -> None:
    asked = {
        "type": "input_request",
        "requestId": "q",
        "mode": "questions",
        "status": "answered",
        "questions": [
            {"id": "0", "text": "Which?", "options": [{"label": "A"}, {"label": "B", "value": "b"}]},
            {"id": "1", "text": "Token?", "secret": True},
        ],
        "answers": [{"questionId": "0", "selected": ["b", "C"]}],
    }
    row = one([asked])
    assert (row["kind"], row["state"], row["title"]) == ("request", "completed", "Which?")
    assert row["output"]["text"].split("\n") == [
        "? Which?",
        "  - A",
        "  * B",
        "  * C",
        "? Token?",
        "  (a secret: the answer is not kept)",
    ]


def test_hooks_and_plans() -> None:
    hook = {
        "type": "hook",
        "event": "pre_tool_use",
        "callId": "a",
        "command": "check",
        "status": "blocked",
        "exitCode": 2,
        "stderr": "no",
    }
    plan = {
        "type": "plan",
        "planId": "p",
        "entries": [{"text": "one", "status": "completed"}, {"text": "two"}],
    }
    rows = rows_of([call(), hook, plan])
    assert (rows[1]["kind"], rows[1]["state"], rows[1]["title"]) == (
        "hook",
        "declined",
        "pre_tool_use: check",
    )
    assert rows[2]["output"]["text"] == "[x] one\n- two"


def test_nested_calls_name_their_parent_row() -> None:
    rows = rows_of([call("a"), call("b", parentCallId="a"), call("c", parentCallId="gone")])
    assert [row.get("parent") for row in rows] == [None, "r0", None]


def test_a_preview_is_shown_for_a_call_that_never_got_a_result() -> None:
    preview = {"type": "preview", "callId": "a", "output": "so far"}
    assert one([call(), preview])["output"] == {"text": "so far", "truncated": True, "member": "preview"}
    assert one([call(), preview, result(content=[])])["output"]["member"] == "content"


def test_bad_lines_are_notices_and_cost_nothing_else() -> None:
    file = stream([call(), {"type": "tool_result", "linkage": 5}, result()])
    file.seek(0, 2)
    file.write(b"garbage\n\xff\n[1]\n{}\n")
    told: list[RecordError] = []
    sheet = Sheet(file, name="x.jsonl", on_bad=told.append)
    rows = list(sheet.rows())
    assert [row.kind for row in rows] == ["other", "notice", "notice", "notice", "notice"]
    assert rows[0].pairing == "paired"
    assert [error.line for error in told] == [2, 4, 5, 6]
    assert str(told[0]).startswith("x.jsonl:2: ")
    assert sheet.tally().bad_lines == 4


def test_a_byte_order_mark_does_not_shift_places() -> None:
    file = io.BytesIO(b"\xef\xbb\xbf" + stream([call(), result()]).getvalue().replace(b"\n", b"\r\n\r\n"))
    (row,) = Sheet(file).rows()
    assert row.state == "completed"


def test_every_record_type_has_a_reducer_and_every_kind_a_use() -> None:
    assert set(REDUCERS) == set(RECORDS)
    assert len(set(ROW_KINDS)) == 15


def test_a_row_can_be_made_again_while_the_stream_grows() -> None:
    pairing = Pairing()
    held: list[Record] = []
    context = Context(pairing=pairing, fetch=lambda number: held[number], open_turn=True, provisional=True)
    for record in (
        ToolCall(id="r0", call_id="a", call_id_source="native"),
        ToolResult(id="r1", call_id="a", linkage="exact", status="failed"),
    ):
        held.append(record)
        number = pairing.add(record)
        row = row_at(context, pairing.home(number, record))
        assert row is not None
        assert (row.row, row.state) == ("r0", "running" if number == 0 else "failed")


def test_an_unknown_agent_has_no_registry() -> None:
    session = {"type": "session", "format": "callsheet/1", "agent": {"name": "somebody"}}
    row = one([session, call(name="Shell", input={"command": "ls"}), result()], registry=None)
    assert (row["kind"], row["title"]) == ("other", "ls")
