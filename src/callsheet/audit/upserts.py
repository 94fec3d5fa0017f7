"""``via = "table"``: members of calls, results and changes that are told in pieces, frame by frame.

Owns the fold of the updates that a record cites: the last value of a member, what null does to it (the negotiated
version says), contents with items appended, and what is made of the whole: parts, places, changed files, previews. What
an agent is known to put into open members comes from the registry's ``[[agent]]`` rows.

Must never know: importers.
"""

from __future__ import annotations

import re
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.changes import path_ref
from callsheet.audit.cite import Cite
from callsheet.registry import AgentRule
from callsheet.registry.facts import Fact
from callsheet.registry.via import base64
from callsheet.registry.when import MISSING, follow
from callsheet.wire.blobs import digest
from callsheet.wire.damage import BOM
from callsheet.wire.lossless import clean_text, fits
from callsheet.wire.spans import Spans

CLEARS = 2
"""The protocol version in which null clears a member; before, it left it as it was."""
TOLD = "told"
"""Role of the updates that a result cites besides the one that ended its call."""
WORDS = frozenset({"name", "kind", "title", "status"})
"""Members of a call that are texts."""
PREVIEW = 16_384
_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_OPERATIONS = ("add", "delete", "modify", "move")


def is_first(case: Case, cite: Cite, fact: Fact) -> bool:
    """Whether a ref is the first of its role: a fold of all of them is made once."""
    cites = case.role_cites(fact.role)
    return bool(cites) and cites[0] is cite


def folded(case: Case, role: str, member: str) -> Any:
    """What the cited updates leave a member with."""
    value: Any = MISSING
    for cite in case.cites:
        part = cite.part if isinstance(cite.part, dict) else {}
        if member not in part or cite.role not in (role, TOLD):
            continue
        if member == "content" and part.get("sessionUpdate") == "tool_call_content_chunk":
            value = [*(value if isinstance(value, list) else []), part["content"]]
        elif part[member] is not None:
            value = part[member]
        elif case.ledger.head.protocol == CLEARS:
            value = MISSING
    return value


def updated(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """What the cited updates leave a member (``tag``) with; a word that is no text says nothing."""
    told = folded(case, fact.role, fact.tag or "") if is_first(case, cite, fact) else MISSING
    return MISSING if fact.tag in WORDS and not isinstance(told, str) else told


def updated_places(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """The files that a call concerns, as its updates leave them; a line counts from 1."""
    listed = folded(case, fact.role, "locations") if is_first(case, cite, fact) else MISSING
    found = []
    for one in listed if isinstance(listed, list) else ():
        path, line = follow(one, "/path"), follow(one, "/line")
        if isinstance(path, str) and path:
            place = path_ref(path, case.ledger.head.roots)
            found.append(place | ({"line": line} if type(line) is int and line > 0 else {}))
    return found or MISSING


def updated_parts(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """A call's content, as its updates leave it, as parts."""
    items = folded(case, fact.role, "content") if is_first(case, cite, fact) else MISSING
    return [tool_part(item) for item in items] if isinstance(items, list) and items else MISSING


def tool_part(item: Any) -> dict[str, Any]:
    """The part that an item of a call's content is."""
    kind = follow(item, "/type")
    if kind == "content" and isinstance(item.get("content"), dict):
        return block_part(item["content"])
    if kind == "terminal" and isinstance(item.get("terminalId"), str):
        return {"type": "terminal", "terminalId": item["terminalId"]}
    if kind == "diff" and isinstance(item.get("newText"), str) and isinstance(item.get("path"), str):
        named = {"path": "path", "oldText": "oldText", "newText": "newText"}
        return {"type": "diff"} | {to: item[of] for of, to in named.items() if isinstance(item.get(of), str)}
    return {"type": "json", "value": item}


def block_part(block: Any) -> dict[str, Any]:
    """The part that a content block is."""
    kind = follow(block, "/type")
    if kind == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    if kind == "resource_link":
        return {"type": kind} | {
            name: block[name] for name in ("uri", "name") if isinstance(block.get(name), str)
        }
    if kind in ("image", "audio"):
        return _media(kind, block, "data") or {"type": "json", "value": block}
    inner = follow(block, "/resource")
    if kind == "resource" and isinstance(inner, dict):
        if isinstance(inner.get("text"), str):
            return {"type": "text", "text": inner["text"]} | _named(inner)
        return _media("file", inner, "blob") or {"type": "json", "value": block}
    return {"type": "json", "value": block}


def block_at(cite: Cite, pointer: str, block: Any) -> dict[str, Any]:
    """The part that a block of a message is; one whose numbers no reader keeps is told as its own JSON text."""
    part = block_part(block)
    if part["type"] != "json":
        return part
    text = Spans(cite.data.removeprefix(BOM)).text(pointer)
    if text is None or fits(clean_text(text)):
        return part
    return {"type": "text", "text": clean_text(text).decode("utf-8", "replace")}


def _named(block: dict[str, Any]) -> dict[str, Any]:
    return {name: block[name] for name in ("uri", "mimeType") if isinstance(block.get(name), str)}


def _media(kind: str, block: dict[str, Any], member: str) -> dict[str, Any] | None:
    data = base64(block.get(member))
    if data is None or not isinstance(block.get("mimeType"), str):
        return None
    blob: dict[str, Any] = {"blob": f"sha256:{digest(data)}", "size": len(data)}
    blob["mimeType"] = block["mimeType"]
    return {"type": kind, "blob": blob} | _named(block)


def ended_as(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The last final status that the cited updates tell."""
    told = [follow(one.part, "/status") for one in case.cites if one.role in ("result", TOLD)]
    return next((one for one in reversed(told) if one in ("completed", "failed", "cancelled")), MISSING)


# -- which call ---------------------------------------------------------------------------------------------------


def _is_shared(case: Case, native: Any) -> bool:
    """Whether several calls have a native id; a state that was corrected since may not have known it."""
    if not isinstance(native, str) or case.ledger.calls_with(native) < 2:
        return False
    return "callId" not in case.record or not case.ledger.is_superseded(case.record.get("id"))


def upsert_call(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The id of the call that an update is about, where only one call has it so far."""
    return MISSING if _is_shared(case, values[0]) else values[0]


def upsert_linkage(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Linked by the id that the update names; ambiguous once several calls have it (ASR-262)."""
    return "ambiguous" if _is_shared(case, values[0]) else "exact"


# -- what an agent is known to put into open members ---------------------------------------------------------------


def agent_rule(case: Case) -> AgentRule | None:
    """The registry's row about the agent of the stream."""
    return next((row for row in case.registry.agent if row.name == case.ledger.head.agent), None)


def agent_meta(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """What the agent's ``_meta`` says, at the place that its row names (``tag``: ``tool`` or ``parent``)."""
    rule = agent_rule(case)
    where = getattr(rule, fact.tag or "", None) if rule is not None else None
    if where is None or not is_first(case, cite, fact):
        return MISSING
    told = [follow(one.part, f"/_meta/{where}") for one in case.role_cites(fact.role)]
    return next((one for one in reversed(told) if isinstance(one, str) and one), MISSING)


def agent_provider(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """An MCP tool, by the prefix of its name that the agent's row tells; of which server is not said."""
    rule, name = agent_rule(case), case.record.get("name")
    if rule is None or not rule.mcp_prefix or not isinstance(name, str):
        return MISSING
    return {"kind": "mcp", "identity": "unknown"} if name.startswith(rule.mcp_prefix) else MISSING


def agent_output(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """What stands in ``rawOutput`` where the agent's row says (``tag``: ``exit`` or ``error``)."""
    rule = agent_rule(case)
    where = getattr(rule, fact.tag or "", None) if rule is not None else None
    if where is None or not is_first(case, cite, fact):
        return MISSING
    return follow(folded(case, fact.role, "rawOutput"), f"/{where}")


# -- changed files and previews ------------------------------------------------------------------------------------


def change_state(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """What became of a change: shown, done with its call, refused in an answer, or not told."""
    told = [follow(one.part, "/status") for one in case.role_cites("change")]
    ended = [status for status in told if status in ("completed", "failed", "cancelled")]
    if not ended:
        return "proposed"
    if ended[-1] == "completed":
        return "applied"
    chosen = {follow(one.part, "/outcome/optionId") for one in case.role_cites("decision")}
    offered = [follow(one.part, "/options") for one in case.role_cites("request")]
    for option in (one for listed in offered if isinstance(listed, list) for one in listed):
        if (
            follow(option, "/kind") in ("reject_once", "reject_always")
            and follow(option, "/optionId") in chosen
        ):
            return "declined"
    return "unknown"


def shown_changes(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """The files that the diffs in a call's content change, patches as supplied."""
    items = folded(case, fact.role, "content") if is_first(case, cite, fact) else MISSING
    found: list[dict[str, Any]] = []
    for item in items if isinstance(items, list) else ():
        if follow(item, "/type") == "diff":
            found += _of_changes(case, item) if "changes" in item else _of_texts(case, item)
    return found or MISSING


def _of_texts(case: Case, item: dict[str, Any]) -> list[dict[str, Any]]:
    path, old, new = item.get("path"), item.get("oldText", MISSING), item.get("newText")
    if not (isinstance(path, str) and path and isinstance(new, str)):
        return []
    made: dict[str, Any] = {"path": path_ref(path, case.ledger.head.roots)}
    if isinstance(old, str):
        patch = {"format": "replace", "value": {"oldText": old, "newText": new}}
        return [made | ({"change": "modify"} if old else {}) | {"patch": patch}]
    kind = {"change": "add"} if old is None else {}
    return [made | kind | {"patch": {"format": "full_text", "value": new}}]


def _of_changes(case: Case, item: dict[str, Any]) -> list[dict[str, Any]]:
    listed = item["changes"] if isinstance(item["changes"], list) else []
    is_git = follow(item, "/patch/format") == "git_patch"
    text = follow(item, "/patch/text") if is_git else MISSING
    starts = [hit.start() for hit in _FILE.finditer(text)] if isinstance(text, str) else []
    pieces = (
        [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)] if starts else []
    )
    found = []
    for number, one in enumerate(listed):
        path, old = follow(one, "/path"), follow(one, "/oldPath")
        if not (isinstance(path, str) and path):
            continue
        made: dict[str, Any] = {"path": path_ref(path, case.ledger.head.roots)}
        if follow(one, "/operation") in _OPERATIONS:
            made["change"] = one["operation"]
        if isinstance(old, str) and old:
            made["oldPath"] = path_ref(old, case.ledger.head.roots)
        if len(listed) == 1 and isinstance(text, str):
            made["patch"] = {"format": "git", "value": text}
        elif len(pieces) == len(listed) and pieces[number].split("\n", 1)[0].endswith(path.lstrip("/")):
            made["patch"] = {"format": "git", "value": pieces[number]}
        found.append(made)
    return found


def _shown_text(case: Case, role: str) -> str:
    items = folded(case, role, "content")
    texts = [follow(item, "/content/text") for item in items] if isinstance(items, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def preview_text(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """The end of what was shown of a call that never ended."""
    text = _shown_text(case, fact.role) if is_first(case, cite, fact) else ""
    return text[-PREVIEW:] or MISSING


def preview_left(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """How many bytes of it the preview leaves out."""
    text = _shown_text(case, fact.role) if is_first(case, cite, fact) else ""
    return len(text[:-PREVIEW].encode("utf-8", "replace")) or MISSING


UPSERTS = {
    "updated": updated,
    "ended_as": ended_as,
    "updated_places": updated_places,
    "updated_parts": updated_parts,
    "upsert_call": upsert_call,
    "upsert_linkage": upsert_linkage,
    "agent_meta": agent_meta,
    "agent_provider": agent_provider,
    "agent_output": agent_output,
    "change_state": change_state,
    "shown_changes": shown_changes,
    "preview_text": preview_text,
    "preview_left": preview_left,
}
"""Table names that a fact may give, beside those of ``tables``."""
