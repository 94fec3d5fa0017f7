"""The real Claude Code against a scripted model, through the live shell: what it does is recorded as it was."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from msgspec import Raw
from tests.live.claude_code.house import VERSION, Answering, House, held, held_bundle, living, shell

from callsheet.harness.claude_code import CLAUDE_CODE_AGENT
from callsheet.live import Policy, Session, prepare
from callsheet.seam import (
    Accepted,
    Answered,
    CallPreview,
    Cancelled,
    Chosen,
    Completed,
    Event,
    FormFilled,
    Installed,
    Interrupted,
    Lost,
    MessagePreview,
    Questions,
    RequestClosed,
    RequestOpened,
    TurnChanged,
)
from callsheet.testing.live_run import Ran, kill_agent
from callsheet.testing.scripted_models.messages import Use, say

sdk = pytest.importorskip("claude_agent_sdk", reason="needs the extra `live` (claude-agent-sdk)")
PROGRAM = Path(sdk.__file__).parent / "_bundled" / "claude"
DONE = say("Done.")

MakeHouse = Callable[..., AbstractContextManager[House]]


@pytest.fixture
def house(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeHouse:
    return lambda scripts, **settings: living(home, tmp_path, PROGRAM, scripts, monkeypatch, settings)


def states(ran: Ran) -> list[str]:
    return [event.state for event in ran.events if isinstance(event, TurnChanged)]


INNER = {"subagent_type": "general-purpose", "run_in_background": False}
ALLOWED = {"permissions": {"allow": ["Bash", "Edit", "Write", "Read"]}}


def test_what_is_installed_is_found(home: Path) -> None:
    found = asyncio.run(prepare(CLAUDE_CODE_AGENT, [str(PROGRAM)]))
    assert isinstance(found, Installed)
    assert found.version == VERSION


def test_commands_that_go_well_and_that_fail(house: MakeHouse) -> None:
    with house(
        [say("Two.", shell("c1", "echo one"), shell("c2", "echo two; exit 3")), DONE], **ALLOWED
    ) as at:
        ran = at.run()
        sheet = held(ran, at)
    assert isinstance(ran.result, Completed)
    results = sheet.results()
    assert [(results[name]["status"]) for name in ("c1", "c2")] == ["completed", "failed"]
    assert all("content" in result for result in results.values())
    assert all("exec" not in result or "exitCode" not in result["exec"] for result in results.values())
    calls = sheet.calls()
    assert calls["c1"]["input"] == {"command": "echo one"}
    assert {call["requestedBy"] for call in calls.values()} == {"model"}
    assert sheet.one("turn")["status"] == "completed"
    assert states(ran)[-1] == "settled"
    launch = sheet.one("session")["native"]["extra"]["launch"]
    assert "--include-partial-messages" in launch["switches"]


def test_parallel_calls(house: MakeHouse) -> None:
    commands = [shell(f"p{number}", f"sleep 0.{3 - number}; echo {number}") for number in range(3)]
    with house([say(*commands), DONE], **ALLOWED) as at:
        sheet = held(at.run(), at)
    results = sheet.results()
    assert {name: result["content"][0]["text"] for name, result in results.items()} == {
        "p0": "0",
        "p1": "1",
        "p2": "2",
    }


def test_arguments_are_the_models_own(house: MakeHouse) -> None:
    """Claude Code rounds a big integer and cuts blanks before it stores them; the pieces have them whole."""
    wild = Use("w", "Bash", '{"command": "echo x", "timeout": 12345678901234567890}')
    edit = Use("e", "Edit", {"file_path": "/nowhere/x", "old_string": "a", "new_string": "b   "})
    with house([say(wild), say(edit), DONE], **ALLOWED) as at:
        ran = at.run()
        calls = held(ran, at).calls()
    assert calls["w"]["inputText"] == '{"command": "echo x", "timeout": 12345678901234567890}'
    assert calls["e"]["input"]["new_string"] == "b   "


def test_edits_with_their_diffs(house: MakeHouse) -> None:
    with house({}, **ALLOWED) as at:
        new, old = str(at.cwd / "new.txt"), str(at.cwd / "README.md")
        at.model.scripts = {
            "": [
                say(
                    Use("w", "Write", {"file_path": new, "content": "hello\n"}),
                    Use("r", "Read", {"file_path": old}),
                ),
                say(Use("e", "Edit", {"file_path": old, "old_string": "A demo.", "new_string": "A test."})),
                DONE,
            ]
        }
        sheet = held(at.run(), at)
        assert (at.cwd / "README.md").read_text() == "# acme\n\nA test.\n"
    changes = {one["callId"]: one for one in sheet.last("file_change")}
    assert [changes[name]["state"] for name in ("w", "e")] == ["applied", "applied"]
    assert changes["w"]["changes"][0]["path"] == {"root": "project", "path": "new.txt"}
    assert changes["e"]["changes"][0]["patch"]["value"][0]["lines"][-2:] == ["-A demo.", "+A test."]


def test_a_huge_output_is_cut_for_the_model_and_the_record_says_so(house: MakeHouse) -> None:
    with house([say(shell("h", "seq 1 20000")), DONE], **ALLOWED) as at:
        sheet = held(at.run(), at)
    result = sheet.results()["h"]
    assert result["capture"]["content"]["state"] == "truncated"
    assert result["capture"]["content"]["originalBytes"] == len("".join(f"{n}\n" for n in range(1, 20001)))
    assert "persisted-output" in result["content"][0]["text"]


# -- permissions --------------------------------------------------------------------------------------------------


def test_a_permission_that_a_person_gives_once_and_for_the_session(house: MakeHouse) -> None:
    answers = Answering("allow", "allow:0")
    with house({}) as at:
        writing = Use("b", "Write", {"file_path": str(at.cwd / "b.txt"), "content": "x"})
        at.model.scripts = {"": [say(shell("a", "touch a.txt")), say(writing), DONE]}
        ran = at.run(answers)
        sheet = held(ran, at)
        assert (at.cwd / "a.txt").exists()
        assert (at.cwd / "b.txt").exists()
    first, second = sheet.last("permission")
    assert (first["subject"], first["decision"], first["decidedBy"]) == (
        {"callId": "a"},
        "allow_once",
        "user",
    )
    assert (second["subject"], second["decision"]) == ({"callId": "b"}, "allow_session")


def test_a_permission_that_is_denied_with_words(house: MakeHouse) -> None:
    answers = Answering(Chosen("deny", "Use b instead."))
    with house([say(shell("a", "touch a.txt")), DONE]) as at:
        sheet = held(at.run(answers), at)
        assert not (at.cwd / "a.txt").exists()
        assert "Use b instead." in str(at.model.asked[-1].results["a"])
    permission = sheet.one("permission")
    assert (permission["decision"], permission["feedback"]) == ("reject_once", "Use b instead.")
    assert permission["decidedBy"] == "user"
    assert sheet.results()["a"]["status"] == "denied"
    assert "permission" not in sheet.results()["a"]


def test_a_policy_that_answers_says_so(house: MakeHouse) -> None:
    with house([say(shell("a", "touch a.txt")), DONE]) as at:
        sheet = held(at.run(Policy("reject")), at)
    assert sheet.one("permission")["decidedBy"] == "policy"
    assert sheet.results()["a"]["status"] == "denied"


def test_a_permission_that_is_cancelled_breaks_the_turn_off(house: MakeHouse) -> None:
    with house([say(shell("a", "touch a.txt")), DONE]) as at:
        ran = at.run(Answering(Cancelled()))
        sheet = held(ran, at)
        assert not (at.cwd / "a.txt").exists()
    assert isinstance(ran.result, Interrupted)
    permission = sheet.one("permission")
    assert (permission["status"], permission["decision"]) == ("resolved", "cancelled")
    assert sheet.one("turn")["status"] == "interrupted"


def test_one_permission_is_asked_while_another_is_open(house: MakeHouse) -> None:
    """Two agents at once: each asks, and both wait."""
    answers = Answering("allow", "deny", together=2)
    agents = [
        Use(f"t{number}", "Agent", {"description": "x", "prompt": f"[agent-{number}] go", **INNER})
        for number in (1, 2)
    ]
    scripts = {
        "[agent-1]": [say(shell("a1", "touch one.txt")), say("First done.")],
        "[agent-2]": [say(shell("a2", "touch two.txt")), say("Second done.")],
        "": [say(*agents), DONE],
    }
    with house(scripts) as at:
        ran = at.run(answers)
        sheet = held(ran, at)
    assert len(answers.asked) == 2
    opened = [event.request.request_id for event in ran.events if isinstance(event, RequestOpened)]
    closed = [event.request_id for event in ran.events if isinstance(event, RequestClosed)]
    assert sorted(opened) == sorted(closed)
    decided = {
        one["subject"]["callId"]: one["decision"]
        for stream in sheet.streams
        for one in sheet.last("permission", stream)
    }
    assert sorted(decided) == ["a1", "a2"]
    assert sorted(decided.values()) == ["allow_once", "reject_once"]


QUESTION = {
    "question": "Which one?",
    "header": "Pick",
    "multiSelect": False,
    "options": [{"label": "One", "description": "the first"}, {"label": "Two", "description": "the second"}],
}


def test_a_question_is_answered(house: MakeHouse) -> None:
    answers = Answering(Answered({"0": (("Two",), None)}))
    with house([say(Use("q", "AskUserQuestion", {"questions": [QUESTION]})), DONE]) as at:
        sheet = held(at.run(answers), at)
        assert "Two" in str(at.model.asked[-1].results["q"])
    assert isinstance(answers.asked[0], Questions)
    request = sheet.one("input_request")
    assert (request["callId"], request["status"]) == ("q", "answered")
    assert request["answers"] == [{"questionId": "0", "selected": ["Two"]}]
    assert request["answeredBy"] == {"name": "user"}
    assert not sheet.last("permission")


# -- tools of others, hooks, agents, processes ----------------------------------------------------------------------

MCP = """
import json, sys
asked = None
for line in sys.stdin:
    said = json.loads(line)
    params = said.get("params") or {}
    if said.get("method") == "tools/call" and params.get("name") == "ask_key":
        asked = said["id"]
        form = {"type": "object", "properties": {"key": {"type": "string", "writeOnly": True}}}
        print(json.dumps({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create",
                          "params": {"message": "Your key?", "requestedSchema": form}}), flush=True)
        continue
    if said.get("id") == "e1":
        content = said.get("result", {}).get("content") or {}
        text = "a key of %d characters" % len(content.get("key", "")) + str(said.get("error", ""))
        print(json.dumps({"jsonrpc": "2.0", "id": asked, "result": {"content": [{"type": "text", "text": text}]}}),
              flush=True)
        continue
    tool = {"inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}}}
    answers = {
        "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                       "serverInfo": {"name": "notes", "version": "0"}},
        "tools/list": {"tools": [{"name": "read_note", "description": "Reads a note.", **tool},
                                 {"name": "ask_key", "description": "Asks for a key.", **tool}]},
        "tools/call": {"content": [{"type": "text", "text": "note " + str(params.get("arguments"))}]},
    }
    if "id" in said:
        print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": answers.get(said["method"], {})}), flush=True)
"""


def with_notes(at: House) -> None:
    """An MCP server of the project, trusted."""
    server = at.out.parent / "notes.py"
    server.write_text(MCP, encoding="utf-8")
    told = {"mcpServers": {"my notes": {"command": sys.executable, "args": [str(server)]}}}
    (at.cwd / ".mcp.json").write_text(json.dumps(told), encoding="utf-8")


MCP_ALLOWED = {"enableAllProjectMcpServers": True, "permissions": {"allow": ["mcp__my_notes"]}}


def test_an_mcp_tool_and_its_server(house: MakeHouse) -> None:
    call = Use("m", "mcp__my_notes__read_note", {"id": "7"})
    with house([say(call), DONE], **MCP_ALLOWED) as at:
        with_notes(at)
        sheet = held(at.run(), at)
    provider = sheet.calls()["m"]["provider"]
    assert provider == {"kind": "mcp", "server": "my notes", "tool": "read_note", "identity": "parsed"}
    assert sheet.results()["m"]["status"] == "completed"


def test_a_form_that_a_server_asks_to_fill_in(house: MakeHouse) -> None:
    answers = Answering(FormFilled(Raw(b'{"key":"main"}')))
    with house([say(Use("m", "mcp__my_notes__ask_key", {})), DONE], **MCP_ALLOWED) as at:
        with_notes(at)
        ran = at.run(answers)
        sheet = held(ran, at)
    request = sheet.one("input_request")
    assert (request["mode"], request["status"], request["message"]) == ("form", "answered", "Your key?")
    assert request["response"] == {"key": "main"}
    assert request["answeredBy"] == {"name": "user"}
    assert "4 characters" in str(sheet.results()["m"])
    # Marks of a secret (writeOnly) do not reach the host: none could be kept from the record by them.
    assert request["requestedSchema"]["properties"] == {"key": {"type": "string"}}


def test_a_hook_that_refuses_and_one_that_only_looks(house: MakeHouse) -> None:
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}],
        "PostToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "echo looked"}]}],
    }
    with house({}, hooks=hooks, **ALLOWED) as at:
        reading = Use("r", "Read", {"file_path": str(at.cwd / "README.md")})
        at.model.scripts = {"": [say(shell("h", "touch no.txt")), say(reading), DONE]}
        sheet = held(at.run(), at)
        assert not (at.cwd / "no.txt").exists()
    assert sheet.results()["h"]["status"] == "denied"
    assert sheet.results()["h"]["permission"]["decidedBy"] == "hook"
    runs = {one["name"]: one for one in sheet.last("hook")}
    assert (runs["PreToolUse:Bash"]["event"], runs["PreToolUse:Bash"]["exitCode"]) == ("pre_tool_use", 2)
    assert (runs["PostToolUse:Read"]["status"], runs["PostToolUse:Read"]["stdout"]) == (
        "completed",
        "looked\n",
    )


def test_an_agent_has_a_stream_of_its_own(house: MakeHouse) -> None:
    task = {"description": "Look", "prompt": "[inner] look around", **INNER}
    scripts = {"[inner]": [say(shell("i", "ls")), say("Looked.")], "": [say(Use("t", "Agent", task)), DONE]}
    with house(scripts, **ALLOWED) as at:
        sheet = held(at.run(), at)
    agent = sheet.one("subagent")
    assert (agent["callId"], agent["name"], agent["status"]) == ("t", "general-purpose", "completed")
    inner = agent["stream"]
    assert [one["callId"] for one in sheet.last("tool_call", inner)] == ["i"]
    assert sheet.last("session", inner)[0]["parent"] == {"session": sheet.name, "callId": "t"}
    assert not sheet.last("terminal")


def test_a_background_shell(house: MakeHouse) -> None:
    started = shell("b", "sleep 1; echo end", run_in_background=True, description="Sleeps")
    script = [say(started), say(shell("w", "sleep 3")), DONE]
    with house(script, **ALLOWED) as at:
        sheet = held(at.run(), at)
    terminal = sheet.one("terminal")
    assert (terminal["callId"], terminal["command"], terminal["kind"]) == ("b", "sleep 1; echo end", "shell")
    assert (terminal["status"], "exitCode" in terminal) == ("exited", False)
    assert sheet.results()["b"]["exec"]["terminalId"] == terminal["terminalId"]
    assert "terminalId" not in sheet.results()["w"].get("exec", {})


# -- ends ---------------------------------------------------------------------------------------------------------


def test_an_interrupt_in_mid_command(house: MakeHouse) -> None:
    async def stop(session: Session, event: Event) -> None:
        if isinstance(event, CallPreview) and event.running:
            session.interrupt()

    with house([say(shell("s", "touch begun; sleep 30"), shell("n", "echo never")), DONE], **ALLOWED) as at:
        ran = at.run(during=stop)
        sheet = held(ran, at)
    assert isinstance(ran.result, Interrupted)
    assert {result["status"] for result in sheet.results().values()} == {"unknown"}
    assert all("content" not in result for result in sheet.results().values())
    assert sheet.one("turn")["status"] == "interrupted"
    assert "interrupting" in states(ran)


def test_an_interrupt_in_mid_message(house: MakeHouse) -> None:
    async def stop(session: Session, event: Event) -> None:
        if isinstance(event, MessagePreview) and len(event.text) > 30:
            session.interrupt()

    with house([say("word " * 400, pause=0.02), DONE], **ALLOWED) as at:
        ran = at.run(during=stop)
        sheet = held(ran, at)
    assert isinstance(ran.result, Interrupted)
    said = [one for one in sheet.last("message") if one["author"] == "model"]
    assert len(said) == 1
    assert 30 < len(said[0]["content"][0]["text"]) < 2000


def test_an_agent_that_is_killed_in_mid_call(house: MakeHouse) -> None:
    async def kill(session: Session, event: Event) -> None:
        if isinstance(event, CallPreview) and event.running:
            kill_agent(session)

    with house([say(shell("k", "touch begun; sleep 30")), DONE], **ALLOWED) as at:
        ran = at.run(during=kill)
        sheet = held(ran, at)
    assert isinstance(ran.result, Lost)
    assert not sheet.results()
    assert sheet.one("turn")["status"] == "lost"
    assert list(sheet.calls()) == ["k"]


def test_words_while_a_command_runs_and_a_second_turn(house: MakeHouse) -> None:
    async def both(at: House) -> tuple[Path, list[object]]:
        session = await at.opened()
        turn = session.start("First.")
        steered = False
        async for event in turn:
            if isinstance(event, CallPreview) and event.running and not steered:
                steered = isinstance(session.steer("Also look at the README."), Accepted)
        assert steered
        first = await turn.result()
        second = await session.start("Second.").result()
        closed = await session.close()
        return closed.bundle, [first, second]

    with house([say(shell("s", "touch begun; sleep 4")), say("Saw it."), say("Again.")], **ALLOWED) as at:
        bundle, results = asyncio.run(both(at))
        sheet = held_bundle(bundle, at)
        assert "Also look at the README." in json.dumps(at.model.asked[1].body["messages"])
    assert all(isinstance(result, Completed) for result in results)
    assert [turn["status"] for turn in sheet.last("turn")] == ["completed", "completed"]
    prompts = [one["content"][0]["text"] for one in sheet.last("message") if one["author"] == "user"]
    assert prompts == ["First.", "Also look at the README.", "Second."]


def test_a_session_is_gone_on_with(house: MakeHouse) -> None:
    async def run(at: House, prompt: str, resume: str | None = None) -> Path:
        session = await at.opened(resume=resume)
        await session.start(prompt).result()
        return (await session.close()).bundle

    with house([say(shell("a", "echo first")), DONE, say("I remember.")], **ALLOWED) as at:
        first = held_bundle(asyncio.run(run(at, "One.")), at)
        name = first.records[0]["nativeSessionId"]
        second = held_bundle(asyncio.run(run(at, "Two.", name)), at)
        assert len(at.model.asked[-1].body["messages"]) > 3
    assert second.records[0]["nativeSessionId"] == name
    assert not second.calls()
