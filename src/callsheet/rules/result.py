"""Rules a tool_result has to keep (ASR-257, 259, 260, 261, 262, 277, 289).

ASR-260 also holds for the exit codes of terminals and hooks.

Must never know: other records of the stream.
"""

from __future__ import annotations

from datetime import UTC, datetime

from callsheet.rules.call import capture_state, part_of
from callsheet.rules.finding import Json, Problem, Problems, shown
from callsheet.rules.shape import EXIT_HIGH, EXIT_LOW
from callsheet.rules.walk import is_integer, is_number, is_timestamp
from callsheet.wire.lossless import MAX_SAFE

LINKAGES = ("exact", "derived", "ambiguous", "none")


def asr_257(record: Json) -> Problems:
    """A result says how it was linked and how it ended, and names its call when it is linked to one."""
    linkage = record.get("linkage")
    if linkage not in LINKAGES:
        yield Problem("/linkage", "a tool_result needs a linkage: 'exact', 'derived', 'ambiguous' or 'none'")
    if not isinstance(record.get("status"), str):
        yield Problem(
            "/status", "a tool_result needs a status, a string; 'unknown' where the source has no outcome"
        )
    if linkage not in ("ambiguous", "none") and not isinstance(record.get("callId"), str):
        yield Problem(
            "/callId", "a tool_result needs a callId, a string, unless its linkage is 'ambiguous' or 'none'"
        )


def asr_259(record: Json) -> Problems:
    """``content`` is what the model received; else it is absent, as ``capture.content`` says."""
    state = capture_state(record, "content")
    if "content" not in record:
        if state is None:
            yield Problem(
                "/capture/content", "without content, capture.content has to say why (for example 'absent')"
            )
        elif state == "external":
            yield Problem(
                "/content", "capture.content is 'external', but what reached the model has to stand inline"
            )
    elif not isinstance(record["content"], list):
        yield Problem("/content", f"content is an array of content parts, not {shown(record['content'])}")
    elif state == "absent":
        yield Problem("/content", "capture.content says 'absent', so there can be no content")


def asr_260(record: Json) -> Problems:
    """An exit code is a number that the source recorded, within the range of exit codes."""
    for path, holder in (("/exec/exitCode", part_of(record, "exec")), ("/exitCode", record)):
        if "exitCode" not in holder or (path == "/exitCode" and record.get("type") == "tool_result"):
            continue
        code = holder["exitCode"]
        if not is_integer(code):
            yield Problem(
                path, f"an exit code is an integer, not {shown(code)}; without a numeric one it is left out"
            )
        elif not EXIT_LOW <= code <= EXIT_HIGH:
            yield Problem(path, f"{shown(code)} lies outside -2^31 to 2^32-1, the range of exit codes")


def _resolution(text: str) -> float:
    """Milliseconds that the last digit of a timestamp stands for."""
    return 1000.0 / float(10 ** min(len(_fraction(text)), 9))


def _fraction(text: str) -> str:
    return text.partition(".")[2].rstrip("Zz").partition("+")[0].partition("-")[0]


def _milliseconds(text: str) -> float:
    """A valid timestamp as milliseconds; a leap second is the second after :59."""
    base = datetime.fromisoformat(text[:19].replace("t", "T").replace(":60", ":59")).replace(tzinfo=UTC)
    leap = 1000.0 if text[17:19] == "60" else 0.0
    return base.timestamp() * 1000 + leap + float(f"0.{_fraction(text)}") * 1000


def asr_261(record: Json) -> Problems:
    """Times are the source's, in order, and a run cannot last longer than from its own start to its own end.

    It can last shorter: agents were seen that time the process itself, and start and end of the whole item.
    """
    times = {}
    for member in ("startedAt", "completedAt"):
        if member in record:
            if is_timestamp(record[member]):
                times[member] = record[member]
            else:
                yield Problem(f"/{member}", f"{shown(record[member])} is no RFC 3339 time in UTC")
    duration = record.get("durationMs", 0)
    if not is_number(duration) or duration < 0:
        yield Problem("/durationMs", f"a duration is a number of milliseconds, not {shown(duration)}")
        duration = 0
    if len(times) < 2:
        return
    start, end = times["startedAt"], times["completedAt"]
    span = _milliseconds(end) - _milliseconds(start)
    if span < 0:
        yield Problem("/completedAt", f"it ended at {end}, before it started at {start}")
    elif duration > span + _resolution(start) + _resolution(end):
        yield Problem(
            "/durationMs",
            f"{shown(duration)} ms do not fit between startedAt and completedAt, {span:.0f} ms apart; "
            "a computed duration comes from the same result's two times",
        )


def asr_262(record: Json) -> Problems:
    """A result that cannot be linked names no call; the native id is kept apart, where nobody pairs by it."""
    if record.get("linkage") in ("ambiguous", "none") and "callId" in record:
        yield Problem(
            "/callId",
            f"linkage {shown(record['linkage'])} means that no call is known, so there can be no callId; "
            "a native id that was recorded goes to nativeCallId",
        )
    if "nativeCallId" in record and not isinstance(record["nativeCallId"], str):
        yield Problem("/nativeCallId", f"nativeCallId is a string, not {shown(record['nativeCallId'])}")


def asr_277(record: Json) -> Problems:
    """A decision kept on the result says what was decided."""
    if "permission" not in record:
        return
    permission = record["permission"]
    if not isinstance(permission, dict):
        yield Problem("/permission", f"a permission on a result is an object, not {shown(permission)}")
    elif not isinstance(permission.get("decision"), str):
        yield Problem("/permission/decision", "a permission on a result needs a decision, a string")


def asr_289(record: Json) -> Problems:
    """A process id is kept in its native type: text, or an integer that every reader keeps."""
    execution = part_of(record, "exec")
    if "processId" not in execution:
        return
    process = execution["processId"]
    if isinstance(process, str) or (is_integer(process) and abs(process) <= MAX_SAFE):
        return
    yield Problem("/exec/processId", f"{shown(process)} is neither a string nor an integer within ±(2^53-1)")
