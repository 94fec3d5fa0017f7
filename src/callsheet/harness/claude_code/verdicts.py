"""Status and compact permission of a result, by the registry's tables (decisions 4 to 6, 12).

Owns: what the tables are asked about (the small members of a result line; a text in ``toolUseResult`` only where a
table names that very text), a memory of answers (a session has few distinct combinations), and the doubts worth a
diagnostic: fields of one record that contradict each other.

Must never know: content, other lines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET, Raw

from callsheet.harness.claude_code.shapes import (
    NativeBlock,
    NativeLine,
    is_short,
    is_string,
    mark,
    value_of,
)
from callsheet.harness.claude_code.tooluse import Report
from callsheet.records import CompactPermission
from callsheet.registry import Registry, Rule
from callsheet.registry import first as first_rule
from callsheet.registry.when import follow

SMALL = (
    "permissionDecision",
    "toolDenialKind",
    "toolDenialBeforeRun",
    "entrypoint",
    "promptSource",
    "version",
    "framed",
)
"""Members of the line that tables may name."""


Use = tuple[str, Any] | None
"""The type of ``toolUseResult`` and, of a text that a table names, the text; of a shell's, ``interrupted``."""


class Verdict(NamedTuple):
    """What the tables say of a result."""

    status: str
    permission: CompactPermission | None
    synthetic: bool
    doubts: tuple[tuple[str, str], ...]


class Verdicts:
    """Asks the tables, remembering the answers."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._answers: dict[tuple[Any, ...], Verdict] = {}
        self._said: set[tuple[str, str]] = set()
        self._texts = _named_texts(registry)

    def of(self, line: NativeLine, block: NativeBlock, raw: Raw, report: Report, alone: bool) -> Verdict:
        """The verdict on one result block; ``alone``: the line has no other, so that its members speak of this one."""
        use = self._use(raw, report) if raw else None
        if not alone:
            line = _undecided(line)
        key = (
            line.version,
            bytes(line.permissionDecision),
            line.toolDenialKind,
            line.toolDenialBeforeRun,
            line.entrypoint,
            line.promptSource,
            line.framed,
            block.is_error,
            type(block.is_error),
            use,
        )
        try:
            answer = self._answers.get(key)
        except TypeError:
            # A member that is a list or an object: no table names it, and it has no hash.
            return self._ask(line, block, use)
        if answer is None:
            answer = self._ask(line, block, use)
            if len(self._answers) < 10_000 and is_short(key):
                self._answers[key] = answer
        if not answer.doubts:
            return answer
        fresh = tuple(doubt for doubt in answer.doubts if doubt not in self._said)
        if len(self._said) < 1_000:
            self._said.update(fresh)
        return answer if fresh == answer.doubts else answer._replace(doubts=fresh)

    def _use(self, raw: Raw, report: Report) -> Use:
        """``toolUseResult`` as the tables may see it: its type, and its text where a table names that text."""
        first_byte = mark(raw)
        if first_byte == b'"':
            text = value_of(raw) if len(raw) < 200 else None
            return ("string", text if text in self._texts else None)
        if first_byte == b"{":
            # A tool that is not known is taken for a shell only if it says of both what a shell would.
            shell = is_string(report.stdout) and (
                type(report) is not Report or report.interrupted is not UNSET
            )
            return ("shell" if shell else "object", report.interrupted is True)
        return ({b"[": "array", b"n": "null"}.get(first_byte, "number"), None)

    def _ask(self, line: NativeLine, block: NativeBlock, use: Use) -> Verdict:
        native: dict[str, Any] = {}
        for name in SMALL:
            value = getattr(line, name)
            if value is not None:
                native[name] = value
        if line.permissionDecision:
            native["permissionDecision"] = value_of(line.permissionDecision)
        if use is not None:
            native["toolUseResult"] = _seen(use)
        part = {} if block.is_error is None else {"is_error": block.is_error}
        known = line.version if isinstance(line.version, str) else None
        rule = first_rule(self._registry.status, known, native, part)
        status = (rule.then if rule else None) or "unknown"
        permission = self._permission(native, part, known)
        synthetic = rule.synthetic if rule else False
        return Verdict(status, permission, synthetic, tuple(_doubts(native, permission)))

    def _permission(
        self, native: dict[str, Any], part: dict[str, Any], version: str | None
    ) -> CompactPermission | None:
        rule = first_rule(self._registry.decision, version, native, part)
        if rule is None or rule.decision is None:
            return None
        decider = first_rule(self._registry.decider, version, native, part)
        named: str | None = None
        if decider is not None and decider.rule is not None:
            code = follow(native, decider.rule)
            named = code if isinstance(code, str) else None
        decided_by = rule.decidedBy or (decider.decidedBy if decider else None)
        return CompactPermission(decision=rule.decision, decided_by=decided_by, rule=named)


def _undecided(line: NativeLine) -> NativeLine:
    """What a line with several results says of each."""
    return NativeLine(
        version=line.version,
        entrypoint=line.entrypoint,
        promptSource=line.promptSource,
        framed=line.framed,
    )


def says_of_one(line: NativeLine) -> bool:
    """Whether the line has a member that speaks of a single result."""
    kind = line.toolDenialKind is not None or line.toolDenialBeforeRun is not None
    return bool(line.permissionDecision) or kind or line.userFeedback is not None


def _seen(use: tuple[str, Any]) -> Any:
    """A stand-in for ``toolUseResult`` that answers every question the tables ask of it."""
    kind, value = use
    if kind == "string":
        return value or "…"
    if kind in ("shell", "object"):
        return {"interrupted": value} | ({"stdout": "…"} if kind == "shell" else {})
    return {"array": [], "null": None}.get(kind, 0)


def _named_texts(registry: Registry) -> set[str]:
    """Texts that a table compares ``toolUseResult`` with."""
    found: set[str] = set()
    rules: list[Rule] = [*registry.status, *registry.decision, *registry.decider]
    for rule in rules:
        test = rule.when.get("/toolUseResult")
        for value in test.get("one_of", []) if isinstance(test, dict) else [test]:
            if isinstance(value, str):
                found.add(value)
    return found


def _doubts(native: dict[str, Any], permission: CompactPermission | None) -> list[tuple[str, str]]:
    """Fields of one result that speak against each other."""
    decision = native.get("permissionDecision")
    kind = native.get("toolDenialKind")
    found = []
    if isinstance(decision, dict):
        source, reason = decision.get("source"), decision.get("reasonType")
        if source == "user_reject" and reason is not None:
            found.append(
                (
                    "decider_contradicted",
                    f"source says user_reject, reasonType says {reason}: the reason decides",
                )
            )
        if kind == "user-rejected" and decision.get("decision") == "reject" and source == "config":
            found.append(
                (
                    "decider_contradicted",
                    "toolDenialKind says user-rejected, but the decision came from configuration",
                )
            )
        if (
            kind == "permission-rule"
            and isinstance(source, str)
            and source.startswith("user_")
            and reason is None
        ):
            found.append(
                (
                    "decider_contradicted",
                    f"toolDenialKind says permission-rule, but the decision's source is {source}",
                )
            )
        if decision.get("decision") == "accept" and isinstance(kind, str) and kind != "interrupted":
            found.append(("denial_contradicted", f"the decision is accept, but toolDenialKind says {kind}"))
        if permission is None:
            found.append(("decision_unknown", "permissionDecision has a decision that no table knows"))
    return found
