"""What must not be kept is nowhere: no record, blob or native copy holds a secret answer or raw chain of thought."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.native.codex.conftest import Made, Read, name_of, thread

from callsheet.audit import audit_bundle
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle

SECRET = 'sk-"tricky\\ né/3141'
TOKEN = {
    "id": "token",
    "header": "Token",
    "question": "Which token?",
    "isSecret": True,
    "options": [{"label": "Skip"}],
}
COLOUR = {"id": "colour", "question": "Which colour?", "isSecret": False}


def taint(folder: Path, needles: list[str]) -> list[str]:
    """Files of a bundle (copies unpacked) in which a needle stands, in any spelling."""
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
        for needle in needles:
            forms = {needle, json.dumps(needle)[1:-1], json.dumps(needle, ensure_ascii=False)[1:-1]}
            forms |= {json.dumps(form)[1:-1] for form in forms}
            found += [f"{path.name}: {form}" for form in sorted(forms) if form.encode() in data]
    return found


def imported(folder: Path, **options: Any) -> Bundle:
    (made,) = import_sources([folder / "in"], folder / "out", **options)
    assert isinstance(made, Imported)
    return Bundle(made.bundle)


def put(folder: Path, data: bytes, ending: str = ".jsonl", number: int = 1) -> None:
    place = folder / "in"
    place.mkdir(exist_ok=True)
    (place / Path(name_of(number, ending)).name).write_bytes(data)


def asked(
    made: Made, *questions: dict[str, Any], call_id: str = "q1", name: str = "request_user_input"
) -> None:
    made.call(call_id, name, {"questions": list(questions)})


def answered(made: Made, call_id: str = "q1", **answers: list[str]) -> None:
    body = {"answers": {key: {"answers": value} for key, value in answers.items()}}
    made.output(call_id, json.dumps(body, ensure_ascii=False))


def everywhere(made: Made, secret: str) -> None:
    """Every place where Codex, the model or a tool may write an answer down."""
    made.add(
        "retained_context",
        type="verified_answer",
        call_id="q1",
        questions=[{"question": "Which token?", "answer": secret}],
    )
    made.call("c1", arguments={"cmd": f"login {secret}"})
    made.ran("c1", command=["login", secret], aggregated_output=f"hello {secret}\n", status="completed")
    made.output("c1", json.dumps({"said": f"token {secret} taken"}))
    made.said(f"I used {secret}.")
    made.add("event_msg", type="agent_message", message=f"I used {secret}.")
    made.add("compacted", message=f"The token is {secret}", replacement_history=[])
    made.raw(f'{{"broken": "{secret}'.encode())
    made.replied()


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst"])
@pytest.mark.parametrize("secret", [SECRET, "plain-token-77", "päss wörd", "12345678"])
def test_a_secret_answer_is_nowhere(secret: str, ending: str, made: Made, tmp_path: Path) -> None:
    asked(made, TOKEN, COLOUR)
    answered(made, token=[f"user_note: {secret}"], colour=["green"])
    everywhere(made, secret)
    data = made.data if ending == ".jsonl" else zstandard.ZstdCompressor().compress(made.data)
    put(tmp_path, data, ending)
    bundle = imported(tmp_path)
    assert taint(bundle.path, [secret]) == []
    assert (bundle.manifest.sources[0].masked or 0) > 5
    assert list(audit_bundle(bundle)) == []
    assert taint(tmp_path / "in", [secret]) or ending == ".jsonl.zst"  # the source itself does hold it


def test_without_a_copy_it_is_nowhere_either(made: Made, tmp_path: Path) -> None:
    asked(made, TOKEN)
    answered(made, token=[SECRET])
    everywhere(made, SECRET)
    put(tmp_path, made.data)
    assert taint(imported(tmp_path, native=False).path, [SECRET]) == []


@pytest.mark.parametrize("short", ["7", "abc"])
def test_a_short_secret_is_taken_out_where_it_was_given(short: str, made: Made, read: Read) -> None:
    asked(made, TOKEN, COLOUR)
    answered(made, token=[short], colour=["green"])
    made.said("ok")
    made.replied()
    sheet = read(made)
    (request,) = sheet.last("input_request")
    assert request["capture"]["answers"]["state"] == "redacted"
    result = sheet.one("tool_result")
    assert result["capture"]["content"]["state"] == "redacted"
    assert "raw" not in result
    assert "content" not in result


def test_open_answers_beside_a_secret_one_are_kept(made: Made, read: Read) -> None:
    asked(made, TOKEN, {**COLOUR, "options": [{"label": "red"}, {"label": "blue"}]})
    answered(made, token=[SECRET], colour=["blue", "or green"])
    sheet = read(made)
    (request,) = sheet.last("input_request")
    assert request["status"] == "answered"
    assert request["answers"] == [{"questionId": "colour", "selected": ["blue"], "text": "or green"}]


def test_an_offered_option_is_no_secret(made: Made, read: Read) -> None:
    asked(made, TOKEN)
    answered(made, token=["Skip"])
    made.said("You chose to Skip.")
    made.replied()
    (message,) = [one for one in read(made).of("message") if one["author"] == "model"]
    assert message["content"][0]["text"] == "You chose to Skip."


@pytest.mark.parametrize("output", ["not json at all", '{"answers": "odd"}', '{"answers": {"token": 7}}', ""])
def test_an_answer_of_an_unknown_shape_is_hidden_whole(output: str, made: Made, tmp_path: Path) -> None:
    asked(made, TOKEN)
    made.output("q1", output)
    made.said("ok")
    made.replied()
    put(tmp_path, made.data)
    bundle = imported(tmp_path)
    needles = [output] if len(output) > 4 else []
    assert taint(bundle.path, needles) == []


def test_a_secret_of_an_agent_is_hidden_in_its_parents_file(tmp_path: Path) -> None:
    above, agent = Made(1), Made(2)
    above.meta()
    above.said(f"they told me {SECRET}")
    spawn = {"parent_thread_id": thread(1), "depth": 1, "agent_path": "/root/a"}
    agent.meta(source={"subagent": {"thread_spawn": spawn}})
    asked(agent, TOKEN)
    answered(agent, token=[SECRET])
    put(tmp_path, above.data)
    put(tmp_path, agent.data, number=2)
    assert taint(imported(tmp_path).path, [SECRET]) == []


def test_a_reply_that_comes_later_is_hidden(made: Made, tmp_path: Path) -> None:
    asked(made, TOKEN, name="request_user_input_async")
    made.output("q1", "asked")
    reply = [
        {
            "questionItemId": json.dumps(["request_user_input_async", "q1", 0]),
            "question": "Which token?",
            "answer": SECRET,
        }
    ]
    tag = "send_user_message_question_reply"
    made.said(f"<{tag}>\n{json.dumps(reply, ensure_ascii=False)}\n</{tag}>", "user")
    made.said(f"thanks for {SECRET}")
    put(tmp_path, made.data)
    bundle = imported(tmp_path)
    assert taint(bundle.path, [SECRET]) == []
    assert list(audit_bundle(bundle)) == []


def test_a_reply_that_is_no_secret_answers_its_question(made: Made, read: Read) -> None:
    asked(made, COLOUR, name="request_user_input_async")
    made.output("q1", "asked")
    reply = [
        {
            "questionItemId": json.dumps(["request_user_input_async", "q1", 0]),
            "question": "?",
            "answer": "green",
        }
    ]
    tag = "send_user_message_question_reply"
    made.said(f"<{tag}>\n{json.dumps(reply)}\n</{tag}>", "user")
    (request,) = read(made).last("input_request")
    assert request["answers"] == [{"questionId": "colour", "text": "green"}]
    assert request["answerRef"]["record"]


# -- raw chain of thought -----------------------------------------------------------------------------------------

THOUGHT = "first I compare the two lists"


def thinking(made: Made) -> None:
    made.item(
        type="reasoning",
        summary=[{"type": "summary_text", "text": "Comparing"}],
        content=[{"type": "reasoning_text", "text": THOUGHT}],
    )
    made.add(
        "event_msg",
        type="item_completed",
        thread_id=made.thread,
        item={"type": "Reasoning", "id": "rs_1", "summary_text": ["Comparing"], "raw_content": [THOUGHT]},
    )
    made.add("event_msg", type="agent_reasoning_raw_content", text=THOUGHT)
    made.add(
        "compacted",
        message="",
        replacement_history=[{"type": "reasoning", "content": [{"type": "text", "text": THOUGHT}]}],
    )


def test_raw_reasoning_is_nowhere_unless_asked_for(made: Made, tmp_path: Path) -> None:
    thinking(made)
    put(tmp_path, made.data)
    bundle = imported(tmp_path)
    assert taint(bundle.path, [THOUGHT]) == []
    assert list(audit_bundle(bundle)) == []
    kept = imported(tmp_path, keep_reasoning=True)
    assert taint(kept.path, [THOUGHT]) != []
    assert list(audit_bundle(kept)) == []


def half(line: bytes) -> bytes:
    """The line with half a character in another member, and another one in the thought itself."""
    return line.replace(b"{", b'{"half": "\\ud83d", ', 1).replace(b"two lists", b"two lists\\udc00")


def test_raw_reasoning_in_lines_that_few_readers_take(made: Made, tmp_path: Path) -> None:
    thinking(made)
    made.lines = [made.lines[0], *(half(line) for line in made.lines[1:])]
    assert sum(b"\\udc00" in line for line in made.lines) == 4
    put(tmp_path, made.data)
    bundle = imported(tmp_path)
    assert taint(bundle.path, ["first I compare"]) == []
    assert list(audit_bundle(bundle)) == []


def test_a_secret_in_lines_that_few_readers_take(made: Made, tmp_path: Path) -> None:
    asked(made, TOKEN)
    answered(made, token=["user_note: wert-7 über"])
    everywhere(made, "wert-7 über")
    made.lines = [line.replace(b"{", b'{"half": "\\ud83d", ', 1) for line in made.lines]
    put(tmp_path, made.data)
    bundle = imported(tmp_path)
    assert taint(bundle.path, ["wert-7"]) == []


def test_summaries_are_kept_apart_from_raw_reasoning(made: Made, read: Read) -> None:
    thinking(made)
    found = [(one["form"], "content" in one) for one in read(made).of("reasoning")]
    assert found == [("summary", True), ("raw", False)]


def test_encrypted_reasoning_is_redacted_by_its_provider(made: Made, read: Read) -> None:
    made.item(type="reasoning", summary=[], encrypted_content="ZW5j")
    made.item(type="reasoning", summary=[])
    first, second = read(made).of("reasoning")
    assert first["capture"]["content"]["state"] == "redacted"
    assert second["capture"]["content"]["state"] == "absent"


def test_raw_reasoning_of_an_old_log_is_nowhere(tmp_path: Path) -> None:
    lines = [
        {"workdir": "/w", "model": "m", "provider": "p", "approval": "never", "sandbox": "none"},
        {"id": "0", "msg": {"type": "agent_reasoning_raw_content", "text": THOUGHT}},
        {"id": "0", "msg": {"type": "agent_reasoning_raw_content_delta", "delta": THOUGHT}},
    ]
    data = [json.dumps(line).encode() for line in lines]
    put(tmp_path, b"\n".join([*data, half(data[1]), half(data[2])]))
    bundle = imported(tmp_path)
    assert taint(bundle.path, ["first I compare"]) == []
    assert list(audit_bundle(bundle)) == []
