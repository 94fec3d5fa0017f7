"""Rules a tool_call has to keep (ASR-250, 251, 254), and the provider it shares with its result (ASR-255).

Each rule is one function from a decoded record to the problems it finds. Members may have any type: a wrong
one is a problem, never an error here.

Must never know: other records of the stream.
"""

from __future__ import annotations

from callsheet.records.tool_call import FORBIDDEN
from callsheet.rules.finding import Json, Problem, Problems, shown
from callsheet.rules.text import text_problems

STATES = ("absent", "truncated", "redacted", "unavailable", "external")
"""Capture states (profile, 'Envelope')."""


def capture_state(record: Json, member: str) -> str | None:
    """The capture state of a member, if a known one is given."""
    capture = record.get("capture")
    entry = capture.get(member) if isinstance(capture, dict) else None
    state = entry.get("state") if isinstance(entry, dict) else None
    return state if isinstance(state, str) and state in STATES else None


def part_of(record: Json, member: str) -> Json:
    """An object member, or an empty one when it is missing or no object."""
    value = record.get(member)
    return value if isinstance(value, dict) else {}


def asr_250(record: Json) -> Problems:
    """A call has an id, says where the id comes from, and has a name unless ``capture.name`` says why not."""
    if not isinstance(record.get("callId"), str):
        yield Problem("/callId", "a tool_call needs a callId, a string")
    if record.get("callIdSource") not in ("native", "derived"):
        yield Problem("/callIdSource", "a tool_call has to say whether its callId is 'native' or 'derived'")
    if not isinstance(record.get("name"), str) and capture_state(record, "name") is None:
        yield Problem(
            "/name", "a tool_call needs a name, a string, or a capture.name that says why it has none"
        )


def asr_251(record: Json) -> Problems:
    """A call is a request; what came of it stands in results and permissions."""
    for member in FORBIDDEN:
        if member in record:
            yield Problem(f"/{member}", f"{member} is an outcome, and a tool_call only records a request")


def asr_254(record: Json) -> Problems:
    """Arguments stand in one form: as JSON that loses nothing, or as their complete text."""
    if "input" in record and "inputText" in record:
        yield Problem("/inputText", "a tool_call has either input or inputText, never both")
    if "inputText" in record and not isinstance(record["inputText"], str):
        yield Problem(
            "/inputText", f"inputText is the arguments' text, but {shown(record['inputText'])} stands there"
        )
    if "input" in record:
        for path, message in text_problems(record["input"], "/input"):
            yield Problem(path, f"{message}; such arguments belong in inputText")


def asr_255(record: Json) -> Problems:
    """A provider says what kind it is and how its identity is known."""
    if "provider" not in record:
        return
    provider = record["provider"]
    if not isinstance(provider, dict):
        yield Problem("/provider", f"a provider is an object with kind and identity, not {shown(provider)}")
        return
    if not isinstance(provider.get("kind"), str):
        yield Problem("/provider/kind", "a provider needs a kind, a string such as 'mcp'")
    if provider.get("identity") not in ("exact", "parsed", "unknown"):
        yield Problem(
            "/provider/identity", "a provider has to say how it is known: 'exact', 'parsed' or 'unknown'"
        )
