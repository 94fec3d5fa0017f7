"""Chats with parts that no reader keeps: each is kept exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.native.gemini.test_chats import HEAD, call, message, response
from tests.native.held import held


def test_members_that_stand_twice(tmp_path: Path) -> None:
    """One reader sees the first of them, another the last: the whole text goes to a blob (ASR-035)."""
    chat = {**HEAD, "messages": [message("gemini", toolCalls=[call("c1")])]}
    text = json.dumps(chat, indent=2)
    assert '"output": "hi"' in text
    text = text.replace('"output": "hi"', '"output": "hi", "output": "hi"')
    path = tmp_path / "session-1.json"
    path.write_text(text)
    found = held(path, tmp_path / "out", "gemini")
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["capture"]["raw"]["state"] == "external"
    blob = result["capture"]["raw"]["blob"]["blob"].removeprefix("sha256:")
    (kept_at,) = (tmp_path / "out").glob(f"*/blobs/sha256/{blob[:2]}/{blob[2:]}")
    assert kept_at.read_text().count('"output"') == 2


def test_an_entry_without_content_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    bare = {"id": "m1", "type": "user"}
    chat = {**HEAD, "type": "gemini", "messages": [message("user", content="Hi."), bare]}
    path.write_text(json.dumps(chat))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["author"] for one in found if one["type"] == "message"] == ["user"]


def test_an_entry_of_a_document_that_nothing_maps_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    odd = [{"id": "m1", "content": "No type."}, "words", 5, {"id": "m2", "type": "later", "content": "Hm."}, {}]
    chat = {**HEAD, "messages": [message("user", content="Hi."), *odd, message("gemini", content="Ho.")]}
    path.write_text(json.dumps(chat))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["author"] for one in found if one["type"] == "message"] == ["user", "model"]
    kept = [one for one in found if one["type"] == "unmapped"]
    assert [one["value"] for one in kept] == odd
    assert [one["nativeType"] for one in kept] == ["entry", "entry", "entry", "later", "entry"]
    assert [one["native"]["refs"][0]["pointer"] for one in kept] == [f"/messages/{at}" for at in range(1, 6)]


def test_messages_that_are_no_list_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps({**HEAD, "messages": {"a": 1}}))
    kept = [one for one in held(path, tmp_path / "out", "gemini") if one["type"] == "unmapped"]
    assert [one["value"] for one in kept] == [{"a": 1}]


def test_what_nothing_maps_is_kept_once_however_often_it_is_logged(tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    again = {"$set": {"messages": [message("user", content="Hi."), {"id": "m9", "type": "later"}]}}
    path.write_text("".join(f"{json.dumps(one)}\n" for one in (HEAD, again, again, {**again, "more": 1})))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["value"] for one in found if one.get("nativeType") == "later"] == [{"id": "m9", "type": "later"}]


@pytest.mark.parametrize("first", [b'{"se', b"{", b'{"sessionId":"x","proj\xff', b"["])
def test_a_torn_first_line_costs_no_other(first: bytes, tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    lines = [HEAD, message("user", content="Hi."), message("gemini", "m2", toolCalls=[call("c1")])]
    path.write_bytes(first + b"\n" + b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["type"] for one in found if one["type"] in ("gap", "tool_call")] == ["gap", "tool_call"]


def test_a_document_with_a_message_a_line_is_one(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    messages = [message("user", content="Hi."), message("gemini", "m2", toolCalls=[call("c1")])]
    lines = ",\n  ".join(json.dumps(one) for one in messages)
    path.write_text(f'{json.dumps(HEAD)[:-1]},\n "messages": [\n  {lines}\n]}}\n')
    found = held(path, tmp_path / "out", "gemini")
    assert [one["type"] for one in found if one["type"] in ("gap", "tool_call")] == ["tool_call"]


def test_a_first_line_that_is_longer_than_any_head_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    long = {"$set": {"messages": [message("user", content="Hi. " * 50_000)]}}
    lines = [long, HEAD, message("gemini", "m2", toolCalls=[call("c1")])]
    path.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["type"] for one in found if one["type"] in ("gap", "tool_call")] == ["tool_call"]


def test_times_that_are_none_and_responses_that_hold_none(tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    odd = message("gemini", "m2", toolCalls=[call("c1", timestamp="soon")], thoughts=[{"subject": "a", "timestamp": ""}])
    alone = message("user", "m3", content=[{"functionResponse": {"id": "c9", "name": "x"}}])
    lines = [HEAD, odd, alone, message("gemini", "m4", content="Done.")]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    found = held(path, tmp_path / "out", "gemini")
    results = {one["callId"]: one for one in found if one["type"] == "tool_result"}
    assert "ts" not in results["c1"]
    assert results["c9"]["capture"]["content"]["state"] == "absent"


def test_messages_that_are_one_message_are_kept_by_its_type(tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    lines = [HEAD, {"$set": {"messages": message("user", content="Hi.")}}]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    kept = [one for one in held(path, tmp_path / "out", "gemini") if one["type"] == "unmapped"]
    assert [(one["nativeType"], one["ts"]) for one in kept][-1:] == [("user", "2026-11-30T10:00:01.000Z")]


@pytest.mark.parametrize("blank", [" ", "\t", " \r"])
def test_blanks_around_a_line(blank: str, tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    lines = [HEAD, message("user", "u1", content="Hi."), message("gemini", "m2", toolCalls=[call("c1")])]
    path.write_text("".join(f"{blank}{json.dumps(one)}{blank}\n" for one in lines))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["type"] for one in found if one["type"] in ("message", "tool_call")] == ["message", "tool_call"]


@pytest.mark.parametrize("torn", ["{}", '{"se', "}", '{"id":"m1","type":"gemini","to'])
@pytest.mark.parametrize("replies", [False, True])
def test_a_torn_line_that_holds_a_whole_message(torn: str, replies: bool, tmp_path: Path) -> None:
    """What it tells is no news when a later line tells it again, and its calls have their answers."""
    path = tmp_path / "session-1.jsonl"
    asked, done = message("gemini", "m1", toolCalls=[call("c1")]), message("gemini", "m2", content="Done.")
    lines = [HEAD, asked, response("c1", output="hi"), *([done] if replies else [])]
    for copied in (asked, done):
        path.write_text(torn + "".join(f"{json.dumps(one)}\n" for one in (copied, *lines)))
        found = held(path, tmp_path / f"out-{copied['id']}", "gemini")
        (result,) = (one for one in found if one["type"] == "tool_result")
        assert ("content" in result) is (replies and copied is asked)


@pytest.mark.parametrize("blanks", [" \n\n", "\n", "\r\n", "\t"])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_behind_blank_lines(indent: int | None, blanks: str, tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    chat = {**HEAD, "messages": [message("gemini", toolCalls=[call("c1"), call("c1", args={})])]}
    path.write_bytes(f"{blanks}{json.dumps(chat, indent=indent)}\n".encode())
    found = held(path, tmp_path / "out", "gemini")
    assert [one["callId"] for one in found if one["type"] == "tool_call"] == ["c1#m1/0", "c1#m1/1"]


def test_a_call_of_which_nothing_is_told_is_a_call(tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    lines = [HEAD, message("gemini", toolCalls=[call("c1"), {}, False])]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["callId"] for one in found if one["type"] == "tool_call"] == ["c1", "#m1/1"]


@pytest.mark.parametrize("name", ["c1", "gone"])
def test_a_response_without_words_is_what_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    asked, done = message("gemini", toolCalls=[call("c1")]), message("gemini", "m2", content="Done.")
    path.write_text("".join(f"{json.dumps(one)}\n" for one in (HEAD, asked, response(name, output=""), done)))
    results = [one for one in held(path, tmp_path / "out", "gemini") if one["type"] == "tool_result"]
    (content,) = (one["content"] for one in results if one["callId"] == name)
    assert content == [{"type": "json", "value": {"output": ""}}]


def test_a_broken_document_is_a_gap_as_a_whole(tmp_path: Path) -> None:
    """Whatever whole messages stand on its lines."""
    path = tmp_path / "session-1.json"
    messages = [message("user", content="Hi."), message("gemini", "m2", toolCalls=[call("c1")])]
    lines = ",\n  ".join(json.dumps(one) for one in messages)
    path.write_text(f'{json.dumps(HEAD)[:-1]},\n "messages": [\n  {lines}\n]')
    found = held(path, tmp_path / "out", "gemini")
    assert [one["type"] for one in found] == ["session", "gap"]


@pytest.mark.parametrize("name", ["m2", None])
def test_a_call_that_is_copied_into_another_message_is_one_call(name: str | None, tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    other = {**message("gemini", content="Hm.", toolCalls=[call("c1"), call("c2")]), "id": name}
    lines = [HEAD, message("gemini", toolCalls=[call("c1")]), other]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    found = held(path, tmp_path / "out", "gemini")
    assert [one["callId"] for one in found if one["type"] == "tool_call"] == ["c1", "c2"]


@pytest.mark.parametrize("torn", [False, True])
def test_a_message_that_makes_a_call_is_no_reply_to_it(torn: bool, tmp_path: Path) -> None:
    """A response may stand before the call that it answers."""
    path = tmp_path / "session-1.jsonl"
    asked = json.dumps(message("gemini", content="Hm.", toolCalls=[call("c1")]))
    lines = [json.dumps(HEAD), json.dumps(response("c1", output="hi")), asked]
    path.write_text("".join(f"{one}\n" for one in ([asked[:-9]] if torn else []) + lines))
    (result,) = (one for one in held(path, tmp_path / "out", "gemini") if one["type"] == "tool_result")
    assert "content" not in result
