"""Hooks as frames tell of them: ``hook_started``, ``hook_response``, and callbacks of the host.

Owns: one hook record per run, its outcome by the source's own word. Frames name no command and no call (a callback
does); an exit code beside a cancelled run is none.

Must never know: calls, what a hook injects.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness._port.pen import Pen
from callsheet.harness.claude_code.tooluse import exit_code
from callsheet.records import Hook, Native, Ref
from callsheet.registry import Registry

OUTCOMES = {"success": "completed", "error": "failed", "cancelled": "cancelled"}
WAITING_MOST = 1000


class Hooks:
    """The hook runs of one stream."""

    def __init__(self, pen: Pen, registry: Registry) -> None:
        self._pen = pen
        self._events = {row.native: row for row in registry.hook_event}
        self._callbacks: dict[str, tuple[Hook, Ref]] = {}

    def _event(self, native: str) -> str:
        known = self._events.get(native)
        return known.event if known is not None else native

    def run(self, members: dict[str, Raw], ended: bool) -> bool:
        """``hook_started`` or ``hook_response``; False without an event, or the id by which alone both are one run."""
        pen = self._pen
        name, event = (text_of(members.get(member, ABSENT)) for member in ("hook_id", "hook_event"))
        if name is None or event is None:
            return False
        record = Hook(
            event=self._event(event),
            hook_id=name,
            name=text_of(members.get("hook_name", ABSENT)),
            native=Native(refs=[pen.ref("hook")]),
        )
        if ended:
            word = text_of(members.get("outcome", ABSENT)) or ""
            record.status = OUTCOMES.get(word, "unknown")
            if word != "cancelled":
                record.exit_code = exit_code(value_of(members.get("exit_code", ABSENT)))
            for member in ("stdout", "stderr"):
                words = text_of(members.get(member, ABSENT))
                if words is not None and len(words) > INLINE_MOST // 4:
                    data = words.encode("utf-8", "replace")
                    if len(data) > INLINE_MOST:
                        words = None
                        blob = pen.desk.blob(data, "text/plain")
                        pen.capture(record, member, "external", blob=blob)
                setattr(record, member, words)
        pen.revise(f"hook {name}", record)
        if ended:
            pen.forget(f"hook {name}")
        return True

    def callback(self, name: str, members: dict[str, Raw]) -> bool:
        """``hook_callback``: a hook that the host itself runs; False if it names no event."""
        told = members_of(members.get("input", ABSENT))
        native = text_of(told.get("hook_event_name", ABSENT))
        if native is None:
            return False
        known = self._events.get(native)
        record = Hook(
            event=self._event(native),
            hook_id=name,
            name=text_of(members.get("callback_id", ABSENT)),
            native=Native(refs=[self._pen.ref("callback")]),
        )
        if known is not None and known.call:
            record.call_id = text_of(members.get("tool_use_id", ABSENT))
        if len(self._callbacks) >= WAITING_MOST:
            self._callbacks.pop(next(iter(self._callbacks)))
        assert record.native is not None
        self._callbacks[name] = (record, record.native.refs[0])
        self._pen.revise(f"hook {name}", record)
        return True

    def returned(self, name: str, response: dict[str, Raw]) -> bool:
        """The host's answer to a callback."""
        waiting = self._callbacks.pop(name, None)
        if waiting is None:
            return False
        before, ref = waiting
        answer = members_of(response.get("response", ABSENT))
        own = members_of(answer.get("hookSpecificOutput", ABSENT))
        record = Hook(
            event=before.event,
            hook_id=name,
            name=before.name,
            call_id=before.call_id,
            status="failed" if "error" in response else "completed",
            decision=text_of(own.get("permissionDecision", ABSENT))
            or text_of(answer.get("decision", ABSENT)),
            native=Native(refs=[ref, self._pen.ref("return")]),
        )
        self._pen.revise(f"hook {name}", record)
        self._pen.forget(f"hook {name}")
        return True
