"""What a row says beyond the call itself: its input, decisions, plans, processes, notices, places."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from callsheet.pairing import tally
from callsheet.registry import Caution, ContentRule, Harness, Never, Registry, Tool
from callsheet.rows import HIDDEN, Limits, Sheet, View

REGISTRY = Registry(
    harness=Harness(name="test-agent"),
    tool=[
        Tool(name="Bash", row="command", input="/command"),
        Tool(name="Edit", row="file_change", input="/file_path"),
        Tool(name="Ask", row="request", input="/questions/0/question"),
        Tool(name="Stop", row="other"),
        Tool(name="Todo", row="plan"),
    ],
    never=[
        Never(record="tool_result", member="exec.exitCode", tools=["Bash"]),
        Never(record="tool_result", member="durationMs", tools=["Bash"]),
        Never(record="terminal", member="exitCode", tools=["Bash"]),
    ],
    content=[ContentRule(tools=["*"], evidence="captures")],
    caution=[
        Caution(record="hook", member="exitCode", value=1, only={"event": "post_x"}, note="a success"),
        Caution(record="usage", member="counts", only={"scope": "inference"}, note="count it once"),
    ],
)


def call(call_id: str = "a", name: str | None = "Bash", **more: Any) -> dict[str, Any]:
    return {"type": "tool_call", "callId": call_id, "callIdSource": "native", "name": name, **more}


def result(call_id: str = "a", status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "callId": call_id, "linkage": "exact", "status": status, **more}


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


def sheet_of(records: Sequence[dict[str, Any]], **more: Any) -> Sheet:
    whole = [{"seq": number, "id": f"r{number}", **record} for number, record in enumerate(records)]
    file = io.BytesIO(b"".join(json.dumps(record).encode() + b"\n" for record in whole))
    return Sheet(file, registry=more.pop("registry", REGISTRY), **more)


def rows_of(records: Sequence[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    return [msgspec.json.decode(msgspec.json.encode(row)) for row in sheet_of(records, **more).rows()]


@pytest.mark.parametrize(
    ("record", "title", "pointer", "more"),
    [
        (call(input={"command": "ls"}), "ls", "/command", None),
        (call(input={"command": "ls", "timeout": 5}), "ls", "/command", ["/timeout"]),
        (call(input={"a/b~c": 1, "command": "ls"}), "ls", "/command", ["/a~1b~0c"]),
        (call(name="Ask", input={"questions": [{"question": "?"}]}), "?", "/questions/0/question", ["/questions"]),
        (call(name="New", input={"only": "text"}), "text", "/only", None),
        (call(name="New", input={"x": 1, "y": "text"}), "text", "/y", ["/x"]),
        (call(name="New", input={"one": "a", "two": "b"}), "New", None, ["/one", "/two"]),
        (call(name="New", input={"a": "x", "command": "ls"}, title="ls"), "ls", "/command", ["/a"]),
        (call(name="New", input={"command": "ls"}, title="List"), "List", None, ["/command"]),
        (call(name="New", input="all of it"), "all of it", "", None),
        (call(name="New", input=[1]), "New", None, [""]),
        (call(name="New", inputText="{broken"), "New", None, [""]),
        (call(name=None, inputText="{broken"), "{broken", "", None),
        (call(name="Stop", input={"task_id": "b1"}), "Stop", None, ["/task_id"]),
        (call(name="New", input={}), "New", None, None),
        (call(name="New"), "New", None, None),
    ],
)  # fmt: skip
def test_what_the_title_is_and_what_it_leaves(
    record: dict[str, Any], title: str, pointer: str | None, more: list[str] | None
) -> None:
    (row,) = rows_of([record])
    assert (row["title"], row.get("titleFrom"), row.get("moreInput")) == (title, pointer, more)


def test_what_a_patch_or_a_row_of_its_own_shows_is_not_more_input() -> None:
    edit = call(
        name="Edit", input={"file_path": "/x", "old_string": "a", "new_string": "b", "replace_all": True}
    )
    change = {
        "type": "file_change",
        "scope": "call",
        "callId": "a",
        "changes": [{"path": {"root": "host", "path": "/x"}, "patch": {"format": "hunks", "value": []}}],
    }
    assert rows_of([edit, change])[0]["moreInput"] == ["/replace_all"]
    assert rows_of([edit])[0]["moreInput"] == ["/old_string", "/new_string", "/replace_all"]
    todo = call(name="Todo", input={"todos": [1], "note": "n"})
    plan = {"type": "plan", "planId": "p", "callId": "a", "entries": []}
    assert rows_of([todo, plan])[0]["moreInput"] == ["/note"]
    assert rows_of([todo])[0]["moreInput"] == ["/todos", "/note"]


def test_a_list_of_pointers_is_bounded_and_a_large_input_still_has_one() -> None:
    many = {f"k{n}": n for n in range(50)}
    (row,) = rows_of([call(name="New", input=many)], limits=Limits(items=4))
    assert len(row["moreInput"]) == 4
    (row,) = rows_of([call(input={"command": "ls", "x": "y" * 500})], limits=Limits(input=100))
    assert row["moreInput"] == ["/x"]
    assert row["inputBytes"] > 500


def test_a_decision_carries_the_sources_own_words() -> None:
    said = {"decision": "accept", "source": "config", "reasonType": "mode", "extra": [1]}
    allowed = {"decision": "allow_once", "decidedBy": "policy"}
    answer = result(permission=allowed, _meta={"callsheet/decision": said})
    assert rows_of([call(), answer])[0]["permissions"] == [{**allowed, "said": said}]
    asked = {
        "type": "permission",
        "requestId": "p",
        "subject": {"callId": "a"},
        "decision": "reject_once",
        "_meta": {"callsheet/decision": said},
    }
    rows = rows_of([call(), asked])
    assert [row["permissions"] for row in rows] == [[{"decision": "reject_once", "said": said}]] * 2


@pytest.mark.parametrize("said", ["accept", None, 7, [], {}, {"x": "y" * 5000}])
def test_odd_or_large_words_of_a_decision_are_left_out(said: Any) -> None:
    answer = result(permission={"decision": "allow_once"}, _meta={"callsheet/decision": said})
    assert rows_of([call(), answer])[0]["permissions"] == [{"decision": "allow_once"}]


@pytest.mark.parametrize("status", ["denied", "cancelled"])
def test_a_call_that_did_not_run_lacks_no_exit_code(status: str) -> None:
    assert "notRecorded" not in rows_of([call(), result(status=status, content=[])])[0]
    assert "notRecorded" not in rows_of([call()])[0]
    assert rows_of([call(), result(content=[])])[0]["notRecorded"] == ["exec.exitCode", "durationMs"]
    assert rows_of([call(), result(status="interrupted", content=[])])[0]["notRecorded"]


def plans(*calls: str | None) -> list[dict[str, Any]]:
    """Revisions of one plan, each with one step more, by these calls."""
    found: list[dict[str, Any]] = [call(one, "Todo") for one in dict.fromkeys(calls) if one]
    for number, one in enumerate(calls):
        record: dict[str, Any] = {
            "type": "plan",
            "planId": "p",
            "entries": [{"text": f"{n}"} for n in range(number + 1)],
        }
        if one is not None:
            record["callId"] = one
        if number:
            record["supersedes"] = f"r{len(found) - 1}"
        found.append(record)
    return found


@pytest.mark.parametrize(
    ("calls", "shown"),
    [
        (("a", "b"), [("a", 1), ("b", 2)]),
        (("a", "a", "b"), [("a", 2), ("b", 3)]),
        (("a", "b", "b", "a"), [("a", 1), ("b", 3), ("a", 4)]),
        (("a", None, "b"), [("a", 1), (None, 2), ("b", 3)]),
        ((None, None), [(None, 2)]),
        ((None, "a"), [(None, 1), ("a", 2)]),
    ],
)
def test_a_plan_is_drawn_once_per_call_as_it_was_then(
    calls: tuple[str | None, ...], shown: list[tuple[str | None, int]]
) -> None:
    records = plans(*calls)
    rows = [
        row
        for row in rows_of(records)
        if row["row"] not in {f"r{n}" for n in range(len(set(calls) - {None}))}
    ]
    assert [(row.get("callId"), row["output"]["text"].count("\n") + 1) for row in rows] == shown
    assert len({row["row"] for row in rows}) == len(rows)
    named = {record["callId"]: f"r{n}" for n, record in enumerate(records) if record["type"] == "tool_call"}
    assert [row.get("parent") for row in rows] == [named.get(one or "") for one, _ in shown]
    whole = [row for row in rows_of(records) if row["kind"] == "plan" and "name" in row]
    assert all("moreInput" not in row for row in whole)


@pytest.mark.parametrize(
    ("members", "state", "status"),
    [
        ({"status": "exited"}, "unconfirmed", "exited"),
        ({"status": "exited", "native": {"extra": {"status": "failed"}}}, "failed", "failed"),
        ({"status": "exited", "native": {"extra": {"status": "completed"}}}, "completed", "completed"),
        ({"status": "exited", "native": {"extra": {"status": "gone"}}}, "unconfirmed", "gone"),
        ({"status": "exited", "native": {"extra": "failed"}}, "unconfirmed", "exited"),
        ({"status": "exited", "native": {"extra": {"status": 5}}}, "unconfirmed", "exited"),
        ({"status": "exited", "exitCode": 0}, "completed", "exited"),
        ({"status": "exited", "exitCode": 6}, "failed", "exited"),
        ({"status": "exited", "exitCode": 6, "native": {"extra": {"status": "completed"}}}, "completed", "completed"),
        ({"status": "stopped", "native": {"extra": {"status": "killed"}}}, "cancelled", "killed"),
        ({"status": "killed"}, "interrupted", "killed"),
        ({"status": "running"}, "unconfirmed", "running"),
        ({}, "unconfirmed", None),
    ],
)  # fmt: skip
def test_how_a_process_ended(members: dict[str, Any], state: str, status: str | None) -> None:
    row = rows_of([call(), {"type": "terminal", "terminalId": "t", "callId": "a", **members}])[1]
    assert (row["state"], row.get("status")) == (state, status)
    silent = members.get("status") in ("exited", "stopped", "killed", None) and "exitCode" not in members
    assert row.get("notRecorded") == (["exitCode"] if silent else None)


def test_exit_codes_of_processes_are_missed_only_where_the_source_has_none() -> None:
    ended = {"type": "terminal", "terminalId": "t", "callId": "a", "status": "killed"}
    assert "notRecorded" in rows_of([call(), ended])[1]
    assert "notRecorded" not in rows_of([call(name="Stop"), ended])[1]


def test_notices_of_the_harness() -> None:
    said: list[dict[str, Any]] = [
        {"type": "notice", "nativeType": "limit", "content": text("You are out of tokens")},
        {"type": "notice", "nativeType": "limit", "content": text("\nfirst\nsecond")},
        {"type": "notice", "nativeType": "block", "value": {"why": "x"}},
        {"type": "notice", "nativeType": "block"},
        {"type": "notice", "content": []},
    ]
    rows = rows_of(said)
    assert [(row["kind"], row["title"]) for row in rows] == [
        ("notice", "You are out of tokens"),
        ("notice", "first"),
        ("notice", 'block {"why":"x"}'),
        ("notice", "block"),
        ("notice", "notice"),
    ]
    assert "output" not in rows[0]
    assert rows[1]["output"]["text"] == "\nfirst\nsecond"


def test_messages_of_the_harness_are_left_out_and_counted_on_request() -> None:
    records = [
        {"type": "message", "author": author, "content": text(author)}
        for author in ("user", "harness", "hook", "harness", "system")
    ]
    sheet = sheet_of(records, view=View(harness=False))
    assert [row.title for row in sheet.rows()] == ["user", "hook", "system"]
    assert sheet.hidden == {"harness_messages": 2}
    assert set(sheet.hidden) <= set(HIDDEN)
    for view in (View(), View(harness=False, audit=True)):
        assert len(rows_of(records, view=view)) == 5


def test_places_in_the_sources() -> None:
    session = {
        "type": "session",
        "format": "callsheet/1",
        "sources": [{"id": "s0", "kind": "k", "path": "/long/way/file.jsonl"}],
    }
    ref = {"source": "s0", "line": 7, "role": "call"}
    row_ref = {"source": "s9", "table": "events", "key": {"seq": 3}, "role": "result"}
    answer = result(native={"refs": [row_ref, row_ref, {"source": "s0", "line": 9}]})
    rows = rows_of([session, call(native={"refs": [ref]}), answer])
    assert rows[0]["native"] == [
        {"source": "/long/way/file.jsonl", "line": 7, "role": "call"},
        {"source": "s9", "table": "events", "key": {"seq": 3}, "role": "result"},
        {"source": "/long/way/file.jsonl", "line": 9},
    ]
    many = call(native={"refs": [{"source": "s0", "line": n} for n in range(1, 99)]})
    assert len(rows_of([session, many], limits=Limits(places=5))[0]["native"]) == 5
    assert "native" not in rows_of([call()])[0]


def test_cautions_hold_only_where_they_are_true() -> None:
    hook = {"type": "hook", "event": "post_x", "exitCode": 1}
    assert rows_of([hook])[0]["remarks"] == [{"member": "exitCode", "note": "a success"}]
    assert "remarks" not in rows_of([{**hook, "event": "pre_x"}])[0]
    counts = [{"name": "tokens", "value": 3}]
    audit = View(audit=True)
    for scope, told in (("inference", True), ("session", False)):
        row = rows_of([{"type": "usage", "scope": scope, "counts": counts}], view=audit)[0]
        assert ("remarks" in row) is told


def test_what_shows_that_a_result_reached_the_model() -> None:
    proof = {"refs": [{"source": "s0", "role": "request"}]}
    records = [
        call("a"),
        result("a", content=text("x"), native=proof),
        call("b"),
        result("b", content=text("x")),
        call("c"),
        result("c", capture={"content": {"state": "absent", "reason": "why"}}, native=proof),
        call("d"),
        result("d", permission={"decision": "allow_once"}),
        call("e"),
        call("f"),
        result("f", status="cancelled", content=text("x")),
    ]
    rows = rows_of(records)
    assert [row.get("reachedModel") for row in rows] == [
        {"proof": "request"},
        {"proof": "captures"},
        {"reason": "why"},
        None,
        None,
        {"proof": "captures"},
    ]
    counts = sheet_of(records).tally()
    assert (counts.carried, counts.shown, counts.unshown, counts.undecided) == (1, 2, 2, 3)
    unknown = Registry(harness=Harness(name="x"))
    assert rows_of(records, registry=unknown)[1].get("reachedModel") is None


def test_a_request_without_decision_is_not_a_call_that_nobody_was_asked_about() -> None:
    asked = {"type": "permission", "requestId": "p", "subject": {"callId": "a"}}
    counts = tally(sheet_of([call(), asked, result()]).pairing)
    assert (counts.undecided, counts.unresolved) == (0, 1)


def test_revised_results_count_once() -> None:
    first = result(content=text("x"))
    counts = sheet_of([call(), first, {**result(), "supersedes": "r1"}]).tally()
    assert (counts.results, counts.shown, counts.unshown) == (1, 0, 1)
