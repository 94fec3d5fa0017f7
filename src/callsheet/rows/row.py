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

State = Literal["running", "completed", "failed", "declined", "cancelled", "interrupted", "unconfirmed"]


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
        original_bytes: Size of the whole text, where the source cut it and says so.
        member: The record's member that it comes from: content, exec, displayContent, raw, output, preview.
    """

    text: str
    truncated: bool
    omitted: int | None = None
    omitted_lines: int | None = None
    tail: str | None = None
    original_bytes: int | None = None
    member: str | None = None


class Count(Shown, kw_only=True):
    """A number that the source reports for the call, with its unit."""

    value: int | float
    unit: str


class ChangeShown(Shown, kw_only=True):
    """One changed file.

    Attributes:
        path: Absolute where the session's roots say so.
        kind: add, modify, delete, move, or unknown where the source does not say.
        patch: As supplied; cut when ``truncated``.
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
    """An agent that a call started; ``stream`` is its stream in the bundle."""

    agent_id: str
    name: str | None = None
    status: str | None = None
    stream: str | None = None


class Remark(Shown, kw_only=True):
    """What the registry says about a value that the source means loosely."""

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
        row: Identity of the row, stable while its record is revised: the id of the entity's first record.
        kind: One of ``ROW_KINDS``.
        state: One of ``State``.
        pairing: paired or dangling for a call; orphan or ambiguous for a result without one.
        title: The main input, or a name, never empty.
        title_from: JSON pointer to the member of ``input`` that the title is; empty for the whole input.
        input: The call's arguments, unless larger than the limit (then ``input_bytes``).
        more_input: JSON pointers to the members of ``input`` that neither the title nor another part of the sheet shows
            (a patch, the row of a plan or a question); empty for the whole input.
        parent: The row that contains this one.
        not_recorded: Members that the source does not record, by their path in the record.
        record: Id of the latest record of the row's own entity.
        result: Id of the latest record of the paired result.
        provisional: The stream is still being read.
        author: Who wrote a message.
        status: The source's own word, where the state cannot carry it.
        reason: Why a call or a result is not paired.
        reached_model: What is known of the way of the result to the model.
        agents: Agents that the call started.
        remarks: Cautions of the registry.
        redacted: Members that were taken out on purpose.
        input_text: The arguments as text, where they are no JSON.
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
