"""The fast lane: proves that one line breaks no rule, or proves nothing.

Owns one screen per record type, over the strict twins of ``shape``. A screen may be too strict (the line
then goes to the finding lane, which decides), never too lax: what is proved here has no finding there. A
test holds the two lanes against each other on true and damaged records.

Must never know: how a finding is worded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from callsheet import records as rec
from callsheet.records.tool_call import FORBIDDEN
from callsheet.rules.across import KEY_OF, Place, Stream
from callsheet.rules.result import asr_261
from callsheet.rules.shape import LENIENT, PART_NEEDS, PROOF, proof_decoder
from callsheet.rules.text import LONG_INTEGER, RUN, fraction, hides_a_key

Screen = Callable[[Any, Stream], bool]

_PYTHON = {field.encode_name: field.name for field in msgspec.structs.fields(rec.Part)}
_NEEDS = {kind: tuple(_PYTHON[name] for name in names) for kind, names in PART_NEEDS.items()}
_encode = msgspec.json.Encoder().encode
_decode_any = msgspec.json.Decoder(float_hook=fraction).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NONE: frozenset[str] = frozenset()
_RULED: dict[str, frozenset[str]] = {"tool_call": frozenset(FORBIDDEN), "hook": frozenset({"content"})}
"""Members that no record type has, but a rule speaks about."""


def _parts(parts: Any) -> bool:
    if parts is not UNSET:
        for part in parts:
            kind = part.type
            if kind == "text":
                if part.text is UNSET:
                    return False
            elif any(getattr(part, name) is UNSET for name in _NEEDS.get(kind, ())):
                return False
    return True


def _amount(value: Any) -> bool:
    return value is UNSET or ((type(value) is int or type(value) is float) and value >= 0)


def _number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _capture(record: Any, keys: tuple[str, ...]) -> bool:
    capture = record.capture
    if capture is UNSET:
        return True
    for key, entry in capture.items():
        if key not in keys or entry.state == "external":
            return False
        if entry.state == "absent" and (key not in _TOP or getattr(record, _TOP[key]) is not UNSET):
            return False
    return True


_TOP = {"content": "content", "name": "name", "title": "title", "questions": "questions"}


def _root(place: Any, stream: Stream) -> bool:
    return place is UNSET or stream.roots is None or place.root in stream.roots


def _tool_call(record: Any, stream: Stream) -> bool:
    if record.name is UNSET and (record.capture is UNSET or "name" not in record.capture):
        return False
    if record.input_text is not UNSET and record.input is not UNSET:
        return False
    return record.locations is UNSET or all(_root(place, stream) for place in record.locations)


def _tool_result(record: Any, stream: Stream) -> bool:
    if (record.call_id is UNSET) is (record.linkage in ("exact", "derived")):
        return False
    if record.content is UNSET:
        if record.capture is UNSET or "content" not in record.capture:
            return False
    elif not _parts(record.content):
        return False
    if record.display_content is not UNSET and not _parts(record.display_content):
        return False
    duration = record.duration_ms
    if not _amount(duration):
        return False
    if record.started_at is not UNSET and record.completed_at is not UNSET:
        times = {"startedAt": record.started_at, "completedAt": record.completed_at}
        if duration is not UNSET:
            times["durationMs"] = duration
        for _ in asr_261(times):
            return False
    execution = record.exec
    return execution is UNSET or _root(execution.cwd, stream)


def _permission(record: Any, _stream: Stream) -> bool:
    if record.reviews is not UNSET:
        return False
    subject = record.subject
    if subject is not UNSET and (subject.call_id is UNSET) is (subject.command is UNSET):
        return False
    if record.status in ("pending", "held"):
        return record.decision is UNSET
    return record.status != "resolved" or record.decision is not UNSET


def _hook(record: Any, _stream: Stream) -> bool:
    return _parts(record.output) and _amount(record.duration_ms)


def _content(record: Any, _stream: Stream) -> bool:
    return _parts(record.content)


def _reasoning(record: Any, _stream: Stream) -> bool:
    return _parts(record.content) and _amount(record.duration_ms)


def _usage(record: Any, _stream: Stream) -> bool:
    counts = record.counts
    return (record.percent is UNSET or _number(record.percent)) and (
        counts is UNSET or all(_number(count.value) for count in counts)
    )


def _turn(record: Any, _stream: Stream) -> bool:
    return _amount(record.duration_ms)


def _file_change(record: Any, stream: Stream) -> bool:
    return record.changes is UNSET or all(
        _root(change.path, stream) and _root(change.old_path, stream) for change in record.changes
    )


def _compaction(record: Any, _stream: Stream) -> bool:
    return _parts(record.summary)


def _gap(record: Any, stream: Stream) -> bool:
    return record.source is UNSET or stream.sources is None or record.source in stream.sources


def _free(_record: Any, _stream: Stream) -> bool:
    return True


_SCREENS: dict[type[rec.Record], Screen] = {
    rec.ToolCall: _tool_call,
    rec.ToolResult: _tool_result,
    rec.Permission: _permission,
    rec.Hook: _hook,
    rec.Message: _content,
    rec.Reasoning: _reasoning,
    rec.Usage: _usage,
    rec.Turn: _turn,
    rec.Plan: _free,
    rec.FileChange: _file_change,
    rec.Compaction: _compaction,
    rec.Gap: _gap,
    rec.Unmapped: _free,
    rec.Notice: _free,
    rec.Preview: _free,
}
"""Types with a screen; session, input_request, terminal and subagent are rare and go to the finding lane."""


def _colons(name: str, value: Any) -> int:
    """Colons of a member once it is encoded."""
    return 1 + name.count(":") + _encode(value).count(b":")


def _is_whole(data: bytes, record: Any, unknown: int | None) -> bool:
    """Whether every member of a line is in what was decoded of it: none stands twice, none is lost.

    Args:
        data: The line.
        record: What was decoded.
        unknown: Colons of members that its type does not have; None where it was decoded without such.
    """
    if b"\\u003" in data:
        return False
    if data.count(b":") == _encode(record).count(b":") + (unknown or 0):
        return True
    if unknown is None:
        return False
    try:
        # There may be unknown members further inside, which the typed record has lost.
        return not hides_a_key(data, _encode(_decode_any(data)))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


class Proof:
    """The fast lane of one stream; notes what it proved in the stream's memory."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._decode = proof_decoder(PROOF).decode
        self._decode_leniently = proof_decoder(LENIENT).decode
        self._extended = False
        self._known: dict[type, frozenset[str]] = {}
        self._screens: dict[type, tuple[str, str | None, tuple[str, ...], Screen]] = {}
        for kind, screen in _SCREENS.items():
            name = str(kind.__struct_config__.tag)
            wire = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
            key = wire[KEY_OF[name]] if name in KEY_OF else None
            for twins in (PROOF, LENIENT):
                self._screens[twins.of(kind)] = (name, key, kind.CAPTURE_KEYS, screen)
            self._known[LENIENT.of(kind)] = frozenset(wire) | {"type"}

    def holds(self, data: bytes, line: int) -> bool:
        """Whether the line is proved to break no rule, by itself or by what came before."""
        found = self._typed(data)
        if found is None:
            return False
        record, unknown = found
        known = self._screens.get(type(record))
        if known is None:
            return False
        kind, key_name, keys, screen = known
        stream = self._stream
        name = record.id
        if record.seq != stream.next_seq or name in stream.ids:
            return False
        key = None
        if key_name is not None:
            key = getattr(record, key_name)
            if key is UNSET:
                key = None
        supersedes = record.supersedes
        if supersedes is UNSET:
            supersedes = None
        elif supersedes in stream.superseded or stream.ids.get(supersedes) != (kind, key):
            return False
        sources = stream.sources
        if sources is not None and record.native is not UNSET and record.native.refs is not UNSET:
            for ref in record.native.refs:
                if ref.source not in sources:
                    return False
        if not _capture(record, keys) or not screen(record, stream):
            return False
        if LONG_INTEGER in data.translate(RUN) or not _is_whole(data, record, unknown):
            return False
        self._note(record, kind, key, name, line, supersedes)
        return True

    def _typed(self, data: bytes) -> tuple[Any, int | None] | None:
        """A line as a typed record, and how many colons its unknown members have; None if it proves nothing.

        Lines are like those before them: where the last one had unknown members, the decoder that allows them is
        asked first.
        """
        if not self._extended:
            try:
                return self._decode(data), None
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                if "unknown field" not in str(error):
                    return None
        try:
            record = self._decode_leniently(data)
            known = self._known.get(type(record))
            if known is None:
                return None
            members = _decode_members(data)
            unknown = members.keys() - known
            colons = sum(_colons(name, _decode_any(members[name])) for name in unknown)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        self._extended = bool(unknown)
        # A rule may speak about a member that the type does not have.
        return None if unknown & _RULED.get(self._screens[type(record)][0], _NONE) else (record, colons)

    def _note(
        self, record: Any, kind: str, key: str | None, name: str, line: int, supersedes: str | None
    ) -> None:
        stream = self._stream
        stream.next_seq += 1
        stream.records += 1
        stream.ids[name] = _BARE[kind] if key is None else (kind, key)
        if supersedes is not None:
            stream.superseded.add(supersedes)
        if kind == "tool_result":
            compact = record.permission is not UNSET
            terminal = record.exec.terminal_id if record.exec is not UNSET else UNSET
            if compact or terminal is not UNSET or supersedes is not None:
                call = None if record.call_id is UNSET else record.call_id
                stream.result(
                    Place(name, line), supersedes, call, compact, None if terminal is UNSET else terminal
                )
        elif kind == "permission":
            if record.subject is not UNSET and record.subject.call_id is not UNSET:
                stream.permission(record.subject.call_id)
        elif kind == "gap" and record.reason == "missing_session":
            stream.has_missing_session = True


_BARE: dict[str, tuple[str | None, str | None]] = {name: (name, None) for name in rec.TYPES}
