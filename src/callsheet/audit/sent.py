"""What reached the model: a result's content against the request that carried it (ASR-259, decision 7).

Owns: the proof by request (the request names the message, the message holds a block that answers the same call,
and the content is what that block says, less texts that stand in messages of their own), and the proof by capture
in sources that record no requests (a ``[[content]]`` row for version and tool, a reply of the model after it, a
call id of its own).

Must never know: how an importer tied the two. Nothing here reads a text for its meaning.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from callsheet.audit.case import Case
from callsheet.audit.cite import Cite, encoded
from callsheet.audit.facts import Facts
from callsheet.audit.finding import Claim, Evidence, Path
from callsheet.audit.parts import Wrong, blocks_of, check_part, check_parts
from callsheet.audit.sources import ROWS
from callsheet.audit.values import agree, differences, unit_index
from callsheet.registry import ContentRule
from callsheet.registry.versions import in_ranges
from callsheet.registry.when import MISSING, follow, matches
from callsheet.wire.lossless import without_lone_surrogates

JOINT = "\n\n"
"""What stands between a result and a text that is appended to it."""
REQUEST = "request"
PATH: Path = ("content",)
_STEPS = 20_000
_END = 1 << 62
"""Behind all that stands on a line: messages of a document are told apart by their positions."""
_NEAR = 64
_encode = msgspec.json.Encoder(order="sorted").encode
_LONE = re.compile("[\ud800-\udfff]")


def check_content(case: Case, facts: Facts, content: Any) -> Iterator[Claim]:
    """Claims about the content of a result."""
    stored = [
        (cite, [one.value for one in found[0]])
        for fact in facts.of(case.kind, "content")
        if fact.via == "parts"
        for cite, found in case.readings(fact, ())
    ]
    if not stored:
        yield Claim(PATH, content, None, "none of the cited lines holds the result's block")
        return
    requests = case.role_cites(REQUEST)
    if requests or case.scan(stored[0][0]).requests:
        sent = [
            (cite, found[0][0].value if found[0] else MISSING)
            for fact in facts.of(case.kind, "content")
            if fact.via == "slice"
            for cite, found in case.readings(fact, ())
        ]
        yield from _by_request(case, content, stored[0], sent, requests)
    else:
        tried = [list(_by_capture(case, content, *one)) for one in stored]
        yield from min(tried, key=lambda claims: sum(claim.evidence is None for claim in claims))


# -- by a request that the source records -------------------------------------------------------------------------


def _by_request(
    case: Case,
    content: Any,
    stored: tuple[Cite, list[Any]],
    sent: list[tuple[Cite, Any]],
    requests: list[Cite],
) -> Iterator[Claim]:
    marks = case.registry.marks
    if not requests or not matches(marks.requests, requests[0].root):
        yield Claim(PATH, content, None, "no line that the record cites is a request to the model")
        return
    request = requests[0]
    tail = follow(request.root, marks.tail)
    tail = tail if isinstance(tail, list) else []
    if not sent:
        if not any(key in tail for key in _joined(case, stored[0])):
            yield Claim(PATH, content, None, "the request names no message that is made of the stored block")
            return
        _, wrong = check_parts(content, blocks_of(stored[1]), case.blob, whole=True)
        yield from _claims(content, wrong, stored[0], stored[1])
        return
    cite, native = sent[0]
    if follow(cite.root, marks.hash) not in tail:
        yield Claim(PATH, content, None, "the request does not name the message that the record cites")
        return
    unit = next((unit for unit in case.registry.unit if unit.record == case.kind), None)
    ids = [follow(one.part, unit.id) if unit else MISSING for one in (cite, stored[0])]
    if ids[0] is MISSING or ids[0] != ids[1]:
        yield Claim(PATH, content, None, "the sent block answers another call")
        return
    yield from _claims(content, list(differ_from_sent(case, content, native)), cite, native)


def _claims(content: Any, wrong: list[Wrong], cite: Cite, native: Any) -> Iterator[Claim]:
    if not wrong:
        yield Claim(PATH, content, Evidence("sent", cite.number, cite.place, cite.pointer, native))
    for path, value, why in wrong:
        yield Claim((*PATH, *path), value, None, why)


def differ_from_sent(case: Case, content: Any, sent: Any) -> Iterator[Wrong]:
    """Leaves of a content that is not what was sent, less what stands in messages of its own."""
    if isinstance(sent, list):
        yield from _differ_in_parts(case, content, sent)
        return
    if sent is None or sent is MISSING or isinstance(sent, str):
        sent = sent if isinstance(sent, str) else ""
        parts = content if isinstance(content, list) else [content]
        text = "" if not parts else parts[0].get("text") if isinstance(parts[0], dict) else None
        if isinstance(text, str) and len(parts) < 2 and _is_part_of(case, text, sent):
            yield from differences(parts, [{"type": "text", "text": text}] if parts else [])
            return
        yield from differences(parts, [{"type": "text", "text": sent}])
        return
    _, wrong = check_parts(content, [sent], case.blob, whole=True)
    yield from wrong


def _differ_in_parts(case: Case, content: Any, sent: list[Any]) -> Iterator[Wrong]:
    at = 0
    for index, part in enumerate(content if isinstance(content, list) else [content]):
        while at < len(sent) and list(_sent_part(part, sent, at, case)) and _is_own(case, sent[at]):
            at += 1
        wrong = list(_sent_part(part, sent, at, case)) if at < len(sent) else list(differences(part, MISSING))
        for path, value, why in wrong:
            yield (index, *path), value, why
        at += 1
    left = [block for block in sent[at:] if not _is_own(case, block)]
    if left:
        yield (), len(content), f"more was sent: {encoded(left[0])[:80]}"


def _sent_part(part: Any, sent: list[Any], at: int, case: Case) -> list[Wrong]:
    """What is wrong with a part; a line end glued to a text before appended parts is no part of it."""
    block = sent[at]
    wrong = list(check_part(part, block, case.blob))
    text = block.get("text") if isinstance(block, dict) else None
    if wrong and at + 1 < len(sent) and isinstance(text, str) and text.endswith("\n"):
        return list(check_part(part, {**block, "text": text[:-1]}, case.blob))
    return wrong


def _is_own(case: Case, block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) else block
    return isinstance(text, str) and case.ledger.says(text)


def _is_part_of(case: Case, text: str, sent: str) -> bool:
    """Whether a text is what was sent, where every piece that is missing from it stands in a message of its own."""
    if agree(text, sent):
        return True
    sent = without_lone_surrogates(sent)
    lengths = sorted(case.ledger.lengths)
    steps = 0
    tried: set[tuple[int, int]] = set()
    stack = [(0, 0)]
    while stack:
        mine, theirs = stack.pop()
        if (mine, theirs) in tried:
            continue
        tried.add((mine, theirs))
        steps += 1
        if steps > _STEPS:
            return False
        if mine == len(text) and theirs == len(sent):
            return True
        # Cut pieces begin at a joint, or where the sent text begins.
        joint = len(JOINT) if sent.startswith(JOINT, theirs) else 0
        for size in lengths if joint or theirs == 0 else ():
            end = theirs + joint + size
            if end > len(sent):
                break
            if (end == len(sent) or sent.startswith(JOINT, end)) and case.ledger.says(
                sent[theirs + joint : end]
            ):
                stack.append((mine, end))
                if mine == 0 and sent.startswith(JOINT, end):
                    stack.append((mine, end + len(JOINT)))
        kept = _kept(text, mine, sent, theirs)
        if kept:
            stack.append((mine + kept, theirs + kept))
    return False


def _kept(text: str, mine: int, sent: str, theirs: int) -> int:
    """Characters that stand in both, up to the next joint."""
    end = sent.find(JOINT, theirs + 1)
    size = (len(sent) if end < 0 else end) - theirs
    return size if text.startswith(sent[theirs : theirs + size], mine) else 0


def _joined(case: Case, cite: Cite) -> Iterator[str]:
    """Hashes of the messages that a stored record may be joined to: it with the user records next to it."""
    near: list[list[Any]] = []
    own = 0
    for line in range(max(1, cite.line - _NEAR), cite.line + _NEAR + 1):
        root = cite.root if line == cite.line else case.reading.root_at(cite.source, line)
        content = follow(root, "/message/content")
        if follow(root, "/type") != "user" or content is MISSING:
            continue
        if line == cite.line:
            own = len(near)
        near.append([{"type": "text", "text": content}] if isinstance(content, str) else content)
    for first in range(own, -1, -1):
        joined: list[Any] = []
        for last in range(first, len(near)):
            joined += near[last] if isinstance(near[last], list) else []
            if last >= own:
                yield message_hash({"content": joined, "role": "user"})


def message_hash(message: Any) -> str:
    """SHA-256 of a message as JSON with sorted keys, without blanks and ``cache_control``."""
    plain = _uncached(message)
    try:
        data = _encode(plain)
    except (msgspec.EncodeError, UnicodeEncodeError):
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        data = _LONE.sub(lambda lone: f"\\u{ord(lone.group()):04x}", text).encode()
    return hashlib.sha256(data).hexdigest()


def _uncached(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _uncached(item) for name, item in value.items() if name != "cache_control"}
    return [_uncached(item) for item in value] if isinstance(value, list) else value


# -- by captures of this version ----------------------------------------------------------------------------------


def _by_capture(case: Case, content: Any, cite: Cite, native: list[Any]) -> Iterator[Claim]:
    version = case.version(cite)
    rule = next(
        (
            rule
            for rule in case.registry.content
            if rule.names(case.tool)
            and in_ranges(rule.versions, version)
            and matches(rule.when, cite.root, cite.part)
        ),
        None,
    )
    rule = rule or _agent_row(case, cite, native)
    if rule is None:
        yield Claim(
            PATH, content, None, "no capture shows what this version sent, and no request is recorded"
        )
        return
    window = 0
    follows = _reply_follows(case, cite, usage=rule.usage_is_reply)
    if case.registry.marks.parent:
        at = case.branches.at(case.scan(cite), cite.line)
        follows = case.branches.is_answered(at)
        api, window = case.branches.maker(at)
        if rule.apis and api not in rule.apis:
            yield Claim(PATH, content, None, "no capture shows what is sent to this provider's API")
            return
    if rule.needs_reply and not follows:
        yield Claim(PATH, content, None, "no reply of the model follows, so nothing shows that it was sent")
        return
    if case.record.get("linkage") != "exact" and not rule.shared_ids:
        yield Claim(PATH, content, None, "its call id stands on several calls")
        return
    if not rule.fits(b"".join(encoded(one).encode() for one in native), window):
        yield Claim(PATH, content, None, "it is so long that a part of it may have been sent")
        return
    _, wrong = check_parts(content, blocks_of(native), case.blob, whole=True)
    if not wrong:
        yield Claim(PATH, content, Evidence("table content", cite.number, cite.place, cite.pointer, native))
    for path, value, why in wrong:
        yield Claim((*PATH, *path), value, None, why)


def _reply_follows(case: Case, cite: Cite, *, usage: bool) -> bool:
    """Whether the model went on after a result: in a later line, or in a later message of a document."""
    marks = case.registry.marks
    place, *calls = (
        (one.line, _END if marks.spoken else max(one.offset, 0)) for one in (cite, *case.calls[:1])
    )
    source = cite.source.entry.id
    if cite.source.entry.encoding == ROWS:
        case.ledger.place_replies(case.reading.line_of_row)
    if case.ledger.reply_follows(source, place, calls[0] if calls else None):
        return True
    if usage and case.ledger.response_follows(source, place):
        return True
    if not marks.spoken or cite.source.entry.encoding == ROWS:
        return False
    own, last = case.scan(cite).replies
    if last >= 0:
        return unit_index(cite.pointer.rpartition("/")[0]) < last
    named = [one.value for place in marks.message for one in case.pointed(cite, place)]
    listed = (case.reading.sources.get(name) for name in case.ledger.head.sources or ())
    told = [case.reading.scan(one).replies[0] for one in listed if one is not None]
    return any(isinstance(one, str) and one < max([own, *told]) for one in named)


def _agent_row(case: Case, cite: Cite, native: list[Any]) -> ContentRule | None:
    """What captures showed of an agent that speaks a shared protocol: where in its output the sent text stands."""
    head = case.ledger.head
    for row in case.registry.agent:
        if row.name == head.agent and row.content is not None and in_ranges(row.versions, head.version):
            output = follow(cite.part, "/rawOutput")
            sent = output if row.content == "." else follow(output, f"/{row.content}")
            return ContentRule(tools=["*"], needs_reply=True) if native and sent == native[0] else None
    return None
