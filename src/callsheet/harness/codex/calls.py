"""tool_call records, from response items and from executions that are their own call (ASR-250 to 256, 274, 275).

Owns: the id of a call that has none, the arguments with or without loss (ASR-254), the kind from the registry's exact
names and item types (ASR-253), who asked (ASR-274) and what is known of the provider (decision 9).

Must never know: results.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port.pen import Pen, verbatim
from callsheet.harness.codex.calltable import CALL, IDENTITY, ITEM, OUTPUT
from callsheet.harness.codex.executions import Execution, arguments_of, input_of, provider_of
from callsheet.harness.codex.shapes import ABSENT, Payload, mark, members_of, text, text_of
from callsheet.harness.codex.survey import Survey
from callsheet.harness.codex.trace import Trace
from callsheet.records import Provider, Ref, ToolCall
from callsheet.registry import Item, Registry
from callsheet.wire import lossless

MCP_PREFIX = "mcp__"
NESTED_PREFIX = "exec-"
"""How Codex begins the id of a call that a code cell makes; the model's own calls have the provider's ids."""
NO_NAME = "the item's type stands in place of a tool name"


class Calls:
    """Writes the calls of one thread."""

    def __init__(self, pen: Pen, survey: Survey, registry: Registry, trace: Trace | None) -> None:
        self._pen = pen
        self._survey = survey
        self._tools = registry.tools()
        self._items = {row.type: row for row in registry.item}
        self._trace = trace
        self._written: set[str] = set()

    def of_model(self, payload: Payload, pointer: str) -> str:
        """Writes the call of a response item; returns its id."""
        pen = self._pen
        call_id, source = self._id(payload)
        record = ToolCall(
            call_id=call_id, call_id_source=source, requested_by="model", native=pen.native("call", pointer)
        )
        assert record.native is not None
        record.native.namespace = text(payload.namespace)
        if source == "derived" and payload.type == "web_search_call":
            event = self._survey.search_event(payload.action)
            if event is not None:
                record.native.refs.append(pen.place(event.place, "search", event.pointer))
        if text(payload.id) and payload.id != call_id:
            record.native.id = payload.id
        name = payload.name if isinstance(payload.name, str) else None
        if name is not None:
            tool = self._tools.get(name)
            record.name, record.kind = name, tool.kind if tool else None
            record.provider = self._provider(payload, name, call_id)
        else:
            item = self._items.get(payload.type or "")
            record.kind = item.kind if item else None
            pen.capture(record, "name", "absent", reason=NO_NAME if item else None)
        put_input(pen, record, payload, pointer)
        pen.write(record)
        return call_id

    def _id(self, payload: Payload) -> tuple[str, str]:
        if isinstance(payload.call_id, str):
            return payload.call_id, "native"
        hosted = payload.type in ("local_shell_call", "web_search_call", "image_generation_call")
        if hosted and isinstance(payload.id, str):
            return payload.id, "native"
        if payload.type == "web_search_call":
            event = self._survey.search_event(payload.action)
            if event is not None:
                return event.call_id, "derived"
        return f"#{self._pen.source.id}.{self._pen.unit.line.number}", "derived"

    def _provider(self, payload: Payload, name: str, call_id: str) -> Provider | None:
        """An MCP tool by its namespace or composite name; server and tool stand on the execution, if anywhere."""
        namespace = payload.namespace if isinstance(payload.namespace, str) else ""
        if not (namespace.startswith(MCP_PREFIX) or name.startswith(MCP_PREFIX)):
            return None
        calls = self._survey.calls
        if (
            calls.has(call_id, IDENTITY)
            and calls.count(CALL, call_id) == 1
            and calls.count(ITEM, call_id) == 1
        ):
            return None  # the result names both (ASR-276)
        return Provider(kind="mcp", identity="unknown")

    # -- calls that only their execution tells of ---------------------------------------------------------------

    def of_execution(self, execution: Execution) -> bool:
        """Writes the call of an execution that no response item asked for.

        Returns:
            Whether code that the model wrote made it.
        """
        pen = self._pen
        call_id = execution.call_id
        nested = call_id is not None and call_id.startswith(NESTED_PREFIX)
        if call_id is None or call_id in self._written:
            return nested
        if self._survey.calls.count(ITEM, call_id) + self._survey.calls.count(OUTPUT, call_id) > 1:
            self._written.add(call_id)
        record = own_call(pen, self._items, execution)
        record.call_id, record.call_id_source = call_id, "native"
        if execution.fields.source == "user_shell":
            record.requested_by = "user"
        elif nested:
            record.requested_by = "code"
            assert record.native is not None
            record.parent_call_id = self._parent(call_id, record.native.refs)
        pen.write(record)
        return nested

    def _parent(self, call_id: str, refs: list[Ref]) -> str | None:
        """The cell that made a call, where a trace recorded it (ASR-275)."""
        found = self._trace.parent(call_id) if self._trace is not None else None
        if found is None:
            return None
        refs += found.refs
        return found.call_id


def put_input(pen: Pen, record: ToolCall, payload: Payload, pointer: str) -> None:
    """The arguments of a response item that is a call, as the source has them."""
    kind = payload.type
    if kind == "custom_tool_call":
        _put_text(pen, record, payload.input, f"{pointer}/input")
    elif kind == "function_call" or kind == "tool_search_call":
        _put_arguments(pen, record, payload.arguments, f"{pointer}/arguments")
    else:
        put_json(pen, record, payload.action, f"{pointer}/action")


def _put_arguments(pen: Pen, record: ToolCall, raw: Raw, pointer: str) -> None:
    """Arguments that the source keeps as JSON text: parsed where nothing is lost by it."""
    words = text_of(raw)
    if words is None:
        put_json(pen, record, raw, pointer)
        return
    data = words.encode("utf-8", "surrogatepass")
    if pen.unit.exact is None and data and lossless.lossless(data):
        record.input = Raw(data)
    else:
        _put_text(pen, record, raw, pointer)


def _put_text(pen: Pen, record: ToolCall, raw: Raw, pointer: str) -> None:
    if mark(raw) != b'"':
        put_json(pen, record, raw, pointer)
        return
    record.input_text = verbatim(raw)
    pen.readable(record, "inputText", pointer)


def put_json(pen: Pen, record: ToolCall, raw: Raw, pointer: str) -> None:
    """Arguments that the source has as a value; as text where a value would lose something (ASR-254)."""
    if not raw or bytes(raw) == b"null":
        pen.capture(record, "input", "absent")
        return
    exact = pen.exact(pointer)
    data = bytes(raw) if exact is None else exact.encode()
    if lossless.lossless(data):
        record.input = Raw(data)
    else:
        record.input_text = data.decode()


def own_call(pen: Pen, items: dict[str, Item], execution: Execution) -> ToolCall:
    """The call that an execution is all there is of, without its id."""
    fields = execution.fields
    native = pen.native(execution.role, execution.pointer)
    native.namespace = text(fields.namespace)
    record = ToolCall(call_id="", call_id_source="native", native=native)
    name = text(fields.tool) if execution.kind in _NAMED else None
    if name is None and fields.invocation:
        name = text_of(members_of(fields.invocation).get("tool", ABSENT))
    record.name = name
    if name is None:
        pen.capture(record, "name", "absent", reason=NO_NAME)
    item = items.get(execution.kind)
    record.kind = item.kind if item else None
    record.provider = provider_of(fields)
    arguments, where = arguments_of(execution)
    if arguments:
        put_json(pen, record, arguments, f"{execution.pointer}{where}")
        return record
    asked = input_of(execution)
    if asked is None:
        pen.capture(record, "input", "absent")
    elif lossless.lossless(bytes(asked)):
        record.input = asked
    else:
        # Put together from several members: no text of the source says it whole.
        pen.capture(record, "input", "external", blob=pen.desk.blob(bytes(asked), "application/json"))
    return record


_NAMED = frozenset(
    {
        *("McpToolCall", "DynamicToolCall", "dynamic_tool_call_response", "mcp_tool_call"),
        *("mcpToolCall", "dynamicToolCall"),
    }
)
"""Executions whose ``tool`` is the tool's own name."""
