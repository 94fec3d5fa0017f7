"""What the agent offers to cancel by itself: one call, or the terminal that it shows (version 2, ``capabilities``).

Owns which calls and terminals advertise that now, and the request that fits. A request may be sent only while it is
advertised; the agent answers that it was taken, and the end is told by an update, as any other.

Must never know: turns, records.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Raw, Struct, field

from callsheet.harness._port.parts import ABSENT, is_null, mark, members_of, text_of
from callsheet.harness.acp.calls import FINAL
from callsheet.harness.acp.parts import terminals_in

KEPT_MOST = 1000
"""Calls and terminals that are kept in mind, each; the one that was heard of longest ago is forgotten first."""


class Shown(Struct):
    """A call, or a terminal.

    Attributes:
        session: Whose it is.
        offered: It may be cancelled.
        terminals: Terminals that a call shows.
    """

    session: str
    offered: bool = False
    terminals: list[str] = field(default_factory=list)


class Asked(NamedTuple):
    """The request that cancels something."""

    method: str
    params: dict[str, Any]


class Cancelling:
    """What may be cancelled in one connection."""

    def __init__(self) -> None:
        self._calls: dict[str, Shown] = {}
        self._terminals: dict[str, Shown] = {}

    def told(self, session: str, name: str, update: dict[str, Raw]) -> None:
        """Takes an update."""
        if name in ("tool_call_update", "tool_call_content_chunk"):
            call = text_of(update.get("toolCallId", ABSENT))
            if call is not None:
                self._call(_kept(self._calls, session, call), update)
        elif name == "terminal_update":
            terminal = text_of(update.get("terminalId", ABSENT))
            if terminal is not None:
                shown = _kept(self._terminals, session, terminal)
                over = mark(update.get("exitStatus", ABSENT)) == b"{"
                shown.offered = False if over else _offers(update, shown.offered)

    def _call(self, shown: Shown, update: dict[str, Raw]) -> None:
        shown.offered = _offers(update, shown.offered)
        if text_of(update.get("status", ABSENT)) in FINAL:
            shown.offered = False
        content = update.get("content", ABSENT)
        if mark(content) == b"{":
            shown.terminals += terminals_in(Raw(b"[" + bytes(content) + b"]"))
        elif content:
            shown.terminals = terminals_in(content)

    def request(self, call: str) -> Asked | None:
        """What cancels a call: itself, or a terminal that it shows; None where nothing of it may be."""
        shown = self._calls.get(call)
        if shown is None:
            return None
        if shown.offered:
            return Asked("tool_call/cancel", {"sessionId": shown.session, "toolCallId": call})
        for name in shown.terminals:
            terminal = self._terminals.get(name)
            if terminal is not None and terminal.offered:
                return Asked("terminal/cancel", {"sessionId": terminal.session, "terminalId": name})
        return None


def _kept(known: dict[str, Shown], session: str, name: str) -> Shown:
    shown = known.pop(name, None) or Shown(session)
    shown.session = session
    known[name] = shown
    if len(known) > KEPT_MOST:
        del known[next(iter(known))]
    return shown


def _offers(update: dict[str, Raw], before: bool) -> bool:
    """Whether ``capabilities.cancel`` is advertised: left out is unchanged, null withdraws, malformed is none."""
    told = update.get("capabilities", ABSENT)
    if not told:
        return before
    if is_null(told):
        return False
    return mark(members_of(told).get("cancel", ABSENT)) == b"{"
