"""The first and the last lines of a sheet: what session this is, what it holds, and what was not drawn.

Must never know: files, terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from callsheet.paint import cells
from callsheet.paint.block import hidden
from callsheet.paint.row import NARROWEST, Look
from callsheet.paint.safe import visible
from callsheet.paint.span import Line, Span, Style, packed
from callsheet.pairing import Tally
from callsheet.records import Session
from callsheet.registry import known

_STATES: tuple[tuple[str, str, Style], ...] = (
    ("completed", "completed", "good"),
    ("failed", "failed", "bad"),
    ("declined", "declined", "refused"),
    ("cancelled", "cancelled", "quiet"),
    ("interrupted", "interrupted", "open"),
    ("unconfirmed", "unconfirmed", "open"),
)


def paint_head(session: Session | None, tally: Tally, look: Look) -> list[Line]:
    """Agent, session, title, sources, counts, and a rule below."""
    width = max(look.width, NARROWEST)
    lines: list[Line] = []
    if session is None:
        lines.append([Span(cells.cut("a stream without a session record", width), "strong")])
    else:
        lines += _session_lines(session, width)
    lines += packed(_counts(tally), width)
    lines.append([Span("─" * width, "quiet")])
    return lines


def _session_lines(session: Session, width: int) -> Iterator[Line]:
    agent = session.agent
    registry = known(agent.name) if agent else None
    title = (registry.harness.title if registry else "") or (agent.name if agent else "unknown agent")
    name = f"{title} {agent.version}" if agent and agent.version else title
    who = visible(name)
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
        size = f" ({source.size:,} bytes)" if source.size is not None else ""
        room = width - len(size)
        path = visible(source.path)
        if cells.width(path) > room:
            path = "…" + _end(path, room - 1)
        yield [Span(path + size, "quiet")]
    more = len(session.sources or []) - 4
    if more > 0:
        yield hidden(f"… {more:,} more source{'' if more == 1 else 's'}", width)


def _end(text: str, most: int) -> str:
    kept: list[str] = []
    used = 0
    for cluster, size in reversed(list(cells.clusters(text))):
        if used + size > most:
            break
        kept.append(cluster)
        used += size
    return "".join(reversed(kept))


def _counts(tally: Tally) -> list[Span]:
    spans = [Span(f"{tally.calls:,} call{'' if tally.calls == 1 else 's'}", "strong")]
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


def paint_foot(tally: Tally, agents: Tally, hidden: Mapping[str, int], look: Look) -> list[Line]:
    """What the agents' streams hold, and what was not drawn; no lines when there is nothing to say.

    Args:
        tally: Counts of the session's own stream.
        agents: Counts of all streams of agents together.
        hidden: What was left out of the rows of all streams, in words, and how often.
        look: How to draw.
    """
    width = max(look.width, NARROWEST)
    lines: list[Line] = []
    if agents.records:
        first, *others = _counts(agents)
        lines += packed([Span(f"{first.text} in agents' streams", "quiet"), *others], width)
    counts = dict(hidden)
    if not look.audit:
        counts["native lines that nothing maps"] = tally.unmapped + agents.unmapped
        counts["records of unknown types"] = tally.unknown_types + agents.unknown_types
    words = [f"{count:,} {what}" for what, count in counts.items() if count]
    if words:
        lines += [
            [Span(piece, "quiet")] for piece in cells.wrap(visible("not drawn: " + ", ".join(words)), width)
        ]
    return [[Span("─" * width, "quiet")], *lines] if lines else []
