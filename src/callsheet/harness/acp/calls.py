"""Tool calls and their results, folded from upserts (decision 15).

Owns the state of every call of a session and the two policies: in v1 null and left out mean unchanged and
``tool_call`` creates, in v2 null clears and every update may create. A call is written when it is first seen
and again when what it says has changed, at the points where it has to stand (a request about it, its end, the
turn's end). A result is written when the call's own status is final. A second v1 ``tool_call`` with one id
after that is another call, and which of them a result answers is not recorded (ASR-262).

Must never know: requests, messages, who decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Raw, Struct, field

from callsheet.harness._port.parts import (
    ABSENT,
    is_null,
    items_of,
    mark,
    members_of,
    part_at,
    text_of,
    value_of,
    whole_number_of,
)
from callsheet.harness._port.pen import Pen, raw_json
from callsheet.harness.acp.held import (
    CITED_MOST,
    REVISIONS_MOST,
    Held,
    as_role,
    hold,
    native_of,
    put_inline,
    revise_at,
)
from callsheet.harness.acp.parts import changes_in, terminals_in, tool_part
from callsheet.harness.acp.terminals import Terminals, exit_code
from callsheet.records import (
    Error,
    Exec,
    FileChange,
    Inherited,
    Location,
    Preview,
    Provider,
    Ref,
    ToolCall,
    ToolResult,
    text_part,
)
from callsheet.registry import AgentRule
from callsheet.wire import lossless
from callsheet.wire.blobs import digest

ASKED = ("name", "title", "kind", "locations", "rawInput")
"""Members that say what was asked for."""
CAME_BACK = ("status", "content", "rawOutput")
"""Members that say what came of it."""
FINAL = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}
"""Statuses that end a call."""
OPEN = frozenset({"pending", "in_progress", "paused"})
KEPT_MOST = 256
"""Finished calls whose state is kept for late updates."""
PREVIEW_MOST = 16_384
NO_NAME = "the agent sends no tool name, only a title"
NOT_SAID = "the protocol carries what the client shows, not what the model got"


class Version(NamedTuple):
    """What a protocol version means by an update."""

    null_clears: bool
    update_creates: bool


VERSIONS = {
    1: Version(null_clears=False, update_creates=True),
    2: Version(null_clears=True, update_creates=True),
}


class Call(Struct):
    """The state of one call."""

    call_id: str
    key: str
    values: dict[str, Held] = field(default_factory=dict)
    refs: list[Ref] = field(default_factory=list)
    born: Ref | None = None
    dirty: bool = True
    fresh: bool = False
    final: str | None = None
    revisions: int = 0
    results: int = 0
    diffs: str = ""
    meta: dict[str, Held] = field(default_factory=dict)
    inherited: Inherited | None = None
    ts: str | None = None
    shared_id: bool = False
    declined: list[Ref] = field(default_factory=list)
    """A request about it that the client refused: the request and the answer."""
    last: Ref | None = None
    last_ts: str | None = None
    ended: Ref | None = None
    """The frame with its last final status."""
    more: list[Held] = field(default_factory=list)
    """Items that were appended one by one."""
    pieces: list[Ref] = field(default_factory=list)
    """The frames that the content is made of."""

    def content(self) -> Held | None:
        """All content items."""
        held = self.values.get("content")
        if self.more:
            items = [*(items_of(held.raw) if held is not None else ()), *(one.raw for one in self.more)]
            self.values["content"] = Held(raw_json(items), _exact_list(held, self.more), self.more[-1].ref)
            self.pieces += [one.ref for one in self.more]
            self.more = []
        return self.values.get("content")

    def text(self, member: str) -> str | None:
        """A member that is a string."""
        held = self.values.get(member)
        return text_of(held.raw) if held is not None else None


class Calls:
    """The calls of one session.

    Args:
        pen: Writes them.
        terminals: The session's terminals.
        replied: Ids of calls whose result the model is known to have answered.
        rule: What the registry knows of the agent, if anything.
    """

    def __init__(
        self,
        pen: Pen,
        terminals: Terminals,
        replied: set[str],
        rule: AgentRule | None,
    ) -> None:
        self._pen = pen
        self._terminals = terminals
        self._replied = replied
        self._rule = rule or AgentRule(name="")
        self._calls: dict[str, Call] = {}
        self._old: set[str] = set()
        self._count = 0

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls or call_id in self._old

    def ends(self, call_id: str, update: dict[str, Raw]) -> bool:
        """Whether an update tells the end of a call that has none yet (a replay may tell what a log has lost)."""
        call = self._calls.get(call_id)
        return call is not None and call.final is None and text_of(update.get("status", ABSENT)) in FINAL

    # -- what frames say ----------------------------------------------------------------------------------------

    def update(self, update: dict[str, Raw], pointer: str, version: Version, *, creates: bool) -> bool:
        """Folds one upsert; False when it names no call, or one that is long over.

        Args:
            update: Its members.
            pointer: Where it stands in the line.
            version: The policy.
            creates: It is v1's ``tool_call``, which begins a call.
        """
        call_id = text_of(update.get("toolCallId", ABSENT))
        if call_id is None:
            return False
        call = self._calls.get(call_id)
        if call is None and call_id in self._old and not creates:
            return False
        if call is None:
            call = self._begin(call_id, call_id in self._old)
        elif creates and call.final is not None and self._another(call, update):
            # Two calls with one id: which of them the result written before answers is not recorded.
            call.shared_id = True
            self._write_result(call, call.final)
            self._let_go(call)
            call = self._begin(call_id, True)
        self._fold(call, update, pointer, version)
        return True

    def content_chunk(self, update: dict[str, Raw], pointer: str) -> bool:
        """v2 ``tool_call_content_chunk``: appends one item."""
        call_id = text_of(update.get("toolCallId", ABSENT))
        item = update.get("content", ABSENT)
        if call_id is None or not item or (call_id in self._old and call_id not in self._calls):
            return False
        call = self._calls.get(call_id) or self._begin(call_id, False)
        self._note(call, pointer)
        call.more.append(hold(self._pen, item, "call", pointer, "content"))
        for name in terminals_in(raw_json([item])):
            self._terminals.belongs(name, call_id, call.more[-1].ref)
        call.fresh = True
        self._after(call)
        return True

    def named_by_request(self, update: dict[str, Raw], pointer: str, version: Version) -> str | None:
        """The call that a permission request is about; created when nothing named it before, never changed."""
        call_id = text_of(update.get("toolCallId", ABSENT))
        if call_id is None:
            return None
        call = self._calls.get(call_id)
        if call is None and call_id not in self._old:
            self._fold(self._begin(call_id, False), update, pointer, version)
        elif call is not None:
            self._write_call(call)
            self._changes(call)
        return call_id

    def declined(self, call_id: str | None, refs: list[Ref]) -> None:
        """The client refused a request about this call; ``refs`` are the request and the answer."""
        call = self._calls.get(call_id or "")
        if call is not None:
            call.declined = refs

    def _begin(self, call_id: str, shared: bool) -> Call:
        self._count += 1
        call = Call(call_id=call_id, key=f"call {self._count}", ts=self._pen.ts)
        call.inherited = self._pen.inherited
        call.shared_id = shared
        self._calls[call_id] = call
        return call

    def _another(self, call: Call, update: dict[str, Raw]) -> bool:
        """Whether a second ``tool_call`` after the end is another call, and not the same frame again."""
        same = all(
            bytes(update[member]) == bytes(call.values[member].raw)
            for member in (*ASKED, *CAME_BACK)
            if member in update and member in call.values
        )
        return not (same and set(call.values) <= set(update))

    def _note(self, call: Call, pointer: str) -> None:
        pen = self._pen
        ref = pen.ref("call", pointer)
        call.last, call.last_ts = ref, pen.ts
        if call.born is None:
            call.born = ref
        call.refs.append(ref)
        pen.cited()

    def _fold(self, call: Call, update: dict[str, Raw], pointer: str, version: Version) -> None:
        pen = self._pen
        self._note(call, pointer)
        for member in (*ASKED, *CAME_BACK):
            raw = update.get(member, ABSENT)
            if not raw:
                continue
            if is_null(raw):
                appended = member == "content" and bool(call.more)
                if not version.null_clears or not (appended or member in call.values):
                    continue
                call.values.pop(member, None)
            else:
                before = call.values.get(member)
                same = before is not None and bytes(before.raw) == bytes(raw)
                if same and not (member == "content" and call.more):
                    continue
                call.values[member] = hold(pen, raw, "call", pointer, member)
            if member == "content":
                call.more = []
                call.pieces = [call.values[member].ref] if member in call.values else []
            if member in ASKED:
                call.dirty = True
            else:
                call.fresh = True
            if member == "status" and call.text(member) in FINAL:
                call.ended = call.values[member].ref
        meta = update.get("_meta", ABSENT)
        for member, where in (("name", self._rule.tool), ("parent", self._rule.parent)):
            told = part_at(meta, where) if where else ABSENT
            if text_of(told):
                if member not in call.meta:
                    call.dirty = True
                call.meta[member] = Held(Raw(bytes(told)), None, pen.ref("call", pointer))
        if meta:
            self._terminals.of_meta(meta, pointer)
        self._link(call)
        self._after(call)

    def _link(self, call: Call) -> None:
        held = call.values.get("content")
        if held is not None:
            for name in terminals_in(held.raw):
                self._terminals.belongs(name, call.call_id, held.ref)

    def _after(self, call: Call) -> None:
        """What stands at once: a new call, and a result whose status has become final."""
        if not call.revisions or len(call.refs) > CITED_MOST:
            self._write_call(call)
        status = FINAL.get(call.text("status") or "")
        if status is not None and call.final is None:
            self._write_call(call)
            self._write_result(call, status)

    # -- records ------------------------------------------------------------------------------------------------

    def settle(self, last: bool = False) -> None:
        """Writes what has changed: at the end of a turn, or (``last``) of the log."""
        for call in list(self._calls.values()):
            if not (last or call.revisions + call.results < REVISIONS_MOST):
                continue
            if call.final is not None:
                if call.dirty:
                    self._write_call(call)
                status = FINAL.get(call.text("status") or "", call.final)
                if call.refs or (call.fresh and call.results):
                    self._write_result(call, status)
            elif call.dirty or call.refs:
                self._write_call(call, force=True)
            self._changes(call)
        over = [call for call in self._calls.values() if call.final is not None]
        for call in over[: max(0, len(over) - KEPT_MOST)]:
            self._let_go(call)

    def ended(self) -> None:
        """The turn is over: a call without a result keeps what was last shown of it (decision 14)."""
        self.settle()
        for call in self._calls.values():
            held = call.content()
            if call.final is None and held is not None and call.fresh:
                text = "".join(texts_in(held.raw))
                call.fresh = False
                if not text:
                    continue
                preview = Preview(call_id=call.call_id, output=text[-PREVIEW_MOST:])
                preview.native = native_of([*as_role(call.pieces, "preview"), *self._last(call)])
                omitted = len(text[:-PREVIEW_MOST].encode("utf-8", "replace"))
                preview.omitted_bytes = omitted or None
                revise_at(self._pen, f"{call.key} preview", preview, call.last_ts)

    @staticmethod
    def _last(call: Call) -> list[Ref]:
        """The frame that a record's time is of."""
        return as_role([call.last] if call.last is not None else [], "told")

    def _let_go(self, call: Call) -> None:
        self._old.add(call.call_id)
        del self._calls[call.call_id]
        for what in ("", " result", " changes", " preview"):
            self._pen.forget(call.key + what)

    def _write_call(self, call: Call, force: bool = False) -> None:
        if not (call.dirty or force):
            return
        pen = self._pen
        record = ToolCall(
            call_id=call.call_id,
            call_id_source="native",
        )
        record.native = native_of(self._asked_refs(call), "call")
        record.native.inherited = call.inherited
        name = call.values.get("name") or call.meta.get("name")
        record.name = text_of(name.raw) if name is not None else None
        if record.name is None:
            pen.capture(record, "name", "absent", reason=NO_NAME)
        record.kind = call.text("kind")
        record.title = call.text("title")
        parent = call.meta.get("parent")
        record.parent_call_id = text_of(parent.raw) if parent is not None else None
        if record.name is not None:
            record.provider = provider_of(record.name, self._rule)
        record.locations = self._locations(call)
        self._put_input(record, call)
        status = call.text("status")
        if status is not None and status not in FINAL and status not in OPEN:
            record.native.extra = raw_json({"status": status})
            record.native.refs = native_of([*record.native.refs, call.values["status"].ref], "call").refs
        revise_at(pen, call.key, record, call.last_ts if call.revisions else call.ts)
        call.refs = []
        call.dirty = False
        call.revisions += 1

    def _asked_refs(self, call: Call) -> list[Ref]:
        held = [call.values[member].ref for member in ASKED if member in call.values]
        born = [call.born] if call.born is not None else []
        return [*born, *held, *(one.ref for one in call.meta.values()), *call.refs]

    def _put_input(self, record: ToolCall, call: Call) -> None:
        held = call.values.get("rawInput")
        if held is None:
            self._pen.capture(record, "input", "absent")
            return
        text = held.exact.encode() if held.exact is not None else bytes(held.raw)
        if lossless.lossless(text):
            record.input = Raw(text)
        else:
            record.input_text = text.decode()

    def _locations(self, call: Call) -> list[Location] | None:
        held = call.values.get("locations")
        found: list[Location] = []
        for item in items_of(held.raw) if held is not None else ():
            members = members_of(item)
            path = text_of(members.get("path", ABSENT))
            if path:
                at = self._pen.path(path)
                line = whole_number_of(members.get("line", ABSENT))
                # Lines count from 1 here; some agents count from 0, and none is no line.
                found.append(Location(root=at.root, path=at.path, line=line if line and line > 0 else None))
        return found or None

    def _write_result(self, call: Call, status: str) -> None:
        pen = self._pen
        record = ToolResult(linkage="exact", status=status, call_id=call.call_id)
        if call.shared_id:
            record.linkage, record.call_id, record.native_call_id = "ambiguous", None, call.call_id
        names = self._put_display(record, call)
        self._put_raw(record, call)
        ran, more, blob = self._terminals.exec_of(names)
        exit_part = self._rule_part(call, self._rule.exit)
        if exit_part:
            ran = ran or Exec()
            ran.exit_code = exit_code(value_of(exit_part))
        if ran is not None and ran != Exec():
            record.exec = ran
            if blob is not None:
                pen.capture(record, "exec.output", "external", blob=blob)
        message = text_of(self._rule_part(call, self._rule.error))
        if message is not None:
            record.error = Error(message=message)
        self._put_content(record, call)
        told = [call.values[member].ref for member in CAME_BACK if member in call.values]
        told += self._last(call)
        ended = as_role([call.ended] if call.ended is not None else [], "result")
        record.native = native_of([*ended, *as_role([*told, *call.pieces, *call.refs], "told"), *more])
        record.native.inherited = call.inherited
        call.final = status
        # Before the result: who draws the call when its result has settled has the changes by then.
        self._changes(call)
        revise_at(pen, f"{call.key} result", record, call.last_ts)
        call.refs = []
        call.fresh = False
        call.results += 1

    def _rule_part(self, call: Call, pointer: str | None) -> Raw:
        held = call.values.get("rawOutput")
        if held is None or not pointer:
            return ABSENT
        return part_at(held.raw, pointer)

    def _put_display(self, record: ToolResult, call: Call) -> list[str]:
        held = call.content()
        if held is None:
            return []
        parts = [tool_part(item, self._pen.desk) for item in items_of(held.raw)]
        if parts and put_inline(self._pen, record, "displayContent", held):
            record.display_content = parts
        return terminals_in(held.raw)

    def _put_raw(self, record: ToolResult, call: Call) -> None:
        held = call.values.get("rawOutput")
        if held is not None and put_inline(self._pen, record, "raw", held):
            record.raw = held.raw

    def _put_content(self, record: ToolResult, call: Call) -> None:
        """``content`` only where the registry names captures for this agent, and the model spoke afterwards."""
        words = self._what_was_sent(call) if call.call_id in self._replied else None
        if words is not None:
            record.content = [text_part(words)]
        else:
            self._pen.capture(record, "content", "absent", reason=NOT_SAID)

    def _what_was_sent(self, call: Call) -> str | None:
        """The text that the model got, where the registry names the place for this agent's version."""
        held, known = call.values.get("rawOutput"), self._rule.content
        if (
            known is None
            or held is None
            or held.exact is not None
            or call.inherited is not None
            or call.shared_id
        ):
            return None
        return text_of(held.raw if known == "." else part_at(held.raw, known))

    def answered(self, calls: set[str]) -> None:
        """The model spoke again: what these calls gave back has reached it."""
        new = calls - self._replied
        self._replied |= new
        for call in [one for name, one in self._calls.items() if name in new]:
            if call.final is not None and self._what_was_sent(call) is not None:
                self._write_result(call, call.final)

    def _changes(self, call: Call) -> None:
        """File changes as shown: proposed until the call has ended, and no word about them when it failed."""
        held = call.content()
        if held is None or mark(held.raw) != b"[":
            return
        state = {None: "proposed", "completed": "applied"}.get(
            call.final, "declined" if call.declined else "unknown"
        )
        if b'"diff"' not in bytes(held.raw):
            return
        shown = f"{state} {digest(bytes(held.raw))}"
        if shown == call.diffs:
            return
        changes = changes_in(held.raw, self._pen)
        if not changes:
            return
        call.diffs = shown
        record = FileChange(scope="call", call_id=call.call_id, state=state, changes=changes)
        ends = [call.ended] if call.final is not None and call.ended is not None else []
        record.native = native_of([*as_role([*call.pieces, *ends], "change"), *self._last(call)])
        if state == "declined":
            record.native.refs += call.declined
        record.native.inherited = call.inherited
        revise_at(self._pen, f"{call.key} changes", record, call.last_ts)


def _exact_list(held: Held | None, more: list[Held]) -> str | None:
    """The exact JSON text of a list with items appended to it; None where all of it is plain."""
    if all(one is None or one.exact is None for one in (held, *more)):
        return None
    base = (held.exact or bytes(held.raw).decode()).strip()[1:-1] if held is not None else ""
    return (
        "["
        + ",".join([*([base] if base else []), *(one.exact or bytes(one.raw).decode() for one in more)])
        + "]"
    )


def texts_in(content: Raw) -> Iterator[str]:
    """The texts among a call's content items."""
    for item in items_of(content):
        words = text_of(part_at(item, "content/text"))
        if words is not None:
            yield words


def provider_of(name: str, rule: AgentRule) -> Provider | None:
    """An agent's MCP prefix says that a tool is one, never of which server (decision 9)."""
    if rule.mcp_prefix and name.startswith(rule.mcp_prefix):
        return Provider(kind="mcp", identity="unknown")
    return None
