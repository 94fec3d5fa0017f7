"""What a session record says that frames tell late (titles, who started an agent): a recording has it, as an import."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.audit import audit_bundle
from callsheet.live import Session, open_session, recover
from callsheet.live import recorder as recording
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import Completed, Recorded, Wish
from callsheet.testing.check_live import imports_alike
from callsheet.testing.fake import FAKE, fake_command
from callsheet.testing.live_run import QUICK, Ran, found_at, run_turn

MANY = 40


def titled(title: str | None, session: str = "fake-session") -> dict[str, Any]:
    update = {"sessionUpdate": "session_info_update", "title": title}
    params = {"sessionId": session, "update": update}
    return {"frame": {"jsonrpc": "2.0", "method": "session/update", "params": params}}


def ran(tmp_path: Path, *turn: dict[str, Any]) -> Ran:
    return asyncio.run(run_turn(FAKE, fake_command(turn=list(turn)), tmp_path / "out"))


def records(bundle: Path) -> list[dict[str, Any]]:
    opened = Bundle(bundle)
    return [
        json.loads(line) for entry in opened.manifest.streams for line in opened.read(entry.file).splitlines()
    ]


def held(bundle: Path) -> list[dict[str, Any]]:
    """The records of a bundle that keeps every promise."""
    assert list(check_bundle(Bundle(bundle))) == []
    assert list(audit_bundle(Bundle(bundle))) == []
    assert imports_alike(FAKE, bundle) == []
    return records(bundle)


@pytest.mark.parametrize(
    ("turn", "title", "kept"),
    [
        ([titled("A title"), {"say": "x"}], "A title", 0),
        ([{"say": "x"}, titled("First"), {"say": "y"}, titled("Last"), {"say": "z"}], "Last", 1),
        ([titled("Same"), titled("Same")], "Same", 1),
        ([titled("First"), titled(None)], None, 2),
        ([titled("First"), titled(None), titled("Again")], "Again", 2),
        ([titled(""), titled("\u202e\x1b[31mred\n")], "\u202e\x1b[31mred\n", 1),
        ([titled("x" * 60_000)], "x" * 60_000, 0),
    ],
)
def test_a_title(turn: list[dict[str, Any]], title: str | None, kept: int, tmp_path: Path) -> None:
    one = ran(tmp_path, *turn)
    assert one.result == Completed("end_turn")
    assert one.closed is not None
    assert one.closed.problems == ()
    found = held(one.bundle)
    assert found[0].get("title") == title
    unmapped = [one for one in found if one.get("nativeType") == "session/update/session_info_update"]
    assert len(unmapped) == kept


def test_each_session_has_its_own(tmp_path: Path) -> None:
    one = ran(tmp_path, titled("Of another", "other"), {"say": "x"}, titled("Of this"))
    found = held(one.bundle)
    assert {head["nativeSessionId"]: head["title"] for head in found if head["type"] == "session"} == {
        "fake-session": "Of this",
        "other": "Of another",
    }


@pytest.mark.parametrize("first", ["agent", "parent"])
def test_an_agent_has_its_parent_whoever_speaks_first(first: str, tmp_path: Path) -> None:
    update = {
        "sessionUpdate": "subagent_update",
        "sessionId": "kid",
        "title": "Look",
        "state": {"state": "running"},
    }
    params = {"sessionId": "fake-session", "update": update}
    named = {"frame": {"jsonrpc": "2.0", "method": "session/update", "params": params}}
    turn = [titled("Of the agent", "kid"), named]
    one = ran(tmp_path, *(turn if first == "agent" else reversed(turn)))
    # That an agent has a stream, a live fold finds out when its session speaks: the import has fewer records.
    assert list(check_bundle(Bundle(one.bundle))) == []
    assert list(audit_bundle(Bundle(one.bundle))) == []
    heads = [head for head in records(one.bundle) if head["type"] == "session"]
    assert [(head["nativeSessionId"], head.get("parent")) for head in heads] == [
        ("fake-session", None),
        ("kid", {"session": "fake-session"}),
    ]


def test_a_reader_that_comes_late_reads_every_record(tmp_path: Path) -> None:
    """The stream's head has grown under the places that it remembers."""

    async def go() -> tuple[Path, list[Any]]:
        turn = [titled("A title"), *({"call": f"c{number}"} for number in range(MANY))]
        limits = msgspec.structs.replace(QUICK, window=2)
        found = found_at(fake_command(turn=turn))
        session = await open_session(
            FAKE, found, Wish(cwd=str(tmp_path)), out=tmp_path / "out", limits=limits
        )
        assert isinstance(session, Session)
        turned = session.start("Do it.")
        await turned.result()
        closed = await session.close()
        return closed.bundle, [event.record async for event in turned if isinstance(event, Recorded)]

    bundle, read = asyncio.run(go())
    found = records(bundle)
    assert found[0]["title"] == "A title"
    assert [one.id for one in read] == [one["id"] for one in found[: len(read)]]
    assert len(read) > MANY


def test_a_recorder_that_is_killed_after_it(
    start: Callable[..., Any], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    turn = [titled("A title"), {"call": "c1"}, {"sleep": 30}]
    process = start("run", "fake", "--agent", agent_of(turn=turn), "--json", "--out", str(out), "--", "Go.")
    while b'"tool_call"' not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    (bundle,) = out.iterdir()
    found = recover(bundle, (FAKE,))
    assert found is not None
    assert found.same
    assert held(bundle)[0]["title"] == "A title"


def test_a_recorder_that_ends_between_the_head_and_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording, "seal", fails)
    one = ran(tmp_path, titled("A title"), {"say": "x"})
    assert one.closed is not None
    assert one.closed.problems != ()
    assert records(one.bundle)[0]["title"] == "A title"
    monkeypatch.undo()
    found = recover(one.bundle, (FAKE,))
    assert found is not None
    assert (found.added, found.same) == (0, True)
    assert held(one.bundle)[0]["title"] == "A title"
