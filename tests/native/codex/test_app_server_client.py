"""The client of an app server: handshake, turns, requests, controls; and captures played to it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from tests.native.codex.frames import CWD, THREAD, TURN, Wire

from callsheet.harness._port.frames import log_line
from callsheet.harness._port.units import Hole, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex import CODEX_AGENT, CODEX_APP_SERVER
from callsheet.harness.codex.app_server.client import Client
from callsheet.records import ENCODER
from callsheet.seam import (
    Accepted,
    Answer,
    Answered,
    CallPreview,
    Cancelled,
    Chosen,
    Completed,
    Declined,
    Ended,
    Failed,
    FormAsked,
    FormFilled,
    Installed,
    Interrupted,
    Lost,
    MessagePreview,
    Noted,
    NotStarted,
    Opened,
    OutputPreview,
    Permission,
    Questions,
    Rejected,
    RequestClosed,
    RequestOpened,
    Send,
    Step,
    ThoughtPreview,
    TurnChanged,
    Unusable,
    UrlAsked,
    UrlOpened,
    Wish,
)
from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES
from callsheet.testing.desk import Files, MemoryDesk, read_session
from callsheet.wire.blobs import digest
from callsheet.wire.lines import split_lines

COMMAND = "item/commandExecution/requestApproval"
QUESTIONS = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"


def sent(steps: Any) -> list[dict[str, Any]]:
    return [json.loads(step.frame) for step in steps if isinstance(step, Send)]


class Server:
    """The other end: takes what the client sends, and says what a server would."""

    def __init__(self, wish: Wish | None = None) -> None:
        self.client = CODEX_AGENT.driver(wish or Wish(cwd=CWD))
        self.frames = sent(self.client.open())

    def say(self, **frame: Any) -> list[Step]:
        steps = self.client.receive(json.dumps(frame).encode())
        self.frames += sent(steps)
        return steps

    def reply(self, **result: Any) -> list[Step]:
        return self.say(id=self.frames[-1]["id"], result=result)

    def tell(self, method: str, **params: Any) -> list[Step]:
        return self.say(method=method, params={"threadId": THREAD, "turnId": TURN, **params})

    def opened(self) -> list[Step]:
        self.reply(userAgent="callsheet/0.163.0 (Linux)")
        return self.reply(thread={"id": THREAD}, model="demo")

    def begun(self) -> None:
        self.opened()
        self.frames += sent(self.client.start("go"))
        self.reply(turn={"id": TURN, "status": "inProgress"})
        self.tell("turn/started", turn={"id": TURN, "status": "inProgress"})

    def ended(self, status: str, error: Any = None) -> list[Step]:
        return self.tell("turn/completed", turn={"id": TURN, "status": status, "error": error})

    def ask(self, number: Any, method: str, **params: Any) -> Any:
        (*_, opened) = self.say(
            id=number, method=method, params={"threadId": THREAD, "turnId": TURN, **params}
        )
        return opened.request if isinstance(opened, RequestOpened) else opened


# -- opening ------------------------------------------------------------------------------------------------------


def test_a_thread_is_opened_with_raw_events_and_nothing_else_set() -> None:
    server = Server()
    (opened,) = server.opened()
    assert [frame["method"] for frame in server.frames] == ["initialize", "initialized", "thread/start"]
    assert server.frames[2]["params"] == {"cwd": CWD, "experimentalRawEvents": True}
    assert server.frames[0]["params"]["capabilities"] == {"experimentalApi": True}
    assert isinstance(opened, Opened)
    assert (opened.session, opened.version, opened.model) == (THREAD, "0.163.0", "demo")
    assert [switch.rsplit(" = ")[0] for switch in server.client.launch().switches] == [
        "initialize: capabilities.experimentalApi",
        "thread/start: experimentalRawEvents",
    ]


@pytest.mark.parametrize(
    ("mode", "member"),
    [("never", "approvalPolicy"), ("read-only", "sandbox"), ("on-request", "approvalPolicy")],
)
def test_what_is_wished_for_is_asked_for(mode: str, member: str) -> None:
    server = Server(Wish(cwd=CWD, model="m", mode=mode, resume=THREAD))
    server.reply(userAgent="x/0.163.0")
    assert server.frames[-1]["method"] == "thread/resume"
    wanted = {"cwd": CWD, "model": "m", member: mode, "threadId": THREAD, "excludeTurns": True}
    assert server.frames[-1]["params"] == wanted
    assert len(server.client.launch().switches) == 1


def test_a_mode_that_there_is_not() -> None:
    server = Server(Wish(cwd=CWD, mode="yolo"))
    (ended,) = server.reply(userAgent="x/0.163.0")
    assert isinstance(ended, Ended)
    assert isinstance(ended.result, NotStarted)
    assert "no mode yolo" in ended.result.reason


def test_a_version_without_raw_events_is_asked_again() -> None:
    server = Server()
    server.reply(userAgent="x/0.50.0")
    server.say(id=server.frames[-1]["id"], error={"code": -32600, "message": "unknown field"})
    assert server.frames[-1]["params"] == {"cwd": CWD}
    (opened,) = server.reply(thread={"id": THREAD})
    assert isinstance(opened, Opened)
    assert len(server.client.launch().switches) == 1


def test_no_thread() -> None:
    server = Server(Wish(cwd=CWD, resume="gone"))
    server.reply(userAgent="x/0.163.0")
    (ended,) = server.say(id=server.frames[-1]["id"], error={"code": -32600, "message": "no rollout found"})
    assert ended == Ended(NotStarted("the agent did not go on with the thread: no rollout found"))
    assert server.client.gone(0, None) == []


def test_what_is_installed() -> None:
    found = CODEX_AGENT.qualify(("codex",), "codex-cli 0.163.0\n")
    assert isinstance(found, Installed)
    assert (found.version, type(found.abilities[0]).__name__) == ("0.163.0", "Can")
    old, new = (CODEX_AGENT.qualify(("codex",), f"codex-cli {version}") for version in ("0.20.0", "1.0.0"))
    assert isinstance(old, Installed)
    assert isinstance(new, Installed)
    assert {type(one.abilities[0]).__name__ for one in (old, new)} == {"Untried"}
    assert isinstance(CODEX_AGENT.qualify(("codex",), "segfault"), Unusable)


# -- turns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error", "result"),
    [
        ("completed", None, Completed("completed")),
        ("interrupted", None, Interrupted("interrupted")),
        ("failed", {"message": "bad", "codexErrorInfo": "other"}, Failed("bad", "other")),
        (
            "failed",
            {"message": "bad", "codexErrorInfo": {"httpConnectionFailed": {}}},
            Failed("bad", "httpConnectionFailed"),
        ),
        ("failed", None, Failed(None, "failed")),
        ("paused", None, Lost("the agent ended the turn with a word that is not known: paused")),
    ],
)
def test_how_a_turn_ends(status: str, error: Any, result: Any) -> None:
    server = Server()
    server.begun()
    assert server.ended(status, error) == [TurnChanged("settled"), Ended(result)]
    assert server.ended(status, error) == []


def test_a_turn_that_never_started() -> None:
    server = Server()
    server.opened()
    server.frames += sent(server.client.start("go"))
    steps = server.say(id=server.frames[-1]["id"], error={"code": -1, "message": "busy"})
    assert steps[-1] == Ended(NotStarted("busy"))


def test_the_end_of_another_thread_s_turn_ends_nothing() -> None:
    server = Server()
    server.begun()
    assert server.tell("turn/completed", threadId="other", turn={"id": "t9", "status": "completed"}) == []
    assert server.tell("turn/completed", turn={"id": "an earlier one", "status": "completed"}) == []


def test_a_server_that_dies() -> None:
    server = Server()
    server.begun()
    server.ask(0, COMMAND, itemId="c")
    closed, settled, ended = server.client.gone(None, "SIGKILL")
    assert closed == RequestClosed("0", "ended")
    assert settled == TurnChanged("settled")
    assert ended == Ended(Lost("the agent ended by SIGKILL before the turn did"))
    assert server.client.gone(None, "SIGKILL") == []
    early = CODEX_AGENT.driver(Wish(cwd=CWD))
    early.open()
    assert early.gone(1, None) == [Ended(NotStarted("the agent ended with 1 before it opened a thread"))]


def test_interrupting_counts_when_the_server_says_so() -> None:
    server = Server()
    server.opened()
    assert isinstance(server.client.interrupt().receipt, Rejected)
    server.frames += sent(server.client.start("go"))
    start = server.frames[-1]["id"]
    reply = server.client.interrupt()
    assert reply.receipt == Accepted()
    assert sent(reply.steps) == []  # the server has not named the turn yet
    (asked,) = sent(server.say(id=start, result={"turn": {"id": TURN}}))
    assert (asked["method"], asked["params"]) == ("turn/interrupt", {"threadId": THREAD, "turnId": TURN})
    assert isinstance(server.client.interrupt().receipt, Rejected)
    assert server.tell("turn/started", turn={"id": TURN}) == []
    assert server.ended("interrupted")[-1] == Ended(Interrupted("interrupted"))


def test_steering() -> None:
    server = Server()
    server.begun()
    reply = server.client.steer("also this")
    (frame,) = sent(reply.steps)
    assert frame["method"] == "turn/steer"
    assert frame["params"]["expectedTurnId"] == TURN
    (noted,) = server.say(id=frame["id"], error={"code": -1, "message": "too late"})
    assert noted == Noted("the agent did not take the words: too late")
    server.ended("completed")
    assert isinstance(server.client.steer("more").receipt, Rejected)


# -- requests -----------------------------------------------------------------------------------------------------


def test_a_command_may_be_answered_by_more_than_is_listed() -> None:
    server = Server()
    server.begun()
    amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "/x"]}}
    asked = server.ask(
        0,
        COMMAND,
        itemId="c",
        command="touch /x",
        reason="why",
        availableDecisions=["accept", amendment, "cancel"],
    )
    assert isinstance(asked, Permission)
    assert (asked.call, asked.command, asked.reason) == ("c", "touch /x", "why")
    assert [(one.option_id, one.kind) for one in asked.options] == [
        ("accept", "allow_once"),
        ("acceptWithExecpolicyAmendment", "allow_always"),
        ("acceptForSession", "allow_session"),
        ("decline", "reject_once"),
        ("cancel", "cancel"),
    ]
    assert asked.options[1].name == "touch /x"
    reply = server.client.answer("0", Chosen("acceptWithExecpolicyAmendment"))
    assert sent(reply.steps) == [{"id": 0, "result": {"decision": amendment}}]
    assert reply.steps[1:] == (
        RequestClosed("0", "answered", "acceptWithExecpolicyAmendment"),
        TurnChanged("running"),
    )
    assert isinstance(server.client.answer("0", Chosen("accept")).receipt, Rejected)


def test_typing_into_a_terminal_names_the_call_that_types() -> None:
    server = Server()
    server.begun()
    asked = server.ask(0, COMMAND, kind="writeStdin", itemId="first", approvalId="second", command="x")
    assert asked.call == "second"


Given = tuple[str, dict[str, Any], Answer, dict[str, Any]]
ASKED = {"permissions": {"network": {"enabled": True}}, "itemId": "c"}
QUESTION = {"id": "q", "header": "H", "question": "Which?", "isSecret": False, "options": [{"label": "A"}]}
TOOL = {
    "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["session"]},
    "message": "Run?",
    "mode": "form",
}
FORM = {
    "_meta": None,
    "message": "Name?",
    "mode": "form",
    "requestedSchema": {"type": "object", "properties": {}},
}
URL = {"_meta": None, "message": "Sign in", "mode": "url", "url": "https://x.invalid"}
PATCH = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"


@pytest.mark.parametrize(
    ("method", "params", "answer", "result"),
    [
        (COMMAND, {"itemId": "c"}, Chosen("acceptForSession"), {"decision": "acceptForSession"}),
        (PATCH, {"itemId": "c"}, Chosen("decline"), {"decision": "decline"}),
        (PATCH, {"itemId": "c"}, Cancelled(), {"decision": "cancel"}),
        (PERMISSIONS, ASKED, Chosen("accept"), {"permissions": ASKED["permissions"], "scope": "turn"}),
        (
            PERMISSIONS,
            ASKED,
            Chosen("acceptForSession"),
            {"permissions": ASKED["permissions"], "scope": "session"},
        ),
        (PERMISSIONS, ASKED, Chosen("decline"), {"permissions": {}, "scope": "turn"}),
        (ELICITATION, TOOL, Chosen("accept"), {"action": "accept", "content": {}, "_meta": None}),
        (
            ELICITATION,
            TOOL,
            Chosen("acceptForSession"),
            {"action": "accept", "content": {}, "_meta": {"persist": "session"}},
        ),
        (ELICITATION, TOOL, Chosen("decline"), {"action": "decline", "content": None, "_meta": None}),
        (
            ELICITATION,
            FORM,
            FormFilled(Raw(b'{"a":1}')),
            {"action": "accept", "content": {"a": 1}, "_meta": None},
        ),
        (ELICITATION, FORM, Declined(), {"action": "decline", "content": None, "_meta": None}),
        (ELICITATION, URL, UrlOpened(), {"action": "accept", "content": None, "_meta": None}),
        (ELICITATION, URL, Cancelled(), {"action": "cancel", "content": None, "_meta": None}),
        (
            QUESTIONS,
            {"itemId": "c", "questions": [QUESTION]},
            Answered({"q": (("A",), "and more")}),
            {"answers": {"q": {"answers": ["A", "and more"]}}},
        ),
        (QUESTIONS, {"itemId": "c", "questions": [QUESTION]}, Declined(), {"answers": {}}),
    ],
)
def test_every_kind_of_request_and_its_answers(
    method: str, params: dict[str, Any], answer: Answer, result: dict[str, Any]
) -> None:
    server = Server()
    server.begun()
    asked = server.ask("r1", method, **params)
    assert isinstance(asked, Permission | Questions | FormAsked | UrlAsked)
    for wrong in (Chosen("nothing"), Answered({"z": ((), None)}), FormFilled(Raw(b"[]"))):
        assert isinstance(server.client.answer("r1", wrong).receipt, Rejected)
    reply = server.client.answer("r1", answer)
    assert reply.receipt == Accepted()
    assert sent(reply.steps) == [{"id": "r1", "result": result}]


def test_several_requests_at_once_and_one_that_goes_away() -> None:
    server = Server()
    server.begun()
    for number in (0, 1):
        server.ask(number, COMMAND, itemId=f"c{number}")
    assert (
        server.say(id=1, method=COMMAND, params={"threadId": THREAD, "itemId": "c1"}) == []
    )  # delivered again
    assert server.client.answer("0", Chosen("accept")).steps[1:] == (
        RequestClosed("0", "answered", "accept"),
    )
    steps = server.tell("serverRequest/resolved", requestId=1)
    assert steps == [RequestClosed("1", "withdrawn", "resolved"), TurnChanged("running")]
    assert server.tell("serverRequest/resolved", requestId=0) == []


def test_a_request_of_another_agent_of_the_connection_opens_too() -> None:
    server = Server()
    server.begun()
    opened = server.say(id=5, method=COMMAND, params={"threadId": "child", "itemId": "c"})
    assert isinstance(opened[-1], RequestOpened)


@pytest.mark.parametrize("method", ["item/tool/call", "account/chatgptAuthTokens/refresh", "something/new"])
def test_what_we_do_not_serve_is_refused(method: str) -> None:
    server = Server()
    server.begun()
    (frame,) = sent(server.say(id=3, method=method, params={}))
    assert frame == {"id": 3, "error": {"code": -32601, "message": f"method not found: {method}"}}


# -- previews -----------------------------------------------------------------------------------------------------


def test_what_is_shown_while_it_runs() -> None:
    server = Server()
    server.begun()
    command = {"type": "commandExecution", "id": "c", "command": "make", "status": "inProgress"}
    assert server.tell("item/started", item=command) == [CallPreview(call="c", title="make", running=True)]
    server.tell("item/commandExecution/outputDelta", itemId="c", delta="a\n")
    (shown,) = server.tell("item/commandExecution/outputDelta", itemId="c", delta="b\n")
    assert shown == OutputPreview(call="c", text="a\nb\n")
    server.tell("item/agentMessage/delta", itemId="m", delta="Hel")
    assert server.tell("item/agentMessage/delta", itemId="m", delta="lo") == [
        MessagePreview(key="m", text="Hello")
    ]
    (thought,) = server.tell("item/reasoning/summaryTextDelta", itemId="r", delta="**Look**", summaryIndex=0)
    assert thought == ThoughtPreview(key="r 0", text="**Look**")
    assert server.tell("item/reasoning/textDelta", itemId="r", delta="private") == []
    assert server.tell("account/rateLimits/updated", rateLimits={}) == []
    assert server.tell("error", error={"message": "Reconnecting"}, willRetry=True) == [Noted("Reconnecting")]


def test_a_preview_stays_within_its_budget() -> None:
    server = Server()
    server.begun()
    last: Any = None
    for number in range(5_000):
        (last,) = server.tell(
            "item/commandExecution/outputDelta", itemId="c", delta=f"line {number} " + "x" * 300 + "\n"
        )
    assert len(last.text.encode()) <= OUTPUT_BYTES
    assert last.text.count("\n") <= OUTPUT_LINES
    assert last.text.endswith("x\n")
    assert last.omitted_bytes > 0


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b'{"id":9}',
        b'{"method":1}',
        b'{"id":0,"method":"item/tool/requestUserInput"}',
    ],
)
def test_nothing_that_a_server_may_send_raises(line: bytes) -> None:
    server = Server()
    server.begun()
    for _ in range(2):
        assert all(isinstance(step, Send) for step in server.client.receive(line))
        server.client.mask(line, from_agent=True)


# -- what may be written ------------------------------------------------------------------------------------------


def test_a_secret_and_raw_reasoning_are_masked_before_they_are_written() -> None:
    server = Server()
    server.begun()
    secret = {**QUESTION, "isSecret": True}
    asked = {
        "id": 0,
        "method": QUESTIONS,
        "params": {"threadId": THREAD, "itemId": "c", "questions": [secret]},
    }
    data = json.dumps(asked).encode()
    assert server.client.mask(data, from_agent=True) == data
    server.client.receive(data)
    (step, *_) = server.client.answer("0", Answered({"q": ((), "hunter2")})).steps
    assert isinstance(step, Send)
    assert b"hunter2" in step.frame
    kept = server.client.mask(step.frame, from_agent=False)
    assert b"hunter2" not in kept
    assert len(kept) == len(step.frame)
    echo = json.dumps({"method": "x", "params": {"a": 'said {"t":"hunter2"}'}}).encode()
    assert b"hunter2" not in server.client.mask(echo, from_agent=True)
    item = {"type": "reasoning", "id": "r", "summary": ["fine"], "content": ["private"]}
    frame = json.dumps({"method": "item/completed", "params": {"threadId": THREAD, "item": item}}).encode()
    clean = server.client.mask(frame, from_agent=True)
    assert b"private" not in clean
    assert b"fine" in clean


# -- captures, played again ---------------------------------------------------------------------------------------

PLAYED = (
    *(
        "approve_accept",
        "approve_decline",
        "approve_amend",
        "approve_untrusted_parallel",
        "approve_pending_interrupt",
    ),
    *(
        "patch_decline",
        "patch_session",
        "request_permissions",
        "mcp_approval",
        "user_input",
        "secret_question",
    ),
    *("interrupt_stream", "write_stdin_approval", "api_400", "shell_fail", "subagents_v2", "reasoning"),
)


def answer_of(client: Client, number: str, result: dict[str, Any]) -> Answer:
    """The answer that stands for a captured one."""
    asked = client._requests.open[number].waiting
    if isinstance(asked, Questions):
        return Answered({name: (tuple(one["answers"]), None) for name, one in result["answers"].items()})
    if isinstance(asked, FormAsked):
        return (
            FormFilled(Raw(json.dumps(result["content"]).encode()))
            if result["action"] == "accept"
            else Declined()
        )
    told = result.get("decision", result.get("action", "accept"))
    return Chosen(next(iter(told)) if isinstance(told, dict) else told)


def played(client: Client, frames: Iterator[tuple[str, Any]]) -> Iterator[tuple[bool, bytes, list[Step]]]:
    """A captured conversation with our client in the place of the captured one; every frame, and what came of it."""

    def given(steps: Any) -> Iterator[tuple[bool, bytes, list[Step]]]:
        steps = list(steps)
        yield from ((False, step.frame, []) for step in steps if isinstance(step, Send))
        yield (False, b"", steps)

    yield from given(client.open())
    opened = False
    for way, frame in frames:
        if way == "server":
            data = json.dumps(frame).encode()
            steps = client.receive(data)
            opened = opened or any(isinstance(step, Opened) for step in steps)
            yield (True, data, [step for step in steps if not isinstance(step, Send)])
            yield from given(step for step in steps if isinstance(step, Send))
        elif way != "client":
            continue
        elif frame.get("method") == "turn/start" and opened:
            yield from given(client.start(frame["params"]["input"][0]["text"]))
        elif frame.get("method") == "turn/interrupt":
            yield from given(client.interrupt().steps)
        elif "result" in frame and str(frame["id"]) in client._requests.open:
            reply = client.answer(str(frame["id"]), answer_of(client, str(frame["id"]), frame["result"]))
            assert reply.receipt == Accepted()
            (own,) = sent(reply.steps)
            assert own == frame  # what a real server took
            yield from given(reply.steps)


@pytest.mark.parametrize("name", PLAYED)
def test_a_capture_played_again_gives_the_records_of_its_log(name: str, shared: Path) -> None:
    path = shared / "captures" / "codex" / "0.163.0" / name / "app" / "frames.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    client = CODEX_AGENT.driver(Wish(cwd="/work-demo/acme-app2"))
    log, steps = b"", []
    for from_agent, frame, told in played(client, ((one["dir"], one["frame"]) for one in lines)):
        steps += told
        if frame:
            kept = client.mask(frame, from_agent=from_agent)
            log += log_line(kept, from_agent=from_agent, ts="2026-11-30T10:00:00.000Z") + b"\n"
    opened = [step.request.request_id for step in steps if isinstance(step, RequestOpened)]
    closed = [step.request_id for step in steps if isinstance(step, RequestClosed)]
    assert sorted(opened) == sorted(closed)
    turns = [
        one["frame"]["params"]["turn"]["status"]
        for one in lines
        if one["dir"] == "server"
        and one["frame"].get("method") == "turn/completed"
        and one["frame"]["params"]["threadId"] == client._thread
    ]
    results = [type(step.result).__name__.lower() for step in steps if isinstance(step, Ended)]
    assert results == turns
    assert turns

    files = Files({"/log.jsonl": log})
    (session,) = CODEX_APP_SERVER.sessions("/log.jsonl", files)
    stored = read_session(CODEX_APP_SERVER, session, files)
    assert lived(log, files) == {stream.id: list(stream.lines) for stream in stored.streams}


def lived(log: bytes, files: Files) -> dict[str, list[bytes]]:
    """The records of a log, as a live connection writes them."""
    desk = MemoryDesk(files)
    source = desk.source("/log.jsonl", CODEX_AGENT.kind)
    source.sha256 = digest(log)  # a live log has none yet
    fold = CODEX_AGENT.fold(desk, Veil(desk), [source])
    streams: dict[str, list[bytes]] = {}
    settled = []
    for unit in native_units(split_lines([log]), fold.reading):
        assert not isinstance(unit, Hole)
        settled += fold.feed(source, unit)
    for name, record in [*settled, *fold.close()]:
        kept = streams.setdefault(name or "", [])
        record.seq = len(kept)
        kept.append(ENCODER.encode(record))
    return streams


def test_the_wire_of_these_tests_is_a_log_of_this_protocol() -> None:
    assert CODEX_APP_SERVER.recognises("x", Wire().data)
