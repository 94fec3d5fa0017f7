"""``toolUseResult``: what a tool reported of itself, beside what the model got.

Owns the loose struct of its members and the facts read from them: streams, durations, background tasks, file
changes as supplied. Every member is read by name; prose is never read.

Format: the page on Claude Code, sections 1.3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from callsheet.harness._port.pen import Pen, amount, number, raw_json
from callsheet.harness.claude_code.shapes import ABSENT, FAILS, is_string, mark, text, verbatim
from callsheet.records import Change, Exec, Patch

WATCHES = "Monitor"
"""The tool whose ``taskId`` is a process (other tools' is an entry of a list)."""
AGENTS = ("Agent", "Task")
"""The tools that start an agent."""
PROCESSES = (None, "local_bash")
"""Values of ``task_type`` that stand for a process; any other task is an agent or of a kind not known here."""
INT32_LOW, INT32_HIGH = -(1 << 31), (1 << 32) - 1


SHELLS = ("Bash", "PowerShell")
PLAIN = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit", "Glob", "Grep", "WebFetch", "WebSearch"))
"""Tools that report of no process, terminal, agent or plan."""


class Report(Struct, gc=False):
    """Members of ``toolUseResult`` that are read of any tool, known or not.

    Attributes:
        persistedOutputPath: Where the harness put the whole of an output that was too large to send.
        persistedOutputSize: How large it is.
    """

    stdout: Raw = ABSENT
    interrupted: Any = UNSET
    persistedOutputPath: Any = None
    persistedOutputSize: Any = None


class ToolUse(Report, gc=False):
    """Members of ``toolUseResult`` that any tool of any version is known to write."""

    type: Any = None
    status: Any = None
    stderr: Raw = ABSENT
    exitCode: Any = None
    command: Any = None
    durationMs: Any = None
    totalDurationMs: Any = None
    durationSeconds: Any = None
    timedOutAfterMs: Any = None
    backgroundTaskId: Any = None
    taskId: Any = None
    shellId: Any = None
    shell_id: Any = None
    task_id: Any = None
    task_type: Any = None
    task: Any = None
    tasks: Any = None
    success: Any = None
    statusChange: Any = None
    agentId: Any = None
    agentType: Any = None
    isAsync: Any = None
    filePath: Any = None
    notebook_path: Any = None
    structuredPatch: Raw = ABSENT
    originalFile: Raw = ABSENT
    content: Raw = ABSENT
    newTodos: Any = None
    plan: Any = None
    questions: Any = None
    answers: Any = None


_SHELL = "stdout stderr interrupted timedOutAfterMs backgroundTaskId"
_STOP = "success command shell_id task_id task_type"
_AGENT = "status totalDurationMs agentId agentType isAsync"
_FILE = "type filePath structuredPatch originalFile content"
_WORDS = {
    "Bash": _SHELL,
    "PowerShell": _SHELL,
    "BashOutput": "stdout stderr status exitCode command shellId",
    "Monitor": "taskId",
    "TaskOutput": "task",
    "AgentOutputTool": "task",
    "BashOutputTool": "task",
    "TaskStop": _STOP,
    "KillShell": _STOP,
    "KillBash": _STOP,
    "Glob": "durationMs",
    "Grep": "durationMs",
    "WebFetch": "durationMs",
    "WebSearch": "durationSeconds",
    "Agent": _AGENT,
    "Task": _AGENT,
    "Edit": _FILE,
    "Write": _FILE,
    "MultiEdit": _FILE,
    "NotebookEdit": "notebook_path",
    "TodoWrite": "newTodos",
    "TaskCreate": "task",
    "TaskGet": "task",
    "TaskList": "tasks",
    "TaskUpdate": "success statusChange taskId",
    "ExitPlanMode": "plan",
    "exit_plan_mode": "plan",
    "AskUserQuestion": "questions answers",
}
"""Which members each tool writes. The same name in another tool's report means something else, if anything."""


@cache
def _decoder_of(words: str) -> msgspec.json.Decoder[ToolUse]:
    """Reads a tool's own members; every other is passed over."""
    own = frozenset((*words.split(), "persistedOutputPath", "persistedOutputSize"))
    renamed = {name: name if name in own else f"\uffff{name}" for name in ToolUse.__struct_fields__}
    members = [(one.name, one.type, one.default) for one in msgspec.structs.fields(ToolUse)]
    kind = msgspec.defstruct("ToolUse", members, bases=(ToolUse,), rename=renamed, gc=False)
    return msgspec.json.Decoder(kind)


_report = msgspec.json.Decoder(Report)
_decoders = {tool: _decoder_of(words) for tool, words in _WORDS.items()}
EMPTY = ToolUse()


def tool_use(raw: Raw, tool: str | None) -> ToolUse:
    """What a tool reports of itself; the empty one of a tool that is not known, and for a text or a list."""
    decoder = _decoders.get(tool) if tool is not None else None
    if decoder is None or not raw or mark(raw) != b"{":
        return EMPTY
    try:
        return decoder.decode(raw)
    except FAILS:
        return EMPTY


def report_of(raw: Raw, use: ToolUse) -> Report:
    """What is read of any tool's report: of one that is not known, too."""
    if use is not EMPTY or mark(raw) != b"{":
        return use
    try:
        return _report.decode(raw)
    except FAILS:
        return EMPTY


def exec_of(use: ToolUse, tool: str | None, is_agent: Callable[[str], bool]) -> Exec | None:
    """Process details, from fields made for them only (ASR-260, 267, 288); an agent is no terminal (ASR-286)."""
    if tool in PLAIN:
        return None
    stdout = verbatim(use.stdout) if is_string(use.stdout) else None
    stderr = verbatim(use.stderr) if is_string(use.stderr) else None
    if tool in SHELLS and use.backgroundTaskId is None and use.timedOutAfterMs is None:
        return None if stdout is None and stderr is None else Exec(stdout=stdout, stderr=stderr)
    polled = use.task if isinstance(use.task, dict) and "output" in use.task else {}
    terminal = text(use.backgroundTaskId) or text(use.shellId)
    if terminal is None and tool == WATCHES:
        terminal = text(use.taskId)
    if terminal is None and polled.get("task_type") in PROCESSES:
        terminal = text(polled.get("task_id"))
    if terminal is not None and is_agent(terminal):
        terminal = None
    output = polled.get("output")
    if (
        terminal is None
        and not polled
        and use.exitCode is None
        and use.command is None
        and use.timedOutAfterMs is None
    ):
        return None if stdout is None and stderr is None else Exec(stdout=stdout, stderr=stderr)
    return Exec(
        stdout=stdout,
        stderr=stderr,
        output=output if isinstance(output, str) else None,
        exit_code=exit_code(polled.get("exitCode") if polled else use.exitCode),
        terminal_id=terminal,
        timed_out=True if number(use.timedOutAfterMs) is not None else None,
        command=text(use.command),
    )


def exit_code(value: Any) -> int | None:
    """A recorded numeric exit status within the range of ASR-260."""
    if isinstance(value, int) and not isinstance(value, bool) and INT32_LOW <= value <= INT32_HIGH:
        return value
    return None


def duration_ms(use: ToolUse) -> int | float | None:
    """The duration that the tool itself reported, in milliseconds (ASR-261)."""
    for value in (use.durationMs, use.totalDurationMs):
        if value is not None and amount(value) is not None:
            return amount(value)
    if use.durationSeconds is None:
        return None
    seconds = amount(use.durationSeconds)
    return None if seconds is None else number(round(seconds * 1000, 3))


def changes(pen: Pen, use: ToolUse) -> list[Change]:
    """File changes as supplied by Edit, Write, MultiEdit and NotebookEdit."""
    if text(use.filePath) and use.structuredPatch:
        change = "add" if use.type == "create" else "modify"
        patch: Patch | None = None
        if bytes(use.structuredPatch) != b"[]":
            patch = Patch(format="hunks", value=use.structuredPatch)
        elif use.type == "create" and use.content:
            patch = Patch(format="full_text", value=use.content)
        return [Change(path=pen.path(use.filePath), change=change, patch=patch)]
    if text(use.notebook_path):
        return [Change(path=pen.path(use.notebook_path), change="modify")]
    return []


def proposed(pen: Pen, tool: str, asked: Any) -> Change | None:
    """The change that an Edit, Write or NotebookEdit call asks for, as the call words it."""
    if not isinstance(asked, dict):
        return None
    if tool in ("Edit", "Write") and text(asked.get("file_path")):
        path = pen.path(asked["file_path"])
        if tool == "Write":
            if not isinstance(asked.get("content"), str):
                return None
            return Change(path=path, patch=Patch(format="full_text", value=raw_json(asked["content"])))
        patch = {"oldText": asked.get("old_string"), "newText": asked.get("new_string")}
        return Change(path=path, change="modify", patch=Patch(format="replace", value=raw_json(patch)))
    if tool == "NotebookEdit" and text(asked.get("notebook_path")):
        return Change(path=pen.path(asked["notebook_path"]), change="modify")
    return None
