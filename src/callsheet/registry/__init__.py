"""The registry: one TOML file per harness that says how native facts become records, readable by anyone.

Owns the shape of these files, version ranges, conditions over native JSON, and the table lookups that importer and
audit share. First matching entry wins. A table never looks at prose: conditions compare values of fields.

Must never know: records, harness code, files other than its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from callsheet.registry.facts import Alias, Fact, Marks, Unit
from callsheet.registry.versions import Versions, in_ranges
from callsheet.registry.when import Conditions, matches

_BEYOND = bytes(range(128, 256))
_WIDE = re.compile(rb"\\u(?!00)")
"""An escape of a character beyond ASCII (and Latin letters, which no agent counts as more)."""

HARNESSES: tuple[str, ...] = ("claude-code", "codex", "acp", "openclaw", "gemini", "opencode", "t3code")
"""Registry files that ship with the package."""


class Harness(Struct, kw_only=True):
    """Head of a registry file."""

    name: str
    title: str = ""
    kinds: list[str] = []
    versions_seen: list[str] = []
    stored_at: list[str] = []


class CountRule(Struct, kw_only=True):
    """A number that the source reports for a call; the pointer starts at the native result's root."""

    pointer: str
    unit: str


class Tool(Struct, kw_only=True):
    """One exact tool name: ACP kind, row type, main inputs (pointers, first present wins), reported counts."""

    name: str
    kind: str | None = None
    row: str | None = None
    input: str | list[str] | None = None
    count: CountRule | list[CountRule] | None = None
    note: str | None = None

    @property
    def inputs(self) -> list[str]:
        """Pointers of the main input, in order of preference."""
        return [self.input] if isinstance(self.input, str) else self.input or []

    @property
    def counts(self) -> list[CountRule]:
        """Reported counts, in order of preference."""
        return [self.count] if isinstance(self.count, CountRule) else self.count or []


class Item(Struct, kw_only=True):
    """A native item that carries no tool name: ACP kind, row type, and whether it tells how a call was executed."""

    type: str
    kind: str | None = None
    row: str | None = None
    execution: bool = False
    note: str | None = None


class Rule(Struct, kw_only=True):
    """An entry of a status or decision table."""

    versions: Versions = ""
    when: Conditions = {}
    then: str | None = None
    decision: str | None = None
    decidedBy: str | None = None  # noqa: N815 (the file's own spelling)
    rule: str | None = None
    synthetic: bool = False
    caution: str | None = None
    note: str | None = None


class LineRule(Struct, kw_only=True):
    """What a native line becomes: first fitting row of its type, and every fitting row with ``also``."""

    type: str
    becomes: str
    author: str | None = None
    when: Conditions = {}
    tag: str | None = None
    also: bool = False
    note: str | None = None


class HookRule(Struct, kw_only=True):
    """The status that a native hook line stands for."""

    type: str
    status: str
    note: str | None = None


class HookEvent(Struct, kw_only=True):
    """A native event name, its ASR name, and whether its id is that of a call."""

    native: str
    event: str
    call: bool = False
    note: str | None = None


class StateRule(Struct, kw_only=True):
    """The state of a terminal or subagent that a value in a native source stands for."""

    entity: str
    source: str
    then: str
    pointer: str | None = None
    tag: str | None = None
    value: str | bool | None = None
    note: str | None = None


class ContentRule(Struct, kw_only=True):
    """Versions and tools whose stored block captures showed inside what was sent (decision 7b)."""

    versions: Versions = ""
    tools: list[str] = []
    when: Conditions = {}
    evidence: str = ""
    apis: list[str] = []
    """Provider APIs of the messages whose calls these results answer; empty for any."""
    budgets: list[tuple[int, int]] = []
    """From a context window of so many tokens on, so many characters are sent whole; empty where any number is.

    The first window is the least one that the agent takes. A byte beyond ASCII counts three, an escape twelve.
    """
    needs_reply: bool = False
    between: bool = False
    usage_is_reply: bool = False
    """A later response shows by its usage alone, where its words do not."""
    shared_ids: bool = False
    """Also where a call id stands on several calls: every stored output is sent as it stands."""
    note: str | None = None

    def fits(self, content: bytes, window: int) -> bool:
        """Whether a result is short enough to have been sent whole.

        Args:
            content: Its JSON text.
            window: Tokens that the context window has at least; 0 where nothing shows it.
        """
        if not self.budgets:
            return True
        wide = len(content) - len(content.translate(None, _BEYOND))
        weight = len(content) + 2 * wide + 6 * len(_WIDE.findall(content))
        return weight <= max([self.budgets[0][1], *(most for least, most in self.budgets if window >= least)])

    def names(self, tool: str | None) -> bool:
        """Whether the rule speaks of this tool; ``*`` of all, ``mcp__*`` of all that begin so."""
        return any(
            one == "*"
            or (tool is not None and (one == tool or (one.endswith("*") and tool.startswith(one[:-1]))))
            for one in self.tools
        )


class AgentRule(Struct, kw_only=True, forbid_unknown_fields=True):
    """What one agent is known to put into the open members of a shared protocol; pointers start at the named member.

    Attributes:
        name: The agent, as it names itself.
        tool: In ``_meta``: the exact tool name, where the protocol's own member is absent.
        parent: In ``_meta``: the call that contains this one.
        exit: In ``rawOutput``: a numeric exit code.
        error: In ``rawOutput``: the message of an error.
        content: In ``rawOutput``: the text that reached the model, ``.`` the whole (decision 7d).
        versions: Of the agent, for ``content``.
        evidence: What showed it.
        mcp_prefix: How names of MCP tools begin.
        rewrites: What it shows as a call's arguments is worded by itself, not by the model.
    """

    name: str
    tool: str | None = None
    parent: str | None = None
    exit: str | None = None
    error: str | None = None
    content: str | None = None
    versions: Versions = ""
    evidence: str = ""
    mcp_prefix: str | None = None
    rewrites: bool = False


class Never(Struct, kw_only=True):
    """A member that this harness never records; feeds the words 'not recorded'.

    With ``kinds`` only its sources of these kinds are silent about it.
    """

    record: str
    member: str
    note: str = ""
    tools: list[str] = []
    kinds: list[str] = []


class Silence(Struct, kw_only=True, forbid_unknown_fields=True):
    """A word that this harness never writes, or a member whose absence is no news on a row.

    ``unseen``: it may well be recorded, but no file or capture shows it. ``member`` ``*``: the whole record type.
    ``value`` ``*``: every word of the member that no fact gives. ``kinds``: as for ``Never``.
    """

    record: str
    member: str
    value: str | bool | None = None
    unseen: bool = False
    kinds: list[str] = []
    note: str


class Caution(Struct, kw_only=True, forbid_unknown_fields=True):
    """A remark shown beside a value that the source is known to mean loosely.

    Attributes:
        record: Record type.
        member: Dotted wire name of the member that it is about.
        value: Only for this value of the member.
        only: Only where these members of the record have these values.
        note: The remark; the member's name is said before it.
    """

    record: str
    member: str
    value: Any = None
    only: dict[str, Any] = {}
    note: str


class Store(Struct, kw_only=True, forbid_unknown_fields=True):
    """A database that this harness keeps: the newest schema seen, and the columns of the tables that are read.

    ``others`` are the tables that were seen and are not read.
    """

    role: str
    schema: int
    tables: dict[str, list[str]]
    others: list[str] = []
    note: str | None = None


class Registry(Struct, kw_only=True):
    """One harness's file. Sections that a harness does not need are empty."""

    harness: Harness
    tool: list[Tool] = []
    item: list[Item] = []
    provider: list[dict[str, Any]] = []
    status: list[Rule] = []
    decision: list[Rule] = []
    decider: list[Rule] = []
    content: list[ContentRule] = []
    hook: list[HookRule] = []
    hook_event: list[HookEvent] = []
    terminal_status: list[StateRule] = []
    line: list[LineRule] = []
    never: list[Never] = []
    silence: list[Silence] = []
    fact: list[Fact] = []
    unit: list[Unit] = []
    marks: Marks = Marks()
    alias: list[Alias] = []
    caution: list[Caution] = []
    store: list[Store] = []
    agent: list[AgentRule] = []

    def tools(self) -> dict[str, Tool]:
        """Tools by exact name (a new dictionary: keep it)."""
        return {tool.name: tool for tool in self.tool}

    def is_never(self, record: str, member: str, tool: str | None = None) -> bool:
        """Whether the harness never records this member (for this tool)."""
        return any(
            entry.record == record
            and entry.member == member
            and not entry.kinds
            and (not entry.tools or tool in entry.tools)
            for entry in self.never
        )


def first(rules: list[Rule], version: str | None, native: Any, block: Any = None) -> Rule | None:
    """The first rule of a table that holds for a native line of a version.

    Args:
        rules: The table.
        version: Agent version as the source states it; None when it does not.
        native: Decoded native unit, for pointers that start with ``/``.
        block: Decoded part of it, for pointers that start with ``./``.
    """
    for rule in rules:
        if in_ranges(rule.versions, version) and matches(rule.when, native, block):
            return rule
    return None


@cache
def load(name: str) -> Registry:
    """Loads a shipped registry.

    Raises:
        KeyError: No such harness.
    """
    if name not in HARNESSES:
        raise KeyError(name)
    import tomllib

    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Registry)


def of_session(agent: str | None, kinds: Iterable[str | None]) -> Registry | None:
    """The registry that speaks of a session: that of its sources' kind, else that of its agent.

    Many agents speak one protocol: then the protocol's tables count, whatever the agent calls itself.

    Args:
        agent: What the session record calls the agent.
        kinds: Kinds of its sources.
    """
    wanted = set(kinds)
    by_kind = (name for name in HARNESSES if wanted & set(load(name).harness.kinds))
    return known(next(by_kind, agent))


def known(name: str | None) -> Registry | None:
    """The registry of an agent by the name in a session record, or None for an agent we don't know."""
    return load(name) if name in HARNESSES else None
