"""What one reading says of a call: every fact under a path, in a form that does not depend on the source.

Owns the paths (``call.name``, ``result.exec.exitCode``, ``decision.decidedBy``, ``changes./a/b.patch``), and the one
form of a value that sources write in several: paths are absolute, texts in parts are one text, a decision is one
whether it stands on a request or on the result. What depends on the recording alone (record ids, places, times of
receipt, how a result was linked) is no fact of the call.

Must never know: the other reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from callsheet.compare.side import Call, Json, Side, words_of
from callsheet.records import FileChange, Hook, InputRequest, Permission, Plan, Subagent, Terminal
from callsheet.wire.lossless import NotJson, decode, without_lone_surrogates

Shape = Literal["", "time", "duration", "count", "patch", "item", "loose", "sent", "command"]
"""How two values are held against each other, where not by equality.

``item``: the reading takes it from an item that tells how the call was executed, not what the model wrote: the
arguments of a call whose tool is not named, or whose agent words them by itself, and a name that is only the tool's on
its server. ``loose``: both may be true though they differ, for each is the word of another table or screen: kinds, and
what was shown. ``sent``: where a reminder was glued to a result, nobody can tell whose the blanks between them are.
``command``: it may be told with the shell that ran it, or without.
"""
CUT = frozenset({"truncated", "redacted"})
OPEN = frozenset({"unknown", "running", "pending", "proposed"})
"""Words that say that the source does not know, or did not know yet."""
_STATES = frozenset({"status", "state", "kind", "identity"})
"""Members whose value may be such a word."""
_SHORT = 200
DEEPEST = 4
"""Levels of native JSON that are compared member by member."""


class Told(NamedTuple):
    """One fact, as a reading tells it.

    Attributes:
        value: In the form in which it is compared.
        shape: How it is compared.
        cut: The reading has not the whole of it.
    """

    value: Any
    shape: Shape = ""
    cut: bool = False

    @property
    def shown(self) -> Any:
        """The value for people and JSON, shortened."""
        value = self.value
        if not isinstance(value, str | int | float | bool | None):
            try:
                value = json.dumps(value, ensure_ascii=False, default=str)
            except RecursionError:
                value = "(nested too deeply to be shown)"
        if isinstance(value, str):
            value = without_lone_surrogates(value)
        return value if not isinstance(value, str) or len(value) <= _SHORT else value[:_SHORT] + "…"


Facts = dict[str, Told]


def facts_of(side: Side, call: Call) -> Facts:
    """Every fact that a reading has of a call, without what it says it does not know."""
    pairing = side.pairing(call.stream)
    record = side.record(call.stream, pairing.latest(call.number))
    answer = pairing.result(call.call_id)
    result = {} if answer is None else side.record(call.stream, answer)
    found: Facts = {}
    for path, told in (
        *_call(side, call, record, result),
        *_result(side, call, result),
        *_decision(side, call, result),
        *_questions(side, call),
        *_changes(side, call),
        *_others(side, call),
    ):
        if told.value is None or (
            path.rpartition(".")[2] in _STATES and isinstance(told.value, str) and told.value in OPEN
        ):
            continue
        found[path] = told
    return found


Stated = Iterator[tuple[str, Told]]


def _plain(record: Json, prefix: str, members: tuple[str, ...], cut: Json | None = None) -> Stated:
    for member in members:
        if member in record:
            yield f"{prefix}.{member}", Told(record[member], cut=_is_cut(cut or {}, member))


def _is_cut(record: Json, member: str) -> bool:
    state = _capture(record, member).get("state")
    return isinstance(state, str) and state in CUT


def _capture(record: Json, member: str) -> Json:
    states = record.get("capture")
    state = states.get(member) if isinstance(states, dict) else None
    return state if isinstance(state, dict) else {}


# -- call and result ----------------------------------------------------------------------------------------------


def _call(side: Side, call: Call, record: Json, result: Json) -> Stated:
    # A call's provider is its own, else that of its result (ASR-276).
    provider = record.get("provider", result.get("provider"))
    provider = provider if isinstance(provider, dict) else {}
    if "name" in record:
        by_item = provider.get("identity") == "exact" and record["name"] == provider.get("tool")
        yield "call.name", Told(record["name"], "item" if by_item else "")
    if "kind" in record:
        yield "call.kind", Told(record["kind"], "loose")
    yield from _plain(record, "call", ("title", "requestedBy"))
    yield from _plain(provider, "call.provider", ("kind", "server", "tool", "name", "identity"))
    if "input" in record:
        own = "name" in record and not side.rewrites(call.stream)
        yield "call.input", Told(record["input"], "" if own else "item")
    elif isinstance(record.get("inputText"), str):
        yield "call.input", Told(_value(record["inputText"]))
    if isinstance(record.get("parentCallId"), str):
        yield "call.parent", Told(side.native_id(record["parentCallId"]))
    places = record.get("locations")
    for place in places if isinstance(places, list) else ():
        path = side.path(call.stream, place)
        if path is not None:
            yield f"call.locations.{path}", Told(place.get("line", True))


def _result(side: Side, call: Call, result: Json) -> Stated:
    yield from _plain(result, "result", ("status",))
    for member, shape in _CONTENTS:
        if isinstance(result.get(member), list):
            yield f"result.{member}", Told(_parts(result[member]), shape, _is_cut(result, member))
    raw = result.get("raw")
    if raw is None and _capture(result, "raw"):
        raw = _stored_json(side, _capture(result, "raw"))
    for path, value in _members(raw, "result.raw", 0):
        yield path, Told(value, cut=_is_cut(result, "raw"))
    error = result.get("error")
    if isinstance(error, dict):
        yield from _plain(error, "result.error", ("message", "code"))
    for member in ("startedAt", "completedAt"):
        yield f"result.{member}", Told(result.get(member), "time")
    yield "result.durationMs", Told(result.get("durationMs"), "duration")
    yield from _process(side, call, result)


_CONTENTS: tuple[tuple[str, Shape], ...] = (("content", "sent"), ("displayContent", "loose"))


def _members(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The members of a native object, one by one: sources keep more or less of it, and null where there is nothing."""
    if isinstance(value, dict) and depth < DEEPEST:
        for name, inner in value.items():
            yield from _members(inner, f"{path}.{name}", depth + 1)
    elif value is not None:
        yield path, value


def _process(side: Side, call: Call, result: Json) -> Stated:
    ran = result.get("exec")
    if not isinstance(ran, dict):
        return
    yield from _plain(ran, "result.exec", ("exitCode", "signal", "timedOut", "processId"))
    if "command" in ran:
        yield "result.exec.command", Told(words_of(ran["command"]), "command")
    if "cwd" in ran:
        yield "result.exec.cwd", Told(side.path(call.stream, ran["cwd"]))
    for member in ("stdout", "stderr", "output"):
        name = f"exec.{member}"
        text = ran.get(member)
        if text is None or _capture(result, name).get("state") == "external":
            text = _stored_text(side, _capture(result, name), text)
        yield f"result.{name}", Told(text, cut=_is_cut(result, name))


def _stored_text(side: Side, capture: Json, text: Any) -> Any:
    data = side.bytes_of(capture.get("blob"))
    return text if data is None else data.decode("utf-8", "replace")


def _stored_json(side: Side, capture: Json) -> Any:
    data = side.bytes_of(capture.get("blob"))
    return None if data is None else _value(data.decode("utf-8", "replace"))


def _value(text: str) -> Any:
    """The value of a JSON text; any other text is its own."""
    try:
        return decode(text.encode("utf-8", "surrogatepass"))
    except NotJson:
        return text


def _parts(parts: list[Any]) -> Any:
    """Content parts with the texts that stand together as one."""
    found: list[Any] = []
    for part in parts:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if isinstance(text, str) and found and isinstance(found[-1], str):
            found[-1] += "\n" + text
        else:
            found.append(text if isinstance(text, str) else part)
    return found


# -- decisions and questions --------------------------------------------------------------------------------------


def _decision(side: Side, call: Call, result: Json) -> Stated:
    asked = list(side.linked(call, Permission))
    compact = result.get("permission")
    if not asked:
        if isinstance(compact, dict):
            yield from _plain(compact, "decision", ("decision", "decidedBy", "rule"))
        return
    for request in asked:
        yield from _plain(
            request,
            "decision",
            (
                "decision",
                "decidedBy",
                "decider",
                "rule",
                "rationale",
                "feedback",
                "selectedOptionId",
                "reviews",
            ),
        )
        yield "decision.decidedAt", Told(request.get("decidedAt"), "time")
        yield from _plain(request, "request", ("title", "description", "status", "reason", "options"))


def _questions(side: Side, call: Call) -> Stated:
    for record in side.linked(call, InputRequest):
        yield from _plain(record, "question", ("mode", "message", "status", "blocking", "url", "response"))
        texts: dict[Any, Any] = {}
        questions = record.get("questions")
        for question in questions if isinstance(questions, list) else ():
            if isinstance(question, dict) and isinstance(question.get("text"), str):
                texts[question.get("id")] = question["text"]
                options = question.get("options")
                labels = [one.get("label") for one in options] if isinstance(options, list) else None
                yield f"question.{question['text']}.options", Told(labels)
        answers = record.get("answers")
        for answer in answers if isinstance(answers, list) else ():
            if isinstance(answer, dict):
                chosen = answer.get("selected", [])
                typed = [answer["text"]] if "text" in answer else []
                asked = texts.get(answer.get("questionId"), answer.get("questionId"))
                yield (
                    f"question.{asked}.answer",
                    Told([*(chosen if isinstance(chosen, list) else ()), *typed]),
                )


# -- what a call set in motion --------------------------------------------------------------------------------------


def _changes(side: Side, call: Call) -> Stated:
    for record in side.linked(call, FileChange):
        yield from _plain(record, "changes", ("state",))
        changes = record.get("changes")
        for change in changes if isinstance(changes, list) else ():
            path = side.path(call.stream, change.get("path")) if isinstance(change, dict) else None
            if path is not None:
                yield from _plain(change, f"changes.{path}", ("change",))
                patch = change.get("patch")
                if isinstance(patch, dict):
                    yield f"changes.{path}.patch", Told((patch.get("format"), patch.get("value")), "patch")
                if "oldPath" in change:
                    yield f"changes.{path}.oldPath", Told(side.path(call.stream, change["oldPath"]))


def _others(side: Side, call: Call) -> Stated:
    for record in side.linked(call, Subagent):
        yield from _plain(record, f"subagent.{record.get('agentId')}", ("name", "status"))
    for record in side.linked(call, Terminal):
        prefix = f"terminal.{record.get('terminalId')}"
        yield from _plain(record, prefix, ("status", "exitCode", "signal", "awaited", "description"))
        if "command" in record:
            yield f"{prefix}.command", Told(words_of(record["command"]), "command")
    for record in side.linked(call, Plan):
        yield "plan.entries", Told(record.get("entries"))
    hooks: dict[str, int] = {}
    for record in side.linked(call, Hook):
        hooks[str(record.get("event"))] = hooks.get(str(record.get("event")), 0) + 1
    for event, number in hooks.items():
        yield f"hook.{event}", Told(number, "count")


# -- two values -----------------------------------------------------------------------------------------------------

Verdict = Literal["same", "form", "left", "right", "contradicts"]
"""Alike; told in forms that cannot be held against each other; the left (right) one lacks of it; not both are true."""


def held(left: Told, right: Told) -> Verdict:
    """What comes of holding one reading's fact against the other's."""
    try:
        if left.value == right.value:
            return "same"
    except RecursionError:
        return "form"
    if left.cut != right.cut:
        return "left" if left.cut else "right"
    if left.cut:
        return "form"
    if left.shape == "count" and isinstance(left.value, int) and isinstance(right.value, int):
        return "left" if left.value < right.value else "right"
    if "item" in (left.shape, right.shape) or left.shape == "loose":
        return "form"
    if left.shape == "sent" and _without_ends(left.value) == _without_ends(right.value):
        return "form"
    if left.shape == "patch":
        return "form" if _is_other_patch(left.value, right.value) else "contradicts"
    if left.shape == "command" and (_in_shell(left.value, right.value) or _in_shell(right.value, left.value)):
        return "form"
    if left.shape == "duration" and _is_near(left.value, right.value):
        return "same"
    if left.shape == "time" and _is_near(_ms(left.value), _ms(right.value)):
        return "same"
    return "contradicts"


def _without_ends(parts: list[Any]) -> list[Any]:
    """Content parts without blanks at the ends of their texts."""
    return [part.strip() if isinstance(part, str) else part for part in parts]


def _is_other_patch(left: tuple[Any, Any], right: tuple[Any, Any]) -> bool:
    """Whether patches are of two formats, or one is the other with a remark behind it."""
    if left[0] != right[0]:
        return True
    short, long = sorted((str(left[1]), str(right[1])), key=len)
    return bool(short) and long.startswith(short)


def _in_shell(bare: list[Any], whole: list[Any]) -> bool:
    """Whether the second command is the first one, with the shell that ran it."""
    if len(whole) != 3 or not all(isinstance(word, str) for word in whole):
        return False
    return whole[1] in ("-c", "-lc") and words_of(whole[2]) == bare


def _is_near(one: Any, other: Any) -> bool:
    """Whether two numbers of milliseconds are one, rounded to whole ones or not."""
    numbers = all(isinstance(value, int | float | Decimal) for value in (one, other))
    return numbers and abs(float(one) - float(other)) <= 1


def _ms(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp() * 1000
    except ValueError:
        return None
