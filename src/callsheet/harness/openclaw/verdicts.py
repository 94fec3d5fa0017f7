"""The outcome of a result and who allowed it, by the registry's tables (ASR-258, 277 to 280; decisions 4, 5 and 12).

Owns: which few members of a result the tables may look at, and the memory of what they said of them. A refusal counts
only where a field records it: on the result, or in the approval's own row.

Must never know: records but the compact permission, texts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from callsheet.harness.openclaw.shapes import Details
from callsheet.records import CompactPermission
from callsheet.registry import Registry, Rule, first
from callsheet.registry.when import json_type

MEMBERS = (
    "status",
    "deniedReason",
    "failureKind",
    "openclawSyntheticMissingToolResult",
    "approvalReviewOutcome",
)


class Verdict(NamedTuple):
    """What the tables say of a result."""

    status: str
    synthetic: bool
    permission: CompactPermission | None


class Verdicts:
    """Looks results up in the tables."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[Any, ...], Verdict] = {}

    def of(self, tool: Any, error: Any, details: Details, approval: str | None) -> Verdict:
        """The verdict on a result.

        Args:
            tool: Its tool's name.
            error: ``isError`` as it stands.
            details: Its details.
            approval: Status of the approval request for this call, where one is recorded.
        """
        told = {name: getattr(details, name) for name in MEMBERS if getattr(details, name) is not None}
        key = (
            tool if isinstance(tool, str) else None,
            error if isinstance(error, bool) else json_type(error),
            approval,
            *(
                (name, value if isinstance(value, str | bool) else json_type(value))
                for name, value in told.items()
            ),
        )
        found = self._known.get(key)
        if found is None:
            message = {"toolName": tool, "details": told} | ({} if error is None else {"isError": error})
            native = {"message": message} | ({} if approval is None else {"approval": approval})
            found = self._read(native, approval is not None)
            if len(self._known) < 10_000:
                self._known[key] = found
        return found

    def _read(self, native: dict[str, Any], asked: bool) -> Verdict:
        rule = first(self._registry.status, None, native)
        # A request that was recorded is a permission record of its own (ASR-278, 279).
        decision = None if asked else first(self._registry.decision, None, native)
        return Verdict(
            rule.then or "unknown" if rule else "unknown",
            bool(rule and rule.synthetic),
            _compact(decision),
        )


def _compact(rule: Rule | None) -> CompactPermission | None:
    if rule is None or rule.decision is None:
        return None
    return CompactPermission(decision=rule.decision, decided_by=rule.decidedBy)
