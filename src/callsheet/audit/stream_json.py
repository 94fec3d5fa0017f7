"""Frames of a live protocol, as the tables see them.

Owns: how many calls with one id had been sent when a record was written (a recording is append-only: what
came later is a later record's matter), and the tables that only frames need: the options that a host was offered,
what it chose, and arguments put together from their pieces.

Must never know: importers.
"""

from __future__ import annotations

from typing import Any

from callsheet.audit.aliases import unwrapped
from callsheet.audit.case import Case
from callsheet.audit.cite import Cite
from callsheet.audit.values import line_of
from callsheet.registry.facts import Fact
from callsheet.registry.when import MISSING, follow
from callsheet.wire.lossless import NotJson, decode

SECRET = ("isSecret", "is_secret", "secret")


def is_framed(case: Case, cite: Cite) -> bool:
    """Whether a ref cites a frame."""
    return cite.source.entry.kind in case.registry.marks.frames


def _track(case: Case, root: Any) -> list[str | None]:
    """Whose conversation a frame belongs to: by each of the marks, the first name that is there."""
    named = ((follow(root, pointer) for pointer in pointers) for pointers in case.registry.marks.track)
    return [next((one for one in found if isinstance(one, str) and one), None) for found in named]


def calls_by_then(case: Case, cite: Cite, native: str) -> int:
    """How many calls of this conversation have a native id, up to the last line that the record cites."""
    last = max((one.line for one in case.cites if one.source is cite.source), default=cite.line)
    own = _track(case, cite.root)
    lines = [line_of(twin.key) for twin in case.scan(cite).twins(native, set())]
    lines = [line for line in lines if line <= last]
    found = (case.reading.roots_at(cite.source, line) for line in lines)
    return sum(any(_track(case, unwrapped(one.value)) == own for one in roots) for roots in found)


def own_text(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The arguments of a call, put together from the pieces in which they were sent."""
    pieces = [follow(one.root, "/event/delta/partial_json") for one in case.cites]
    kept = [piece for piece in pieces if isinstance(piece, str)]
    return "".join(kept) if kept else MISSING


def own_input(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """The value of these arguments."""
    text = own_text(case, cite, fact, values)
    try:
        return MISSING if text is MISSING else decode(text.encode("utf-8", "surrogatepass"))
    except NotJson:
        return MISSING


def task_state(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The state of a task, by the words of notifications."""
    rows = [
        row
        for row in case.registry.terminal_status
        if (row.entity, row.source) == (case.kind, "notification")
    ]
    word = values[0]
    return (
        next((row.then for row in rows if row.value == word), "unknown") if isinstance(word, str) else MISSING
    )


def sole_window(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The context window of the only model in a table of models."""
    models = values[0]
    return (
        follow(next(iter(models.values())), "/contextWindow")
        if isinstance(models, dict) and len(models) == 1
        else MISSING
    )


# -- what a host is asked -----------------------------------------------------------------------------------------


def _scope(permissions: list[Any]) -> str:
    if not permissions:
        return "allow_once"
    in_session = all(isinstance(one, dict) and one.get("destination") == "session" for one in permissions)
    return "allow_session" if in_session else "allow_always"


def offers(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The options of a request: the protocol's two behaviours, and each suggestion that may go with an allowance."""
    offered = values[0] if isinstance(values[0], list) else []
    found: list[dict[str, Any]] = [{"optionId": "allow", "kind": "allow_once"}]
    if len(offered) > 1:
        names = "; ".join(_kept(one) for one in offered)
        found.append({"optionId": "allow:*", "name": names, "kind": _scope(offered)})
    for number, one in enumerate(offered):
        found.append({"optionId": f"allow:{number}", "name": _kept(one), "kind": _scope([one])})
    return [*found, {"optionId": "deny", "kind": "reject_once"}]


def _kept(suggestion: Any) -> str:
    """What a suggestion would keep, and where."""
    told = suggestion if isinstance(suggestion, dict) else {}
    rules, folders, mode = (told.get(name) for name in ("rules", "directories", "mode"))
    parts = [_rule(rule) for rule in (rules if isinstance(rules, list) else ())]
    parts += [one for one in (folders if isinstance(folders, list) else ()) if isinstance(one, str)]
    parts += [mode] if isinstance(mode, str) else []
    words = ", ".join(parts) or str(told.get("type"))
    where = told.get("destination")
    return f"{words} ({where})" if isinstance(where, str) else words


def _rule(rule: Any) -> str:
    told = rule if isinstance(rule, dict) else {}
    tool, content = told.get("toolName"), told.get("ruleContent")
    return f"{tool}({content})" if isinstance(content, str) else str(tool)


def host_decision(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The decision in a host's answer: how far it reaches, the rules that come with it say."""
    answer = values[0] if isinstance(values[0], dict) else {}
    match answer.get("behavior"):
        case "deny":
            return "reject_once"
        case "allow":
            taken = answer.get("updatedPermissions")
            return _scope(taken if isinstance(taken, list) else [])
        case _:
            return MISSING


def host_choice(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The option that a host's answer takes, if it is one of those offered."""
    answer = values[0] if isinstance(values[0], dict) else {}
    if answer.get("behavior") != "allow":
        return "deny" if answer.get("behavior") == "deny" else MISSING
    taken = answer.get("updatedPermissions")
    taken = taken if isinstance(taken, list) else []
    asked = (follow(one.root, "/request/permission_suggestions") for one in case.role_cites("request"))
    offered = next((one for one in asked if isinstance(one, list)), [])
    if not taken:
        return "allow"
    if len(offered) > 1 and taken == offered:
        return "allow:*"
    return f"allow:{offered.index(taken[0])}" if len(taken) == 1 and taken[0] in offered else MISSING


def _refusal(case: Case, cite: Cite) -> bool:
    """Whether a frame records the refusal of the record's call."""
    root = cite.root
    if follow(root, "/type") == "control_response":
        name = follow(root, "/response/request_id")
        asked = [one.root for one in case.role_cites("asked") if follow(one.root, "/request_id") == name]
        told = follow(asked[0], "/request/tool_use_id") if asked else MISSING
        told = told if follow(root, "/response/response/behavior") == "deny" else MISSING
    else:
        told = follow(root, "/tool_use_id") if follow(root, "/subtype") == "permission_denied" else MISSING
    call = case.record.get("callId", case.record.get("nativeCallId"))
    return isinstance(told, str) and told == call


def is_refused(case: Case) -> bool:
    """Whether the record cites a frame that records the refusal of its call."""
    return any(_refusal(case, cite) for cite in case.role_cites("denial"))


def still_open(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """A request waits as long as no frame ends it."""
    ends = any(case.role_cites(role) for role in ("decision", "cancel", "result"))
    return MISSING if ends else "pending"


def secret_form(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Whether a form asks for a secret, as a whole or in each of its members (ASR-283)."""
    request = values[0] if isinstance(values[0], dict) else {}
    members = follow(request, "/requested_schema/properties")
    members = members if isinstance(members, dict) else {}
    marked = [_is_secret(one) for one in members.values()]
    return True if _has_mark(request) or (marked and all(marked)) else MISSING


def _is_secret(member: Any) -> bool:
    if not isinstance(member, dict):
        return False
    return member.get("format") == "password" or member.get("writeOnly") is True or _has_mark(member)


def _has_mark(value: dict[str, Any]) -> bool:
    vendors = value.get("_meta")
    return isinstance(vendors, dict) and any(
        isinstance(one, dict) and any(one.get(name) is True for name in SECRET) for one in vendors.values()
    )
