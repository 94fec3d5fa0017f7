"""Facts: which member of a record comes from which native pointer, and how.

Owns the shape of ``[[fact]]``, ``[[unit]]`` and ``marks`` in a registry file. Record and table together let the audit
find every fact of a record again in the native lines that the record cites. A member that no entry speaks of has no
evidence.

Pointers: ``/a/0`` from the root of the cited line, ``./a`` from the part that the ref points at (``.`` is the part),
``../a`` and ``../../a`` from what that part stands in, ``""`` the root, ``*`` each element: the first ``*`` is the
element that the member's first ``*`` stands for, and so on; one that the member does not bind runs over all elements.
``@path``, ``@stem`` and ``@folder`` are the path of the cited source, its file name without suffix, and the name of its
folder; ``@key/a`` is a member of the cited row's key, ``@table`` its table; ``#`` is the index of the part in its list;
``@line/a`` stands in the line that the cited frame stands in (who sent it, when it was received).

Must never know: records as types, what a native line means.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct

from callsheet.registry.versions import Versions
from callsheet.registry.when import Conditions


class Fact(Struct, kw_only=True, forbid_unknown_fields=True):
    """One way in which a member of a record may come about.

    A member has evidence when one of its entries yields its very value from one of the record's refs.

    Attributes:
        record: Record type; ``*`` for all.
        role: Role of the ref that is read. ``*``: the record's first ref. ``@call``: the refs of role ``call`` of the
            tool_call that the record's ``callId`` names.
        member: Dotted wire name; ``*`` for each element of a list. An entry for a container speaks for all in it.
        pointer: Where the value stands. A list of pointers where the function takes several values.
        via: The way from value to member, of the closed list ``via.VIAS``. ``table``: look it up, see ``table``;
            ``parts``: content parts of texts and blocks; ``path``: a path under the session's roots; ``exact_text``:
            the JSON text itself; ``index``: the position in its list, as text; ``file``: the source of that file name.
        when: Must hold on the cited line and part.
        versions: Of the agent.
        tools: Only for calls by these names, where the name is known.
        then: The member's value itself: the source says it by having what ``pointer`` and ``when`` ask for.
        words: Native (or table) word to the record's word; a word that is not listed yields nothing.
        tag: For ``slice`` and ``table``: the value in this tag of the text; for some tables the name of a member.
        sep: For ``join``.
        table: Name of the table, when ``via`` is ``table``.
    """

    record: str
    role: str
    member: str
    pointer: str | list[str] = ""
    via: str = "same"
    when: Conditions = {}
    versions: Versions = ""
    tools: list[str] = []
    then: Any = UNSET
    words: dict[str, Any] = {}
    tag: str | None = None
    sep: str = "/"
    table: str | None = None
    note: str | None = None

    @property
    def pointers(self) -> list[str]:
        """The pointers, as a list."""
        return [self.pointer] if isinstance(self.pointer, str) else self.pointer


class Unit(Struct, kw_only=True, forbid_unknown_fields=True):
    """Native units that must each be cited by a record of one type, so that none is lost and none is made up.

    Attributes:
        record: Record type (``tool_call``, ``tool_result``).
        role: Role of the refs that cite them.
        pointer: The unit in its line; a last step ``*`` runs over a list.
        when: Which lines and parts are such units.
        id: Pointer to the native call id.
        by: Pointer to the id of the native record that makes the call, or (on a result) that it says it answers.
        again: Pointers; a unit that has the same values there as one before it is that unit logged again, and needs
            no record.
        copied: A unit with an id, equal to one before it as a whole, is that one too, wherever it stands.
        alone: Such a unit needs a record only where no call of the source has its id.
    """

    record: str
    role: str
    pointer: str = ""
    when: Conditions = {}
    id: str = ""
    by: str = ""
    again: list[str] = []
    copied: bool = False
    alone: bool = False
    note: str | None = None


class Spoken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a message of the model stands in a source that is one document.

    Attributes:
        pointer: The message; a last step ``*`` runs over a list, whose order is that of the conversation.
        when: What such a message is.
        id: Its id, where the document is one message: ids of one session sort by time.
    """

    pointer: str = ""
    when: Conditions = {}
    id: str = ""


class Alias(Struct, kw_only=True, forbid_unknown_fields=True):
    """A member of a frame under the name that stored lines of the same agent have for it.

    So the tables of stored lines speak of frames too. A ref cites the frame as it is; only what the tables ask of its
    root sees the other names.

    Attributes:
        member: The name in stored lines.
        pointer: Where it stands in the frame.
        then: The value itself, wherever ``pointer`` leads to anything.
        words: Names inside the value that stored lines spell differently.
        same: Two pointers whose values must be equal, or the frame has no such member.
        when: Must hold on the frame.
    """

    member: str
    pointer: str = ""
    when: Conditions = {}
    then: Any = UNSET
    words: dict[str, str] = {}
    same: list[str] = []
    note: str | None = None


class Marks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where lines carry what the tables ask about.

    Attributes:
        version: Pointer to the agent's version on a line; without one the session record's counts.
        types: Pointers whose values, joined with ``/``, name the type of a line for ``[[line]]``: the first, and the
            first of the others that is there.
        fork: Pointer to the session that a line was copied from.
        single: Members of a line that speak of its only unit: where a line holds several, of none.
        requests: What a line is that records a request to the model. A source with such a line proves by them alone
            what was sent (decision 7).
        tail: On such a line, the hashes of the messages that it adds.
        hash: On a line with a sent message, its hash.
        run: What a line is that begins another run, in which item ids begin again.
        sessions: Pointers to the sessions that the first lines of a file name, on lines that ``session`` holds for.
        session: What such a line is.
        above: On such a line, pointers to the session that started this one's agent.
        lineage: Kinds of sources of which a session record cites the line that says who started it; with it, those
            of other kinds are held against the manifest.
        base: On such a line, where a thread's history goes on from: ``{thread_id, end_ordinal_exclusive}``.
        ordinal: A line's position in its thread's history.
        folder: The folder that the thread works in from this line on.
        typed: The words that the person typed, on lines that ``types_in`` holds for.
        types_in: What such a line is.
        answer_note: What stands before the words that a person typed in an answer.
        answer_other: The option that the agent offers besides those of a question.
        cut: What the source puts in the place of what it left out of an output.
        cut_bytes: The length that it cuts to.
        entry: What a line is that is an entry of a tree.
        own: An entry's id.
        parent: The id of the entry that it follows. With it, a result whose call id stands on several calls answers
            the nearest ``maker`` up its chain of parents.
        maker: What an entry is that may make calls.
        reply: What a maker is that the model sent whole.
        model: On a maker, where it came from: its provider's API, the provider, the model.
        prompt: On a maker, the tokens of the request that it answers: its model's context window holds them.
        leaf: On a row of a database, the id of the last entry of the active branch; ``leaf_if`` must hold on it.
        agent: On a line that an agent's session record cites, the name by which its parent knows the agent.
        approval: On a row that a result cites with the role ``approval``, the state of the request.
        approval_call: On such a row, the id of the call that it is about.
        about: By role, where a line names the call that it is about, whose record alone may cite it.
        pieces: Roles whose refs tell of one entity in pieces, each in a frame of its own: no repeats of each other.
        beside: By record type, roles of refs that only show what tables ask about; no entry reads them.
        document: A source may be one JSON document over several lines: it is one unit then, on line 1.
        no_lines: A file is never anything else: one that is no JSON value is damaged as a whole, and holds no units.
        jsonrpc: A source is a log of JSON-RPC frames, whose requests and replays the tables ask about.
        dropped: Kinds of updates in such a log, each with the version of the protocol from which on there is no such
            update: in a connection of that version it is no unit.
        spoken: Where the messages of the model stand in sources that are a document each.
        message: From a cited part to the id of the message that it stands in, in places of which one is enough.
        frames: Kinds of sources that are frame logs: a line may wrap a frame, as ``{dir, frame}``. Their frames have
            the names of ``[[alias]]`` besides their own, and name no version: the session record's counts.
        silent: Roles of frames that say nothing of a record by themselves: pieces that a completed part replaces.
        whole: What an object is that is a record of its own where it stands inside a torn line, one of these.
        track: On a frame, what tells whose conversation it is: of each list of pointers, the first that is there.
    """

    version: str = ""
    types: list[str] = []
    fork: str = ""
    single: list[str] = []
    requests: Conditions = {}
    tail: str = ""
    hash: str = ""
    run: Conditions = {}
    sessions: list[str] = []
    session: Conditions = {}
    above: list[str] = []
    lineage: list[str] = []
    base: str = ""
    ordinal: str = ""
    folder: str = ""
    typed: str = ""
    types_in: Conditions = {}
    answer_note: str = ""
    answer_other: str = ""
    cut: str = ""
    cut_bytes: int = 0
    entry: Conditions = {}
    own: str = ""
    parent: str = ""
    maker: Conditions = {}
    reply: Conditions = {}
    model: list[str] = []
    prompt: str = ""
    leaf: str = ""
    leaf_if: Conditions = {}
    agent: str = ""
    approval: str = ""
    approval_call: str = ""
    about: dict[str, str] = {}
    pieces: list[str] = []
    beside: dict[str, list[str]] = {}
    document: bool = False
    no_lines: bool = False
    jsonrpc: bool = False
    dropped: dict[str, int] = {}
    spoken: list[Spoken] = []
    message: list[str] = []
    frames: list[str] = []
    silent: list[str] = []
    track: list[list[str]] = []
    whole: list[Conditions] = []


COMMON: tuple[Fact, ...] = (
    Fact(record="unmapped", role="line", member="value", pointer="."),
    Fact(record="gap", role="gap", member="reason", note="read off the bytes"),
    Fact(record="gap", role="member", member="reason"),
)
"""Facts that are the same for every harness: what nothing maps is kept as it stands, what holds nothing is a gap."""

RECORDED: tuple[Fact, ...] = (
    Fact(record="session", role="recorder", member="native.extra.launch", pointer="."),
    Fact(record="permission", role="recorder", member="decidedBy", pointer="."),
    Fact(record="input_request", role="recorder", member="answeredBy.name", pointer="."),
    Fact(record="preview", role="recorder", member="callId", pointer="./callId"),
    Fact(record="preview", role="recorder", member="output", pointer="./output"),
    Fact(record="preview", role="recorder", member="omittedBytes", pointer="./omittedBytes"),
    Fact(
        record="turn",
        role="recorder",
        member="status",
        pointer="./result",
        words={"lost": "lost", "not_started": "unknown"},
    ),
    Fact(record="turn", role="recorder", member="reason", pointer="./reason"),
    Fact(record="unmapped", role="line", member="nativeType", pointer="/dir", words={"recorder": "recorder"}),
)
"""What a recorder of ours says of a live turn: in lines of its own, or beside a frame (``harness._port.attested``)."""
