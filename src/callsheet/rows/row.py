"""Row: one line of the sheet, as ``show --json`` prints it.

Owns the struct, the words of ``kind`` and ``state``, and the bounds of a row. Absent members are left out.
Besides the members that every reader may count on, a row has facts that only some faces draw (from
``author`` on).

Must never know: how it is drawn, files, harnesses.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from callsheet.records import Patch, Provider

RowKind = Literal[
    "read",
    "search",
    "command",
    "file_change",
    "web",
    "mcp_tool",
    "subagent",
    "other",
    "message",
    "thought",
    "request",
    "hook",
    "terminal",
    "plan",
    "notice",
]
ROW_KINDS: tuple[RowKind, ...] = RowKind.__args__  # type: ignore[attr-defined]
"""Every row kind."""

KINDS: dict[RowKind, str] = {
    "read": "a call that reads",
    "search": "a call that searches",
    "command": "a call that runs a command",
    "file_change": "a call that changes files, or changes of a turn",
    "web": "a call that reads the web",
    "mcp_tool": "a call of an MCP tool, by its provider alone",
    "subagent": "a call that starts an agent, or an agent that no one call started",
    "other": "any other call, or a result without its call",
    "message": "a message of the conversation",
    "thought": "reasoning",
    "request": "a call that asks the person; a request for approval or a question",
    "hook": "the run of a hook",
    "terminal": "a process that may outlive its call",
    "plan": "a call about a plan; a plan as it was then",
    "notice": "what the harness noted; a gap, a compaction, a turn that did not end well",
}
"""What each kind of row is about. For calls, the registry's entry for the tool decides, else the record's kind."""

State = Literal["running", "completed", "failed", "declined", "cancelled", "interrupted", "unconfirmed"]
STATES: dict[State, str] = {
    "running": "there is no result yet, and the stream still grows",
    "completed": "the source says so",
    "failed": "the source says so; of a process without the source's word, an exit code that is not 0",
    "declined": "the result is denied, or the latest decision refuses and the result is not completed",
    "cancelled": "the source says that it did not run, or (a process) that it was stopped",
    "interrupted": "the source says that it was broken off, or (a process) killed",
    "unconfirmed": (
        "nothing tells the outcome: no result when the stream ended, an unknown status, a result that no call can be "
        "paired with, a process that exited without more"
    ),
}
"""When a row has each state."""


class Limits(Struct, frozen=True):
    """Bounds of one row, in characters (``items``: entries of a list)."""

    title: int = 1_000
    text: int = 64_000
    input: int = 64_000
    patch: int = 64_000
    items: int = 200
    places: int = 12


class Shown(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of a row and its parts."""


class Output(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Output text.

    Attributes:
        text: The text, or its head when ``omitted`` is set.
        truncated: Something is missing: cut by the source, or here.
        omitted: Characters left out here between ``text`` and ``tail``.
        omitted_lines: Line breaks among them.
        tail: The end of a text that was cut here.
        omitted_before: Bytes before ``text`` that are gone: of the output of what is running, the end is kept.
        original_bytes: Size of the whole text, where the source cut it and says so.
        member: The record's member that it comes from: content, exec, displayContent, raw, output, preview.
    """

    text: str
    truncated: bool
    omitted: int | None = None
    omitted_lines: int | None = None
    tail: str | None = None
    omitted_before: int | None = None
    original_bytes: int | None = None
    member: str | None = None


class Count(Shown, kw_only=True):
    """A number that the source reports for the call, with its unit.

    Attributes:
        value: The number; nothing is counted here.
        unit: lines, files, matches, others.
    """

    value: int | float
    unit: str


class ChangeShown(Shown, kw_only=True):
    """One changed file.

    Attributes:
        path: Absolute where the session's roots say so.
        kind: add, modify, delete, move, or unknown where the source does not say.
        old_path: Where the file was before it was moved.
        patch: As supplied; cut when ``truncated``.
        truncated: The patch is cut.
        state: The source's word: a requested change is ``proposed``, which is no proof.
    """

    path: str
    kind: str
    old_path: str | None = None
    patch: Patch | None = None
    truncated: bool = False
    state: str | None = None


class PermissionShown(Shown, kw_only=True):
    """One decision about a call; without ``decision`` it is unresolved.

    Attributes:
        decision: allow_once, allow_session, allow_always, reject_once, reject_always, cancelled, timeout, others.
        decided_by: user, policy, hook, classifier, others; absent where the source does not say it.
        rule: The rule that decided, as the source names it.
        said: The decision in the source's own words, as recorded.
    """

    decision: str | None = None
    decided_by: str | None = None
    rule: str | None = None
    said: dict[str, Any] | None = None


class AgentShown(Shown, kw_only=True):
    """An agent that a call started.

    Attributes:
        agent_id: Its id.
        name: Its name or type.
        status: Its state as the source says it.
        stream: Its stream in the bundle.
    """

    agent_id: str
    name: str | None = None
    status: str | None = None
    stream: str | None = None


class Remark(Shown, kw_only=True):
    """What the registry says about a value that the source means loosely.

    Attributes:
        member: The member that it is about, by its path in the record.
        note: What is loose about it.
    """

    member: str
    note: str


class Reached(Shown, kw_only=True):
    """Whether the source shows that a result reached the model (ASR-259).

    Attributes:
        proof: ``request`` when a recorded request carries it; ``captures`` when captures of this version of the agent
            show that the stored text is what was sent.
        reason: Why the source does not show it; then nothing is known, which is not the same as not sent.
    """

    proof: str | None = None
    reason: str | None = None


class NativePlace(Shown, kw_only=True):
    """Where a fact of the row stands in a native source.

    Attributes:
        source: Path of the source, as the session record names it; its id where that is not known.
        line: 1-based line.
        table: Table of a database.
        key: Key of the row in that table.
        role: What the native line is to the record: call, result, proof, request, others.
    """

    source: str
    line: int | None = None
    table: str | None = None
    key: Any = None
    role: str | None = None


class Row(Shown, kw_only=True):
    """One row.

    Attributes:
        row: Identity of the row, stable while its record is revised: the id of the first record. A plan has a row for
            each call that worked on it.
        kind: What it is about.
        state: How it ended, as far as that is known.
        pairing: paired or dangling for a call; orphan or ambiguous for a result without one.
        call_id: The call.
        native_call_id: The call's id as the source writes it, where it is another.
        name: The exact name of the tool.
        requested_by: model, user, harness, code; absent where the source does not say who asked.
        provider: Where the tool comes from.
        title: The main input, or a name, never empty.
        title_from: JSON pointer to the member of ``input`` that the title is; empty for the whole input.
        input: The call's arguments, unless larger than the limit (then ``inputBytes``).
        more_input: JSON pointers to the members of ``input`` that neither the title nor another part of the sheet shows
            (a patch, the row of a plan or a question); empty for the whole input.
        parent: The row that contains this one.
        count: A number that the source reports.
        error: The error as the source words it.
        exit_code: From a field made for it, never from text.
        duration_ms: Milliseconds, as the source reports them.
        output: What came back: what reached the model, else what ran or what is stored.
        changes: Changed files.
        permissions: Decisions about the call, in order.
        not_recorded: Members that the source does not record, by their path in the record.
        record: Id of the latest record of the row's own entity.
        result: Id of the latest record of the paired result.
        folded: Ids of further records that the row shows: decisions, changed files, agents.
        provisional: The stream is still being read.
        author: Who wrote a message.
        status: The source's own word, where the state cannot carry it.
        reason: Why a call or a result is not paired.
        reached_model: What is known of the way of the result to the model.
        agents: Agents that the call started.
        remarks: Cautions of the registry.
        redacted: Members that were taken out on purpose.
        input_text: The arguments as text, where they are no JSON.
        input_bytes: Bytes of arguments that are left out.
        omitted_changes: Changed files beyond the limit.
        stream: The stream of a row that is not the session's own.
        ts: When the source says it happened.
        native: Where the row's call, and its result, stand in the sources.
    """

    row: str
    kind: RowKind
    state: State
    pairing: str | None = None
    call_id: str | None = None
    native_call_id: str | None = None
    name: str | None = None
    requested_by: str | None = None
    provider: Provider | None = None
    title: str
    title_from: str | None = None
    input: Raw | UnsetType = UNSET
    more_input: list[str] | None = None
    parent: str | None = None
    count: Count | None = None
    error: str | None = None
    exit_code: int | None = None
    duration_ms: int | float | None = None
    output: Output | None = None
    changes: list[ChangeShown] | None = None
    permissions: list[PermissionShown] | None = None
    not_recorded: list[str] | None = None
    record: str
    result: str | None = None
    folded: list[str] | None = None
    provisional: bool = False
    author: str | None = None
    status: str | None = None
    reason: str | None = None
    reached_model: Reached | None = None
    agents: list[AgentShown] | None = None
    remarks: list[Remark] | None = None
    redacted: list[str] | None = None
    input_text: str | None = None
    input_bytes: int | None = None
    omitted_changes: int | None = None
    stream: str | None = None
    ts: str | None = None
    native: list[NativePlace] | None = None

    def changed(self, **members: Any) -> Row:
        """A copy with some members replaced."""
        return Row(**{name: members.get(name, getattr(self, name)) for name in self.__struct_fields__})
