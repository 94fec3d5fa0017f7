"""Silences of a whole session: what no call of it records, so that it is said once and not for each call.

Owns what counts as silent everywhere: at least one call or result lacks the member, and no record of any stream has
it, an earlier revision included. So a sheet may say it of all calls, and a row says it where it is not so.

Must never know: how it is worded.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET, Struct

from callsheet.records import Record, ToolCall, ToolResult, Unknown
from callsheet.registry import Registry

_SILENT = ("absent", "unavailable")
MEMBERS = ("requestedBy", "name", "input", "exec.exitCode", "content")
"""Members of calls and results that may be silent everywhere, in the order in which they are said."""


class Everywhere(Struct, frozen=True):
    """What is silent about every call.

    Attributes:
        members: Of ``MEMBERS``.
        reason: Why what reached the model is not recorded, where the source gives one reason for all.
    """

    members: frozenset[str] = frozenset()
    reason: str | None = None


class Silences:
    """Gathers silences from every record of some streams."""

    def __init__(self) -> None:
        self._silent: set[str] = set()
        self._spoken: set[str] = set()
        self._reasons: set[str | None] = set()

    def add(self, record: Record | Unknown, registry: Registry | None, is_command: IsCommand) -> None:
        """Takes the next record.

        Args:
            record: It.
            registry: The harness's registry.
            is_command: Whether a call runs a command.
        """
        match record:
            case ToolCall():
                self._take(record, "requestedBy", record.requested_by is not None, silent=True)
                self._take(record, "name", record.name is not None)
                has_input = record.input is not UNSET or record.input_text is not None
                self._take(record, "input", has_input)
                if "exec.exitCode" not in self._silent and _lacks_exit_code(record, registry, is_command):
                    self._silent.add("exec.exitCode")
            case ToolResult():
                has_code = record.exec is not None and record.exec.exit_code is not None
                self._take(record, "exec.exitCode", has_code)
                lacks = self._take(record, "content", record.content is not None, silent=True)
                if lacks and len(self._reasons) < 2:
                    capture = (record.capture or {}).get("content")
                    self._reasons.add(capture.reason if capture is not None else None)
            case _:
                pass

    def _take(
        self, record: ToolCall | ToolResult, member: str, present: bool, *, silent: bool = False
    ) -> bool:
        """Notes whether a record has a member; without a word about it, that it is missing counts if ``silent``."""
        capture = (record.capture or {}).get(member)
        if not present and capture is not None:
            silent = capture.state in _SILENT and capture.blob is None
            present = not silent
        if present:
            self._spoken.add(member)
        elif silent:
            self._silent.add(member)
        return silent and not present

    def update(self, other: Silences) -> None:
        """Adds what was gathered from other streams."""
        self._silent |= other._silent
        self._spoken |= other._spoken
        self._reasons |= other._reasons

    def everywhere(self) -> Everywhere:
        """What is silent in all of them."""
        members = self._silent - self._spoken
        if len(self._reasons) != 1:
            members -= {"content"}  # each row gives its own reason
        reason = next(iter(self._reasons)) if "content" in members else None
        return Everywhere(frozenset(members), reason)


IsCommand = Callable[[ToolCall], bool]


def _lacks_exit_code(call: ToolCall, registry: Registry | None, is_command: IsCommand) -> bool:
    """Whether results of this call have no field for an exit code."""
    return any(
        call.name in entry.tools if entry.tools else is_command(call)
        for entry in (registry.never if registry is not None else ())
        if (entry.record, entry.member) == ("tool_result", "exec.exitCode") and not entry.kinds
    )
