"""Whether two readings can be readings of one session at all.

Owns ``strangers``: what shows that they are not. Ids tell, where both readings are of one agent; elsewhere an agent and
who drives it may each have an id of their own, and then a person's words or a call in both show that it is one run.
Where a reading tells nothing of the kind, nothing is said.

Must never know: harnesses, what a fact is.
"""

from __future__ import annotations

from msgspec import Struct

from callsheet.compare.side import Side


class Strangers(Struct, frozen=True):
    """Two readings of two sessions.

    Attributes:
        left: Ids of the sessions of the first reading.
        right: Ids of those of the second.
        signs: What shows it, in words.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    signs: tuple[str, ...]


def strangers(left: Side, right: Side) -> Strangers | None:
    """What shows that two readings are of two sessions; None where nothing does."""
    if left.sessions & right.sessions:
        return None
    named = bool(left.sessions and right.sessions)
    other_words = bool(left.prompts and right.prompts) and not left.prompts & right.prompts
    other_calls = bool(left.calls and right.calls) and not _ids(left) & _ids(right)
    one_agent = bool(left.agents & right.agents)
    if not ((named and (one_agent or other_words)) or (other_words and other_calls)):
        return None
    signs = {
        "their sessions have other ids": named,
        "no prompt stands in both": other_words,
        "no call stands in both": other_calls,
    }
    return Strangers(
        tuple(sorted(left.sessions)),
        tuple(sorted(right.sessions)),
        tuple(words for words, shown in signs.items() if shown),
    )


def _ids(side: Side) -> set[str]:
    return {call.native_id for call in side.calls}
