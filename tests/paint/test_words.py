"""The words of the sheet: decisions, outcomes, silences, inputs, remarks on sources."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.paint import Look, paint_head, paint_row, plain
from callsheet.paint.doubts import SENTENCES, doubt_words
from callsheet.paint.verdicts import decision_words, declined_words
from callsheet.paint.words import LABELS, MARKS
from callsheet.pairing import Tally
from callsheet.records import Agent, Session, SourceEntry
from callsheet.records.bundle import Diagnostic
from callsheet.rows import ROW_KINDS, PermissionShown, Row
from callsheet.rows.row import KINDS, STATES
from callsheet.testing.rowpage import PARTS, row_page

SOURCE = Path(__file__).parents[2] / "src" / "callsheet"
BASE: dict[str, Any] = {
    "row": "r0",
    "record": "r0",
    "kind": "command",
    "state": "completed",
    "title": "make",
    "pairing": "paired",
    "requestedBy": "model",
}


def drawn(width: int = 60, *, full: bool = False, audit: bool = False, **members: Any) -> list[str]:
    row = msgspec.json.decode(msgspec.json.encode({**BASE, **members}), type=Row)
    return [plain(line) for line in paint_row(row, Look(width=width, full=full, audit=audit))]


@pytest.mark.parametrize(
    ("decision", "by", "rule", "said", "words"),
    [
        ("allow_once", "policy", None, {"reasonType": "mode"}, "allowed by policy (mode)"),
        (
            "allow_once",
            "policy",
            None,
            {"source": "user_permanent", "reasonType": "rule", "ruleSource": "userSettings"},
            "allowed by policy (rule, userSettings)",
        ),
        (
            "reject_once",
            "policy",
            "rule:userSettings",
            {"reasonType": "rule", "ruleSource": "userSettings", "reasonCode": "rule:userSettings"},
            "declined by policy (rule:userSettings)",
        ),
        ("reject_once", "policy", "rule:userSettings", None, "declined by policy (rule:userSettings)"),
        (
            "reject_once",
            "policy",
            "Bash(rm:*)",
            {"reasonType": "rule"},
            "declined by policy (rule Bash(rm:*))",
        ),
        (
            "reject_once",
            "policy",
            None,
            {
                "reasonType": "subcommandResults",
                "ruleSource": "userSettings",
                "reasonCode": "rule:userSettings",
            },
            "declined by policy (subcommandResults, rule:userSettings)",
        ),
        ("allow_session", "hook", None, {"reasonType": "hook"}, "allowed by hook"),
        (
            "reject_once",
            "hook",
            None,
            {"reasonCode": "hook:PreToolUse"},
            "declined by hook (hook:PreToolUse)",
        ),
        ("allow_always", "classifier", None, {"reasonType": "classifier"}, "allowed by classifier"),
        (
            "allow_once",
            None,
            None,
            {"source": "user_temporary", "reasonCode": "unknown"},
            "allowed once (who decided: not recorded; the source says user_temporary)",
        ),
        ("allow_once", None, None, None, "allowed once (who decided: not recorded)"),
        ("allow_session", "user", None, None, "allowed for the session by user"),
        ("allow_always", "user", None, {"reasonCode": "bashMiss:no"}, "allowed always by user (bashMiss:no)"),
        ("reject_always", "user", None, None, "declined always by user"),
        ("reject_once", "user", None, None, "declined by user"),
        ("cancelled", None, None, None, "request cancelled (who decided: not recorded)"),
        ("novel_word", "policy", None, {"reasonType": 5, "reasonCode": ["x"]}, "novel_word by policy"),
        (None, None, None, {"source": "x"}, "asked, no decision is recorded"),
    ],
)
def test_decisions(
    decision: str | None, by: str | None, rule: str | None, said: dict[str, Any] | None, words: str
) -> None:
    assert decision_words(PermissionShown(decision=decision, decided_by=by, rule=rule, said=said)) == words


def test_who_declined_is_the_last_who_refused() -> None:
    hook = PermissionShown(decision="reject_once", decided_by="hook")
    user = PermissionShown(decision="reject_once", decided_by="user")
    assert declined_words([hook, user, PermissionShown(decision="allow_once")]) == "declined by user"
    assert declined_words([]) == "declined (who decided: not recorded)"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"state": "unconfirmed", "status": "unknown"}, "outcome: not recorded"),
        ({"state": "unconfirmed", "status": "splendid"}, "unconfirmed (the source says splendid)"),
        (
            {"state": "unconfirmed", "status": "unknown", "pairing": "orphan", "reason": "no_call"},
            "unconfirmed: its call is not recorded (outcome: not recorded)",
        ),
        ({"state": "declined", "status": "unknown"}, "declined (who decided: not recorded; outcome: not recorded)"),
        ({"kind": "subagent", "pairing": None, "state": "unconfirmed", "status": "unknown"}, "outcome: not recorded"),
        ({"kind": "terminal", "pairing": None, "state": "failed", "status": "failed"}, "the source says failed"),
        ({"kind": "terminal", "pairing": None, "state": "failed", "status": "exited"}, "exited"),
        ({"kind": "terminal", "pairing": None, "state": "cancelled", "status": "stopped"}, "stopped"),
        (
            {"kind": "terminal", "pairing": None, "state": "cancelled", "status": "killed"},
            "stopped (the source says killed)",
        ),
        (
            {"kind": "terminal", "pairing": None, "state": "unconfirmed", "status": "running"},
            "unconfirmed (the source says running)",
        ),
    ],
)  # fmt: skip
def test_outcomes(members: dict[str, Any], words: str) -> None:
    assert drawn(100, **{"requestedBy": "model", **members})[1].strip() == words


def test_a_process_that_only_exited_is_no_success() -> None:
    exited: dict[str, Any] = {"kind": "terminal", "pairing": None, "state": "unconfirmed", "status": "exited"}
    assert drawn(**exited) == ["· terminal make", "    exited"]
    assert drawn(**{**exited, "state": "completed"})[0] == "✓ terminal make"
    assert drawn(**{**exited, "state": "unconfirmed", "status": "running"})[0] == "? terminal make"


def test_agents_of_unknown_state_claim_none() -> None:
    lines = drawn(agents=[{"agentId": "g", "name": "Explore", "status": "unknown"}])
    assert lines[1:] == ["    agent Explore g"]


def test_what_is_true_is_said_in_the_audit_view_and_what_is_missing_always() -> None:
    carried: dict[str, Any] = {
        "reachedModel": {"proof": "request"},
        "permissions": [{"decision": "allow_once", "decidedBy": "policy"}],
    }
    assert drawn(**carried)[1:] == ["    allowed by policy"]
    assert "reached the model: a recorded request carries it" in drawn(audit=True, **carried)[2]
    captured = drawn(120, audit=True, reachedModel={"proof": "captures"})
    assert captured[1:] == [
        "    who allowed it: not recorded · reached the model: as captures of this version show"
    ]
    missing: dict[str, Any] = {
        "notRecorded": ["content"],
        "reachedModel": {"reason": "no recorded request carries it"},
    }
    words = "    what reached the model: not recorded (no recorded request carries it)"
    assert words in drawn(90, **missing)
    assert "who allowed it" not in "".join(drawn(**missing))


def test_the_audit_view_says_when_and_where() -> None:
    places = [
        {"source": "/a/b/session.jsonl", "line": 22, "role": "call"},
        {"source": "/a/b/session.jsonl", "line": 27, "role": "result"},
        {"source": "C:\\x\\other.jsonl", "line": 1},
        {"source": "/a/state.sqlite", "table": "events", "key": {"seq": 3}, "role": "row"},
    ]
    item: dict[str, Any] = {"ts": "2026-11-30T22:03:09.9256Z", "native": places}
    assert drawn(120, audit=True, permissions=[{}], **item)[2:] == [
        '    22:03:09.925 · session.jsonl:22 call · :27 result · other.jsonl:1 · state.sqlite events {"seq":3} row'
    ]
    assert drawn(120, **item) == ["✓ command  make"]
    message: dict[str, Any] = {
        "kind": "message",
        "author": "user",
        "pairing": None,
        "output": {"text": "hi", "truncated": False},
    }
    assert (
        drawn(120, audit=True, **{**item, **message})[1].strip().startswith("22:03:09.925 · session.jsonl:22")
    )
    assert "yesterday" in drawn(120, audit=True, ts="yesterday", permissions=[{}])[2]


def test_a_caution_names_what_it_is_about() -> None:
    remarks = [{"member": "exec.stderr", "note": "empty even then"}, {"member": "terminalId", "note": "no"}]
    assert "note: stderr: empty even then" in drawn(200, audit=True, remarks=remarks)[1]
    assert "note: terminal id: no" in drawn(200, audit=True, remarks=remarks)[1]
    assert len(drawn(remarks=remarks)) == 1


# What was asked.


def test_the_rest_of_the_input_stands_below_the_title() -> None:
    given: dict[str, Any] = {
        "command": "make",
        "description": "Build it",
        "timeout": 60000,
        "env": {"A": "1"},
        "note": "a\nb",
        "x": "",
    }
    item: dict[str, Any] = {
        "input": given,
        "titleFrom": "/command",
        "moreInput": ["/description", "/timeout", "/env", "/note", "/x"],
    }
    assert drawn(name="Bash", **item) == [
        "✓ command  make                                         Bash",
        "    ▸ description: Build it",
        "    ▸ timeout: 60000",
        '    ▸ env: {"A":"1"}',
        "    ▸ note: a …",
        '    ▸ x: ""',
    ]
    many: dict[str, Any] = {
        "input": {f"k{n}": n for n in range(9)},
        "moreInput": [f"/k{n}" for n in range(9)],
    }
    assert drawn(**many)[1:] == [*(f"    ▸ k{n}: {n}" for n in range(4)), "    ┆ … 5 more"]
    assert drawn(full=True, **many)[1:] == [f"    ▸ k{n}: {n}" for n in range(9)]
    long = drawn(input={"command": "make", "x": "y" * 500}, moreInput=["/x"])
    assert (len(long), len(long[1]), long[1][-1]) == (2, 60, "…")
    assert len(drawn(full=True, input={"x": "y" * 500}, moreInput=["/x"])) > 8
    assert drawn(input={"command": "make"}, titleFrom="/command") == ["✓ command  make"]


def test_inputs_of_other_shapes() -> None:
    assert drawn(inputText="{broken", moreInput=[""])[1] == "    ▸ input: {broken"
    assert drawn(input=[1, 2], moreInput=[""])[1] == "    ▸ input: [1,2]"
    assert drawn(inputBytes=123456, moreInput=["/x"])[1].startswith(
        "    ┆ … arguments of 123,456 bytes are not"
    )
    assert drawn(input={"a": 1}, moreInput=["/gone"])[1] == "    ▸ gone:"


def test_an_agents_task_gets_three_lines() -> None:
    prompt = "\n".join(f"step {n}" for n in range(9))
    item: dict[str, Any] = {
        "kind": "subagent",
        "title": "Find it",
        "input": {"prompt": prompt, "n": 1},
        "moreInput": ["/prompt", "/n"],
    }
    assert drawn(**item)[1:] == [
        "    ▸ prompt: step 0",
        "    ▸ step 1",
        "    ▸ step 2",
        "    ┆ … 6 more lines",
        "    ▸ n: 1",
    ]
    assert len(drawn(full=True, **item)) == 11


EDIT: dict[str, Any] = {"kind": "file_change", "title": "/x.py", "name": "Edit"}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("declined", "proposed:"),
        ("failed", "proposed:"),
        ("unconfirmed", "proposed:"),
        ("completed", "requested; no patch is recorded:"),
    ],
)
def test_what_an_edit_was_to_write(state: str, words: str) -> None:
    given: dict[str, Any] = {
        "file_path": "/x.py",
        "old_string": "a\nb",
        "new_string": "c",
        "replace_all": False,
    }
    more = ["/old_string", "/new_string", "/replace_all"]
    lines = drawn(**EDIT, state=state, input=given, moreInput=more)
    assert lines[1:6] == ["    ▸ replace_all: false", f"    ┆ {words}", "    ▸ -a", "    ▸ -b", "    ▸ +c"]


def test_what_a_new_file_was_to_hold() -> None:
    given: dict[str, Any] = {"file_path": "/x.py", "content": "\n".join("abcdefghijklmnopqrstuvwxyz")}
    lines = drawn(**EDIT, state="declined", input=given, moreInput=["/content"])
    assert lines[1:4] == ["    ┆ proposed:", "    ▸ +a", "    ▸ +b"]
    assert lines[18] == "    ┆ … 10 more lines"
    several = {
        "edits": [{"oldText": "a", "newText": "b"}, {"old_string": "c", "new_string": ""}, 7],
        "path": "/x",
    }
    lines = drawn(**EDIT, state="failed", input=several, moreInput=["/edits"])
    assert lines[1:6] == ["    ┆ proposed:", "    ▸ -a", "    ▸ +b", "    ▸ -c", "    ▸ +"]


def test_an_agent_cannot_write_our_words() -> None:
    given: dict[str, Any] = {"allowed by user": "", "x": "a\n    ┆ proposed:\n", "\x1b[1m": "\u202e"}
    lines = drawn(input=given, moreInput=["/allowed by user", "/x", "/\x1b[1m"])
    assert [line[:6] for line in lines[1:]] == ["    ▸ "] * 3
    assert "\x1b" not in "".join(lines)


def test_every_sign_and_word_of_a_row_is_explained() -> None:
    assert set(KINDS) == set(ROW_KINDS) == set(LABELS)
    assert set(STATES) == set(MARKS)
    page = row_page("")
    parts: tuple[type[msgspec.Struct], ...] = (Row, *PARTS)
    for part in parts:
        for field in msgspec.structs.fields(part):
            assert f"| `{field.encode_name}` |" in page
    drawn_signs = {
        sign
        for path in (SOURCE / "paint").glob("*.py")
        for sign in re.findall(r'Span\("(\S) ?"', path.read_text(encoding="utf-8"))
    }
    assert {"▸", "┆", "│", "┊"} & drawn_signs
    for sign in drawn_signs - {"─"}:
        assert f"| {sign} |" in page


# The head.


def head(tally: Tally, *doubts: Diagnostic, audit: bool = False, agent: str = "claude-code") -> list[str]:
    session = Session(
        format="callsheet/1",
        agent=Agent(name=agent),
        sources=[SourceEntry(id="s0", kind="k", path="/a/session.jsonl")],
    )
    return [plain(line) for line in paint_head(session, tally, Look(width=120, audit=audit), doubts)][3:-1]


def test_what_is_true_of_many_calls_is_said_once() -> None:
    assert head(Tally(carried=6, shown=1, unshown=2, undecided=8)) == [
        (
            "reached the model: shown by a recorded request for 6 results · by captures of this version for 1 · "
            "not recorded for 2"
        ),
        "who allowed it: not recorded for 8 calls",
    ]
    assert head(Tally(shown=1)) == ["reached the model: shown by captures of this version for 1 result"]
    assert head(Tally(unshown=3, undecided=1)) == [
        "reached the model: not recorded for 3 results",
        "who allowed it: not recorded for 1 call",
    ]
    assert head(Tally(shown=2), agent="nobody") == [
        "reached the model: shown by the stream alone for 2 results"
    ]
    assert head(Tally(calls=3)) == []


def test_remarks_on_the_sources_are_counted_and_told_in_the_audit_view() -> None:
    doubts = [
        Diagnostic(code="repeated_line", source="s0", line=7, message="repeats line 3"),
        Diagnostic(code="novel_code", message="who knows"),
        Diagnostic(code="nul", source="s8"),
    ]
    assert head(Tally(), *doubts) == ["3 remarks on the sources (--audit-view)"]
    several = Diagnostic(code="nul", count=7, message="and 7 more")
    assert head(Tally(), doubts[0], several) == ["8 remarks on the sources (--audit-view)"]
    assert head(Tally(), several, audit=True)[0].endswith("all zeros: and 7 more")
    assert head(Tally(), doubts[0]) == ["1 remark on the sources (--audit-view)"]
    assert head(Tally(), *doubts, audit=True) == [
        "session.jsonl:7: a line is stored twice, and counts once: repeats line 3",
        "novel_code: who knows",
        "s8: a part of the file was never written: it is all zeros",
    ]
    assert head(Tally(), *doubts * 30, audit=True)[-1] == "… 40 more"


def test_every_code_of_an_importer_has_its_sentence() -> None:
    named = re.compile(r"\.(?:diagnose|doubt)\(\s*\"(\w+)\"")
    codes = {
        code
        for room in ("harness", "library", "live")
        for path in (SOURCE / room).rglob("*.py")
        for code in named.findall(path.read_text(encoding="utf-8"))
    }
    assert len(codes) > 20
    assert codes - set(SENTENCES) == set()
    assert doubt_words(Diagnostic(code="x"), {}) == "x"
