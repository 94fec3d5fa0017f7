"""The second pass over a session: parts to records.

Owns: what each type of part becomes, the outcome of a tool's state, its times and its exit code from the fields
made for them, file changes, plans and agents that a tool's metadata tells of.

Must never know: where pieces come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Raw

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.cells import Damage, RowPen
from callsheet.harness._port.parts import (
    ABSENT,
    is_null,
    items_of,
    members_of,
    part_at,
    text_of,
    value_of,
    whole_number_of,
)
from callsheet.harness._port.pen import number, raw_json, utc_of_ms
from callsheet.harness.opencode.feed import Trouble
from callsheet.harness.opencode.shapes import Piece
from callsheet.harness.opencode.survey import Survey
from callsheet.records import (
    Change,
    Compaction,
    Count,
    Error,
    Exec,
    FileChange,
    Message,
    Part,
    Patch,
    Plan,
    PlanEntry,
    Reasoning,
    Subagent,
    ToolCall,
    ToolResult,
    Usage,
    text_part,
)
from callsheet.records.bundle import stream_id
from callsheet.registry import Registry, first
from callsheet.registry.versions import in_ranges
from callsheet.registry.via import base64, numbers
from callsheet.wire import lossless

AUTHORS = {"user": "user", "assistant": "model"}
UNKNOWN = "unknown"
"""The author of a part whose message is gone, or has a role that no version we know writes."""
NOT_SENT = "not known to have been sent: no entry for this version, or the model never went on"
CHANGES = {"add": "add", "update": "modify", "modify": "modify", "delete": "delete", "move": "move"}
LOW, HIGH = -(1 << 31), (1 << 32) - 1
INVALID = "invalid"
"""What the final row says in place of the name of a tool that does not exist."""


class Chat:
    """Writes the stream of one session."""

    def __init__(self, pen: RowPen, survey: Survey, registry: Registry, streams: set[str]) -> None:
        self._pen = pen
        self._survey = survey
        self._registry = registry
        self._tools = registry.tools()
        self._version = text_of(survey.head("version"))
        self._streams = streams
        self._seen: Counter[str] = Counter()
        self._cited: set[str] = {asked.row for asked in survey.asked.values() if asked.row is not None}
        self._used: set[str] = set()
        self._parts: dict[str, Callable[[Piece], bool]] = {
            "text": self._text,
            "reasoning": self._reasoning,
            "file": self._file,
            "tool": self._tool,
            "step-finish": self._step,
            "patch": self._patch,
            "compaction": self._compaction,
        }

    def take(self, piece: Piece | Trouble) -> None:
        """Writes the records of a piece."""
        pen = self._pen
        if isinstance(piece, Trouble):
            if isinstance(piece.what, Damage):
                pen.broken(piece.source, piece.what)
            else:
                pen.gap(piece.source, piece.what)
            return
        pen.take(piece.source, piece.unit)
        pen.ts = utc_of_ms(whole_number_of(part_at(piece.raw, "time/created")))
        kind = text_of(piece.members.get("type", ABSENT)) or ""
        done = False
        if piece.what == "session":
            return  # the head cites it
        if piece.what == "message":
            done = self._message(piece)
            kind = f"message/{text_of(piece.members.get('role', ABSENT))}"
        elif piece.what == "part":
            pen.ts = self._time(piece)
            done = kind in self._parts and self._parts[kind](piece)
            kind = f"part/{kind}"
        elif piece.what == "event":
            done = piece.id in self._used
            kind = "event"
        else:
            kind = "todo" if "content" in piece.members else "other"
        if not done:
            pen.unmapped(kind, piece.raw, piece.pointer)

    def _time(self, piece: Piece) -> str | None:
        is_tool = text_of(piece.members.get("type", ABSENT)) == "tool"
        for where in ("state/time/start",) if is_tool else ("time/start", "time/created"):
            moment = utc_of_ms(whole_number_of(part_at(piece.raw, where)))
            if moment is not None:
                return moment
        return None

    # -- messages -----------------------------------------------------------------------------------------------

    def _message(self, piece: Piece) -> bool:
        pen, members = self._pen, piece.members
        done = False
        words = text_of(part_at(members.get("error", ABSENT), "data/message")) or text_of(
            part_at(members.get("error", ABSENT), "name")
        )
        if words:
            native = pen.native("error", f"{piece.pointer}/error")
            pen.write(
                Message(author="harness", content=[text_part(words)], message_id=piece.id, native=native)
            )
            done = True
        # What a model's message used stands in its step-finish parts; the message row only adds it up.
        return done

    def _role(self, piece: Piece) -> str:
        return self._survey.roles.get(piece.message or "", ("", None))[0]

    def _say(self, piece: Piece, parts: list[Part], where: str) -> bool:
        pen = self._pen
        author = AUTHORS.get(self._role(piece), UNKNOWN)
        if value_of(piece.members.get("synthetic", ABSENT)) is True:
            author = "harness"
        record = Message(author=author, content=parts, message_id=piece.message)
        record.native = pen.native("part", piece.pointer)
        known = self._survey.roles.get(piece.message or "")
        if known is not None:
            record.native.refs.append(known[1])
        pen.readable(record, "content", f"{piece.pointer}/{where}")
        pen.write(record)
        return True

    def _text(self, piece: Piece) -> bool:
        words = text_of(piece.members.get("text", ABSENT))
        return bool(words) and self._say(piece, [text_part(words or "")], "text")

    def _file(self, piece: Piece) -> bool:
        members = piece.members
        url, mime = text_of(members.get("url", ABSENT)), text_of(members.get("mime", ABSENT))
        name = text_of(members.get("filename", ABSENT))
        if url is None:
            return False
        head, _, tail = url.partition(";base64,")
        data = base64(tail) if head.startswith("data:") and tail else None
        if data is not None and mime is None:
            return False  # bytes of nobody knows what
        if data is not None:
            kind = "image" if (mime or "").startswith("image/") else "file"
            return self._say(
                piece,
                [Part(type=kind, mime_type=mime, blob=self._pen.desk.blob(data, mime), name=name)],
                "url",
            )
        return self._say(piece, [Part(type="resource_link", uri=url, name=name, mime_type=mime)], "url")

    def _reasoning(self, piece: Piece) -> bool:
        words = text_of(piece.members.get("text", ABSENT))
        if not words:
            return False
        pen = self._pen
        record = Reasoning(content=[text_part(words)], native=pen.native("part", piece.pointer))
        pen.readable(record, "content", f"{piece.pointer}/text")
        pen.write(record)
        return True

    def _step(self, piece: Piece) -> bool:
        pen, members = self._pen, piece.members
        told = numbers(value_of(members.get("tokens", ABSENT)))
        counts = (
            [Count(name=one["name"], value=one["value"]) for one in told] if isinstance(told, list) else []
        )
        cost = number(value_of(members.get("cost", ABSENT)))
        if cost is not None:
            counts.append(Count(name="cost", value=cost))
        if not counts:
            return False
        pen.write(Usage(scope="inference", counts=counts, native=pen.native("usage", piece.pointer)))
        return True

    def _patch(self, piece: Piece) -> bool:
        """Files that a step changed, as OpenCode's snapshots tell; no patch is stored."""
        pen = self._pen
        files = [text_of(item) for item in items_of(piece.members.get("files", ABSENT))]
        changes = [Change(path=pen.path(file)) for file in files if file]
        if not changes:
            return False
        record = FileChange(scope="turn", state="applied", changes=changes)
        record.native = pen.native("change", piece.pointer)
        pen.write(record)
        return True

    def _compaction(self, piece: Piece) -> bool:
        auto = value_of(piece.members.get("auto", ABSENT))
        trigger = {True: "auto", False: "manual"}.get(auto) if isinstance(auto, bool) else None
        self._pen.write(Compaction(trigger=trigger, native=self._pen.native("part", piece.pointer)))
        return True

    # -- calls and results --------------------------------------------------------------------------------------

    def _tool(self, piece: Piece) -> bool:
        pen = self._pen
        state = members_of(piece.members.get("state", ABSENT))
        call_id, source, native = self._survey.identity(piece, self._seen)
        record = ToolCall(call_id=call_id, call_id_source=source, requested_by="model")
        record.native = pen.native("call", piece.pointer)
        record.native.call_id = native
        record.name = text_of(piece.members.get("tool", ABSENT))
        asked = self._survey.asked.get(piece.id or "")
        renamed = asked is not None and record.name == INVALID and asked.name != INVALID
        if asked is not None and renamed:
            record.name = asked.name
            record.native.refs.append(asked.ref)
            self._used.add(asked.row or "")
        if record.name is None:
            pen.capture(record, "name", "absent")
        tool = self._tools.get(record.name or "")
        record.kind = tool.kind if tool is not None else None
        record.title = text_of(state.get("title", ABSENT))
        self._put_input(record, state, f"{piece.pointer}/state/input", renamed)
        pen.write(record)
        self._result(piece, state, call_id, source, native)
        self._aside(piece, state, call_id)
        return True

    def _put_input(self, record: ToolCall, state: dict[str, Raw], pointer: str, renamed: bool) -> None:
        raw = state.get("input", ABSENT)
        written = text_of(state.get("raw", ABSENT))
        if renamed:
            self._pen.capture(
                record, "input", "absent", reason="replaced by OpenCode's words about an unknown tool"
            )
        elif written and bytes(raw) == b"{}":
            record.input_text = written  # still being written when the session broke off
        elif not raw:
            self._pen.capture(record, "input", "absent")
        else:
            exact = self._pen.exact(pointer)
            data = bytes(raw) if exact is None else exact.encode()
            if lossless.lossless(data):
                record.input = Raw(data)
            else:
                record.input_text = data.decode()

    def _result(
        self, piece: Piece, state: dict[str, Raw], call_id: str, source: str, native: str | None
    ) -> None:
        pen = self._pen
        rule = first(
            self._registry.status,
            self._version,
            {},
            {"state": {"status": value_of(state.get("status", ABSENT))}},
        )
        if rule is None or rule.then is None:
            return
        linkage = "exact" if source == "native" else "derived"
        record = ToolResult(linkage=linkage, status=rule.then, call_id=call_id, native_call_id=native)
        record.native = pen.native("result", piece.pointer)
        self._put_output(record, piece, state)
        metadata = members_of(state.get("metadata", ABSENT))
        code = value_of(metadata.get("exit", ABSENT))
        if type(code) is int and LOW <= code <= HIGH:
            record.exec = Exec(exit_code=code)
        message = text_of(state.get("error", ABSENT))
        if message is not None:
            record.error = Error(message=message)
        self._put_times(record, state)
        pen.write(record)

    def _put_times(self, record: ToolResult, state: dict[str, Raw]) -> None:
        times = members_of(state.get("time", ABSENT))
        start, end = (whole_number_of(times.get(name, ABSENT)) for name in ("start", "end"))
        record.started_at, record.completed_at = utc_of_ms(start), utc_of_ms(end)
        record.ts = record.completed_at
        if record.started_at and record.completed_at and start is not None and end is not None:
            if end < start:
                record.completed_at = (
                    None  # the clock was set back: these are no two times of one run (ASR-261)
                )
            else:
                record.duration_ms = end - start

    def _put_output(self, record: ToolResult, piece: Piece, state: dict[str, Raw]) -> None:
        pen = self._pen
        output = text_of(state.get("output", ABSENT))
        sent = (
            output is not None
            and record.status == "completed"
            and self._has_entry()
            and self._survey.was_sent(piece)
        )
        kept: dict[str, Raw] = {name: state[name] for name in ("metadata", "attachments") if name in state}
        if sent and output is not None:
            record.content = [text_part(output)]
            pen.readable(record, "content", f"{piece.pointer}/state/output")
        else:
            pen.capture(record, "content", "absent", reason=NOT_SENT)
            kept = {**{name: state[name] for name in ("output", "error") if name in state}, **kept}
        if kept:
            self._put_raw(record, kept, f"{piece.pointer}/state")
        shown = text_of(part_at(state.get("metadata", ABSENT), "output"))
        if shown is not None and shown != output and len(shown) <= 1 << 16:
            record.display_content = [text_part(shown)]

    def _put_raw(self, record: ToolResult, kept: dict[str, Raw], pointer: str) -> None:
        """What the state of a call keeps of its result; where a part of that needs it, exactly in a blob (ASR-035)."""
        pen, raw = self._pen, raw_json(kept)
        exact = {name: pen.exact(f"{pointer}/{name}") for name in kept}
        odd = any(one is not None and not lossless.lossless(one.encode()) for one in exact.values())
        small = len(raw) <= INLINE_MOST and lossless.fits(bytes(raw))
        if small:
            record.raw = raw
        if odd or not small:
            members = (f'"{name}":{exact[name] or bytes(kept[name]).decode()}' for name in kept)
            data = ("{" + ",".join(members) + "}").encode()
            pen.capture(record, "raw", "external", blob=pen.desk.blob(data, "application/json"))

    def _has_entry(self) -> bool:
        return any(in_ranges(entry.versions, self._version) for entry in self._registry.content)

    # -- what a tool's metadata tells of ------------------------------------------------------------------------

    def _aside(self, piece: Piece, state: dict[str, Raw], call_id: str) -> None:
        metadata = members_of(state.get("metadata", ABSENT))
        done = text_of(state.get("status", ABSENT)) == "completed"
        pointer = f"{piece.pointer}/state/metadata"
        changes = self._changes(metadata)
        if changes:
            record = FileChange(scope="call", call_id=call_id, changes=changes)
            record.state = "applied" if done else "unknown"
            record.native = self._pen.native("change", pointer)
            self._pen.write(record)
        agent = text_of(metadata.get("sessionId", ABSENT))
        if agent:
            told = Subagent(agent_id=agent, call_id=call_id, status="completed" if done else "unknown")
            told.stream = stream_id(agent) if agent in self._streams else None
            told.name = text_of(part_at(state.get("input", ABSENT), "description"))
            told.native = self._pen.native("agent", pointer)
            self._pen.revise(f"agent {agent}", told)
        if "todos" in metadata:
            self._plan(metadata["todos"], call_id, pointer)

    def _plan(self, todos: Raw, call_id: str, pointer: str) -> None:
        entries = []
        for item in items_of(todos):
            members = members_of(item)
            words = text_of(members.get("content", ABSENT))
            if words is not None:
                entries.append(PlanEntry(text=words, status=text_of(members.get("status", ABSENT))))
        record = Plan(plan_id="todo", id_source="derived", call_id=call_id, entries=entries)
        record.native = self._pen.native("plan", f"{pointer}/todos")
        self._pen.revise("plan", record)

    def _changes(self, metadata: dict[str, Raw]) -> list[Change]:
        pen = self._pen
        found = []
        for item in items_of(metadata.get("files", ABSENT)):
            told = members_of(item)
            path = text_of(told.get("filePath", ABSENT)) or text_of(told.get("file", ABSENT))
            if path:
                change = Change(
                    path=pen.path(path), change=CHANGES.get(text_of(told.get("type", ABSENT)) or "")
                )
                change.patch = _patch_of(told.get("diff", ABSENT)) or _patch_of(told.get("patch", ABSENT))
                moved = text_of(told.get("movePath", ABSENT))
                if moved:
                    change.old_path, change.path = change.path, pen.path(moved)
                found.append(change)
        single = members_of(metadata.get("filediff", ABSENT))
        path = text_of(single.get("file", ABSENT))
        if path and not found:
            patch = _patch_of(single.get("patch", ABSENT)) or _patch_of(metadata.get("diff", ABSENT))
            found.append(Change(path=pen.path(path), patch=patch))
        path = text_of(metadata.get("filepath", ABSENT))
        exists = value_of(metadata.get("exists", ABSENT))
        if path and not found and isinstance(exists, bool):
            found.append(Change(path=pen.path(path), change="modify" if exists else "add"))
        return found


def _patch_of(raw: Raw) -> Patch | None:
    if not raw or is_null(raw) or not text_of(raw):
        return None
    return Patch(format="unified", value=Raw(bytes(raw)))
