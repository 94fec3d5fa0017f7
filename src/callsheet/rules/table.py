"""RULES: the 42 rules of the tool records and the profile's codes, each with who must keep it.

Owns the table that everything else is driven by: the check of one record, whether the rule looks across
records, and what the rule asks, in our own words. A rule of role *producer* is shown by the native source
(room ``audit``), one of role *reader* by what a reader answers (``conformance``); they stand here so that
no rule is forgotten.

Must never know: how a stream is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from callsheet.rules import call, envelope, process, request, result
from callsheet.rules.finding import Json, Problems

Check = Callable[[Json], Problems]


class Rule(NamedTuple):
    """One rule.

    Attributes:
        code: ``ASR-250`` …, or a profile code.
        roles: Who must keep it: stream, producer, reader.
        section: Where the rule belongs: a record type, or a subject.
        asks: What must hold, one sentence.
        types: Record types that ``check`` looks at; empty means all.
        check: The problems of one record; None when one record cannot show any.
        across: Records of a stream, or streams of a bundle, have to be seen together.
    """

    code: str
    roles: tuple[str, ...]
    section: str
    asks: str
    types: tuple[str, ...] = ()
    check: Check | None = None
    across: bool = False


STREAM, PRODUCER, READER = "stream", "producer", "reader"
_CALL, _RESULT = ("tool_call",), ("tool_result",)

RULES: tuple[Rule, ...] = (
    Rule(
        "ASR-250",
        (STREAM,),
        "tool_call",
        "A tool_call has a callId, native or derived as it says, and a name or a reason for having none.",
        _CALL,
        call.asr_250,
    ),
    Rule(
        "ASR-251",
        (STREAM,),
        "tool_call",
        "A tool_call records that a call was requested; what came of it stands in other records.",
        _CALL,
        call.asr_251,
    ),
    Rule(
        "ASR-252",
        (PRODUCER,),
        "tool_call",
        "The name is the tool's exact native name, nothing added, cut or split.",
    ),
    Rule(
        "ASR-253",
        (PRODUCER,),
        "tool_call",
        "The kind comes from the source or from the registry's table of exact names, never from a guess.",
    ),
    Rule(
        "ASR-254",
        (STREAM, PRODUCER),
        "tool_call",
        "Arguments stand either as JSON that loses nothing or as their complete text, never as both.",
        _CALL,
        call.asr_254,
    ),
    Rule(
        "ASR-255",
        (STREAM, PRODUCER),
        "provider",
        "A provider has a kind and says how its identity is known: exact, parsed or unknown.",
        ("tool_call", "tool_result"),
        call.asr_255,
    ),
    Rule("ASR-256", (READER,), "provider", "A reader never splits a tool's name to find its server."),
    Rule(
        "ASR-257",
        (STREAM,),
        "tool_result",
        "A tool_result has a linkage and a status, and a callId unless the linkage is none or ambiguous.",
        _RESULT,
        result.asr_257,
    ),
    Rule(
        "ASR-258",
        (PRODUCER,),
        "status",
        "The status is the source's own outcome, never read from an exit code or from text.",
    ),
    Rule(
        "ASR-259",
        (STREAM, PRODUCER),
        "content",
        "content is what reached the model; else it is absent, and capture.content says why.",
        _RESULT,
        result.asr_259,
    ),
    Rule(
        "ASR-260",
        (STREAM, PRODUCER),
        "exec",
        "An exit code is a number that the source recorded, from -2^31 to 2^32-1.",
        ("tool_result", "terminal", "hook"),
        result.asr_260,
    ),
    Rule(
        "ASR-261",
        (STREAM, PRODUCER),
        "tool_result",
        "Times come from the source; a duration is recorded, or computed from the same result's two times.",
        _RESULT,
        result.asr_261,
    ),
    Rule(
        "ASR-262",
        (STREAM, PRODUCER, READER),
        "pairing",
        "Repeated native ids stay on each call; a result that fits several is ambiguous and names no call.",
        _RESULT,
        result.asr_262,
    ),
    Rule(
        "ASR-263",
        (READER,),
        "pairing",
        "A result is paired only by linkage exact or derived, and only when exactly one call has its callId.",
    ),
    Rule(
        "ASR-264",
        (READER,),
        "pairing",
        "Several results of one call are ambiguous; none is chosen by position.",
    ),
    Rule(
        "ASR-265",
        (READER, PRODUCER),
        "pairing",
        "A call without a paired result is dangling: its outcome is unknown, and nobody makes one up.",
    ),
    Rule(
        "ASR-266", (READER, PRODUCER), "pairing", "A result without a paired call is kept and shown unpaired."
    ),
    Rule(
        "ASR-267",
        (PRODUCER,),
        "exec",
        "Exit codes, durations, working directories and output appear only where the source records them.",
    ),
    Rule(
        "ASR-268",
        (STREAM,),
        "permission",
        "A permission has a requestId; its subject, if any, is exactly one of a call and a command.",
        ("permission",),
        request.asr_268,
    ),
    Rule(
        "ASR-269",
        (READER,),
        "permission",
        "A permission whose latest revision has no decision is unresolved.",
    ),
    Rule(
        "ASR-270",
        (PRODUCER,),
        "permission",
        "Who decided, by which rule and after which reviews is written only where the source says it.",
    ),
    Rule(
        "ASR-271",
        (STREAM,),
        "terminal",
        "Each terminal record is a whole snapshot; a later one supersedes it, so that one state is current.",
        ("terminal",),
        process.asr_271,
        across=True,
    ),
    Rule(
        "ASR-272",
        (PRODUCER,),
        "terminal",
        "A terminal's output is a result's content only where the source says it was delivered to the model.",
    ),
    Rule(
        "ASR-273",
        (STREAM,),
        "hook",
        "A hook has an event; what it put into the conversation is a message with author 'hook'.",
        ("hook",),
        process.asr_273,
    ),
    Rule(
        "ASR-274",
        (PRODUCER, READER),
        "tool_call",
        "Who requested a call comes from the source; absent means unknown, never the model.",
    ),
    Rule(
        "ASR-275", (PRODUCER,), "tool_call", "A parent call is named only where the source records the link."
    ),
    Rule(
        "ASR-276",
        (READER,),
        "provider",
        "A call's provider is its own, or when it has none that of its paired result.",
    ),
    Rule(
        "ASR-277",
        (STREAM,),
        "permission",
        "A permission on a result has a decision.",
        _RESULT,
        result.asr_277,
    ),
    Rule(
        "ASR-278",
        (STREAM,),
        "permission",
        "A result carries no permission when a permission record is about its call.",
        across=True,
    ),
    Rule(
        "ASR-279",
        (PRODUCER, READER),
        "permission",
        "A request that was shown is a permission record; each decision on a result counts once.",
    ),
    Rule(
        "ASR-280",
        (PRODUCER,),
        "permission",
        "decidedBy is classifier or agent only when that one resolved the request; else it is a review.",
    ),
    Rule(
        "ASR-281",
        (STREAM,),
        "permission",
        "Resolved means decided, pending and held mean undecided, and each review says who gave it.",
        ("permission",),
        request.asr_281,
    ),
    Rule(
        "ASR-282",
        (STREAM,),
        "input_request",
        "An input_request has id and mode; questions id and text, options a label, answers a questionId.",
        ("input_request",),
        request.asr_282,
    ),
    Rule(
        "ASR-283",
        (STREAM, PRODUCER),
        "input_request",
        "The value given for a secret stands nowhere; only that it was asked, and how that ended.",
        ("input_request",),
    ),
    Rule(
        "ASR-284",
        (STREAM,),
        "input_request",
        "Question ids are unique, answers name a question of their request, answerRef leads to a message.",
        ("input_request",),
        request.asr_284,
        across=True,
    ),
    Rule(
        "ASR-285",
        (PRODUCER,),
        "input_request",
        "Status, answers, response and who answered come from the source, never from a later message alone.",
    ),
    Rule(
        "ASR-286",
        (STREAM, PRODUCER),
        "terminal",
        "A background agent is a subagent and never also a terminal; a process it runs stays a terminal.",
        across=True,
    ),
    Rule(
        "ASR-287",
        (PRODUCER,),
        "hook",
        "A hook's details come from the source; what the harness runs for its own set-up is a hook.",
    ),
    Rule(
        "ASR-288",
        (PRODUCER,),
        "exec",
        "An execution member that is null natively is left out only where null means unavailable.",
    ),
    Rule(
        "ASR-289",
        (STREAM,),
        "exec",
        "A processId is a string, or an integer within ±(2^53-1).",
        _RESULT,
        result.asr_289,
    ),
    Rule(
        "ASR-290",
        (STREAM, PRODUCER),
        "exec",
        "exec.terminalId leads to a terminal of the stream, or else to exactly one in the bundle.",
        across=True,
    ),
    Rule(
        "ASR-291",
        (PRODUCER, READER),
        "exec",
        "A processId is kept verbatim, type included, and nobody uses it to find a terminal.",
    ),
)
"""The 42 rules, in their order."""

PROFILE: tuple[Rule, ...] = (
    Rule(
        "P-JSON",
        (STREAM,),
        "envelope",
        "Every line is one JSON object whose text means the same to every reader.",
        check=envelope.p_json,
    ),
    Rule(
        "P-SHAPE",
        (STREAM,),
        "envelope",
        "Required members are there, and every known member has its type.",
        check=envelope.p_shape,
    ),
    Rule(
        "P-CAPTURE",
        (STREAM,),
        "envelope",
        "A capture state is a known one, on a member that may have it, and does not contradict the member.",
        check=envelope.p_capture,
    ),
    Rule(
        "P-SEQ",
        (STREAM,),
        "envelope",
        "seq is 0, 1, 2 … without holes; the session record is first.",
        across=True,
    ),
    Rule("P-ID", (STREAM,), "envelope", "Every record has an id that is unique in its stream.", across=True),
    Rule(
        "P-CHAIN",
        (STREAM,),
        "envelope",
        "A revision names the record before it, of the same type and key; a chain neither breaks nor forks.",
        across=True,
    ),
    Rule(
        "P-REF",
        (STREAM,),
        "envelope",
        "What a record refers to is there: sources, roots, streams, and in a bundle blobs.",
        across=True,
    ),
)
"""The envelope's own codes (this project's profile)."""

ALL: dict[str, Rule] = {rule.code: rule for rule in (*RULES, *PROFILE)}
"""Every code with its rule."""
