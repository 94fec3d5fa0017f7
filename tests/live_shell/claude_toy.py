"""A program that speaks stream-json like Claude Code, as far as a play needs it: ``claude_toy.py PLAY``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

SESSION = "70b00000-0000-4000-8000-000000000001"
FORM = {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}}


class Toy:
    """One connection."""

    def __init__(self) -> None:
        self._count = 0

    def say(self, kind: str, **members: Any) -> None:
        self._count += 1
        head = {"type": kind, "session_id": SESSION, "uuid": f"{self._count:08}-0000-4000-8000-000000000000"}
        self.raw(json.dumps({**head, **members}).encode())

    def raw(self, line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    def hear(self) -> dict[str, Any]:
        line = sys.stdin.buffer.readline()
        if not line:
            raise SystemExit(0)
        found: dict[str, Any] = json.loads(line)
        if found["type"] == "control_request":
            # The handshake, or an interrupt: taken, and answered.
            told = {"subtype": "success", "request_id": found["request_id"], "response": {}}
            self.say("control_response", response=told)
        return found

    def ask(self, name: str, **request: Any) -> dict[str, Any]:
        self.say("control_request", request_id=name, request=request)
        answer: dict[str, Any] = {}
        while answer.get("type") != "control_response":
            answer = self.hear()
        response: dict[str, Any] = answer["response"].get("response", {})
        return response

    def begin(self) -> None:
        while self.hear()["type"] != "user":
            pass
        self.say("system", subtype="init", cwd=str(Path.cwd()), claude_code_version="2.1.332", mcp_servers=[])

    def words(self, text: str) -> None:
        self._assistant({"type": "text", "text": text})

    def call(self) -> None:
        self._assistant({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make"}})

    def _assistant(self, block: dict[str, Any]) -> None:
        message = {"id": f"msg_{self._count}", "role": "assistant", "model": "toy", "content": [block]}
        self.say("assistant", message=message, parent_tool_use_id=None)

    def result(self, text: str, *, error: bool = False) -> None:
        block = {"type": "tool_result", "tool_use_id": "c1", "content": text, "is_error": error}
        self.say("user", message={"role": "user", "content": [block]}, parent_tool_use_id=None)

    def end(self, **members: Any) -> None:
        self.say(
            "result", **{"subtype": "success", "is_error": False, "usage": {"output_tokens": 1}, **members}
        )


def play(name: str) -> None:
    """What the agent does in one play."""
    toy = Toy()
    if name == "never_starts":
        raise SystemExit(3)
    toy.begin()
    match name:
        case "completes":
            toy.words("hello")
            toy.call()
            toy.result("a")
            toy.words("done")
        case "asks":
            toy.call()
            told = {"tool_name": "Bash", "input": {"command": "make"}, "tool_use_id": "c1"}
            answer = toy.ask("q1", subtype="can_use_tool", **told)
            allowed = answer["behavior"] == "allow"
            toy.result("made" if allowed else answer["message"], error=not allowed)
        case "interrupted":
            toy.call()
            while toy.hear()["type"] != "control_request":
                pass
            toy.result("The user rejected it.", error=True)
            toy.end(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools")
        case "deaf":
            toy.call()
            time.sleep(60)
        case "crashes":
            toy.call()
            os.kill(os.getpid(), signal.SIGKILL)
        case "late":
            toy.words("done, nearly")
        case "secret":
            answer = toy.ask("f1", subtype="elicitation", message="Your key?", requested_schema=FORM)
            toy.words(f"the key is {answer['content']['key']}")
        case "unknown":
            toy.say("future_event", anything=[1, None])
            for line in (b"not json \xff\xfe at all", b'{"torn": ', b"", b"7", b"[]"):
                toy.raw(line)
            toy.words("still here")
        case _:
            raise SystemExit(f"no play {name}")
    toy.end()
    if name == "late":
        told = {"tool_name": "Bash", "input": {"command": "make"}, "tool_use_id": "c2"}
        toy.ask("q1", subtype="can_use_tool", **told)
    while True:
        toy.hear()


if __name__ == "__main__":
    play(sys.argv[1])
