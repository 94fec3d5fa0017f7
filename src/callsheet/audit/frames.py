"""``via = "table"``: facts about frames of a live connection, which depend on the frames before them.

Owns one pass over a frame log: calls by thread and id, requests by thread and id with the digest of their parameters,
and the lines that hold pieces of a call's output. A recording is written while it grows, so a record is held against
the frames up to the last one that it cites, and not against those that came later.

Must never know: importers.
"""

from __future__ import annotations

import json
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.cite import MEMBER, Cite
from callsheet.audit.jsonrpc import Id, id_of
from callsheet.audit.sources import Source
from callsheet.audit.torn import values_on
from callsheet.records.bundle import stream_id
from callsheet.registry.facts import Fact
from callsheet.registry.when import MISSING, Conditions, follow
from callsheet.wire.blobs import digest
from callsheet.wire.lines import split_lines

ITEM = "/frame/params/item"
ITEMS = frozenset({"item/started", "item/completed"})
RAW = "rawResponseItem/completed"
CALLS = frozenset(
    {
        *("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"),
        "image_generation_call",
    }
)


ACTIONS = ("accept", "decline", "cancel")
"""What a client may say to a form."""
SERVER = ("agent_to_client", "agent", "server", "recv", "out")
"""Spellings of ``dir`` for what the server sent."""


class FrameLog:
    """What a frame log says of calls, requests and pieces.

    Attributes:
        asked: (thread, call id) to the lines of raw items that are this call.
        begun: The same of items that start.
        ended: The same of items that end.
        requests: (thread, words of a request's id) to (line, that id and the digest of the parameters).
        pieces: (thread, call id) to (line, bytes) of each delta of its output.
    """

    def __init__(self, source: Source, executions: frozenset[str], whole: list[Conditions]) -> None:
        self.asked: dict[tuple[str, str], list[int]] = {}
        self.begun: dict[tuple[str, str], list[int]] = {}
        self.ended: dict[tuple[str, str], list[int]] = {}
        self.requests: dict[tuple[str, str], list[tuple[int, tuple[Id, str]]]] = {}
        self.pieces: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._executions = executions
        for line in split_lines(source.chunks()):
            for standing in values_on(line.data, whole):
                self._take(line.number, standing.value)

    def _take(self, line: int, root: Any) -> None:
        method, params = follow(root, "/frame/method"), follow(root, "/frame/params")
        thread = follow(params, "/threadId")
        if not isinstance(method, str) or not isinstance(thread, str) or follow(root, "/dir") not in SERVER:
            return
        asked = id_of(follow(root, "/frame/id"))
        if asked is not None:
            told = digest(json.dumps(params, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
            self.requests.setdefault((thread, asked.text), []).append((line, (asked, told)))
        item = follow(params, "/item")
        kind = follow(item, "/type")
        if method in ITEMS and isinstance(kind, str) and kind in self._executions:
            name = follow(item, "/id")
            kept = self.begun if method == "item/started" else self.ended
            if isinstance(name, str):
                kept.setdefault((thread, name), []).append(line)
        elif method == RAW and isinstance(kind, str) and kind in CALLS:
            name = follow(item, "/call_id")
            name = name if isinstance(name, str) else follow(item, "/id")
            if isinstance(name, str):
                self.asked.setdefault((thread, name), []).append(line)
        elif method == "item/commandExecution/outputDelta":
            name, delta = follow(params, "/itemId"), follow(params, "/delta")
            if isinstance(name, str) and isinstance(delta, str):
                size = len(delta.encode("utf-8", "replace"))
                self.pieces.setdefault((thread, name), []).append((line, size))

    def calls(self, thread: str, name: str, last: int) -> int:
        """How many calls have an id, as far as frames up to a line say."""
        asked, begun, ended = (
            [line for line in lines.get((thread, name), ()) if line <= last]
            for lines in (self.asked, self.begun, self.ended)
        )
        # An end without a beginning is a call; what begins later with its id is another one.
        alone = bool(ended) and ended[0] < min([*asked, *begun], default=last + 1)
        return max(len(asked), len(begun) + (alone and (not asked or (bool(begun) and begun[0] < asked[0]))))


def _log(case: Case, cite: Cite) -> FrameLog:
    logs = case.reading.frames
    name = cite.source.entry.id
    if name not in logs:
        executions = frozenset(row.type for row in case.registry.item if row.execution)
        logs[name] = FrameLog(cite.source, executions, case.registry.marks.whole)
    found = logs[name]
    assert isinstance(found, FrameLog)
    return found


def _several(case: Case, cite: Cite, name: Any) -> bool:
    """Whether several calls have an id by the last frame that the record cites."""
    thread = follow(cite.root, "/frame/params/threadId")
    if not isinstance(name, str) or not isinstance(thread, str):
        return False
    # A reply shows that an output was sent, and a question that it is secret: a call that begins after that is later.
    beside = ("reply", "request") if case.kind == "tool_result" else ()
    last = max((one.line for one in case.cites if one.role not in beside), default=0)
    return _log(case, cite).calls(thread, name, last) > 1


def frame_call(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """A call id that one call has, or had when the entity was first told."""
    name = values[0]
    if isinstance(name, str) and case.before is not None and case.before.get("callId") == name:
        return name
    return MISSING if not isinstance(name, str) or _several(case, cite, name) else name


def frame_shared(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """A call id that several calls have."""
    return values[0] if _several(case, cite, values[0]) else MISSING


def frame_linkage(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """How a result is linked to its call (ASR-262)."""
    if not isinstance(values[0], str):
        return MISSING
    return "ambiguous" if _several(case, cite, values[0]) else "exact"


def _key(case: Case, cite: Cite) -> str | None:
    name = id_of(follow(cite.root, "/frame/id"))
    thread = follow(cite.root, "/frame/params/threadId")
    if name is None or not isinstance(thread, str):
        return None
    seen: list[tuple[Id, str]] = []
    for line, told in _log(case, cite).requests.get((thread, name.text), ()):
        if told not in seen:
            seen.append(told)
        if line == cite.line:
            place = seen.index(told) + 1
            return name.text if place == 1 else f"{name.text}#{place}"
    return None


def request_key(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The id of a request: as text; with a number where it came before with other parameters."""
    key = _key(case, cite)
    return MISSING if key is None else key


def request_source(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Whether that id is the frame's own."""
    key = _key(case, cite)
    name = id_of(follow(cite.root, "/frame/id"))
    return MISSING if key is None or name is None else "native" if key == name.text else "derived"


def frame_type(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The type of a line: the frame's method with the item's type, ``response``, or who wrote a line without one."""
    method = follow(cite.root, "/frame/method")
    if isinstance(method, str):
        item = follow(cite.root, f"{ITEM}/type")
        named = f"{method}/{item}" if isinstance(item, str) and item else method
        again = f"{named} (again)"
        return again if case.record.get("nativeType") == again else named
    number = follow(cite.root, "/frame/id")
    answered = any(follow(cite.root, f"/frame/{name}") is not MISSING for name in ("result", "error"))
    if answered and id_of(number) is not None:
        return "response"
    way = follow(cite.root, "/dir")
    return way if isinstance(way, str) and way else MISSING


def pieces(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The pieces of output that the record cites, one after the other."""
    told = [follow(one.part, "/delta") for one in case.role_cites(MEMBER)]
    return "".join(told) if told and all(isinstance(one, str) for one in told) else MISSING


def pieces_before(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Bytes of the pieces of this call's output that stand before those that the record cites."""
    cited = [one.line for one in case.role_cites(MEMBER)]
    thread, name = (follow(cite.part, f"/{member}") for member in ("threadId", "itemId"))
    if not cited or not isinstance(thread, str) or not isinstance(name, str):
        return MISSING
    told = _log(case, cite).pieces.get((thread, name), ())
    return sum(size for line, size in told if line < min(cited))


def hook_run_call(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The call of a hook's run, for events that are about one: what stands behind the hook's file in the run's id."""
    event, place = follow(cite.part, "/eventName"), follow(cite.part, "/sourcePath")
    about = any(row.call and row.native == event for row in case.registry.hook_event)
    if not about or not isinstance(values[0], str) or not isinstance(place, str):
        return MISSING
    return values[0].partition(f":{place}:")[2] or MISSING


SECRET_MARKS = ("isSecret", "is_secret", "secret")


def _marked(meta: Any) -> bool:
    vendors = meta.values() if isinstance(meta, dict) else ()
    return any(follow(vendor, f"/{name}") is True for vendor in vendors for name in SECRET_MARKS)


def _secret_fields(params: Any) -> tuple[bool, list[str], list[str]]:
    """Whether a form is secret as a whole, its fields, and those of them that are."""
    properties = follow(params, "/requestedSchema/properties")
    fields = properties if isinstance(properties, dict) else {}
    secret = [
        name
        for name, told in fields.items()
        if follow(told, "/format") == "password"
        or follow(told, "/writeOnly") is True
        or _marked(follow(told, "/_meta"))
    ]
    return _marked(follow(params, "/_meta")), list(fields), secret


def form_secret(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """``true`` for a form that is secret as a whole."""
    whole, fields, secret = _secret_fields(cite.part)
    return "true" if whole or (secret and secret == fields) else MISSING


def form_redacted(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """That something of a form's answer is not kept."""
    whole, _, secret = _secret_fields(cite.part)
    return "redacted" if whole or secret else MISSING


def form_response(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The answer to a form, without its secret fields."""
    requests = case.role_cites("request")
    _, _, secret = _secret_fields(requests[0].part) if requests else (False, [], [])
    given = values[0]
    return (
        {name: one for name, one in given.items() if name not in secret}
        if isinstance(given, dict)
        else MISSING
    )


def given_answers(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """What a client says with the answers to questions: none at all is a refusal."""
    return ("answered" if values[0] else "declined") if isinstance(values[0], dict) else MISSING


def still_open(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """``pending``, until an answer says something."""
    for one in case.role_cites("decision"):
        if isinstance(follow(one.part, "/answers"), dict) or follow(one.part, "/action") in ACTIONS:
            return MISSING
    return "pending"


def agent_call(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The call that an agent is told with; the one that it was first told with stays."""
    before = case.before.get("callId") if case.before is not None else None
    named = before if before is not None else values[0]
    return named if case.ledger.call_at(named) is not None else MISSING


def started_by(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The stream of the thread that started this one; the second value names this one, or all that it started."""
    above, named = values
    started = named if isinstance(named, list) else [named]
    own = case.record.get("nativeSessionId")
    return stream_id(above) if isinstance(above, str) and own is not None and own in started else MISSING


FRAMES = {
    "app_open": still_open,
    "app_agent_call": agent_call,
    "app_form_secret": form_secret,
    "app_form_redacted": form_redacted,
    "app_form_response": form_response,
    "app_answers": given_answers,
    "app_parent": started_by,
    "app_hook_call": hook_run_call,
    "app_call": frame_call,
    "app_shared": frame_shared,
    "app_linkage": frame_linkage,
    "app_type": frame_type,
    "app_request": request_key,
    "app_request_source": request_source,
    "app_pieces": pieces,
    "app_pieces_before": pieces_before,
}
"""Table names that a fact may give, beside those of ``tables``."""
