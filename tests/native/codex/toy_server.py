"""A toy app server of a few lines: ``python toy_server.py PLAY`` plays one play of ``callsheet.testing.check_live``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

THREAD, TURN = "toy-thread", "toy-turn"
COMMAND = {"type": "commandExecution", "id": "c1", "command": "ls", "cwd": "/w", "processId": "1", "source": "agent"}
RUNNING = {**COMMAND, "status": "inProgress", "aggregatedOutput": None, "exitCode": None}
ENDED = {**COMMAND, "status": "completed", "aggregatedOutput": "a\n", "exitCode": 0}


def put(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def say(**frame: Any) -> None:
    put(json.dumps(frame).encode())


def tell(method: str, **params: Any) -> None:
    say(method=method, params={"threadId": THREAD, "turnId": TURN, **params})


def item(word: str, told: dict[str, Any]) -> None:
    tell(f"item/{word}", item=told)


def end(status: str) -> None:
    tell("turn/completed", turn={"id": TURN, "status": status, "items": [], "error": None})


def frames() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def opened(asked: Iterator[dict[str, Any]]) -> None:
    """Takes the handshake, the thread and the prompt."""
    for frame in asked:
        match frame.get("method"):
            case "initialize":
                say(id=frame["id"], result={"userAgent": "toy/0.163.0"})
            case "thread/start":
                thread = {"id": THREAD, "cwd": frame["params"]["cwd"], "cliVersion": "0.163.0"}
                say(id=frame["id"], result={"thread": thread, "model": "toy"})
            case "turn/start":
                say(id=frame["id"], result={"turn": {"id": TURN, "status": "inProgress"}})
                tell("turn/started", turn={"id": TURN, "status": "inProgress"})
                return
            case _:
                pass  # said, not asked


def begin() -> None:
    item("started", RUNNING)
    tell("item/commandExecution/outputDelta", itemId="c1", delta="half\n")


def answer_to(number: Any, asked: Iterator[dict[str, Any]]) -> Any:
    return next(frame.get("result") for frame in asked if frame.get("id") == number and "method" not in frame)


def play(name: str) -> None:
    if name == "never_starts":
        sys.exit("no account")
    if name == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asked = frames()
    opened(asked)
    match name:
        case "completes":
            begin()
            item("completed", ENDED)
            item("completed", {"type": "agentMessage", "id": "m1", "text": "hello"})
        case "asks":
            begin()
            wanted = {"itemId": "c1", "command": "ls", "availableDecisions": ["accept", "cancel"]}
            say(id=0, method="item/commandExecution/requestApproval", params={"threadId": THREAD, **wanted})
            allowed = answer_to(0, asked)["decision"] == "accept"
            tell("serverRequest/resolved", requestId=0)
            item("completed", ENDED if allowed else {**ENDED, "status": "declined"})
        case "interrupted":
            begin()
            frame = next(frame for frame in asked if frame.get("method") == "turn/interrupt")
            say(id=frame["id"], result={})
            end("interrupted")
        case "deaf":
            begin()
            time.sleep(60)
        case "crashes":
            begin()
            os.kill(os.getpid(), signal.SIGKILL)
        case "late":
            begin()
            item("completed", ENDED)
        case "secret":
            question: dict[str, object] = {"id": "q", "header": "T", "question": "Token?", "isSecret": True, "options": None}
            params: dict[str, Any] = {"threadId": THREAD, "itemId": "q1", "questions": [question], "isBlocking": True}
            say(id=0, method="item/tool/requestUserInput", params=params)
            words = json.dumps(answer_to(0, asked))
            item("completed", {"type": "agentMessage", "id": "m1", "text": f"You said {words}."})
        case "unknown":
            tell("something/new", value=[1])
            say(id=7, method="something/asked", params={})
            for odd in (b"7", b"[]", b'{"torn": ', b"not json \xff\xfe \x00 at all", b"", b'{"id": 99, "result": null}'):
                put(odd)
            item("completed", {"type": "agentMessage", "id": "m1", "text": "still here"})
        case _:
            raise ValueError(name)
    end("completed")
    if name == "late":
        wanted = {"itemId": "c2", "command": "ls", "availableDecisions": ["accept", "cancel"]}
        say(id=0, method="item/commandExecution/requestApproval", params={"threadId": THREAD, **wanted})
        answer_to(0, asked)
    for _ in asked:
        pass


if __name__ == "__main__":
    play(sys.argv[1])
