"""Calls and results of one thread, from items and, where they are sent, from raw response items.

Owns: which frames speak of one call (a raw response item is the exact call, an item without one is the call itself),
the result over its states (an item's end, the output that the model gets, the proof that it got it), ids that stand
on several calls (such results are ambiguous; a result written before the second call came is revised, and nothing is
derived), and the last that was shown of a call whose turn ended before it did (decision 14).

Must never know: requests, messages. Order is no evidence.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, NamedTuple

from msgspec import UNSET, Raw, Struct, field
from msgspec.structs import replace

from callsheet.harness._port.parts import ABSENT, is_null, text_of, value_of
from callsheet.harness._port.pen import Pen, amount, utc_of_ms
from callsheet.harness.codex import contents
from callsheet.harness.codex.agents import Agents
from callsheet.harness.codex.app_server.shapes import Item, execution_of
from callsheet.harness.codex.app_server.terminals import Terminals
from callsheet.harness.codex.calls import MCP_PREFIX, NESTED_PREFIX, NO_NAME, own_call, put_input
from callsheet.harness.codex.changes import STATES, file_change
from callsheet.harness.codex.executions import (
    Execution,
    exit_code,
    provider_of,
    put_error,
    put_exec,
    structured,
)
from callsheet.harness.codex.results import HOSTED, NESTED, NO_CAPTURE, NO_REPLY, SECRET, Statuses, put_raw
from callsheet.harness.codex.shapes import Payload, decoded, loosely, payload_decoder, string, text
from callsheet.records import Native, Preview, Provider, Ref, ToolCall, ToolResult
from callsheet.registry import Registry
from callsheet.registry.versions import in_ranges
from callsheet.registry.when import matches
from callsheet.wire import lossless

CALLS = frozenset(
    {
        *("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"),
        "image_generation_call",
    }
)
"""Raw response items that are calls."""
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
"""Raw response items that are outputs."""
SHELL = "commandExecution"
KEPT_MOST = 64
"""Results that can still be revised when their id turns up on a second call."""
PIECES_MOST, SHOWN_MOST = 500, 64 * 1024
"""Deltas and bytes of output that are kept of a running call."""
NOT_TOLD = "only raw events tell what the model got"


class Piece(NamedTuple):
    """A delta of output."""

    ref: Ref
    text: str
    size: int
    ts: str | None


class Output(NamedTuple):
    """An output that the model was, or was to be, given."""

    raw: Raw
    exact: str | None
    ref: Ref
    ts: str | None


class Call(Struct):
    """What is known of one call while its turn runs."""

    key: str
    call_id: str
    raw: bool = False
    begun: Ref | None = None
    started_ms: Any = None
    turn: str | None = None
    response: int = 0
    done: bool = False
    nested: bool = False
    result: ToolResult | None = None
    output: Output | None = None
    structured: Raw | None = None
    told: bool = False
    shared: bool = False
    changed: bool = False
    changed_as: str | None = None
    pieces: deque[Piece] = field(default_factory=deque)
    printed: int = 0
    kept: int = 0


class Calls:
    """The calls of one thread."""

    def __init__(
        self, pen: Pen, registry: Registry, terminals: Terminals, agents: Agents, version: str | None
    ) -> None:
        self._pen = pen
        self._registry = registry
        self._terminals = terminals
        self._agents = agents
        self._tools = registry.tools()
        self._items = {row.type: row for row in registry.item}
        self._statuses = Statuses(registry, version)
        self._shown = any(
            rule.names(None) and in_ranges(rule.versions, version) and matches(rule.when, {"frame": {}})
            for rule in registry.content
        )
        self._open: dict[str, list[Call]] = {}
        self._over: dict[str, int] = {}
        self._kept: OrderedDict[str, Call] = OrderedDict()
        self._secret: dict[str, Ref] = {}
        self._unproven: list[Call] = []
        self._responses = 0
        self._count = 0

    # -- which call ---------------------------------------------------------------------------------------------

    def single(self, call_id: str) -> str | None:
        """A call id that not several calls have."""
        return call_id if self._number(call_id) <= 1 else None

    def knows(self, call_id: str) -> bool:
        """Whether a call has this id."""
        return self._number(call_id) > 0

    def secret(self, call_id: str, ref: Ref) -> None:
        """Says that a call asks for a secret: what it got back is kept nowhere (ASR-283)."""
        self._secret[call_id] = ref

    def _number(self, call_id: str) -> int:
        return len(self._open.get(call_id, ())) + self._over.get(call_id, 0)

    def _begin(self, call_id: str, turn: str | None) -> Call:
        self._count += 1
        call = Call(f"call {self._count}", call_id, turn=turn, nested=call_id.startswith(NESTED_PREFIX))
        known = self._open.setdefault(call_id, [])
        known.append(call)
        if self._number(call_id) > 1:
            self._several([*known, *([self._kept[call_id]] if call_id in self._kept else ())])
        return call

    def _several(self, calls: list[Call]) -> None:
        """Several calls have one id: which of them a result answers is not recorded (ASR-262)."""
        for call in calls:
            call.shared = True
            record = call.result
            if record is not None and record.linkage != "ambiguous":
                ref = self._pen.ref("twin", "")
                self._write(call, self._next(record, [ref]))

    def _link(self, call: Call, record: ToolResult) -> None:
        if call.shared:
            record.linkage, record.call_id, record.native_call_id = "ambiguous", None, call.call_id
        else:
            record.linkage, record.call_id, record.native_call_id = "exact", call.call_id, None

    def _next(self, record: ToolResult, refs: list[Ref]) -> ToolResult:
        """The record again, to be written as the next state."""
        native = record.native or Native()
        kept = [ref for ref in native.refs if ref not in refs]
        return replace(
            record,
            seq=-1,
            id="",
            ts=None,
            capture=dict(record.capture) if record.capture else None,
            native=replace(native, refs=[*kept, *refs]),
        )

    def _write(self, call: Call, record: ToolResult) -> None:
        self._link(call, record)
        self._pen.revise(f"{call.key} result", record)
        call.result = record

    # -- raw response items -------------------------------------------------------------------------------------

    def response_item(self, raw: Raw, pointer: str, turn: str | None) -> bool:
        """A raw response item; False for one that is neither call nor output."""
        payload = decoded(payload_decoder, raw) or loosely(Payload, raw)
        kind = payload.type if payload is not None else None
        if payload is None or not (kind in CALLS or kind in OUTPUTS):
            return False
        if kind in OUTPUTS:
            return self._answered(payload, pointer)
        hosted = kind in ("local_shell_call", "web_search_call", "image_generation_call")
        call_id = string(payload.call_id) or (string(payload.id) if hosted else None)
        if call_id is None:
            return False
        self._asked(payload, call_id, pointer, turn)
        return True

    def _asked(self, payload: Payload, call_id: str, pointer: str, turn: str | None) -> None:
        pen = self._pen
        earlier = (one for one in self._open.get(call_id, ()) if not one.raw)
        call = next(earlier, None) or self._begin(call_id, turn)
        call.raw, call.response = True, self._responses
        record = ToolCall(call_id=call_id, call_id_source="native", requested_by="model")
        record.native = pen.native("asked", pointer)
        record.native.namespace = text(payload.namespace)
        if text(payload.id) and payload.id != call_id:
            record.native.id = payload.id
        name = string(payload.name)
        if name is not None:
            tool = self._tools.get(name)
            record.name, record.kind = name, tool.kind if tool else None
            if (string(payload.namespace) or "").startswith(MCP_PREFIX) or name.startswith(MCP_PREFIX):
                # Server and tool stand on the item, if one follows.
                record.provider = Provider(kind="mcp", identity="unknown")
        else:
            row = self._items.get(payload.type or "")
            record.kind = row.kind if row else None
            pen.capture(record, "name", "absent", reason=NO_NAME if row else None)
        put_input(pen, record, payload, pointer)
        pen.revise(call.key, record)

    def _answered(self, payload: Payload, pointer: str) -> bool:
        call_id = string(payload.call_id)
        if call_id is None:
            return False
        pen = self._pen
        ref = pen.ref("answered", pointer)
        if call_id in self._secret:
            output = Output(ABSENT, None, ref, pen.ts)
        else:
            member = "tools" if payload.type == "tool_search_output" else "output"
            raw = payload.tools if member == "tools" else payload.output
            exact = pen.exact(f"{pointer}/{member}")
            fits = exact is None or lossless.lossless(exact.encode())
            output = Output(Raw(bytes(raw)), None if fits else exact, ref, pen.ts)
        waiting = [one for one in self._open.get(call_id, ()) if one.output is None]
        call = waiting[0] if waiting else None
        if call is None or call.shared:
            # A further output of one call, or one of several calls with this id: a result of its own.
            call = Call(f"call {self._more()}", call_id, response=self._responses, done=True)
            call.shared = self._number(call_id) > 1
        call.output = output
        if call_id not in self._secret:
            self._unproven.append(call)
        if call.result is None:
            record = ToolResult(linkage="exact", status="unknown", native=Native(refs=[ref]))
            if payload.type == "tool_search_output":
                small = {"type": payload.type, "status": string(payload.status)}
                record.status = self._statuses.of({"frame": {"params": {"item": small}}})
            self._absent(call, record)
            self._write(call, record)
        else:
            pen.cited()
        return True

    def _more(self) -> int:
        self._count += 1
        return self._count

    def spoke(self) -> None:
        """The model said something: what it was told before its response began has reached it (decision 7)."""
        waiting, self._unproven = self._unproven, []
        for call in waiting:
            if call.response < self._responses:
                self._prove(call)
            else:
                self._unproven.append(call)

    def response_over(self) -> None:
        """A response of the model is complete."""
        self.spoke()
        self._responses += 1

    def _prove(self, call: Call) -> None:
        output = call.output
        if output is None:
            return
        if not self._shown or call.call_id in self._secret:
            self._keep_output(call)
            return
        record = self._bare(call, [output.ref, self._pen.ref("reply", "/frame/params")])
        record.content = contents.parts(output.raw, self._pen.desk)
        if output.exact is not None:
            blob = self._pen.desk.blob(output.exact.encode(), "application/json")
            self._pen.capture(record, "content", "external", blob=blob)
        put_raw(self._pen, record, None, call.structured)
        self._write(call, record)

    def _keep_output(self, call: Call) -> None:
        """Nothing shows yet that the output was sent: it is kept as what was stored."""
        output = call.output
        if output is None or call.told:
            return
        call.told = True
        record = self._bare(call, [output.ref])
        record.ts = output.ts or (call.result.ts if call.result is not None else None)
        now, self._pen.ts = (
            self._pen.ts,
            record.ts,
        )  # told by what is cited, not by the frame that stands here
        self._absent(call, record)
        put_raw(self._pen, record, None if call.call_id in self._secret else output.raw, call.structured)
        self._write(call, record)
        self._pen.ts = now

    def _bare(self, call: Call, refs: list[Ref]) -> ToolResult:
        """The call's result again, without what depends on whether its output was sent."""
        assert call.result is not None
        record = self._next(call.result, refs)
        record.raw, record.content = UNSET, None
        for member in ("content", "raw"):
            if record.capture is not None:
                record.capture.pop(member, None)
        return record

    def _absent(self, call: Call, record: ToolResult, kind: str = "") -> None:
        if call.call_id in self._secret:
            self._pen.capture(record, "content", "redacted", reason=SECRET)
            asked = self._secret[call.call_id]
            if record.native is not None and asked not in record.native.refs:
                record.native.refs.append(asked)
            return
        if call.output is not None or call.raw:
            reason = NO_REPLY if self._shown else NO_CAPTURE
        elif call.nested:
            reason = NESTED
        else:
            reason = HOSTED if kind == "webSearch" else NOT_TOLD
        self._pen.capture(record, "content", "absent", reason=reason)

    # -- items --------------------------------------------------------------------------------------------------

    def begun(self, item: Item, pointer: str, params: dict[str, Raw], turn: str | None) -> bool:
        """``item/started`` of an execution; False where it says again what a raw item said."""
        call_id = string(item.id)
        if call_id is None:
            return False
        waiting = (one for one in self._open.get(call_id, ()) if one.raw and one.begun is None)
        call = next(waiting, None)
        new = call is None
        if call is None:
            call = self._begin(call_id, turn)
        execution = execution_of(item, pointer, begins=True)
        call.begun = self._pen.ref("begun", pointer)
        call.started_ms = value_of(params.get("startedAtMs", ABSENT))
        if new:
            self._own(call, execution)
        self._terminals.begun(item, call_id)
        if execution.fields.changes:
            new = self._changed(call, execution, "proposed") or new
        return new

    def _own(self, call: Call, execution: Execution) -> None:
        record = own_call(self._pen, self._items, execution)
        record.call_id = call.call_id
        if execution.fields.source == "userShell":
            record.requested_by = "user"
        elif call.nested:
            record.requested_by = "code"
        self._pen.revise(call.key, record)

    def ended(self, item: Item, pointer: str, params: dict[str, Raw], turn: str | None) -> bool:
        """``item/completed`` of an execution."""
        call_id = string(item.id)
        if call_id is None:
            return False
        running = [one for one in self._open.get(call_id, ()) if not one.done]
        execution = execution_of(item, pointer, begins=False)
        if running:
            call = next((one for one in running if one.begun is not None), running[0])
        elif self.knows(call_id):
            call = self._again(call_id)  # it is told once more how it went
        else:
            call = self._begin(call_id, turn)
            self._own(call, execution)
        call.done = True
        self._ended(call, execution, item, params)
        if execution.fields.changes:
            status = call.result.status if call.result is not None else ""
            self._changed(call, execution, STATES.get(status, "unknown"))
        if item.type == "collabAgentToolCall":
            receivers, states = value_of(item.receiver_thread_ids), value_of(item.agents_states)
            self._agents.of_item(item.id, receivers, states, pointer, spawned=item.tool == "spawnAgent")
        return True

    def _again(self, call_id: str) -> Call:
        """A finished call with this id; one that stands for it where several have it, or it is long over."""
        over: list[Call] = list(self._open.get(call_id, ()))
        if call_id in self._kept:
            over.append(self._kept[call_id])
        if len(over) == 1 and self._number(call_id) == 1:
            return over[0]
        return Call(f"call {self._more()}", call_id, shared=self._number(call_id) > 1)

    def _ended(self, call: Call, execution: Execution, item: Item, params: dict[str, Raw]) -> None:
        pen = self._pen
        native = pen.native("done", execution.pointer)
        record = ToolResult(linkage="exact", status=self._statuses.of(execution.words), native=native)
        put_exec(pen, record, execution.fields)
        if item.type == SHELL and record.exec is not None:
            if is_null(item.aggregated_output) and exit_code(item.exit_code) is not None:
                record.exec.output = ""  # how the app server says that nothing was printed
            record.exec.terminal_id = self._terminals.ended(
                item, call.turn, pen.ref("done", execution.pointer)
            )
        if self._times(call, record, item, params) and call.begun is not None:
            native.refs.append(call.begun)
        record.provider = provider_of(execution.fields)
        put_error(record, execution.fields)
        told = structured(execution)
        call.structured = Raw(bytes(told)) if told is not None else None
        put_raw(pen, record, None, told)
        before = call.result
        if before is not None and call.output is not None:
            native.refs.append(call.output.ref)
        if before is not None and before.content is not None:
            record.content = before.content
            if before.capture and "content" in before.capture:
                record.capture = {**(record.capture or {}), "content": before.capture["content"]}
        else:
            self._absent(call, record, item.type or "")
        self._write(call, record)

    def _times(self, call: Call, record: ToolResult, item: Item, params: dict[str, Raw]) -> bool:
        """Sets start, end and duration as recorded (ASR-261); says whether the start stands on ``item/started``."""
        record.duration_ms = amount(item.duration_ms)
        own = item.started_at_ms
        started = own if own is not None else None if call.shared else call.started_ms
        completed = value_of(params.get("completedAtMs", ABSENT))
        completed = completed if completed is not None else item.completed_at_ms
        start, end = utc_of_ms(started), utc_of_ms(completed)
        if start is not None and end is not None:
            span = completed - started
            if span < 0 or (record.duration_ms or 0) > span + 2:
                self._pen.desk.diagnose(
                    "times_contradict",
                    f"{item.type}: its own duration does not fit between its start and its end",
                    self._pen.source,
                    self._pen.unit.line.number,
                )
                return False
        record.started_at, record.completed_at = start, end
        return start is not None and own is None

    def _changed(self, call: Call, execution: Execution, state: str) -> bool:
        pen, pointer = self._pen, f"{execution.pointer}/changes"
        native = pen.native(execution.role, pointer)
        # What it was first told with stays: it is one entity, also when another call turns out to have this id.
        named = call.changed_as if call.changed else None if call.shared else call.call_id
        record = file_change(pen, execution.fields.changes, named, state, native, pointer)
        if record is not None:
            call.changed, call.changed_as = True, named
            pen.revise(f"{call.key} changes", record)
        return record is not None

    # -- what is shown while it runs ----------------------------------------------------------------------------

    def printed(self, call_id: str | None, delta: Raw, pointer: str) -> None:
        """A piece of a running call's output: it never stands for the result, which has all of it."""
        words = text_of(delta)
        call = next((one for one in self._open.get(call_id or "", ()) if not one.done), None)
        if call is None or not words:
            return
        size = len(words.encode("utf-8", "replace"))
        call.pieces.append(Piece(self._pen.ref("member", pointer), words, size, self._pen.ts))
        call.printed += size
        call.kept += size
        while len(call.pieces) > PIECES_MOST or (call.kept > SHOWN_MOST and len(call.pieces) > 1):
            call.kept -= call.pieces.popleft().size

    def turn_over(self, turn: str | None) -> None:
        """The turn has ended: what has no result keeps what was last shown of it; what is over is let go."""
        self._outputs()
        for name, calls in list(self._open.items()):
            for call in list(calls):
                running = call.begun is not None and not call.done
                if running and call.turn == turn:
                    self._preview(call)
                if not running and (call.done or call.turn == turn):
                    self._let_go(name, call)

    def _outputs(self) -> None:
        for call in self._unproven:
            self._keep_output(call)

    def close(self) -> None:
        """The connection is over."""
        self._outputs()
        for calls in list(self._open.values()):
            for call in calls:
                if not call.done:
                    self._preview(call)

    def _preview(self, call: Call) -> None:
        if not call.pieces:
            return
        text_ = "".join(piece.text for piece in call.pieces)
        record = Preview(call_id=call.call_id, output=text_, ts=call.pieces[-1].ts)
        record.native = Native(refs=[piece.ref for piece in call.pieces])
        record.omitted_bytes = (call.printed - call.kept) or None
        now, self._pen.ts = self._pen.ts, record.ts
        self._pen.revise(f"{call.key} preview", record)
        self._pen.ts = now
        call.pieces.clear()
        call.kept = 0

    def _let_go(self, name: str, call: Call) -> None:
        self._open[name].remove(call)
        if not self._open[name]:
            del self._open[name]
        self._over[name] = self._over.get(name, 0) + 1
        self._kept[name] = call
        self._kept.move_to_end(name)
        if len(self._kept) > KEPT_MOST:
            _, old = self._kept.popitem(last=False)
            for what in ("", " result", " changes", " preview"):
                self._pen.forget(old.key + what)
