"""Checks one stream, line by line, in memory that does not grow with the size of its records.

Owns the two lanes. Most lines are proved right by ``proof`` and cost little; a line that is not proved is
decoded as plain JSON, and every rule that looks at its type says what it finds. Both lanes note the record
in the same memory (``across``), so what holds between records does not depend on the lane.

Must never know: files, bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from callsheet.records import TYPES
from callsheet.rules.across import Stream, agent_as_terminal, unresolved_terminal
from callsheet.rules.finding import Checked, Finding, Json, Problem
from callsheet.rules.proof import Proof
from callsheet.rules.request import asr_283, secret_questions
from callsheet.rules.table import PROFILE, RULES
from callsheet.rules.text import read_object
from callsheet.wire.lines import Line
from callsheet.wire.lossless import NotJson

_OF_TYPE = {
    kind: tuple((rule.code, rule.check) for rule in RULES if rule.check is not None and kind in rule.types)
    for kind in TYPES
}
_SHAPE = "P-SHAPE"
_WHY = {
    "bad_utf8": "the line is not UTF-8",
    "too_deep": "the line is nested too deeply to be read",
    "nul": "the line has NUL bytes and is not one JSON value",
    "bad_json": "the line is not one JSON object",
}


class Blobs(Protocol):
    """The blobs of a bundle, as far as a stream needs to know them."""

    def settled(self, line: bytes) -> bool:
        """Whether every blob that a line may name is there, judged by its text."""

    def problems(self, record: Json) -> Iterator[tuple[str, Problem]]:
        """What is wrong with the blobs that a record names."""


class StreamCheck:
    """The check of one stream.

    Args:
        name: The stream's id inside a bundle, for its findings.
        blobs: What a bundle knows of the blobs that records name; None for a stream that stands alone.

    Attributes:
        memory: What is remembered of the stream; a bundle settles its open ends.
    """

    def __init__(self, name: str | None = None, blobs: Blobs | None = None) -> None:
        self.memory = Stream()
        self._name = name
        self._proof = Proof(self.memory)
        self._blobs = blobs

    def line(self, line: Line) -> list[Finding]:
        """Findings of one line, by itself and against the lines before."""
        settled = self._blobs is None or self._blobs.settled(line.data)
        if settled and self._proof.holds(line.data, line.number):
            return []
        return [self._named(finding) for finding in self._look(line)]

    def end(self) -> list[Finding]:
        """Findings that only the whole stream shows, by line."""
        return [self._named(finding) for finding in self.memory.end()]

    def _named(self, finding: Finding) -> Finding:
        if self._name is None:
            return finding
        return Finding(finding.rule, finding.record, finding.line, finding.path, finding.message, self._name)

    def _look(self, line: Line) -> Iterator[Finding]:
        try:
            record, doubtful = read_object(line.data)
        except NotJson as error:
            self.memory.lost_line()
            why = _WHY.get(error.reason, _WHY["bad_json"])
            torn = "" if line.ended else "; it is the last line and has no end, so it may have been cut off"
            yield Finding("P-JSON", None, line.number, "", f"{why}: {error}{torn}")
            return
        name = record.get("id")
        name = name if isinstance(name, str) else None
        yield from self.memory.note(record, line.number)
        problems = list(self._problems(record, doubtful))
        ruled = [problem.path for code, problem in problems if code != _SHAPE]
        for code, problem in problems:
            # Where a rule speaks about a member, its word stands; that the type is wrong adds nothing.
            if code != _SHAPE or not any(
                problem.path == path or problem.path.startswith(f"{path}/") for path in ruled
            ):
                yield Finding(code, name, line.number, problem.path, problem.message)

    def _problems(self, record: Json, doubtful: bool) -> Iterator[tuple[str, Problem]]:
        kind = record.get("type")
        for code, check in _OF_TYPE.get(kind, ()) if isinstance(kind, str) else ():
            for problem in check(record):
                yield code, problem
        if kind == "input_request":
            yield from self._secrets(record)
        for rule in PROFILE:
            if rule.check is not None and (doubtful or rule.code != "P-JSON"):
                for problem in rule.check(record):
                    yield rule.code, problem
        if self._blobs is not None:
            yield from self._blobs.problems(record)

    def _secrets(self, record: Json) -> Iterator[tuple[str, Problem]]:
        """ASR-283 over revisions: what was marked secret once stays secret."""
        before, name = record.get("supersedes"), record.get("id")
        known = self.memory.secrets.pop(before, frozenset()) if isinstance(before, str) else frozenset()
        for problem in asr_283(record, known):
            yield "ASR-283", problem
        known = known.union(secret_questions(record))
        if known and isinstance(name, str):
            self.memory.secrets[name] = known


Progress = Callable[[str, int, int], None]
"""Called now and then with what is being read, bytes read so far, and bytes to read (0: unknown)."""


def told(lines: Iterable[Line], name: str, total: int, progress: Progress) -> Iterator[Line]:
    """The same lines, telling how far they are."""
    for count, line in enumerate(lines):
        if not count % 1024:
            progress(name, line.offset, total)
        yield line


def check_stream(lines: Iterable[Line], checked: Checked | None = None) -> Iterator[Finding]:
    """Checks a stream that stands alone.

    Args:
        lines: Its lines (``records.stream.stream_lines``).
        checked: Counts what was checked, if given.

    Yields:
        Findings as they are met, then those that need the whole stream, by line.
    """
    check = StreamCheck()
    count = 0
    for line in lines:
        count += 1
        yield from check.line(line)
    if checked is not None:
        checked.streams += 1
        checked.records += count
    memory = check.memory
    late = check.end()
    for name, places in memory.open_terminals.items():
        late += [unresolved_terminal(name, place, "this stream does not have") for place in places]
    late += [
        agent_as_terminal(name, terminal.first)
        for name, terminal in memory.terminals.items()
        if name in memory.agents
    ]
    yield from sorted(late, key=lambda finding: finding.line or 0)
