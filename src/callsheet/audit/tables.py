"""``via = "table"``: members that the registry's tables make of native values.

Owns one function for each table name. Each is given the values that the fact's pointers lead to and answers with
the member's value, or ``MISSING`` when the table says nothing. The tables are read anew from the registry; nothing
that an importer concluded is used.

Must never know: the record's own value, except where the table is about the record's identity (``id_source``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any

from callsheet.audit.attached import FILES
from callsheet.audit.branches import TREES
from callsheet.audit.case import Case
from callsheet.audit.chats import CHATS
from callsheet.audit.cite import Cite
from callsheet.audit.frames import FRAMES
from callsheet.audit.protocol import PROTOCOL
from callsheet.audit.scan import found_units
from callsheet.audit.shapes import SHAPES
from callsheet.audit.stream_json import (
    calls_by_then,
    host_choice,
    host_decision,
    is_framed,
    is_refused,
    offers,
    own_input,
    own_text,
    secret_form,
    sole_window,
    still_open,
    task_state,
)
from callsheet.audit.upserts import UPSERTS
from callsheet.records import TYPES
from callsheet.registry import LineRule, Rule, first
from callsheet.registry.facts import Fact, Unit
from callsheet.registry.via import derived_id, tags, wrapped_in
from callsheet.registry.when import MISSING, follow, matches

Table = Callable[[Case, Cite, Fact, list[Any]], Any]


# -- what a call is ---------------------------------------------------------------------------------------------


def kind(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The kind of an exact tool name (ASR-253)."""
    tool = next((tool for tool in case.registry.tool if tool.name == values[0]), None)
    return MISSING if tool is None or tool.kind is None else tool.kind


def item_kind(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The kind of a native item that carries no tool name."""
    item = next((item for item in case.registry.item if item.type == values[0]), None)
    return MISSING if item is None or item.kind is None else item.kind


def composite(prefix: str, server: str, tool: str) -> str:
    """The tool name that a harness makes of an MCP server and tool: every other character becomes ``_``."""
    plain = [
        "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
        for name in (server, tool)
    ]
    return f"{prefix}{plain[0]}__{plain[1]}"


def provider(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Where a tool comes from, by the registry's provider rows (ASR-255, decision 9)."""
    name = values[0]
    if not isinstance(name, str):
        return MISSING
    scan = case.scan(cite)
    found: Any = MISSING
    for row in case.registry.provider:
        prefix = row.get("prefix")
        if not isinstance(prefix, str) or not name.startswith(prefix):
            continue
        pair: tuple[str, str] | None = None
        if "servers" in row:
            tool = scan.tools.get(_native_id(case, cite) or "")
            makers = [
                one for one in scan.servers_at(cite.line) if tool and composite(prefix, one, tool) == name
            ]
            pair = (makers[0], tool) if tool is not None and len(makers) == 1 else None
        elif row["identity"] == "unknown":
            found = {"kind": row["kind"], "identity": "unknown"}
            continue
        elif "call" in row:
            named = scan.named.get(_native_id(case, cite) or "")
            pair = named if named is not None and composite(prefix, *named) == name else None
        else:
            fitting = [pair for pair in scan.pairs if composite(prefix, *pair) == name]
            servers = {server for server, _ in scan.pairs if name.startswith(composite(prefix, server, ""))}
            pair = fitting[0] if len(fitting) == 1 and len(servers) == 1 else None
        if pair is not None:
            found = {"kind": row["kind"], "server": pair[0], "tool": pair[1], "identity": row["identity"]}
    return found


def _native_id(case: Case, cite: Cite) -> str | None:
    unit = unit_of(case, cite)
    value = MISSING if unit is None else follow(cite.part if unit.id.startswith(".") else cite.root, unit.id)
    return value if isinstance(value, str) else None


def unit_of(case: Case, cite: Cite) -> Unit | None:
    """The kind of native unit that refs of this role cite."""
    return next((unit for unit in case.registry.unit if unit.role == cite.role), None)


# -- which call ---------------------------------------------------------------------------------------------------


def call_id(case: Case, cite: Cite, native: Any, by: Any) -> Any:
    """The id of the call with a native id; a derived one where the file tells several such calls apart (decision 3)."""
    if not isinstance(native, str):
        return MISSING
    if is_framed(case, cite):
        made = native.startswith("#") and not case.scan(cite).makers(native)
        return MISSING if made or (cite.role != "call" and calls_by_then(case, cite, native) > 1) else native
    scan = case.scan(cite)
    repeats = case.ledger.repeats.get(cite.source.entry.id, set())
    twins = scan.twins(native, repeats)
    of_results = case.kind == "tool_result" or (cite.role != "call" and case.kind != "tool_call")
    marked = (hash(by) or 1) if isinstance(by, str) and by else 0
    if not twins:
        if not of_results:
            return native
        makers = scan.makers(native)
        if makers:
            # The record that the result names may be a damaged one, with another call of this id.
            contradicted = marked != 0 and 0 not in makers and marked not in makers
            return MISSING if contradicted else native
        return MISSING if _is_made(case, cite, native) else native
    known = {twin.by for twin in twins} & ({marked} if of_results else scan.answers(native))
    if marked and known and sum(twin.by == marked for twin in twins) == 1:
        return derived_id(native, by)
    return MISSING if of_results else native


def call_of(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The id of the call: its own, or a derived one where the file tells several with that id apart (decision 3)."""
    return call_id(case, cite, values[0], values[1] if values[1:] else MISSING)


def _is_made(case: Case, cite: Cite, native: str) -> bool:
    """Whether an id that no call has is, or may be, one made for a call without an id of its own."""
    if native.startswith("#"):
        return True
    cuts = (at for at, char in enumerate(native) if char == "#")
    scan, repeats = case.scan(cite), case.ledger.repeats.get(cite.source.entry.id, set())
    for at in cuts:
        twins = scan.twins(native[:at], repeats)
        mark = hash(native[at + 1 :]) or 1
        if {twin.by for twin in twins} & scan.answers(native[:at]) and sum(
            twin.by == mark for twin in twins
        ) == 1:
            return True
    return False


def linkage(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """How a result is linked to its call (ASR-262)."""
    native, by = values[0], values[1] if len(values) > 1 else MISSING
    if not isinstance(native, str):
        return "none"
    found = call_id(case, cite, native, by)
    return "ambiguous" if found is MISSING else "exact" if found == native else "derived"


def ambiguous_id(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """The native id of a result whose id stands on several calls."""
    return values[0] if linkage(case, cite, fact, values) != "exact" else MISSING


def id_source(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Whether the record's call id is the native one."""
    return "native" if case.record.get("callId") == values[0] else "derived"


def named_source(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Whether the id of the record's entity is the native one."""
    kind = TYPES.get(case.kind)
    key = kind.ENTITY_KEY if kind is not None else None
    return "native" if key is not None and case.record.get(key) == values[0] else "derived"


def derived_link(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Linked by a derived id if the call is there; else not at all."""
    return "none" if case.ledger.call_at(case.record.get("callId")) is None else "derived"


def link_to_call(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """Linked as by ``linkage``; derived where the call's own id is."""
    position = case.ledger.call_at(case.record.get("callId"))
    call = case.ledger.at(position) if position is not None else None
    derived = call is not None and call.get("callIdSource") == "derived"
    return "derived" if derived else linkage(case, cite, fact, values)


def item_call(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The native id of the call that another item made."""
    said, calls = case.record.get("parentCallId"), case.scan(cite).units.get("tool_call")
    if not isinstance(said, str) or not isinstance(values[0], str) or calls is None:
        return MISSING
    wanted = (hash(said) or 1, hash(values[0]) or 1)
    return said if wanted in zip(calls.ids, calls.links, strict=True) else MISSING


def known_call(case: Case, _cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """A call id that a native line names (in a tag, where the entry has one), if the stream has the call."""
    named = values[0] if fact.tag is None else tags(values[0]).get(fact.tag)
    return named if case.ledger.call_at(named) is not None else MISSING


# -- what came of it ----------------------------------------------------------------------------------------------


def _asked(case: Case, cite: Cite) -> Any:
    """The line as the status tables may see it: without what speaks of a single unit, where there are several."""
    single = case.registry.marks.single
    unit = unit_of(case, cite)
    if not single or unit is None or not isinstance(cite.root, dict):
        return cite.root
    if sum(1 for _ in found_units(unit, cite.root)) < 2:
        return cite.root
    return {name: value for name, value in cite.root.items() if f"/{name}" not in single}


def _first(case: Case, cite: Cite, rules: list[Rule]) -> Rule | None:
    part = cite.part if isinstance(cite.part, dict) else {}
    return first(rules, case.version(cite), _asked(case, cite), part)


def status(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The source's own outcome (ASR-258); where another frame records a refusal, an error or nothing is that."""
    rule = _first(case, cite, case.registry.status)
    found = (rule.then if rule else None) or "unknown"
    return "denied" if found in ("failed", "unknown") and is_refused(case) else found


def told_status(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The source's own outcome, by a tool's name, its error flag and its details, and the approval that is cited."""
    names, marks = ("toolName", "isError", "details"), case.registry.marks
    message = {name: value for name, value in zip(names, values, strict=False) if value is not MISSING}
    approvals = [
        follow(one.root, marks.approval)
        for one in case.role_cites("approval")
        if marks.approval and follow(one.root, marks.approval_call) == values[-1]
    ]
    root = {"message": message} | ({"approval": approvals[0]} if approvals else {})
    rule = first(case.registry.status, case.ledger.head.version, root)
    return (rule.then if rule else None) or "unknown"


def synthetic(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Whether the harness wrote this result itself (decision 12)."""
    rule = _first(case, cite, case.registry.status)
    return True if rule is not None and rule.synthetic else MISSING


def decision(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The decision that stands on a result."""
    rule = _first(case, cite, case.registry.decision)
    return MISSING if rule is None or rule.decision is None else rule.decision


def decided_by(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Who decided (ASR-270, 280)."""
    rule = _first(case, cite, case.registry.decision)
    decider = _first(case, cite, case.registry.decider)
    found = (rule.decidedBy if rule else None) or (decider.decidedBy if decider else None)
    return MISSING if found is None else found


def decided_rule(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The rule that decided, as the source names it."""
    decider = _first(case, cite, case.registry.decider)
    found = follow(cite.root, decider.rule) if decider is not None and decider.rule is not None else MISSING
    return found if isinstance(found, str) else MISSING


# -- events and entities ------------------------------------------------------------------------------------------


def hook(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The status that a native hook line stands for."""
    return next((row.status for row in case.registry.hook if row.type == values[0]), MISSING)


def hook_event(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """A hook's event: by the table, else as the source names it."""
    named = values[0]
    if not isinstance(named, str) or not named:
        return "unknown"
    return next((row.event for row in case.registry.hook_event if row.native == named), named)


def hook_call(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """A hook's call: its id, if the event is one whose id is a call's."""
    named, event = values
    calls = any(row.call and row.native == event for row in case.registry.hook_event)
    return named if calls and isinstance(named, str) else MISSING


def state(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """The state of a terminal or subagent."""
    rows = [row for row in case.registry.terminal_status if row.entity == case.kind]
    if fact.tag is not None:
        word = tags(values[0]).get(fact.tag)
        rows = [row for row in rows if row.tag == fact.tag]
        return MISSING if not word else next((row.then for row in rows if row.value == word), "unknown")
    asked = False
    for row in rows:
        if row.pointer is None:
            continue
        word = follow(cite.root, row.pointer)
        asked = asked or (word is not MISSING and row.value is not None)
        if word is not MISSING and row.value in (None, word):
            return row.then
    return "unknown" if asked else MISSING


def author(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Who wrote a message, by the ``[[line]]`` table."""
    text = cite.part if cite.pointer else cite.root
    if isinstance(text, dict):
        text = text.get("text")
    tag = wrapped_in(text)
    for name in line_names(case, cite):
        settled = False
        for rule in case.registry.line:
            applies = fnmatchcase(name, _glob(rule)) and (rule.also or not settled)
            if applies and (rule.tag is None or rule.tag == tag) and matches(rule.when, cite.root):
                if rule.becomes == "message" and rule.author is not None:
                    return rule.author
                settled = settled or not rule.also
        if settled:
            return MISSING
    return MISSING


def _glob(rule: LineRule) -> str:
    return rule.type.replace("[", "[[]").replace("?", "[?]")


def line_names(case: Case, cite: Cite) -> list[str]:
    """Names of a cited line in the ``[[line]]`` table, the most particular one first."""
    pointers = case.registry.marks.types
    words = [follow(cite.root, pointer) for pointer in pointers]
    base = str(words[0]) if words and isinstance(words[0], str) else "None"
    further = next((word for word in words[1:] if isinstance(word, str)), None)
    names = [f"{base}/{further}", base] if further is not None else [base]
    if isinstance(cite.part, dict) and cite.pointer and isinstance(cite.part.get("type"), str):
        names.insert(0, f"{base}#{cite.part['type']}")
    elif isinstance(cite.part, str):
        names.insert(0, f"{base}#string")
    return names


def inherited(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The session that a line was copied from (decision 13): as the line says, or a later line of the copied part."""
    fork, session = follow(cite.root, case.registry.marks.fork), follow(cite.root, "/sessionId")
    own = {case.ledger.head.native_id, *_names(cite)}
    for value in (fork, session):
        if (
            isinstance(value, str)
            and value
            and (value not in own or (value is session and value not in _names(cite)))
        ):
            return value
    named = [name for name, line in case.scan(cite).forks.items() if line >= cite.line and name not in own]
    said = _said(case, "native", "inherited", "session")
    return said if isinstance(said, str) and said in named else MISSING


def forked(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The session that some lines were copied from."""
    said = case.record.get("forkedFrom")
    return said if isinstance(said, str) and said in case.scan(cite).forks else MISSING


def in_path(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The session id in the path of a file."""
    said = case.record.get("nativeSessionId")
    return said if isinstance(said, str) and said in _names(cite) else MISSING


def agent_file(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The agent id in the name of an agent's file; a number after it tells files of one name apart."""
    name = PurePath(cite.source.entry.path.replace("\\", "/")).name
    own = name.removesuffix(".meta.json").removesuffix(".jsonl").removeprefix("agent-")
    said = case.record.get("agentId")
    return said if isinstance(said, str) and re.fullmatch(re.escape(own[:56]) + r"-\d+", said) else own


def _names(cite: Cite) -> set[str]:
    """The names in a source's path: its folders, and its own without the suffix (``.jsonl.zst`` and its like, too)."""
    path = PurePath(cite.source.entry.path.replace("\\", "/"))
    return {*path.parts[:-1], path.name.partition(".jsonl")[0], path.stem}


def _said(case: Case, *names: str) -> Any:
    value: Any = case.record
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# -- questions and plans ------------------------------------------------------------------------------------------


def answers(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Answers keyed by the question's text: an option's label is selected, anything else is a text (decision 19)."""
    given = values[0]
    questions = case.record.get("questions")
    if not isinstance(given, dict) or not isinstance(questions, list):
        return MISSING
    questions = [one for one in questions if isinstance(one, dict)]
    texts = [one.get("text") for one in questions]
    found = []
    for question in questions:
        value = given.get(str(question.get("text")))
        if not isinstance(value, str) or texts.count(question.get("text")) > 1:
            continue
        options = question.get("options")
        labels = (
            [one.get("label") for one in options if isinstance(one, dict)]
            if isinstance(options, list)
            else []
        )
        chosen = value in labels and not (question.get("multiSelect") is True and ", " in value)
        found.append(
            {"questionId": question.get("id")} | ({"selected": [value]} if chosen else {"text": value})
        )
    return found or MISSING


def task_id(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The plan of one task of a list."""
    return f"task {values[0]}"


TABLES: dict[str, Table] = {
    "tool": kind,
    "item": item_kind,
    "provider": provider,
    "call_id": call_of,
    "linkage": linkage,
    "ambiguous_id": ambiguous_id,
    "id_source": id_source,
    "named_source": named_source,
    "derived_link": derived_link,
    "link_to_call": link_to_call,
    "item_call": item_call,
    "known_call": known_call,
    "status": status,
    "told_status": told_status,
    "synthetic": synthetic,
    "decision": decision,
    "decided_by": decided_by,
    "rule": decided_rule,
    "hook": hook,
    "hook_event": hook_event,
    "hook_call": hook_call,
    "state": state,
    "author": author,
    "inherited": inherited,
    "forked": forked,
    "in_path": in_path,
    "agent_file": agent_file,
    "answers": answers,
    "task_id": task_id,
    "own_text": own_text,
    "own_input": own_input,
    "offers": offers,
    "host_decision": host_decision,
    "host_choice": host_choice,
    "secret_form": secret_form,
    "task_state": task_state,
    "sole_window": sole_window,
    "still_open": still_open,
    **SHAPES,
    **TREES,
    **FILES,
    **CHATS,
    **FRAMES,
    **UPSERTS,
    **PROTOCOL,
}
"""Table names that a fact may give."""


def grounds(case: Case, cite: Cite, fact: Fact) -> list[str]:
    """The pointers that decided, where an entry reads more of a line than one place: of a table's row, or its own."""
    rules = {
        "status": [case.registry.status],
        "synthetic": [case.registry.status],
        "decision": [case.registry.decision],
        "decided_by": [case.registry.decider],
        "rule": [case.registry.decider],
    }
    found = [_first(case, cite, one) for one in rules.get(fact.table or "", [])]
    named = [pointer for rule in found if rule is not None for pointer in rule.when]
    if fact.table == "author":
        named = [
            pointer for pointer in case.registry.marks.types if follow(cite.root, pointer) is not MISSING
        ]
    if fact.table == "state" and fact.tag is None:
        rows = [
            row.pointer for row in case.registry.terminal_status if row.entity == case.kind and row.pointer
        ]
        named = [pointer for pointer in dict.fromkeys(rows) if follow(cite.root, pointer) is not MISSING]
    return named or list(fact.when)
