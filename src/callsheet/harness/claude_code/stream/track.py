"""One stream of a fold: the session's own conversation, or an agent's.

Owns the writers of that stream and the way of each conversation frame, system frame and result frame to them. Frames
are turned into the shape of stored lines, so that the writers of the stored importer make the records of both.

Must never know: which frames belong to which stream, the control protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.counts import counts_of
from callsheet.harness._port.parts import ABSENT, items_of, members_of, text_of, value_of, whole_number_of
from callsheet.harness._port.pen import Pen, amount, number, raw_json
from callsheet.harness.claude_code import blocks
from callsheet.harness.claude_code.attached import Attached
from callsheet.harness.claude_code.calls import Told
from callsheet.harness.claude_code.events import Events, Lines
from callsheet.harness.claude_code.shapes import CALLS, NativeBlock, NativeMessage, is_text, text
from callsheet.harness.claude_code.stream.asks import Asks
from callsheet.harness.claude_code.stream.hooks import Hooks
from callsheet.harness.claude_code.stream.pieces import Pieces
from callsheet.harness.claude_code.stream.seen import FrameSeen
from callsheet.harness.claude_code.stream.shapes import Frame, line_of
from callsheet.harness.claude_code.stream.sides import FrameAsides, FrameResults
from callsheet.harness.claude_code.talk import Talk
from callsheet.records import Compaction, Error, Message, Ref, Turn, Usage
from callsheet.registry import Registry, StateRule

SAID = frozenset({"thinking", "redacted_thinking", "image", "document"})
"""Types of blocks beside text and calls that become records of what the model said."""


class FrameEvents(Events):
    """Events of one stream."""

    def usage(self, message: NativeMessage) -> None:
        """A frame carries the usage that its message began with; what it came to, other frames say."""


class FrameTalk(Talk):
    """Messages, calls and results of one stream.

    Attributes:
        own: The arguments of the call at hand, as the model wrote them.
        titles: Display names by call id.
    """

    own: bytes | None = None
    titles: Mapping[str, str] = MappingProxyType({})

    def told(self, block: NativeBlock) -> Told:
        """The model's own text and the display name."""
        return Told(self.own, self.titles.get(block.id) if isinstance(block.id, str) else None)

    def prompt(self, frame: Frame) -> None:
        """What the host sent for the agent to work on."""
        message = members_of(frame.members().get("message", ABSENT))
        if "content" not in message:
            return
        record = Message(
            author="user",
            content=blocks.parts(value_of(message["content"]), self._pen.desk),
            message_id=text_of(message.get("id", ABSENT)),
            native=self._pen.native("prompt", "/message/content"),
        )
        self._exact(record, "/message/content")
        self._pen.write(record)


class Track:
    """The writers of one stream.

    Args:
        desk: Keeps blobs, takes diagnostics.
        pen: Writes the stream.
        registry: The tables.
        version: The agent's version, as ``init`` says.
    """

    def __init__(self, desk: Desk, pen: Pen, registry: Registry, version: str | None) -> None:
        self.pen = pen
        self.version = version
        self.seen = FrameSeen()
        lines = Lines(registry)
        self.asks = Asks(pen, self.seen.denials)
        self.hooks = Hooks(pen, registry)
        self.pieces = Pieces(pen)
        self.events = FrameEvents(pen, self.seen, registry, lines)
        self.asides = FrameAsides(pen, self.seen, registry)
        self.asides.begin(self.seen)
        self.results = FrameResults(
            pen,
            self.seen,
            registry,
            Attached(desk, ()),
            frozenset(),
            self.asides.is_agent,
            self.asks.was_asked,
        )
        self.results.begin(self.seen)
        self.talk = FrameTalk(pen, self.seen, registry, lines, self.events, self.results, self.asides)
        self._turn: tuple[str, list[Ref]] | None = None
        self._turns = [row for row in registry.terminal_status if row.entity == "turn"]

    # -- conversation -------------------------------------------------------------------------------------------

    def assistant(self, frame: Frame) -> None:
        """A frame with a completed block (or several) of a model message."""
        line = line_of(frame, self.version)
        message = line.message
        if message is None:
            return
        inference = text(message.id)
        pen, listed = self.pen, message.content if isinstance(message.content, list) else []
        by_model = message.model != "<synthetic>" and line.isApiErrorMessage is not True
        if by_model and (isinstance(message.content, str) or any(_is_said(block) for block in listed)):
            self.results.replied(inference)
        self.talk.titles = self.seen.tools(frame.native.tool_use_meta)
        for index, block in enumerate(listed):
            refs, own = self.pieces.complete(block)
            pen.trail += refs
            if block.type in CALLS:
                self.talk.own = own if len(listed) == 1 else None
                self.seen.identify(block)
                if self.seen.add(block, inference, pen.unit.line.offset + pen.unit.start):
                    call_id = block.id
                    assert isinstance(call_id, str)
                    self.results.another_call(call_id, pen.ref("twin", f"/message/content/{index}"))
        self.talk.assistant(line)
        self.talk.own, self.talk.titles, pen.trail = None, {}, []

    def user(self, frame: Frame) -> None:
        """A user frame: results, or words."""
        if not frame.from_agent:
            self.talk.prompt(frame)
            return
        line = line_of(frame, self.version)
        self.talk.user(line)
        blocks_of = line.message.content if line.message is not None else None
        for index, block in enumerate(blocks_of if isinstance(blocks_of, list) else []):
            call_id = block.tool_use_id
            if line.toolDenialKind is not None and isinstance(call_id, str) and self.asides.ran(call_id):
                word = f"non_execution_kind says {line.toolDenialKind!r:.80}, but a task of block {index}'s call began"
                self.pen.desk.diagnose(
                    "denial_contradicted", word, self.pen.source, self.pen.unit.line.number
                )

    # -- what a turn came to --------------------------------------------------------------------------------------

    def message_delta(self, frame: Frame) -> bool:
        """The usage that a message came to."""
        event = members_of(frame.native.event)
        if text_of(event.get("type", ABSENT)) != "message_delta":
            return False
        counts = counts_of(value_of(event.get("usage", ABSENT)))
        if not counts:
            return False
        told = text_of(frame.members().get("api_message_id", ABSENT))
        self.pen.write(
            Usage(
                scope="inference",
                counts=counts,
                inference_id=told,
                native=self.pen.native("delta", "/event/usage"),
            )
        )
        return True

    def begin_turn(self, frame: Frame) -> None:
        """``init``: a turn begins, unless one runs."""
        name = text(frame.native.uuid)
        if self._turn is None and name is not None:
            native = self.pen.native("begin")
            self._turn = (name, native.refs)
            record = Turn(turn_id=name, id_source="derived", status="running", native=native)
            self.pen.revise("turn", record)

    def result(self, frame: Frame) -> bool:
        """The end of a turn, with what it used."""
        self.pieces.flush()
        members = frame.members()
        name = text(frame.native.uuid)
        if name is None:
            return False
        begun = self._turn or (name, [])
        native = self.pen.native("turn")
        native.refs = [*native.refs, *begun[1]]
        record = Turn(
            turn_id=begun[0],
            id_source="derived",
            status=next((row.then for row in self._turns if _says(members, row)), "unknown"),
            reason=text_of(members.get("terminal_reason", ABSENT)) or text_of(members.get("subtype", ABSENT)),
            duration_ms=amount(value_of(members.get("duration_ms", ABSENT))),
            native=native,
        )
        if value_of(members.get("is_error", ABSENT)) is True:
            words = next((text_of(one) for one in items_of(members.get("errors", ABSENT))), None)
            words = words or text_of(members.get("result", ABSENT))
            record.error = Error(message=words) if words else None
        self.pen.revise("turn", record)
        self.pen.forget("turn")
        self._turn = None
        self._usage(members)
        return True

    def _usage(self, members: dict[str, Raw]) -> None:
        counts = counts_of(value_of(members.get("usage", ABSENT)))
        if counts:
            self.pen.write(Usage(scope="turn", counts=counts, native=self.pen.native("spent", "/usage")))
        models = members_of(members.get("modelUsage", ABSENT))
        totals = counts_of(value_of(members.get("modelUsage", ABSENT)))
        if totals:
            record = Usage(scope="session", cumulative=True, counts=totals)
            record.native = self.pen.native("models", "/modelUsage")
            if len(models) == 1:
                window = members_of(next(iter(models.values()))).get("contextWindow", ABSENT)
                found = number(whole_number_of(window))
                record.context_window = found if isinstance(found, int) else None
            self.pen.write(record)

    # -- system frames ------------------------------------------------------------------------------------------

    def system(self, frame: Frame, begin_agent: Callable[[str, str | None], None]) -> bool:
        """A system frame, by its subtype; False for one that nothing maps."""
        members = frame.members()
        match frame.native.subtype:
            case "hook_started":
                return self.hooks.run(members, False)
            case "hook_response":
                return self.hooks.run(members, True)
            case "permission_denied":
                call_id = text_of(members.get("tool_use_id", ABSENT))
                if call_id is not None:
                    self.seen.denials[call_id] = (self.pen.ref("denial"),)
                return False
            case "task_started":
                return self.asides.task_started(members, begin_agent)
            case "task_updated":
                patch = members_of(members.get("patch", ABSENT))
                status = text_of(patch.get("status", ABSENT))
                return self.asides.task_ended(members, status, value_of(patch.get("end_time", ABSENT)))
            case "task_notification":
                return self.asides.task_ended(members, text_of(members.get("status", ABSENT)), None)
            case "informational":
                self.events.system(line_of(frame, self.version))
                return bool(self.pen.written)
            case "compact_boundary":
                self._compacted(members.get("compact_metadata", ABSENT))
                return True
            case _:
                return False

    def _compacted(self, metadata: Raw) -> None:
        self.results.context_begins_anew()
        told = members_of(metadata)
        record = Compaction(trigger=text_of(told.get("trigger", ABSENT)), native=self.pen.native("boundary"))
        if told and self.pen.inline(record, "before", metadata, "/compact_metadata"):
            record.before = raw_json(metadata)
        self.pen.write(record)

    # -- ends ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The end of the log: what waits is written as it stands."""
        self.pieces.flush()
        self.asides.settle()


def _is_said(block: NativeBlock) -> bool:
    """Whether a block becomes a record of what the model said."""
    if block.type == "text":
        return is_text(block.text)
    return isinstance(block.type, str) and (block.type in CALLS or block.type in SAID)


def _says(members: dict[str, Raw], row: StateRule) -> bool:
    """Whether a result frame has the word that a row of the table is about."""
    name = (row.pointer or "").removeprefix("/")
    return name in members and value_of(members[name]) == row.value
