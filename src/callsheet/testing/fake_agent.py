"""A deterministic fake agent: a program that plays a script over its standard streams.

Speaks the part of the Agent Client Protocol (v1) that a turn takes, and nothing by itself: what happens in a turn the
script says, step by step. It has no model, no clock of its own and no tools, and needs nothing but Python.

``python -m callsheet.testing.fake_agent SCRIPT`` where SCRIPT is JSON, or the name of a file with it::

    {"before": [steps], "turn": [steps], "after": [steps], "deaf": ["cancel", "eof", "term"]}

Steps: ``{"say": text}``, ``{"think": text}``, ``{"call": id, "title": text, "input": value}``,
``{"output": id, "text": text, "times": n}``, ``{"done": id, "status": word, "output": text}``,
``{"ask": id, "options": [kind]}``, ``{"secret": name}``, ``{"frame": value, "times": n}``, ``{"raw": text}``
(one byte a character), ``{"long": n}``, ``{"pace": n, "every": seconds}``, ``{"ticks": n, "every": seconds}``,
``{"sleep": seconds}``, ``{"spawn": [command]}``, ``{"await": "cancel"}``,
``{"stderr": text}``, ``{"exit": code}``, ``{"kill": signal}``, ``{"end": reason}``.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
VERSION = "1.0"
SESSION = "fake-session"
USAGE = """\
usage: python -m callsheet.testing.fake_agent SCRIPT | --version | --help

A fake agent of the Agent Client Protocol (v1) on standard input and output.
SCRIPT is JSON, or the name of a file with it: {"turn": [{"say": "Hello"}, {"end": "end_turn"}]}
The steps stand in the first lines of this module's source.
"""


class Agent:
    """Plays one script."""

    def __init__(self, script: Json) -> None:
        self._script = script
        self._deaf = set(script.get("deaf", ()))
        self._cancelled = False
        self._asked = 0
        self._answers: dict[str, Json] = {}
        self._prompt: Any = None
        self._ended = False

    def run(self) -> None:
        """Listens until its input is closed."""
        if "term" in self._deaf:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._play(self._script.get("before", ()))
        while self._listen():
            pass
        if "eof" in self._deaf:
            while True:
                time.sleep(60)

    def _listen(self) -> bool:
        line = sys.stdin.buffer.readline()
        if not line:
            return False
        frame = json.loads(line)
        method = frame.get("method")
        if method == "initialize":
            info = {"name": "callsheet-fake", "version": VERSION}
            self._reply(frame, {"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}})
        elif method == "session/new":
            self._reply(frame, {"sessionId": SESSION})
        elif method == "session/load":
            self._reply(frame, {})
        elif method == "session/prompt":
            self._turn(frame["id"])
        elif method == "session/cancel":
            self._cancelled = "cancel" not in self._deaf
        elif method is None:
            self._answers[str(frame.get("id"))] = frame.get("result") or {}
        return True

    def _turn(self, prompt: Any) -> None:
        self._prompt, self._ended, self._cancelled = prompt, False, False
        self._play(self._script.get("turn", ()))
        if not self._ended:
            self._end("end_turn")
        if "after" in self._script:
            self._ended = False
            self._play(self._script["after"])

    def _end(self, reason: str) -> None:
        self._ended = True
        self._send({"jsonrpc": "2.0", "id": self._prompt, "result": {"stopReason": reason}})

    def _play(self, steps: Any) -> None:
        for step in steps:
            if self._ended:
                return
            name = next(iter(step))
            getattr(self, f"_do_{name}")(step[name], step)

    # -- steps --------------------------------------------------------------------------------------------------

    def _do_say(self, text: str, step: Json) -> None:
        for _ in range(step.get("times", 1)):
            self._update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def _do_think(self, text: str, step: Json) -> None:
        del step
        self._update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})

    def _do_call(self, call: str, step: Json) -> None:
        update = {
            "sessionUpdate": "tool_call",
            "toolCallId": call,
            "title": step.get("title", call),
            "kind": step.get("kind", "execute"),
            "status": "in_progress",
            "rawInput": step.get("input", {}),
            "content": [{"type": "terminal", "terminalId": f"term-{call}"}],
        }
        self._update(update)

    def _do_output(self, call: str, step: Json) -> None:
        text = step["text"]
        for number in range(step.get("times", 1)):
            data = base64.b64encode(text.replace("{n}", str(number)).encode()).decode()
            self._update(
                {"sessionUpdate": "terminal_output_chunk", "terminalId": f"term-{call}", "data": data}
            )

    def _do_done(self, call: str, step: Json) -> None:
        update = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": call,
            "status": step.get("status", "completed"),
            "rawOutput": {"output": step.get("output", "")},
        }
        self._update(update)

    def _do_ask(self, call: str, step: Json) -> None:
        kinds = step.get("options", ["allow_once", "reject_once"])
        options = [{"optionId": f"o-{kind}", "name": kind, "kind": kind} for kind in kinds]
        about = {"toolCallId": call, "title": step.get("title", call)}
        params = {"sessionId": SESSION, "toolCall": about, "options": options}
        self._request("session/request_permission", params)

    def _do_secret(self, name: str, step: Json) -> None:
        schema = {
            "type": "object",
            "properties": {name: {"type": "string", "format": "password"}},
            "required": [name],
        }
        params = {"sessionId": SESSION, "mode": "form", "message": step.get("title", name)}
        answer = self._request("elicitation/create", {**params, "requestedSchema": schema})
        if "echo" in step:
            self._do_say(f"you said {(answer.get('content') or {}).get(name)}", {})

    def _do_frame(self, frame: Any, step: Json) -> None:
        for _ in range(step.get("times", 1)):
            self._send(frame)

    def _do_raw(self, text: str, step: Json) -> None:
        for _ in range(step.get("times", 1)):
            sys.stdout.buffer.write(text.encode("latin-1") + b"\n")
        sys.stdout.buffer.flush()

    def _do_long(self, size: int, step: Json) -> None:
        del step
        self._do_say("x" * size, {})

    def _do_pace(self, count: int, step: Json) -> None:
        """Frames that say when they were sent, at a steady pace: of a hundred one call, its end, and a message."""
        every = step.get("every", 0.001)
        start = time.monotonic()
        for number in range(count):
            wait = start + number * every - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            call, place, now = f"c{number // 100}", number % 100, f"{time.time():.6f}"
            if place == 0:
                self._update({"sessionUpdate": "tool_call", "toolCallId": call, "title": now})
            elif place == 50:
                self._update({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed"})
            else:
                chunk = {"type": "text", "text": f"some words {now}"}
                name = f"m{number // 50}"
                self._update({"sessionUpdate": "agent_message_chunk", "messageId": name, "content": chunk})

    def _do_ticks(self, count: int, step: Json) -> None:
        """Calls that say when they were sent, at a steady pace."""
        every = step.get("every", 0.001)
        start = time.monotonic()
        for number in range(count):
            wait = start + number * every - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            self._update(
                {
                    "sessionUpdate": "tool_call",
                    "toolCallId": f"tick-{number}",
                    "title": f"{time.time():.6f}",
                    "kind": "other",
                    "status": "completed",
                }
            )

    def _do_sleep(self, seconds: float, step: Json) -> None:
        del step
        time.sleep(seconds)

    def _do_spawn(self, command: list[str], step: Json) -> None:
        child = subprocess.Popen(command, start_new_session=bool(step.get("apart")))
        if "note" in step:
            Path(step["note"]).write_text(str(child.pid), encoding="ascii")

    def _do_await(self, what: str, step: Json) -> None:
        del what, step
        while not self._cancelled and self._listen():
            pass
        self._end("cancelled")

    def _do_stderr(self, text: str, step: Json) -> None:
        for _ in range(step.get("times", 1)):
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def _do_exit(self, code: int, step: Json) -> None:
        del step
        sys.stdout.flush()
        os._exit(code)

    def _do_kill(self, number: int, step: Json) -> None:
        del step
        sys.stdout.flush()
        os.kill(os.getpid(), number)

    def _do_end(self, reason: str, step: Json) -> None:
        del step
        self._end(reason)

    # -- frames -------------------------------------------------------------------------------------------------

    def _request(self, method: str, params: Json) -> Json:
        self._asked += 1
        name = f"q{self._asked}"
        self._send({"jsonrpc": "2.0", "id": name, "method": method, "params": params})
        while name not in self._answers and self._listen():
            pass
        return self._answers.get(name, {})

    def _update(self, update: Json) -> None:
        params = {"sessionId": SESSION, "update": update}
        self._send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def _reply(self, frame: Json, result: Json) -> None:
        self._send({"jsonrpc": "2.0", "id": frame["id"], "result": result})

    def _send(self, frame: Any) -> None:
        sys.stdout.buffer.write(json.dumps(frame, separators=(",", ":")).encode() + b"\n")
        sys.stdout.buffer.flush()


def main(argv: list[str]) -> int:
    """Plays the script that the first argument is, or names; returns the exit code, 2 for wrong usage."""
    if argv == ["--version"]:
        sys.stdout.write(f"callsheet-fake {VERSION}\n")
        return 0
    if argv in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return 0
    if len(argv) != 1:
        sys.stderr.write(USAGE)
        return 2
    try:
        inline = argv[0].lstrip().startswith("{")
        script = json.loads(argv[0] if inline else Path(argv[0]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"callsheet-fake: {argv[0][:200]!r}: no script: {error}\n")
        return 2
    if not isinstance(script, dict):
        sys.stderr.write(f"callsheet-fake: {argv[0][:200]!r}: no script: not an object\n")
        return 2
    Agent(script).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
