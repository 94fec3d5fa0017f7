"""The first pass over a transcript: what only the whole of it shows.

Owns: the tree, call ids that stand on several calls and which message made them (decision 3), entries that repeat
another, processes started under one name, runs, the head of the session, secrets that were asked for (ASR-283) and
raw chain of thought (decision 11), both named to the veil before anything is written.

Must never know: records but their places, what a result says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from callsheet.harness._port.cells import Cell
from callsheet.harness._port.parts import ABSENT, mark, members_of, text_of
from callsheet.harness._port.pen import Place
from callsheet.harness._port.units import Unit
from callsheet.harness.openclaw import secrets
from callsheet.harness.openclaw.feed import Found, Transcript
from callsheet.harness.openclaw.shapes import (
    NESTED,
    Block,
    Entry,
    Message,
    blocks_of,
    details_of,
    nested_of,
    prompt_of,
    run_of,
    text,
)
from callsheet.harness.openclaw.tree import ASSISTANT, NONE, OTHER, REPLY, Tree
from callsheet.records import SourceEntry

CUT_OFF = frozenset({"error", "aborted"})
"""Stop reasons of messages that a model did not send whole."""
MOST_MODELS = 250


class Model(NamedTuple):
    """Where a message of the model came from."""

    api: str
    provider: str
    model: str


NO_MODEL = Model("", "", "")


class Name(NamedTuple):
    """How a call is named in records: its id, and whether that is ``native`` or ``derived``."""

    call_id: str
    source: str


class Survey:
    """What the first pass found."""

    def __init__(
        self, transcript: Transcript, leaf: str | None, *, keep_reasoning: bool, before: Survey | None = None
    ) -> None:
        self.tree = Tree()
        self.session_id: str | None = None
        self.cwd: str | None = None
        self.title: tuple[str, Found] | None = None
        self.parent_session: str | None = None
        self.version: Any = None
        self.head: Found | None = None
        self.copies: dict[int, list[Place]] = {}
        self.starts: dict[str, int] = {}
        """Process names to how many processes were started under them."""
        self.runs: set[int] = set()
        self.asked: dict[str, secrets.Asked] = {}
        self.secrets_given: set[str] = before.secrets_given if before else set()
        self.secret_values: dict[str, None] = {}
        self._transcript = transcript
        self._keep_reasoning = keep_reasoning
        self._results: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._makers: dict[int, dict[int, int]] = {}
        self._models: list[Model] = [NO_MODEL]
        self._windows = [0]
        self._model_of = bytearray()
        self._own: dict[int, str] = {}
        for found in transcript.units():
            if isinstance(found.unit, Unit):
                self._look(found, found.unit)
        self.tree.settle(leaf)
        self._forget_repeats()
        if self.tree.repeats or self._makers:
            self._look_again()
        if self.asked and before is None:
            self._find_secrets()

    # -- one unit -----------------------------------------------------------------------------------------------

    def _look(self, found: Found, unit: Unit[Entry]) -> None:
        entry = unit.native
        kind, model = OTHER, 0
        if entry is None:
            self._add(None, None, OTHER, unit.data, 0)
            return
        if entry.type == "session":
            self._head(found, entry)
            self._add(None, None, OTHER, unit.data, 0)
            return
        message = entry.message
        # What an entry of a type that nobody knows makes is not known either: it is kept whole, and makes no call.
        speaks = entry.type == "message"
        if speaks and message is not None and message.role == "assistant":
            sent = text(message.stopReason) not in CUT_OFF
            kind, model = (REPLY if sent else ASSISTANT), self._model(message)
        at = self._add(text(entry.id), text(entry.parentId), kind, unit.data, model)
        if entry.type == "session_info" and text(entry.name):
            self.title = (entry.name, found)
        if message is None:
            return
        run = run_of(message)
        if run is not None:
            self.runs.add(hash(run))
        if message.role == "assistant":
            self._assistant(found, unit, message, at, speaks=speaks)
        elif not speaks:
            return
        elif message.role == "toolResult":
            self._result(message)
        elif message.role == "custom" and message.customType == NESTED:
            nested = nested_of(message.details)
            if nested is not None and isinstance(nested.toolCallId, str):
                self._made(nested.toolCallId, at)
                self._answers(nested.toolCallId)

    def _add(self, own: str | None, parent: str | None, kind: int, data: bytes, model: int) -> int:
        self._model_of.append(model)
        return self.tree.add(own, parent, kind, data)

    def _head(self, found: Found, entry: Entry) -> None:
        if self.head is None:
            self.head = found
            self.session_id = text(entry.id)
            self.cwd = text(entry.cwd)
            self.parent_session = text(entry.parentSession)
            self.version = entry.version

    def _model(self, message: Message) -> int:
        """Number of the model that made a message. What its request took, its context window holds at least."""
        named = Model(*(text(value) or "" for value in (message.api, message.provider, message.model)))
        if named not in self._models:
            if len(self._models) >= MOST_MODELS:
                return 0
            self._models.append(named)
            self._windows.append(0)
        number = self._models.index(named)
        self._windows[number] = max(self._windows[number], prompt_of(message.usage) if number else 0)
        return number

    def _assistant(self, found: Found, unit: Unit[Entry], message: Message, at: int, *, speaks: bool) -> None:
        for block in blocks_of(message.content):
            if block.type == "toolCall" and isinstance(block.id, str):
                if speaks:
                    self._made(block.id, at)
                asked = secrets.asked(block.name, block.arguments)
                if asked is not None:
                    self.asked[block.id] = asked
            elif block.type == "thinking" and not self._keep_reasoning:
                self._hide(found, unit, block)

    def _hide(self, found: Found, unit: Unit[Entry], block: Block) -> None:
        if mark(block.thinking) != b'"' or len(block.thinking) <= 2:
            return
        if isinstance(unit.line, Cell) and unit.line.quoted:
            # It stands in its line as a text inside a text: no place of its own, so the words are masked.
            words = text_of(block.thinking)
            if words:
                self._transcript.veil.secret(words, [found.source])
        else:
            hide_all(self._transcript, found, unit, bytes(block.thinking))

    def _made(self, call_id: str, at: int) -> None:
        key = hash(call_id)
        makers = self._makers.get(key)
        if makers is not None:
            makers[at] = makers.get(at, 0) + 1
            return
        first = self._first.get(key)
        if first is None:
            self._first[key] = at
        else:
            self._makers[key] = {at: 2} if first == at else {first: 1, at: 1}

    def _answers(self, call_id: Any) -> None:
        if isinstance(call_id, str):
            key = hash(call_id)
            self._results[key] = self._results.get(key, 0) + 1

    def _result(self, message: Message) -> None:
        self._answers(message.toolCallId)
        raw = message.details
        if message.toolName != "process" and b'"sessionId"' in bytes(raw) and b'"running"' in bytes(raw):
            details = details_of(raw)
            if details.status == "running" and text(details.sessionId):
                self.starts[details.sessionId] = self.starts.get(details.sessionId, 0) + 1

    # -- afterwards ---------------------------------------------------------------------------------------------

    def _forget_repeats(self) -> None:
        """An entry written twice makes its calls once (decision 2)."""
        for key, makers in list(self._makers.items()):
            for at in [at for at in makers if at in self.tree.repeats]:
                del makers[at]
            if sum(makers.values()) <= 1:
                del self._makers[key]

    def _look_again(self) -> None:
        """Where repeats stand, and the ids of the messages that made calls of one id."""
        wanted = {at for makers in self._makers.values() for at in makers}
        for found in self._transcript.units():
            unit = found.unit
            if not isinstance(unit, Unit):
                continue
            first = self.tree.repeats.get(found.at)
            if first is not None:
                line = unit.line
                place = Place(found.source, line.number, line.offset + unit.start, len(unit.data))
                self.copies.setdefault(first, []).append(place)
            if found.at in wanted and unit.native is not None and text(unit.native.id):
                self._own[found.at] = unit.native.id

    def _find_secrets(self) -> None:
        """Finds the answers to secret questions, wherever results hold them."""
        for found in self._transcript.units():
            unit = found.unit
            if not isinstance(unit, Unit) or unit.native is None or unit.native.message is None:
                continue
            message = unit.native.message
            call_id = message.toolCallId
            if message.role != "toolResult" or not isinstance(call_id, str) or call_id not in self.asked:
                continue
            answers = secrets.answers_in(self.asked[call_id], message.details)
            if answers:
                self.secrets_given.add(call_id)
                self.secret_values.update(dict.fromkeys(answers))
            # The text for the model repeats the answers in words: nothing of it is kept.
            for raw in (message.content, members_of(message.details).get("answers", ABSENT)):
                if raw:
                    hide_all(self._transcript, found, unit, bytes(raw))

    # -- what the second pass asks ------------------------------------------------------------------------------

    def knows_call(self, call_id: str) -> bool:
        """Whether this transcript has a call of this id."""
        return hash(call_id) in self._first

    def results_of(self, call_id: str) -> int:
        """How many results of this call id the transcript has."""
        return self._results.get(hash(call_id), 0)

    def is_shared(self, call_id: str) -> bool:
        """Whether a call id stands on several calls."""
        return hash(call_id) in self._makers

    def name(self, call_id: str, at: int) -> Name:
        """How the call that the entry at ``at`` makes is named."""
        makers = self._makers.get(hash(call_id))
        if makers is None or makers.get(at) != 1 or at not in self._own or at in self.tree.namesakes:
            return Name(call_id, "native")
        return Name(f"{call_id}#{self._own[at]}", "derived")

    def answered(self, call_id: str, at: int) -> str | None:
        """Derived id of the call that the entry at ``at`` answers, where the tree tells it (decision 3)."""
        above = self.tree.assistant(at)
        if above == NONE:
            return None
        name = self.name(call_id, above)
        return name.call_id if name.source == "derived" else None

    def maker(self, at: int) -> tuple[str, int]:
        """The provider API of the message whose chain an entry stands in, and the least context window of its model."""
        above = self.tree.assistant(at)
        number = 0 if above == NONE else self._model_of[above]
        return self._models[number].api, self._windows[number]


def surveys_of(
    transcripts: list[tuple[Transcript, str | None]], around: list[SourceEntry], *, keep_reasoning: bool
) -> list[Survey]:
    """First passes over transcripts that one bundle holds, each with its leaf.

    What one of them names as a secret is masked in all of them, and in the sources around, before a record is made.
    """
    found = [Survey(one, leaf, keep_reasoning=keep_reasoning) for one, leaf in transcripts]
    values = dict.fromkeys(value for one in found for value in one.secret_values)
    if not values:
        return found
    everything = {feed.source.id: feed.source for one, _ in transcripts for feed in one.feeds}
    everything |= {source.id: source for source in around}
    for value in values:
        transcripts[0][0].veil.secret(value, list(everything.values()))
    return [
        Survey(one, leaf, keep_reasoning=keep_reasoning, before=before)
        for (one, leaf), before in zip(transcripts, found, strict=True)
    ]


def hide_all(transcript: Transcript, found: Found, unit: Unit[Entry], piece: bytes) -> None:
    """Hides the strings of a JSON value wherever it stands in a unit."""
    for place in places(unit, piece):
        transcript.veil.hide(found.source, place, len(piece))


def places(unit: Unit[Entry], piece: bytes) -> Iterator[int]:
    """Offsets, in its source, at which a piece of a unit's text stands."""
    line = unit.line
    if isinstance(line, Cell) and line.quoted:
        return
    at = unit.data.find(piece)
    while at >= 0:
        yield line.offset + unit.start + at
        at = unit.data.find(piece, at + len(piece))
