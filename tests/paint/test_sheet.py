"""Whole sheets: how they look, and that nothing in them can act."""

from __future__ import annotations

import json
import re

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from callsheet.paint import (
    Look,
    Notes,
    coloured,
    line_width,
    paint_foot,
    paint_head,
    paint_noted,
    paint_row,
    paint_rows,
    plain,
)
from callsheet.paint.row import NARROWEST
from callsheet.paint.words import LABELS, MARKS, duration_words
from callsheet.pairing import Tally
from callsheet.records import Agent, Patch, Provider, Session, SourceEntry
from callsheet.records.bundle import Diagnostic
from callsheet.rows import (
    ROW_KINDS,
    AgentShown,
    ChangeShown,
    Count,
    Everywhere,
    NativePlace,
    Nested,
    Output,
    PermissionShown,
    Reached,
    Remark,
    Row,
)

SGR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


BASE = {
    "row": "r0",
    "record": "r0",
    "kind": "command",
    "state": "completed",
    "title": "make",
    "pairing": "paired",
    "requestedBy": "model",
}


def row(**members: object) -> Row:
    return msgspec.json.decode(msgspec.json.encode({**BASE, **members}), type=Row)


def text(value: str, **more: object) -> dict[str, object]:
    return {"text": value, "truncated": False, **more}


def drawn(
    item: Row, width: int = 60, depth: int = 0, *, full: bool = False, audit: bool = False
) -> list[str]:
    return [plain(line) for line in paint_row(item, Look(width=width, full=full, audit=audit), depth)]


def test_a_command() -> None:
    item = row(
        name="Bash",
        state="failed",
        exitCode=2,
        durationMs=4870,
        permissions=[{"decision": "allow_once", "decidedBy": "policy"}],
        output={"text": "".join(f"line {n}\n" for n in range(30)), "truncated": False, "member": "content"},
    )
    assert drawn(item) == [
        "✗ command  make                        Bash · exit 2 · 4.9 s",
        "    failed · allowed by policy",
        "    │ line 0",
        "    │ line 1",
        "    │ line 2",
        "    │ line 3",
        "    │ line 4",
        "    ┆ … 20 more lines",
        "    │ line 25",
        "    │ line 26",
        "    │ line 27",
        "    │ line 28",
        "    │ line 29",
    ]


def test_silences_are_said() -> None:
    item = row(notRecorded=["content", "exec.exitCode", "durationMs"], output=text("x"))
    assert drawn(item, 80)[1] == "    what reached the model: not recorded · exit code: not recorded"
    assert drawn(row(requestedBy=None))[1] == "    who asked: not recorded"
    assert drawn(row(requestedBy="user"))[1] == "    requested by user"


def test_who_declined() -> None:
    def words(*permissions: dict[str, str]) -> str:
        return drawn(row(state="declined", permissions=list(permissions)), 90)[1].strip()

    reject = {"decision": "reject_once"}
    assert (
        words({**reject, "decidedBy": "policy", "rule": "Bash(rm:*)"})
        == "declined by policy (rule Bash(rm:*))"
    )
    assert words({**reject, "decidedBy": "user"}) == "declined by user"
    assert words(reject) == words() == "declined (who decided: not recorded)"
    assert words({**reject, "decidedBy": "hook"}, {"decision": "allow_once"}) == (
        "declined by hook · allowed once (who decided: not recorded)"
    )
    assert drawn(row(permissions=[{}]))[1].strip() == "asked, no decision is recorded"


def test_unconfirmed_says_why() -> None:
    assert drawn(row(state="unconfirmed", pairing="dangling", reason="no_result"))[:2] == [
        "? command  make",
        "    unconfirmed: no result is recorded",
    ]
    orphan = row(
        state="unconfirmed", pairing="orphan", reason="no_call", status="completed", requestedBy=None
    )
    assert drawn(orphan, 80)[1] == "    unconfirmed: its call is not recorded (the source says completed)"


def test_a_change_shows_its_patch_and_hides_the_sentence_about_it() -> None:
    hunks = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}]
    change = {
        "path": "/home/dev/app/x.py",
        "kind": "modify",
        "patch": {"format": "hunks", "value": hunks},
        "state": "applied",
    }
    item = row(
        kind="file_change",
        title="x.py",
        name="Edit",
        changes=[change],
        output=text("done"),
    )
    look = Look(width=60, folders=("/home/dev/app",))
    assert [plain(line) for line in paint_row(item, look)] == [
        "✓ change   x.py                                 Edit · +1 -1",
        "    │ @@ -1,1 +1,1 @@",
        "    │ -a",
        "    │ +b",
        "    ┆ … 1 line of output",
    ]
    proposed = row(kind="file_change", title="edit", changes=[{**change, "state": "proposed"}])
    assert drawn(proposed)[1] == "    modify /home/dev/app/x.py +1 -1 (proposed)"


def test_an_error_is_not_said_twice() -> None:
    item = row(state="failed", error="Error: boom", output=text("Exit code 1\nboom\n"))
    assert sum("boom" in line for line in drawn(item)) == 1
    assert "    │ Error: bang" in drawn(row(state="failed", error="Error: bang", output=text("boom")))


def test_long_titles_continue_below_and_are_cut_with_a_number() -> None:
    lines = drawn(row(title="\n".join(f"echo {n}" for n in range(9)), name="Bash"))
    assert lines[:3] == [
        "✓ command  echo 0                                       Bash",
        "           echo 1",
        "           … 7 more lines",
    ]
    assert len(drawn(row(title="x" * 200), full=True)) > 4


def test_messages_and_thoughts() -> None:
    said = row(
        kind="message",
        author="user",
        pairing=None,
        title="hi",
        output=text("hi\nthere"),
    )
    assert drawn(said) == ["> user     hi", "           there"]
    thought = row(kind="thought", pairing=None, durationMs=900, output=text("**Plan**\na\nb\nc"))
    assert drawn(thought) == [
        "~ thought  **Plan**                                   900 ms",
        "           … 3 more lines",
    ]
    assert drawn(row(kind="message", author="user", pairing=None, output=text(""))) == [
        "> user     (no text)"
    ]


def test_what_the_harness_says_is_small_and_collapsed() -> None:
    def said(author: str, text: str) -> Nested:
        return Nested(
            0, row(kind="message", author=author, pairing=None, output={"text": text, "truncated": False})
        )

    rows = [
        said("harness", "a\n b"),
        said("harness", "c"),
        said("hook", "d\ne"),
        said("user", "f"),
        said("system", "g"),
    ]
    assert [plain(line) for line in paint_rows(rows, Look(width=60))] == [
        "· harness  2 messages, 5 characters",
        "· hook     d e",
        "",
        "> user     f",
        "· system   g",
    ]
    assert len(list(paint_rows(rows, Look(width=60, audit=True)))) == 8


def test_agents_nest_and_events_stand_below_their_call() -> None:
    assert drawn(row(title="ls"), depth=2)[0] == "┊ ┊ ✓ command  ls"
    hook = row(
        kind="hook",
        pairing=None,
        title="pre",
        state="declined",
        status="blocked",
        parent="r1",
        requestedBy=None,
    )
    assert drawn(hook) == ["  ⊘ hook     pre", "      blocked"]


def test_providers_agents_remarks() -> None:
    item = row(
        kind="mcp_tool",
        provider={"kind": "mcp", "server": "gh", "tool": "get", "identity": "exact"},
        agents=[{"agentId": "g", "name": "Explore", "status": "completed"}],
        remarks=[{"member": "exec.exitCode", "note": "loose"}, {"member": "input", "note": "quiet"}],
        exitCode=-1,
    )
    assert (
        drawn(item, 100)[1]
        == "    mcp server gh, tool get · agent Explore g completed · note: exit code: loose"
    )
    assert drawn(row(provider={"kind": "mcp", "identity": "unknown"}))[1] == "    mcp, server: not recorded"
    assert "quiet" in "".join(drawn(item, 100, audit=True))


def test_what_was_cut_says_by_whom() -> None:
    cut = {"text": "x", "truncated": True, "member": "content", "originalBytes": 45000}
    assert drawn(row(output=cut))[-1] == "    ┆ (the model got a part of it; 45,000 bytes in all)"
    preview = {"text": "x", "truncated": True, "member": "preview"}
    assert "while it ran" in drawn(row(output=preview))[-1]
    assert drawn(row(output=text("")))[-1] == "    ┆ (no output)"


def test_head_and_foot() -> None:
    session = Session(
        format="callsheet/1",
        agent=Agent(name="claude-code", version="2.1.332"),
        native_session_id="abc",
        title="Fix it",
        sources=[SourceEntry(id="s0", kind="k", path="/home/dev/" + "x" * 90 + ".jsonl", size=1234)],
    )
    counts = Tally(calls=3, completed=1, declined=1, unconfirmed=1, gaps=2, unmapped=7, orphan=1)
    head = [plain(line) for line in paint_head(session, counts, Look(width=60))]
    assert head[:2] == ["Claude Code 2.1.332  abc", "Fix it"]
    assert head[2].startswith("…x")
    assert head[2].endswith(".jsonl (1,234 bytes)")
    assert (
        " ".join(head[3:-1])
        == "3 calls · 1 completed · 1 declined · 1 unconfirmed 1 unpaired result · 2 gaps"
    )
    left_out = {"thoughts_raw": 1, "harness_messages": 3}
    foot = [plain(line) for line in paint_foot(counts, Tally(), left_out, Look(width=200))]
    assert foot[1:] == [
        (
            "not drawn: 1 raw thought (--thoughts) · "
            "3 messages of the harness, 7 native lines that nothing maps (--audit-view)"
        )
    ]
    one = paint_foot(Tally(unmapped=1), Tally(), {"thoughts_unstated": 1}, Look(width=200))
    assert plain(one[1]) == (
        "not drawn: 1 thought of a kind that the source does not state (--thoughts) · "
        "1 native line that nothing maps (--audit-view)"
    )
    assert paint_foot(Tally(), Tally(), {}, Look()) == []
    others = Tally(records=4, calls=2, completed=2, unmapped=1)
    assert [plain(line) for line in paint_foot(counts, others, {}, Look(width=80))][1:] == [
        "2 calls in streams of other sessions · 2 completed",
        "not drawn: 8 native lines that nothing maps (--audit-view)",
    ]
    assert plain(paint_head(None, Tally(), Look())[0]) == "a stream without a session record"


def test_a_caution_of_many_rows_is_told_once() -> None:
    def noted(*members: str) -> Row:
        return row(
            exitCode=3, durationMs=12, remarks=[{"member": name, "note": f"of {name}"} for name in members]
        )

    rows = [noted("durationMs"), noted("exec.exitCode", "durationMs"), noted("permission.decision"), noted()]
    notes = Notes()
    lines = [plain(line) for line in paint_rows([Nested(0, item) for item in rows], Look(width=60), notes)]
    assert [line.split("make")[1].strip() for line in lines if "make" in line] == [
        "exit 3 · 12 ms [1]",
        "exit 3 [2] · 12 ms [1]",
        "exit 3 · 12 ms",
        "exit 3 · 12 ms",
    ]
    assert [line.strip() for line in lines if "note" in line] == ["note [3]"]
    assert notes.told == [
        "[1] duration: of durationMs",
        "[2] exit code: of exec.exitCode",
        "[3] decision: of permission.decision",
    ]
    foot = [plain(line) for line in paint_foot(Tally(), Tally(), {}, Look(width=60), notes.told)]
    assert foot[1:] == notes.told
    endless = Notes()
    told = [plain(line) for item in rows for line in paint_noted(item, Look(width=60), endless)]
    assert [told.count(note) for note in notes.told] == [1, 1, 1]
    assert told.index(notes.told[0]) == 1


def test_what_is_silent_everywhere_is_said_in_the_head() -> None:
    silent = row(requestedBy=None, notRecorded=["content", "name"], reachedModel={"reason": "why"})
    look = Look(width=60, everywhere=Everywhere(frozenset({"requestedBy", "content"}), "why"))
    assert [plain(line) for line in paint_row(silent, look)][1:] == ["    tool name: not recorded"]
    counts = Tally(calls=2, completed=2, results=2, unshown=2, undecided=2)
    assert [plain(line) for line in paint_head(None, counts, look, of_agents=1)][1:-1] == [
        "2 calls, 1 of them of subagents · 2 completed",
        "reached the model: not recorded for 2 results (why)",
        "not recorded for any call: who asked, who allowed it",
    ]


def test_every_kind_and_state_has_its_words() -> None:
    assert set(LABELS) == set(ROW_KINDS)
    assert all(len(label) <= 8 for label in LABELS.values())
    for kind in ROW_KINDS:
        for state in MARKS:
            assert drawn(row(kind=kind, state=state))


def test_durations() -> None:
    spoken = [duration_words(value) for value in (0, 412, 4870, 59_960, 90_000, 7_260_000)]
    assert spoken == ["0 ms", "412 ms", "4.9 s", "60.0 s", "1 min 30 s", "2 h 01 min"]
    for odd in (-5, 1e300):
        assert duration_words(odd).endswith(" ms")


words = st.text(
    st.characters() | st.sampled_from("\x1b\x9b\r\n\t\u202e\u200b\ud83d[]/漢👩\u0301"), max_size=40
)
maybe = st.none() | words
outputs = st.builds(
    Output,
    text=words,
    truncated=st.booleans(),
    tail=maybe,
    omitted=st.none() | st.integers(1, 10**6),
    omitted_lines=st.none() | st.integers(0, 1000),
    original_bytes=st.none() | st.integers(0, 10**9),
    member=st.sampled_from(["content", "raw", "preview"]),
)
json_texts = words.map(lambda word: Raw(json.dumps([{"lines": [word]}]).encode()))
providers = st.builds(Provider, kind=words, server=maybe, tool=maybe, name=maybe, identity=words)
saids = st.none() | st.dictionaries(
    st.sampled_from(["source", "reasonType", "reasonCode", "ruleSource", "x"]),
    words | st.integers() | st.none(),
)
verdicts = maybe | st.sampled_from(["allow_once", "allow_always", "reject_once", "allow_", "cancelled"])
decisions = st.builds(
    PermissionShown, decision=verdicts, decided_by=maybe | st.just("user"), rule=maybe, said=saids
)
keys = st.sampled_from(["old_string", "new_string", "content", "prompt", "edits", "a/b"]) | words
values = st.recursive(
    words | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)
inputs = values.map(lambda value: Raw(json.dumps(value).encode()))
pointers = st.lists(
    st.just("") | keys.map(lambda key: "/" + key.replace("~", "~0").replace("/", "~1")) | words, max_size=7
)
places = st.builds(
    NativePlace, source=words, line=st.none() | st.integers(1, 10**6), table=maybe, key=values, role=maybe
)
patches = st.builds(Patch, format=st.sampled_from(["hunks", "unified", "replace", "x"]), value=json_texts)
rows = st.builds(
    Row,
    row=words,
    record=words,
    kind=st.sampled_from(ROW_KINDS),
    state=st.sampled_from(list(MARKS)),
    title=words.filter(bool),
    pairing=st.sampled_from([None, "paired", "dangling", "orphan"]),
    name=maybe,
    author=maybe | st.sampled_from(["user", "model", "harness"]),
    requested_by=maybe,
    input=st.just(UNSET) | inputs,
    input_text=maybe,
    input_bytes=st.none() | st.integers(0, 10**9),
    more_input=st.none() | pointers,
    ts=maybe | st.just("2026-01-02T03:04:05.6789Z"),
    native=st.none() | st.lists(places, max_size=3),
    not_recorded=st.none() | st.lists(st.sampled_from(["content", "exec.exitCode", "x"]), max_size=2),
    reached_model=st.none()
    | st.builds(Reached, proof=st.sampled_from([None, "request", "captures"]), reason=maybe),
    status=maybe | st.sampled_from(["unknown", "exited", "failed"]),
    reason=maybe,
    error=maybe,
    parent=maybe,
    exit_code=st.none() | st.integers(-(2**31), 2**32),
    duration_ms=st.none() | st.floats(0, 1e9),
    count=st.none() | st.builds(Count, value=st.integers(), unit=words),
    provider=st.none() | providers,
    output=st.none() | outputs,
    permissions=st.none() | st.lists(decisions, max_size=2),
    agents=st.none() | st.lists(st.builds(AgentShown, agent_id=words, name=maybe, status=maybe), max_size=2),
    remarks=st.none() | st.lists(st.builds(Remark, member=st.just("exitCode"), note=words), max_size=2),
    redacted=st.none() | st.lists(words, max_size=2),
    changes=st.none()
    | st.lists(
        st.builds(
            ChangeShown,
            path=words,
            kind=words,
            old_path=maybe,
            state=maybe,
            patch=st.none() | patches,
        ),
        max_size=2,
    ),
)


@settings(max_examples=100)
@given(st.lists(rows, max_size=3), st.integers(1, 120), st.booleans(), st.integers(0, 9))
def test_no_row_can_act_on_a_terminal(items: list[Row], width: int, full: bool, depth: int) -> None:
    look = Look(width=width, full=full, audit=full)
    for line in paint_rows([Nested(depth, item) for item in items], look):
        assert line_width(line) <= max(width, NARROWEST)
        assert not CONTROL.search(plain(line))
        assert not CONTROL.search(SGR.sub("", coloured(line)))


@given(words, words, st.lists(words, max_size=6), st.integers(1, 120))
def test_no_head_can_act_on_a_terminal(name: str, title: str, paths: list[str], width: int) -> None:
    session = Session(
        format=name,
        agent=Agent(name=name, version=title),
        native_session_id=name,
        title=title,
        sources=[SourceEntry(id=path, kind=path, path=path, size=1) for path in paths],
    )
    doubts = [Diagnostic(code=name, source=path, line=3, message=title) for path in [name, *paths]]
    counts = Tally(calls=10**9, carried=1, shown=2, unshown=3, undecided=4)
    for line in paint_head(session, counts, Look(width=width, audit=bool(paths)), doubts):
        assert line_width(line) <= max(width, NARROWEST)
        assert not CONTROL.search(plain(line))
