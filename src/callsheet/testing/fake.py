"""The adapter of the fake agent: a driver for the part of the protocol that it speaks, and the real fold.

Owns ``FAKE`` (``harness._port.live.LiveAgent``) and ``fake_command``. The driver is small on purpose: it is there to
test what runs drivers.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.fold import Folding
from callsheet.harness._port.live import Framed
from callsheet.harness._port.veil import Veil
from callsheet.harness.acp import Fold
from callsheet.records import Option, SourceEntry
from callsheet.seam import (
    Accepted,
    Answer,
    CallPreview,
    Can,
    Chosen,
    Completed,
    Driver,
    Ended,
    Failed,
    FormAsked,
    FormFilled,
    Installed,
    Interrupted,
    Launch,
    Lost,
    MessagePreview,
    NotStarted,
    Opened,
    OutputPreview,
    Permission,
    Qualified,
    Rejected,
    Reply,
    RequestClosed,
    RequestOpened,
    Send,
    Step,
    ThoughtPreview,
    Unusable,
    Waiting,
    Wish,
)
from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES, TEXT_BYTES
from callsheet.wire.masks import Cover

Json = dict[str, Any]


def fake_command(**script: Any) -> tuple[str, ...]:
    """The command that plays a script (``callsheet.testing.fake_agent`` says what one is)."""
    return (sys.executable, "-m", "callsheet.testing.fake_agent", json.dumps(script))


class FakeDriver:
    """The client's half of the protocol (``seam.Driver``)."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self._number = 0
        self._sent: dict[int, str] = {}
        self._session: str | None = None
        self._prompt: int | None = None
        self._taken = False
        self._requests: dict[str, Waiting] = {}
        self._outputs: dict[str, tuple[bytes, int]] = {}
        self._text: dict[str, str] = {}
        self._info: Json = {}
        self._cover = Cover()

    def launch(self) -> Launch:
        """No arguments, no switches."""
        return Launch()

    def open(self) -> list[Step]:
        """The handshake."""
        return [self._call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})]

    def start(self, prompt: str) -> list[Step]:
        """A prompt."""
        blocks = [{"type": "text", "text": prompt}]
        step = self._call("session/prompt", {"sessionId": self._session, "prompt": blocks})
        self._prompt, self._taken = self._number, False
        return [step]

    def receive(self, frame: bytes) -> list[Step]:
        """One frame of the agent."""
        try:
            said = msgspec.json.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return []
        if not isinstance(said, dict):
            return []
        params = said.get("params")
        params = params if isinstance(params, dict) else {}
        match said.get("method"):
            case None:
                return self._answered(said)
            case "session/update":
                self._taken = True
                update = params.get("update")
                return self._update(update) if isinstance(update, dict) else []
            case "session/request_permission" | "elicitation/create" as method:
                self._taken = True
                return self._asked(str(said.get("id")), method, params)
            case _:
                return []

    def _answered(self, said: Json) -> list[Step]:
        number = said.get("id")
        method = self._sent.pop(number, None) if isinstance(number, int) else None
        result = said.get("result")
        result = result if isinstance(result, dict) else {}
        if method == "initialize":
            self._info = result.get("agentInfo") or {}
            if self.wish.resume:
                self._session = self.wish.resume
                return [self._call("session/load", {"sessionId": self.wish.resume, "cwd": self.wish.cwd})]
            return [self._call("session/new", {"cwd": self.wish.cwd, "mcpServers": []})]
        if method in ("session/new", "session/load"):
            self._session = result.get("sessionId", self._session)
            return [
                Opened(session=self._session, agent=self._info.get("name"), version=self._info.get("version"))
            ]
        if method == "session/prompt" and number == self._prompt:
            return self._ended(said, result.get("stopReason"))
        return []

    def _ended(self, said: Json, reason: Any) -> list[Step]:
        self._prompt = None
        self._outputs.clear()
        self._text.clear()
        if reason == "end_turn":
            return [*self._closed(), Ended(Completed(reason))]
        if reason == "cancelled":
            return [*self._closed(), Ended(Interrupted(reason))]
        error = said.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        return [*self._closed(), Ended(Failed(message, reason if isinstance(reason, str) else None))]

    def _update(self, update: Json) -> list[Step]:
        call = update.get("toolCallId")
        match update.get("sessionUpdate"):
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                content = update.get("content")
                text = content.get("text") if isinstance(content, dict) else None
                if not isinstance(text, str):
                    return []
                self._text[kind] = (self._text.get(kind, "") + text)[-TEXT_BYTES // 4 :]
                preview = MessagePreview if kind == "agent_message_chunk" else ThoughtPreview
                return [preview(key=kind, text=self._text[kind])]
            case "tool_call" if isinstance(call, str):
                title = update.get("title")
                return [CallPreview(call=call, title=title if isinstance(title, str) else None, running=True)]
            case "terminal_output_chunk":
                return self._output(update)
            case _:
                return []

    def _output(self, update: Json) -> list[Step]:
        call = str(update.get("terminalId")).removeprefix("term-")
        try:
            data = b64decode(update.get("data", ""))
        except (ValueError, TypeError):
            return []
        tail, omitted = self._outputs.get(call, (b"", 0))
        whole = tail + data
        keep = whole[-OUTPUT_BYTES:]
        lines = keep.split(b"\n")
        keep = b"\n".join(lines[-OUTPUT_LINES:])
        omitted += len(whole) - len(keep)
        self._outputs[call] = (keep, omitted)
        text = keep.decode("utf-8", "ignore")
        return [OutputPreview(call=call, text=text, omitted_bytes=omitted)]

    def _asked(self, number: str, method: str, params: Json) -> list[Step]:
        if method == "elicitation/create":
            schema = params.get("requestedSchema") or {}
            secret = any(one.get("format") == "password" for one in (schema.get("properties") or {}).values())
            asked: Waiting = FormAsked(
                request_id=number,
                title=str(params.get("message")),
                schema=Raw(msgspec.json.encode(schema)),
                secret=secret,
            )
        else:
            about = params.get("toolCall") or {}
            asked = Permission(
                request_id=number,
                call=about.get("toolCallId"),
                title=str(about.get("title")),
                options=tuple(
                    Option(option_id=one["optionId"], name=one.get("name"), kind=one.get("kind"))
                    for one in params.get("options") or ()
                ),
            )
        if self._prompt is None:
            return [self._nobody(asked)]
        self._requests[number] = asked
        return [RequestOpened(asked)]

    @staticmethod
    def _nobody(asked: Waiting) -> Send:
        """The answer to a request that nobody decides."""
        permission = isinstance(asked, Permission)
        result: Json = {"outcome": {"outcome": "cancelled"}} if permission else {"action": "cancel"}
        frame = {"jsonrpc": "2.0", "id": asked.request_id, "result": result}
        return Send(msgspec.json.encode(frame), answered_by="policy")

    def answer(self, request_id: str, answer: Answer) -> Reply:
        """Answers a request."""
        request = self._requests.get(request_id)
        if request is None:
            return Reply(Rejected("no such request"))
        result: Json
        if isinstance(request, Permission) and isinstance(answer, Chosen):
            if answer.option_id not in {option.option_id for option in request.options}:
                return Reply(Rejected("no such option"))
            result = {"outcome": {"outcome": "selected", "optionId": answer.option_id}}
        elif isinstance(request, FormAsked) and isinstance(answer, FormFilled):
            content = msgspec.json.decode(answer.content)
            if request.secret:
                for word in content.values():
                    self._cover.secret(str(word))
            result = {"action": "accept", "content": content}
        elif isinstance(answer, Chosen | FormFilled):
            return Reply(Rejected("the answer does not fit"))
        else:
            result = (
                {"outcome": {"outcome": "cancelled"}}
                if isinstance(request, Permission)
                else {"action": "cancel"}
            )
        del self._requests[request_id]
        frame = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})
        return Reply(Accepted(), (Send(frame), RequestClosed(request_id, "answered")))

    def steer(self, text: str) -> Reply:
        """The protocol has no such control."""
        del text
        return Reply(Rejected("the agent has no such control"))

    def interrupt(self) -> Reply:
        """Asks to break off; open permissions are cancelled, as the protocol wants it."""
        frame = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self._session}}
        steps: list[Step] = [Send(msgspec.json.encode(frame))]
        for number, request in list(self._requests.items()):
            if isinstance(request, Permission):
                del self._requests[number]
                result = {"outcome": {"outcome": "cancelled"}}
                steps.append(Send(msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": result})))
                steps.append(RequestClosed(number, "answered"))
        return Reply(Accepted(), tuple(steps))

    def close(self) -> list[Step]:
        """Nothing: closed input is enough."""
        return []

    def gone(self, exit_code: int | None, signal: str | None) -> list[Step]:
        """The process has ended."""
        if self._prompt is None:
            return self._closed(gone=True)
        self._prompt = None
        why = f"exit code {exit_code}" if signal is None else str(signal)
        result = Lost(why) if self._taken else NotStarted(why)
        return [*self._closed(gone=True), Ended(result)]

    def _closed(self, *, gone: bool = False) -> list[Step]:
        steps: list[Step] = []
        for number, asked in self._requests.items():
            steps += [] if gone else [self._nobody(asked)]
            steps.append(RequestClosed(number, "ended"))
        self._requests.clear()
        return steps

    def mask(self, frame: bytes, *, from_agent: bool) -> bytes:
        """A frame without the answers to secret questions."""
        del from_agent
        return self._cover.over(0, frame)

    def _call(self, method: str, params: Json) -> Send:
        self._number += 1
        self._sent[self._number] = method
        return Send(
            msgspec.json.encode({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        )


class FakeAgent:
    """The adapter (``harness._port.live.LiveAgent``)."""

    name = "fake"
    kind = "acp"
    programs: tuple[str, ...] = ()
    listens: Mapping[str, Framed] = MappingProxyType({"ws": "messages", "tcp": "lines", "unix": "lines"})

    def ask_version(self) -> tuple[str, ...]:
        """Its command plays a script and prints no version."""
        return ()

    def qualify(self, command: tuple[str, ...], printed: str) -> Qualified:
        """Any command will do."""
        if printed:
            return Unusable(command=command, reason="the fake agent was not asked for anything")
        can = (Can("interrupt", "it speaks the protocol"), Can("permissions", "it speaks the protocol"))
        return Installed(command=command, version=None, evidence="not asked", abilities=can)

    def driver(self, wish: Wish) -> Driver:
        """A connection."""
        return FakeDriver(wish)

    def fold(self, desk: Desk, veil: Veil, sources: list[SourceEntry]) -> Folding:
        """The real fold of the protocol."""
        return Fold(desk, veil, sources)


FAKE = FakeAgent()
