"""Which call a result answers: duplicates, repeats, history logged again, forks, and any order of the lines.

Order is not causality (decision 1): what pairs is what the ids and links say, wherever the lines stand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.testing.desk import Files, read_session
from tests.native.claude_code.conftest import Made, Read, Run, Sheet
from tests.native.claude_code.test_hostile import read as read_bytes


def sheet_of(data: bytes, chunk: int = 1 << 18) -> Sheet:
    return Sheet(read_bytes(data, chunk))


def said(text: str) -> dict[str, Any]:
    return {"command": f"echo {text}"}


def thrice(made: Made, link: bool) -> Made:
    """One id on three calls; results come back as second, first, third."""
    uuids = {text: made.call("toolu_dup", input=said(text), message=f"msg_{text}")["uuid"] for text in ("first", "second")}
    for text in ("second", "first"):
        made.result("toolu_dup", text, sourceToolAssistantUUID=uuids[text] if link else None)
    third = made.call("toolu_dup", input=said("third"), message="msg_third")["uuid"]
    made.result("toolu_dup", "third", sourceToolAssistantUUID=third if link else None)
    made.said("Done.", message="msg_end")
    return made


def test_one_id_on_three_calls_with_links(made: Made, read: Read) -> None:
    sheet = read(thrice(made, link=True))
    assert sheet.pairs() == [("echo first", "first"), ("echo second", "second"), ("echo third", "third")]
    for call in sheet.of("tool_call"):
        assert call["callIdSource"] == "derived"
        assert call["native"]["callId"] == "toolu_dup"
        assert call["callId"].startswith("toolu_dup#")
    for result in sheet.of("tool_result"):
        assert (result["linkage"], result["nativeCallId"]) == ("derived", "toolu_dup")
        # The file does not say which of the three texts was sent.
        assert "content" not in result
        assert result["capture"]["content"]["reason"]


def test_one_id_on_three_calls_without_links(made: Made, read: Read) -> None:
    sheet = read(thrice(made, link=False))
    told = sheet.tally()
    assert (told.calls, told.dangling, told.results, told.ambiguous, told.paired) == (3, 3, 3, 3, 0)
    assert [call["callId"] for call in sheet.of("tool_call")] == ["toolu_dup"] * 3
    for result in sheet.of("tool_result"):
        assert (result["linkage"], result["nativeCallId"]) == ("ambiguous", "toolu_dup")
        assert "callId" not in result


def test_one_of_several_results_is_linked(made: Made, read: Read) -> None:
    """A link proves its own pair; what has none stays ambiguous."""
    first = made.call("toolu_dup", input=said("first"), message="m1")["uuid"]
    made.call("toolu_dup", input=said("second"), message="m2")
    made.result("toolu_dup", "one", sourceToolAssistantUUID=first)
    made.result("toolu_dup", "two", sourceToolAssistantUUID=None)
    sheet = read(made)
    assert dict(sheet.pairs())["echo first"] == "one"
    assert [result["linkage"] for result in sheet.of("tool_result")] == ["derived", "ambiguous"]


def test_a_link_that_leads_nowhere_proves_nothing(made: Made, read: Read) -> None:
    made.call("toolu_dup", input=said("first"), message="m1")
    made.call("toolu_dup", input=said("second"), message="m2")
    made.result("toolu_dup", "one", sourceToolAssistantUUID="00000000-0000-4000-8000-00000000ffff")
    assert read(made).tally().ambiguous == 1


def test_two_calls_of_one_id_in_one_record(made: Made, read: Read) -> None:
    """The link names the record, not the block: it cannot tell these two apart."""
    blocks = [{"type": "tool_use", "id": "toolu_dup", "name": "Bash", "input": said(text)} for text in "ab"]
    record = made.said(*blocks)
    made.result("toolu_dup", "a", sourceToolAssistantUUID=record["uuid"])
    told = read(made).tally()
    assert (told.calls, told.ambiguous, told.paired) == (2, 1, 0)


def test_calls_and_results_without_an_id(made: Made, read: Read) -> None:
    made.said({"type": "tool_use", "name": "Bash", "input": said("a")}, {"type": "tool_use", "id": 7, "name": "Bash", "input": said("b")})
    made.prompt([{"type": "tool_result", "content": "a"}, {"type": "tool_result", "tool_use_id": None, "content": "b"}])
    sheet = read(made)
    ids = [call["callId"] for call in sheet.of("tool_call")]
    assert len(set(ids)) == 2
    assert [call["callIdSource"] for call in sheet.of("tool_call")] == ["derived"] * 2
    told = sheet.tally()
    assert (told.calls, told.dangling, told.results, told.paired) == (2, 2, 2, 0)
    assert {result["linkage"] for result in sheet.of("tool_result")} == {"none"}


# -- one native record written twice (decision 2) ------------------------------------------------------------------


def test_a_record_written_twice_is_one_with_two_refs(made: Made, read: Read) -> None:
    made.prompt()
    made.call("toolu_a", input=said("a"))
    made.result("toolu_a", "a")
    made.lines += made.lines
    sheet = read(made)
    assert sheet.pairs() == [("echo a", "a")]
    assert [[ref["line"] for ref in record["native"]["refs"]] for record in sheet.records[1:]] == [[1, 4], [2, 5], [3, 6]]
    assert sheet.codes["repeated_line"] == 3


def test_a_record_id_with_other_content_is_another_record(made: Made, read: Read) -> None:
    made.call("toolu_a", input=said("a"))
    made.result("toolu_a", "a")
    made.lines.append(made.lines[0].replace(b"echo a", b"echo b"))
    told = read(made).tally()
    assert (told.calls, told.dangling, told.ambiguous) == (2, 2, 1)


def again(line: bytes, **members: Any) -> bytes:
    """A record logged again under a new record id."""
    return json.dumps({**json.loads(line), "uuid": "99999999-0000-4000-8000-00000000000" + str(len(members)), **members}).encode()


def test_history_logged_again_is_one(made: Made, read: Read) -> None:
    """Resumes of 2.1.9 to 2.1.19: new record ids, but equal message id, call id, time and content."""
    made.prompt()
    made.call("toolu_a", input=said("a"), message="msg_a")
    made.result("toolu_a", "a")
    old = list(made.lines)
    made.lines += [again(line, number=number) for number, line in enumerate(old)]
    made.said("Go on.", message="msg_b")
    sheet = read(made)
    assert sheet.pairs() == [("echo a", "a")]
    assert sheet.codes["repeated_line"] == 3


def test_a_record_logged_again_and_that_one_written_twice(made: Made, read: Read) -> None:
    made.call("toolu_a", input=said("a"), message="msg_a")
    logged = again(made.lines[0])
    made.lines += [logged, logged, made.lines[0]]
    sheet = read(made)
    (call,) = sheet.of("tool_call")
    assert sorted(ref["line"] for ref in call["native"]["refs"]) == [1, 2, 3, 4]
    assert sheet.codes["repeated_line"] == 3


def test_a_call_with_another_time_is_another_call(made: Made, read: Read) -> None:
    made.call("toolu_a", input=said("a"), message="msg_a")
    made.lines.append(again(made.lines[0], timestamp="2026-11-30T11:11:11.111Z"))
    assert read(made).tally().calls == 2


def test_public_history_logged_again(shared: Path) -> None:
    """A real 2.1.9 to 2.1.11 session: 53 call blocks, 8 ids of them twice, all of them history logged again."""
    (path,) = (shared / "corpus" / "claude").rglob("e20e5289-fb24-49ff-aa03-1f45ee736a8e.jsonl")
    files = Files({str(path): path.read_bytes()})
    (session,) = CLAUDE_CODE.sessions(str(path), files)
    sheet = Sheet(read_session(CLAUDE_CODE, session, files))
    told = sheet.tally()
    assert (told.calls, told.paired, told.results, told.ambiguous) == (45, 45, 45, 0)
    uuids: list[str] = []
    for line in path.read_bytes().splitlines():
        uuids.append(json.loads(line).get("uuid"))
    repeats = [told.line for told in sheet.reading.diagnostics if told.code == "repeated_line"]
    assert len(repeats) == len(set(repeats)) > 8


# -- forks and resumes (decision 13) -------------------------------------------------------------------------------


def test_a_fork_marks_what_it_copied(shared: Path) -> None:
    """Of a captured fork: exactly the records whose ids stand in the other session's file are inherited."""
    run = Run(shared / "captures/claude-code/2.1.332/resume_fork/plain")
    ids: dict[str, dict[int, str]] = {}
    for path in (run.folder / "projects").rglob("*.jsonl"):
        lines = path.read_bytes().splitlines()
        ids[path.stem] = {number: record["uuid"] for number, record in enumerate(map(json.loads, lines), 1) if "uuid" in record}
    sheets = {sheet.main: sheet for sheet in run.sheets()}
    (fork,) = [sheet for sheet in sheets.values() if sheet.records[0].get("forkedFrom")]
    parent = fork.records[0]["forkedFrom"]
    assert set(sheets) == {parent, fork.main}
    copied = {line for line, uuid in ids[fork.main].items() if uuid in ids[parent].values()}
    marked = {
        record["native"]["refs"][0]["line"]
        for record in fork.records[1:]
        if record["native"].get("inherited", {}).get("session") == parent
    }
    assert marked == copied
    assert all("inherited" not in record["native"] for record in sheets[parent].records[1:])


def test_lines_of_another_session_are_inherited(made: Made, read: Read) -> None:
    """Resumes of 1.0.x copied the earlier session's lines with their session id."""
    made.call("toolu_a", input=said("a"), sessionId="0dd5e551-0000-4000-8000-000000000009")
    made.call("toolu_b", input=said("b"))
    first, second = read(made).of("tool_call")
    assert first["native"]["inherited"] == {"session": "0dd5e551-0000-4000-8000-000000000009"}
    assert "inherited" not in second["native"]


# -- commands of a person ------------------------------------------------------------------------------------------


def test_commands_of_a_person_are_linked_by_parent(made: Made, read: Read) -> None:
    first = made.prompt("<bash-input>ls</bash-input>")
    second = made.prompt("<bash-input>pwd</bash-input>")
    made.prompt("<bash-stdout>/home</bash-stdout><bash-stderr>oh</bash-stderr>", parentUuid=second["uuid"])
    made.prompt("<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>", parentUuid=first["uuid"])
    made.prompt("<bash-stdout>lost</bash-stdout><bash-stderr></bash-stderr>", parentUuid="nowhere")
    sheet = read(made)
    calls = sheet.of("tool_call")
    assert [(call["requestedBy"], call["callIdSource"], "name" in call) for call in calls] == [("user", "derived", False)] * 2
    assert [call["capture"]["name"]["state"] for call in calls] == ["absent"] * 2
    results = sheet.of("tool_result")
    assert [result.get("callId") for result in results] == [calls[1]["callId"], calls[0]["callId"], None]
    assert [result["linkage"] for result in results] == ["derived", "derived", "none"]
    assert {result["status"] for result in results} == {"unknown"}
    assert (results[0]["exec"]["stdout"], results[0]["exec"]["stderr"]) == ("/home", "oh")
    assert all("exitCode" not in result.get("exec", {}) for result in results)


def test_captured_commands_of_a_person(shared: Path) -> None:
    run = Run(next((shared / "captures/claude-code").glob("*/tui_bang/*/projects")).parent)
    (sheet,) = run.sheets()
    asked = [call for call in sheet.of("tool_call") if call.get("requestedBy") == "user"]
    assert asked
    told = sheet.tally()
    assert told.paired == told.calls


# -- any order -----------------------------------------------------------------------------------------------------


@st.composite
def talks(draw: st.DrawFn) -> tuple[list[bytes], list[tuple[str, str | None]]]:
    """Lines of a session in any order, and the pairs that its ids and links say."""
    made = Made()
    pairs: list[tuple[str, str | None]] = []
    for number in range(draw(st.integers(1, 5))):
        call_id = draw(st.sampled_from(["toolu_dup", f"toolu_{number}"]))
        record = made.call(call_id, input=said(str(number)), message=f"msg_{number}")
        answered = draw(st.booleans())
        if answered:
            made.result(call_id, f"out {number}", sourceToolAssistantUUID=record["uuid"])
        pairs.append((f"echo {number}", f"out {number}" if answered else None))
    lines = made.lines + draw(st.lists(st.sampled_from(made.lines), max_size=2))
    return draw(st.permutations(lines)), pairs


@settings(max_examples=120, deadline=None)
@given(talks(), st.integers(1, 2000))
def test_any_order_of_the_lines_pairs_the_same(talk: tuple[list[bytes], list[tuple[str, str | None]]], chunk: int) -> None:
    lines, pairs = talk
    data = b"".join(line + b"\n" for line in lines)
    sheet = sheet_of(data, chunk)
    assert sorted(sheet.pairs()) == sorted(pairs)
    assert (sheet.tally().orphan, sheet.tally().ambiguous) == (0, 0)


def test_results_before_their_calls_in_public_files(shared: Path) -> None:
    """2.1.161 to 2.1.177 wrote results of fast tools before their calls."""
    root = shared / "corpus"
    found = 0
    for line in (root / "index.jsonl").read_bytes().splitlines():
        entry = json.loads(line)
        if entry["harness"] == "claude" and entry["pairing"]["result_before_call"]:
            path = root / entry["file"]
            files = Files({str(path): path.read_bytes()})
            (session,) = CLAUDE_CODE.sessions(str(path), files)
            sheet = Sheet(read_session(CLAUDE_CODE, session, files))
            seqs = {call["callId"]: call["seq"] for call in sheet.of("tool_call")}
            early = [result for result in sheet.of("tool_result") if result["seq"] < seqs[result["callId"]]]
            assert len(early) == entry["pairing"]["result_before_call"]
            assert sheet.tally().orphan == 0
            assert sheet.tally().paired == entry["pairing"]["calls"]
            found += 1
    assert found > 1


def test_very_many_records_with_one_id(made: Made) -> None:
    """A redactor that destroyed every id: nothing is guessed, nothing is lost, and it takes linear time."""
    count = 15_000
    for number in range(count):
        made.call("REDACTED", input=said(str(number)), message=f"m{number}", uuid="REDACTED")
    for number in range(count):
        made.result("REDACTED", str(number), sourceToolAssistantUUID="REDACTED", uuid="REDACTED")
    sheet = Sheet(read_bytes(made.data))
    assert len(sheet.of("tool_call")) == len(sheet.of("tool_result")) == count
    assert {result["linkage"] for result in sheet.of("tool_result")} == {"ambiguous"}
