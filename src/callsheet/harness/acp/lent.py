"""Files and terminals that an agent of version 1 uses through its client: the requests, and what came of them.

Owns which methods these are and the answers in the protocol's words. What is done for them is the shell's matter.

Must never know: files, processes.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, mark, members_of, text_of
from callsheet.harness._port.rpc import CANCELLED, INTERNAL, INVALID, MISSING, Frame, Id, id_of
from callsheet.harness.acp.waiting import RPC
from callsheet.seam import NotServed, Send, Serve, Served, Step

METHODS = frozenset(
    {
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
    }
)
"""Methods by which an agent uses its client's files and terminals; version 2 has none of them."""
CODES = {"invalid": INVALID, "refused": INVALID, "missing": MISSING, "failed": INTERNAL}


class _Asked(NamedTuple):
    number: Raw
    method: str
    terminal: str | None


class Lent:
    """The requests that the shell is at."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, _Asked] = {}

    def __len__(self) -> int:
        return len(self._open)

    def asked(self, frame: Frame) -> list[Step]:
        """A request: passed on to the shell."""
        assert frame.method is not None
        if mark(frame.params) != b"{":
            return [Send(RPC.refusal(frame.number, INVALID, "params must be an object"))]
        self._count += 1
        key = f"{frame.method} {self._count}"
        terminal = text_of(members_of(frame.params).get("terminalId", ABSENT))
        self._open[key] = _Asked(Raw(bytes(frame.number)), frame.method, terminal)
        return [Serve(key=key, method=frame.method, params=Raw(bytes(frame.params)))]

    def served(self, key: str, outcome: Served | NotServed) -> tuple[list[Step], tuple[str, str] | None]:
        """Answers a request.

        Returns:
            What to send, and, when the agent read a terminal, which and what.
        """
        asked = self._open.pop(key, None)
        if asked is None:
            return [], None
        if isinstance(outcome, NotServed):
            return [Send(RPC.refusal(asked.number, CODES[outcome.kind], outcome.reason))], None
        text = text_of(members_of(outcome.result).get("output", ABSENT))
        read = asked.method == "terminal/output" and asked.terminal is not None and text is not None
        return [Send(RPC.response(asked.number, outcome.result))], (
            (asked.terminal or "", text or "") if read else None
        )

    def taken_back(self, number: Id | None) -> list[Step]:
        """The agent does not wait for an answer any more; the protocol wants one all the same."""
        for key, asked in list(self._open.items()):
            if id_of(asked.number) == number:
                del self._open[key]
                return [Send(RPC.refusal(asked.number, CANCELLED, "cancelled"))]
        return []

    def clear(self) -> None:
        """The connection is over."""
        self._open.clear()
