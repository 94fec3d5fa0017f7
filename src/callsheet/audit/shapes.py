"""``via = "table"``: members that are made of whole native shapes, not of single values.

Owns: answers that stand under the ids of questions, states of agents, who wrote the parts of a message, ids that are
places. Each function reads the native value anew and answers with the whole member. Changed files: ``changes``.

Must never know: importers, which harness it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.changes import changes, diff, files_by_kind, moved, patch_text
from callsheet.audit.cite import Cite
from callsheet.audit.values import lead, text_pairs
from callsheet.registry import first
from callsheet.registry.facts import Fact
from callsheet.registry.via import json_text
from callsheet.registry.when import MISSING, follow
from callsheet.wire.blobs import digest

_HEAD = 1 << 16
_LOG = re.compile("log-[0-9a-f]{16}")
_TAG = re.compile(r"\s*<([A-Za-z][A-Za-z_-]{0,40})>")
_REPLY = re.compile(r"<([a-z_]+)>\s*(\[.*\])\s*</\1>", re.DOTALL)


# -- places ------------------------------------------------------------------------------------------------------


def place_id(_case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """An id made of the place of a native unit that has none; with ``#`` the index behind it."""
    return f"#{cite.source.entry.id}.{cite.line}" + "".join(f"/{one}" for one in values if type(one) is int)


def record_here(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """A record that is made of the line at hand."""
    said = case.record.get("answerRef")
    name = said.get("record") if isinstance(said, dict) else None
    position = case.ledger.position_of(name) if isinstance(name, str) else None
    other = case.ledger.at(position) if position is not None else None
    refs = (
        other["native"].get("refs", []) if other is not None and isinstance(other.get("native"), dict) else []
    )
    here = any(
        isinstance(ref, dict) and (ref.get("source"), ref.get("line")) == (cite.source.entry.id, cite.line)
        for ref in refs
    )
    return name if here else MISSING


# -- items whose ids begin again in every run --------------------------------------------------------------------


def _item(case: Case, cite: Cite) -> tuple[str, int, bool] | None:
    """The first id that an item is written with, the run that it stands in, and whether it is that run's only start."""
    item = "/" + cite.pointer.lstrip("/").partition("/")[0]
    written = [value for name, value in text_pairs(cite.data, item) if name == "id"]
    if not written or not isinstance(written[0], str) or not case.registry.marks.run:
        return None
    scan = case.scan(cite)
    run = max(scan.run_of(cite.line) - 1, 0)
    return written[0], run, scan.starts_in(written[0], run) <= 1


def item_id(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The call id of an item: its own in the first run, a derived one in later runs."""
    found = _item(case, cite)
    if found is None or (case.kind != "tool_call" and not found[2]):
        return MISSING
    name, run, _ = found
    return name if run == 0 else f"{name}#{run + 1}"


def item_id_source(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Whether the call id of an item is its own."""
    found = _item(case, cite)
    return MISSING if found is None else "native" if found[1] == 0 else "derived"


def item_native_id(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The id that an item is written with, where its call has another one or none."""
    found = _item(case, cite)
    return MISSING if found is None or (found[1] == 0 and found[2]) else found[0]


def item_linkage(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """How the end of an item is linked to its start (ASR-262)."""
    found = _item(case, cite)
    if found is None:
        return MISSING
    return "ambiguous" if not found[2] else "exact" if found[1] == 0 else "derived"


# -- outcomes ----------------------------------------------------------------------------------------------------


def execution_status(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The source's own outcome: of the line that tells how the call was executed, where the record cites one."""
    told = [one for one in case.cites if one.role in ("item", "end")] or [cite]
    part = told[0].part if isinstance(told[0].part, dict) else {}
    rule = first(case.registry.status, case.version(told[0]), told[0].root, part)
    return (rule.then if rule else None) or "unknown"


def cut(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Whether the source cut an output before it stored it: it holds the source's mark, and has the length."""
    marks = case.registry.marks
    text = follow(cite.part, "/aggregated_output")
    if not marks.cut or not isinstance(text, str):
        return MISSING
    whole = len(text.encode("utf-8", "replace")) == marks.cut_bytes and marks.cut in text
    return "truncated" if whole else MISSING


def word(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """A word, also where it is the only member of an object."""
    value = values[0]
    if isinstance(value, dict):
        return next(iter(value), MISSING)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else MISSING


def flag(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """``true`` for true, for an entry's ``words``; nothing for anything else."""
    return "true" if values[0] is True else MISSING


def agent_state(case: Case, _cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """The state of an agent, by the words of one source; in an object by agent ids, that agent's."""
    value = values[0]
    agent = case.record.get("agentId")
    if isinstance(value, dict) and isinstance(agent, str) and agent in value:
        value = value[agent]
    if isinstance(value, dict):
        value = value["status"] if isinstance(value.get("status"), str) else next(iter(value), MISSING)
    rows = [
        row for row in case.registry.terminal_status if row.entity == case.kind and row.source == fact.tag
    ]
    found = next((row.then for row in rows if row.value == value), "unknown")
    if found == "unknown" and case.before is not None:
        return case.before.get("status", found)  # a word that says nothing changes nothing
    return found


# -- sessions and threads ----------------------------------------------------------------------------------------


def named_session(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """A session that some first line of the stream's sources names, other than the stream's own."""
    said: Any = case.record
    for name in ("native", "inherited", "session"):
        said = said.get(name) if isinstance(said, dict) else None
    if not isinstance(said, str) or said == case.ledger.head.native_id:
        return MISSING
    return said if any(said in scan.sessions for scan in case.reading.scans.values()) else MISSING


def ids_listed(case: Case, _cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """Ids in all the rows that a record cites, each once, by every entry of this member that speaks of the row."""
    entries = [one for one in case.registry.fact if (one.record, one.member) == (fact.record, fact.member)]
    found: dict[str, None] = {}
    for cite in case.cites:
        for one in entries:
            if cite.role == one.role and case.applies(one, cite):
                named = [at.value for pointer in one.pointers for at in case.pointed(cite, pointer)]
                found.update(dict.fromkeys(value for value in named if isinstance(value, str) and value))
    return list(found) or MISSING


def in_name(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """A session id that is in the name of a file, or made of the first two lines of one that names none."""
    said = case.record.get(fact.member)
    name = PurePath(cite.source.entry.path.replace("\\", "/")).name
    lines = [one.strip() for one in cite.source.read(0, _HEAD).split(b"\n") if one.strip()][:2]
    made = "log-" + digest(b"\n".join(lines))[:16]
    if not isinstance(said, str):
        return MISSING
    masked = cite.source.masked and _LOG.fullmatch(said) is not None  # it was made of what the lines hide
    return said if said in name or said == made or masked else MISSING


def agent_name(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """What the first line of an agent's file says that it is."""
    agent = follow(cite.root, "/payload/source/subagent")
    spawn = follow(agent, "/thread_spawn")
    for name in ("agent_path", "agent_nickname", "agent_role"):
        value = follow(spawn, f"/{name}")
        if isinstance(value, str) and value:
            return value
    if isinstance(agent, dict):
        other = agent.get("other")
        return other if isinstance(other, str) and other else next(iter(agent), "agent")
    return agent if isinstance(agent, str) and agent else "agent"


def line_type(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The types that a line names, joined; with ``reverted/`` before, of a line that the thread does not go through."""
    marks = case.registry.marks
    words: list[str] = []
    for pointer in marks.types:
        found = follow(cite.root, pointer)
        if found is not MISSING and found is not None and not isinstance(found, str):
            break  # what stands inside something of no type has none either
        words += [found] if isinstance(found, str) and found else []
    named = "/".join(words)
    if not named:
        state = follow(cite.root, "/record_type")
        named = f"record_type={state}" if isinstance(state, str) else "msg" if "msg" in _members(cite) else ""
    elif follow(cite.root, marks.types[0]) is MISSING and "msg" in _members(cite):
        named = f"msg/{named}"
    said = case.record.get("nativeType")
    if isinstance(said, str) and said.startswith("reverted/") and is_dead(case, cite):
        return f"reverted/{named}"
    return named or MISSING


def _members(cite: Cite) -> Any:
    return cite.root if isinstance(cite.root, dict) else {}


def is_dead(case: Case, cite: Cite) -> bool:
    """Whether another source of the stream says that the thread left this one before the line at hand."""
    marks = case.registry.marks
    ordinal = follow(cite.root, marks.ordinal) if marks.ordinal else MISSING
    if type(ordinal) is not int:
        return False
    others = [
        one for name in case.ledger.head.sources or () if (one := case.reading.sources.get(name)) is not None
    ]
    return any(
        thread == case.ledger.head.native_id and ordinal >= end
        for other in others
        if other.entry.id != cite.source.entry.id
        for thread, end in case.reading.scan(other).bases
    )


# -- who wrote a message -----------------------------------------------------------------------------------------


def told_author(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Who wrote a message: by the kinds of its parts, by what the person typed as events tell, by role and tag."""
    places = (follow(cite.root, pointer) for pointer in ("/payload", "/frame/params/item"))
    root = next((one for one in places if isinstance(one, dict)), cite.root)
    rows = {row.tag or row.type: row.author for row in case.registry.line if row.becomes == "message"}
    role = follow(root, "/role")
    if follow(root, "/type") == "agent_message":
        return "harness"
    by_role = rows.get(f"message#{role}") or (role if isinstance(role, str) and role else "harness")
    content = follow(root, "/content")
    parts = content if isinstance(content, list) else [content]
    kinds = follow(root, "/internal_chat_message_metadata_passthrough/content_item_kinds")
    if isinstance(kinds, list) and len(kinds) == len(parts):
        step = cite.pointer.rsplit("/", 1)[-1]
        kind = kinds[int(step) if step.isascii() and step.isdigit() else 0]
        found = rows.get(f"content/{kind.partition('.')[0]}", "harness") if isinstance(kind, str) else "role"
        return by_role if found == "role" else found
    if role != "user":
        return by_role
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    told = [text for text in texts if isinstance(text, str)]
    scan = case.scan(cite)
    if scan.tells_typed:
        return "user" if scan.typed("".join(told)) or any(scan.typed(text) for text in told) else "harness"
    start = told[0] if told else ""
    tag = _TAG.match(start)
    name = (
        "INSTRUCTIONS" if start.startswith("# AGENTS.md instructions for ") else tag.group(1) if tag else ""
    )
    return rows.get(name, "user") if name and f"</{name}>" in start else rows.get("message#user", "user")


# -- questions ---------------------------------------------------------------------------------------------------


def _questions(case: Case) -> list[dict[str, Any]]:
    listed = case.record.get("questions")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _options(question: dict[str, Any]) -> list[dict[str, Any]]:
    listed = question.get("options")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _answer(question: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """Options that were offered are selected; anything else was typed."""
    labels = [one.get("label") for one in _options(question)]
    chosen = [one for one in words if one in labels or one == "None of the above"]
    typed = [one for one in words if one not in chosen]
    made: dict[str, Any] = {"questionId": question.get("id")}
    if chosen:
        made["selected"] = chosen
    if typed:
        made["text"] = "\n".join(typed)
    return made


def answers_by_id(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Answers that stand under the ids of their questions; those to secret questions are left out."""
    given = values[0]
    found = []
    for question in _questions(case):
        words = lead(given, f"/{question.get('id')}/answers") if isinstance(given, dict) else MISSING
        if isinstance(words, list) and question.get("secret") is not True:
            found.append(_answer(question, [one for one in words if isinstance(one, str)]))
    return found or MISSING


def named_text(_case: Case, _cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """The text in a member (``tag``) of an object; an empty one where it holds no text."""
    found = values[0].get(fact.tag) if isinstance(values[0], dict) else None
    return found if isinstance(found, str) else ""


def answers_listed(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Answers as lists under the ids of their questions: offered options are selected, each other text was typed."""
    given = values[0] if isinstance(values[0], dict) else {}
    found: list[dict[str, Any]] = []
    for question in _questions(case):
        said = given.get(str(question.get("id")))
        words = [one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)]
        if not words or question.get("secret") is True:
            continue
        offered = [(one.get("label"), one.get("value", one.get("label"))) for one in _options(question)]
        labels = {label: value for label, value in offered if isinstance(label, str)}
        labels |= {value: value for _, value in offered if isinstance(value, str)}
        chosen = [labels[one] for one in words if one in labels]
        typed = [one for one in words if one not in labels]
        first: dict[str, Any] = {"questionId": question.get("id")}
        first |= ({"selected": chosen} if chosen else {}) | ({"text": typed[0]} if typed else {})
        found += [first, *({"questionId": question.get("id"), "text": one} for one in typed[1:])]
    return found or MISSING


def replies(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Answers in a message whose tag names the call and the number of the question; earlier ones stay."""
    before = case.before.get("answers") if case.before is not None else None
    found = (
        {str(one.get("questionId")): one for one in before if isinstance(one, dict)}
        if isinstance(before, list)
        else {}
    )
    questions = _questions(case)
    for item in _reply_items(cite.part):
        named = json_text(item.get("questionItemId"))
        if not (isinstance(named, list) and len(named) == 3 and named[1] == case.record.get("requestId")):
            continue
        answer, index = item.get("answer"), named[2]
        if type(index) is int and 0 <= index < len(questions) and isinstance(answer, str):
            question = questions[index]
            if question.get("secret") is not True:
                found.pop(str(question.get("id")), None)
                found[str(question.get("id"))] = _answer(question, [answer])
    return list(found.values()) or MISSING


def _reply_items(content: Any) -> Iterator[dict[str, Any]]:
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        tagged = _REPLY.search(text) if isinstance(text, str) else None
        items = json_text(tagged.group(2)) if tagged is not None else MISSING
        yield from (item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


SHAPES = {
    "place_id": place_id,
    "record_here": record_here,
    "item_id": item_id,
    "item_id_source": item_id_source,
    "item_native_id": item_native_id,
    "item_linkage": item_linkage,
    "execution_status": execution_status,
    "cut": cut,
    "word": word,
    "flag": flag,
    "agent_state": agent_state,
    "named_session": named_session,
    "in_name": in_name,
    "agent_name": agent_name,
    "ids_listed": ids_listed,
    "line_type": line_type,
    "told_author": told_author,
    "answers_by_id": answers_by_id,
    "answers_listed": answers_listed,
    "replies": replies,
    "changes": changes,
    "diff": diff,
    "moved": moved,
    "files_by_kind": files_by_kind,
    "named_text": named_text,
    "patch_text": patch_text,
}
"""Table names that a fact may give, beside those of ``tables``."""
