"""The real Codex against a scripted model, through the live shell: what it does is recorded as it was."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.live.codex.house import (
    DONE,
    PROGRAM,
    TICKS,
    Answering,
    House,
    MakeHouse,
    agrees_with_rollout,
    held,
    once,
    outputs_in,
    outside,
    shell,
)

from callsheet.audit import audit_bundle
from callsheet.harness.codex import CODEX_AGENT
from callsheet.live import prepare
from callsheet.records.bundle import Bundle
from callsheet.seam import (
    Answered,
    Completed,
    Installed,
    Interrupted,
    Lost,
    OutputPreview,
    Permission,
    Questions,
    Recorded,
    RequestOpened,
    ThoughtPreview,
    TurnChanged,
)
from callsheet.testing.live_run import Ran, kill_agent
from callsheet.testing.scripted_models.responses import Call, Custom, Say, Think, respond

pytest.importorskip("codex_cli_bin", reason="needs the extra `live` (openai-codex-cli-bin)")
ASKS = {"approval": "on-request", "sandbox": "workspace-write"}
MCP = """
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    params = said.get("params") or {}
    answers = {
        "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                       "serverInfo": {"name": "notes", "version": "0"}},
        "tools/list": {"tools": [{"name": "read_note", "description": "Reads a note.",
                                  "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}}}]},
        "tools/call": {"content": [{"type": "text", "text": "note " + str(params.get("arguments"))}]},
    }
    if "id" in said:
        print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": answers.get(said["method"], {})}), flush=True)
"""


def states(ran: Ran) -> list[str]:
    return [event.state for event in ran.events if isinstance(event, TurnChanged)]


# -- commands -----------------------------------------------------------------------------------------------------


def test_what_is_installed_is_found(home: Path) -> None:
    found = asyncio.run(prepare(CODEX_AGENT, [str(PROGRAM)]))
    assert isinstance(found, Installed)
    assert found.version == "0.163.0"


def test_commands_that_go_well_and_that_fail(house: MakeHouse) -> None:
    with house([respond(shell("c1", "echo one"), shell("c2", "echo two >&2; exit 4")), DONE]) as at:
        ran = at.run()
        sheet = held(ran, at)
    assert isinstance(ran.result, Completed)
    results = sheet.results()
    assert [(results[name]["status"], results[name]["exec"]["exitCode"]) for name in ("c1", "c2")] == [
        ("completed", 0),
        ("failed", 4),
    ]
    assert results["c1"]["exec"]["output"] == "one\n"
    assert all("content" in result for result in results.values())
    calls = {call["callId"]: call for call in sheet.last("tool_call")}
    assert calls["c1"]["input"] == {"cmd": "echo one"}
    assert {call["requestedBy"] for call in calls.values()} == {"model"}
    assert sheet.one("turn")["status"] == "completed"
    assert states(ran)[-1] == "settled"


def test_parallel_calls(house: MakeHouse) -> None:
    commands = [shell(f"p{number}", f"sleep 0.{3 - number}; echo {number}") for number in range(3)]
    with house([respond(*commands), DONE]) as at:
        sheet = held(at.run(), at)
    results = sheet.results()
    assert {name: result["exec"]["output"] for name, result in results.items()} == {
        "p0": "0\n",
        "p1": "1\n",
        "p2": "2\n",
    }


def test_a_huge_output_is_whole(house: MakeHouse) -> None:
    with house([respond(shell("h", "seq -f 'line %.0f' 60000", yield_time_ms=30000)), DONE]) as at:
        ran = at.run()
        sheet = held(ran, at)
    result = sheet.results()["h"]
    name = result["capture"]["exec.output"]["blob"]["blob"]
    assert sheet.bundle.blob(name) == b"".join(b"line %d\n" % number for number in range(1, 60001))
    assert "truncated" in json.dumps(result["content"])
    for event in ran.events:
        if isinstance(event, OutputPreview):
            assert len(event.text.encode()) <= 64 * 1024


def test_a_background_shell_that_ends_later(house: MakeHouse) -> None:
    command = shell("b", "for i in 1 2 3 4; do echo t$i; sleep 0.3; done; exit 5", yield_time_ms=250)
    with house([respond(command), respond(shell("w", "sleep 2", yield_time_ms=5000)), DONE]) as at:
        sheet = held(at.run(), at)
    result = sheet.results()["b"]
    assert (result["status"], result["exec"]["exitCode"]) == ("failed", 5)
    assert result["exec"]["output"] == "t1\nt2\nt3\nt4\n"
    assert "running" in json.dumps(result["content"])


# -- files --------------------------------------------------------------------------------------------------------


def test_edits_with_their_diffs(house: MakeHouse) -> None:
    add = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"
    change = "*** Begin Patch\n*** Update File: new.txt\n@@\n-hello\n+bye\n*** End Patch\n"
    script = [respond(Custom("p1", "apply_patch", add)), respond(Custom("p2", "apply_patch", change)), DONE]
    with house(script, model="gpt-5.5") as at:
        sheet = held(at.run(), at)
        assert (at.cwd / "new.txt").read_text() == "bye\n"
    changes = {one["callId"]: one for one in sheet.last("file_change") if one["scope"] == "call"}
    assert [changes[name]["state"] for name in ("p1", "p2")] == ["applied", "applied"]
    assert changes["p1"]["changes"][0]["patch"] == {"format": "full_text", "value": "hello\n"}
    assert "-hello\n+bye" in changes["p2"]["changes"][0]["patch"]["value"]
    (turn,) = (one for one in sheet.last("file_change") if one["scope"] == "turn")
    assert "+bye" in turn["changes"][0]["patch"]["value"]


def test_a_patch_that_a_person_declines(house: MakeHouse, tmp_path: Path) -> None:
    target = Path("/var/tmp/callsheet-declined.txt")
    patch = f"*** Begin Patch\n*** Add File: {target}\n+hello\n*** End Patch\n"
    answers = Answering("decline")
    settings = {**ASKS, "model": "gpt-5.5", "tables": "[sandbox_workspace_write]\nexclude_slash_tmp = true\n"}
    with house([respond(Custom("p", "apply_patch", patch)), DONE], **settings) as at:
        sheet = held(at.run(answers), at)
    assert not target.exists()
    (change,) = sheet.last("file_change")
    assert (change["state"], sheet.results()["p"]["status"]) == ("declined", "denied")
    assert sheet.one("permission")["decision"] == "reject_once"


# -- permissions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "asked", "decision", "status"),
    [
        ("accept", 2, "allow_once", "completed"),
        ("acceptForSession", 1, "allow_session", "completed"),
        ("decline", 2, "reject_once", "denied"),
    ],
)
def test_a_permission(house: MakeHouse, option: str, asked: int, decision: str, status: str) -> None:
    answers = Answering(*[option] * asked)
    with house([respond(outside("c1", "touch a")), respond(outside("c2", "touch a")), DONE], **ASKS) as at:
        sheet = held(at.run(answers), at)
        assert (at.cwd / "a").exists() is (status == "completed")
    assert len(answers.asked) == asked
    permissions = sheet.last("permission")
    assert {(one["decision"], one["decidedBy"]) for one in permissions} == {(decision, "user")}
    assert [one["subject"]["callId"] for one in permissions] == ["c1", "c2"][:asked]
    assert {one["status"] for one in sheet.results().values()} == {status}


def test_a_permission_that_breaks_the_turn_off(house: MakeHouse) -> None:
    with house([respond(outside("c", "touch a"))], **ASKS) as at:
        ran = at.run(Answering("cancel"))
        sheet = held(ran, at)
    assert isinstance(ran.result, Interrupted)
    assert sheet.one("permission")["decision"] == "cancelled"
    assert sheet.results()["c"]["status"] == "denied"


def test_a_permission_asked_for_while_another_is_open(house: MakeHouse) -> None:
    answers = Answering("accept", "decline", together=2)
    with house([respond(outside("c1", "touch a"), outside("c2", "touch b")), DONE], **ASKS) as at:
        ran = at.run(answers)
        sheet = held(ran, at)
    calls = [one.call for one in answers.asked if isinstance(one, Permission)]
    assert sorted(str(call) for call in calls) == ["c1", "c2"]
    results = sheet.results()
    assert [results[str(call)]["status"] for call in calls] == ["completed", "denied"]
    assert states(ran).count("waiting") == 1


# -- questions, tools of servers, hooks, agents --------------------------------------------------------------------


def test_a_question_is_answered(house: MakeHouse) -> None:
    options = [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]
    asked = {"questions": [{"id": "w", "header": "W", "question": "Which?", "options": options}]}
    script = [respond(Call("q", "request_user_input", asked)), DONE]

    class Choosing:
        by = "user"

        async def answer(self, request: Any) -> Answered:
            assert isinstance(request, Questions)
            return Answered({"w": (("B",), "because")})

    with house(script, features="default_mode_request_user_input = true") as at:
        sheet = held(at.run(Choosing()), at)
        assert "because" in json.dumps(outputs_in(at.model))
    request = sheet.one("input_request")
    assert (request["status"], request["callId"], request["answeredBy"]) == (
        "answered",
        "q",
        {"name": "user"},
    )
    assert request["answers"] == [{"questionId": "w", "selected": ["B"], "text": "because"}]


def test_a_tool_of_a_server_asks_first(house: MakeHouse, tmp_path: Path) -> None:
    server = tmp_path / "notes.py"
    server.write_text(MCP, encoding="utf-8")
    tables = f'\n[mcp_servers.notes]\ncommand = "{sys.executable}"\nargs = ["{server}"]\n'
    tables += 'default_tools_approval_mode = "prompt"\n'
    calls = [respond(Call(name, "read_note", {"id": name}, "mcp__notes")) for name in ("m1", "m2")]
    with house([*calls, DONE], tables=tables, **ASKS) as at:
        sheet = held(at.run(Answering("accept", "decline")), at)
    results = sheet.results()
    assert [results[name]["status"] for name in ("m1", "m2")] == ["completed", "failed"]
    provider = {"kind": "mcp", "server": "notes", "tool": "read_note", "identity": "exact"}
    assert results["m1"]["provider"] == provider
    assert [one["decision"] for one in sheet.last("permission")] == ["allow_once", "reject_once"]
    assert all("subject" not in one for one in sheet.last("permission"))


def test_a_hook_lets_one_call_pass_and_blocks_another(house: MakeHouse, home: Path) -> None:
    hook = home / "hook.sh"
    hook.write_text("#!/bin/sh\nif grep -q forbidden; then echo no way >&2; exit 2; fi\n", encoding="utf-8")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    tables = f'\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "{hook}"\n'
    script = [respond(shell("c1", "echo one"), shell("c2", "echo forbidden")), DONE]
    with house(script, features="hooks = true", tables=tables) as at:
        at.trust_hooks()
        sheet = held(at.run(), at)
    hooks = {one["callId"]: one for one in sheet.last("hook")}
    assert {name: one["status"] for name, one in hooks.items()} == {"c1": "completed", "c2": "blocked"}
    assert hooks["c2"]["output"] == [{"type": "text", "text": "no way"}]
    results = sheet.results()
    assert results["c1"]["status"] == "completed"
    assert results["c2"]["status"] == "unknown"  # no field says that a hook stood in the way, only words
    assert "no way" in json.dumps(results["c2"]["content"])


def test_an_agent_of_the_agent_has_a_stream(house: MakeHouse) -> None:
    def wait(request: Any) -> Any:
        agent = json.loads(request.outputs["s"])["agent_id"]
        return respond(Call("w", "wait_agent", {"targets": [agent]}, "multi_agent_v1"))

    scripts = {
        "": [respond(Call("s", "spawn_agent", {"message": "LOOK AROUND"}, "multi_agent_v1")), wait, DONE],
        "LOOK AROUND": [respond(shell("inner", "echo child")), respond(Say("Looked."))],
    }
    with house(scripts) as at:
        sheet = held(at.run(), at)
    agent = sheet.one("subagent")
    assert (agent["callId"], agent["status"], agent["stream"]) == ("s", "completed", agent["agentId"])
    child = sheet.streams[agent["stream"]]
    parent = {"session": sheet.records[0]["nativeSessionId"]}
    # On a busy machine the agent speaks before its parent's thread names it.
    assert child[0]["parent"] == parent
    above = [(one.id, one.parent) for one in sheet.bundle.manifest.streams]
    assert above == [(parent["session"], None), (agent["stream"], parent["session"])]
    assert [one["callId"] for one in child if one["type"] == "tool_call"] == ["inner"]


def test_a_summary_is_shown_and_raw_reasoning_never(house: MakeHouse) -> None:
    thought = Think(("**Plan**\n\nLook first.",), ("private chain of thought",))
    with house([respond(thought, shell("c", "echo one")), DONE]) as at:
        ran = at.run()
        sheet = held(ran, at)
    shown = [event.text for event in ran.events if isinstance(event, ThoughtPreview)]
    assert all(
        "**Plan**\n\nLook first.".startswith(text) for text in shown
    )  # some are left out on a busy machine
    summary = next(one for one in sheet.last("reasoning") if one.get("form") == "summary")
    assert summary["content"] == [{"type": "text", "text": "**Plan**\n\nLook first."}]
    assert not any("private chain" in repr(event) for event in ran.events)


# -- ends ---------------------------------------------------------------------------------------------------------


def test_an_interrupt_in_mid_command(house: MakeHouse) -> None:
    with house([respond(shell("i", TICKS, yield_time_ms=20000))]) as at:
        ran = at.run(during=once(lambda session: session.interrupt()))
        sheet = held(ran, at)
    assert isinstance(ran.result, Interrupted)
    assert sheet.one("turn")["status"] == "interrupted"
    preview = sheet.one("preview")
    assert preview["callId"] == "i"
    assert "tick 3" in preview["output"]
    assert "i" not in {name for name, one in sheet.results().items() if one["status"] == "completed"}


def test_an_agent_that_is_killed_in_mid_call(house: MakeHouse) -> None:
    with house([respond(shell("k", TICKS, yield_time_ms=20000))]) as at:
        ran = at.run(during=once(kill_agent))
        sheet = held(ran, at)
    assert isinstance(ran.result, Lost)
    assert ran.closed is not None
    assert ran.closed.signal == "SIGKILL"
    assert sheet.one("turn")["status"] == "lost"
    assert sheet.results() == {}
    assert "tick 3" in sheet.one("preview")["output"]


def test_a_record_is_on_disk_before_it_is_given_out(house: MakeHouse) -> None:
    with house([respond(shell("c", "echo one")), DONE]) as at:
        ran = at.run()
        held(ran, at)
    kinds = [event.record.__class__.__name__ for event in ran.events if isinstance(event, Recorded)]
    assert {"ToolCall", "ToolResult", "Message", "Turn"} <= set(kinds)
    assert not any(isinstance(event, RequestOpened) for event in ran.events)


def typed(house: House, out: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """``callsheet run`` as a person would type it: its exit code and what it printed."""
    command = [sys.executable, "-m", "callsheet", "run", "codex", "--agent", str(house.program), "--json"]
    command += ["--cwd", str(house.cwd), "--out", str(out), *options, "--", "Please do the task."]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=120)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_the_command_runs_it_and_goes_on_with_its_thread(house: MakeHouse, tmp_path: Path) -> None:
    turns = [respond(outside("c", "echo one")), DONE, respond(shell("d", "echo two")), DONE]
    with house(turns, **ASKS) as at:
        code, printed = typed(at, tmp_path / "one", "--answer", "allow")
        assert code == 0
        session = printed[0]["nativeSessionId"]
        (asked,) = [one for one in printed if one.get("status") == "resolved"]
        assert (asked["type"], asked["decision"], asked["decidedBy"]) == (
            "permission",
            "allow_once",
            "policy",
        )
        assert printed[-1]["result"] == "completed"
        again, more = typed(at, tmp_path / "two", "--resume", session)
        assert (again, more[0]["nativeSessionId"], more[-1]["result"]) == (0, session, "completed")
        results = {one["callId"]: one["exec"]["output"] for one in more if one.get("type") == "tool_result"}
        assert results == {"d": "two\n"}
        for printing in (printed, more):
            bundle = Path(printing[-1]["bundle"])
            agrees_with_rollout(bundle, at)
            assert list(audit_bundle(Bundle(bundle))) == []
