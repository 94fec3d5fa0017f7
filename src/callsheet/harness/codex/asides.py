"""Companions of calls and executions: plans, questions to the person, agents, changed files, reviews.

Owns: the records that hang on a call besides its result. Each is written only from fields that the source made for it;
later states supersede the earlier ones. The answer to a secret is nowhere (ASR-283).

Must never know: how a result got its status.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from callsheet.harness._port.pen import Pen
from callsheet.harness.codex.agents import Agents
from callsheet.harness.codex.calltable import CALL, ITEM
from callsheet.harness.codex.changes import STATES, file_change
from callsheet.harness.codex.executions import Execution
from callsheet.harness.codex.patches import proposed
from callsheet.harness.codex.secrets import REPLY, is_secret, questions_of, replied_call, replies
from callsheet.harness.codex.shapes import (
    Payload,
    clean_data,
    json_in,
    members_of,
    payload_text,
    text,
    text_of,
    value_of,
)
from callsheet.harness.codex.survey import Survey
from callsheet.records import (
    Actor,
    Answer,
    FileChange,
    InputRequest,
    Message,
    Permission,
    Plan,
    PlanEntry,
    Question,
    QuestionOption,
    RecordRef,
    Review,
    Subject,
)
from callsheet.registry import Registry, first

ASKS = frozenset({"request_user_input", "request_user_input_async"})
PLANS = "update_plan"
PATCHES = "apply_patch"
SPAWNS = "spawn_agent"
ASKED_MOST = 4096
"""Questions whose answer has not come yet."""


class Asides:
    """Writes the companions of one thread's calls and executions."""

    def __init__(self, pen: Pen, survey: Survey, registry: Registry, agents: dict[str, str]) -> None:
        self._pen = pen
        self._survey = survey
        self._registry = registry
        self.agents = Agents(pen, registry, agents, self._single)
        self._asked: dict[str, InputRequest] = {}
        self.spawned: set[str] = set()

    # -- calls --------------------------------------------------------------------------------------------------

    def after_call(self, payload: Payload, call_id: str, pointer: str, cwd: str | None) -> None:
        """What a call asks for besides its result."""
        name = payload.name if isinstance(payload.name, str) else None
        if name == PLANS:
            self._plan(call_id, self._arguments(payload), pointer)
        elif name in ASKS:
            self._ask(call_id, self._arguments(payload), pointer)
        elif name == PATCHES and not self._survey.calls.count(ITEM, call_id):
            self._propose(payload, call_id, pointer, cwd)
        elif name == SPAWNS:
            self.spawned.add(call_id)

    @staticmethod
    def _arguments(payload: Payload) -> Any:
        words = text_of(payload.arguments)
        return json_in(words) if words is not None else value_of(payload.arguments)

    def _plan(self, call_id: str, arguments: Any, pointer: str) -> None:
        steps = arguments.get("plan") if isinstance(arguments, dict) else None
        if not isinstance(steps, list):
            return
        entries = [
            PlanEntry(text=step["step"], status=text(step.get("status")))
            for step in steps
            if isinstance(step, dict) and isinstance(step.get("step"), str)
        ]
        if not entries and steps:
            return
        record = Plan(plan_id="plan", id_source="derived", call_id=self._single(call_id), entries=entries)
        record.native = self._pen.native("call", f"{pointer}/arguments")
        self._pen.revise("plan", record)

    def plan_item(self, item_id: str | None, words: str) -> None:
        """A plan that the agent wrote as one text."""
        record = Plan(plan_id=item_id or "proposed", entries=[PlanEntry(text=words)])
        record.id_source = "native" if item_id else "derived"
        record.native = self._pen.native("item", "/payload/item/text")
        self._pen.revise(f"plan {record.plan_id}", record)

    def _single(self, call_id: str) -> str | None:
        """The call id, unless several calls have it."""
        return call_id if self._survey.calls.count(CALL, call_id) <= 1 else None

    # -- questions ----------------------------------------------------------------------------------------------

    def _ask(self, call_id: str, arguments: Any, pointer: str) -> None:
        asked = questions_of(arguments)
        questions = questions_in(asked)
        if not questions:
            return
        blocking = arguments.get("isBlocking") if isinstance(arguments, dict) else None
        request = InputRequest(
            request_id=call_id,
            id_source="derived",
            call_id=self._single(call_id),
            mode="questions",
            questions=questions,
            blocking=blocking if isinstance(blocking, bool) else None,
            native=self._pen.native("call", f"{pointer}/arguments"),
        )
        if self._single(call_id) is None:
            self._pen.write(request)
            return
        self._pen.revise(f"ask {call_id}", request)
        self._asked[call_id] = request
        if len(self._asked) > ASKED_MOST:
            self._asked.pop(next(iter(self._asked)))

    def after_output(self, payload: Payload, pointer: str) -> None:
        """What an output says besides being one."""
        call_id = payload.call_id
        if not isinstance(call_id, str):
            return
        asked = self._asked.get(call_id)
        if asked is not None:
            self._answered(asked, payload, pointer)
        elif call_id in self.spawned:
            value = json_in(text_of(payload.output))
            agent_id = text(value.get("agent_id")) if isinstance(value, dict) else None
            if agent_id:
                name = text(value.get("nickname"))
                self.agents.write(agent_id, call_id, name, "running", "result", pointer)

    def _answered(self, asked: InputRequest, payload: Payload, pointer: str) -> None:
        value = json_in(text_of(payload.output))
        given = value.get("answers") if isinstance(value, dict) else None
        secret_given = self._survey.secrets_given.get(asked.request_id)
        if not isinstance(given, dict) and secret_given is None:
            return
        answers = []
        for question in asked.questions or ():
            answer = given.get(question.id) if isinstance(given, dict) else None
            words = answer.get("answers") if isinstance(answer, dict) else None
            if question.secret or not isinstance(words, list):
                continue
            answers.append(answer_of(question, [word for word in words if isinstance(word, str)]))
        status = "answered" if answers or given or secret_given else None
        self._revise(asked, status, answers, self._pen.native("result", f"{pointer}/output"), None)

    def after_message(self, messages: list[Message]) -> None:
        """Answers to questions that did not block: the harness's tag names the call (ASR-285)."""
        if REPLY.encode() not in self._pen.unit.data:
            return
        for message in messages:
            for part in message.content or ():
                for item in replies(_words(part.text)):
                    named = replied_call(item)
                    asked = self._asked.get(named[0]) if named is not None else None
                    if asked is not None and named is not None:
                        self._replied(asked, named[1], item.get("answer"), message)

    def _replied(self, asked: InputRequest, index: int, answer: Any, message: Message) -> None:
        questions = asked.questions or []
        answers = list(asked.answers or ())
        if 0 <= index < len(questions) and isinstance(answer, str) and not questions[index].secret:
            answers = [one for one in answers if one.question_id != questions[index].id]
            answers.append(answer_of(questions[index], [answer]))
        native = self._pen.native("message", message.native.refs[0].pointer if message.native else None)
        self._revise(asked, "answered", answers, native, RecordRef(record=message.id))

    def _revise(
        self,
        asked: InputRequest,
        status: str | None,
        answers: list[Answer],
        native: Any,
        ref: RecordRef | None,
    ) -> None:
        request = InputRequest(
            request_id=asked.request_id,
            id_source=asked.id_source,
            call_id=asked.call_id,
            mode=asked.mode,
            questions=asked.questions,
            blocking=asked.blocking,
            status=status,
            answers=answers or None,
            answer_ref=ref,
            native=native,
        )
        if any(question.secret for question in asked.questions or ()):
            self._pen.capture(request, "answers", "redacted", reason="the answer to a secret is not kept")
        self._asked[asked.request_id] = request
        self._pen.revise(f"ask {asked.request_id}", request)

    # -- changed files ------------------------------------------------------------------------------------------

    def _propose(self, payload: Payload, call_id: str, pointer: str, cwd: str | None) -> None:
        """Where nothing tells how a patch went, the call itself says what was asked for (harness seam 6)."""
        arguments = json_in(text_of(payload.arguments)) if payload.arguments else None
        member = "input" if payload.input else "arguments"
        words = text_of(payload.input)
        if words is None and isinstance(arguments, dict):
            words = next((arguments[name] for name in ("input", "patch") if text(arguments.get(name))), None)
        changes = proposed(self._pen, words, cwd) if words is not None else []
        if changes:
            record = FileChange(
                scope="call", call_id=self._single(call_id), state="proposed", changes=changes
            )
            record.native = self._pen.native("call", f"{pointer}/{member}")
            self._pen.write(record)

    def after_execution(self, execution: Execution, status: str) -> None:
        """What an execution tells besides its outcome."""
        fields = execution.fields
        if fields.changes:
            call_id = execution.call_id
            pointer = f"{execution.pointer}/changes"
            record = file_change(
                self._pen,
                fields.changes,
                self._single(call_id) if call_id else None,
                STATES.get(status, "unknown"),
                self._pen.native(execution.role, pointer),
                pointer,
            )
            if record is not None:
                self._pen.write(record)
        if execution.kind == "CollabAgentToolCall":
            self.agents.of_call(execution, fields.tool == "spawnAgent")
        elif execution.kind.startswith("collab_"):
            self.agents.of_event(execution)

    # -- reviews ------------------------------------------------------------------------------------------------

    def assessment(self, version: str | None) -> bool:
        """``guardian_assessment``: a model reviewed an action and decided (decision 6)."""
        members = members_of(payload_text(clean_data(self._pen.unit)))
        review_id = text_of(members.get("id", Raw()))
        if not review_id:
            return False
        word = text_of(members.get("status", Raw()))
        rule = first(self._registry.decision, version, {"payload": {"status": word}})
        target = text_of(members.get("target_item_id", Raw()))
        rationale = text_of(members.get("rationale", Raw()))
        decision = rule.decision if rule is not None else None
        record = Permission(
            request_id=review_id,
            subject=Subject(call_id=target) if target else None,
            status="resolved" if decision else "pending",
            decision=decision,
            decided_by=rule.decidedBy if rule is not None else None,
            reviews=[Review(by=Actor(agent="guardian"), verdict=word, rationale=rationale)]
            if decision
            else None,
            native=self._pen.native("review", "/payload"),
        )
        self._pen.revise(f"review {review_id}", record)
        return True


def _words(value: Any) -> str:
    """A part's text, which may still be its own JSON text."""
    if isinstance(value, Raw):
        return text_of(value) or ""
    return value if isinstance(value, str) else ""


def questions_in(asked: list[dict[str, Any]]) -> list[Question]:
    """The questions of a call or request; none when one of them says nothing."""
    found: list[Question] = []
    for position, item in enumerate(asked):
        words = item.get("question", item.get("title"))
        if not isinstance(words, str):
            return []
        named = text(item.get("id"))
        options = item.get("options")
        found.append(
            Question(
                id=named if named and all(one.id != named for one in found) else str(position),
                header=text(item.get("header")),
                text=words,
                options=(_options(options) or None) if isinstance(options, list) else None,
                allow_other=item["isOther"] if isinstance(item.get("isOther"), bool) else None,
                secret=True if is_secret(item) else None,
            )
        )
    return found


def _options(items: list[Any]) -> list[QuestionOption]:
    found = []
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("label"), str):
            found.append(QuestionOption(label=item["label"], description=text(item.get("description"))))
        elif isinstance(item, str):
            found.append(QuestionOption(label=item))
    return found


def answer_of(question: Question, words: list[str]) -> Answer:
    """Options that were offered are selected; anything else was typed."""
    labels = {option.label for option in question.options or ()} | {"None of the above"}
    chosen = [word for word in words if word in labels]
    typed = [word for word in words if word not in labels]
    return Answer(question_id=question.id, selected=chosen or None, text="\n".join(typed) if typed else None)
