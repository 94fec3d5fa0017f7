"""The second pass over a chat: messages, thoughts, calls and results.

Owns the way of each entry to its records. A message that is logged again under its id replaces the one before
(a revision of what has changed); what ``$rewindTo`` drops from the chat has happened all the same and stays. A
function response that no recorded call answers to is an orphan (ASR-266).

Must never know: files.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from callsheet.harness._port.documents import one_line
from callsheet.harness._port.parts import (
    ABSENT,
    is_null,
    items_of,
    mark,
    members_of,
    part_at,
    text_of,
    value_of,
)
from callsheet.harness._port.pen import Pen, utc
from callsheet.harness._port.units import Unit
from callsheet.harness.gemini.shapes import ChatLine, Entry, call_id_of, entries_of, is_head
from callsheet.harness.gemini.survey import CallItem, Sent, Survey
from callsheet.records import (
    Change,
    Count,
    Error,
    FileChange,
    Message,
    Part,
    Patch,
    Reasoning,
    Record,
    Ref,
    ToolCall,
    ToolResult,
    Usage,
    text_part,
)
from callsheet.registry import Registry, first
from callsheet.registry.via import base64, numbers
from callsheet.wire import lossless
from callsheet.wire.blobs import digest

SAYS = frozenset({"output", "error"})
"""Members of a function response that are its text, where it has no other."""
NOT_SENT = "no recorded user message carries it, or the model never spoke after it"


class Told(Struct):
    """What was written of one entity."""

    digest: str
    ref: Ref


class Chat:
    """Writes the stream of one chat."""

    def __init__(self, pen: Pen, survey: Survey, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._registry = registry
        self._tools = registry.tools()
        rows = [row for row in registry.line if row.becomes == "message"]
        self._authors = {row.type: row.author for row in rows if row.tag is None}
        self._tags = {(row.type, row.tag): row.author for row in rows if row.tag is not None}
        self._told: dict[str, Told] = {}
        self._orphans: set[str] = set()
        self._anonymous = 0
        self._again = False

    def line(self, unit: Unit[ChatLine]) -> None:
        """Writes the records of a unit; the pen has taken it."""
        native, pen = unit.native, self._pen
        if native is None:
            pen.unmapped("line", Raw(one_line(unit.data)) if unit.exact is None else None)
            return
        for entry in entries_of(unit):
            written, self._again = pen.written, False
            self._entry(entry)
            if entry.pointer and pen.written == written and not self._again:
                self._keep(entry)
        if native.rewind:
            pen.desk.diagnose(
                "rewind", "the chat was rewound; what it drops stays", pen.source, unit.line.number
            )
        if not pen.written:
            pen.ts = utc(native.timestamp)
            pen.unmapped(_name_of(native), Raw(one_line(unit.data)) if unit.exact is None else None, "")

    def _keep(self, entry: Entry) -> None:
        """Keeps an entry among others of which nothing is mapped; a line that is one is kept whole."""
        pen, members = self._pen, members_of(entry.raw)
        name = text_of(members.get("id", ABSENT))
        if name and self._is_new(f"kept {name}", bytes(entry.raw), "line", entry.pointer) is None:
            return
        pen.ts = utc(text_of(members.get("timestamp", ABSENT)))
        pen.unmapped(text_of(members.get("type", ABSENT)) or "entry", entry.raw, entry.pointer)

    def _entry(self, entry: Entry) -> None:
        pen = self._pen
        members = entry.members
        kind = text_of(members.get("type", ABSENT)) or ""
        author = self._authors.get(kind)
        if author is None:
            return
        pen.ts = utc(text_of(members.get("timestamp", ABSENT)))
        name = text_of(members.get("id", ABSENT)) or None
        if name is None:
            self._anonymous += 1
        key = name or f"#{self._anonymous}"
        self._thoughts(key, members, entry.pointer)
        self._message(key, name, author, members, entry)
        if author == "model":
            for item in self._survey.items(entry):
                self._call(item)
            self._usage(key, members, entry.pointer)

    def _is_new(self, key: str, text: bytes, role: str, pointer: str) -> Ref | None:
        """Whether an entity is heard of first, or says something else than before; the ref to cite then."""
        told = digest(text)
        before = self._told.get(key)
        if before is not None and before.digest == told:
            self._again = True
            return None
        ref = self._pen.ref(role, pointer)
        self._told[key] = Told(told, ref)
        return ref

    # -- what is said -------------------------------------------------------------------------------------------

    def _message(
        self, key: str, name: str | None, author: str, members: dict[str, Raw], entry: Entry
    ) -> None:
        pen = self._pen
        content = members.get("content") or members.get("parts") or ABSENT
        where = f"{entry.pointer}/content" if members.get("content") else f"{entry.pointer}/parts"
        parts = self._parts(content, where)
        alone = author == "model" and not parts and (members.get("toolCalls") or members.get("thoughts"))
        said = not parts and mark(content) == b"[" and items_of(content)
        if not content or ((alone or said) and not pen.has(f"message {key}")):
            return
        if self._is_new(f"message {key}", bytes(content), "message", entry.pointer) is None:
            return
        if len(parts) == 1:
            author = self._tagged(text_of(members.get("type", ABSENT)) or "", parts[0].text or "") or author
        record = Message(
            author=author, content=parts, message_id=name, native=pen.native("message", entry.pointer)
        )
        pen.readable(record, "content", where)
        pen.revise(f"message {key}", record)

    def _tagged(self, kind: str, text: str) -> str | None:
        """Who wrote a text that stands whole in one of the harness's own tags (decision 8)."""
        clean = text.strip()
        for (of, tag), author in self._tags.items():
            if of == kind and clean.startswith(f"<{tag}>") and clean.endswith(f"</{tag}>"):
                return author
        return None

    def _parts(self, content: Raw, where: str) -> list[Part]:
        words = text_of(content)
        if words is not None:
            return [text_part(words)] if words else []
        found: list[Part] = []
        for number, item in enumerate(items_of(content)):
            members = members_of(item)
            words = text_of(item) if not members else text_of(members.get("text", ABSENT))
            if words is not None:
                found.append(text_part(words))
            elif members_of(members.get("functionResponse", ABSENT)):
                self._response(members["functionResponse"], f"{where}/{number}/functionResponse")
            elif "inlineData" in members:
                found.append(self._media(members["inlineData"], item))
            else:
                found.append(_json_part(item))
        return found

    def _media(self, raw: Raw, item: Raw) -> Part:
        told = members_of(raw)
        mime = text_of(told.get("mimeType", ABSENT))
        data = base64(text_of(told.get("data", ABSENT)))
        if data is None or mime is None:
            return _json_part(item)
        kind = "image" if mime.startswith("image/") else "file"
        return Part(type=kind, mime_type=mime, blob=self._pen.desk.blob(data, mime))

    def _thoughts(self, key: str, members: dict[str, Raw], pointer: str) -> None:
        pen = self._pen
        for number, item in enumerate(items_of(members.get("thoughts", ABSENT))):
            told = members_of(item)
            words = [text_of(told.get(name, ABSENT)) for name in ("subject", "description")]
            parts = [text_part(text) for text in words if text]
            at = f"{pointer}/thoughts/{number}"
            if parts and self._is_new(f"thought {key} {number}", bytes(item), "thought", at) is not None:
                record = Reasoning(content=parts, native=pen.native("thought", at))
                pen.readable(record, "content", at)
                self._revise_at(f"thought {key} {number}", record, told)

    def _revise_at(self, key: str, record: Record, members: dict[str, Raw]) -> None:
        """Writes a part of an entry at its own time; at the entry's, where it tells none."""
        pen, own = self._pen, text_of(members.get("timestamp", ABSENT))
        now = pen.ts
        pen.ts = utc(own) if own is not None else now
        pen.revise(key, record)
        pen.ts = now

    def _usage(self, key: str, members: dict[str, Raw], pointer: str) -> None:
        tokens = members.get("tokens", ABSENT)
        told = numbers(value_of(tokens))
        if not isinstance(told, list) or not told:
            return
        if self._is_new(f"usage {key}", bytes(tokens), "usage", f"{pointer}/tokens") is not None:
            counts = [Count(name=one["name"], value=one["value"]) for one in told]
            record = Usage(
                scope="inference", counts=counts, native=self._pen.native("usage", f"{pointer}/tokens")
            )
            self._pen.revise(f"usage {key}", record)

    # -- calls and results --------------------------------------------------------------------------------------

    def _call(self, item: CallItem) -> None:
        pen = self._pen
        if self._is_new(f"item {item.call_id}", bytes(item.raw), "call", item.pointer) is None:
            return
        members = item.members
        arguments = members.get("args", ABSENT)
        asked = bytes(members.get("name", ABSENT)) + bytes(arguments)
        if self._is_new(f"call {item.call_id}", asked, "call", item.pointer) is not None:
            source = "derived" if item.derived else "native"
            record = ToolCall(call_id=item.call_id, call_id_source=source, requested_by="model")
            record.native = pen.native("call", item.pointer)
            if item.derived and item.native_id is not None:
                record.native.call_id = item.native_id
            record.name = text_of(members.get("name", ABSENT))
            if record.name is None:
                pen.capture(record, "name", "absent")
            tool = self._tools.get(record.name or "")
            record.kind = tool.kind if tool is not None else None
            self._put_input(record, arguments, f"{item.pointer}/args")
            pen.revise(f"call {item.call_id}", record)
        status = members.get("status", ABSENT)
        if status and not is_null(status):
            self._result(item)

    def _put_input(self, record: ToolCall, raw: Raw, pointer: str) -> None:
        if not raw:
            self._pen.capture(record, "input", "absent")
            return
        exact = self._pen.exact(pointer)
        data = bytes(raw) if exact is None else exact.encode()
        if lossless.lossless(data):
            record.input = Raw(data)
        else:
            record.input_text = data.decode()

    def _result(self, item: CallItem) -> None:
        pen, members = self._pen, item.members
        rule = first(self._registry.status, None, {}, {"status": value_of(members["status"])})
        if rule is None or rule.then is None:
            return
        record = ToolResult(
            linkage="derived" if item.derived else "exact", status=rule.then, call_id=item.call_id
        )
        if item.derived and item.native_id is not None:
            record.native_call_id = item.native_id
        record.native = pen.native("result", item.pointer)
        result = members.get("result", ABSENT)
        if result and not is_null(result) and pen.inline(record, "raw", result, f"{item.pointer}/result"):
            record.raw = result
        self._put_display(record, item)
        self._put_error(record, result, rule.then)
        sent = self._survey.delivered(item.native_id)
        parts = self._sent(sent) if sent is not None else None
        if sent is not None and parts is not None:
            record.content = parts
            record.native.refs.append(pen.place(sent.place, "sent", sent.pointer))
        else:
            pen.capture(record, "content", "absent", reason=NOT_SENT)
        self._revise_at(f"result {item.call_id}", record, members)
        self._change(item, rule.then)

    def _put_error(self, record: ToolResult, result: Raw, status: str) -> None:
        for part in items_of(result):
            words = text_of(part_at(part, "functionResponse/response/error"))
            if words is not None and status != "completed":
                record.error = Error(message=words)

    def _put_display(self, record: ToolResult, item: CallItem) -> None:
        pen = self._pen
        display = item.members.get("resultDisplay", ABSENT)
        words = text_of(display)
        grid = grid_text(display)
        if words is not None:
            parts = [text_part(words)]
        elif grid is not None:
            parts = [text_part(grid)]
        elif display and not is_null(display):
            parts = [_json_part(display)]
        else:
            return
        if pen.inline(record, "displayContent", display, f"{item.pointer}/resultDisplay"):
            record.display_content = parts

    def _sent(self, sent: Sent) -> list[Part] | None:
        """The response as the user message has it: its text where it is one, else its JSON."""
        place = sent.place
        data = self._pen.veil.read(place.source, place.offset, place.size)
        try:
            unit: Any = lossless.decode(data)
        except lossless.NotJson:
            return None
        for step in sent.pointer.strip("/").split("/"):
            unit = unit[int(step)] if isinstance(unit, list) else unit[step]
        if not isinstance(unit, dict) or "response" not in unit:
            return None
        response = unit["response"]
        if isinstance(response, dict) and len(response) == 1:
            ((name, word),) = response.items()
            if name in SAYS and isinstance(word, str) and word and not lossless.has_lone_surrogate(word):
                return [text_part(word)]
        text = lossless.encode_clean(response)
        return [Part(type="json", value=Raw(text))] if lossless.lossless(text) else None

    def _change(self, item: CallItem, status: str) -> None:
        """The file change that the display shows, with its patch as supplied."""
        display = members_of(item.members.get("resultDisplay", ABSENT))
        path, patch = text_of(display.get("filePath", ABSENT)), display.get("fileDiff", ABSENT)
        if not path or text_of(patch) is None:
            return
        pen = self._pen
        new = value_of(display.get("isNewFile", ABSENT))
        change = Change(path=pen.path(path), patch=Patch(format="unified", value=Raw(bytes(patch))))
        change.change = {True: "add", False: "modify"}.get(new) if isinstance(new, bool) else None
        state = "applied" if status == "completed" else "unknown"
        record = FileChange(scope="call", call_id=item.call_id, state=state, changes=[change])
        record.native = pen.native("change", f"{item.pointer}/resultDisplay")
        pen.revise(f"change {item.call_id}", record)

    def _response(self, raw: Raw, pointer: str) -> None:
        """A function response in a user message; alone it is a result without a call."""
        pen = self._pen
        members = members_of(raw)
        name = call_id_of(members)
        if name is not None and name in self._survey.called:
            pen.cited()
            self._cite(name, pointer)
            return
        key = f"orphan {name or digest(bytes(raw))}"
        if self._is_new(key, bytes(raw), "result", pointer) is None:
            return
        response = members.get("response", ABSENT)
        words = text_of(part_at(response, "error"))
        record = ToolResult(linkage="exact" if name is not None else "none", status="unknown", call_id=name)
        if words is not None:
            record.status, record.error = "failed", Error(message=words)
        record.native = pen.native("orphan", pointer)
        if response and pen.inline(record, "raw", response, f"{pointer}/response"):
            record.raw = response
        sent = self._survey.delivered(name)
        here = pen.unit.line.offset + pen.unit.start
        parts = None
        if sent is not None and (sent.place.offset, sent.pointer) == (here, pointer):
            parts = self._sent(sent)
        if parts is not None:
            record.content = parts
        else:
            pen.capture(record, "content", "absent", reason=NOT_SENT)
        pen.revise(key, record)

    def _cite(self, name: str, pointer: str) -> None:
        """Says which line tells the model; the result that was sent cites it, any other copy is kept as it is."""
        sent = self._survey.delivered(name)
        here = self._pen.unit.line.offset + self._pen.unit.start
        cited = sent is not None and (sent.place.offset, sent.pointer) == (here, pointer)
        if sent is None or not cited or self._sent(sent) is None:
            self._pen.written -= 1


def _json_part(raw: Raw) -> Part:
    if lossless.fits(bytes(raw)) and lossless.readable(bytes(raw)):
        return Part(type="json", value=Raw(bytes(raw)))
    return text_part(bytes(raw).decode("utf-8", "replace"))


def grid_text(raw: Raw) -> str | None:
    """The text of a terminal's grid: lines of pieces with colours; None for anything else."""
    lines = []
    for line in items_of(raw):
        if mark(line) != b"[":
            return None
        pieces = [text_of(members_of(piece).get("text", ABSENT)) for piece in items_of(line)]
        if any(piece is None for piece in pieces):
            return None
        lines.append("".join(piece for piece in pieces if piece is not None))
    return "\n".join(lines) if lines else None


def _name_of(line: ChatLine) -> str:
    if line.rewind:
        return "$rewindTo"
    if line.set:
        return "$set/" + "+".join(sorted(members_of(line.set))[:8])
    if is_head(line):
        return "metadata"
    return line.type if isinstance(line.type, str) else "line"
