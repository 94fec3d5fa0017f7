"""The other end of a live connection, for tests of our half: one peer for each protocol, all with the same words.

A peer holds the client, all that came of it, and the frame log of the conversation.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from callsheet.harness._port.client import Client
from callsheet.harness._port.frames import log_line, raw_line
from callsheet.harness._port.live import LiveAgent
from callsheet.harness._port.units import Hole, native_units
from callsheet.harness._port.veil import Veil
from callsheet.records import ENCODER
from callsheet.seam import (
    Answer,
    Receipt,
    Reply,
    RequestClosed,
    RequestOpened,
    Send,
    Step,
    Waiting,
)
from callsheet.testing.desk import Files, MemoryDesk
from callsheet.wire.blobs import digest
from callsheet.wire.lines import split_lines

CWD = "/home/dev/acme-app"
TS = "2026-11-30T10:00:00.000Z"
SECRET_FORM = {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}}


def sent(steps: Any) -> list[dict[str, Any]]:
    """The frames among steps."""
    return [json.loads(step.frame) for step in steps if isinstance(step, Send)]


class Peer:
    """The other end, as far as it is the same for every protocol."""

    allow: Answer
    """Leave, as this protocol gives it."""
    opens = "a session"
    spoilt = False
    """What it asks holds half a character."""

    def __init__(self, client: Client[Any]) -> None:
        self.client: Any = client
        self.lines: list[bytes] = []
        self.sent: list[dict[str, Any]] = []
        self.steps: list[Step] = []
        self.take(client.open())

    def take(self, steps: Any, by: str | None = None) -> list[Step]:
        """Takes what the client wants done."""
        for step in steps:
            if isinstance(step, Send):
                self.sent.append(msgspec.json.decode(step.frame))
                masked = self.client.mask(step.frame, from_agent=False)
                who = step.answered_by or by
                self.lines.append(log_line(masked, from_agent=False, ts=TS, answered_by=who))
        self.steps += steps
        return list(steps)

    def hear(self, frame: Any) -> list[Step]:
        """The agent sends a frame."""
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        if self.spoilt:
            data = data.replace(b"Key?", b"Key? \\ud83d")
        masked = self.client.mask(data, from_agent=True)
        try:
            json.loads(masked)
            self.lines.append(log_line(masked, from_agent=True, ts=TS))
        except (ValueError, RecursionError):
            self.lines.append(raw_line(masked, from_agent=True, ts=TS))
        return self.take(self.client.receive(data))

    def of(self, kind: type) -> list[Any]:
        """Steps of a kind so far."""
        return [step for step in self.steps if isinstance(step, kind)]

    @property
    def last(self) -> dict[str, Any]:
        """The frame that was sent last."""
        return self.sent[-1]

    @property
    def open(self) -> list[Waiting]:
        """Requests that wait."""
        closed = {one.request_id for one in self.of(RequestClosed)}
        return [one.request for one in self.of(RequestOpened) if one.request.request_id not in closed]

    @property
    def data(self) -> bytes:
        """The frame log."""
        return b"".join(line + b"\n" for line in self.lines)

    def start(self, prompt: str = "Go.") -> list[Step]:
        """We start a turn."""
        return self.take(self.client.start(prompt))

    def control(self, reply: Reply, by: str | None = None) -> Receipt:
        """Takes what a control leads to."""
        self.take(reply.steps, by)
        return reply.receipt

    def answer(self, request_id: str, answer: Answer) -> Receipt:
        """A person answers."""
        return self.control(self.client.answer(request_id, answer), "user")

    def interrupt(self) -> Receipt:
        """We ask the agent to break off."""
        return self.control(self.client.interrupt())

    # -- what each protocol does in its own way -----------------------------------------------------------------

    def opened(self) -> list[Step]:
        """The handshake, up to an open session."""
        raise NotImplementedError

    def refuse(self) -> list[Step]:
        """The agent refuses the handshake, once and for all."""
        raise NotImplementedError

    def taken(self) -> list[Step]:
        """The agent shows that it works on the prompt."""
        raise NotImplementedError

    def may(self, number: int) -> str:
        """The agent asks for a permission; returns what the request is called."""
        raise NotImplementedError

    def form(self, number: int) -> str:
        """The agent asks for a secret."""
        raise NotImplementedError

    def withdraw(self, number: int) -> list[Step]:
        """The agent takes a request back."""
        raise NotImplementedError

    def end(self, **more: Any) -> list[Step]:
        """The agent has completed the turn."""
        raise NotImplementedError

    def broken_off(self) -> list[Step]:
        """The agent confirms an interrupt."""
        raise NotImplementedError

    def undecided(self, frame: dict[str, Any]) -> bool:
        """Whether a frame says in the protocol's own way that nobody decides."""
        raise NotImplementedError

    def begun(self) -> None:
        """A turn that runs."""
        self.opened()
        self.start()
        self.taken()


def lived(agent: LiveAgent, log: bytes, files: Files) -> dict[str, list[bytes]]:
    """The records of a log, as a live connection writes them."""
    desk = MemoryDesk(files)
    source = desk.source("/log.jsonl", agent.kind)
    source.sha256 = digest(log)  # a live log has none yet
    fold = agent.fold(desk, Veil(desk), [source])
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
