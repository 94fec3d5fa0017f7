"""``callsheet run`` without a workbench: lines, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.records.bundle import Bundle

Start = Callable[..., "subprocess.Popen[bytes]"]
Agent = Callable[..., str]
CALL = {"call": "c1", "title": "ls", "input": {"command": "ls"}}


def finished(process: subprocess.Popen[bytes], seconds: float = 120) -> tuple[int, list[Any], str]:
    out, said = process.communicate(timeout=seconds)
    return process.returncode, [json.loads(line) for line in out.splitlines()], said.decode()


@pytest.mark.parametrize(
    ("turn", "code", "result"),
    [
        ([{"say": "hello"}], 0, "completed"),
        ([{"say": "no"}, {"end": "refusal"}], 1, "failed"),
        ([CALL, {"kill": 9}], 1, "lost"),
        ([{"exit": 3}], 4, "not_started"),
    ],
)
def test_exit_codes(start: Start, agent_of: Agent, tmp_path: Path, turn: Any, code: int, result: str) -> None:
    process = start(
        "run", "fake", "--agent", agent_of(turn=turn), "--json", "--out", str(tmp_path / "o"), "x"
    )
    found, lines, said = finished(process)
    assert found == code, said
    assert lines[-1]["result"] == result
    assert [line["type"] for line in lines[:1]] == ["session"]
    bundle = Path(lines[-1]["bundle"])
    assert f"callsheet: recorded in {bundle}" in said
    stream = (bundle / "streams" / f"{lines[-1]['stream']}.jsonl").read_bytes()
    assert lines[:-1] == [json.loads(line) for line in stream.splitlines()], "what is printed is what is kept"


def test_text_in_the_agents_own_spelling_costs_no_row(start: Start, agent_of: Agent, tmp_path: Path) -> None:
    """JSON may spell a character in many ways; where a record ends, the stream says and not its length."""
    spelled = '"Gr\\u00fc\\u00dfe und noch mehr \\u00e9\\u00e9\\u00e9"'
    update = (
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-session","update":'
        '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":' + spelled + "}}}}"
    )
    turn = [{"raw": update + "\n"}, CALL, {"say": "last"}]
    process = start("run", "fake", "--agent", agent_of(turn=turn), "--out", str(tmp_path / "o"), "x")
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "Grüße und noch mehr ééé" in out.decode()
    assert "ls" in out.decode()
    assert "last" in out.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("fake", "--agent", "no-such-program", "x"), 4, "fake: not found: no-such-program (in PATH)"),
        (("no-such", "x"), 2, "no agent 'no-such' can be run"),
        (("fake", "x"), 2, "fake: needs --agent COMMAND"),
        (("fake", "--agent", "true", "--previews", "x"), 2, "--previews goes with --json"),
        (("fake", "--agent", "true", "--answer", "ask", "x"), 2, "--answer ask needs a terminal"),
        (("fake", "--agent", "true"), 2, "needs a PROMPT"),
        (("fake", "--agent", "true", ""), 2, "the prompt is empty"),
        (("fake", "--agent", "true", "-"), 2, "the prompt is empty"),
        (("fake", "--agent", "'", "x"), 2, "--agent '"),
        (("fake", "--agent", "ws://host:1", "x"), 2, "--agent ws://host:1: an address is given with --at"),
        (("fake", "--agent", "true", "--out", "{out}", "x"), 4, "fake: did not start: the agent ended with"),
    ],
)
def test_what_cannot_run(
    start: Start, tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    process = start("run", *(word.format(out=tmp_path / "o") for word in arguments))
    found, lines, said = finished(process)
    assert (found, lines) == (code, [])
    assert says in said
    assert "Traceback" not in said


def test_a_folder_that_is_read_only(start: Start, agent_of: Agent, tmp_path: Path) -> None:
    (tmp_path / "o").write_text("no folder")
    agent = agent_of(turn=[])
    out = str(tmp_path / "o" / "below")
    found, lines, said = finished(start("run", "fake", "--agent", agent, "--out", out, "x"))
    assert (found, lines) == (2, [])
    assert said.startswith(f"callsheet: {out}")
    assert "nothing can be recorded" in said


def test_previews_are_marked(start: Start, agent_of: Agent, tmp_path: Path) -> None:
    turn = [
        {"say": "hel"},
        {"sleep": 0.2},
        CALL,
        {"output": "c1", "text": "x\n"},
        {"ask": "c1"},
        {"sleep": 0.2},
        {"done": "c1"},
    ]
    agent = agent_of(turn=turn)
    arguments = ("--json", "--previews", "--answer", "allow", "--out", str(tmp_path / "o"), "x")
    found, lines, said = finished(start("run", "fake", "--agent", agent, *arguments))
    assert found == 0, said
    previews = [line for line in lines if "preview" in line]
    assert all("type" not in line and "key" in line for line in previews)
    assert {"message", "call", "output", "turn"} <= {line["preview"] for line in previews}
    (output,) = [line for line in previews if line["preview"] == "output"]
    assert output == {"preview": "output", "key": "output:c1", "call": "c1", "text": "x\n", "omittedBytes": 0}
    asked = [line["request"] for line in previews if line["preview"] == "request"]
    assert all(one["kind"] == "permission" and one["requestId"] == "q1" for one in asked)
    permission = [line for line in lines if line.get("type") == "permission"][-1]
    assert (permission["decision"], permission["decidedBy"]) == ("allow_once", "policy")


def test_rows_as_text(start: Start, agent_of: Agent, tmp_path: Path) -> None:
    turn = [
        {"say": "hello \x1b[31m"},
        CALL,
        {"done": "c1", "status": "failed"},
        {"call": "c2", "title": "open"},
        {"output": "c2", "text": "half\n"},
    ]
    process = start("run", "fake", "--agent", agent_of(turn=turn), "--out", str(tmp_path / "o"), "Do it.")
    out, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    text = out.decode()
    assert "\x1b" not in text
    heads = [line.rstrip() for line in text.splitlines() if line[:1] in ">*✗?"]
    assert [head[:17] for head in heads] == [
        "> user     Do it.",
        "* model    hello",
        "✗ command  ls",
        "? command  open",
    ]


def test_folders_are_told_and_recorded_without_dots(start: Start, tmp_path: Path) -> None:
    """``--cwd ../w``: the agent names its files as it was told, and they are served."""
    here, there = tmp_path / "here", tmp_path / "w"
    here.mkdir()
    there.mkdir()
    (there / "a.txt").write_text("what it says", encoding="utf-8")
    read = {"sessionId": "$session", "path": "$cwd/a.txt"}
    said_of_it = {"type": "text", "text": "$file.content"}
    steps = [
        {"ask": "fs/read_text_file", "keep": "file", "params": read},
        {"update": {"sessionUpdate": "agent_message_chunk", "content": said_of_it}},
        {"answer": {"stopReason": "end_turn"}},
    ]
    script = tmp_path / "reads.json"
    script.write_text(json.dumps({"about": "Reads.", "1": steps, "2": steps}), encoding="utf-8")
    agent = shlex.join([sys.executable, "-m", "callsheet.testing.toy_agent", "--version", "1", str(script)])
    process = start("run", "acp", "--agent", agent, "--json", "--cwd", "../w", "--out", "../o", "x", cwd=here)
    code, lines, said = finished(process)
    assert code == 0, said
    assert str(there) in lines[0]["roots"].values()
    assert lines[-1]["bundle"].startswith(f"{tmp_path / 'o'}/")
    assert [line for line in lines if line.get("type") == "message"][-1]["content"][0][
        "text"
    ] == "what it says"
    assert "/../" not in json.dumps(lines)


def test_a_declined_call_that_runs_is_not_printed_as_declined(start: Start, tmp_path: Path) -> None:
    """Some agents run what was refused: a printed row stays, so it waits for the result."""
    agent = shlex.join([sys.executable, "-m", "callsheet.testing.toy_agent", "--version", "2", "turn"])
    out = str(tmp_path / "o")
    process = start("run", "acp", "--agent", agent, "--plain", "--answer", "reject", "--out", out, "x")
    printed, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    rows = [line for line in printed.decode().splitlines() if "make test" in line and "command" in line]
    shown = subprocess.run(
        [sys.executable, "-m", "callsheet", "show", str(next((tmp_path / "o").iterdir()))],
        capture_output=True,
        check=True,
    )
    kept = [line for line in shown.stdout.decode().splitlines() if "make test" in line and "command" in line]
    assert [row[:1] for row in rows] == [row[:1] for row in kept]
    assert not any(row.startswith("⊘") for row in rows)


def test_a_declined_call_without_a_result_is_printed_at_the_end(
    start: Start, agent_of: Agent, tmp_path: Path
) -> None:
    agent = agent_of(turn=[CALL, {"ask": "c1"}, {"say": "then not"}])
    process = start("run", "fake", "--agent", agent, "--answer", "reject", "--out", str(tmp_path / "o"), "x")
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    heads = [line[:11].rstrip() for line in out.decode().splitlines() if line[:1] in ">*⊘"]
    assert heads == ["> user", "* model", "⊘ command"]


def test_the_prompt_from_standard_input(agent_of: Agent, tmp_path: Path) -> None:
    arguments = ["run", "fake", "--agent", agent_of(turn=[]), "--json", "--out", str(tmp_path / "o"), "-"]
    done = subprocess.run(
        [sys.executable, "-m", "callsheet", *arguments], input=b"from a pipe", capture_output=True, check=True
    )
    assert b"from a pipe" in done.stdout


def test_a_reader_that_goes_away(agent_of: Agent, tmp_path: Path) -> None:
    """Nobody reads any more: the agent is asked to break off, and the turn is recorded to its end."""
    agent = agent_of(turn=[{"ticks": 2000, "every": 0}, {"await": "cancel"}])
    command = [sys.executable, "-m", "callsheet", "run", "fake", "--agent", agent, "--json"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "o"), "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 3, said
    assert b"nobody reads this any more: interrupting" in said
    assert b"Traceback" not in said
    (bundle,) = (tmp_path / "o").iterdir()
    assert not Bundle(bundle).manifest.recording
    assert b'"interrupted"' in (bundle / "streams" / "fake-session.jsonl").read_bytes()


def test_a_reader_that_does_not_read(agent_of: Agent, tmp_path: Path) -> None:
    """The pipe is full; the agent is read and recorded all the same."""
    note = tmp_path / "done"
    say_so = [sys.executable, "-c", f"import pathlib; pathlib.Path({str(note)!r}).touch()"]
    agent = agent_of(turn=[{"ticks": 5000, "every": 0}, {"spawn": say_so}, {"sleep": 1}])
    command = [sys.executable, "-m", "callsheet", "run", "fake", "--agent", agent, "--json"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "o"), "x"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 60
    while not note.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert note.exists(), "the agent got through its turn"
    assert process.poll() is None
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(out.splitlines()) > 10_000


def wait_for(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stdout is not None
    while word not in (line := process.stdout.readline()):
        assert line, "it ended"


def test_ctrl_c_interrupts(start: Start, agent_of: Agent, tmp_path: Path) -> None:
    agent = agent_of(turn=[CALL, {"await": "cancel"}])
    process = start("run", "fake", "--agent", agent, "--json", "--out", str(tmp_path / "o"), "x")
    wait_for(process, b"tool_call")
    process.send_signal(signal.SIGINT)
    found, lines, said = finished(process)
    assert (found, lines[-1]["result"]) == (3, "interrupted"), said
    assert "interrupting; Ctrl-C again stops the agent" in said


def test_ctrl_c_twice_stops(start: Start, agent_of: Agent, tmp_path: Path) -> None:
    agent = agent_of(turn=[CALL, {"sleep": 60}], deaf=["cancel"])
    process = start("run", "fake", "--agent", agent, "--json", "--out", str(tmp_path / "o"), "x")
    wait_for(process, b"tool_call")
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "it waits for the agent"
    process.send_signal(signal.SIGINT)
    found, lines, said = finished(process)
    assert (found, lines[-1]["result"]) == (130, "lost"), said
    assert not Bundle(Path(lines[-1]["bundle"])).manifest.recording


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_stop(start: Start, agent_of: Agent, tmp_path: Path, number: signal.Signals) -> None:
    agent = agent_of(turn=[CALL, {"sleep": 60}])
    process = start("run", "fake", "--agent", agent, "--json", "--out", str(tmp_path / "o"), "x")
    wait_for(process, b"tool_call")
    process.send_signal(number)
    found, lines, said = finished(process)
    assert (found, lines[-1]["result"]) == (128 + number, "lost"), said
    assert not Bundle(Path(lines[-1]["bundle"])).manifest.recording


def test_stopped_before_it_is_open(start: Start, tmp_path: Path) -> None:
    agent = f"{sys.executable} -c 'import time; time.sleep(60)'"
    process = start("run", "fake", "--agent", agent, "--out", str(tmp_path / "o"), "x")
    while not any((tmp_path / "o").glob("*/manifest.json")):
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    found, lines, said = finished(process)
    assert (found, lines) == (130, []), said
    assert time.monotonic() - begun < 15


def at_a_terminal(
    command: list[str], keys: list[tuple[bytes, bytes]], seconds: float = 120
) -> tuple[int, bytes]:
    """Runs a command on a terminal; presses keys when words appear."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    seen = b""
    until = time.monotonic() + seconds
    left = list(keys)
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        seen += data
        if left and left[0][0] in seen:
            os.write(terminal, left.pop(0)[1])
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


def test_asked_at_a_terminal(agent_of: Agent, tmp_path: Path) -> None:
    agent = agent_of(turn=[CALL, {"ask": "c1", "title": "May I?"}, {"done": "c1"}, {"secret": "token"}])
    command = [sys.executable, "-m", "callsheet", "run", "fake", "--agent", agent, "--json"]
    command += ["--answer", "ask", "--out", str(tmp_path / "o"), "x"]
    code, seen = at_a_terminal(
        command, [(b"choose: ", b"7\n"), (b"choose: ", b"2\n"), (b"token: ", b"hush-hush\n")]
    )
    assert code == 0, seen
    assert b"May I?" in seen
    assert b"hush-hush" not in seen
    (bundle,) = (tmp_path / "o").iterdir()
    stream = (bundle / "streams" / "fake-session.jsonl").read_text()
    permission = [json.loads(line) for line in stream.splitlines() if '"type":"permission"' in line][-1]
    assert (permission["decision"], permission["decidedBy"]) == ("reject_once", "user")
    assert "hush-hush" not in stream


def test_what_is_older_stands_before_the_question(agent_of: Agent, tmp_path: Path) -> None:
    before = [
        step for n in range(80) for step in ({"call": f"b{n}", "title": f"before {n}"}, {"done": f"b{n}"})
    ]
    agent = agent_of(turn=[*before, CALL, {"ask": "c1", "title": "May I?"}, {"done": "c1"}])
    command = [sys.executable, "-m", "callsheet", "run", "fake", "--agent", agent, "--plain"]
    command += ["--answer", "ask", "--out", str(tmp_path / "o"), "x"]
    code, seen = at_a_terminal(command, [(b"choose: ", b"1\n")])
    assert code == 0, seen
    early, _, late = seen.partition(b"? May I?")
    assert b"before 79" in early
    assert b"before" not in late


def test_ctrl_c_while_asked(agent_of: Agent, tmp_path: Path) -> None:
    """Nothing waits for the keyboard any longer, and the terminal shows again what is typed."""
    agent = agent_of(turn=[{"secret": "token"}, {"await": "cancel"}], deaf=["cancel"])
    command = [sys.executable, "-m", "callsheet", "run", "fake", "--agent", agent, "--json"]
    command += ["--answer", "ask", "--out", str(tmp_path / "o"), "x"]
    shell = ["/bin/sh", "-c", f"trap : INT; {shlex.join(command)}; echo code $?; stty -a"]
    keys = [(b"token: ", b"\x03"), (b"interrupting; Ctrl-C again", b"\x03")]
    _, seen = at_a_terminal(shell, keys)
    assert b"code 130" in seen
    assert b" echo " in seen.partition(b"code 130")[2]


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "live.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 22
    from callsheet.testing.fake import fake_command

    command = list(fake_command(turn=[CALL, {"ask": "c1"}, {"done": "c1"}]))
    code = code.replace('["my-agent", "--acp"]', repr(command)).replace(
        'Path("bundles")', repr(tmp_path / "o")
    )
    code = code.replace("PosixPath(", "Path(")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert b"Accepted" in done.stdout
    assert b"ToolResult(" in done.stdout
    assert done.stdout.splitlines()[-1] == b"Completed(reason='end_turn')"
