"""What both readings tell, what one lacks, what contradicts; and what is only another form."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compare.conftest import Held, Json, call, result

from callsheet.compare import Compared

SESSION = {
    "type": "session",
    "format": "callsheet/1",
    "agent": {"name": "a", "version": "1"},
    "roots": {"app": "/w/app"},
}


def one(held: Held, left: list[Json], right: list[Json], **more: Any) -> Compared:
    (found,) = held([SESSION, call("Bash"), *left], [SESSION, call("Bash"), *right], **more)
    return found


def parts(*texts: str) -> list[Json]:
    return [{"type": "text", "text": text} for text in texts]


def permission(**members: Any) -> Json:
    return {"type": "permission", "requestId": "p", "subject": {"callId": "toolu_1"}, **members}


ALIKE: list[tuple[list[Json], list[Json]]] = [
    ([result(content=parts("a", "b"))], [result(content=parts("a\nb"))]),
    (
        [result(exec={"cwd": {"root": "app", "path": "src"}})],
        [result(exec={"cwd": {"root": "host", "path": "/w/app/src"}})],
    ),
    ([result(exec={"command": "ls -l 'a b'"})], [result(exec={"command": ["ls", "-l", "a b"]})]),
    ([result(durationMs=479)], [result(durationMs=479.4)]),
    ([result(startedAt="2026-11-30T10:00:00Z")], [result(startedAt="2026-11-30T10:00:00.0004Z")]),
    (
        [result(permission={"decision": "allow_once", "decidedBy": "policy"})],
        [result(), permission(decision="allow_once", decidedBy="policy")],
    ),
    (
        [result(), {"type": "file_change", "scope": "call", "callId": "toolu_1", "state": "applied"}],
        [result(), {"type": "file_change", "scope": "call", "callId": "toolu_1", "state": "applied"}],
    ),
]


@pytest.mark.parametrize(("left", "right"), ALIKE)
def test_another_way_of_writing_it_is_no_difference(left: list[Json], right: list[Json], held: Held) -> None:
    found = one(held, left, right)
    assert (found.lacks, found.contradicts, found.forms) == ([], [], [])
    assert found.agree > 1


def test_arguments_are_the_same_as_text_and_as_json(held: Held) -> None:
    (found,) = held([call("a", input={"x": [1, 2]})], [call("a", inputText='{ "x": [1, 2] }')])
    assert (found.agree, found.lacks, found.contradicts) == (2, [], [])


def test_a_provider_is_the_call_s_or_its_result_s(held: Held) -> None:
    provider = {"kind": "mcp", "server": "notes", "tool": "read", "identity": "exact"}
    (found,) = held([call("a", provider=provider), result()], [call("a"), result(provider=provider)])
    assert (found.lacks, found.contradicts) == ([], [])
    assert found.agree == 6


LACKS: list[tuple[list[Json], list[Json], str]] = [
    ([result(content=parts("x"))], [result()], "result.content"),
    ([result()], [], "result.status"),
    ([result()], [result(status="unknown")], "result.status"),
    ([result(exec={"exitCode": 0})], [result(exec={})], "result.exec.exitCode"),
    ([result(raw={"a": 1, "b": 2})], [result(raw={"a": 1, "b": None})], "result.raw.b"),
    ([result(), permission(title="Run?", options=[])], [result(), permission()], "request.title"),
    (
        [result(), {"type": "terminal", "terminalId": "t", "callId": "toolu_1", "status": "exited"}],
        [result(), {"type": "terminal", "terminalId": "t", "callId": "toolu_1", "status": "running"}],
        "terminal.t.status",
    ),
    (
        [result(), *[{"type": "hook", "event": "stop", "callId": "toolu_1"}] * 2],
        [result(), {"type": "hook", "event": "stop", "callId": "toolu_1"}],
        "hook.stop",
    ),
]


@pytest.mark.parametrize(("left", "right", "path"), LACKS, ids=[path for *_, path in LACKS])
def test_what_one_reading_lacks(left: list[Json], right: list[Json], path: str, held: Held) -> None:
    found = one(held, left, right)
    assert path in [lack.path for lack in found.lacks if lack.by == "right"]
    assert found.contradicts == []
    back = one(held, right, left)
    assert path in [lack.path for lack in back.lacks if lack.by == "left"]


def test_a_part_is_not_the_whole(held: Held) -> None:
    cut = result(exec={"output": "abc"}, capture={"exec.output": {"state": "truncated"}})
    found = one(held, [result(exec={"output": "abcdef"})], [cut])
    (lack,) = found.lacks
    assert (lack.path, lack.by, lack.value, lack.part) == ("result.exec.output", "right", "abcdef", True)


CONTRADICTS: list[tuple[list[Json], list[Json], str]] = [
    ([result()], [result(status="failed")], "result.status"),
    ([result(status="failed")], [result(status="denied")], "result.status"),
    (
        [result(status="completed"), permission(decision="reject_once")],
        [result(status="denied", permission={"decision": "reject_once"})],
        "result.status",
    ),
    ([result(content=parts("x"))], [result(content=parts("y"))], "result.content"),
    ([result(exec={"exitCode": 0})], [result(exec={"exitCode": 1})], "result.exec.exitCode"),
    ([result(exec={"processId": "1"})], [result(exec={"processId": 1})], "result.exec.processId"),
    ([result(durationMs=5)], [result(durationMs=7)], "result.durationMs"),
    (
        [result(startedAt="2026-11-30T10:00:00Z")],
        [result(startedAt="2026-11-30T10:00:01Z")],
        "result.startedAt",
    ),
    (
        [result(permission={"decision": "allow_once"})],
        [result(), permission(decision="reject_once")],
        "decision.decision",
    ),
    ([result(raw={"r": {"x": 1}})], [result(raw={"r": {"x": 2}})], "result.raw.r.x"),
]


@pytest.mark.parametrize(("left", "right", "path"), CONTRADICTS, ids=[path for *_, path in CONTRADICTS])
def test_what_contradicts(left: list[Json], right: list[Json], path: str, held: Held) -> None:
    assert [told.path for told in one(held, left, right).contradicts] == [path]


def test_values_of_what_contradicts_are_told_in_short(held: Held) -> None:
    found = one(held, [result(content=parts("x" * 9000))], [result(content=parts("y"))])
    (told,) = found.contradicts
    assert len(told.left) == 201
    assert told.right == '["y"]'


def change(patch: Any, **members: Any) -> list[Json]:
    changes = [{"path": {"root": "app", "path": "a"}, "change": "modify", "patch": patch}]
    record = {"type": "file_change", "scope": "call", "callId": "toolu_1", "changes": changes, **members}
    return [result(), record]


FORMS: list[tuple[list[Json], list[Json], str]] = [
    (
        change({"format": "unified", "value": "@@ -1 +1 @@"}),
        change({"format": "hunks", "value": []}),
        "changes./w/app/a.patch",
    ),
    (
        change({"format": "unified", "value": "@@ -1 +1 @@\n-a\n+b"}),
        change({"format": "unified", "value": "@@ -1 +1 @@\n-a\n+b\n\nMoved to: c"}),
        "changes./w/app/a.patch",
    ),
    ([result(content=parts("a\n"))], [result(content=parts("a"))], "result.content"),
    (
        [result(displayContent=parts("a"))],
        [result(displayContent=parts("b"))],
        "result.displayContent",
    ),
    (
        [result(startedAt="2026-11-30T10:00:00Z"), permission(status="resolved", decision="allow_once")],
        [result(startedAt="2026-11-30T10:00:09Z")],
        "result.startedAt",
    ),
    (
        [result(exec={"command": "echo one; exit 3"})],
        [result(exec={"command": ["/bin/bash", "-lc", "echo one; exit 3"]})],
        "result.exec.command",
    ),
    (
        [result(status="failed"), permission(decision="reject_once")],
        [result(status="denied", permission={"decision": "reject_once"})],
        "result.status",
    ),
]


@pytest.mark.parametrize(("left", "right", "path"), FORMS)
def test_another_form_is_no_contradiction(left: list[Json], right: list[Json], path: str, held: Held) -> None:
    found = one(held, left, right)
    assert (found.forms, found.contradicts) == ([path], [])


def test_patches_of_one_format_that_differ_contradict(held: Held) -> None:
    found = one(
        held,
        change({"format": "unified", "value": "-a"}),
        change({"format": "unified", "value": "-b"}),
    )
    assert [told.path for told in found.contradicts] == ["changes./w/app/a.patch"]


def test_what_an_item_tells_is_not_what_the_model_wrote(held: Held) -> None:
    (found,) = held([call(None, input={"command": "bash -lc ls"})], [call("exec", input={"cmd": "ls"})])
    assert (found.forms, found.contradicts) == (["call.input"], [])
    (found,) = held([call("a", input={"x": 1})], [call("a", input={"x": 2})])
    assert [told.path for told in found.contradicts] == ["call.input"]


def test_arguments_that_an_agent_words_by_itself_are_not_the_model_s(held: Held) -> None:
    shown = {
        "type": "session",
        "format": "callsheet/1",
        "agent": {"name": "@agentclientprotocol/codex-acp", "version": "2.6.0"},
        "sources": [{"id": "s0", "kind": "acp", "path": "log.jsonl"}],
    }
    by_agent, by_model = call("exec", input={"command": "ls"}), call("exec", input={"cmd": "ls"})
    (found,) = held([shown, by_agent], [by_model])
    assert (found.forms, found.contradicts) == (["call.input"], [])
    other = {**shown, "agent": {"name": "@agentclientprotocol/claude-agent-acp", "version": "0.101.0"}}
    (found,) = held([other, by_agent], [by_model])
    assert [told.path for told in found.contradicts] == ["call.input"]


def test_another_command_is_none_in_a_shell(held: Held) -> None:
    bare, other = result(exec={"command": "ls -l"}), result(exec={"command": ["bash", "-lc", "ls -a"]})
    assert [told.path for told in one(held, [bare], [other]).contradicts] == ["result.exec.command"]
    script = result(exec={"command": ["bash", "-x", "ls -l"]})
    assert [told.path for told in one(held, [bare], [script]).contradicts] == ["result.exec.command"]


def test_a_text_in_a_blob_is_read(held: Held) -> None:
    name = f"sha256:{'0' * 64}"
    kept = {"state": "external", "blob": {"blob": name, "size": 3}}
    there = result(exec={"output": "ab…"}, capture={"exec.output": kept})
    blobs = {name: b"abc"}
    assert one(held, [there], [result(exec={"output": "abc"})], blobs=blobs).contradicts == []
    assert one(held, [there], [result(exec={"output": "abd"})], blobs=blobs).contradicts != []


def test_parents_are_compared_by_their_native_ids(held: Held) -> None:
    left = [call("cell", "c"), call("x", "d", parentCallId="c")]
    right = [
        call("cell", "c#1", callIdSource="derived", native={"callId": "c"}),
        call("x", "d", parentCallId="c#1"),
    ]
    assert [told.contradicts for told in held(left, right)] == [[], []]


def test_answers_are_compared_by_their_questions(held: Held) -> None:
    def asked(name: str, answer: str) -> Json:
        return {
            "type": "input_request",
            "requestId": "q",
            "callId": "toolu_1",
            "mode": "questions",
            "questions": [{"id": name, "text": "Which?"}],
            "answers": [{"questionId": name, "selected": [answer]}],
        }

    assert one(held, [asked("0", "a")], [asked("q_1", "a")]).contradicts == []
    (told,) = one(held, [asked("0", "a")], [asked("q_1", "b")]).contradicts
    assert told.path == "question.Which?.answer"


DEEP: Any = 1
for _ in range(900):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "odd",
    [None, True, -1, 1e300, "\ud800", [], {}, [None], {"": {}}, DEEP],
    ids=lambda value: str(value)[:8].encode("ascii", "replace").decode(),
)
def test_odd_values_cost_nothing(odd: Any, held: Held) -> None:
    members = ("raw", "content", "exec", "error", "permission", "provider", "capture", "native", "_meta")
    for member in members:
        held([call("a"), result(**{member: odd})], [call("a"), result(raw={"x": odd})])
    for member in ("input", "inputText", "name", "provider", "locations", "parentCallId"):
        record = {**call("a"), member: odd}
        held([record, result(raw=odd)], [call("a"), result(raw=odd)])
