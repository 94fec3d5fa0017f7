"""``via = "table"``: members of what a logged protocol tells around its calls.

Owns: messages joined from chunks, prompts and whole messages; turns; requests and the answers to them; terminals, whose
output is what was shown before and the bytes of the frames since; what a result says of its terminal; names of
frames that nothing maps; frames that tell again what was said before. Each is worked out anew from the cited frames.

Must never know: importers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.cite import Cite
from callsheet.audit.finding import Json
from callsheet.audit.jsonrpc import frame_at, id_of, received
from callsheet.audit.upserts import TOLD, block_at, is_first
from callsheet.registry.facts import Fact
from callsheet.registry.via import base64
from callsheet.registry.when import MISSING, follow
from callsheet.wire.blobs import digest

FROM_FIRST = frozenset({"tool_call", "message", "reasoning"})
"""Types whose first record bears the time at which they began."""
OUTPUT_MOST = 8 << 20
"""Bytes of a terminal that a record keeps."""
INLINE_MOST = 1 << 16
ASKS = frozenset({"session/request_permission", "elicitation/create"})
"""Methods that ask a person something."""


# -- frames --------------------------------------------------------------------------------------------------------


def frame_time(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """When the last frame that tells of the record was received; of what is said or asked first, the first one."""
    beside = (
        {"link"} if case.kind == "terminal" else {*case.registry.marks.beside.get(case.kind, ())} - {TOLD}
    )
    told = [received(cite.root) for cite in case.cites if cite.role not in beside]
    first = case.kind in FROM_FIRST and "supersedes" not in case.record
    return (told[0] if first else told[-1]) if told else MISSING


def rpc_type(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """What a frame is that nothing maps: its method and kind of update, or what it answers."""
    root = cite.root
    found = frame_at(root, cite.pointer)
    method, name = (found[1].get("method"), id_of(found[1].get("id"))) if found else (None, None)
    if found is None or (not isinstance(method, str) and name is None):
        direct = isinstance(root, dict) and root.get("dir") is not None and "frame" not in root
        return "raw" if direct else "line"
    said = case.record.get("nativeType")
    frames = case.scan(cite).rpc
    if isinstance(method, str):
        kind = follow(found[1], "/params/update/sessionUpdate")
        named = method == "session/update" and isinstance(follow(found[1], "/params/sessionId"), str)
        made = (
            f"{method}/{kind if isinstance(kind, str) and kind else '?'}"
            if named and said != method
            else method
        )
        again = frames is not None and frames.replay_at(cite.line) is not MISSING
        return said if again and said == f"{made} (replay)" else made
    asked = frames.answered(cite.line, follow(root, "/dir"), name) if frames is not None and name else None
    told = follow(found[1], "/result")
    shapes = (
        ("protocolVersion", "initialize"),
        ("sessionId", "session/new"),
        ("stopReason", "session/prompt"),
    )
    alone = [f"{shape} response" for name, shape in shapes if isinstance(told, dict) and name in told]
    if said in ("response", *alone) or asked is None:
        return said if said in alone else "response"
    return f"{asked.method} response"


def replayed(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The session whose history a frame tells again, between a request to load it and the answer."""
    frames = case.scan(cite).rpc
    return MISSING if frames is None else frames.replay_at(cite.line)


# -- what is said --------------------------------------------------------------------------------------------------


def speaker(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Who says a piece of a message, by the ``[[line]]`` row of its update; a prompt is the person's."""
    kind = follow(cite.part, "/sessionUpdate")
    if kind is MISSING:
        return "user" if follow(cite.part, "/prompt") is not MISSING else MISSING
    if kind == "session_message":
        sender = follow(cite.part, "/senderSessionId")
        return "model" if isinstance(sender, str) and sender == case.ledger.head.native_id else "agent"
    rows = (row.author for row in case.registry.line if row.becomes == "message" and row.type == kind)
    return next((author for author in rows if author is not None), MISSING)


def spoken(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """A message of all its cited pieces: chunks are appended, a whole message replaces; texts side by side are one."""
    if not is_first(case, cite, fact):
        return MISSING
    return _joined([block_at(*piece) for piece in pieces_of(case, fact.role)])


def pieces_of(case: Case, role: str) -> list[tuple[Cite, str, Any]]:
    """The blocks of a message in pieces: the frame of each, where it stands there, and what it is."""
    found: list[tuple[Cite, str, Any]] = []
    for one in case.role_cites(role):
        part = one.part if isinstance(one.part, dict) else {}
        if "prompt" in part:
            listed, at = part["prompt"], f"{one.pointer}/prompt"
            if isinstance(listed, list):
                found += [(one, f"{at}/{number}", block) for number, block in enumerate(listed)]
            elif isinstance(listed, str):
                found.append((one, at, {"type": "text", "text": listed}))
        elif str(part.get("sessionUpdate", "")).endswith("_chunk"):
            found.append((one, f"{one.pointer}/content", part.get("content")))
        elif "content" in part:
            listed, at = part["content"], f"{one.pointer}/content"
            blocks = listed if isinstance(listed, list) else []
            found = [(one, f"{at}/{number}", block) for number, block in enumerate(blocks)]
    return found


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts:
        plain = part["type"] == "text" and "uri" not in part
        if plain and found and found[-1]["type"] == "text" and "uri" not in found[-1]:
            found[-1] = {**found[-1], "text": found[-1]["text"] + part["text"]}
        else:
            found.append(part)
    return found


def blocks(_case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """A list of content blocks as parts."""
    if not isinstance(values[0], list):
        return MISSING
    where = cite.pointer + str(fact.pointer).removeprefix(".")
    return [block_at(cite, f"{where}/{number}", block) for number, block in enumerate(values[0])]


def turn_id(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """A turn's number in its stream; a later state keeps it."""
    if case.before is not None:
        return case.before.get("turnId", MISSING)
    seq = case.record.get("seq")
    return f"t{case.ledger.turns_before(seq) + 1}" if type(seq) is int else MISSING


def turn_state(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """How a turn ended, by the words of its stop reason; with an error it failed; without an end it runs."""
    ends = [cite.part for cite in case.role_cites("end")]
    if not ends:
        return "running"
    part = ends[-1]
    if follow(part, "/error") is not MISSING or (
        isinstance(part, dict) and {"message", "code"} <= part.keys()
    ):
        return "failed"
    return _reason(case, "turn", follow(part, "/stopReason"))


def _reason(case: Case, entity: str, word: Any) -> str:
    rows = (
        row.then
        for row in case.registry.terminal_status
        if row.entity == entity and row.source == "stopReason" and row.value == word
    )
    return next(rows, "unknown")


def agent_turn(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The state of an agent: it runs, or how its last turn ended."""
    word = follow(values[0], "/state")
    if word in ("running", "requires_action"):
        return "running"
    return _reason(case, "subagent", follow(values[0], "/stopReason")) if word == "idle" else MISSING


# -- requests ------------------------------------------------------------------------------------------------------


def rpc_id(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The request's JSON-RPC id as text; numbered where the session had another request of that id before."""
    found, frames = frame_at(cite.root, cite.pointer), case.scan(cite).rpc
    native = id_of(found[1].get("id")) if found is not None else None
    if found is None or native is None or frames is None:
        return MISSING
    number = frames.number_of(cite.line, native, ASKS, follow(found[1], "/params/sessionId"))
    return native.text if number < 2 else f"{native.text}#{number}"


def rpc_source(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Whether a request's id is its own."""
    found = frame_at(cite.root, cite.pointer)
    native = id_of(found[1].get("id")) if found is not None else None
    return "native" if native is not None and case.record.get("requestId") == native.text else "derived"


def _chosen(case: Case) -> Any:
    """What the cited answer decides: the kind of the option that it names, or that the request was cancelled."""
    answers = [follow(cite.part, "/outcome") for cite in case.role_cites("decision")]
    outcome = answers[-1] if answers else MISSING
    if follow(outcome, "/outcome") == "cancelled":
        return "cancelled"
    name = follow(outcome, "/optionId")
    if follow(outcome, "/outcome") != "selected" or not isinstance(name, str):
        return MISSING
    offered = [follow(cite.part, "/options") for cite in case.role_cites("request")]
    options = [one for listed in offered if isinstance(listed, list) for one in listed]
    kinds = {follow(one, "/kind") for one in options if follow(one, "/optionId") == name}
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind if isinstance(kind, str) else MISSING


def chosen(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The kind of the option that the answer names."""
    return _chosen(case)


def asked_state(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Pending until an answer is cited; resolved by one that decides."""
    if not case.role_cites("decision"):
        return "pending"
    return "resolved" if _chosen(case) is not MISSING else MISSING


def asked_secret(_case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Whether a form asks for a secret as a whole, or for nothing but secrets."""
    whole, names = _secrets(cite.part)
    members = follow(values[0] if values else MISSING, "/properties")
    return True if whole or (names and isinstance(members, dict) and names == set(members)) else MISSING


def _secrets(part: Any) -> tuple[bool, set[str]]:
    properties = follow(part, "/requestedSchema/properties")
    names = {
        name
        for name, one in (properties.items() if isinstance(properties, dict) else ())
        if follow(one, "/format") == "password" or follow(one, "/writeOnly") is True or _is_marked(one)
    }
    return _is_marked(part), names


def _is_marked(part: Any) -> bool:
    meta = follow(part, "/_meta")
    return any(
        follow(vendor, f"/{name}") is True
        for vendor in (meta.values() if isinstance(meta, dict) else ())
        for name in ("isSecret", "is_secret", "secret")
    )


def given(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """What was filled into a form, without the answers to secrets."""
    whole, names = _asked_secrets(case)
    if whole or case.record.get("secret") is True:
        return MISSING
    if isinstance(values[0], dict):
        return {name: value for name, value in values[0].items() if name not in names}
    return values[0] if isinstance(values[0], str) else MISSING


def redacted(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Whether an answer held something secret that was left out."""
    whole, names = _asked_secrets(case)
    return "redacted" if values[0] is not None and (whole or names) else MISSING


def _asked_secrets(case: Case) -> tuple[bool, set[str]]:
    asked = case.role_cites("request")
    return _secrets(asked[0].part) if asked else (False, set())


# -- terminals -----------------------------------------------------------------------------------------------------


def argv(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """A command with its arguments; alone it is a text."""
    command, listed = values[0], values[1]
    if not isinstance(command, str):
        return MISSING
    if isinstance(listed, list) and listed:
        return [command, *(one for one in listed if isinstance(one, str))]
    return command


def screen(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """A terminal's output: what the state before showed, with the bytes of the frames since."""
    data = _screen(case)
    if data is None:
        return MISSING
    return _shown(data[:OUTPUT_MOST])


def _shown(data: bytes) -> dict[str, Any]:
    text = data.decode("utf-8", "replace")
    if len(data) > INLINE_MOST:
        return {"blob": _blob(data, "text/plain")}
    exact = text.encode("utf-8", "replace") == data
    return {"text": text} | ({} if exact else {"blob": _blob(data, "application/octet-stream")})


def _blob(data: bytes, mime: str) -> Json:
    return {"blob": f"sha256:{digest(data)}", "size": len(data), "mimeType": mime}


def _screen(case: Case) -> bytes | None:
    """The bytes of a terminal at a record; None where nothing was shown yet."""
    data, shown = _before(case)
    for cite in _fresh(case):
        part = cite.part if isinstance(cite.part, dict) else {}
        snapshot, more = _told(cite, part)
        if snapshot is not None:
            data, shown = snapshot, True
        if more is not None:
            data, shown = data + more, True
    return data if shown else None


def _before(case: Case) -> tuple[bytes, bool]:
    output = case.before.get("output") if case.before is not None else None
    if not isinstance(output, dict):
        return b"", False
    blob = output.get("blob")
    kept = case.blob(blob.get("blob")) if isinstance(blob, dict) else None
    text = output.get("text")
    return (kept if kept is not None else str(text or "").encode("utf-8", "replace")), True


def _fresh(case: Case) -> Iterator[Cite]:
    """The cited frames that the state before did not cite."""
    native = case.before.get("native") if case.before is not None else None
    refs = native.get("refs") if isinstance(native, dict) else None
    old = [
        (ref.get("source"), ref.get("offset"), ref.get("pointer") or "")
        for ref in (refs if isinstance(refs, list) else ())
        if isinstance(ref, dict)
    ]
    own = case.record["native"]["refs"]
    for cite in case.cites:
        if (cite.source.entry.id, own[cite.number].get("offset"), cite.pointer) not in old:
            yield cite


def _told(cite: Cite, part: dict[str, Any]) -> tuple[bytes | None, bytes | None]:
    """What a frame shows of a terminal: all of its output anew, or more of it."""
    if cite.role == "output" and "data" in part:
        return None, base64(part["data"])
    if cite.role == "output" and isinstance(part.get("output"), str):
        return part["output"].encode("utf-8", "replace"), None
    if cite.role != "terminal":
        return None, None
    if "terminal_id" in part and isinstance(part.get("data"), str):
        return None, part["data"].encode("utf-8", "replace")
    if "output" in part:
        return (b"" if part["output"] is None else base64(follow(part["output"], "/data"))), None
    return None, None


def _exit(case: Case) -> Any:
    """The exit that the cited frames tell of; ``MISSING`` where none does, or where an earlier state has it already."""
    found: Any = MISSING
    if case.before is not None and not {"exitCode", "signal"}.isdisjoint(case.before):
        return found
    for cite in case.cites:
        part = cite.part if isinstance(cite.part, dict) else {}
        if cite.role not in ("terminal", "output") or _is_end(found):
            continue
        if part.get("exitStatus") is not None:
            found = part["exitStatus"]
        elif cite.pointer.endswith("/terminal_exit"):
            found = {"exitCode": part.get("exit_code"), "signal": part.get("signal")}
        elif cite.role == "output" and _answers(case, cite) == "terminal/wait_for_exit":
            found = part
    return found


def _is_end(told: Any) -> bool:
    """Whether an exit says how the process ended."""
    return type(follow(told, "/exitCode")) is int or bool(
        isinstance(follow(told, "/signal"), str) and follow(told, "/signal")
    )


def _answers(case: Case, cite: Cite) -> str | None:
    """The method of the request that a cited frame answers."""
    found, frames = frame_at(cite.root, cite.pointer), case.scan(cite).rpc
    name = id_of(found[1].get("id")) if found is not None else None
    if frames is None or name is None:
        return None
    asked = frames.answered(cite.line, follow(cite.root, "/dir"), name)
    return None if asked is None else asked.method


def process_state(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """How a process is: killed by a signal, exited with a code, of unknown end; until an end is told it runs."""
    told = _exit(case)
    if told is MISSING:
        return case.before.get("status", "running") if case.before is not None else "running"
    if isinstance(follow(told, "/signal"), str) and follow(told, "/signal"):
        return "killed"
    return "exited" if type(follow(told, "/exitCode")) is int else "unknown"


def process_end(case: Case, _cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """The exit code or signal (``tag``) of the last exit that the cited frames tell of."""
    found = follow(_exit(case), f"/{fact.tag}")
    return MISSING if found is None or found == "" else found


def terminal_call(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The call whose content names a terminal."""
    call, content = values[0], values[1]
    items = content if isinstance(content, list) else [content]
    names = [follow(one, "/terminalId") for one in items if follow(one, "/type") == "terminal"]
    return call if case.record.get("terminalId") in names else MISSING


def of_terminal(case: Case, cite: Cite, fact: Fact, _values: list[Any]) -> Any:
    """What the record of the terminal that a result names says (``tag``: the member)."""
    if not is_first(case, cite, fact):
        return MISSING
    told = case.record.get("exec")
    name = told.get("terminalId") if isinstance(told, dict) else None
    found = case.ledger.terminal_before(name, case.record.get("seq"))
    value: Any = found
    for step in (fact.tag or "").split("."):
        value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
    return value


def terminal_blob(case: Case, cite: Cite, fact: Fact, values: list[Any]) -> Any:
    """Long output of the terminal that a result names stands in that terminal's blob."""
    capture = case.record.get("capture")
    said = capture.get("exec.output") if isinstance(capture, dict) else None
    blob = of_terminal(case, cite, fact, values)
    return (
        "external" if isinstance(said, dict) and blob is not MISSING and said.get("blob") == blob else MISSING
    )


def output_cut(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """More was shown of a terminal than a record keeps."""
    return "truncated" if _size(case) > OUTPUT_MOST else MISSING


def output_size(case: Case, _cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """How many bytes a terminal has shown."""
    return _size(case)


def _size(case: Case) -> int:
    """Bytes shown so far: those that the state before counts, and those of the frames since."""
    before = case.before or {}
    capture = before.get("capture")
    told = capture.get("output") if isinstance(capture, dict) else None
    size = told.get("originalBytes") if isinstance(told, dict) else None
    size = size if type(size) is int else len(_before(case)[0])
    for cite in _fresh(case):
        snapshot, more = _told(cite, cite.part if isinstance(cite.part, dict) else {})
        size = len(snapshot) if snapshot is not None else size
        size += len(more) if more is not None else 0
    return size


PROTOCOL = {
    "frame_time": frame_time,
    "rpc_type": rpc_type,
    "replayed": replayed,
    "speaker": speaker,
    "spoken": spoken,
    "blocks": blocks,
    "turn_id": turn_id,
    "turn_state": turn_state,
    "agent_turn": agent_turn,
    "rpc_id": rpc_id,
    "rpc_source": rpc_source,
    "chosen": chosen,
    "asked_state": asked_state,
    "asked_secret": asked_secret,
    "given": given,
    "redacted": redacted,
    "argv": argv,
    "screen": screen,
    "process_state": process_state,
    "process_end": process_end,
    "terminal_call": terminal_call,
    "of_terminal": of_terminal,
    "terminal_blob": terminal_blob,
    "output_cut": output_cut,
    "output_size": output_size,
}
"""Table names that a fact may give, beside those of ``tables``."""
