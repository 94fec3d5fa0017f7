"""Capture states: why a member is not, or not wholly, there.

Owns: that an ``external`` blob holds the native value exactly, that a named blob is there with its digest and
size, that an ``absent`` member is absent, and that every other state is one that the registry's facts give. The
reason is in our own words and has no evidence.

Must never know: importers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.facts import NO_ENTRY, NOWHERE, Facts
from callsheet.audit.finding import Claim, Evidence, Json, Path
from callsheet.audit.parts import json_of
from callsheet.audit.protocol import pieces_of
from callsheet.audit.sent import REQUEST
from callsheet.audit.values import is_list_of, is_text_of
from callsheet.registry.when import MISSING
from callsheet.wire.blobs import digest

JSON, TEXT, BYTES = "application/json", "text/plain", "application/octet-stream"


def check_captures(case: Case, facts: Facts) -> Iterator[Claim]:
    """Claims about every capture state of a record."""
    captures = case.record.get("capture")
    if captures is None:
        return
    if not isinstance(captures, dict):
        yield Claim(("capture",), captures, None, "is no object")
        return
    for member, capture in captures.items():
        path: Path = ("capture", member)
        if not isinstance(capture, dict):
            yield Claim(path, capture, None, "is no object")
            continue
        for name, value in capture.items():
            match name:
                case "reason":
                    continue
                case "state":
                    yield _state(case, facts, member, capture)
                case "blob":
                    yield from _blob(case, facts, member, capture, value)
                case _:
                    yield from facts.check(case, (*path, name), value)


def _state(case: Case, facts: Facts, member: str, capture: Json) -> Claim:
    path: Path = ("capture", member, "state")
    state = capture.get("state")
    claims = list(facts.check(case, path, state))
    if claims[0].evidence is not None:
        return claims[0]
    unsent = (case.kind, member) == (
        "tool_result",
        "content",
    )  # of what was not sent nothing is cut off either
    silent = state == "absent" and "blob" not in capture and _is_silent(case, facts, member)
    hidden = any(claim.evidence is not None for claim in facts.check(case, path, "redacted"))
    if silent and unsent and not hidden:
        return Claim(path, state, Evidence("absent"))
    # What the source had cut before it stored it may be kept whole, as it was stored.
    blob = capture.get("blob")
    stored = state == "external" and isinstance(blob, dict) and blob.get("mimeType") == JSON
    cut = stored and all(claim.evidence for claim in facts.check(case, path, "truncated"))
    if claims[0].why not in (NO_ENTRY, NOWHERE) and not cut:
        return claims[0]  # the source gives it another state
    if state == "external":
        evidence = _external(case, facts, member, capture)
        return Claim(path, state, evidence, "the blob does not hold what the source says")
    if silent:
        return Claim(path, state, Evidence("absent"))
    return Claim(path, state, None, "nothing in the source gives it this state")


def _is_silent(case: Case, facts: Facts, member: str) -> bool:
    """Whether a member is not there, and nothing in the source says what it would be.

    What is stored of a result is no content until a request, or a capture of the version, shows that it was sent.
    """
    if _member(case.record, member) is not MISSING:
        return False
    if case.kind == "tool_result" and member == "content":
        return not case.role_cites(REQUEST)
    claims = facts.check(case, (*member.split("."),), None)
    return all(claim.why in (NO_ENTRY, NOWHERE) for claim in claims)


def _member(record: Json, member: str) -> Any:
    value: Any = record
    for name in member.split("."):
        value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
    return value


def _external(case: Case, facts: Facts, member: str, capture: Json) -> Evidence | None:
    """The evidence that a blob holds the native value of its member: whole, and as the source spells it."""
    blob = capture.get("blob")
    blob = blob if isinstance(blob, dict) else {}
    data = case.blob(blob.get("blob"))
    if data is None:
        return None
    if blob.get("mimeType") == JSON:
        value = json_of(data)
        if value is MISSING:
            return None
        # A value that has the shape of the member itself, made of several native ones (raw).
        claims = list(facts.check(case, (*member.split("."),), value))
        if claims and all(claim.evidence for claim in claims):
            return claims[0].evidence
        text = data.decode("utf-8", "surrogatepass")
    elif blob.get("mimeType") == TEXT:
        value = text = data.decode("utf-8", "replace")
    else:
        value = text = ""
    name = ".".join(member.split("."))
    for cite in case.cites:
        if blob.get("mimeType") == JSON and cite.pointer and is_text_of(text, cite.data, cite.pointer):
            return Evidence("external", cite.number, cite.place, cite.pointer, cite.part)
        if cite.sha256 == digest(data) and cite.root is MISSING:
            return Evidence("external", cite.number, cite.place)
    for fact in facts.of(case.kind, name):
        if fact.table == "spoken" and blob.get("mimeType") == JSON:
            pieces = pieces_of(case, fact.role)
            if pieces and is_list_of(text, [(cite.data, pointer) for cite, pointer, _ in pieces]):
                return Evidence("external", pieces[0][0].number, pieces[0][0].place, pieces[0][1])
        for cite, found in case.readings(fact, ()):
            for one in found[0]:
                if blob.get("mimeType") == JSON:
                    good = is_text_of(text, cite.data, one.pointer)
                else:
                    good = isinstance(one.value, str) and _as_bytes(one.value) == data
                if good:
                    return Evidence("external", cite.number, cite.place, one.pointer, one.value)
    return None


def _as_bytes(value: str) -> bytes:
    return value.encode("utf-8", "replace")


def _blob(case: Case, facts: Facts, member: str, capture: Json, blob: Any) -> Iterator[Claim]:
    path: Path = ("capture", member, "blob")
    yield from check_blob(case, path, blob)
    if not isinstance(blob, dict):
        return
    mime = blob.get("mimeType")
    wanted: tuple[str | None, ...]
    if capture.get("state") == "external" and not any(cite.root is MISSING for cite in case.cites):
        wanted = (JSON, TEXT, *([] if _is_text(case, blob) else [BYTES]))
    else:
        wanted = (TEXT, None)
        if capture.get("state") != "external":
            yield from facts.check(case, path, blob)
    if mime not in wanted:
        yield Claim((*path, "mimeType"), mime, None, f"what it holds is {' or '.join(filter(None, wanted))}")


def _is_text(case: Case, blob: Json) -> bool:
    """Whether a blob's bytes are a text."""
    try:
        (case.blob(blob.get("blob")) or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def check_blob(case: Case, path: Path, blob: Any) -> Iterator[Claim]:
    """Claims about a blob: that it is there, with this digest and size."""
    name = blob.get("blob") if isinstance(blob, dict) else None
    data = case.blob(name)
    if data is None or name != f"sha256:{digest(data)}":
        yield Claim((*path, "blob"), name, None, "the bundle has no such blob")
    elif blob.get("size") != len(data) or isinstance(blob.get("size"), bool):
        yield Claim((*path, "size"), blob.get("size"), None, f"the blob has {len(data)} bytes")
    else:
        yield Claim(path, name, Evidence("blob", -1, str(name)))


def blobs_in(value: Any, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Every blob reference inside a value (not inside native JSON, which may look like one)."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from blobs_in(item, (*path, index))
    elif isinstance(value, dict):
        inner = value.get("blob")
        if isinstance(inner, dict):
            yield (*path, "blob"), inner
