"""What is said around the calls: messages, thoughts, prompts, turns, usage, plans, notices.

Owns the joining of chunks (by messageId, or while nothing else is said), v2's replacing messages, the one
message that a v2 prompt and its echo are, the turns of both versions (v1: a prompt's response ends it; v2: the
idle state does) and the companion records.

Must never know: calls, requests, agents.
"""

from __future__ import annotations

from msgspec import Raw, Struct, field

from callsheet.harness._port.parts import (
    ABSENT,
    items_of,
    mark,
    members_of,
    text_of,
    value_of,
    whole_number_of,
)
from callsheet.harness._port.pen import Pen, number
from callsheet.harness._port.rpc import Id
from callsheet.harness.acp.held import CITED_MOST, REVISIONS_MOST, Held, hold, native_of, revise_at
from callsheet.harness.acp.parts import block_part
from callsheet.records import (
    Compaction,
    Count,
    Error,
    Inherited,
    Message,
    Part,
    Plan,
    PlanEntry,
    Reasoning,
    Record,
    Ref,
    Turn,
    Usage,
    text_part,
)
from callsheet.registry import Registry
from callsheet.registry.via import numbers
from callsheet.wire.lossless import lossless
from callsheet.wire.spans import Spans

MESSAGE_MOST = 4 << 20
"""Bytes of one message; what follows is a message of the same id."""
KNOWN_MOST = 64
"""Messages that a late chunk may still be added to."""
PLAN = "plan"
"""planId of a v1 plan, which has none: there is one per session."""


class Spoken(Struct):
    """A message in the making."""

    author: str
    message_id: str | None
    key: str
    parts: list[Held] = field(default_factory=list)
    refs: list[Ref] = field(default_factory=list)
    size: int = 0
    written: int = 0
    ts: str | None = None
    last_ts: str | None = None
    inherited: Inherited | None = None


class Open(Struct):
    """A turn that runs."""

    turn_id: str
    begin: Ref
    prompt: Id | None = None


class Prompt(Struct):
    """A v2 prompt whose message id is not known yet."""

    content: Held
    ts: str | None


class Talk:
    """The conversation of one session."""

    def __init__(self, pen: Pen, registry: Registry) -> None:
        self._pen = pen
        self._ends = {
            row.value: row.then
            for row in registry.terminal_status
            if (row.entity, row.source) == ("turn", "stopReason")
        }
        self._open: Spoken | None = None
        self._known: dict[str, Spoken] = {}
        self._count = 0
        self._turns: list[Open] = []
        self._turn_count = 0
        self._prompts: dict[Id | None, Prompt] = {}

    # -- messages -----------------------------------------------------------------------------------------------

    def knows(self, message_id: str | None) -> bool:
        """Whether a message of this id was heard of; without an id nothing can tell."""
        return message_id is None or message_id in self._known

    def chunk(self, author: str, update: dict[str, Raw], pointer: str) -> bool:
        """A piece of a message."""
        block = update.get("content", ABSENT)
        if not block:
            return False
        spoken = self._turn_to(author, text_of(update.get("messageId", ABSENT)))
        if not spoken.parts:
            spoken.inherited = self._pen.inherited
        spoken.parts.append(hold(self._pen, block, "message", pointer, "content"))
        spoken.size += len(block)
        self._heard(spoken, pointer)
        if spoken.size > MESSAGE_MOST or len(spoken.refs) > CITED_MOST:
            self.flush()
            self._known.pop(spoken.message_id or "", None)
        return True

    def whole(self, author: str, update: dict[str, Raw], pointer: str) -> bool:
        """v2: a message that replaces what was said under its id; null and an empty list clear it."""
        message_id = text_of(update.get("messageId", ABSENT))
        if message_id is None:
            return False
        spoken = self._turn_to(author, message_id)
        content = update.get("content", ABSENT)
        if content:
            spoken.inherited = self._pen.inherited  # nothing is left of what was said before
            told = self._pen.ref("message", pointer)  # the update, as a piece has it: pieces may follow
            spoken.parts = [
                hold(self._pen, item, "message", f"{pointer}/content", str(number))._replace(ref=told)
                for number, item in enumerate(items_of(content))
            ]
            spoken.size = len(content)
        self._heard(spoken, pointer)
        return True

    def _turn_to(self, author: str, message_id: str | None) -> Spoken:
        spoken = self._open
        if spoken is not None and (spoken.author, spoken.message_id) == (author, message_id):
            return spoken
        self.flush()
        spoken = self._known.get(message_id) if message_id is not None else None
        if spoken is None or spoken.author != author:
            self._count += 1
            spoken = Spoken(author, message_id, f"message {self._count}", ts=self._pen.ts)
            spoken.inherited = self._pen.inherited
            if message_id is not None:
                self._known[message_id] = spoken
                for old in list(self._known)[: max(0, len(self._known) - KNOWN_MOST)]:
                    self._pen.forget(self._known.pop(old).key)
        self._open = spoken
        return spoken

    def _heard(self, spoken: Spoken, pointer: str) -> None:
        spoken.refs.append(self._pen.ref("message", pointer))
        spoken.last_ts = self._pen.ts
        self._pen.cited()
        self._open = spoken

    def flush(self) -> None:
        """Writes the message in the making."""
        spoken, self._open = self._open, None
        if spoken is None or not spoken.refs:
            return
        pen = self._pen
        parts = joined([block_part(held.raw, pen.desk) for held in spoken.parts])
        record: Message | Reasoning
        if spoken.author == "thought":
            record = Reasoning(content=parts)
        else:
            record = Message(author=spoken.author, content=parts, message_id=spoken.message_id)
        if any(held.exact is not None for held in spoken.parts):
            exact = "[" + ",".join(held.exact or bytes(held.raw).decode() for held in spoken.parts) + "]"
            pen.capture(record, "content", "external", blob=pen.desk.blob(exact.encode(), "application/json"))
        record.native = native_of([*(held.ref for held in spoken.parts), *spoken.refs])
        record.native.inherited = spoken.inherited
        revise_at(pen, spoken.key, record, spoken.last_ts if spoken.written else spoken.ts)
        spoken.written += 1
        spoken.refs = [one for one in spoken.refs if one.role != "message"]
        if spoken.message_id is None:
            pen.forget(spoken.key)
        elif spoken.written >= REVISIONS_MOST:
            # What follows is a message of the same id: no log can make one grow without bound.
            self._known.pop(spoken.message_id, None)
            pen.forget(spoken.key)

    # -- prompts and turns --------------------------------------------------------------------------------------

    def prompt(self, request: Id | None, params: Raw, pointer: str, echoes: bool) -> None:
        """A person's prompt begins a turn; where the agent will echo it (v2), the message waits for its id."""
        self.flush()
        pen = self._pen
        raw = members_of(params).get("prompt", ABSENT)
        self.begin(pen.ref("start", f"{pointer}/params"), request, echoes)
        if not raw:
            return
        held = hold(pen, raw, "message", f"{pointer}/params", "prompt")
        if echoes:
            self._prompts[request] = Prompt(held, pen.ts)
        else:
            self._write_prompt(held, None, pen.ts)

    def _write_prompt(
        self, held: Held, message_id: str | None, ts: str | None, named: Ref | None = None
    ) -> None:
        self._count += 1
        refs = [held.ref, *([named] if named is not None else [])]
        spoken = Spoken("user", message_id, f"message {self._count}", refs=refs, ts=ts)
        words = text_of(held.raw)
        if words is not None:
            # No block but plain text: seen in logs of early clients.
            spoken.parts = [
                Held(Raw(b'{"type":"text","text":' + bytes(held.raw) + b"}"), held.exact, held.ref)
            ]
        else:
            spoken.parts = [
                Held(item, exact_item(held.exact, number), held.ref)
                for number, item in enumerate(items_of(held.raw))
            ]
        if message_id is not None:
            self._known[message_id] = spoken
        self._open = spoken
        self.flush()

    def prompt_accepted(self, request: Id | None, message_id: str | None, pointer: str) -> None:
        """v2: the agent says which message a prompt became."""
        prompt = self._prompts.pop(request, None)
        if prompt is not None and not (message_id is not None and message_id in self._known):
            self.flush()
            named = self._pen.ref("named", f"{pointer}/result") if message_id is not None else None
            self._write_prompt(prompt.content, message_id, prompt.ts, named)

    def begin(self, ref: Ref, prompt: Id | None, joins: bool, silent: bool = False) -> None:
        """A turn begins; in v2 (``joins``) a prompt, or the running state, within a turn belongs to it.

        Args:
            ref: The frame that says so.
            prompt: Request id of the prompt.
            joins: Whether it may belong to the turn that runs.
            silent: Nothing told of it before its end: only that is written.
        """
        if joins and self._turns:
            turn = self._turns[-1]
            self._turn(turn, Turn(turn_id=turn.turn_id, status="running"), [ref])
            return
        self._turn_count += 1
        turn = Open(f"t{self._turn_count}", ref, prompt)
        self._turns.append(turn)
        if not silent:
            self._turn(turn, Turn(turn_id=turn.turn_id, status="running"), [])

    def _turn(self, turn: Open, record: Turn, more: list[Ref]) -> None:
        record.id_source = "derived"
        record.native = native_of([turn.begin, *more])
        self._pen.revise(f"turn {turn.turn_id}", record)

    def end(self, prompt: Id | None, said: dict[str, Raw], pointer: str, role: str = "end") -> bool:
        """A turn ends: of this prompt, or (v2) the one that runs; False when none does.

        Args:
            prompt: Request id of the prompt that is answered; None for the idle state.
            said: The response's result or error, or the update.
            pointer: Where it stands.
            role: Role of the ref.
        """
        self.flush()
        turn = next((one for one in self._turns if prompt is None or one.prompt == prompt), None)
        if turn is None:
            return False
        self._turns.remove(turn)
        pen = self._pen
        reason = text_of(said.get("stopReason", ABSENT))
        status = self._ends.get(reason, "unknown")
        record = Turn(turn_id=turn.turn_id, status=status, reason=reason)
        error = said.get("error", ABSENT)
        failed = members_of(error) if error else (said if "message" in said and "code" in said else {})
        if failed:
            record.status = "failed"
            record.error = Error(
                message=text_of(failed.get("message", ABSENT)), code=value_of(failed.get("code", ABSENT))
            )
        self._turn(turn, record, [pen.ref(role, pointer)])
        pen.forget(f"turn {turn.turn_id}")
        self.turn_usage(said, pointer)
        self.write_prompts()
        return True

    def write_prompts(self) -> None:
        """Prompts that the agent never named: written as they were sent."""
        for prompt_id in list(self._prompts):
            waiting = self._prompts.pop(prompt_id)
            self._write_prompt(waiting.content, None, waiting.ts)

    def turn_usage(self, said: dict[str, Raw], pointer: str) -> None:
        """Usage that came with the end of a turn."""
        told = numbers(value_of(said.get("usage", ABSENT)))
        if isinstance(told, list) and told:
            counts = [Count(name=one["name"], value=one["value"]) for one in told]
            self._companion(Usage(scope="turn", counts=counts), "end", pointer)

    def turn_started(self, pointer: str) -> None:
        """v2: the running state (or one that waits for a person)."""
        self.begin(self._pen.ref("start", pointer), None, True)

    # -- the rest -----------------------------------------------------------------------------------------------

    def _companion(
        self, record: Record, role: str, pointer: str, key: str | None = None, name: str | None = None
    ) -> None:
        record.native = self._pen.native(role, pointer)
        record.native.id = name
        if key is None:
            self._pen.write(record)
        else:
            self._pen.revise(key, record)

    def usage(self, update: dict[str, Raw], pointer: str) -> bool:
        """``usage_update``: how full the context is."""
        record = Usage(
            scope="session",
            context_used=whole_number_of(update.get("used", ABSENT)),
            context_window=whole_number_of(update.get("size", ABSENT)),
        )
        cost = members_of(update.get("cost", ABSENT))
        amount = number(value_of(cost.get("amount", ABSENT)))
        if amount is not None:
            record.counts = [Count(name="cost.amount", value=amount)]
            currency = text_of(cost.get("currency", ABSENT))
            if currency is not None:
                record.meta = {"callsheet/currency": currency}
        if record.context_used is None and record.context_window is None and record.counts is None:
            return False
        self._companion(record, "usage", pointer)
        return True

    def plan(self, update: dict[str, Raw], pointer: str) -> bool:
        """v1 ``plan``: the whole plan."""
        return self._write_plan(PLAN, update, pointer, "derived")

    def plan_update(self, update: dict[str, Raw], pointer: str) -> bool:
        """v2 ``plan_update``: a plan of entries; other forms of plans are kept unmapped."""
        plan = members_of(update.get("plan", ABSENT))
        name = text_of(plan.get("planId", ABSENT))
        if name is None or text_of(plan.get("type", ABSENT)) != "items":
            return False
        return self._write_plan(name, plan, f"{pointer}/plan", "native")

    def _write_plan(self, name: str, plan: dict[str, Raw], pointer: str, source: str) -> bool:
        if mark(plan.get("entries", ABSENT)) != b"[":
            return False
        entries = []
        for item in items_of(plan["entries"]):
            members = members_of(item)
            words = text_of(members.get("content", ABSENT))
            if words is not None:
                entries.append(PlanEntry(text=words, status=text_of(members.get("status", ABSENT))))
        if not entries and items_of(plan["entries"]):
            return False  # nothing that could be an entry
        self._companion(
            Plan(plan_id=name, id_source=source, entries=entries), "plan", pointer, f"plan {name}"
        )
        return True

    def notice(self, update: dict[str, Raw], pointer: str) -> bool:
        """The agent software's own words to the person."""
        words = [text_of(update.get(name, ABSENT)) for name in ("title", "description")]
        parts = [text_part(text) for text in words if text]
        if parts:
            self._companion(Message(author="harness", content=parts), "notice", pointer)
        return bool(parts)

    def compaction(self, update: dict[str, Raw], pointer: str) -> bool:
        """``compaction_update``: revised under its own id."""
        name = text_of(update.get("compactionId", ABSENT))
        record = Compaction(trigger=text_of(update.get("trigger", ABSENT)))
        summary = update.get("summary", ABSENT)
        if mark(summary) == b"[":
            record.summary = [block_part(item, self._pen.desk) for item in items_of(summary)]
        self._companion(record, "compaction", pointer, f"compaction {name}" if name else None, name)
        return True


def exact_item(exact: str | None, number: int) -> str | None:
    """The exact text of one item of a list that has one (``Held.exact``), where the item needs it."""
    found = None if exact is None else Spans(exact.encode()).text(f"/{number}")
    return None if found is None or lossless(found) else found.decode()


def words_of(text: object) -> str:
    """The text of a part, also where it is kept as its own JSON."""
    return (text_of(text) or "") if isinstance(text, Raw) else str(text)


def joined(parts: list[Part]) -> list[Part]:
    """Parts with neighbouring plain texts made one."""
    found: list[Part] = []
    run: list[str] = []

    def close() -> None:
        if run:
            found.append(text_part("".join(run)))
            run.clear()

    for part in parts:
        if part.type == "text" and part.uri is None and part.text is not None:
            run.append(words_of(part.text))
        else:
            close()
            found.append(part)
    close()
    return found
