"""A client played through a conversation: what it sends, what readers get, and the frame log of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Raw

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
    Serve,
    Step,
    UrlAsked,
    UrlOpened,
    Waiting,
    Wish,
)
from tests.native.peers import CWD, SECRET_FORM, Peer


class Play(Peer):
    """A client, and everything that came of it."""

    allow = Chosen("ok")

    def __init__(self, wish: Wish | None = None, client: Client | None = None, version: int = 1) -> None:
        self.version = version
        super().__init__(client or Client(wish or Wish(cwd=CWD)))

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

    @property
    def result(self) -> Any:
        """The result of the only turn."""
        (end,) = self.of(Ended)
        return end.result

    def stopped(self, reason: str | None = "end_turn", **more: Any) -> None:
        """The agent ends the turn in its version's way."""
        if self.version == 1:
            self.reply({"stopReason": reason, **more})
        else:
            self.reply({"messageId": "u1"})
            self.update("state_update", state="running")
            self.update("state_update", state="idle", stopReason=reason, **more)

    # -- as every peer ------------------------------------------------------------------------------------------

    def opened(self, **session: Any) -> list[Step]:
        info = {"name": "toy", "version": "0.1"}
        capabilities: dict[str, Any] = {"session": {}} if self.version > 1 else {}
        named = "info" if self.version > 1 else "agentInfo"
        self.reply({"protocolVersion": self.version, named: info, "capabilities": capabilities})
        return self.reply({"sessionId": "s1", **session})

    def refuse(self) -> list[Step]:
        self.reply(error={"code": 1, "message": "not that"})
        return self.reply(error={"code": 1, "message": "no such thing"})

    def taken(self) -> list[Step]:
        if self.version == 1:
            return self.update("agent_message_chunk", content={"type": "text", "text": "I"})
        self.reply({"messageId": "u1"})
        return self.update("state_update", state="running")

    def _prompt(self) -> int:
        return max(int(one["id"]) for one in self.sent if one.get("method") == "session/prompt")

    def _stop(self, reason: str) -> list[Step]:
        if self.version > 1:
            return self.update("state_update", state="idle", stopReason=reason)
        return self.hear({"jsonrpc": "2.0", "id": self._prompt(), "result": {"stopReason": reason}})

    def end(self, **more: Any) -> list[Step]:
        if self.version > 1:
            return self.update("state_update", state="idle", stopReason="end_turn", **more)
        told = {"stopReason": "end_turn", **more}
        return self.hear({"jsonrpc": "2.0", "id": self._prompt(), "result": told})

    def broken_off(self) -> list[Step]:
        return self._stop("cancelled")

    def may(self, number: int) -> str:
        options = [{"optionId": "ok", "name": "Allow", "kind": "allow_once"}]
        call = {"toolCallId": f"c{number}", "title": "Run it"}
        self.ask(number, "session/request_permission", toolCall=call, title="May I?", options=options)
        return str(number)

    def form(self, number: int) -> str:
        self.ask(number, "elicitation/create", mode="form", message="Key?", requestedSchema=SECRET_FORM)
        return str(number)

    def withdraw(self, number: int) -> list[Step]:
        return self.hear({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": number}})

    def undecided(self, frame: dict[str, Any]) -> bool:
        return frame["result"] in ({"outcome": {"outcome": "cancelled"}}, {"action": "cancel"})


def opened(version: int, wish: Wish | None = None, **session: Any) -> Play:
    """A client with an open session."""
    play = Play(wish, version=version)
    play.opened(**session)
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
                play.control(play.client.answer(waiting.request_id, answer))
    return play, prompts


__all__ = ["CWD", "Ended", "Opened", "Play", "opened", "replayed"]
