"""Companions of a result: questions, terminals, plans, subagents, file changes.

Owns: the records that hang on a call besides its result. Each is written only from fields the tool recorded for it;
their later states supersede the earlier ones.

Must never know: how a result got its status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Raw

from callsheet.harness._port.pen import Pen, raw_json
from callsheet.harness.claude_code.replies import CallPlace
from callsheet.harness.claude_code.reread import input_at
from callsheet.harness.claude_code.seen import Seen
from callsheet.harness.claude_code.shapes import NativeBlock, text, value_of
from callsheet.harness.claude_code.tooluse import (
    AGENTS,
    EMPTY,
    PLAIN,
    PROCESSES,
    SHELLS,
    WATCHES,
    ToolUse,
    changes,
    exit_code,
    proposed,
)
from callsheet.harness.claude_code.verdicts import Verdict
from callsheet.records import (
    Answer,
    FileChange,
    InputRequest,
    Native,
    Plan,
    PlanEntry,
    Question,
    QuestionOption,
    Ref,
    Subagent,
    Terminal,
    ToolResult,
)
from callsheet.registry import Registry

ASKS = "AskUserQuestion"


class Asides:
    """Writes the companions of one stream's calls and results."""

    def __init__(self, pen: Pen, survey: Seen, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._states = {(row.entity, row.source, row.value): row.then for row in registry.terminal_status}
        self._terminals: dict[str, Terminal] = {}
        self._starts: dict[str, str | None] = {}
        self._agents: dict[str, Subagent] = {}
        self._tasks: dict[str, tuple[str, list[Ref]]] = {}
        self._questions: dict[str, InputRequest] = {}
        self._early: dict[str, tuple[str, list[Ref]]] = {}
        self._block: str | None = None

    # -- calls --------------------------------------------------------------------------------------------------

    def after_call(self, block: NativeBlock, call_id: str, index: int, sidechain: bool) -> None:
        """What a call asks for besides its result: a question to the person."""
        if sidechain and isinstance(block.name, str):
            self._propose(block, call_id, index)
        if block.name != ASKS:
            return
        asked = value_of(block.input)
        questions = questions_of(asked.get("questions") if isinstance(asked, dict) else None)
        if not questions or self._pen.has(f"ask {call_id}"):
            return  # answered on a line before this one: that state says more
        native = self._pen.native("call", f"/message/content/{index}")
        status, refs = self._early.pop(call_id, (None, []))
        native.refs.extend(refs)
        request = InputRequest(
            request_id=self._ask_id(call_id),
            id_source="native" if self._ask_id(call_id) != call_id else "derived",
            call_id=call_id,
            mode="questions",
            questions=questions,
            status=status,
            native=native,
        )
        self._pen.revise(f"ask {call_id}", request)
        if status is None:
            self._questions[call_id] = request

    def _ask_id(self, call_id: str) -> str:
        """The id of the request that a question is: the call's, where the source has none of its own."""
        return call_id

    def _propose(self, block: NativeBlock, call_id: str, index: int) -> None:
        """In an agent's file only the call tells of a change: it was requested, no more (harness seam 6)."""
        made = proposed(self._pen, str(block.name), value_of(block.input))
        if made is not None:
            record = FileChange(scope="call", call_id=call_id, state="proposed", changes=[made])
            record.native = self._pen.native("call", f"/message/content/{index}")
            self._pen.write(record)

    # -- results ------------------------------------------------------------------------------------------------

    def after_result(
        self, result: ToolResult, use: ToolUse, verdict: Verdict, call: CallPlace | None
    ) -> None:
        """Whatever else the result records."""
        name = call.name if call else None
        self._block = result.native.refs[0].pointer if result.native is not None else None
        if name == ASKS and result.call_id is not None:
            self._answer(result, use, verdict)
        if use is EMPTY:
            return
        if result.call_id is not None:
            self._file_changes(result, use)
        if name in PLAIN or (name in SHELLS and use.backgroundTaskId is None):
            return  # as most results
        self._start_terminal(result, use, call)
        self._read_terminal(use)
        self._stop_terminal(use, verdict)
        self._agent(result, use)
        self._plans(result, use)

    def _answer(self, result: ToolResult, use: ToolUse, verdict: Verdict) -> None:
        assert result.call_id is not None
        asked = self._questions.pop(result.call_id, None)
        if asked is None and self._pen.has(f"ask {result.call_id}"):
            return  # a second result of the call
        questions = questions_of(use.questions) or (asked.questions if asked else None)
        status = {"denied": "declined", "cancelled": "cancelled"}.get(verdict.status)
        native = self._pen.native("result", self._block)
        native.refs = [*native.refs, *self._ask_refs(asked)]
        if not questions:
            if asked is None and status is not None:
                self._early[result.call_id] = (status, native.refs)  # it stands before its call (decision 1)
            return
        answers = answers_of(questions, use.answers)
        if status is None and verdict.status == "completed" and isinstance(use.answers, dict):
            status = "answered"
        request = InputRequest(
            request_id=self._ask_id(result.call_id),
            id_source="native" if self._ask_id(result.call_id) != result.call_id else "derived",
            call_id=result.call_id,
            mode="questions",
            questions=questions,
            status=status,
            answers=answers or None,
            native=native,
        )
        self._pen.revise(f"ask {result.call_id}", request)

    def _file_changes(self, result: ToolResult, use: ToolUse) -> None:
        made = changes(self._pen, use)
        if not made:
            return
        record = FileChange(
            scope="call",
            call_id=result.call_id,
            state="applied" if result.status == "completed" else "unknown",
            changes=made,
            native=self._pen.native("result", self._block),
        )
        patch = made[0].patch
        if patch is not None and isinstance(patch.value, Raw):
            pointer = "/toolUseResult/structuredPatch"
            if not self._pen.inline(record, "changes", patch.value, pointer):
                made[0].patch = None
        self._pen.write(record)

    # -- terminals ----------------------------------------------------------------------------------------------

    def _ask_refs(self, asked: InputRequest | None) -> list[Ref]:
        """What shows the id of a question, where it is not the call's."""
        del asked
        return []

    def _start_terminal(self, result: ToolResult, use: ToolUse, call: CallPlace | None) -> None:
        terminal_id = text(use.backgroundTaskId)
        kind = "shell"
        if terminal_id is None and call is not None and call.name == WATCHES:
            terminal_id, kind = text(use.taskId), "monitor"
        if terminal_id is None or self.is_agent(terminal_id):
            return
        if terminal_id in self._terminals:
            if self._starts.setdefault(terminal_id, result.call_id) == result.call_id:
                return  # its end stands before its start (decision 1), or one result was stored twice
            # The old one's command must not meet the new one's end.
            self._pen.desk.diagnose(
                "terminal_again",
                "the id of a terminal is given to a second one: states from here on are the second one's",
                self._pen.source,
                self._pen.unit.line.number,
            )
        self._starts[terminal_id] = result.call_id
        asked = self._input_of(result, call)
        record = Terminal(
            terminal_id=terminal_id,
            kind=kind,
            call_id=result.call_id,
            command=text(asked.get("command")),
            description=text(asked.get("description")),
            status="running",
            native=self._pen.native("result", self._block),
        )
        self._terminal(record)

    def _input_of(self, result: ToolResult, call: CallPlace | None) -> dict[str, Any]:
        """The input of the result's call, read again where it stands."""
        call_id = result.native_call_id or result.call_id
        if call is None or call_id is None or result.call_id is None:
            return {}
        return input_at(self._pen.desk, self._pen.source, call.offset, call_id)

    def _read_terminal(self, use: ToolUse) -> None:
        """BashOutput and TaskOutput report a process that an earlier call started."""
        seen = use.task if isinstance(use.task, dict) and "output" in use.task else None
        terminal_id = text(seen.get("task_id")) if seen else text(use.shellId)
        status = seen.get("status") if seen else use.status
        if terminal_id is None or self.is_agent(terminal_id):
            return
        if seen and seen.get("task_type") not in PROCESSES and terminal_id not in self._terminals:
            return
        tool = "TaskOutput" if seen else "BashOutput"
        before = self._terminals.get(terminal_id)
        code = exit_code(seen.get("exitCode") if seen else use.exitCode)
        if code is None and before is not None:
            code = before.exit_code
        self._terminal(
            Terminal(
                terminal_id=terminal_id,
                kind=before.kind if before else None,
                call_id=before.call_id if before else None,
                command=(before.command if before else None) or text(use.command),
                description=(before.description if before else None)
                or (text(seen.get("description")) if seen else None),
                status=self._state("terminal", tool, status),
                exit_code=code,
                native=_with_word(self._pen.native("result", self._block), status),
            )
        )

    def _stop_terminal(self, use: ToolUse, verdict: Verdict) -> None:
        """TaskStop, KillShell and KillBash: the agent stopped a process."""
        terminal_id = text(use.shell_id) or (text(use.task_id) if use.task_type is not None else None)
        if terminal_id is None or verdict.status != "completed" or use.success is False:
            return
        if use.task_type == "local_agent" or self.is_agent(terminal_id):
            self.agent_state(terminal_id, "cancelled")
        elif use.task_type in PROCESSES or terminal_id in self._terminals:
            self._end(terminal_id, "stopped", None, text(use.command), None)

    def _terminal(self, record: Terminal) -> None:
        self._terminals[record.terminal_id] = record
        self._pen.revise(f"terminal {record.terminal_id}", record)

    def _end(
        self, terminal_id: str, status: str, word: str | None, command: str | None, call_id: str | None
    ) -> None:
        before = self._terminals.get(terminal_id)
        record = Terminal(
            terminal_id=terminal_id,
            kind=before.kind if before else None,
            call_id=before.call_id if before else call_id,
            command=(before.command if before else None) or command,
            description=before.description if before else None,
            exit_code=before.exit_code if before else None,
            status=status,
            native=_with_word(self._pen.native("end"), word),
        )
        self._pen.capture(
            record, "output", "unavailable", reason="its file lies outside the session's folder"
        )
        self._terminal(record)

    def notified(self, tags: dict[str, str]) -> None:
        """A task notification: the end of a terminal or of an agent (its tags are fields, decision 8)."""
        task, status = tags.get("task-id"), tags.get("status")
        if not task or not status:
            return
        call_id = tags.get("tool-use-id")
        call = self._survey.answered(call_id, None) if call_id else None
        known = self._survey.sole(call_id) if call is not None else None
        started_agent = call is not None and call.name in AGENTS and task not in self._terminals
        if started_agent or self.is_agent(task):
            state = self._state("subagent", "notification", status)
            self.agent(task, known if started_agent else None, None, state, "end")
            return
        if task in self._terminals or "output-file" in tags:
            self._end(task, self._state("terminal", "notification", status), status, None, known)

    def _state(self, entity: str, source: str, value: Any) -> str:
        """The state that a native word stands for, by the registry."""
        return self._states.get((entity, source, value), "unknown") if isinstance(value, str) else "unknown"

    # -- agents -------------------------------------------------------------------------------------------------

    known_agents: Mapping[str, str] = MappingProxyType({})
    """Ids of the session's agent files, and their streams."""

    def is_agent(self, task: str) -> bool:
        """Whether a task's id is an agent's."""
        return task in self._agents or task in self.known_agents

    def _agent(self, result: ToolResult, use: ToolUse) -> None:
        agent_id = text(use.agentId)
        if agent_id is None or result.call_id is None:
            return
        status: str | None = self._state("subagent", "Agent", use.status)
        if (
            status == "unknown"
            and use.status is None
            and use.isAsync is None
            and result.status == "completed"
        ):
            status = "completed"
        self.agent(agent_id, result.call_id, text(use.agentType), status or "unknown", "result")

    def agent(
        self, agent_id: str, call_id: str | None, name: str | None, status: str | None, role: str
    ) -> None:
        """Writes an agent's first or next state; what was a terminal is none (ASR-286)."""
        if agent_id in self._terminals:
            self._pen.desk.diagnose(
                "task_contradicted",
                "a task is told of as a terminal and as an agent: it stays a terminal",
                self._pen.source,
                self._pen.unit.line.number,
            )
            return
        before = self._agents.get(agent_id)
        record = Subagent(
            agent_id=agent_id,
            call_id=(before.call_id if before else None) or call_id,
            stream=self.known_agents.get(agent_id),
            name=(before.name if before else None) or name,
            status=status,
            native=self._pen.native(role, self._block if role == "result" else None),
        )
        self._agents[agent_id] = record
        self._pen.revise(f"agent {agent_id}", record)

    def agent_state(self, agent_id: str, status: str) -> None:
        """A later state of an agent."""
        self.agent(agent_id, None, None, status, "end")

    def wrote_agent(self, agent_id: str) -> bool:
        """Whether this stream has a record of the agent."""
        return agent_id in self._agents

    def agents(self) -> list[str]:
        """The agents that this stream has records of."""
        return list(self._agents)

    def call_of(self, agent_id: str) -> str | None:
        """The call that started an agent, as this stream's records say."""
        return self._agents[agent_id].call_id

    def file_only(self, record: Subagent) -> None:
        """Writes an agent that only its own files tell of."""
        self._agents[record.agent_id] = record
        self._pen.stream.write(record)

    # -- plans --------------------------------------------------------------------------------------------------

    def _plans(self, result: ToolResult, use: ToolUse) -> None:
        if isinstance(use.newTodos, list):
            self._plan("todos", result, _entries(use.newTodos, "content"))
        elif isinstance(use.tasks, list):
            self._plan("tasks", result, _entries(use.tasks, "subject"))
        elif isinstance(use.task, dict) and text(use.task.get("subject")):
            task_id = str(use.task.get("id"))
            self._tasks[task_id] = (use.task["subject"], self._pen.native("created", self._block).refs)
            entry = PlanEntry(text=use.task["subject"], status=_plan_status(use.task.get("status")))
            self._plan(f"task {task_id}", result, [entry])
        elif isinstance(use.statusChange, dict) and isinstance(use.taskId, str) and use.success is not False:
            created = self._tasks.get(use.taskId)
            if created is not None:
                entry = PlanEntry(text=created[0], status=_plan_status(use.statusChange.get("to")))
                self._plan(f"task {use.taskId}", result, [entry], created[1])
        elif text(use.plan):
            self._plan("plan", result, [PlanEntry(text=use.plan)])

    def _plan(
        self, plan_id: str, result: ToolResult, entries: list[PlanEntry] | None, refs: Sequence[Ref] = ()
    ) -> None:
        if entries is None:
            return
        record = Plan(
            plan_id=plan_id,
            id_source="derived",
            call_id=result.call_id,
            entries=entries,
            native=self._pen.native("result", self._block),
        )
        if record.native is not None:
            record.native.refs.extend(refs)
        self._pen.revise(f"plan {plan_id}", record)


def _with_word(native: Native, word: Any) -> Native:
    """Keeps the source's own word for a state that the record has a coarser one for."""
    if isinstance(word, str):
        native.extra = raw_json({"status": word})
    return native


def _entries(items: list[Any], label: str) -> list[PlanEntry] | None:
    """The entries of a plan; None where one of them has no text: the others are not the plan."""
    if not all(isinstance(item, dict) and isinstance(item.get(label), str) for item in items):
        return None
    return [PlanEntry(text=item[label], status=_plan_status(item.get("status"))) for item in items]


def _plan_status(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def questions_of(value: Any) -> list[Question] | None:
    """Questions with their position as id (decision 19); None when they are not what the format says."""
    if not isinstance(value, list):
        return None
    found = []
    for position, item in enumerate(value):
        if not isinstance(item, dict) or not isinstance(item.get("question"), str):
            return None
        options = item.get("options")
        found.append(
            Question(
                id=str(position),
                header=text(item.get("header")),
                text=item["question"],
                options=_options(options) if isinstance(options, list) else None,
                multi_select=item["multiSelect"] if isinstance(item.get("multiSelect"), bool) else None,
            )
        )
    return found or None


def _options(items: list[Any]) -> list[QuestionOption]:
    return [
        QuestionOption(label=item["label"], description=text(item.get("description")))
        for item in items
        if isinstance(item, dict) and isinstance(item.get("label"), str)
    ]


def answers_of(questions: list[Question], answers: Any) -> list[Answer]:
    """Answers by question text. A joined multi-select answer stays whole in ``text`` (decision 19)."""
    if not isinstance(answers, dict):
        return []
    found = []
    texts = [question.text for question in questions]
    for question in questions:
        value = answers.get(question.text)
        if not isinstance(value, str) or texts.count(question.text) > 1:
            continue
        labels = {option.label for option in question.options or []}
        chosen = value in labels and not (question.multi_select and ", " in value)
        found.append(
            Answer(
                question_id=question.id, selected=[value] if chosen else None, text=None if chosen else value
            )
        )
    return found
