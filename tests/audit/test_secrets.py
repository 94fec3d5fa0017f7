"""A secret answer that stands anywhere in a bundle is named, by whatever tells what it was, and never shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from tests.audit.conftest import Forged, imported
from tests.native.acp.conftest import SESSION, Log
from tests.native.codex.conftest import Made

from callsheet.audit import Finding
from callsheet.audit.secrets import Asked, given

SECRET = 'sk-"né\\/77'
TOKEN = {"id": "token", "question": "Which token?", "isSecret": True, "options": [{"label": "Skip it"}]}
COLOUR = {"id": "colour", "question": "Which colour?"}


def thread(answer: str, *more: dict[str, Any]) -> bytes:
    """A thread that asks for a token, gets one, and then runs a command that says nothing of it."""
    made = Made()
    made.meta()
    made.call("q1", "request_user_input", {"questions": [TOKEN, COLOUR, *more]})
    answers = {"token": {"answers": [answer]}, "colour": {"answers": ["emerald"]}}
    made.output("q1", json.dumps({"answers": answers}))
    made.call("c1")
    made.output("c1", "logged in")
    made.said("done")
    made.replied()
    return made.data


def form(answer: str) -> bytes:
    """Frames of an agent whose whole form asks for a secret."""
    log = Log(2)
    schema = {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}}
    params = {"sessionId": SESSION, "mode": "form", "message": "Key?", "requestedSchema": schema}
    log.agent(id=9, method="elicitation/create", params=params)
    log.client(id=9, result={"action": "accept", "content": {"key": answer}})
    log.update("agent_message_chunk", content={"type": "text", "text": "done"})
    return log.data.replace(b'"name": "toy"', b'"name": "acp"')  # an agent that a registry speaks of


def bundle(folder: Path, data: bytes, kind: str = "codex") -> Forged:
    (folder / "in").mkdir(exist_ok=True)
    name = "rollout-2026-11-30T10-00-01-01a20000-0000-7000-8000-000000000001.jsonl"
    source = folder / "in" / (name if kind == "codex" else "frames.jsonl")
    source.write_bytes(data)
    (made,) = imported([source], folder / "out", kind)
    return Forged(made, folder / "forged")


@pytest.fixture
def asked(tmp_path: Path) -> Forged:
    return bundle(tmp_path, thread(SECRET))


def secrets(forged: Forged) -> list[Finding]:
    """What the audit finds of secrets; no such finding shows one."""
    found = [one for one in forged.findings() if one.rule == "ASR-283"]
    assert SECRET not in msgspec.json.encode(found).decode()
    return found


def of_type(records: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return [record for record in records if record["type"] == kind][-1]


def in_content(forged: Forged, text: str) -> str:
    records = forged.records()
    of_type(records, "tool_result")["content"][0]["text"] = f"logged in with {text}"
    forged.write(records)
    return "/content/0/text"


def in_a_name(forged: Forged, text: str) -> str:
    records = forged.records()
    of_type(records, "tool_call")["input"] = {"cmd": "x", "env": {text: 1}}
    forged.write(records)
    return "/input/env/" + text.replace("~", "~0").replace("/", "~1")


def in_meta(forged: Forged, text: str) -> str:
    records = forged.records()
    of_type(records, "message")["_meta"] = {"example.org/x": {"deep": [json.dumps({"said": text})]}}
    forged.write(records)
    return "/_meta/example.org~1x/deep/0"


def in_a_broken_line(forged: Forged, text: str) -> str:
    path = forged.folder / forged.manifest["streams"][0]["file"]
    path.write_bytes(path.read_bytes() + json.dumps({"x": text}).encode()[:-1] + b"\n")
    return ""


def in_a_blob(forged: Forged, text: str) -> str:
    path = forged.folder / "blobs" / "sha256" / "ab" / ("c" * 62)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 70_000 + text.encode() + b"y")
    return f"/blobs/sha256/ab/{'c' * 62}"


def in_the_copy(forged: Forged, text: str) -> str:
    path = forged.folder / forged.manifest["sources"][0]["native"]
    path.write_bytes(zstandard.compress(b"first\n" + json.dumps(text).encode() + b"\n"))
    return "/sources/s0"


def in_the_manifest(forged: Forged, text: str) -> str:
    forged.manifest["diagnostics"] = [{"code": "x", "message": f"odd: {text}"}]
    forged.save()
    return "/diagnostics/0/message"


def in_another_file(forged: Forged, text: str) -> str:
    (forged.folder / "notes.txt").write_text(f"the token is {text}")
    return "/notes.txt"


PLANTS = [
    in_content,
    in_meta,
    in_a_broken_line,
    in_a_blob,
    in_the_copy,
    in_the_manifest,
    in_another_file,
]


def test_where_nothing_was_copied_nothing_is_found(asked: Forged) -> None:
    assert asked.findings() == []


@pytest.mark.parametrize("plant", PLANTS, ids=lambda one: one.__name__)
def test_a_copy_of_it_is_found(plant: Callable[[Forged, str], str], asked: Forged) -> None:
    path = plant(asked, SECRET)
    (found,) = secrets(asked)
    assert found.path == path
    assert "r2 of stream" in found.message  # the record of the request


def test_one_that_is_a_member_name_is_found(tmp_path: Path) -> None:
    forged = bundle(tmp_path, thread("a-long-token"))
    path = in_a_name(forged, "a-long-token")
    (found,) = [one for one in forged.findings() if one.rule == "ASR-283"]
    assert found.path == path


def test_the_answer_to_a_whole_request_is_found(tmp_path: Path) -> None:
    forged = bundle(tmp_path, form(SECRET), "acp")
    assert secrets(forged) == []
    assert of_type(forged.records(), "input_request")["secret"] is True
    records = forged.records()
    of_type(records, "message")["content"][0]["text"] = f"I have {SECRET}"
    forged.write(records)
    assert [one.path for one in secrets(forged)] == ["/content/0/text"]


def test_a_number_is_found_where_the_source_has_numbers(tmp_path: Path) -> None:
    forged = bundle(tmp_path, thread("48151623"))
    records = forged.records()
    of_type(records, "tool_call")["input"] = {"cmd": "x", "pin": 48151623}
    of_type(records, "tool_result")["durationMs"] = 48151623
    forged.write(records)
    assert [one.path for one in secrets(forged)] == ["/input/pin"]


def without_its_source(forged: Forged) -> None:
    Path(forged.manifest["sources"][0]["path"]).unlink()


def test_where_nothing_tells_it_nothing_can_be_found(asked: Forged) -> None:
    without_its_source(asked)
    in_meta(asked, SECRET)
    assert secrets(asked) == []


def test_the_record_itself_tells_it(asked: Forged) -> None:
    without_its_source(asked)
    records = asked.records()
    of_type(records, "input_request")["answers"] = [{"questionId": "token", "text": SECRET}]
    of_type(records, "message")["_meta"] = {"example.org/x": SECRET}
    asked.write(records)
    assert {one.path for one in secrets(asked)} == {"/answers/0/text", "/_meta/example.org~1x"}


def test_the_result_of_the_call_tells_it(asked: Forged) -> None:
    without_its_source(asked)
    records = asked.records()
    (result,) = (one for one in records if one["type"] == "tool_result" and one["callId"] == "q1")
    told = json.dumps({"answers": {"token": {"answers": [SECRET]}, "colour": {"answers": ["emerald"]}}})
    result["content"] = [{"type": "text", "text": told}]
    of_type(records, "message")["_meta"] = {"example.org/x": f"{SECRET} emerald"}
    asked.write(records)
    assert {one.path for one in secrets(asked)} == {"/content/0/text", "/_meta/example.org~1x"}


def test_a_request_that_does_not_cite_its_answer_is_no_way_out(asked: Forged) -> None:
    records = [record for record in asked.records() if "supersedes" not in record]
    of_type(records, "message")["_meta"] = {"example.org/x": SECRET}
    asked.write(records)
    assert [one.path for one in secrets(asked)] == ["/_meta/example.org~1x"]


def test_what_was_marked_once_stays_secret(asked: Forged) -> None:
    records = asked.records()
    last = of_type(records, "input_request")
    assert "supersedes" in last
    del last["questions"][0]["secret"]
    of_type(records, "message")["_meta"] = {"example.org/x": SECRET}
    asked.write(records)
    assert [one.path for one in secrets(asked)] == ["/_meta/example.org~1x"]


@pytest.mark.parametrize("answer", ["abc", "Skip it", "None of the above", "user_note: abc"])
def test_a_short_answer_and_an_offered_one_are_not_looked_for(answer: str, tmp_path: Path) -> None:
    forged = bundle(tmp_path, thread(answer))
    in_meta(forged, f"{answer} emerald")
    assert secrets(forged) == []


@pytest.mark.parametrize("answer", ["user", "tool_result", "completed", "exact", "model"])
def test_a_word_of_our_own_is_no_copy(answer: str, tmp_path: Path) -> None:
    assert bundle(tmp_path, thread(answer)).findings() == []


def test_a_thousand_places_are_told_in_short(asked: Forged) -> None:
    records = asked.records()
    of_type(records, "message")["_meta"] = {f"example.org/{number}": SECRET for number in range(1000)}
    asked.write(records)
    found = secrets(asked)
    assert len(found) == 101
    assert "900 further places" in found[-1].message


def test_a_source_in_an_archive_is_read_too(tmp_path: Path) -> None:
    forged = bundle(tmp_path, thread(SECRET))
    source = Path(forged.manifest["sources"][0]["path"])
    packed = source.with_suffix(".jsonl.zst")
    packed.write_bytes(zstandard.compress(source.read_bytes()))
    source.unlink()
    (made,) = imported([packed], tmp_path / "out2", "codex")
    forged = Forged(made, tmp_path / "forged2")
    assert forged.manifest["sources"][0]["encoding"] == "zstd"
    path = in_content(forged, SECRET)
    assert [one.path for one in secrets(forged)] == [path]


def test_answers_to_questions_of_any_id_are_read() -> None:
    asked = Asked(record={}, whole=False, keys=frozenset({"q"}), labels=frozenset())
    answers: list[Any] = [{"questionId": [], "text": "no"}, {"questionId": "q", "text": "yes"}]
    assert list(given(answers, asked)) == ["yes"]
