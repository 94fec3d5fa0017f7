"""Secret answers (ASR-283): what a request that is marked secret was answered with.

Owns learning the values, from the records themselves and from the native lines that they cite: from the source as it
is, behind every mask, for a value that has to be nowhere must be known to be looked for. One shorter than
``masks.SHORTEST`` would hit words at random and is not looked for; an option that was offered gives nothing away.

Must never know: harness code. Where an answer stands, the registry's entries for ``answers`` and ``response`` say.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from callsheet.audit.cite import Cite, cite_of
from callsheet.audit.facts import values_of
from callsheet.audit.finding import Finding, Json
from callsheet.audit.sources import Sources
from callsheet.audit.stream import StreamAudit
from callsheet.audit.taint import RULE, TOLD, Search
from callsheet.records.bundle import Bundle
from callsheet.registry.facts import Marks
from callsheet.registry.via import json_text
from callsheet.wire.masks import SHORTEST

MARKS = ("secret", "isSecret", "is_secret", "writeOnly")
"""Members of a form's schema that mark what is asked for as a secret, when true; so does the format ``password``."""
DEEPEST = 6
MOST = 1000
"""Secret requests of a stream whose answers are looked for."""


class Asked(NamedTuple):
    """A request that asks for a secret, in one of its records.

    Attributes:
        record: The record.
        whole: All of it is secret.
        keys: Ids and words of the questions that are, and fields of a form that are.
        labels: Options that were offered.
    """

    record: Json
    whole: bool
    keys: frozenset[str]
    labels: frozenset[str]


def asked_in(record: Json, before: Asked | None) -> Asked | None:
    """What a request asks for as a secret; None when nothing of it is.

    Args:
        record: An input_request.
        before: What an earlier record of this request marked: it stays secret.
    """
    known = before.keys if before is not None else frozenset()
    keys: list[Any] = [*known]
    labels: list[Any] = []
    questions = record.get("questions")
    for question in questions if isinstance(questions, list) else ():
        if not isinstance(question, dict):
            continue
        options = question.get("options")
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict):
                labels += (option.get("label"), option.get("value"))
        name = question.get("id")
        if question.get("secret") is True or (isinstance(name, str) and name in known):
            keys += (name, question.get("text"))
    schema = record.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    for name, field in fields.items() if isinstance(fields, dict) else ():
        if _is_marked(field, 0):
            keys.append(name)
    named, offered = (frozenset(one for one in found if isinstance(one, str)) for found in (keys, labels))
    whole = record.get("secret") is True or (before is not None and before.whole)
    return Asked(record, whole, named, offered) if whole or named else None


def _is_marked(value: Any, depth: int) -> bool:
    if not isinstance(value, dict) or depth > DEEPEST:
        return False
    if value.get("format") == "password" or any(value.get(mark) is True for mark in MARKS):
        return True
    return any(_is_marked(inner, depth + 1) for inner in value.values())


class Secrets:
    """The secret answers of one bundle.

    Attributes:
        values: Each with the id of the record that asked for it, and its stream.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._asked: list[Asked] = []
        self._known: dict[str, Asked] = {}
        self.values: dict[str, tuple[str, str]] = {}

    def note(self, record: Json) -> None:
        """Takes in a record that may ask for a secret."""
        if record.get("type") != "input_request" or len(self._asked) >= MOST:
            return
        name = str(record.get("requestId"))
        asked = asked_in(record, self._known.get(name))
        if asked is not None:
            self._asked.append(asked)
            self._known[name] = asked

    def learn(self, stream: StreamAudit) -> None:
        """Learns what was answered to the requests noted so far, which are those of this stream."""
        asked, self._asked, self._known = self._asked, [], {}
        results = self._results_of(stream, asked)
        for one in asked:
            for value in self._told(stream, one, results.get(str(one.record.get("callId")), [])):
                for piece in _pieces(value, stream):
                    if len(piece) >= SHORTEST and piece not in one.labels:
                        self.values.setdefault(piece, (str(one.record.get("id")), stream.entry.id))

    @staticmethod
    def _results_of(stream: StreamAudit, asked: list[Asked]) -> dict[str, list[Json]]:
        """The results of the calls that asked."""
        found: dict[str, list[Json]] = {
            one.record["callId"]: [] for one in asked if isinstance(one.record.get("callId"), str)
        }
        for record in stream.ledger.records_of("tool_result") if found else ():
            name = record.get("callId", record.get("nativeCallId"))
            if isinstance(name, str) and name in found:
                found[name].append(record)
        return found

    def _told(self, stream: StreamAudit, asked: Asked, results: list[Json]) -> Iterator[str]:
        """Every value that a record, or a native line that it cites, tells as an answer to a secret."""
        record = asked.record
        yield from given(record.get("answers"), asked)
        yield from given(record.get("response"), asked)
        for result in results:
            for cite in self._originals(result):
                yield from _answers(cite.part if cite.pointer else cite.root, asked, 0)
            yield from _answers([result.get("content"), result.get("raw")], asked, 0)
        if stream.facts is None:
            return
        # Tables leave out what is marked secret: they are asked about the same questions without the mark.
        open_record = {name: value for name, value in record.items() if name not in ("secret", "supersedes")}
        if isinstance(record.get("questions"), list):
            open_record["questions"] = [
                {name: value for name, value in one.items() if name != "secret"}
                for one in record["questions"]
                if isinstance(one, dict)
            ]
        case = stream.case(open_record, list(self._originals(record)))
        for member in ("answers", "response"):
            for fact in stream.facts.of("input_request", member):
                for value in values_of(case, fact):
                    yield from given(value, asked)

    def _originals(self, record: Json) -> Iterator[Cite]:
        """The lines that a record cites, as the source has them; none where their digest is not the recorded one."""
        native = record.get("native")
        refs = native.get("refs") if isinstance(native, dict) else None
        for number, ref in enumerate(refs if isinstance(refs, list) else ()):
            name = ref.get("source") if isinstance(ref, dict) else None
            source = self._sources.all.get(name) if isinstance(name, str) else None
            data = None if source is None else source.original(ref)
            if source is not None and data is not None:
                yield cite_of(number, ref, source, data)

    # -- the search ---------------------------------------------------------------------------------------------

    def findings(self, bundle: Bundle) -> Iterator[Finding]:
        """Every place of the bundle where a value stands; the last finding counts what is not told one by one."""
        if not self.values:
            return
        left = 0
        for number, finding in enumerate(Search(self.values).bundle(bundle)):
            if number < TOLD:
                yield finding
            left = number + 1 - TOLD
        if left > 0:
            yield Finding(None, "", None, RULE, f"answers to secrets stand at {left} further places")


def given(value: Any, asked: Asked) -> Iterator[str]:
    """The secret ones among answers: by question id, by question words, or as a list that names the question."""
    if isinstance(value, list):
        for item in value:
            if not isinstance(item, dict) or "questionId" not in item:
                yield from _texts(item, 0) if asked.whole else ()
            elif asked.whole or (isinstance(item["questionId"], str) and item["questionId"] in asked.keys):
                yield from _texts([item.get("selected"), item.get("text")], 0)
    elif isinstance(value, dict):
        for name, item in value.items():
            if asked.whole or name in asked.keys:
                yield from _texts(item, 0)
    elif asked.whole:
        yield from _texts(value, 0)


def _answers(value: Any, asked: Asked, depth: int) -> Iterator[str]:
    """The secret answers under a member ``answers`` of a result, in an object or a JSON text."""
    if depth > DEEPEST:
        return
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = json_text(value)
    if isinstance(value, dict):
        found = value.get("answers")
        while isinstance(found, dict) and isinstance(found.get("answers"), dict):
            found = found["answers"]
        yield from given(found, asked)
        for name, inner in value.items():
            if name != "answers":
                yield from _answers(inner, asked, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _answers(inner, asked, depth + 1)


def _texts(value: Any, depth: int) -> Iterator[str]:
    """The texts and numbers in a value; true, false and null are no secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict | list) and depth <= DEEPEST:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner, depth + 1)


def _pieces(value: str, stream: StreamAudit) -> Iterator[str]:
    """An answer, and each of its lines, without what the agent puts before what was typed, and what it offers."""
    marks = Marks() if stream.registry is None else stream.registry.marks
    for piece in dict.fromkeys((value, *value.split("\n"))):
        words = piece.strip().removeprefix(marks.answer_note).strip()
        if words != marks.answer_other:
            yield words
