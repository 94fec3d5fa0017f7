"""``callsheet audit BUNDLE``: which facts of a bundle have no evidence in its native sources.

Owns how findings and explanations are printed and the exit code: 0 every fact has evidence, 1 some have none, 2 the
bundle cannot be read (or has no such record).

Must never know: where evidence stands; it only prints what ``callsheet.audit`` yields.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callsheet.faces.cli.named import Named

if TYPE_CHECKING:
    from callsheet.audit import Audit, Explained, Explanation, Finding
    from callsheet.faces.cli.terminal import Printer

_SHORT = 160


@click.command()
@click.argument("bundle", metavar="BUNDLE", type=Named())
@click.option("--json", "as_json", is_flag=True, help="A finding (or an explanation) a line, as JSON.")
@click.option("--explain", metavar="RECORD", help="Show where each fact of one record stands instead.")
def audit(bundle: str, as_json: bool, explain: str | None) -> int:
    """Hold a bundle against its native sources.

    Every fact of every record must stand in the native lines that the record cites. The sources themselves
    are read where they are unchanged, else the copies in the bundle. No importer takes part.

    RECORD is a record's id, or <stream>/<id> where several streams have it.

    \b
    Examples:
      callsheet audit out/5dd2e94d-807f-4903-b8e4-2497aa981da8
      callsheet audit out/5dd2e94d-807f-4903-b8e4-2497aa981da8 --explain r17

    Exit code 0: every fact has evidence; 1: some have none; 2: the bundle cannot be read.
    """  # noqa: D301
    from callsheet.audit import Audit
    from callsheet.errors import CallsheetError, reason_of
    from callsheet.faces.cli.agents import finish_recording
    from callsheet.faces.cli.terminal import Bar, Printer, complain
    from callsheet.records.bundle import Bundle

    bar = Bar()
    try:
        finish_recording(Path(bundle))
        with Audit(Bundle(Path(bundle)), bar.advance) as opened:
            printer = Printer(sys.stdout)
            if explain is not None:
                return _explain(opened, explain, printer, as_json)
            return _findings(opened, bundle, printer, bar.clear, as_json)
    except CallsheetError as error:
        complain(str(error))
    except BrokenPipeError:
        raise  # nobody reads our output any more
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        complain(f"{getattr(error, 'filename', None) or bundle}: {reason_of(error)}")
    return 2


# -- findings -----------------------------------------------------------------------------------------------------


def _findings(audit: Audit, bundle: str, printer: Printer, clear: Any, as_json: bool) -> int:
    seen: Counter[str] = Counter()
    for finding in audit.findings():
        clear()
        seen[finding.rule] += 1
        printer.words(_as_json(finding) if as_json else _as_text(bundle, finding))
    clear()
    if not as_json:
        for line in _summary(audit, seen):
            printer.words(line)
    return 1 if seen else 0


def _as_json(finding: Finding) -> str:
    import msgspec

    return json.dumps(msgspec.to_builtins(finding))


def _as_text(bundle: str, finding: Finding) -> str:
    stream = "manifest.json" if finding.stream is None else finding.stream
    line = "" if finding.line is None or finding.stream is None else f":{finding.line}"
    record = "" if finding.record is None else f" (record {finding.record})"
    said = [] if finding.value is None else [_short(json.dumps(finding.value, ensure_ascii=False))]
    where = [f"{bundle}/{stream}{line}", f"{finding.rule} {finding.path}{record}"]
    return ": ".join([*where, *said, finding.message])


def _summary(audit: Audit, seen: Counter[str]) -> Iterator[str]:
    totals = audit.totals
    used: Counter[str] = Counter(totals.used.values())
    read = [f"{used[kind]:,} {words}" for kind, words in _EVIDENCE.items() if used[kind]]
    extent = f"{totals.facts:,} facts in {totals.records:,} records of {_counted(totals.streams, 'stream')}"
    if seen:
        yield ""
        yield f"{_counted(totals.findings, 'finding')} in {extent}:"
        for rule in sorted(seen):
            yield f"  {rule:9} {seen[rule]:>6,} times"
    else:
        yield f"Every fact has evidence: {extent}."
    yield f"Sources read: {', '.join(read) or 'none'}."
    if totals.unread:
        yield f"Nothing can be said of {_counted(totals.unread, 'record')} whose sources are not there."


_EVIDENCE = {
    "file": "unchanged where they lay",
    "copy": "from the copy in the bundle",
    "none": "not there",
}


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


# -- one record ---------------------------------------------------------------------------------------------------


def _explain(audit: Audit, name: str, printer: Printer, as_json: bool) -> int:
    import msgspec

    from callsheet.audit import explain
    from callsheet.errors import UsageError

    found = list(explain(audit, name))
    if not found:
        raise UsageError(f"no record {name!r} in this bundle")
    for explanation in found:
        if as_json:
            printer.words(json.dumps(msgspec.to_builtins(explanation)))
        else:
            for line in _explained(explanation):
                printer.words(line)
    return 1 if any(fact.why is not None for one in found for fact in one.facts) else 0


def _explained(explanation: Explanation) -> Iterator[str]:
    record = explanation.record
    yield f"{record.get('type')} {record.get('id')} of stream {explanation.stream}"
    for number, place in explanation.lines.items():
        yield f"  [{number}] {place} ({record['native']['refs'][number].get('role')})"
    for fact in explanation.facts:
        yield f"  {fact.path} = {_short(json.dumps(fact.value, ensure_ascii=False))}"
        yield from _source(fact)
    if explanation.never:
        yield "  Never recorded by this source:"
        for entry in explanation.never:
            yield f"    {entry.member}: {entry.note}" if entry.note else f"    {entry.member}"


def _source(fact: Explained) -> Iterator[str]:
    if fact.why is not None:
        yield f"      NO EVIDENCE: {fact.why}"
        return
    place = fact.place if fact.ref is None else f"[{fact.ref}]"
    words = [word for word in (place, fact.pointer) if word]
    via = "" if fact.via in (None, "same") else f" ({fact.via})"
    yield f"      {' '.join(words) or 'this bundle'}{via}"
    if fact.native is not None:
        yield f"      {_short(fact.native)}"


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else text[:_SHORT] + "…"
