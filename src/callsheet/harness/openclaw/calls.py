"""tool_call records: of the model, of the code it wrote, of a person's own command (ASR-250 to 256, 274, 275).

Owns: the id of a call (decision 3), the arguments with or without loss (ASR-254), the kind from the registry's exact
names (ASR-253), who asked (ASR-274), the cell that a nested call was made in (ASR-275).

Must never know: results.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port.parts import is_null
from callsheet.harness._port.pen import raw_json
from callsheet.harness.openclaw.pen import TreePen, keep
from callsheet.harness.openclaw.shapes import Block, Message, Nested, text
from callsheet.harness.openclaw.survey import Survey
from callsheet.harness.openclaw.traced import Traced
from callsheet.records import ToolCall
from callsheet.registry import Registry
from callsheet.wire import lossless

NO_NAME = "the call has no name in the source"
NO_TOOL = "a person's own command is no call of a tool by name"


class Calls:
    """Writes the calls of one session."""

    def __init__(self, pen: TreePen, survey: Survey, registry: Registry, traced: Traced) -> None:
        self._pen = pen
        self._traced = traced
        self._survey = survey
        self._tools = registry.tools()

    def of_model(self, block: Block, index: int, at: int, inference: str | None) -> str:
        """Writes the call of one block of an assistant message; returns its id."""
        pointer = f"/message/content/{index}"
        record = self._record(block.id, at, f"/{index}")
        record.requested_by = "model"
        record.inference_id = inference
        record.native = self._pen.native("call", pointer)
        if record.call_id_source == "derived" and isinstance(block.id, str):
            record.native.call_id = block.id
        self._put_name(record, block.name)
        self._put_input(record, block.arguments, f"{pointer}/arguments")
        self._traced.called(record, block.id)
        self._pen.write(record)
        return record.call_id

    def _record(self, call_id: object, at: int, part: str) -> ToolCall:
        if isinstance(call_id, str):
            name = self._survey.name(call_id, at)
            return ToolCall(call_id=name.call_id, call_id_source=name.source)
        return ToolCall(call_id=f"#{self._own()}{part}", call_id_source="derived")

    def _own(self) -> str:
        """Id of the entry at hand, or its place where it has none."""
        entry = self._pen.unit.native
        own = text(entry.id) if entry is not None else None
        return own or f"{self._pen.source.id}.{self._pen.unit.line.number}"

    def _put_name(self, record: ToolCall, name: object) -> None:
        if isinstance(name, str):
            record.name = name
            tool = self._tools.get(name)
            record.kind = tool.kind if tool else None
        else:
            self._pen.capture(record, "name", "absent", reason=NO_NAME)

    def of_code(self, nested: Nested, at: int) -> str:
        """Writes a call that a code cell made; returns its id."""
        pen = self._pen
        record = self._record(nested.toolCallId, at, "")
        record.requested_by = "code"
        record.native = pen.native("nested", "/message/details")
        if record.call_id_source == "derived" and isinstance(nested.toolCallId, str):
            record.native.call_id = nested.toolCallId
        parent = text(nested.parentToolCallId)
        if parent is not None and not self._survey.is_shared(parent):
            record.parent_call_id = parent
        elif parent is not None:
            record.parent_call_id = self._survey.answered(parent, at)
            keep(record.native, parentToolCallId=parent)
        self._put_name(record, nested.toolName)
        self._put_input(record, nested.input, "/message/details/input")
        self._traced.called(record, nested.toolCallId)
        pen.write(record)
        return record.call_id

    def of_person(self, message: Message) -> str:
        """Writes a command that a person ran themselves (the pi family's ``!``); returns its id."""
        pen = self._pen
        record = ToolCall(call_id=f"#{self._own()}", call_id_source="derived", requested_by="user")
        record.native = pen.native("bash", "/message")
        pen.capture(record, "name", "absent", reason=NO_TOOL)
        if isinstance(message.command, str):
            self._put_input(record, raw_json({"command": message.command}), "/message")
        else:
            pen.capture(record, "input", "absent")
        pen.write(record)
        return record.call_id

    def _put_input(self, record: ToolCall, raw: Raw, pointer: str) -> None:
        """Sets ``input`` or, where that would lose something, ``inputText`` (ASR-254)."""
        if not raw or is_null(raw):
            self._pen.capture(record, "input", "absent")
            return
        exact = self._pen.exact(pointer) if pointer != "/message" else None
        data = bytes(raw) if exact is None else exact.encode()
        if lossless.lossless(data):
            record.input = Raw(data)
        else:
            record.input_text = data.decode()
