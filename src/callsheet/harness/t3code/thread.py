"""The stream of one thread: what both generations share.

Owns: the pen and the registry's tables of a thread, the session record, permissions and questions from whatever rows
hold their parts, gaps of damaged rows. Each generation (``new``, ``old``) says which rows those are.

Must never know: the tables of either generation.
"""

from __future__ import annotations

from typing import Any

from callsheet.harness._port import Desk, Stream
from callsheet.harness._port.cells import Cell, Damage, RowPen, layout_ref, row_ref
from callsheet.harness._port.pen import number, utc
from callsheet.harness._port.units import Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.t3code.layout import KIND, Thread
from callsheet.harness.t3code.pen import (
    DECISIONS,
    answers_of,
    dig,
    is_secret,
    keep,
    options_of,
    questions_of,
    text,
)
from callsheet.harness.t3code.rows import Row, Survey, rows
from callsheet.harness.t3code.terminals import Terminals
from callsheet.records import (
    FORMAT,
    Agent,
    Count,
    InputRequest,
    Native,
    Parent,
    Permission,
    Ref,
    SourceEntry,
    Subject,
    Usage,
)
from callsheet.records import Session as SessionRecord
from callsheet.records.bundle import stream_id
from callsheet.registry import load
from callsheet.registry.via import numbers
from callsheet.registry.when import MISSING

NO_CONTENT = "T3 Code keeps no record of what reached the model"
NO_NAME = "T3 Code keeps the item's type, not the tool's name"


class ThreadWriter:
    """Writes one thread.

    Attributes:
        pen: Its pen.
        survey: Its first pass.
        streams: Thread ids to streams of the bundle.
    """

    def __init__(
        self,
        desk: Desk,
        veil: Veil,
        source: SourceEntry,
        thread: Thread,
        survey: Survey,
        stream: Stream,
        roots: dict[str, str],
        streams: dict[str, str],
    ) -> None:
        self.desk = desk
        self.veil = veil
        self.source = source
        self.thread = thread
        self.survey = survey
        self.streams = streams
        self.roots = roots
        self.pen = RowPen(desk, veil, stream, roots)
        registry = load(KIND)
        self.items = {item.type: item for item in registry.item}
        self.states = {
            (row.entity, row.source, row.value or ""): row.then for row in registry.terminal_status
        }

    def state(self, entity: str, source: str, value: Any) -> str | None:
        """The record's word for a native one."""
        return self.states.get((entity, source, value)) if isinstance(value, str) else None

    terminals: Terminals | None = None
    """The transcripts of its terminals."""

    inner = ""
    """Where the payload of the row at hand stands in its unit."""

    def take(self, row: Row, ts: Any = None) -> None:
        """Turns to a row."""
        self.inner = row.pointer("")
        unit = row.unit or Unit(row.cell, 0, row.cell.data, None)
        self.pen.take(self.source, unit, ts)

    def damaged(self, row: Row | Damage) -> bool:
        """Writes the gap of a damaged row or table; whether it was one."""
        if isinstance(row, Damage):
            self.pen.broken(self.source, row)
            return True
        if row.hole is not None:
            self.pen.gap(self.source, row.hole)
            return True
        return False

    def ref(self, cell: Cell, role: str) -> Ref:
        """A ref to another row."""
        return row_ref(self.source, cell, role)

    def head(self, title: str | None, provider: dict[str, Any], refs: list[Ref]) -> None:
        """Writes the session record; which provider ran underneath is part of it."""
        record = SessionRecord(
            format=FORMAT,
            agent=Agent(name=KIND),
            native_session_id=self.thread.thread_id,
            sources=[self.source, *(self.terminals.sources if self.terminals else ())],
            roots=self.roots or None,
            title=title,
            parent=Parent(session=stream_id(self.thread.parent)) if self.thread.parent else None,
            forked_from=self.thread.source,
        )
        if not any(ref.role == "thread" for ref in refs):
            refs = [*refs, *self._keyed()]
        made_of = layout_ref(self.source, self.desk.lines(self.source))
        record.native = Native(refs=[*refs, made_of] if made_of else refs)
        keep(record.native, **provider)
        self.pen.stream.write(record)

    def _keyed(self) -> list[Ref]:
        """A row that names the thread, where its own row is not there."""
        for row in rows(self.veil, self.source):
            if isinstance(row, Row) and self.thread.thread_id in (
                row.key.get("thread_id"),
                row.value.get("thread_id"),
                row.value.get("threadId"),
            ):
                return [self.ref(row.cell, "keyed")]
        return []

    def window(self, used: dict[str, Any], pointer: str, role: str) -> None:
        """Writes the context that is in use, as the provider told it."""
        found = numbers(used)
        counts = [] if found is MISSING else [Count(**one) for one in found]
        record = Usage(scope="session", counts=counts or None, native=self.pen.native(role, pointer))
        tokens, most = number(used.get("usedTokens")), number(used.get("maxTokens"))
        record.context_used = tokens if isinstance(tokens, int) else None
        record.context_window = most if isinstance(most, int) else None
        self.pen.write(record)

    # -- requests -----------------------------------------------------------------------------------------------

    def permission(
        self,
        request: str,
        told: list[dict[str, Any]],
        *,
        call_id: str | None,
        command: str | None,
        others: list[Ref],
    ) -> None:
        """Writes a permission from all that is told of it, the first value of a member counts.

        Args:
            request: Its id.
            told: Objects that speak of it.
            call_id: The call that it is about.
            command: The command that it is about.
            others: Refs to further rows.
        """
        record = Permission(
            request_id=request,
            id_source="native",
            title=_first(told, "prompt", "detail"),
            options=options_of(next((one["options"] for one in told if one.get("options")), None)),
            reason=_first(told, "reason"),
            feedback=_first(told, "feedback"),
            native=self.pen.native("request", self.inner),
        )
        assert record.native is not None
        record.native.refs += others
        if call_id is not None:
            record.subject = Subject(call_id=call_id)
            record.native.command = command
        elif command is not None:
            record.subject = Subject(command=command)
        word = _first(told, "decision")
        record.decision = DECISIONS.get(word) if word else None
        if word and record.decision is None:
            keep(record.native, decision=word)
        if word in [option.option_id for option in record.options or ()]:
            record.selected_option_id = word
        status = _first(told, "requestStatus")
        record.status = self.state("permission", "status", status)
        if record.decision is not None and record.status in (None, "pending"):
            record.status = "resolved"
        if record.status == "resolved" and record.decision is None:
            # A resolved request whose decision is nowhere: the source's word is kept, the record has no state.
            record.status = None
            keep(record.native, status=status)
        if record.decision is not None:
            record.decided_at = utc(_first(told, "resolvedAt"))
        keep(record.native, kind=_first(told, "requestKind", "kind"), actorKind=_first(told, "actorKind"))
        self.pen.revise(f"permission {request}", record)

    def question(
        self, request: str, told: list[dict[str, Any]], *, call_id: str | None, others: list[Ref]
    ) -> None:
        """Writes a question to the person from all that is told of it."""
        raw: Any = next((one["questions"] for one in told if isinstance(one.get("questions"), list)), [])
        whole = any(is_secret(one) for one in told)
        record = InputRequest(
            request_id=request,
            id_source="native",
            call_id=call_id,
            mode="questions",
            questions=questions_of(raw),
            secret=True if whole else None,
            native=self.pen.native("request", self.inner),
        )
        assert record.native is not None
        record.native.refs += others
        if any(one.get("responseMode") == "message" for one in told):
            record.blocking = False
        given = next(
            (
                value
                for one in told
                for value in (dig(one, "questionAnswer", "answers"), one.get("answers"))
                if value is not None
            ),
            None,
        )
        status = _first(told, "requestStatus")
        record.status = "answered" if given else self.state("input_request", "status", status)
        if record.status is None:
            keep(record.native, status=status)
        secret = whole or any(one.secret for one in record.questions or ())
        if given and not whole:
            record.answers = answers_of(record.questions or [], given) or None
        if given and secret:
            self.pen.capture(record, "answers", "redacted", reason="a secret was asked for")
        self.pen.revise(f"question {request}", record)


def _first(told: list[dict[str, Any]], *names: str) -> str | None:
    return next((found for name in names for one in told if (found := text(one.get(name)))), None)
