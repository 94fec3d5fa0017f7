"""Rows of the conversation around the calls: messages, thoughts, requests, plans.

Reasoning is drawn where the source calls it a summary; raw reasoning, and reasoning whose nature is not
stated, only on request (decision 11). A request without a decision is unresolved, never granted or refused
(ASR-269). The answer to a secret is nowhere, so it cannot be drawn (ASR-283).

Must never know: how rows are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

from callsheet.pairing.words import Verdict, verdict_of
from callsheet.records import InputRequest, Message, Option, Permission, Plan, Reasoning, Record
from callsheet.rows.context import Context, View
from callsheet.rows.decisions import permission_shown
from callsheet.rows.row import Row, RowKind, State
from callsheet.rows.silence import redacted, remarks_for
from callsheet.rows.text import bound, compact, counted, cut, first_line, parts_text

_ENTRY_MARKS = {None: "-", "pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}
"""What stands before a step of a plan: nothing is ticked or left open where no state is recorded."""
_REQUEST_STATES: dict[str | None, State] = {
    "answered": "completed",
    "declined": "declined",
    "cancelled": "cancelled",
    "timed_out": "cancelled",
}
_VERDICT_STATES: dict[Verdict, State] = {
    Verdict.ALLOWED: "completed",
    Verdict.REJECTED: "declined",
    Verdict.OTHER: "cancelled",
    Verdict.OPEN: "unconfirmed",
}


def plain_row(
    context: Context, number: int, record: Record, kind: RowKind, title: str, state: State = "completed"
) -> Row:
    """A row that is no call's: identity, title and what holds for every record."""
    return Row(
        row=context.row_id(number),
        kind=kind,
        state=state,
        title=cut(title, context.limits.title),
        record=record.id or f"#{number}",
        redacted=redacted(record) or None,
        remarks=remarks_for(record, context.registry) or None,
        ts=record.ts,
        native=context.places(record),
        provisional=context.provisional,
    )


def why_hidden(view: View, record: Message | Reasoning) -> str | None:
    """Why a message or a thought draws no row, as one of ``HIDDEN``; None when it does."""
    if view.audit:
        return None
    if isinstance(record, Message):
        return "harness_messages" if record.author == "harness" and not view.harness else None
    if record.form != "summary" and not view.thoughts:
        return "thoughts_raw" if record.form == "raw" else "thoughts_unstated"
    return None if parts_text(record.content or ()).strip() else "thoughts_empty"


def message_row(context: Context, number: int, message: Message) -> Row | None:
    """The row of a message; None when it is not drawn."""
    hidden = why_hidden(context.view, message)
    if hidden is not None:
        context.hidden[hidden] += 1
        return None
    text = parts_text(message.content or ())
    row = plain_row(
        context, number, message, "message", first_line(text, context.limits.title) or f"({message.author})"
    )
    row.author = message.author
    if message.content is None:
        row.not_recorded = None if row.redacted else ["content"]
    else:
        row.output = bound(text, context.limits.text, "content")
    return row


def thought_row(context: Context, number: int, thought: Reasoning) -> Row | None:
    """The row of a thought; None when it is not drawn."""
    text = parts_text(thought.content or ())
    hidden = why_hidden(context.view, thought)
    if hidden is not None:
        context.hidden[hidden] += 1
        return None
    row = plain_row(
        context, number, thought, "thought", first_line(text, context.limits.title) or "(no text is recorded)"
    )
    row.duration_ms = thought.duration_ms
    row.status = thought.form
    if thought.content is not None and (thought.form == "summary" or context.view.thoughts):
        row.output = bound(text, context.limits.text, "content")
    elif thought.content is not None:
        row.title = "(raw reasoning is drawn on request)"
    return row


def permission_row(context: Context, number: int, permission: Permission) -> Row:
    """The row of a request for approval."""
    subject = permission.subject
    call_id = subject.call_id if subject else None
    # Below the row of its call, its id would tell a reader nothing.
    unnamed = f"permission {permission.request_id}" if call_id is None else "permission"
    title = permission.title or (subject.command if subject else None) or unnamed
    state = _VERDICT_STATES[verdict_of(permission.decision)]
    if permission.decision is None and context.may_run(number):
        state = "running"
    row = plain_row(context, number, permission, "request", title, state)
    row.call_id = call_id
    row.parent = context.parent_row(call_id)
    row.status = permission.status
    row.permissions = [permission_shown(permission)]
    text = "\n".join(_permission_lines(permission))
    row.output = bound(text, context.limits.text, "permission") if text else None
    return row


def option_words(option: Option) -> str:
    """An option in the agent's words, with what it does where they do not tell."""
    kind = (option.kind or "").replace("_", " ")
    if not option.name:
        return kind or option.option_id
    does = kind.partition(" ")[0]
    return option.name if does in option.name.lower() else f"{kind}: {option.name}"


def _permission_lines(permission: Permission) -> Iterator[str]:
    if permission.description:
        yield permission.description
    for option in permission.options or ():
        chosen = "*" if option.option_id == permission.selected_option_id else "-"
        yield f"{chosen} {option.name or option.kind or option.option_id}"
    for review in permission.reviews or ():
        by = review.by
        who = by.name or by.person or by.agent or by.address or by.device or by.session or "a reviewer"
        yield f"review by {who}: {': '.join(word for word in (review.verdict, review.rationale) if word)}"
    for label, text in (
        ("reason", permission.reason),
        ("rationale", permission.rationale),
        ("feedback", permission.feedback),
    ):
        if text:
            yield f"{label}: {text}"


def input_request_row(context: Context, number: int, request: InputRequest) -> Row:
    """The row of a question to the user."""
    questions = request.questions or []
    title = (
        request.message
        or (questions[0].text if questions else None)
        or request.url
        or f"{request.mode} request"
    )
    state = _REQUEST_STATES.get(request.status, "running" if context.may_run(number) else "unconfirmed")
    row = plain_row(
        context, number, request, "request", first_line(title, context.limits.title) or request.mode, state
    )
    row.call_id = request.call_id
    row.parent = context.parent_row(request.call_id)
    row.status = request.status
    text = "\n".join(_request_lines(request))
    row.output = bound(text, context.limits.text, "questions") if text else None
    return row


def _request_lines(request: InputRequest) -> Iterator[str]:
    answers = {answer.question_id: answer for answer in request.answers or ()}
    for question in request.questions or ():
        yield f"? {question.text}"
        answer = answers.get(question.id)
        chosen = set(answer.selected or ()) if answer else set()
        known = set()
        for option in question.options or ():
            value = option.value if option.value is not None else option.label
            known.add(value)
            yield f"  {'*' if value in chosen else '-'} {option.label}"
        for other in (answer.selected or ()) if answer else ():
            if other not in known:
                yield f"  * {other}"
        if question.secret or request.secret:
            yield "  (a secret: the answer is not kept)"
        elif answer is not None and answer.text:
            yield f"  > {answer.text}"
    if request.url:
        yield request.url
    if request.response is not None:
        yield f"> {request.response if isinstance(request.response, str) else compact(request.response)}"


def plan_row(context: Context, number: int, plan: Plan) -> Row:
    """The row of a plan, its steps as a list."""
    row = plain_row(context, number, plan, "plan", counted(len(plan.entries), "step"))
    row.call_id = plan.call_id
    row.parent = context.parent_row(plan.call_id)
    lines = [f"{_ENTRY_MARKS.get(entry.status, f'[{entry.status}]')} {entry.text}" for entry in plan.entries]
    row.output = bound("\n".join(lines), context.limits.text, "entries")
    return row
