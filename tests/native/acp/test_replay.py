"""Every capture played through our client: requests open and close, turns end, and the record is the import's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callsheet.harness.acp import Known
from callsheet.harness.acp.survey import Survey
from callsheet.seam import (
    CallPreview,
    Completed,
    Ended,
    Failed,
    Interrupted,
    MessagePreview,
    Opened,
    OutputPreview,
    Permission,
    RequestClosed,
    RequestOpened,
)
from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES
from tests.native.acp.conftest import Sheet, sheet_of
from tests.native.acp.playing import opened, replayed
from tests.native.acp.test_captures import captures

ENDS = {"completed": Completed, "interrupted": Interrupted, "failed": Failed}
AGAIN = ("live-then-load", "live-then-resume")
"""Captures whose client loads its own session again afterwards; ours opens one session a connection."""
FACTS = ("tool_call", "tool_result", "permission", "input_request", "terminal", "turn", "plan", "usage", "subagent")


def facts(sheet: Sheet) -> list[dict[str, Any]]:
    """What every stream says in the end, without where it stands."""
    found = []
    for stream in sheet.streams:
        for kind in FACTS:
            for one in sheet.last(kind, stream):
                kept = {name: told for name, told in one.items() if name not in ("id", "seq", "ts", "supersedes")}
                native = kept.pop("native", {})
                found.append({**kept, "of": native.get("command"), "stream": stream})
    return sorted(found, key=repr)


def test_every_turn_ends_as_the_record_says(shared: Path) -> None:
    seen = 0
    for path in captures(shared):
        play, prompts = replayed(path)
        assert len(play.of(Opened)) == 1, path
        turns = [one["status"] for one in sheet_of(path.read_bytes()).last("turn")]
        ends = [one.result for one in play.of(Ended)]
        if not ends:
            # The capture stops before the turn does: the agent was killed, or hangs.
            assert turns == ["running"] * prompts, path
            (last,) = play.client.gone(137, None)[-1:] if prompts else [None]
            assert prompts == 0 or isinstance(last, Ended), path
            continue
        assert [type(end) for end in ends] == [ENDS[status] for status in turns[:1]], path
        seen += 1
    assert seen > 60


def test_every_request_opens_and_closes(shared: Path) -> None:
    seen = 0
    for path in captures(shared):
        play, _ = replayed(path)
        sheet = sheet_of(path.read_bytes())
        recorded = {
            one["requestId"] for stream in sheet.streams for kind in ("permission", "input_request")
            for one in sheet.last(kind, stream)
        }
        opened = [one.request for one in play.of(RequestOpened)]
        assert {one.request_id for one in opened} == recorded, path
        assert {one.request_id for one in play.of(RequestClosed)} == recorded, path
        for one in opened:
            if isinstance(one, Permission):
                (record,) = [told for told in sheet.last("permission") if told["requestId"] == one.request_id]
                assert [option.option_id for option in one.options] == [
                    option["optionId"] for option in record["options"]
                ], path
                assert one.call == record.get("subject", {}).get("callId"), path
        seen += len(opened)
    assert seen >= 26


def test_the_record_of_a_live_run_is_the_import_s(shared: Path) -> None:
    same = 0
    for path in captures(shared):
        if path.parent.name.endswith(AGAIN):
            continue
        play, _ = replayed(path)
        ours, theirs = facts(sheet_of(play.data)), facts(sheet_of(path.read_bytes()))
        if path.parent.name.endswith("perm-error"):
            # That client answered with an error; ours left the request open.
            assert len(ours) == len(theirs)
            continue
        assert ours == theirs, path
        same += 1
    assert same > 65


def test_what_a_fold_finds_out_by_and_by_is_what_a_survey_knows(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live connection cannot look ahead: it revises, and ends with what an import says at once."""
    told = 0
    survey = Survey.run
    for path in captures(shared):
        if path.parent.name.endswith(AGAIN):
            continue  # in a replay nothing shows who spoke anew
        monkeypatch.setattr(Survey, "run", survey)
        ahead = facts(sheet_of(path.read_bytes()))
        monkeypatch.setattr(Survey, "run", lambda self: Known(titles=survey(self).titles))
        by_and_by = facts(sheet_of(path.read_bytes()))
        assert ahead == by_and_by, path
        told += sum("content" in one for one in by_and_by)
    assert told > 15


def test_previews_are_bounded_and_of_calls_that_run(shared: Path) -> None:
    shown = 0
    for path in captures(shared):
        play, _ = replayed(path)
        calls = {one.call for one in play.of(CallPreview)}
        for output in play.of(OutputPreview):
            assert output.call in calls, path
            assert len(output.text.encode()) <= OUTPUT_BYTES and output.text.count("\n") <= OUTPUT_LINES, path
            shown += 1
        sheet = sheet_of(path.read_bytes())
        said = {text for author in ("model",) for text in sheet.texts(author)}
        for message in {one.key: one for one in play.of(MessagePreview)}.values():
            assert any(message.text in text for text in said), (path, message)
    assert shown > 30


def test_an_agent_that_runs_on_has_its_stream_live_too(monkeypatch: pytest.MonkeyPatch) -> None:
    play = opened(2)
    play.start()
    play.update("state_update", state="running")
    play.update("subagent_update", sessionId="child", title="Look", state={"state": "running"})
    play.update("subagent_update", sessionId="other", title="Never speaks", state={"state": "running"})
    text = {"type": "text", "text": "Here."}
    said = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text}
    play.hear({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "child", "update": said}})
    ahead = facts(sheet_of(play.data))
    survey = Survey.run
    monkeypatch.setattr(Survey, "run", lambda self: (survey(self), Known())[1])
    by_and_by = sheet_of(play.data)
    assert facts(by_and_by) == ahead
    agents = {one["agentId"]: one for one in by_and_by.last("subagent")}
    assert agents["child"]["stream"] == "child"
    assert (agents["child"]["name"], agents["child"]["status"]) == ("Look", "running")
    assert "stream" not in agents["other"]
