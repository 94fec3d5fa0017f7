"""The first and the last lines of a sheet: what session this is, what it holds, and what was not drawn.

Must never know: files, terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from callsheet.paint import cells
from callsheet.paint.block import hidden
from callsheet.paint.doubts import doubt_words
from callsheet.paint.row import NARROWEST, Look
from callsheet.paint.safe import visible
from callsheet.paint.span import Line, Span, Style, packed
from callsheet.paint.words import EVERYWHERE
from callsheet.pairing import Tally
from callsheet.records import Session
from callsheet.records.bundle import Diagnostic
from callsheet.registry import known
from callsheet.rows import Everywhere, has_captures, registry_of
from callsheet.rows.text import counted, counted_calls

DOUBTS = 50
"""Remarks on the sources that are drawn one by one."""

_HIDDEN: dict[str, tuple[str, str, str]] = {
    "harness_messages": ("message of the harness", "messages of the harness", "--audit-view"),
    "thoughts_raw": ("raw thought", "raw thoughts", "--thoughts"),
    "thoughts_unstated": (
        "thought of a kind that the source does not state",
        "thoughts of a kind that the source does not state",
        "--thoughts",
    ),
    "thoughts_empty": ("thought without text", "thoughts without text", "--audit-view"),
    "unmapped": ("native line that nothing maps", "native lines that nothing maps", "--audit-view"),
    "unknown_types": ("record of an unknown type", "records of unknown types", "--audit-view"),
}
"""What may be left out of a sheet: one of it, several, and the option that draws it."""

_STATES: tuple[tuple[str, str, Style], ...] = (
    ("completed", "completed", "good"),
    ("failed", "failed", "bad"),
    ("declined", "declined", "refused"),
    ("cancelled", "cancelled", "quiet"),
    ("interrupted", "interrupted", "open"),
    ("unconfirmed", "unconfirmed", "open"),
)


def paint_head(
    session: Session | None,
    tally: Tally,
    look: Look,
    doubts: Sequence[Diagnostic] = (),
    *,
    of_agents: int = 0,
    by: str = "--audit-view",
) -> list[Line]:
    """Agent, session, title, sources, counts, what is known of the calls together, and a rule below.

    Args:
        session: The head of the stream.
        tally: Counts of the session, those of its subagents' streams among them.
        look: How to draw.
        doubts: What the importer found worth saying about the sources.
        of_agents: How many of the calls are of subagents.
        by: What draws the doubts one by one: an option, a key.
    """
    width = max(look.width, NARROWEST)
    lines: list[Line] = []
    if session is None:
        lines.append([Span(cells.cut("a stream without a session record", width), "strong")])
    else:
        lines += _session_lines(session, width)
    lines += packed(_counts(tally, of_agents), width)
    for words in _sums(tally, session, look.everywhere):
        lines += [[Span(piece, "quiet")] for piece in cells.wrap(words, width)]
    lines += _doubts(session, doubts, width, look, by)
    lines.append([Span("─" * width, "quiet")])
    return lines


def head_words(session: Session | None) -> str:
    """The agent of a session and its version, in a few words."""
    agent = session.agent if session is not None else None
    registry = known(agent.name) if agent else None
    title = (registry.harness.title if registry else "") or (agent.name if agent else "unknown agent")
    return visible(f"{title} {agent.version}" if agent and agent.version else title)


def _session_lines(session: Session, width: int) -> Iterator[Line]:
    who = head_words(session)
    identity = visible(session.native_session_id or "")
    if identity and len(who) + len(identity) + 2 <= width and (who + identity).isascii():
        yield [Span(who, "strong"), Span("  "), Span(identity, "quiet")]
    else:
        yield [Span(cells.cut(who, width), "strong")]
        if identity:
            yield [Span(cells.cut(identity, width), "quiet")]
    if session.title:
        for piece in cells.wrap(visible(session.title), width)[:2]:
            yield [Span(piece)]
    for source in (session.sources or [])[:4]:
        size = f" ({counted(source.size, 'byte')})" if source.size is not None else ""
        yield [Span(cells.cut_start(visible(source.path), width - len(size)) + size, "quiet")]
    more = len(session.sources or []) - 4
    if more > 0:
        yield hidden(f"… {counted(more, 'more source')}", width)


def _counts(tally: Tally, of_agents: int = 0) -> list[Span]:
    spans = [Span(counted_calls(tally.calls, of_agents), "strong")]
    spans += [
        Span(f"{count:,} {word}", style)
        for member, word, style in _STATES
        if (count := getattr(tally, member))
    ]
    for count, one, many in (
        (tally.orphan + tally.ambiguous, "unpaired result", "unpaired results"),
        (tally.unresolved, "request without decision", "requests without decision"),
        (tally.gaps, "gap", "gaps"),
        (tally.bad_lines, "bad line", "bad lines"),
    ):
        if count:
            spans.append(Span(f"{count:,} {one if count == 1 else many}", "open"))
    return spans


def _sums(tally: Tally, session: Session | None, everywhere: Everywhere) -> Iterator[str]:
    """What is true of many calls, said once: what shows that results reached the model, what is not recorded."""
    by = "captures of this version" if session and has_captures(registry_of(session)) else "the stream alone"
    shown = [(tally.carried, "by a recorded request"), (tally.shown, f"by {by}")]
    parts = [(count, words) for count, words in shown if count]
    if parts:
        parts[0] = (parts[0][0], f"shown {parts[0][1]}")
    if tally.unshown:
        reason = everywhere.reason if tally.unshown == tally.results else None
        parts.append((tally.unshown, "not recorded"))
    else:
        reason = None
    told = [f"{words} for {count:,}" for count, words in parts]
    if told:
        told[0] += " result" if parts[0][0] == 1 else " results"
        yield visible(f"reached the model: {' · '.join(told)}" + (f" ({reason})" if reason else ""))
    silent = [words for member, words in EVERYWHERE.items() if member in everywhere.members]
    if tally.undecided and tally.undecided == tally.calls:
        silent.append("who allowed it")
    elif tally.undecided:
        yield f"who allowed it: not recorded for {counted(tally.undecided, 'call')}"
    if silent and tally.calls:
        yield f"not recorded for any call: {', '.join(silent)}"


def _doubts(
    session: Session | None, doubts: Sequence[Diagnostic], width: int, look: Look, by: str
) -> Iterator[Line]:
    if not doubts:
        return
    if not look.audit:
        count = sum(
            doubt.count or 1 for doubt in doubts
        )  # the last of a code stands for all that are not told
        words = f"{counted(count, 'remark')} on the sources ({by})"
        yield [Span(piece, "open") for piece in [cells.cut(words, width)]]
        return
    paths = {source.id: source.path for source in (session.sources or () if session else ())}
    for doubt in doubts[:DOUBTS]:
        for piece in cells.wrap(visible(doubt_words(doubt, paths)), width):
            yield [Span(piece, "open")]
    if len(doubts) > DOUBTS:
        yield hidden(f"… {len(doubts) - DOUBTS:,} more", width)


def paint_foot(
    tally: Tally,
    others: Tally,
    hidden: Mapping[str, int],
    look: Look,
    notes: Sequence[str] = (),
    *,
    by: str = "",
) -> list[Line]:
    """The notes, what other streams hold, and what was not drawn; no lines when there is nothing to say.

    Args:
        tally: Counts of the session, those of its subagents' streams among them.
        others: Counts of all other streams of the bundle together.
        hidden: What was left out of the rows of all streams (``rows.HIDDEN``), and how often.
        look: How to draw.
        notes: Cautions that rows have signs of.
        by: The command that has the options, where it is not the one that draws.
    """
    width = max(look.width, NARROWEST)
    lines: list[Line] = []
    for note in notes:
        lines += [[Span(piece, "quiet")] for piece in cells.wrap(visible(note), width)]
    if others.records:
        first, *more = _counts(others)
        lines += packed([Span(f"{first.text} in streams of other sessions", "quiet"), *more], width)
    counts = dict(hidden)
    if not look.audit:
        counts["unmapped"] = tally.unmapped + others.unmapped
        counts["unknown_types"] = tally.unknown_types + others.unknown_types
    words = " · ".join(_hidden_words(counts, by))
    if words:
        lines += [[Span(piece, "quiet")] for piece in cells.wrap(f"not drawn: {words}", width)]
    return [[Span("─" * width, "quiet")], *lines] if lines else []


def _hidden_words(counts: Mapping[str, int], by: str) -> Iterator[str]:
    """What was not drawn, together with the option that draws it."""
    by_option: dict[str, list[str]] = {}
    for name, count in counts.items():
        if count:
            one, several, option = _HIDDEN[name]
            by_option.setdefault(option, []).append(f"{count:,} {one if count == 1 else several}")
    for option, words in by_option.items():
        yield f"{', '.join(words)} ({by}{option})"
