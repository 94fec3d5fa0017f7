"""Results and their companions as frames tell of them.

Owns: a result that is written again when a later frame shows more (the model replied, so it was sent; a second call
has its id), questions that the host is asked, background tasks from their own frames, and the agents of a session.

Must never know: the control protocol's frames, files.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness._port.pen import utc_of_ms
from callsheet.harness._port.units import Unit
from callsheet.harness.claude_code.asides import ASKS, Asides, answers_of, questions_of
from callsheet.harness.claude_code.replies import CallPlace
from callsheet.harness.claude_code.results import NO_REPLY, Results
from callsheet.harness.claude_code.shapes import NativeBlock, NativeLine, text
from callsheet.harness.claude_code.stream.seen import FrameSeen
from callsheet.harness.claude_code.tooluse import WATCHES, Report, ToolUse
from callsheet.harness.claude_code.verdicts import Verdict
from callsheet.records import InputRequest, Native, Ref, SourceEntry, Subagent, Terminal, ToolResult

KEPT_MOST = 256
KEPT_BYTES = 8 << 20
"""Results that may still be written again: as many, and as many bytes of their frames."""

STARTS = {"Bash": "shell", "PowerShell": "shell", WATCHES: "monitor"}
"""What a task is that runs a command, by the tool that started it; of a tool that nobody knows, nobody knows."""


class Kept(NamedTuple):
    """A result that was written, to be written again."""

    source: SourceEntry
    unit: Unit[Any]
    ts: str | None
    line: NativeLine
    place: int
    alone: bool
    call_id: str
    key: str
    unsent: bool


class FrameResults(Results):
    """Results of one stream; each may be revised."""

    report = "/tool_use_result"
    _key = ""
    _more: tuple[Ref, ...] = ()
    _denials: tuple[Ref, ...] = ()

    def begin(self, seen: FrameSeen) -> None:
        """Makes ready to keep results; ``seen`` is told whether the model has replied."""
        self._seen = seen
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0

    def result(
        self, line: NativeLine, block: NativeBlock, index: int, alone: bool
    ) -> tuple[ToolResult, ToolUse, Verdict, CallPlace | None]:
        """Writes the result of one block, and keeps it for what later frames may show."""
        made = super().result(line, block, index, alone)
        if not self._key:
            self._keep(line, block, index, alone, made[0])
        return made

    def _verdict(
        self, line: NativeLine, block: NativeBlock, raw: Raw, report: Report, alone: bool
    ) -> Verdict:
        """What the tables say; a refusal that another frame recorded makes an error, or nothing, a refusal."""
        verdict = super()._verdict(line, block, raw, report, alone)
        self._denials = ()
        if verdict.status in ("failed", "unknown") and isinstance(block.tool_use_id, str):
            self._denials = self._seen.denials.get(block.tool_use_id, ())
        return verdict._replace(status="denied") if self._denials else verdict

    def _write(self, record: ToolResult, index: int) -> None:
        if record.native is not None:
            record.native.refs.extend([*self._denials, *self._more])
        self._pen.revise(self._key or self._key_of(index), record)

    def _key_of(self, index: int) -> str:
        unit = self._pen.unit
        return f"result {unit.line.number} {unit.start} {index}"

    def _keep(
        self, line: NativeLine, block: NativeBlock, index: int, alone: bool, record: ToolResult
    ) -> None:
        pen = self._pen
        if not isinstance(block.tool_use_id, str):
            return
        captured = (record.capture or {}).get("content")
        unsent = captured is not None and captured.reason == NO_REPLY
        key = self._key_of(index)
        kept = Kept(pen.source, pen.unit, pen.ts, line, index, alone, block.tool_use_id, key, unsent)
        self._kept[key] = kept
        self._bytes += len(kept.unit.data)
        while len(self._kept) > KEPT_MOST or self._bytes > KEPT_BYTES:
            _, old = self._kept.popitem(last=False)
            self._bytes -= len(old.unit.data)
            pen.forget(old.key)

    def replied(self, inference: str | None) -> None:
        """The model speaks, in another message than the one that made the calls: their results have reached it."""
        due = [kept for kept in self._kept.values() if kept.unsent]
        for kept in due:
            call = self._seen.call(kept.call_id)
            if call is None or (call.inference is not None and call.inference == inference):
                continue  # a call that comes after its result may come after this message, too
            self._kept[kept.key] = kept._replace(unsent=False)
            self._seen.replied = True
            self._again(kept, ())
            self._seen.replied = False

    def context_begins_anew(self) -> None:
        """What was not answered before the context was compacted will not show any more."""
        for key, kept in self._kept.items():
            self._kept[key] = kept._replace(unsent=False)

    def another_call(self, call_id: str, ref: Ref) -> None:
        """A second call has the id of an earlier one: which of them a result answers is not recorded (ASR-262)."""
        for kept in list(self._kept.values()):
            if kept.call_id == call_id:
                self._again(kept, (ref,))
                self._kept[kept.key] = kept._replace(unsent=False)

    def asked_about(self, call_id: str | None) -> None:
        """A request about a call comes after its result: the decision is the request's (ASR-278)."""
        for kept in list(self._kept.values()):
            if kept.call_id == call_id:
                self._again(kept, ())

    def _again(self, kept: Kept, more: tuple[Ref, ...]) -> None:
        pen = self._pen
        now, source, ts, written, trail = pen.unit, pen.source, pen.ts, pen.written, pen.trail
        pen.take(kept.source, kept.unit, kept.ts)
        pen.trail = []
        message = kept.line.message
        assert message is not None
        assert isinstance(message.content, list)
        self._key, self._more = kept.key, more
        self.result(kept.line, message.content[kept.place], kept.place, kept.alone)
        self._key, self._more = "", ()
        pen.take(source, now, ts)
        pen.written, pen.trail = written, trail


class FrameAsides(Asides):
    """Companions of one stream's calls."""

    def begin(self, seen: FrameSeen) -> None:
        """Makes ready; ``seen`` knows the inputs of the calls that start processes."""
        self._seen = seen
        self._requests: dict[str, str] = {}
        self._unasked: OrderedDict[str, tuple[InputRequest, Ref, str | None]] = OrderedDict()
        self._foreground: set[str] = set()

    def _input_of(self, result: ToolResult, call: CallPlace | None) -> dict[str, Any]:
        call_id = result.native_call_id or result.call_id
        return self._seen.input_of(call_id) if call is not None and call_id is not None else {}

    # -- questions ----------------------------------------------------------------------------------------------

    def _ask_id(self, call_id: str) -> str:
        return self._requests.get(call_id, call_id)

    def _ask_refs(self, asked: InputRequest | None) -> list[Ref]:
        shown = asked.native if asked is not None and asked.request_id != asked.call_id else None
        return shown.refs[:1] if shown is not None else []

    def after_call(self, block: NativeBlock, call_id: str, index: int, sidechain: bool) -> None:
        """A question waits for the request by which the host is asked, which has an id of its own."""
        if block.name != ASKS:
            super().after_call(block, call_id, index, sidechain)
            return
        asked = value_of(block.input)
        questions = questions_of(asked.get("questions") if isinstance(asked, dict) else None)
        if questions and call_id not in self._requests:
            ref = self._pen.ref("call", f"/message/content/{index}")
            self._unasked[call_id] = (
                InputRequest(request_id=call_id, call_id=call_id, mode="questions", questions=questions),
                ref,
                self._pen.ts,
            )
            if len(self._unasked) > KEPT_MOST:
                self._write_unasked(*self._unasked.popitem(last=False))

    def _write_unasked(self, call_id: str, held: tuple[InputRequest, Ref, str | None]) -> None:
        record, ref, ts = held
        record.id_source, record.native = "derived", Native(refs=[ref])
        now, self._pen.ts = self._pen.ts, ts
        self._pen.revise(f"ask {call_id}", record)
        self._pen.ts = now
        self._questions[call_id] = record

    def settle(self) -> None:
        """The end: questions that nobody was shown are written as the calls word them."""
        while self._unasked:
            self._write_unasked(*self._unasked.popitem(last=False))

    def asked(self, name: str, members: dict[str, Raw]) -> bool:
        """``can_use_tool`` for a question; False when it is none."""
        call_id = text_of(members.get("tool_use_id", ABSENT))
        told = value_of(members.get("input", ABSENT))
        questions = questions_of(told.get("questions") if isinstance(told, dict) else None)
        if text_of(members.get("tool_name", ABSENT)) != ASKS or call_id is None or not questions:
            return False
        if call_id in self._requests or self._pen.has(f"ask {call_id}"):
            return False
        self._unasked.pop(call_id, None)
        self._requests[call_id] = name
        record = InputRequest(
            request_id=name,
            id_source="native",
            call_id=call_id,
            mode="questions",
            questions=questions,
            status="pending",
            native=Native(refs=[self._pen.ref("request")]),
        )
        self._questions[call_id] = record
        self._pen.revise(f"ask {call_id}", record)
        return True

    def replied(self, call_id: str, response: dict[str, Raw] | None) -> None:
        """The host's answer to a question; None: the agent took the question back."""
        before = self._questions.get(call_id)
        if before is None:
            return
        end = self._pen.ref("cancel" if response is None else "decision")
        record = InputRequest(
            request_id=before.request_id,
            id_source="native",
            call_id=call_id,
            mode="questions",
            questions=before.questions,
            native=Native(refs=[*(before.native.refs if before.native else []), end]),
        )
        if response is None:
            record.status = "cancelled"
        else:
            answer = members_of(response.get("response", ABSENT))
            given = value_of(members_of(answer.get("updatedInput", ABSENT)).get("answers", ABSENT))
            behavior = text_of(answer.get("behavior", ABSENT))
            if behavior == "deny":
                record.status = "declined"
            elif behavior == "allow" and isinstance(given, dict):
                record.status = "answered"
                record.answers = answers_of(before.questions or [], given) or None
            else:
                record.status = "pending"
        if record.status != "pending":
            del self._questions[call_id]
        self._pen.revise(f"ask {call_id}", record)

    def _answer(self, result: ToolResult, use: Any, verdict: Any) -> None:
        self._unasked.pop(result.call_id or "", None)
        super()._answer(result, use, verdict)

    # -- tasks --------------------------------------------------------------------------------------------------

    def task_started(self, members: dict[str, Raw], begin_agent: Callable[[str, str | None], None]) -> bool:
        """``task_started``: an agent, or a process in the background; one in the foreground is its call's own."""
        task = text_of(members.get("task_id", ABSENT))
        call_id = text_of(members.get("tool_use_id", ABSENT))
        kind = text_of(members.get("task_type", ABSENT))
        if task is None:
            return False
        if kind == "local_agent":
            begin_agent(task, call_id)
            name = text_of(members.get("subagent_type", ABSENT))
            self.agent(task, self._seen.sole(call_id), name, "running", "task")
            return True
        if kind != "local_bash":
            return False
        if value_of(members.get("is_backgrounded", ABSENT)) is not True:
            if call_id is not None and len(self._foreground) < KEPT_MOST * 4:
                self._foreground.add(call_id)
            return False
        before = self._terminals.get(task)
        if self.is_agent(task) or (before is not None and before.status != "running"):
            return False
        call = self._seen.call(call_id)
        asked = self._seen.input_of(call_id) if call_id is not None else {}
        known = self._seen.sole(call_id)
        self._starts[task] = known
        self._terminal(
            Terminal(
                terminal_id=task,
                kind=STARTS.get(call.name) if call is not None and call.name is not None else "shell",
                call_id=known,
                command=text(asked.get("command")),
                description=text_of(members.get("description", ABSENT)) or text(asked.get("description")),
                status="running",
                native=Native(refs=[self._pen.ref("task")]),
            )
        )
        return True

    def _terminal(self, record: Terminal) -> None:
        before = self._terminals.get(record.terminal_id)
        if before is not None and record.completed_at is None and record.status != "running":
            record.completed_at = before.completed_at
        super()._terminal(record)

    def ran(self, call_id: str | None) -> bool:
        """Whether a task in the foreground shows that a call began to run."""
        return call_id in self._foreground

    def task_ended(self, members: dict[str, Raw], status: str | None, end: Any) -> bool:
        """``task_updated`` or ``task_notification`` of a task that is known."""
        task = text_of(members.get("task_id", ABSENT))
        if task is None or status is None:
            return False
        if self.is_agent(task):
            self.agent(task, None, None, self._state("subagent", "notification", status), "task")
            return True
        before = self._terminals.get(task)
        if before is None:
            return False
        if status == "running":
            return False
        record = Terminal(
            terminal_id=task,
            kind=before.kind,
            call_id=before.call_id,
            command=before.command,
            description=before.description,
            exit_code=before.exit_code,
            status=self._state("terminal", "notification", status),
            completed_at=utc_of_ms(end) or before.completed_at,
            native=Native(refs=[self._pen.ref("task")]),
        )
        self._pen.capture(
            record, "output", "unavailable", reason="its file lies outside the session's folder"
        )
        self._terminal(record)
        return True

    # -- agents -------------------------------------------------------------------------------------------------

    def agent_speaks(self, agent_id: str, stream: str) -> None:
        """An agent has a stream of its own from here on."""
        self.known_agents = {**self.known_agents, agent_id: stream}
        before = self._agents.get(agent_id)
        if before is not None:
            record = Subagent(
                agent_id=agent_id,
                call_id=before.call_id,
                stream=stream,
                name=before.name,
                status=before.status,
                native=Native(refs=[self._pen.ref("speaks")]),
            )
            self._agents[agent_id] = record
            self._pen.revise(f"agent {agent_id}", record)
