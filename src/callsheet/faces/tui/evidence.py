"""How do you know? Every fact of a row beside the native line and pointer that it came from.

Owns which records a row was made of, and the words of the pane. What stands where, the audit finds, without the
importer's help; what it does not find is said. Text of the source passes ``visible``.

Must never know: native shapes.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from callsheet.errors import CallsheetError, reason_of
from callsheet.paint import Line, Span, visible
from callsheet.paint.cells import cut, wrap
from callsheet.records.bundle import Bundle
from callsheet.rows import Row

if TYPE_CHECKING:
    from callsheet.audit import Audit, Explained, Explanation

MOST_LINES = 4
"""Lines of a native text that are shown."""
_UNREADABLE = (OSError, KeyError, zipfile.BadZipFile)


class Evidence:
    """The evidence of one bundle, opened when it is first asked for.

    Args:
        bundle: The bundle; None where there is none (a stream without its bundle).
        growing: It is still being recorded, so it is opened anew for each row.
    """

    def __init__(self, bundle: Path | None, *, growing: bool = False) -> None:
        self._bundle = bundle
        self._growing = growing
        self._audit: Audit | None = None

    def close(self) -> None:
        """Lets go of the sources."""
        if self._audit is not None:
            self._audit.close()
            self._audit = None

    def of(self, row: Row) -> list[Explanation] | str:
        """What is known of the evidence of a row's records, or why nothing is."""
        from callsheet.audit import Audit, explain  # nobody waits for it before a screen is there

        if row.provisional and not self._growing:
            return "the file is still being read; its evidence can be shown when it is"
        if row.state == "running" and not row.native:
            return "not recorded yet: this is what the agent announced"
        if self._bundle is None:
            return "a stream without its bundle has no native sources beside it"
        if self._growing:
            self.close()
        try:
            if self._audit is None:
                self._audit = Audit(Bundle(self._bundle))
            main = next(
                (one.id for one in self._audit.bundle.manifest.streams if one.parent is None),
                self._audit.bundle.manifest.streams[0].id,
            )
            stream = row.stream or main
            return [
                found
                for name in records_of(row)
                for found in explain(self._audit, f"{stream}/{name.rpartition('/')[2]}")
            ]
        except CallsheetError as error:
            return str(error)
        except _UNREADABLE as error:
            return f"{self._bundle}: {reason_of(error)}"


def records_of(row: Row) -> list[str]:
    """Ids of the records that a row was made of."""
    found = [row.record, *([row.result] if row.result else []), *(row.folded or ())]
    return list(dict.fromkeys(found))


def evidence_lines(row: Row, found: list[Explanation] | str, width: int) -> list[Line]:
    """The pane: records one after another, each fact with its place, then what was never recorded."""
    lines: list[Line] = [[Span(cut(visible(row.title), width), "strong")], []]
    if isinstance(found, str):
        return lines + [[Span(piece, "quiet")] for piece in wrap(visible(found), width)]
    if not found:
        lines.append([Span("no record of this row is in the bundle", "quiet")])
    for one in found:
        lines += _record_lines(one, width)
    silent = [f"{member}" for member in row.not_recorded or ()]
    if silent:
        lines.append([Span("Not recorded about this call:", "strong")])
        lines += [[Span(piece, "open")] for piece in wrap("  " + ", ".join(silent), width)]
    return lines


def _record_lines(one: Explanation, width: int) -> Iterator[Line]:
    kind, name = str(one.record.get("type")), str(one.record.get("id"))
    yield [Span(cut(visible(f"{kind} {name}"), width), "label")]
    refs = (one.record.get("native") or {}).get("refs") or []
    for number, place in one.lines.items():
        role = refs[number].get("role") if number < len(refs) else None
        words = f"[{number}] {_short_place(place)}" + (f" ({role})" if role else "")
        for piece in wrap(visible(words), width - 2):
            yield [Span("  "), Span(piece, "place")]
    for fact in one.facts:
        yield from _fact_lines(fact, width)
    if one.never:
        yield [Span("  Never recorded by this source:", "quiet")]
        for never in one.never:
            note = f"{never.member}: {never.note}" if never.note else never.member
            for piece in wrap(visible(note), width - 4):
                yield [Span("    "), Span(piece, "open")]
    yield []


def _fact_lines(fact: Explained, width: int) -> Iterator[Line]:
    value = json.dumps(fact.value, ensure_ascii=False)
    member = fact.path.removeprefix("/")
    head = visible(f"{member} = {value[: width * MOST_LINES]}")
    for piece in _bounded(head, width - 2):
        yield [Span("  "), Span(piece, "strong")]
    if fact.why is not None:
        for piece in wrap(visible(f"NO EVIDENCE: {fact.why}"), width - 4):
            yield [Span("    "), Span(piece, "bad")]
        return
    place = fact.place and _short_place(fact.place) if fact.ref is None else f"[{fact.ref}]"
    via = "" if fact.via in (None, "same") else f" ({fact.via})"
    words = " ".join(word for word in (place, fact.pointer) if word) or "this bundle"
    for piece in wrap(visible(words + via), width - 4):
        yield [Span("    "), Span(piece, "place")]
    if fact.native is not None and fact.native != value:
        for piece in _bounded(visible(fact.native[: width * MOST_LINES]), width - 6):
            yield [Span("    │ ", "quiet"), Span(piece, "quiet")]


def _bounded(text: str, width: int) -> list[str]:
    pieces = wrap(text, max(width, 8))
    return (
        pieces
        if len(pieces) <= MOST_LINES
        else [*pieces[: MOST_LINES - 1], pieces[MOST_LINES - 1][:-1] + "…"]
    )


def _short_place(place: str) -> str:
    return PurePath(place.replace("\\", "/")).name
