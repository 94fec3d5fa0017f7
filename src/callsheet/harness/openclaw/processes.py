"""Background processes as terminals, and the agents that a call started (ASR-271, 272, 286, 290).

Owns: the names under which OpenClaw keeps a process (one name may stand for several, then it is no link), a process's
states as results and task rows tell them, subagents by their session key. A process's output is not kept by OpenClaw
beyond what a poll returned, so a terminal has none.

Must never know: how a result is linked to its call.
"""

from __future__ import annotations

from typing import Any

from callsheet.harness._port.parts import items_of
from callsheet.harness._port.pen import utc_of_ms
from callsheet.harness.openclaw.pen import TreePen, keep
from callsheet.harness.openclaw.results import exit_code
from callsheet.harness.openclaw.shapes import Details, Entry, Message, details_of, text
from callsheet.harness.openclaw.survey import Survey
from callsheet.records import Native, Subagent, Terminal
from callsheet.records._shapes import PathRef
from callsheet.registry import Registry

SPAWN = "sessions_spawn"
POLL = "process"


class Process:
    """What is known of one process so far."""

    def __init__(self, terminal_id: str, call_id: str | None) -> None:
        self.terminal_id = terminal_id
        self.call_id = call_id
        self.command: str | None = None
        self.cwd: PathRef | None = None
        self.status: str | None = None
        self.exit_code: int | None = None
        self.signal: str | None = None
        self.started_at: str | None = None
        self.completed_at: str | None = None

    def ended(self, code: Any, signal: Any) -> None:
        """Takes the end that a line tells of; one that tells of none takes nothing back (ASR-271)."""
        self.exit_code = self.exit_code if exit_code(code) is None else exit_code(code)
        self.signal = text(signal) or self.signal


class Processes:
    """The terminals and subagents of one session."""

    def __init__(self, pen: TreePen, survey: Survey, registry: Registry, streams: dict[str, str]) -> None:
        self._pen = pen
        self._survey = survey
        self._streams = streams
        self._states: dict[tuple[str, str, str], str] = {
            (row.entity, row.source, str(row.value or "")): row.then for row in registry.terminal_status
        }
        self._known: dict[str, Process] = {}
        self.agents: dict[str, Subagent] = {}

    def state(self, entity: str, source: str, value: Any) -> str | None:
        """The record's word for a native one."""
        return self._states.get((entity, source, value)) if isinstance(value, str) else None

    # -- terminals ----------------------------------------------------------------------------------------------

    def terminal_of(self, entry: Entry, message: Message, details: Details) -> str | None:
        """Id of the terminal that a result started or looked at, if this stream has, or will have, a record of it."""
        name = text(details.sessionId)
        if name is None or message.toolName == SPAWN:
            return None
        starts = self._survey.starts.get(name, 0)
        if message.toolName != POLL:
            if details.status != "running":
                return None
            return name if starts == 1 else f"{name}#{text(entry.id)}" if text(entry.id) else None
        if starts > 1 or self.state("terminal", "process", details.status) is None:
            return None
        return name

    def result(self, message: Message, details: Details, terminal: str | None, call_id: str | None) -> None:
        """Writes what a result tells of processes."""
        if terminal is not None:
            source = "process" if message.toolName == POLL else "exec"
            process = self._process(terminal, call_id if source == "exec" else None)
            process.cwd = self._pen.path(details.cwd) if text(details.cwd) else process.cwd
            process.started_at = utc_of_ms(details.startedAt) or process.started_at
            process.status = self._status(source, details) or process.status
            process.ended(details.exitCode, details.exitSignal)
            self._write(process, "start" if source == "exec" else "poll", "/message/details")
        if message.toolName == POLL:
            for index, raw in enumerate(items_of(details.sessions)):
                self._listed(details_of(raw), f"/message/details/sessions/{index}")

    def _listed(self, one: Details, pointer: str) -> None:
        name = text(one.sessionId)
        status = self.state("terminal", "process", one.status)
        if name is None or status is None or self._survey.starts.get(name, 0) > 1:
            return
        process = self._process(name, None)
        process.command = text(one.command) or process.command
        process.cwd = self._pen.path(one.cwd) if text(one.cwd) else process.cwd
        process.started_at = utc_of_ms(one.startedAt) or process.started_at
        process.status = self._status("process", one)
        process.ended(one.exitCode, one.exitSignal)
        self._write(process, "poll", pointer)

    def _status(self, source: str, details: Details) -> str | None:
        if text(details.exitSignal):
            return "killed"
        return self.state("terminal", source, details.status)

    def _process(self, terminal: str, call_id: str | None) -> Process:
        process = self._known.get(terminal)
        if process is None:
            process = self._known[terminal] = Process(terminal, call_id)
        elif process.call_id is None:
            process.call_id = call_id
        return process

    def _write(self, process: Process, role: str, pointer: str) -> Terminal:
        record = Terminal(
            terminal_id=process.terminal_id,
            id_source="derived" if "#" in process.terminal_id else "native",
            kind="shell",
            call_id=process.call_id,
            command=process.command,
            cwd=process.cwd,
            status=process.status,
            exit_code=process.exit_code,
            signal=process.signal,
            started_at=process.started_at,
            completed_at=process.completed_at,
            native=self._pen.native(role, pointer),
        )
        self._pen.revise(f"terminal {process.terminal_id}", record)
        return record

    def task(self, row: dict[str, Any]) -> bool:
        """Writes the last state of a process, as its row in ``task_runs`` has it."""
        name = text(row.get("source_id"))
        if row.get("task_kind") != "exec" or name is None or self._survey.starts.get(name, 0) > 1:
            return False
        detail = _json(row.get("detail_json"))
        process = self._process(name, None)
        process.command = text(row.get("task")) or process.command
        process.started_at = utc_of_ms(row.get("started_at")) or process.started_at
        process.completed_at = utc_of_ms(row.get("ended_at")) or process.completed_at
        process.ended(detail.get("exitCode"), detail.get("exitSignal"))
        status = self.state("terminal", "task", row.get("status"))
        process.status = "killed" if process.signal else status or "unknown"
        self._pen.ts = process.completed_at or process.started_at
        record = self._write(process, "task", "")
        assert record.native is not None
        return True

    # -- agents -------------------------------------------------------------------------------------------------

    def spawned(self, message: Message, details: Details, call_id: str | None) -> None:
        """Writes the agent that a result says was started."""
        key = text(details.childSessionKey)
        if message.toolName == SPAWN and key is not None:
            status = self.state("subagent", "spawn", details.status)
            self._agent(key, call_id, None, status, self._pen.native("spawn", "/message/details"))

    def run(self, row: dict[str, Any]) -> bool:
        """Writes the last state of an agent, as its row in ``subagent_runs`` has it."""
        key = text(row.get("child_session_key"))
        if key is None:
            return False
        payload = _json(row.get("payload_json"))
        execution = payload.get("execution")
        execution = execution if isinstance(execution, dict) else {}
        outcome = execution.get("outcome")
        word = outcome.get("status") if isinstance(outcome, dict) else None
        status = self.state("subagent", "outcome", word) or self.state(
            "subagent", "execution", execution.get("status")
        )
        native = self._pen.native("agent", "")
        keep(native, runId=text(row.get("run_id")), outcome=text(word))
        self._pen.ts = utc_of_ms(execution.get("endedAt")) or utc_of_ms(row.get("created_at"))
        self._agent(key, None, text(payload.get("label")), status or "unknown", native)
        return True

    def child(self, key: str, name: str | None) -> None:
        """Writes an agent of which only its own session tells."""
        if key not in self.agents:
            self._agent(key, None, name, "unknown", self._pen.native("window", ""))

    def _agent(
        self, key: str, call_id: str | None, name: str | None, status: str | None, native: Native
    ) -> None:
        before = self.agents.get(key)
        record = Subagent(agent_id=key, call_id=call_id, name=name, status=status or "unknown", native=native)
        if before is not None:
            record.call_id = call_id or before.call_id
            record.name = name or before.name
        record.stream = self._streams.get(key)
        self.agents[key] = record
        self._pen.revise(f"agent {key}", record)


def _json(value: Any) -> dict[str, Any]:
    """An object in a column."""
    return value if isinstance(value, dict) else {}
