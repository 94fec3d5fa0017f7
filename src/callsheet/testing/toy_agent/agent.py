"""The toy agent: answers a client, and plays a script when it is prompted.

Owns: one thread that reads frames and answers what can be answered at once, and one that plays the turn. Requests of
the two directions count apart. A frame is one line of JSON.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from callsheet.testing.toy_agent.script import (
    CANCEL_OF,
    Script,
    cancelled,
    filled,
    numbered,
    waits_for_cancel,
)

Frame = dict[str, Any]
PATIENCE = 30.0
"""Seconds that a script waits for its client; then the toy gives up, so that no test hangs."""
MODES = [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]
MODELS = [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]
NOT_FOUND, INVALID = -32601, -32602


class ToyAgent:
    """One agent, on two pipes.

    Args:
        version: The newest version of the protocol that it speaks.
        script: What it does in a turn.
        read: Frames of the client.
        write: Frames to the client.
    """

    def __init__(self, version: int, script: Script, read: BinaryIO, write: BinaryIO) -> None:
        self._newest = version
        self._version = version
        self._script = script
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._turns: queue.Queue[Frame | None] = queue.Queue()
        self._results: dict[str, queue.Queue[Frame]] = {}
        self._kept: dict[str, Any] = {"session": "toy-session", "cwd": "/", "prompt": ""}
        self._late: dict[str, str] = {}
        self._cancelled = threading.Event()
        self._single: dict[str, threading.Event] = {}
        self._alone = False
        self._count = 0
        self._played = 0
        self._chosen = {"mode": "ask", "model": "small"}

    def run(self) -> None:
        """Serves until the client closes the pipe."""
        threading.Thread(target=self._hear, daemon=True).start()
        while (prompt := self._turns.get()) is not None:
            self._turn(prompt)

    # -- what the client says -----------------------------------------------------------------------------------

    def _hear(self) -> None:
        for line in self._read:
            try:
                frame = json.loads(line)
            except ValueError:
                self._send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}})
                continue
            if "method" in frame:
                self._asked(frame)
            elif str(frame.get("id")) in self._results:
                self._results[str(frame["id"])].put(frame)
        self._turns.put(None)
        # A script that still plays has nobody left to talk to.
        self._alone = True
        self._cancelled.set()
        self._break_off()
        for waiting in self._results.values():
            waiting.put({"error": {"message": "the client is gone"}})

    def _asked(self, frame: Frame) -> None:
        method, params = frame["method"], frame.get("params") or {}
        if method == "session/prompt":
            self._cancelled.clear()
            self._turns.put(frame)
        elif method == "session/cancel":
            self._cancelled.set()
            self._break_off()
        elif "id" in frame:
            answer = ANSWERS.get(method)
            if answer is None:
                self._fail(frame, NOT_FOUND, f"method not found: {method}")
            else:
                answer(self, frame, params)

    def _break_off(self) -> None:
        for waiting in list(self._single.values()):
            waiting.set()

    def initialize(self, frame: Frame, params: Frame) -> None:
        """The newest version that both speak."""
        asked = params.get("protocolVersion")
        if type(asked) is not int:
            self._fail(frame, INVALID, "protocolVersion must be a number")
            return
        self._version = min(self._newest, max(asked, 1))
        info = {"name": "callsheet-toy", "title": "Toy agent", "version": "1.0"}
        if self._version > 1:
            told: Frame = {"info": info, "capabilities": {"session": {}}}
        else:
            told = {"agentInfo": info, "agentCapabilities": {"loadSession": True}, "authMethods": []}
        self._result(frame, {"protocolVersion": self._version, **told})

    def new(self, frame: Frame, params: Frame) -> None:
        """Opens a session."""
        self._kept["cwd"] = params["cwd"]
        self._result(frame, {"sessionId": self._kept["session"], **self._offers()})

    def load(self, frame: Frame, params: Frame) -> None:
        """Goes on with a session; in v1, and in v2 when that is asked for, its history is told again first."""
        self._kept |= {"cwd": params["cwd"], "session": params["sessionId"]}
        if frame["method"] == "session/load" or params.get("replayFrom"):
            for step in self._script.replay:
                self._step(step, frame)
        if self._version > 1:
            self._update({"sessionUpdate": "state_update", "state": "idle"})
        self._result(frame, self._offers())

    def set_mode(self, frame: Frame, params: Frame) -> None:
        """v1: chooses a mode."""
        self._choose(frame, "mode", params.get("modeId"))

    def set_option(self, frame: Frame, params: Frame) -> None:
        """Chooses a value of an option."""
        self._choose(frame, params.get("configId"), params.get("value"))

    def _choose(self, frame: Frame, name: Any, value: Any) -> None:
        choices = {"mode": [one["id"] for one in MODES], "model": [one["value"] for one in MODELS]}
        if value not in choices.get(name, ()):
            self._fail(frame, INVALID, f"no {name} {value}")
            return
        self._chosen[name] = value
        self._result(
            frame, {} if frame["method"] == "session/set_mode" else {"configOptions": self._options()}
        )

    def cancel_one(self, frame: Frame, params: Frame) -> None:
        """v2: one call, or one terminal, is cancelled, where the script waits for that."""
        waiting = self._single.get(CANCEL_OF + str(params.get("toolCallId", params.get("terminalId"))))
        if waiting is None or waiting.is_set():
            self._fail(frame, INVALID, "not to be cancelled")
            return
        self._result(frame, {})
        waiting.set()

    def nothing(self, frame: Frame, params: Frame) -> None:
        """Answers what needs no answer."""
        del params
        self._result(frame, {})

    def _offers(self) -> Frame:
        modes = {"currentModeId": self._chosen["mode"], "availableModes": MODES}
        return {"configOptions": self._options(), **({"modes": modes} if self._version == 1 else {})}

    def _options(self) -> list[Frame]:
        key = "configId" if self._version > 1 else "id"
        choices = {"mode": [{"value": one["id"], "name": one["name"]} for one in MODES], "model": MODELS}
        return [
            {
                key: name,
                "name": name,
                "category": name,
                "type": "select",
                "currentValue": value,
                "options": choices[name],
            }
            for name, value in self._chosen.items()
        ]

    # -- a turn -------------------------------------------------------------------------------------------------

    def _turn(self, prompt: Frame) -> None:
        blocks = prompt["params"]["prompt"]
        self._kept["prompt"] = "".join(block.get("text", "") for block in blocks)
        self._kept["blocks"] = blocks
        steps = self._script.steps.get(self._version)
        if steps is None:
            self._fail(prompt, INVALID, f"the script has no steps for version {self._version}")
            return
        self._played += 1
        knows = waits_for_cancel(steps)
        awaited = [str(numbered(step, self._played).get("await")) for step in steps]
        self._single = {name: threading.Event() for name in awaited if name.startswith(CANCEL_OF)}
        for step in steps:
            stopped = self._cancelled.is_set() and not (knows or self._alone)
            left = cancelled(step) if stopped else step
            if left is not None:
                self._step(filled(numbered(left, self._played), self._kept), prompt)

    def _step(self, step: Frame, prompt: Frame) -> None:
        match step:
            case {"update": update}:
                self._update(update, step.get("in"))
            case {"notify": method}:
                self._send({"jsonrpc": "2.0", "method": method, "params": step.get("params")})
            case {"ask": method}:
                self._ask(method, step)
            case {"await": "cancel"}:
                self._cancelled.wait(PATIENCE)
            case {"await": str(name)} if name.startswith(CANCEL_OF):
                self._single[name].wait(PATIENCE)
            case {"await": name}:
                self._await(name)
            case {"answer": result}:
                self._result(prompt, result)
            case {"error": error}:
                self._send({"jsonrpc": "2.0", "id": prompt["id"], "error": error})
            case {"line": text}:
                self._put(text.encode("utf-8", "surrogatepass") + b"\n")
            case {"bytes": data}:
                self._put(base64.b64decode(data))
            case {"sleep": seconds}:
                time.sleep(seconds)
            case {"stderr": text}:
                os.write(2, text.encode() + b"\n")
            case {"exit": code}:
                os._exit(code)
            case {"signal": name}:
                os.kill(os.getpid(), getattr(signal, name))
            case _:
                raise AssertionError(f"scripts are checked when they are loaded: {step}")

    def _ask(self, method: str, step: Frame) -> None:
        self._count += 1
        number = step.get("id", self._count)
        self._results[str(number)] = queue.Queue()
        name = step.get("keep", f"result {number}")
        self._late[name] = str(number)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": step.get("params")})
        if step.get("wait", True):
            self._await(name)

    def _await(self, name: str) -> None:
        """Waits for the client's answer, and keeps its members as ``$NAME.member``."""
        try:
            answer = self._results[self._late[name]].get(timeout=0 if self._alone else PATIENCE)
        except queue.Empty:
            return
        for member, value in (answer.get("result") or answer.get("error") or {}).items():
            self._kept[f"{name}.{member}"] = value

    # -- frames -------------------------------------------------------------------------------------------------

    def _update(self, update: Frame, session: str | None = None) -> None:
        params = {"sessionId": session or self._kept["session"], "update": update}
        self._send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def _result(self, frame: Frame, result: Any) -> None:
        self._send({"jsonrpc": "2.0", "id": frame["id"], "result": result})

    def _fail(self, frame: Frame, code: int, message: str) -> None:
        self._send({"jsonrpc": "2.0", "id": frame.get("id"), "error": {"code": code, "message": message}})

    def _send(self, frame: Frame) -> None:
        self._put(json.dumps(frame).encode() + b"\n")

    def _put(self, data: bytes) -> None:
        with self._lock:
            try:
                self._write.write(data)
                self._write.flush()
            except OSError:
                self._turns.put(None)  # the client does not read any more


ANSWERS: dict[str, Callable[[ToyAgent, Frame, Frame], None]] = {
    "initialize": ToyAgent.initialize,
    "session/new": ToyAgent.new,
    "session/load": ToyAgent.load,
    "session/resume": ToyAgent.load,
    "session/set_mode": ToyAgent.set_mode,
    "session/set_config_option": ToyAgent.set_option,
    "tool_call/cancel": ToyAgent.cancel_one,
    "terminal/cancel": ToyAgent.cancel_one,
    "session/close": ToyAgent.nothing,
    "authenticate": ToyAgent.nothing,
}
"""What can be answered at once."""
