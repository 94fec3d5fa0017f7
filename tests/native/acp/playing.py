"""A client played through a conversation: what it sends, what readers get, and the frame log of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port.frames import log_line, raw_line
from callsheet.harness.acp.client import Client
from callsheet.seam import (
    Answer,
    Cancelled,
    Chosen,
    Declined,
    Ended,
    FormFilled,
    NotServed,
    Opened,
    Permission,
    RequestClosed,
    RequestOpened,
    Send,
    Serve,
    Step,
    UrlAsked,
    UrlOpened,
    Waiting,
    Wish,
)

CWD = "/home/dev/acme-app"
TS = "2026-11-30T10:00:00.000Z"


class Play:
    """A client, and everything that came of it."""

    def __init__(self, wish: Wish | None = None, client: Client | None = None) -> None:
        self.client = client or Client(wish or Wish(cwd=CWD))
        self.lines: list[bytes] = []
        self.sent: list[dict[str, Any]] = []
        self.steps: list[Step] = []
        self.take(self.client.open())

    def take(self, steps: list[Step] | tuple[Step, ...]) -> list[Step]:
        for step in steps:
            if isinstance(step, Send):
                self.sent.append(msgspec.json.decode(step.frame))
                masked = self.client.mask(step.frame, from_agent=False)
                self.lines.append(log_line(masked, from_agent=False, ts=TS))
        self.steps += steps
        return list(steps)

    def hear(self, frame: Any) -> list[Step]:
        """The agent sends a frame."""
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        steps = self.client.receive(data)
        masked = self.client.mask(data, from_agent=True)
        try:
            json.loads(masked)
            self.lines.append(log_line(masked, from_agent=True, ts=TS))
        except (ValueError, RecursionError):
            self.lines.append(raw_line(masked, from_agent=True, ts=TS))
        return self.take(steps)

    def of(self, kind: type) -> list[Any]:
        return [step for step in self.steps if isinstance(step, kind)]

    @property
    def open(self) -> list[Waiting]:
        closed = {one.request_id for one in self.of(RequestClosed)}
        return [one.request for one in self.of(RequestOpened) if one.request.request_id not in closed]

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    # -- shorthands ---------------------------------------------------------------------------------------------

    def reply(self, result: Any = None, error: Any = None) -> list[Step]:
        """The agent answers our last request."""
        number = next(frame["id"] for frame in reversed(self.sent) if "method" in frame and "id" in frame)
        told = {"error": error} if error is not None else {"result": result}
        return self.hear({"jsonrpc": "2.0", "id": number, **told})

    def update(self, name: str, /, **members: Any) -> list[Step]:
        params = {"sessionId": "s1", "update": {"sessionUpdate": name, **members}}
        return self.hear({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def ask(self, number: Any, method: str, /, **params: Any) -> list[Step]:
        params = {"sessionId": "s1", **params}
        return self.hear({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def answer(self, request_id: str, answer: Answer) -> Any:
        reply = self.client.answer(request_id, answer)
        self.take(reply.steps)
        return reply.receipt

    def start(self, prompt: str = "Go.") -> list[Step]:
        return self.take(self.client.start(prompt))


def opened(version: int, wish: Wish | None = None, **session: Any) -> Play:
    """A client with an open session."""
    play = Play(wish)
    info = {"name": "toy", "version": "0.1"}
    capabilities: dict[str, Any] = {"session": {}} if version > 1 else {}
    play.reply({"protocolVersion": version, "info" if version > 1 else "agentInfo": info, "capabilities": capabilities})
    play.reply({"sessionId": "s1", **session})
    return play


# -- a recorded conversation, once more -----------------------------------------------------------------------------


def wish_of(frames: list[dict[str, Any]]) -> Wish:
    """What the recorded client wished for, by its requests."""
    asked: dict[str, Any] = {"cwd": CWD}
    for frame in frames:
        params = frame.get("params") or {}
        match frame.get("method"):
            case "session/load" | "session/resume":
                asked.setdefault("resume", params["sessionId"])
            case "session/new":
                asked["resume"] = None
            case "session/set_mode":
                asked["mode"] = params["modeId"]
            case "session/set_config_option" if params["configId"] == "mode":
                asked["mode"] = params["value"]
    return Wish(**asked)


def answer_of(waiting: Waiting, result: Any) -> Answer | None:
    """The recorded client's answer in the words of the seam; None for an error."""
    if result is None:
        return None
    outcome = result.get("outcome") or {}
    if isinstance(waiting, Permission):
        return Chosen(outcome["optionId"]) if outcome["outcome"] == "selected" else Cancelled()
    match result["action"]:
        case "accept" if isinstance(waiting, UrlAsked):
            return UrlOpened()
        case "accept":
            return FormFilled(Raw(json.dumps(result["content"]).encode()))
        case "decline":
            return Declined()
        case _:
            return Cancelled()


def replayed(path: Path) -> tuple[Play, int]:
    """A recorded conversation, with our client in place of the one that recorded it; and its prompts."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    theirs = [line["frame"] for line in lines if line["dir"] == "client_to_agent" and "frame" in line]
    play = Play(wish_of(theirs))
    ours: dict[str, list[int]] = {}
    counted = 0
    ids: dict[int, int] = {}
    prompts = 0
    for line in lines:
        frame = line.get("frame")
        if not isinstance(frame, dict):
            continue
        while counted < len(play.sent):
            sent = play.sent[counted]
            counted += 1
            if "method" in sent and "id" in sent:
                ours.setdefault(sent["method"], []).append(sent["id"])
        method = frame.get("method")
        if line["dir"] == "agent_to_client":
            if method is None:
                if frame["id"] not in ids:
                    continue  # of a request that our client does not make
                frame = {**frame, "id": ids[frame["id"]]}
            for step in play.hear(frame):
                if isinstance(step, Serve):
                    # What came of it, the recorded client's answer will tell.
                    play.take(play.client.served(step.key, NotServed("not here")))
        elif method == "session/prompt":
            prompts += 1
            play.start(frame["params"]["prompt"][0]["text"])
            ids[frame["id"]] = play.sent[-1]["id"]
        elif method == "session/cancel":
            play.take(play.client.interrupt().steps)
        elif method is not None:
            name = "session/resume" if method == "session/load" and not ours.get(method) else method
            if ours.get(name):
                ids[frame["id"]] = ours[name].pop(0)
        elif any(one.request_id == str(frame["id"]) for one in play.open):
            waiting = next(one for one in play.open if one.request_id == str(frame["id"]))
            answer = answer_of(waiting, frame.get("result"))
            if answer is not None:
                play.answer(waiting.request_id, answer)
    return play, prompts


__all__ = ["CWD", "Ended", "Opened", "Play", "opened", "replayed"]
