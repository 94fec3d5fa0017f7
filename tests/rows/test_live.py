"""Rows that go on: whatever comes in which order, they end in the rows of a reader of the whole; and what is told to
change is enough to keep a picture of them true."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows.test_any_stream import SHUFFLED

from callsheet.errors import SourceError
from callsheet.library.opening import Reading, open_sessions
from callsheet.records import ENCODER, Record, decode
from callsheet.records.stream import Entry, read_stream
from callsheet.rows import Nested, Sheet, View, nested_rows
from callsheet.rows.live import LiveRows
from callsheet.seam import (
    CallPreview,
    Event,
    MessagePreview,
    OutputPreview,
    Permission,
    Recorded,
    RequestClosed,
    RequestOpened,
    ThoughtPreview,
    TurnChanged,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
VIEW = View(harness=False)
Streams = dict[str, list[Record]]


def streams_of(source: Path) -> list[Streams]:
    found = []
    with open_sessions(str(source), Reading(), on_failure=lambda _: None) as sessions:
        for session in sessions:
            with session.sheets() as sheets:
                streams: Streams = {}
                for name, sheet in sheets.items():
                    sheet._file.seek(0)
                    entries = [entry for entry in read_stream(sheet._file) if isinstance(entry, Entry)]
                    streams[name] = [entry.record for entry in entries if isinstance(entry.record, Record)]
                found.append(streams)
    return found


def whole(streams: Streams) -> list[tuple[int, bytes]]:
    """The rows of a reader of the whole."""
    files = {name: io.BytesIO(ENCODER.encode_lines(records)) for name, records in streams.items() if records}

    def sheet_of(name: str) -> nullcontext[Sheet]:
        return nullcontext(Sheet(files[name], view=VIEW))

    return plain(nested_rows(next(iter(files)), list(files), sheet_of)) if files else []


def plain(rows: Iterable[Nested]) -> list[tuple[int, bytes]]:
    return [(item.depth, msgspec.json.encode(item.row)) for item in rows]


class Picture:
    """What a screen keeps of live rows: nothing but what it was told has changed."""

    def __init__(self, rows: LiveRows) -> None:
        self._rows = rows
        self.keys: list[int] = []
        self.seen: dict[int, tuple[int, bytes]] = {}

    def look(self) -> None:
        """Draws what changed."""
        change = self._rows.take()
        if change.anew:
            self.keys = [self._rows.key(at) for at in range(len(self._rows))]
            self.seen.clear()
        for at in change.added:
            self.keys.insert(at, self._rows.key(at))
        for at in [*range(len(self.keys))] if change.anew else [*change.added, *change.changed]:
            item = self._rows.nested(at)
            self.seen[self._rows.key(at)] = (item.depth, msgspec.json.encode(item.row))

    def check(self) -> None:
        """Holds the picture against the rows."""
        assert self.keys == [self._rows.key(at) for at in range(len(self._rows))]
        assert [self._rows.position(key) for key in self.keys] == list(range(len(self.keys)))
        assert len(set(self.keys)) == len(self.keys)
        now = [self._rows.nested(at) for at in range(len(self._rows))]
        assert [self.seen[key] for key in self.keys] == plain(now)
        told = [(self._rows.kind(at), self._rows.state(at)) for at in range(len(self._rows))]
        assert told == [(item.row.kind, item.row.state) for item in now]


def live_rows(streams: Streams) -> LiveRows:
    return LiveRows(lambda name, number: streams[name][number], view=VIEW)


def play(streams: Streams, events: Sequence[Event], looks: Sequence[int] = ()) -> LiveRows:
    rows = live_rows(streams)
    picture = Picture(rows)
    rows.apply(TurnChanged("running"))
    for number, event in enumerate(events):
        rows.apply(event)
        if number in looks:
            picture.look()
            picture.check()
    rows.apply(TurnChanged("settled"))
    picture.look()
    picture.check()
    return rows


def interleaved(streams: Streams, luck: random.Random) -> list[Event]:
    """The records of all streams, each stream in its order, one after another by luck; the session's own first."""
    left = {name: list(reversed(records)) for name, records in streams.items() if records}
    events: list[Event] = []
    main = next(iter(left))
    while any(left.values()):
        name = main if not events else luck.choice([name for name, records in left.items() if records])
        events.append(Recorded(name, left[name].pop()))
    return events


def held(streams: Streams, luck: random.Random) -> None:
    events = interleaved(streams, luck)
    for cut in {len(events), luck.randrange(len(events) + 1)}:
        part = events[:cut]
        seen: Streams = {name: [] for name in streams}
        for event in part:
            assert isinstance(event, Recorded)
            seen[event.stream].append(event.record)
        order = list(dict.fromkeys(event.stream for event in part if isinstance(event, Recorded)))
        rows = play(streams, part, sorted(luck.sample(range(len(part) + 1), min(len(part), 6))))
        assert plain(rows.nested(at) for at in range(len(rows))) == whole(
            {name: seen[name] for name in order}
        )
        told, counted = rows.counts(), rows.tally()
        for member in ("calls", "completed", "failed", "declined", "cancelled", "interrupted", "unconfirmed"):
            assert getattr(told, member) == getattr(counted, member)


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_a_session_that_goes_on_ends_in_the_rows_of_its_import(example: str) -> None:
    luck = random.Random(example)
    for streams in streams_of(EXAMPLES / example):
        held(streams, luck)


@pytest.mark.parametrize("room", ["claude-code", "codex", "acp", "openclaw"])
def test_captures_end_in_the_rows_of_their_import(shared: Path, room: str) -> None:
    luck = random.Random(room)
    sessions = 0
    for path in sorted((shared / "captures" / room).iterdir())[:6]:
        try:
            found = streams_of(path)
        except Exception:
            continue  # not every capture is one that can be named alone
        for streams in found[:3]:
            if any(streams.values()):
                held(streams, luck)
                sessions += 1
    assert sessions >= 4


def records_of(raw: Sequence[dict[str, Any]]) -> list[Record]:
    found = []
    for number, record in enumerate(raw):
        made = decode(msgspec.json.encode({"seq": number, "id": f"r{number}", **record}))
        assert isinstance(made, Record)
        found.append(made)
    return found


MORE: list[dict[str, Any]] = [
    *SHUFFLED,
    {"type": "tool_result", "callId": "a", "linkage": "exact", "status": "failed"},
    {"type": "subagent", "agentId": "x", "callId": "b", "stream": "child", "status": "running"},
    {"type": "terminal", "terminalId": "t", "callId": "a", "status": "running"},
    {"type": "terminal", "terminalId": "t", "callId": "a", "status": "exited", "exitCode": 1},
    {"type": "turn", "turnId": "u", "status": "failed"},
    {"type": "reasoning", "form": "summary", "content": [{"type": "text", "text": "think"}]},
    {"type": "reasoning", "form": "raw", "content": [{"type": "text", "text": "think"}]},
    {"type": "message", "author": "harness", "content": [{"type": "text", "text": "x"}]},
    {"type": "plan", "planId": "p", "callId": "b", "entries": []},
    {"type": "hook", "hookId": "h", "event": "Stop", "callId": "d"},
]
previews = st.sampled_from(
    [
        CallPreview(call="a", name="Bash", input='{"command": "ls"}'),
        CallPreview(call="b", name="Grep", input='{"pat'),
        CallPreview(call="z", title="never settles", running=True),
        OutputPreview(call="a", text="so far", omitted_bytes=9),
        OutputPreview(call="z", text="so far"),
        ThoughtPreview(key="k", text="hm"),
        MessagePreview(key="m", text="Well"),
        MessagePreview(key="m", text="Well, then"),
        RequestOpened(Permission(request_id="p", title="may I?", options=())),
        RequestOpened(Permission(request_id="q", title="and this?", options=())),
        RequestClosed("q", "withdrawn", "expired"),
    ]
)


@settings(max_examples=80, deadline=None)
@given(st.permutations(MORE), st.lists(st.tuples(st.integers(0, 30), previews), max_size=12), st.randoms())
def test_any_order_with_previews_ends_in_the_rows_of_the_whole(
    raw: list[dict[str, Any]], seen: list[tuple[int, Event]], luck: random.Random
) -> None:
    streams = {"main": records_of(raw), "child": records_of(MORE[:6])}
    events = interleaved(streams, luck)
    for at, event in seen:
        events.insert(min(at, len(events)), event)
    order = list(dict.fromkeys(event.stream for event in events if isinstance(event, Recorded)))
    rows = play(streams, events, sorted(luck.sample(range(len(events)), 8)))
    assert plain(rows.nested(at) for at in range(len(rows))) == whole({name: streams[name] for name in order})


def test_replayed_records_and_records_out_of_order_change_nothing() -> None:
    streams = {"main": records_of(MORE)}
    events = [Recorded("main", record) for record in streams["main"]]
    twice = play(streams, [*events[:9], *events[3:], *events])
    late = play(streams, [events[0], *reversed(events[1:])])
    for rows in (twice, late):
        assert plain(rows.nested(at) for at in range(len(rows))) == whole(streams)


def test_a_row_keeps_its_identity_from_preview_to_result() -> None:
    streams = {"main": records_of([MORE[0], MORE[4]])}
    rows = live_rows(streams)
    rows.apply(TurnChanged("running"))
    rows.apply(CallPreview(call="a", name="Bash", input='{"command": "l'))
    key = rows.key(0)
    seen = [rows.nested(0).row]
    for event in (
        Recorded("main", streams["main"][0]),
        OutputPreview(call="a", text="line", omitted_bytes=3),
        OutputPreview(call="a", text="line two", omitted_bytes=5),
        Recorded("main", streams["main"][1]),
    ):
        rows.apply(event)
        rows.take()
        assert (len(rows), rows.key(0), rows.position(key)) == (1, key, 0)
        seen.append(rows.nested(0).row)
    assert [row.state for row in seen] == ["running"] * 4 + ["completed"]
    shown = [(row.output.text, row.output.omitted_before) if row.output else None for row in seen]
    assert shown == [None, None, ("line", 3), ("line two", 5), ("x", None)]


def test_a_settled_turn_leaves_nothing_running() -> None:
    streams = {"main": records_of([MORE[0], MORE[1], MORE[5]])}
    rows = live_rows(streams)
    rows.apply(TurnChanged("running"))
    for record in streams["main"]:
        rows.apply(Recorded("main", record))
    rows.apply(ThoughtPreview(key="k", text=""))
    rows.apply(RequestOpened(Permission(request_id="p", title="may I?", options=())))
    rows.take()
    assert [rows.state(at) for at in range(len(rows))] == ["running", "completed", "running", "running"]
    rows.apply(TurnChanged("settled"))
    assert [rows.state(at) for at in range(len(rows))] == ["unconfirmed", "completed"]
    assert (rows.waiting, rows.take().anew) == ({}, True)
    # What an earlier turn left without a result is not running again in the next one.
    rows.apply(TurnChanged("starting"))
    assert [rows.state(at) for at in range(len(rows))] == ["unconfirmed", "completed"]


def test_many_records_are_read_again_not_held() -> None:
    calls = [{**MORE[0], "callId": f"c{number}"} for number in range(3_000)]
    streams = {"main": records_of(calls)}
    asked = []

    def fetch(name: str, number: int) -> Record:
        asked.append(number)
        return streams[name][number]

    rows = LiveRows(fetch, view=VIEW)
    rows.apply(TurnChanged("running"))
    for record in streams["main"]:
        rows.apply(Recorded("main", record))
    assert len(rows._recent) <= 512
    assert rows.nested(0).row.call_id == "c0"
    assert set(asked) == {0}


def test_the_end_of_a_turn_changes_what_was_open_and_makes_no_row() -> None:
    agent = {"type": "session", "format": "callsheet/1", "agent": {"name": "claude-code"}, "sources": []}
    raw = [agent]
    for number in range(40):
        raw.append({**MORE[0], "callId": f"c{number}"})
        raw.append({**MORE[4], "callId": f"c{number}"})
    raw.append({**MORE[0], "callId": "open"})
    streams = {"main": records_of(raw)}
    made = []

    def fetch(name: str, number: int) -> Record:
        made.append(number)
        return streams[name][number]

    rows = LiveRows(fetch, view=VIEW)
    rows.apply(TurnChanged("running"))
    for record in streams["main"]:
        rows.apply(Recorded("main", record))
    rows.take()
    rows._recent.clear()
    assert {rows.kind(at) for at in range(len(rows))} == {"command"}
    assert [rows.state(at) for at in range(40)] == ["completed"] * 40
    assert made == []
    assert rows.state(40) == "running"
    rows.apply(TurnChanged("settled"))
    assert (rows.take().changed, rows.state(40)) == ([40], "unconfirmed")


LOGS = sorted(
    path
    for folder in ("acp", "claude-code/frames", "codex/app-server")
    for path in (EXAMPLES / folder).glob("*.jsonl")
)


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_a_frame_log_cut_at_any_frame_ends_in_the_rows_of_its_import(log: Path, tmp_path: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    luck = random.Random(log.stem)
    for cut in sorted({len(lines), *luck.sample(range(1, len(lines)), min(12, len(lines) - 1))}):
        part = tmp_path / f"{cut}" / log.name
        part.parent.mkdir()
        part.write_bytes(b"".join(lines[:cut]))
        try:
            sessions = streams_of(part)
        except SourceError:
            assert cut < 3, "a log of a few frames may not say yet what it is"
            continue
        for streams in sessions:
            held(streams, luck)
