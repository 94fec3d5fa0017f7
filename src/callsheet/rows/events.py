"""Rows of what happened beside the calls: hooks, terminals, agents, file changes of a turn, notices.

A terminal is one row however many snapshots it has; one that the source last saw running is unconfirmed
once the stream has ended, and one that exited is completed or failed only where the source says so, by its
word or by an exit code. Unmapped lines, usage and turn states draw no row of their own unless every
record is asked for; a turn that failed or was interrupted is a notice where the source says so.

Must never know: how rows are drawn.
"""

from __future__ import annotations

from pathlib import PurePath

from callsheet.records import (
    Compaction,
    FileChange,
    Gap,
    Hook,
    Notice,
    Record,
    Session,
    Subagent,
    Terminal,
    ToolCall,
    Turn,
    Unknown,
    Unmapped,
    Usage,
)
from callsheet.registry.when import MISSING
from callsheet.rows.changes import changes_shown, paths_of
from callsheet.rows.context import Context, View
from callsheet.rows.row import AgentShown, PermissionShown, Row, State
from callsheet.rows.talk import plain_row
from callsheet.rows.text import (
    blob_bytes,
    bound,
    command_text,
    compact,
    counted,
    first_line,
    parts_text,
    raw_value,
    stored_value,
)

_HOOK_STATES: dict[str | None, State] = {
    "completed": "completed",
    "failed": "failed",
    "blocked": "declined",
    "cancelled": "cancelled",
}
_TERMINAL_STATES: dict[str | None, State] = {"killed": "interrupted", "stopped": "cancelled"}
_EXIT_WORDS: dict[str | None, State] = {"completed": "completed", "failed": "failed"}
"""Words of a source for a process that ended by itself."""
_AGENT_STATES: dict[str | None, State] = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_TURN_STATES: dict[str, State] = {"failed": "failed", "interrupted": "interrupted", "lost": "unconfirmed"}


def hook_row(context: Context, number: int, hook: Hook) -> Row:
    """The row of a hook run."""
    what = hook.name or (command_text(hook.command) if hook.command else None)
    state = _HOOK_STATES.get(hook.status, "unconfirmed")
    row = plain_row(context, number, hook, "hook", f"{hook.event}: {what}" if what else hook.event, state)
    row.call_id = hook.call_id
    row.parent = context.parent_row(hook.call_id)
    row.status = hook.status
    row.exit_code = hook.exit_code
    row.duration_ms = hook.duration_ms
    if hook.decision is not None:
        row.permissions = [PermissionShown(decision=hook.decision, decided_by="hook")]
    texts = [text for text in (parts_text(hook.output or ()), hook.stdout, hook.stderr) if text]
    if texts:
        row.output = bound("\n".join(texts), context.limits.text, "output" if hook.output else "stdout")
    return row


def terminal_row(context: Context, number: int, terminal: Terminal) -> Row:
    """The row of a background process: its last snapshot, in the place of the first."""
    title = (
        command_text(terminal.command) if terminal.command else terminal.description or terminal.terminal_id
    )
    word = _source_word(terminal)
    row = plain_row(
        context, number, terminal, "terminal", title, _terminal_state(context, number, terminal, word)
    )
    row.call_id = terminal.call_id
    row.parent = context.parent_row(terminal.call_id)
    row.status = word or terminal.status
    row.exit_code = terminal.exit_code
    if terminal.exit_code is None and (terminal.status == "exited" or _never_has_code(context, terminal)):
        row.not_recorded = ["exitCode"]
    if terminal.output is not None:
        text = terminal.output.text
        data = (
            blob_bytes(terminal.output.blob, context.blob) if text is None and terminal.output.blob else None
        )
        if data is not None:
            text = data.decode("utf-8", "replace")
        row.output = bound(text, context.limits.text, "output") if text is not None else None
    return row


def _source_word(terminal: Terminal) -> str | None:
    """The status in the source's own word, where the record keeps it."""
    extra = raw_value(terminal.native.extra) if terminal.native else None
    word = extra.get("status") if isinstance(extra, dict) else None
    return word if isinstance(word, str) and word else None


def _terminal_state(context: Context, number: int, terminal: Terminal, word: str | None) -> State:
    if terminal.status == "running":
        latest = context.pairing.latest(number)
        return "running" if context.may_run(latest) else "unconfirmed"
    if terminal.status != "exited":
        return _TERMINAL_STATES.get(terminal.status, "unconfirmed")
    if word in _EXIT_WORDS or terminal.exit_code is None:
        return _EXIT_WORDS.get(word, "unconfirmed")
    return "failed" if terminal.exit_code else "completed"


def _never_has_code(context: Context, terminal: Terminal) -> bool:
    if terminal.status == "running":
        return False
    call = context.pairing.call(terminal.call_id)
    name = context.latest(call, ToolCall).name if call is not None else None
    return context.registry is not None and context.registry.is_never("terminal", "exitCode", name)


def subagent_row(context: Context, number: int, agent: Subagent) -> Row:
    """The row of an agent that no one call started."""
    running: State = "running" if context.may_run(number) else "unconfirmed"
    state = running if agent.status == "running" else _AGENT_STATES.get(agent.status, "unconfirmed")
    row = plain_row(context, number, agent, "subagent", agent.name or agent.agent_id, state)
    row.call_id = agent.call_id
    row.status = agent.status
    row.agents = [
        AgentShown(agent_id=agent.agent_id, name=agent.name, status=agent.status, stream=agent.stream)
    ]
    return row


def file_change_row(context: Context, number: int, change: FileChange) -> Row:
    """The row of a turn's file changes, or of a call's when the call is not there."""
    shown, more = changes_shown(context, [change])
    title = paths_of(shown, more) or f"changes of a {change.scope}"
    row = plain_row(context, number, change, "file_change", title)
    row.call_id = change.call_id
    row.changes = shown or None
    row.omitted_changes = more or None
    row.status = change.state
    return row


def gap_row(context: Context, number: int, gap: Gap) -> Row:
    """The notice of native bytes that could not be read."""
    words = []
    if gap.source is not None:
        words.append(PurePath(context.source_path(gap.source)).name)
    if gap.line is not None:
        words.append(f"line {gap.line:,}")
    elif gap.offset is not None:
        words.append(f"byte {gap.offset:,}")
    size = f" ({counted(gap.bytes, 'byte')})" if gap.bytes is not None else ""
    title = f"{' '.join([*words, 'could not be read:'])} {gap.reason}{size}"
    return plain_row(context, number, gap, "notice", title, "failed")


def is_quiet(view: View, turn: Turn) -> bool:
    """Whether a turn draws no row: it ended well, or goes on."""
    return turn.status not in _TURN_STATES and not view.audit


def turn_row(context: Context, number: int, turn: Turn) -> Row | None:
    """The notice of a turn that did not end well; None for others."""
    state = _TURN_STATES.get(turn.status)
    if is_quiet(context.view, turn):
        return None
    words = [turn.reason, turn.error.message if turn.error else None]
    detail = ": ".join(word for word in words if word)
    title = f"turn {turn.status}" + (f": {detail}" if detail else "")
    row = plain_row(context, number, turn, "notice", title, state or "completed")
    row.duration_ms = turn.duration_ms
    return row


def compaction_row(context: Context, number: int, compaction: Compaction) -> Row:
    """The notice that the context was compacted."""
    title = "context compacted" + (f" ({compaction.trigger})" if compaction.trigger else "")
    row = plain_row(context, number, compaction, "notice", title)
    if compaction.summary is not None:
        row.output = bound(parts_text(compaction.summary), context.limits.text, "summary")
    return row


def notice_row(context: Context, number: int, notice: Notice) -> Row:
    """The row of what the harness told the person or noted."""
    text = parts_text(notice.content or ()) if notice.content is not None else ""
    kind = notice.native_type or "notice"
    if text.strip():
        row = plain_row(context, number, notice, "notice", first_line(text, context.limits.title))
        if text.strip() != row.title:
            row.output = bound(text, context.limits.text, "content")
        return row
    value = stored_value(notice, "value", notice.value, context.blob)
    words = kind if value is MISSING else f"{kind} {compact(value)}"
    row = plain_row(context, number, notice, "notice", words)
    if notice.content is None and value is MISSING and not row.redacted:
        row.not_recorded = ["content"]
    return row


def quiet_row(context: Context, number: int, record: Record | Unknown) -> Row | None:
    """The notice of a record that draws a row only when every record is asked for."""
    if not context.view.audit:
        return None
    if isinstance(record, Unknown):
        return Row(
            row=record.id or f"#{number}",
            kind="notice",
            state="completed",
            title=f"record of unknown type {record.type!r}",
            record=record.id or f"#{number}",
            provisional=context.provisional,
        )
    text = None
    match record:
        case Unmapped():
            title = f"unmapped {record.native_type or 'line'}"
            text = compact(raw_value(record.value)) if record.value else None
        case Usage():
            counts = [f"{count.name} {count.value:,}" for count in record.counts or ()]
            reported = (
                ("context", record.context_used),
                ("window", record.context_window),
                ("percent", record.percent),
            )
            counts += [f"{name} {value:,}" for name, value in reported if value is not None]
            title = f"usage of the {record.scope}: {', '.join(counts) or 'no numbers'}"
        case Session():
            title = f"session {record.native_session_id or ''}".rstrip()
        case _:
            title = str(record.__struct_config__.tag)
    row = plain_row(context, number, record, "notice", title)
    if text is not None:
        row.output = bound(text, context.limits.text, "value")
    return row
