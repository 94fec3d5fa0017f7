"""Rows of calls, and of results that belong to no call.

One row per call entity, with all that folds into it: its paired result, decisions, file changes, agents,
and the last preview of a call that never got a result. An unpaired result has a row of its own and is
unconfirmed, whatever it says: which call it is about is not known (ASR-263, 264, 266). A call without a
paired result is never shown as done (265).

Must never know: how rows are drawn; tool names (the registry knows them).
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.pairing import Reach, Verdict, provider_of
from callsheet.pairing.tally import state_of
from callsheet.pairing.words import reach_of
from callsheet.records import (
    FileChange,
    InputRequest,
    Permission,
    Plan,
    Preview,
    Provider,
    Subagent,
    ToolCall,
    ToolResult,
)
from callsheet.registry import Registry, Tool
from callsheet.rows.changes import changes_shown, paths_of
from callsheet.rows.context import Context, has_captures
from callsheet.rows.decisions import decisions_of
from callsheet.rows.inputs import more_input, title_of
from callsheet.rows.native import count_of
from callsheet.rows.row import ROW_KINDS, AgentShown, Output, Reached, Row, RowKind, State
from callsheet.rows.silence import not_recorded, redacted, remarks_for
from callsheet.rows.text import bound, command_text, cut, raw_value, result_output

RECORD_KINDS: dict[str, RowKind] = {
    "read": "read",
    "search": "search",
    "execute": "command",
    "edit": "file_change",
    "delete": "file_change",
    "move": "file_change",
    "fetch": "web",
}
"""Row kind of a call's own ``kind``, where the registry has none for its name."""


def kind_of(call: ToolCall, provider: Provider | None, tool: Tool | None) -> RowKind:
    """The row kind: an MCP tool by its provider alone, else by the registry, else by the record."""
    if provider is not None and provider.kind == "mcp":
        return "mcp_tool"
    if tool is not None and tool.row in ROW_KINDS and tool.row != "mcp_tool":
        return tool.row
    return RECORD_KINDS.get(call.kind or "", "other")


def call_row(context: Context, number: int) -> Row:
    """The row of a call.

    Args:
        context: The stream.
        number: The first record of the call's entity.
    """
    pairing = context.pairing
    limits = context.limits
    call = context.latest(number, ToolCall)
    call_id = call.call_id
    answer = pairing.result(call_id)
    result = context.latest(answer, ToolResult) if answer is not None else None
    tool = context.tool(call.name)
    provider = provider_of(call, result)
    kind = kind_of(call, provider, tool)
    reason = pairing.why_dangling(call_id)
    state = _state(context, number, call_id, answer, reason)
    file_changes = context.linked(call_id, FileChange)
    agents = context.linked(call_id, Subagent)
    changes, omitted_changes = changes_shown(context, file_changes)
    decisions = decisions_of(context, call_id, result)
    silent = not_recorded(
        call, result, context.registry, is_command=kind == "command", has_run=state not in NEVER_RAN
    )
    if any(one.decision is not None and one.decided_by is None for one in decisions):
        silent.append("permission.decidedBy")
    arguments = raw_value(call.input)
    title = title_of(call, arguments, tool, limits.title, paths_of(changes, omitted_changes))
    row = Row(
        row=context.row_id(number),
        kind=kind,
        state=state,
        pairing=pairing.pairing_of(number, call_id),
        call_id=call_id,
        native_call_id=call.native.call_id if call.native else None,
        name=call.name,
        requested_by=call.requested_by,
        provider=provider,
        title=title.text,
        title_from=title.pointer,
        more_input=more_input(
            call,
            arguments,
            title,
            patched=any(change.patch is not None for change in changes),
            asked=bool(
                context.pairing.linked(call_id, Plan) or context.pairing.linked(call_id, InputRequest)
            ),
            most=limits.items,
        )
        or None,
        parent=context.parent_row(call.parent_call_id) if call.parent_call_id else None,
        changes=changes or None,
        omitted_changes=omitted_changes or None,
        permissions=decisions or None,
        agents=[_agent(agent) for agent in agents] or None,
        not_recorded=silent or None,
        redacted=redacted(call, result) or None,
        remarks=[*remarks_for(call, context.registry), *remarks_for(result, context.registry)] or None,
        record=call.id,
        folded=[one.id for one in (*context.linked(call_id, Permission), *file_changes, *agents)] or None,
        reason=reason,
        ts=call.ts,
        native=context.places(call, result),
        provisional=context.provisional,
    )
    _put_input(row, call, limits.input)
    if result is not None:
        row.reached_model = reached(result, context.registry)
        _put_result(context, row, result, tool)
    elif call_id is not None:
        row.output = _preview(context, call_id)
    return row


NEVER_RAN: frozenset[State] = frozenset(("declined", "cancelled"))
"""States of calls that did not run: there is no exit code and no duration to be recorded."""


def reached(result: ToolResult, registry: Registry | None) -> Reached | None:
    """What the source, or what is known of it, shows of a result's way to the model."""
    match reach_of(result):
        case Reach.REQUEST:
            return Reached(proof="request")
        case Reach.CONTENT:
            return Reached(proof="captures") if has_captures(registry) else None
        case Reach.NONE:
            capture = (result.capture or {}).get("content")
            return Reached(reason=capture.reason) if capture is not None and capture.reason else None


def result_row(context: Context, number: int, result: ToolResult) -> Row:
    """The row of a result that is not paired.

    Args:
        context: The stream.
        number: The first record of the result's entity.
        result: Its latest record.
    """
    pairing = context.pairing
    latest = pairing.latest(number)
    named = result.call_id or result.native_call_id
    command = result.exec.command if result.exec else None
    row = Row(
        row=context.row_id(number),
        kind="mcp_tool" if result.provider and result.provider.kind == "mcp" else "other",
        state="unconfirmed",
        pairing=pairing.pairing_of(latest, result.call_id),
        call_id=result.call_id,
        native_call_id=result.native_call_id,
        provider=result.provider,
        title=cut(
            command_text(command) if command else f"result of {named or 'an unnamed call'}",
            context.limits.title,
        ),
        permissions=decisions_of(context, None, result) or None,
        not_recorded=not_recorded(None, result, context.registry, is_command=command is not None) or None,
        redacted=redacted(result) or None,
        remarks=remarks_for(result, context.registry) or None,
        record=result.id,
        reason=pairing.why_unpaired(latest, result.call_id),
        ts=result.ts,
        native=context.places(result),
        provisional=context.provisional,
    )
    _put_result(context, row, result, None)
    row.reached_model = reached(result, context.registry)
    row.result = None
    row.status = result.status
    return row


def _state(context: Context, number: int, call_id: str, answer: int | None, reason: str | None) -> State:
    pairing = context.pairing
    verdict = pairing.verdict(call_id)
    if (
        answer is None
        and reason == "no_result"
        and context.may_run(number)
        and verdict is not Verdict.REJECTED
    ):
        return "running"
    return state_of(pairing.status_of(answer) if answer is not None else None, verdict)


def _put_input(row: Row, call: ToolCall, most: int) -> None:
    if isinstance(call.input, Raw):
        data = bytes(call.input)  # a copy: a Raw keeps its whole line alive
        if len(data) <= most:
            row.input = Raw(data)
        else:
            row.input_bytes = len(data)
    elif call.input_text is not None:
        row.input_text = cut(call.input_text, most)


def _put_result(context: Context, row: Row, result: ToolResult, tool: Tool | None) -> None:
    row.result = result.id
    row.native_call_id = row.native_call_id or result.native_call_id
    row.duration_ms = result.duration_ms
    row.exit_code = result.exec.exit_code if result.exec else None
    row.output = result_output(result, context.blob, context.limits.text)
    row.count = count_of(result, tool, context.blob)
    if row.state == "unconfirmed" or (row.state == "declined" and result.status != "denied"):
        row.status = result.status
    if result.error is not None:
        message = result.error.message
        code = result.error.code
        words = [word for word in (None if code is None else str(code), message) if word]
        row.error = cut(": ".join(words) or "the source gives no message", context.limits.title)


def _agent(agent: Subagent) -> AgentShown:
    return AgentShown(agent_id=agent.agent_id, name=agent.name, status=agent.status, stream=agent.stream)


def _preview(context: Context, call_id: str) -> Output | None:
    for preview in reversed(context.linked(call_id, Preview)):
        if preview.output is not None:
            output = bound(preview.output, context.limits.text, "preview")
            output.truncated = True
            return output
    return None
