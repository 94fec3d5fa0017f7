"""Which calls may be cancelled by themselves: what an agent advertises now, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.harness.acp.cancelling import KEPT_MOST
from callsheet.seam import Accepted, Noted, Rejected
from tests.native.acp.playing import Play, opened

OFFERED: dict[str, Any] = {"cancel": {}}


def asked(play: Play, call: str) -> tuple[str, Any] | None:
    """The request that cancels a call."""
    before = len(play.sent)
    reply = play.client.cancel_call(call)
    play.take(reply.steps)
    if isinstance(reply.receipt, Rejected):
        assert len(play.sent) == before
        return None
    assert isinstance(reply.receipt, Accepted)
    (frame,) = play.sent[before:]
    return frame["method"], frame["params"]


CALL = {"toolCallId": "c1", "status": "in_progress"}
SHOWS = {**CALL, "content": [{"type": "terminal", "terminalId": "t1"}]}
CHUNK = {"toolCallId": "c1", "content": {"type": "terminal", "terminalId": "t1"}}
AS_CALL = ("tool_call/cancel", {"sessionId": "s1", "toolCallId": "c1"})
AS_TERMINAL = ("terminal/cancel", {"sessionId": "s1", "terminalId": "t1"})


@pytest.mark.parametrize(
    ("updates", "wanted"),
    [
        ([("tool_call_update", {**CALL, "capabilities": OFFERED})], AS_CALL),
        ([("tool_call_update", {**CALL, "capabilities": OFFERED}), ("tool_call_update", CALL)], AS_CALL),
        ([("tool_call_update", CALL)], None),
        ([("tool_call_update", {**CALL, "capabilities": {"cancel": None}})], None),
        ([("tool_call_update", {**CALL, "capabilities": {"cancel": True}})], None),
        ([("tool_call_update", {**CALL, "capabilities": OFFERED}), ("tool_call_update", {**CALL, "capabilities": None})], None),
        ([("tool_call_update", {**CALL, "capabilities": OFFERED}), ("tool_call_update", {**CALL, "status": "completed"})], None),
        ([("terminal_update", {"terminalId": "t1", "capabilities": OFFERED}), ("tool_call_update", SHOWS)], AS_TERMINAL),
        ([("tool_call_update", CALL), ("tool_call_content_chunk", CHUNK), ("terminal_update", {"terminalId": "t1", "capabilities": OFFERED})], AS_TERMINAL),
        # The process runs on although its call has ended.
        ([("tool_call_update", {**SHOWS, "status": "completed"}), ("terminal_update", {"terminalId": "t1", "capabilities": OFFERED})], AS_TERMINAL),
        ([("tool_call_update", SHOWS), ("terminal_update", {"terminalId": "t1", "capabilities": OFFERED, "exitStatus": {}})], None),
        ([("tool_call_update", SHOWS), ("terminal_update", {"terminalId": "t2", "capabilities": OFFERED})], None),
        ([("terminal_update", {"terminalId": ["t1"], "capabilities": 5}), ("tool_call_update", {"toolCallId": 5, "capabilities": OFFERED})], None),
    ],
)
def test_only_what_is_advertised_may_be_cancelled(updates: list[tuple[str, Any]], wanted: Any) -> None:
    play = opened(2)
    play.start()
    for name, members in updates:
        play.update(name, **members)
    assert asked(play, "c1") == wanted


def test_version_1_has_no_such_request() -> None:
    play = opened(1)
    play.start()
    play.update("tool_call", **CALL, capabilities=OFFERED)
    assert asked(play, "c1") is None


def test_an_agent_that_does_not_cancel_it_after_all_is_heard() -> None:
    play = opened(2)
    play.start()
    play.update("tool_call_update", **CALL, capabilities=OFFERED)
    assert asked(play, "c1") == AS_CALL
    play.reply(error={"code": -32602, "message": "it is over"})
    assert play.of(Noted) == [Noted("the call was not cancelled: it is over")]
    assert asked(play, "c1") == AS_CALL
    play.reply({})
    assert len(play.of(Noted)) == 1


def test_what_is_kept_in_mind_is_bounded() -> None:
    play = opened(2)
    play.start()
    for number in range(KEPT_MOST + 1):
        play.update("tool_call_update", toolCallId=f"c{number}", capabilities=OFFERED)
    assert asked(play, "c0") is None
    assert asked(play, f"c{KEPT_MOST}") is not None
