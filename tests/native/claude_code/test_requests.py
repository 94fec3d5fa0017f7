"""Which results a recorded request carried: captures of real agents, made-up records, hostile ones."""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.harness.claude_code import claims, runs
from callsheet.harness.claude_code.deliveries import Delivery
from callsheet.harness.claude_code.requests import RequestEvidence
from callsheet.harness.claude_code.sent_block import canonical, cut, uncached

VERSION = "2.1.332"


def native_hash(message: Any) -> str:
    """The hash as the standard library makes it: an implementation of its own."""
    text = json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def tool_result(call_id: str, content: Any) -> dict[str, Any]:
    return {"tool_use_id": call_id, "type": "tool_result", "content": content, "is_error": False}


def reminder(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>"


class Session:
    """A made-up session file."""

    def __init__(self, version: str = VERSION) -> None:
        self.version = version
        self.lines: list[bytes] = []
        self.offsets: list[int] = []
        self.seconds = 0
        self.requests = 0

    def add(self, record: Any, *, stamp: str | None = None) -> int:
        """Appends a record, with a time a second later than the last; gives its index."""
        if isinstance(record, dict) and "timestamp" not in record:
            self.seconds += 1
            stamp = stamp or f"2026-11-30T10:{self.seconds // 60:02}:{self.seconds % 60:02}.000Z"
            record = {**record, "timestamp": stamp, "version": self.version}
        data = record if isinstance(record, bytes) else json.dumps(record, ensure_ascii=True).encode()
        self.offsets.append(self.offsets[-1] + len(self.lines[-1]) + 1 if self.lines else 0)
        self.lines.append(data)
        return len(self.lines) - 1

    def user(self, *blocks: dict[str, Any] | str, stamp: str | None = None) -> int:
        content = blocks[0] if isinstance(blocks[0], str) else list(blocks)
        return self.add({"type": "user", "message": {"role": "user", "content": content}}, stamp=stamp)

    def result(self, call_id: str, content: Any, stamp: str | None = None) -> int:
        return self.user(tool_result(call_id, content), stamp=stamp)

    def assistant(self, message_id: str) -> int:
        message = {"id": message_id, "role": "assistant", "content": []}
        return self.add({"type": "assistant", "message": message})

    def attachment(self, *texts: str) -> int:
        return self.add({"type": "attachment", "rendered": [{"content": text} for text in texts]})

    def blob(self, *blocks: dict[str, Any]) -> tuple[int, str]:
        message = {"role": "user", "content": list(blocks)}
        key = native_hash(message)
        return self.add({"type": "api-request-blob", "hash": key, "message": message}), key

    def request(self, *tail: Any, **members: Any) -> int:
        self.requests += 1
        record = {"type": "api-request", "id": f"q{self.requests}", "keep": 0, "tail": list(tail), **members}
        return self.add(record)

    def sent(self, *blocks: dict[str, Any]) -> tuple[int, int]:
        """A blob and the request that carries it."""
        blob, key = self.blob(*blocks)
        return blob, self.request(key)

    def fold(self, *, eager: bool = False) -> RequestEvidence:
        evidence = RequestEvidence(eager=eager)
        for index, data in enumerate(self.lines):
            evidence.feed(index + 1, self.offsets[index], data)
        evidence.close()
        return evidence

    def delivery(self, index: int, block: int = 0) -> Delivery | None:
        return self.fold().delivery(self.offsets[index], block)

    def content(self, index: int, block: int = 0) -> Any:
        """The content that the evidence gives a result."""
        found = self.delivery(index, block)
        assert found is not None
        return content_of(found, json.loads(self.lines[index]), block, self.at(found))

    def at(self, found: Delivery) -> Any:
        return json.loads(self.lines[found.blob.line - 1]) if found.blob else None


def content_of(found: Delivery, stored: Any, block: int, blob: Any) -> Any:
    if found.source == "blob":
        stored, block = blob, int(found.pointer.rsplit("/", 1)[1])
    return cut(stored["message"]["content"][block]["content"], found.keep)


TOKENS = reminder("<total_tokens>9 tokens left</total_tokens>")
CONTEXT = reminder("PostToolUse:Bash hook additional context: mind the gap")


# What a request carries.


def test_the_stored_text_before_a_reminder() -> None:
    session = Session()
    result = session.result("t1", "output")
    session.attachment(TOKENS)
    blob, request = session.sent(tool_result("t1", f"output\n\n{TOKENS}"))

    found = session.delivery(result)

    assert found is not None
    assert (found.source, found.keep, found.pointer) == ("stored", None, "/message/content/0")
    assert found.request == (request + 1, session.offsets[request], len(session.lines[request]))
    assert found.blob == (blob + 1, session.offsets[blob], len(session.lines[blob]))


@pytest.mark.parametrize("own", [[], [TOKENS], [CONTEXT, TOKENS], ["a\n\nb", TOKENS]])
def test_a_trimmed_text(own: list[str]) -> None:
    session = Session()
    result = session.result("t1", " \n5\t\u00a0\ufeff")
    session.attachment(*own)
    session.sent(tool_result("t1", "\n\n".join(["5", *own])))

    found = session.delivery(result)

    assert found is not None
    assert (found.source, found.keep) == ("stored", ((2, 3),))


def test_an_empty_text_with_a_reminder() -> None:
    session = Session()
    result = session.result("t1", " \n")
    session.attachment(TOKENS)
    session.sent(tool_result("t1", TOKENS))

    assert session.content(result) == ""


def test_blanks_that_only_python_strips_stay() -> None:
    session = Session()
    result = session.result("t1", "\x1foutput\x85")
    session.attachment(TOKENS)
    session.sent(tool_result("t1", f"\x1foutput\x85\n\n{TOKENS}"))

    assert session.content(result) == "\x1foutput\x85"


def test_a_text_that_ends_like_the_joint() -> None:
    session = Session()
    result = session.result("t1", "output\n")
    session.attachment(TOKENS)
    session.sent(tool_result("t1", f"output\n\n{TOKENS}"))

    assert session.content(result) == "output"


def test_an_array_gets_parts_and_an_lf() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    session = Session()
    stored = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}, image]
    result = session.result("t1", stored)
    session.attachment(TOKENS)
    glued = [stored[0], {"type": "text", "text": "two\n"}, image]
    session.sent(tool_result("t1", [*glued, {"type": "text", "text": TOKENS}]))

    assert session.content(result) == stored


def test_an_array_that_really_differs_comes_from_the_copy() -> None:
    session = Session()
    result = session.result("t1", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])
    session.attachment(TOKENS)
    sent = [{"type": "text", "text": "one\n"}, {"type": "text", "text": "two"}]
    session.sent(tool_result("t1", [*sent, {"type": "text", "text": TOKENS}]))

    found = session.delivery(result)

    assert found is not None
    assert (found.source, found.keep) == ("blob", ((0, 2),))
    assert session.content(result) == sent


def test_an_lf_without_appended_parts_is_a_difference() -> None:
    session = Session()
    result = session.result("t1", [{"type": "text", "text": "one"}])
    session.sent(tool_result("t1", [{"type": "text", "text": "one\n"}]))

    assert session.content(result) == [{"type": "text", "text": "one\n"}]


def test_an_appended_part_without_a_record_stays() -> None:
    session = Session()
    one, more = {"type": "text", "text": "one"}, {"type": "text", "text": "nobody wrote this down"}
    result = session.result("t1", [one])
    session.attachment(TOKENS)
    session.sent(tool_result("t1", [one, {"type": "text", "text": TOKENS}, more]))

    assert session.content(result) == [one, more]


def test_text_without_a_record_of_its_own_stays_content() -> None:
    session = Session()
    result = session.result("t1", "output")
    session.attachment(CONTEXT, TOKENS)
    session.sent(tool_result("t1", f"output\n\n{CONTEXT}\n\nnobody\n\nwrote this down\n\n{TOKENS}"))

    found = session.delivery(result)

    assert found is not None
    assert found.source == "blob"
    assert session.content(result) == "output\n\nnobody\n\nwrote this down"


def test_own_text_is_cut_only_between_joints() -> None:
    session = Session()
    result = session.result("t1", "output")
    session.user("words")
    session.sent(tool_result("t1", "output\n\nwords that go on"))

    assert session.content(result) == "output\n\nwords that go on"


def test_texts_that_begin_alike_are_told_apart() -> None:
    session = Session()
    own = [reminder(f"same beginning {'x' * size}") for size in range(40)]
    result = session.result("t1", "output")
    session.attachment(*own)
    session.sent(tool_result("t1", "\n\n".join(["output", own[7], "unexplained", own[31], own[2]])))

    assert session.content(result) == "output\n\nunexplained"


def test_the_longest_own_text_is_cut() -> None:
    session = Session()
    result = session.result("t1", "output")
    for text in ("a\n\nb", "a", "a\n\nb\n\nc", "a"):
        session.attachment(text)
    session.sent(tool_result("t1", "output\n\na\n\nb\n\nc\n\nunexplained"))

    assert session.content(result) == "output\n\nunexplained"


def test_another_text_than_the_stored_one_comes_from_the_copy() -> None:
    session = Session()
    result = session.result("t1", "a long output")
    session.user("ok")
    session.attachment(TOKENS)
    session.sent(tool_result("t1", f"[cleared]\n\nok\n\n{TOKENS}"))

    assert session.content(result) == "[cleared]\n\nok"


def test_a_reminder_in_the_output_itself_stays() -> None:
    session = Session()
    result = session.result("t1", f"log:\n\n{TOKENS}")
    session.attachment(TOKENS)
    session.sent(tool_result("t1", f"log:\n\n{TOKENS}\n\n{TOKENS}"))

    assert session.content(result) == f"log:\n\n{TOKENS}"


def test_a_reminder_may_be_stored_after_its_request() -> None:
    session = Session()
    result = session.result("t1", "output")
    _, request = session.sent(tool_result("t1", f"output\n\n{TOKENS}"))
    session.attachment(TOKENS)
    session.assistant("m2")
    later = session.result("t2", "more")
    session.sent(tool_result("t2", f"more\n\n{CONTEXT}\n\n{TOKENS}"))
    session.attachment(CONTEXT)

    found = session.delivery(result)

    assert found is not None
    assert (found.source, found.keep, found.request.line) == ("stored", None, request + 1)
    assert session.content(later) == "more"


def test_the_first_request_counts() -> None:
    session = Session()
    result = session.result("t1", "output")
    _, first = session.sent(tool_result("t1", "output\n\nunexplained"))
    session.sent(tool_result("t1", "output"))

    found = session.delivery(result)

    assert found is not None
    assert found.request.line == first + 1
    assert session.content(result) == "output\n\nunexplained"


def test_a_request_with_the_stored_text_counts_before_one_without() -> None:
    session = Session()
    result = session.result("t1", "output")
    session.sent(tool_result("t1", "[interrupted]"))
    _, second = session.sent(tool_result("t1", "output"))

    found = session.delivery(result)

    assert found is not None
    assert found.request.line == second + 1
    assert session.content(result) == "output"


def test_lone_surrogates() -> None:
    session = Session()
    result = session.result("t1", "half \ud83d pair ")
    session.attachment(TOKENS)
    session.sent(tool_result("t1", f"half \ud83d pair\n\n{TOKENS}"))

    assert session.content(result) == "half \ud83d pair"


# Stored records that a request names themselves.


def joined(*blocks: dict[str, Any]) -> str:
    return native_hash({"role": "user", "content": list(blocks)})


def test_a_prefix_of_stored_records() -> None:
    session = Session()
    session.assistant("m1")
    second = session.result("dup", "second")
    first = session.result("dup", "first")
    request = session.request(joined(tool_result("dup", "second")))

    found = session.delivery(second)

    assert found == ((request + 1, *found.request[1:]), None, "", "stored", None) if found else False
    assert session.delivery(first) is None


def test_a_prefix_with_words_and_results() -> None:
    session = Session()
    session.assistant("m1")
    one = session.result("t1", " as it is ")
    session.attachment("not joined")
    two = session.user(tool_result("t2", [{"type": "text", "text": "x"}]), tool_result("t3", "y"))
    session.user("go on")
    blocks = [tool_result("t1", " as it is "), tool_result("t2", [{"type": "text", "text": "x"}])]
    session.request(joined(*blocks, tool_result("t3", "y"), {"type": "text", "text": "go on"}))

    assert session.content(one) == " as it is "
    assert session.content(two, 1) == "y"


def test_results_between_the_blocks_of_one_message() -> None:
    session = Session()
    results = []
    for number in range(3):
        session.assistant("m1")
        results.append(session.result(f"t{number}", f"out {number}"))
    session.request(joined(*(tool_result(f"t{number}", f"out {number}") for number in range(3))))

    assert all(session.delivery(result) for result in results)


def test_runs_end_at_assistant_records_and_compactions() -> None:
    session = Session()
    first = session.result("t1", "one")
    session.add({"type": "system", "subtype": "compact_boundary"})
    second = session.result("t2", "two")
    session.assistant("m2")
    third = session.result("t3", "three")
    session.request(joined(tool_result("t2", "two")), joined(tool_result("t3", "three")))

    assert session.delivery(first) is None
    assert session.delivery(second)
    assert session.delivery(third)


def test_a_run_of_which_one_result_was_copied_before() -> None:
    session = Session()
    blocks = [tool_result("t1", "one"), tool_result("t2", "two")]
    results = [session.user(block) for block in blocks]
    session.sent(blocks[0])
    request = session.request(joined(*blocks))

    assert session.delivery(results[0])
    second = session.delivery(results[1])
    assert second is not None
    assert (second.request.line, second.blob) == (request + 1, None)


def test_cache_control_is_no_part_of_the_hash() -> None:
    session = Session()
    result = session.user({**tool_result("t1", "output"), "cache_control": {"type": "ephemeral"}})
    session.request(joined(tool_result("t1", "output")))

    assert session.delivery(result)


def test_runs_are_hashed_when_too_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "BUDGET", 300)
    session = Session()
    results = [session.result(f"t{number}", "x" * 100) for number in range(9)]
    session.request(joined(*(tool_result(f"t{number}", "x" * 100) for number in range(9))))

    assert all(session.delivery(result) for result in results)


def test_a_request_may_stand_before_the_records_it_names() -> None:
    session = Session()
    session.request(joined(tool_result("t1", "one")))
    early = session.result("t1", "one", stamp="2026-11-30T09:00:00.000Z")
    session.assistant("m2")
    late = session.result("t2", "two")
    session.request(joined(tool_result("t3", "three")))

    assert session.delivery(early)
    assert session.delivery(late) is None


# What is not claimed.


def test_nothing_is_claimed_without_a_request() -> None:
    session = Session()
    result = session.result("t1", "output")
    session.blob(tool_result("t1", "output"))
    other = session.result("t2", "output")
    session.request("0" * 64)

    assert session.delivery(result) is None
    assert session.delivery(other) is None
    assert session.fold().present
    assert not session.fold().doubts


def test_equal_texts_under_one_id_are_nobodys() -> None:
    session = Session()
    one = session.result("dup", "same")
    two = session.result("dup", "same ")
    session.attachment(TOKENS)
    _, request = session.sent(tool_result("dup", f"same\n\n{TOKENS}"))
    evidence = session.fold()

    assert session.delivery(one) is None
    assert session.delivery(two) is None
    assert [(doubt.code, doubt.line) for doubt in evidence.doubts] == [("ambiguous_delivery", request + 1)]


def test_equal_stored_records_under_one_id_are_nobodys() -> None:
    session = Session()
    results = [session.result("dup", "same"), session.result("dup", "same")]
    session.request(joined(tool_result("dup", "same")))

    assert [session.delivery(result) for result in results] == [None, None]


def test_text_decides_under_one_id() -> None:
    session = Session()
    results = [session.result("dup", text) for text in ("one", "two", "one and two")]
    session.attachment(TOKENS)
    session.sent(tool_result("dup", f"two\n\n{TOKENS}"))

    assert [session.delivery(result) is not None for result in results] == [False, True, False]


def test_no_text_fits_under_one_id() -> None:
    session = Session()
    results = [session.result("dup", text) for text in ("one", "two")]
    session.sent(tool_result("dup", "three"))

    assert [session.delivery(result) for result in results] == [None, None]
    assert session.fold().doubts


def test_a_later_result_with_the_same_text_was_not_in_the_request() -> None:
    session = Session()
    first = session.result("dup", "same")
    session.sent(tool_result("dup", "same"))
    second = session.result("dup", "same")

    assert session.delivery(first)
    assert session.delivery(second) is None


def test_an_equal_result_between_the_copy_and_its_request() -> None:
    session = Session()
    first = session.result("dup", "same")
    _, key = session.blob(tool_result("dup", "same"))
    second = session.result("dup", "same")
    session.request(key)

    assert [session.delivery(first), session.delivery(second)] == [None, None]


@pytest.mark.parametrize("stamp", ["2026-11-30T09:00:00.000Z", "soon"])
def test_a_claim_is_taken_back(stamp: str) -> None:
    session = Session()
    first = session.result("dup", "same")
    session.sent(tool_result("dup", "same"))
    second = session.result("dup", "same", stamp=stamp)

    assert session.delivery(first) is None
    assert session.delivery(second) is None
    assert session.fold().doubts


def test_a_record_written_twice_is_one() -> None:
    session = Session()
    stamp = "2026-11-30T09:00:00.000Z"
    results = [session.result("t1", "output", stamp=stamp), session.result("t1", "output", stamp=stamp)]
    session.sent(tool_result("t1", "output"))
    results.append(session.result("t1", "output", stamp=stamp))

    assert all(session.delivery(result) for result in results)


def test_very_many_results_under_one_id_are_nobodys() -> None:
    session = Session()
    results = [session.result("dup", f"text {number}") for number in range(2 * claims.CROWD)]
    session.sent(tool_result("dup", "text 5"))

    assert not any(session.delivery(result) for result in results)


def test_blocks_that_wait_too_long_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BUDGET", 2000)
    session = Session()
    results = []
    for number in range(20):
        results.append(session.result(f"t{number}", f"output {number}"))
        session.sent(tool_result(f"t{number}", f"output {number}\n\n{TOKENS}"))
    session.attachment(TOKENS)

    assert session.content(results[0]) == f"output 0\n\n{TOKENS}"
    assert session.content(results[-1]) == "output 19"


def test_blocks_that_are_given_up_are_looked_at_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BUDGET", 2000)
    monkeypatch.setattr(claims, "_RECENT", 0)
    session = Session()
    first = session.result("t", "output")
    session.sent(tool_result("t", f"output\n\n{TOKENS}"))
    session.attachment(TOKENS)
    for number in range(20):
        session.result(f"t{number}", f"output {number}")
        session.sent(tool_result(f"t{number}", f"output {number}\n\nunexplained"))

    assert session.content(first) == "output"


# Requests that can't be trusted.


@pytest.mark.parametrize(
    "members",
    [
        {"keep": -1},
        {"keep": 1},
        {"keep": 10**30},
        {"keep": True},
        {"keep": "0"},
        {"keep": None},
        {"keep": 0.5},
        {"id": 7},
        {"id": None},
        {"base": 7},
        {"base": "q1"},
        {"base": ["q1"]},
        {"tail": None},
        {"tail": {"0": "x"}},
    ],
    ids=str,
)
def test_a_bad_request_proves_nothing(members: dict[str, Any]) -> None:
    session = Session()
    result = session.result("t1", "output")
    _, key = session.blob(tool_result("t1", "output"))
    request = session.request(key, **members)
    evidence = session.fold()

    assert evidence.present
    assert evidence.delivery(session.offsets[result], 0) is None
    assert [doubt.line for doubt in evidence.doubts] == [request + 1]


@pytest.mark.parametrize("junk", [None, 7, "", "xyz", ["a"], {"a": 1}, "0" * 63])
def test_junk_in_a_tail_proves_nothing(junk: Any) -> None:
    session = Session()
    result = session.result("t1", "output")
    _, key = session.blob(tool_result("t1", "output"))
    session.request(key, junk)

    assert session.delivery(result) is None


def test_more_kept_than_the_base_has() -> None:
    session = Session()
    session.request("1" * 64)
    result = session.result("t1", "output")
    _, key = session.blob(tool_result("t1", "output"))
    session.request(key, base="q1", keep=2)
    other = session.result("t2", "more")
    _, key = session.blob(tool_result("t2", "more"))
    session.request(key, base="q2", keep=1)

    assert session.delivery(result) is None
    assert session.delivery(other) is None


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_cycle_of_bases_proves_nothing(length: int) -> None:
    session = Session()
    results = []
    for number in range(length):
        results.append(session.result(f"t{number}", "output"))
        _, key = session.blob(tool_result(f"t{number}", "output"))
        session.request(key, base=f"q{(number + 1) % length + 1}", keep=1)

    assert not any(session.delivery(result) for result in results)


def test_a_base_that_is_gone_costs_nothing_else() -> None:
    session = Session()
    result = session.result("t1", "output")
    _, key = session.blob(tool_result("t1", "output"))
    session.request(key, base="gone", keep=40)
    other = session.result("t2", "more")
    _, key = session.blob(tool_result("t2", "more"))
    session.request(key, base="q1", keep=41)

    assert session.delivery(result)
    assert session.delivery(other)


def test_torn_and_foreign_lines_are_passed_over() -> None:
    session = Session()
    session.add(b'{"type":"user","message":{"content":[{"type":"tool_result"')
    session.add(b"\x00\x00\xff")
    session.add(b"[1,2]")
    session.add(b"")
    session.add(b'{"type":"user","message":' + b"[" * 100_000)
    result = session.result("t1", "output")
    session.sent(tool_result("t1", "output"))

    assert session.delivery(result)


# Versions that record no requests.


def test_old_versions_are_passed_over_until_a_newer_one_resumes() -> None:
    session = Session("2.1.260")
    old = session.result("t1", "output")
    assert not session.fold().incomplete
    session.version = VERSION
    new = session.result("t2", "more")
    session.request(joined(tool_result("t1", "output"), tool_result("t2", "more")))

    first = session.fold()
    again = session.fold(eager=True)

    assert (first.incomplete, again.incomplete) == (True, False)
    assert first.delivery(session.offsets[old], 0) is None
    assert all(again.delivery(session.offsets[index], 0) for index in (old, new))


def test_an_old_file_has_no_evidence() -> None:
    session = Session("2.0.76")
    session.result("t1", "output")
    evidence = session.fold()

    assert (evidence.present, evidence.incomplete) == (False, False)


# Size.


def test_what_is_left_is_small() -> None:
    session = Session()
    count = 3000
    results = []
    for number in range(count):
        results.append(session.result(f"toolu_{number:024}", f"output {number}" * 20))
        own = reminder(f"<total_tokens>{number} tokens left</total_tokens>")
        session.attachment(own)
        session.sent(tool_result(f"toolu_{number:024}", f"output {number}" * 20 + f"\n\n{own}"))
    tracemalloc.start()
    try:
        evidence = session.fold()
        gc.collect()
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert all(evidence.delivery(session.offsets[result], 0) for result in results)
    assert left / count < 150
    assert peak / count < 2000


# Anything at all.

IDS = st.sampled_from(["a", "b"])
TEXTS = st.sampled_from(["", " ", "x", "x\n", " x", "x\n\ny", "y", TOKENS, f"x\n\n{TOKENS}", "\ud800"])
PARTS = st.lists(TEXTS.map(lambda text: {"type": "text", "text": text}), max_size=3)
CONTENTS = st.one_of(TEXTS, PARTS, st.none(), st.integers(), st.just([1, None, {"type": "text", "text": 3}]))
BLOCKS = st.lists(
    st.one_of(
        st.builds(tool_result, IDS, CONTENTS),
        TEXTS.map(lambda text: {"type": "text", "text": text}),
        st.none(),
    ),
    min_size=1,
    max_size=3,
)
KINDS = ("user", "user", "blob", "blob", "request", "request", "attachment", "assistant", "system")
STAMPS = st.sampled_from(["2026-11-30T10:00:00.000Z", "2026-11-30T11:00:00.000Z", "never", None])


@st.composite
def sessions(draw: st.DrawFn) -> list[Any]:
    """Records that are right in most things, in any order."""
    records: list[Any] = []
    keys = ["0" * 64]
    for _ in range(draw(st.integers(1, 8))):
        match draw(st.sampled_from(KINDS)):
            case "user":
                message = {"role": "user", "content": draw(st.one_of(BLOCKS, TEXTS))}
                if isinstance(message["content"], list):
                    keys.append(native_hash(message))
                records.append({"type": "user", "message": message})
            case "blob":
                message = {"role": "user", "content": draw(BLOCKS)}
                keys.append(native_hash(message))
                records.append({"type": "api-request-blob", "hash": keys[-1], "message": message})
            case "request":
                names = st.sampled_from(["q1", "q2", "q3", None])
                members = {"id": draw(names), "base": draw(names), "keep": draw(st.integers(-1, 3))}
                records.append({"type": "api-request", **members})
            case "attachment":
                rendered = [{"content": draw(st.one_of(TEXTS, PARTS))}]
                records.append({"type": "attachment", "rendered": rendered})
            case "assistant":
                records.append({"type": "assistant", "message": {"id": draw(IDS)}})
            case _:
                records.append({"type": "system", "subtype": "compact_boundary"})
    for record in records:
        record |= {"timestamp": draw(STAMPS), "version": VERSION}
        if record["type"] == "api-request":
            record["tail"] = draw(st.lists(st.sampled_from(keys), max_size=3))
    return draw(st.permutations(records))


@given(sessions())
@settings(max_examples=300, deadline=None)
def test_a_claim_is_always_borne_out(records: list[Any]) -> None:
    """A request names the message, the message has the call and that content, and no other result has it."""
    session = Session()
    for record in records:
        session.add(copy.deepcopy(record))
    evidence = session.fold()
    seen: dict[Any, set[str]] = defaultdict(set)
    for index, record in enumerate(records):
        content = record["message"]["content"] if record["type"] == "user" else None
        for number, block in enumerate(content if isinstance(content, list) else []):
            found = evidence.delivery(session.offsets[index], number)
            if found is None:
                continue
            assert block["type"] == "tool_result"
            request = records[found.request.line - 1]
            assert request["type"] == "api-request"
            if found.blob is None:
                assert (found.source, found.keep) == ("stored", None)
                continue
            blob = records[found.blob.line - 1]
            assert blob["hash"] in request["tail"]
            sent = blob["message"]["content"][int(found.pointer.rsplit("/", 1)[1])]
            assert sent["tool_use_id"] == block["tool_use_id"]
            got = content_of(found, record, number, blob)
            assert holds(sent["content"], got)
            seen[found.blob.line, found.pointer].add(json.dumps([record["timestamp"], block["content"]]))
    assert all(len(owners) == 1 for owners in seen.values()), "one sent block, two results"


def holds(sent: Any, got: Any) -> bool:
    """Whether a sent content is ``got`` and perhaps more."""
    if isinstance(sent, str) and isinstance(got, str):
        pieces = iter(sent)
        return all(char in pieces for char in got)
    if isinstance(sent, list) and isinstance(got, list):
        return len(got) <= len(sent)
    return bool(sent == got or (not sent and not got))


MEMBERS = (
    *("type", "message", "content", "tool_use_id", "text", "hash", "tail", "id", "base", "keep", "rendered"),
    *("version", "timestamp"),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=6,
        ),
    ),
    max_leaves=12,
)
TYPES = st.sampled_from(["user", "assistant", "attachment", "system", "api-request", "api-request-blob"])


@given(st.lists(st.one_of(JSON, st.tuples(JSON, TYPES), st.binary(max_size=40)), max_size=6))
@settings(max_examples=300, deadline=None)
def test_no_line_raises(values: list[Any]) -> None:
    session = Session()
    for value in values:
        if isinstance(value, tuple) and isinstance(value[0], dict):
            value = {**value[0], "type": value[1]}
        session.add(value if isinstance(value, bytes) else json.dumps(value).encode())
    session.fold(eager=True)


# Captures: what the fold says against what reached a scripted model.


def captured(shared: Path) -> Iterator[tuple[Path, dict[str, list[Any]]]]:
    """Every run whose agent records requests, with the tool results that were sent, by call id."""
    for log in sorted((shared / "captures" / "claude-code").glob("2.1.3*/*/*/requests.jsonl")):
        lanes: dict[str, list[Any]] = {}
        sent: dict[str, list[Any]] = defaultdict(list)
        for line in log.read_bytes().splitlines():
            request = json.loads(line)
            if "messages" not in request:
                continue
            before = lanes.get(request["lane"], [])
            lanes[request["lane"]] = before[: request["keep"]] + request["messages"]
            for message in request["messages"]:
                for block in message["content"] if isinstance(message["content"], list) else []:
                    if block["type"] == "tool_result" and block["content"] not in sent[block["tool_use_id"]]:
                        sent[block["tool_use_id"]].append(block["content"])
        yield log.parent, sent


def without_own(content: Any, own: set[str]) -> Any:
    """A sent content without texts of stored records at its end, written apart from the product."""
    if isinstance(content, list):
        kept = [dict(part) for part in content]
        while kept and kept[-1].get("text", "").strip() in own:
            kept.pop()
        if len(kept) < len(content) and "text" in kept[-1]:
            kept[-1]["text"] = kept[-1]["text"].removesuffix("\n")
        return kept
    ends = [text for text in own if content.endswith(f"\n\n{text}")]
    return without_own(content.removesuffix(f"\n\n{max(ends, key=len)}"), own) if ends else content


def records_of(file: Path) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    for number, data in enumerate(file.read_bytes().split(b"\n"), 1):
        if data:
            yield number, offset, data
        offset += len(data) + 1


def test_captures(shared: Path) -> None:
    compared = 0
    never_sent = 0
    wrong = []
    for run, sent in captured(shared):
        for file in sorted(run.glob("projects/**/*.jsonl")):
            evidence = RequestEvidence()
            native = {}
            for number, offset, data in records_of(file):
                evidence.feed(number, offset, data)
                native[offset] = json.loads(data)
            evidence.close()
            attachments = [record for record in native.values() if record["type"] == "attachment"]
            own = {part["content"].strip() for record in attachments for part in record.get("rendered") or ()}
            for offset, record in native.items():
                content = record["message"]["content"] if record["type"] == "user" else None
                for index, block in enumerate(content if isinstance(content, list) else []):
                    if block["type"] != "tool_result":
                        continue
                    expected = [without_own(one, own) for one in sent.get(block["tool_use_id"], [])]
                    if run.parent.name == "duplicate_ids" and block["content"] != "second":
                        expected = []  # one id, three results: only this one's text was ever sent
                    assert len(expected) <= 1, "a result that changed from request to request"
                    found = evidence.delivery(offset, index)
                    got = []
                    if found is not None:
                        blob = native[found.blob.offset] if found.blob else None
                        got = [content_of(found, record, index, blob)]
                    if got != expected:
                        wrong.append((str(file), block["tool_use_id"], got, expected))
                    compared += 1
                    never_sent += not expected
            assert not evidence.doubts
            assert not evidence.incomplete
    assert wrong == []
    assert compared > 350
    assert never_sent > 5


def test_native_hashes(shared: Path) -> None:
    compared = 0
    for file in sorted((shared / "captures" / "claude-code").glob("2.1.3*/**/projects/**/*.jsonl")):
        for _, _, data in records_of(file):
            if b'"api-request-blob"' in data and b"vendor text removed" not in data:
                blob = json.loads(data)
                assert hashlib.sha256(canonical(uncached(blob["message"]))).hexdigest() == blob["hash"]
                compared += 1
    assert compared > 300


def test_older_captures_have_no_evidence(shared: Path) -> None:
    files = sorted((shared / "captures" / "claude-code").glob("2.1.2*/**/projects/**/*.jsonl"))
    assert files
    for file in files:
        evidence = RequestEvidence()
        for number, offset, data in records_of(file):
            evidence.feed(number, offset, data)
        evidence.close()
        assert (evidence.present, evidence.incomplete) == (False, False)
