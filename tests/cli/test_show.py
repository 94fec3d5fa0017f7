"""``callsheet show``: every kind of SOURCE, the shapes that scripts read, and errors of one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from callsheet.faces.cli import main
from callsheet.records.bundle import Manifest, NativeSource, StreamEntry, write_manifest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "claude-code" / "projects" / "-home-dev-acme-app"
RULES = EXAMPLES / "5dd2e94d-807f-4903-b8e4-2497aa981da8.jsonl"
AGENT = EXAMPLES / "96399bdd-834d-4e4c-91d8-dcc0255e04e1.jsonl"
AGENT_STREAM = "a80df3baecf6472a3"

KEYS = {
    "row",
    "kind",
    "state",
    "pairing",
    "callId",
    "nativeCallId",
    "name",
    "requestedBy",
    "provider",
    "title",
    "input",
    "parent",
    "count",
    "error",
    "exitCode",
    "durationMs",
    "output",
    "changes",
    "permissions",
    "notRecorded",
    "record",
    "result",
    "provisional",
}
"""Members that scripts may count on."""
MORE = {
    "author",
    "folded",
    "titleFrom",
    "moreInput",
    "native",
    "status",
    "reason",
    "agents",
    "reachedModel",
    "remarks",
    "redacted",
    "inputText",
    "inputBytes",
    "omittedChanges",
    "stream",
    "ts",
}
"""Members that we add."""
STATES = {"running", "completed", "failed", "declined", "cancelled", "interrupted", "unconfirmed"}


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def ran(*args: object) -> Ran:
        with pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, out, err)

    return ran


def spawn(*args: object, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "callsheet", *(str(arg) for arg in args)]
    return subprocess.run(
        command, input=stdin, capture_output=True, env={**os.environ, **environ}, check=False
    )


def call(call_id: str, name: str, command: dict[str, str]) -> dict[str, Any]:
    return {"type": "tool_call", "callId": call_id, "callIdSource": "native", "name": name, "input": command}


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


SESSION = {"type": "session", "format": "callsheet/1", "nativeSessionId": "s"}
RESULT = {"type": "tool_result", "callId": "a", "linkage": "exact", "status": "failed"}
RECORDS: list[dict[str, Any]] = [
    {**SESSION, "agent": {"name": "tester", "version": "1"}},
    {"type": "message", "author": "user", "content": text("go [bold]on[/bold]")},
    call("a", "Sh", {"command": "make"}),
    {**RESULT, "exec": {"exitCode": 2}, "content": text("\x1b]0;owned\x07no rule")},
    call("b", "Ask", {}),
    {"type": "subagent", "agentId": "g", "callId": "b", "stream": "child", "status": "completed"},
]


def lines(records: list[dict[str, Any]]) -> bytes:
    whole = [{"seq": number, "id": f"r{number}", **record} for number, record in enumerate(records)]
    return b"".join(json.dumps(record).encode() + b"\n" for record in whole)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    path = tmp_path / "made.jsonl"
    path.write_bytes(lines(RECORDS))
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    (folder / "streams").mkdir(parents=True)
    (folder / "streams" / "main.jsonl").write_bytes(lines(RECORDS))
    child = [{"type": "message", "author": "model", "content": [{"type": "text", "text": "from the child"}]}]
    (folder / "streams" / "child.jsonl").write_bytes(lines(child))
    write_manifest(
        folder,
        Manifest(
            format="callsheet/1",
            streams=[
                StreamEntry(id="child", file="streams/child.jsonl", parent="main"),
                StreamEntry(id="main", file="streams/main.jsonl"),
            ],
            sources=[NativeSource(id="s0", kind="k", path="/x")],
        ),
    )
    return folder


def test_a_stream_as_text(run: Run, stream: Path) -> None:
    ran = run("show", stream, "--width", 60)
    assert ran.code == 0
    assert ran.err == ""
    assert ran.out.splitlines() == [
        "tester 1  s",
        "2 calls · 1 failed · 1 unconfirmed",
        "reached the model: shown by the stream alone for 1 result",
        "who allowed it: not recorded for 1 call",
        "not recorded for any call: who asked",
        "─" * 60,
        "> user     go [bold]on[/bold]",
        "✗ call     make                                  Sh · exit 2",
        "    failed",
        "    │ ␛]0;owned␇no rule",
        "? call     Ask",
        "    unconfirmed: no result is recorded · agent g completed",
    ]


def test_a_stream_as_json(run: Run, stream: Path) -> None:
    rows = run("show", stream, "--json").rows
    assert [row["row"] for row in rows] == ["r1", "r2", "r4"]
    assert rows[1] == {
        "row": "r2",
        "kind": "other",
        "state": "failed",
        "pairing": "paired",
        "callId": "a",
        "name": "Sh",
        "title": "make",
        "titleFrom": "/command",
        "input": {"command": "make"},
        "exitCode": 2,
        "output": {"text": "\x1b]0;owned\x07no rule", "truncated": False, "member": "content"},
        "record": "r2",
        "result": "r3",
    }


def test_a_bundle_nests_the_agents_stream(run: Run, bundle: Path, tmp_path: Path) -> None:
    text = run("show", bundle).out
    assert text.index("? call     Ask") < text.index("┊ * model    from the child")
    rows = run("show", bundle, "--json").rows
    assert rows[-1] | {"ts": None} == {
        "row": "child/r0",
        "kind": "message",
        "state": "completed",
        "title": "from the child",
        "parent": "r4",
        "output": {"text": "from the child", "truncated": False, "member": "content"},
        "record": "r0",
        "author": "model",
        "stream": "child",
        "ts": None,
    }
    zipped = tmp_path / "bundle.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(bundle.rglob("*")):
            archive.write(path, path.relative_to(bundle))
    assert run("show", zipped).out == text
    child = run("show", bundle, "--stream", "child", "--json").rows
    assert [row["row"] for row in child] == ["r0"]  # nothing of the session that started it
    assert "from the child" in run("show", bundle / "streams" / "child.jsonl").out


def test_calls_are_counted_in_one_way(run: Run, tmp_path: Path) -> None:
    told = json.loads(run("import", AGENT, "--out", tmp_path, "--json").out)
    assert (told["calls"], told["agentCalls"]) == (3, 2)
    assert ": 3 calls, 2 of them of subagents · " in run("import", AGENT, "--out", tmp_path).out
    assert "3 calls, 2 of them of subagents · 2 completed · 1 failed" in run("show", AGENT).out
    listed = run("show", EXAMPLES).out.splitlines()
    assert (
        listed[listed.index(f"  {AGENT}") - 1] == "2026-11-30 22:04     3 calls  (2 of subagents) Delegate."
    )
    of_agent = run("show", told["bundle"], "--stream", AGENT_STREAM).out
    assert "\n2 calls · 1 completed · 1 failed\n" in of_agent


def test_a_later_revision_is_no_further_call(run: Run, tmp_path: Path) -> None:
    frames = ROOT / "examples/acp/codex-v2-bg.jsonl"
    assert json.loads(run("import", frames, "--out", tmp_path, "--json").out)["calls"] == 1
    assert "\n1 call · " in run("show", frames).out


def test_what_holds_for_every_call_is_said_once(run: Run) -> None:
    told = run("show", ROOT / "examples/codex/exec/mixed-0.36.0.jsonl").out
    head, rows, foot = told.split("─" * 80)
    assert head.count("reached the model") == 1
    assert "(an exec log does not tell what the model got)" in " ".join(head.split())
    assert "not recorded for any call: who asked, who allowed it\n" in head
    assert "reached the model" not in rows
    assert "who asked" not in rows
    assert rows.count("tool name: not recorded") == 6  # of seven calls: that differs
    assert rows.count(" [1]") == 4
    assert foot.count("[1] duration: of a call whose process went on") == 1
    audit = run("show", ROOT / "examples/codex/exec/mixed-0.36.0.jsonl", "--audit-view").out
    assert audit.count("what reached the model: not recorded") == 7


def test_what_differs_from_call_to_call_is_said_of_each(run: Run) -> None:
    told = run("show", EXAMPLES / "858837b5-8915-443b-bfa2-93fd580a1421.jsonl").out
    assert told.count("what reached the model: not recorded (no recorded request carries it)") == 2
    assert told.count("exit code") == 1


def test_an_agents_stream_that_nothing_leads_to_is_shown_last(run: Run, bundle: Path) -> None:
    kept = [record for record in RECORDS if record["type"] != "subagent"]
    (bundle / "streams" / "main.jsonl").write_bytes(lines(kept))
    rows = run("show", bundle, "--json").rows
    assert [row["row"] for row in rows[-2:]] == ["child/", "child/r0"]
    assert rows[-1]["parent"] == "child/"


def test_agents_that_name_each_other_end(run: Run, bundle: Path) -> None:
    for name in ("main", "child"):
        other = {"type": "subagent", "agentId": "x", "stream": "main" if name == "child" else "child"}
        (bundle / "streams" / f"{name}.jsonl").write_bytes(lines([RECORDS[0], other]))
    assert [row["row"] for row in run("show", bundle, "--json").rows] == ["r1", "child/r1"]


def test_a_native_file_is_imported_and_nothing_of_it_stays(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ran = run("show", RULES, "--json")
    assert ran.code == 0
    assert list(tmp_path.iterdir()) == []
    calls = [row for row in ran.rows if "pairing" in row]
    assert len(calls) == 8
    assert sum(row["state"] == "declined" for row in calls) == 5
    for row in ran.rows:
        assert set(row) <= KEYS | MORE
        assert row["state"] in STATES
        assert row["title"]
    commands = [row for row in calls if row["kind"] == "command"]
    assert commands
    ran_ones = [row for row in commands if row["state"] != "declined"]
    assert ran_ones
    assert all("exec.exitCode" in row["notRecorded"] for row in ran_ones)
    assert not any("exec.exitCode" in row.get("notRecorded", ()) for row in commands if row not in ran_ones)
    assert all(row["native"][0]["source"] == str(RULES) for row in calls)


def test_a_folder_of_several_sessions_is_listed(run: Run) -> None:
    ran = run("show", EXAMPLES)
    lines_ = ran.out.splitlines()
    assert lines_[0] == f"{EXAMPLES}: 10 sessions. To see one of them: callsheet show PATH"
    at = lines_.index(f"  {RULES}")
    assert lines_[at - 1] == "2026-11-30 22:03     8 calls  Try rules."
    assert len(lines_) == 21
    assert (ran.code, ran.err) == (0, "")
    asked = run("show", EXAMPLES, "--json")
    assert (asked.code, asked.out, len(asked.err.splitlines())) == (2, "", 1)
    assert "holds 10 sessions" in asked.err


def test_a_folder_with_one_session_is_that_session(run: Run, tmp_path: Path, bundle: Path) -> None:
    (tmp_path / "native").mkdir()
    shutil.copy(RULES, tmp_path / "native")
    assert "8 calls" in run("show", tmp_path / "native").out
    around = tmp_path / "out"
    around.mkdir()
    bundle.rename(around / "one")
    assert run("show", around).out == run("show", around / "one").out


def test_a_folder_of_bundles_is_no_folder_of_native_sessions(run: Run, tmp_path: Path, bundle: Path) -> None:
    around = tmp_path / "out"
    (around / "deep").mkdir(parents=True)
    shutil.copytree(bundle, around / "deep" / "b")
    bundle.rename(around / "a")
    (around / "a" / "streams" / "child.jsonl").unlink()
    (around / "broken").mkdir()
    (around / "broken" / "manifest.json").write_text("{")
    ran = run("show", around)
    assert ran.out.splitlines() == [
        f"{around}: 3 sessions. To see one of them: callsheet show PATH",
        "(no time)            2 calls  go [bold]on[/bold]",
        f"  {around}/a",
        "(no time)            2 calls  go [bold]on[/bold]",
        f"  {around}/deep/b",
    ]
    assert [("child.jsonl" in line, "broken" in line) for line in ran.err.splitlines()] == [
        (True, False),
        (False, True),
    ]


def test_one_session_of_a_file_with_several(run: Run) -> None:
    database = ROOT / "examples/openclaw"
    listed = run("show", database).out.splitlines()
    (path, ident) = next(line.split(" --stream ") for line in listed if "--stream" in line)
    assert ident in run("show", path.strip(), "--stream", ident).out.splitlines()[0]
    ran = run("show", path.strip(), "--stream", "nope")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


def test_a_zip_of_the_folder_itself(run: Run, bundle: Path, tmp_path: Path) -> None:
    zipped = tmp_path / "folder.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._x", b"")
        for path in sorted(bundle.rglob("*")):
            archive.write(path, path.relative_to(bundle.parent))
    assert run("show", zipped).out == run("show", bundle).out
    assert run("validate", zipped).out == run("validate", bundle).out
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr("other/manifest.json", "{}")
    assert run("show", zipped).code == 2


def test_a_zip_that_unpacks_without_end_is_refused(
    run: Run, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callsheet.records.bundle.UNPACK_FREELY", 100_000)
    zipped = tmp_path / "bomb.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(bundle / "manifest.json", "manifest.json")
        archive.writestr("streams/main.jsonl", lines(RECORDS) + b" " * 5_000_000)
    ran = run("show", zipped)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "would unpack from" in ran.err
    assert "5,00" in ran.err


def test_messages_of_the_harness_are_counted_and_drawn_in_the_audit_view(run: Run) -> None:
    plain = run("show", RULES, "--width", 120)
    assert "total_tokens" not in plain.out
    assert "messages of the harness" in plain.out.splitlines()[-1]
    audit = run("show", RULES, "--audit-view").out
    assert "total_tokens" in audit
    assert "messages of the harness" not in audit
    authors = {row.get("author") for row in run("show", RULES, "--json").rows}
    assert "harness" in authors


def test_remarks_on_the_sources(run: Run) -> None:
    assert "2 remarks on the sources (--audit-view)" in run("show", RULES).out
    audit = run("show", RULES, "--audit-view", "--width", 200).out
    assert f"{RULES.name}:" in audit.splitlines()[5]
    assert "contradicts itself" in audit.splitlines()[5]


def test_a_sheet_has_a_least_width(run: Run, stream: Path) -> None:
    ran = run("show", stream, "--width", 19)
    assert (ran.code, ran.out) == (2, "")
    assert "20 cells at least" in ran.err
    assert run("show", stream, "--width", 20).code == 0


@pytest.mark.parametrize("args", ["show {path}", "show {path} --json", "validate {path}", "--help", ""])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_error(stream: Path, args: str, closed: str) -> None:
    command = f"{sys.executable} -m callsheet {args.format(path=stream)} {closed}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert b"Traceback" not in ran.stdout + ran.stderr
    assert ran.returncode in ((2,) if not args else (0,))
    if closed == ">&-":
        assert (ran.stdout, ran.stderr.count(b"callsheet: ")) == (b"", 0)


@pytest.mark.parametrize("args", [[], ["conformance"]])
def test_without_arguments_the_help_is_printed(run: Run, args: list[str]) -> None:
    ran = run(*args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: callsheet")
    assert "Commands:" in ran.err.splitlines()


def test_the_subagent_of_an_example_stands_below_its_call(run: Run) -> None:
    rows = run("show", AGENT, "--json").rows
    (call,) = (row for row in rows if row["kind"] == "subagent")
    inner = [row for row in rows if row.get("stream") == call["agents"][0]["stream"]]
    assert inner
    assert all(row["parent"] == call["row"] for row in inner if row["kind"] in ("message", "command"))


def test_standard_input(stream: Path) -> None:
    assert (
        spawn("show", "-", "--json", stdin=stream.read_bytes()).stdout
        == spawn("show", stream, "--json").stdout
    )
    native = spawn("show", "-", stdin=RULES.read_bytes())
    assert b"8 calls" in native.stdout
    assert re.search(rb"^- \(54,576 bytes\)$", native.stdout, re.MULTILINE)
    empty = spawn("show", "-")
    assert (empty.returncode, empty.stdout) == (2, b"")
    assert empty.stderr.startswith(b"callsheet: -: ")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("gone", None, "no such file or folder"),
        ("text.txt", b"hello\n", "fits no known kind of session"),
        ("empty.jsonl", b"", "the file is empty"),
        ("nul.jsonl", b"\0" * 64, ""),
        ("zip.zip", b"PK\x05\x06" + b"\0" * 18, "a zip without manifest.json is no bundle"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    run: Run, tmp_path: Path, name: str, data: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    ran = run("show", path)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(f"callsheet: {path}: ")
    assert message in ran.err


def test_a_bundle_with_a_hole_is_one_line(run: Run, bundle: Path) -> None:
    (bundle / "streams" / "main.jsonl").unlink()
    ran = run("show", bundle)
    assert (ran.code, ran.err.splitlines()) == (
        2,
        [f"callsheet: {bundle}: stream streams/main.jsonl: no such file or folder"],
    )
    (bundle / "manifest.json").write_text("{")
    assert run("show", bundle).code == 2


def test_bad_lines_of_a_stream_are_named_and_cost_nothing_else(run: Run, stream: Path) -> None:
    with stream.open("ab") as file:
        file.write(b"garbage\n" * 50)
    ran = run("show", stream, "--json")
    assert ran.code == 0
    assert len(ran.rows) == 53
    errors = ran.err.splitlines()
    assert len(errors) == 21
    assert errors[0].startswith(f"callsheet: {stream}:7: ")
    assert errors[-1] == "callsheet: … 30 more lines are no legal records"


@pytest.mark.parametrize(
    "args", [["show"], ["show", "x", "--width", "wide"], ["nonsense"], ["show", "x", "y"]]
)
def test_wrong_usage_is_one_line(run: Run, args: list[str]) -> None:
    ran = run(*args)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("callsheet: ")


def test_no_such_stream(run: Run, bundle: Path, stream: Path) -> None:
    for path in (bundle, stream):
        ran = run("show", path, "--stream", "nope")
        assert (ran.code, ran.out) == (2, "")
        assert "no stream nope" in ran.err


def test_hostile_names_of_files_are_harmless(run: Run, tmp_path: Path) -> None:
    ran = run("show", tmp_path / "a\x1b[31m\nb")
    assert ran.err.splitlines() == [f"callsheet: {tmp_path}/a␛[31m␊b: no such file or folder"]


def test_output_that_nobody_reads_is_no_error() -> None:
    command = f"{sys.executable} -m callsheet show {RULES} --json | head -c 20"
    ran = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_terminal_that_cannot_hold_our_signs_gets_others(stream: Path) -> None:
    ran = spawn("show", stream, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ran.returncode == 0
    text = ran.stdout.decode("ascii")
    assert "\nx call     make" in text
    assert "\n    | \\u241b]0;owned\\u2407no rule" in text


def test_no_colour_unless_a_person_looks(run: Run, stream: Path) -> None:
    assert "\x1b" not in run("show", stream).out


def test_an_unexpected_error_is_one_line_too(run: Run, stream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("callsheet.faces.cli.sheets.paint_head", broken)
    ran = run("show", stream)
    assert ran.code == 2
    assert ran.err.startswith("callsheet: ZeroDivisionError: oh")
    assert len(ran.err.splitlines()) == 1
    monkeypatch.setenv("CALLSHEET_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["show", str(stream)])


def test_the_audit_view_and_full(run: Run, stream: Path) -> None:
    audit = run("show", stream, "--audit-view", "--json").rows
    assert audit[0]["kind"] == "notice"
    assert len(audit) > len(run("show", stream, "--json").rows)
    assert run("show", stream, "--full").code == 0
