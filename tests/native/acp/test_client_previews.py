"""What is shown while a turn runs, bounded; and that no frame breaks the client."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.harness._port.tails import ending
from callsheet.seam import (
    CallPreview,
    Cancelled,
    Ended,
    MessagePreview,
    Noted,
    NotStarted,
    Opened,
    OutputPreview,
    ThoughtPreview,
    Wish,
)
from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES, TEXT_BYTES
from tests.native.acp.conftest import OPTIONS
from tests.native.acp.playing import CWD, Play, opened

BOTH = pytest.mark.parametrize("version", [1, 2])
TEXT = {"type": "text", "text": "words"}


# -- previews -------------------------------------------------------------------------------------------------------


@BOTH
def test_a_message_grows_and_a_thought_is_only_said_to_be_there(version: int) -> None:
    play = opened(version)
    play.start()
    key = {"messageId": "m"} if version > 1 else {}
    play.update("agent_thought_chunk", content={"type": "text", "text": "secretly"}, **({"messageId": "t"} if key else {}))
    play.update("agent_message_chunk", content={"type": "text", "text": "one "}, **key)
    play.update("agent_message_chunk", content={"type": "text", "text": "two"}, **key)
    (thought,) = play.of(ThoughtPreview)
    assert thought.text == ""
    first, second = play.of(MessagePreview)
    assert (first.text, second.text) == ("one ", "one two")
    assert first.key == second.key


def test_v2_a_whole_message_replaces_its_pieces() -> None:
    play = opened(2)
    play.start()
    play.update("agent_message_chunk", messageId="m", content=TEXT)
    play.update("agent_message", messageId="m", content=[{"type": "text", "text": "better"}])
    play.update("agent_message", messageId="m", content=None)
    assert [one.text for one in play.of(MessagePreview)] == ["words", "better", ""]


def test_v1_a_call_between_two_pieces_parts_the_message() -> None:
    play = opened(1)
    play.start()
    play.update("agent_message_chunk", content=TEXT)
    play.update("tool_call", toolCallId="c", title="x")
    play.update("agent_message_chunk", content=TEXT)
    one, two = play.of(MessagePreview)
    assert one.key != two.key and two.text == "words"


def test_null_leaves_or_clears_by_version() -> None:
    for version, title in ((1, "Run"), (2, None)):
        play = opened(version)
        play.start()
        play.update("tool_call_update", toolCallId="c", title="Run", name="sh", rawInput={"a": 1}, status="in_progress")
        play.update("tool_call_update", toolCallId="c", title=None, status="pending", _meta={"v": {"parentToolUseId": "p"}})
        first, second = play.of(CallPreview)
        assert first == CallPreview(call="c", name="sh", title="Run", input='{"a": 1}', running=True)
        assert (second.title, second.running, second.parent) == (title, False, "p")


def test_a_call_that_has_ended_is_not_shown_again() -> None:
    play = opened(1)
    play.start()
    play.update("tool_call", toolCallId="c", title="One")
    play.update("tool_call_update", toolCallId="c", status="completed")
    assert play.update("tool_call_update", toolCallId="c", title="Late") == []
    assert play.update("tool_call", toolCallId="c", title="Two") == [CallPreview(call="c", title="Two")]


def test_output_is_the_bounded_tail() -> None:
    play = opened(2)
    play.start()
    play.update("tool_call_update", toolCallId="c", status="in_progress", content=[{"type": "terminal", "terminalId": "t"}])
    base64 = pytest.importorskip("base64")
    whole = b"".join(b"line %d \xc3\xa9\n" % number for number in range(30_000))
    for start in range(0, len(whole), 5_001):
        play.update("terminal_output_chunk", terminalId="t", data=base64.b64encode(whole[start : start + 5_001]).decode())
    for output in play.of(OutputPreview):
        size = len(output.text.encode())
        assert size <= OUTPUT_BYTES and len(output.text.splitlines()) <= OUTPUT_LINES
        assert "\ufffd" not in output.text
    last_one = play.of(OutputPreview)[-1]
    shown = last_one.text.encode()
    assert whole.endswith(shown)
    assert last_one.omitted_bytes + len(shown) == len(whole)


def test_the_tail_of_one_long_line_begins_with_a_whole_character() -> None:
    for shift in range(4):
        text, omitted = ending(b"x" * shift + "\N{MUSICAL SYMBOL G CLEF}".encode() * 40_000)
        assert set(text) == {"\N{MUSICAL SYMBOL G CLEF}"}
        assert OUTPUT_BYTES - 4 < len(text.encode()) <= OUTPUT_BYTES
        assert omitted + len(text.encode()) == shift + 160_000


def test_half_a_character_at_the_end_waits_for_its_rest() -> None:
    for whole in ("é", "€", "\N{MUSICAL SYMBOL G CLEF}"):
        data = whole.encode()
        for cut in range(1, len(data)):
            assert ending(b"a" + data[:cut])[0] == "a"
        assert ending(b"a" + data)[0] == "a" + whole
    assert ending(b"a\xff")[0] == "a\ufffd"


def test_messages_are_bounded() -> None:
    play = opened(1)
    play.start()
    for _ in range(40):
        play.update("agent_message_chunk", content={"type": "text", "text": "é" * 5_000})
    assert all(len(one.text.encode()) <= TEXT_BYTES for one in play.of(MessagePreview))


def test_a_child_session_shows_no_previews_but_its_requests_do_open() -> None:
    play = opened(2)
    play.start()
    child = {"sessionId": "child", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "x", "title": "X"}}
    assert play.hear({"jsonrpc": "2.0", "method": "session/update", "params": child}) == []
    play.hear(
        {
            "jsonrpc": "2.0",
            "id": 4,
            "method": "session/request_permission",
            "params": {"sessionId": "child", "title": "May I?", "options": OPTIONS},
        }
    )
    assert [one.request_id for one in play.open] == ["4"]


def test_a_mode_that_changes_is_noted() -> None:
    play = opened(1)
    play.start()
    assert Noted("mode: plan") in play.update("current_mode_update", currentModeId="plan")


# -- anything at all ------------------------------------------------------------------------------------------------

KINDS = ["tool_call", "tool_call_update", "agent_message_chunk", "agent_message", "terminal_update", "state_update",
         "terminal_output_chunk", "tool_call_content_chunk", "config_option_update", "current_mode_update", "later"]
METHODS = ["session/update", "session/request_permission", "elicitation/create", "fs/read_text_file", "$/cancel_request", "x"]
NAMES = ["sessionUpdate", "toolCallId", "content", "status", "rawInput", "messageId", "terminalId", "data", "state", "options",
         "_meta", "output", "stopReason", "type", "text", "requestId", "url", "mode", "requestedSchema", "toolCall", "subject"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=5) | st.sampled_from([*KINDS, "s1", "idle", "running"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
updates = st.builds(
    lambda kind, more: {"method": "session/update", "params": {"sessionId": "s1", "update": {**more, "sessionUpdate": kind}}},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(NAMES), anything, max_size=6),
)
frames = st.one_of(
    st.builds(lambda value: json.dumps({"jsonrpc": "2.0", **value}).encode(), updates),
    st.builds(
        lambda method, number, params: json.dumps({"method": method, "id": number, "params": params}).encode(),
        st.sampled_from(METHODS), anything, anything,
    ),
    st.builds(lambda number, told: json.dumps({"id": number, **told}).encode(), st.integers(0, 4),
              st.fixed_dictionaries({}, optional={"result": anything, "error": anything})),
    anything.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=20),
)


@given(st.sampled_from([1, 2]), st.lists(frames, max_size=12))
def test_no_frame_breaks_the_client(version: int, many: list[bytes]) -> None:
    play = opened(version)
    play.start()
    for frame in many:
        play.hear(frame)
        if play.of(Ended):
            break
    for asked in play.open:
        play.answer(asked.request_id, Cancelled())
    play.take(play.client.gone(0, None))
    assert len(play.of(Ended)) == 1
    assert play.open == []


@given(st.lists(frames, max_size=6))
def test_no_handshake_breaks_the_client(many: list[bytes]) -> None:
    play = Play(Wish(cwd=CWD, mode="plan"))
    for frame in many:
        play.hear(frame)
    play.take(play.client.gone(0, None))
    ends = play.of(Ended)
    assert len(ends) == (0 if play.of(Opened) else 1)
    assert all(isinstance(one.result, NotStarted) for one in ends)
