"""Decisions in words: what was decided, by whom, and why as far as the source says it.

How long an allowance holds (once, for the session, always) is said where a person decided, or may have: of a
policy, a hook or a classifier, which decide each time, it would mislead. The source's own words stand in
parentheses behind the decider, each once.

Must never know: layout, harnesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from callsheet.rows import PermissionShown

UNKNOWN_DECIDER = "who decided: not recorded"

_VERBS: dict[str, str] = {"allow": "allowed", "reject": "declined"}
_SCOPES: dict[str, str] = {"once": "once", "session": "for the session", "always": "always"}
_OTHERS: dict[str, str] = {"cancelled": "request cancelled", "timeout": "request timed out"}
_REASONS: tuple[str, ...] = ("reasonType", "ruleSource", "reasonCode")
"""Members of a decision in the source's own words that say why."""
_EMPTY = frozenset(("", "unknown"))


def decision_words(one: PermissionShown) -> str:
    """A decision and who made it; a silence about the one or the other is said."""
    if one.decision is None:
        return "asked, no decision is recorded"
    return f"{_decided(one)} {_who(one)}"


def declined_words(permissions: Iterable[PermissionShown]) -> str:
    """Who declined a call, by the last decision that refused it."""
    refusals = [one for one in permissions if is_refusal(one)]
    return decision_words(refusals[-1]) if refusals else f"declined ({UNKNOWN_DECIDER})"


def is_refusal(one: PermissionShown) -> bool:
    """Whether a decision refuses."""
    return (one.decision or "").startswith("reject")


def _decided(one: PermissionShown) -> str:
    decision = one.decision or ""
    verb, _, scope = decision.partition("_")
    if verb not in _VERBS:
        return _OTHERS.get(decision, decision)
    by_person = one.decided_by in (None, "user")
    said = verb == "allow" or scope != "once"  # a refusal that holds for once needs no word for it
    return f"{_VERBS[verb]} {_SCOPES.get(scope, scope)}".rstrip() if by_person and said else _VERBS[verb]


def _who(one: PermissionShown) -> str:
    reasons = list(_said(one, *_REASONS))
    if one.rule is not None and one.rule not in reasons:
        reasons.append(one.rule if one.rule.startswith("rule") else f"rule {one.rule}")
    if one.decided_by is not None:
        why = ", ".join(_distinct(reasons, one.decided_by))
        return f"by {one.decided_by}" + (f" ({why})" if why else "")
    words = ", ".join(_distinct([*_said(one, "source"), *reasons], ""))
    return f"({UNKNOWN_DECIDER}{f'; the source says {words}' if words else ''})"


def _said(one: PermissionShown, *names: str) -> Iterator[str]:
    for name in names:
        word = (one.said or {}).get(name)
        if isinstance(word, str) and word not in _EMPTY:
            yield word


def _distinct(words: Sequence[str], decider: str) -> Iterator[str]:
    """The words that nothing else says too: ``rule`` and ``userSettings`` go beside ``rule:userSettings``."""
    for number, word in enumerate(words):
        others = [decider, *words[:number], *(other for other in words[number + 1 :] if other != word)]
        if not any(
            other == word or other.startswith((f"{word}:", f"{word} ")) or other.endswith(f":{word}")
            for other in others
        ):
            yield word
