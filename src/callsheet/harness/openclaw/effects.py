"""What calls did and asked: changed files, plans, questions to the person (profile; ASR-282 to 285).

Owns: the patches that ``write`` and ``edit`` report, the files that ``apply_patch`` names, the plan that
``update_plan`` set, and questions, asked by a call and answered by its result. A question's answer to a secret is
never looked at.

Must never know: outcomes of calls.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from callsheet.harness._port.parts import is_null, members_of, text_of, value_of
from callsheet.harness.openclaw import secrets
from callsheet.harness.openclaw.pen import TreePen, keep
from callsheet.harness.openclaw.shapes import Block, Details, Message, text
from callsheet.harness.openclaw.survey import Survey
from callsheet.records import (
    Answer,
    Change,
    FileChange,
    InputRequest,
    Patch,
    Plan,
    PlanEntry,
    Question,
    QuestionOption,
    Ref,
)
from callsheet.registry import Registry

WRITERS = frozenset({"write", "edit"})
PATCHER = "apply_patch"
PLANNER = "update_plan"
PLAN = "update_plan"
MOST_PENDING = 10_000


class Effects:
    """Writes what hangs on the calls of one session."""

    def __init__(self, pen: TreePen, survey: Survey, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._paths: dict[str, tuple[str, Ref]] = {}
        self._requests: dict[str, tuple[InputRequest, Ref]] = {}
        self._statuses = {
            row.value or "": row.then for row in registry.terminal_status if row.entity == "input_request"
        }

    # -- at the call --------------------------------------------------------------------------------------------

    def called(self, block: Block, call_id: str, pointer: str) -> None:
        """Notes what a call wants, for its result; writes the question that it asks."""
        if text(block.name) in WRITERS and len(self._paths) < MOST_PENDING:
            members = members_of(block.arguments)
            for name in ("path", "file_path"):
                path = text_of(members[name]) if name in members else None
                if path:
                    self._paths[call_id] = (path, self._pen.ref("call", pointer))
                    break
        elif block.name == secrets.ASKING:
            questions = secrets.questions_of(block.arguments)
            if questions:
                self._ask(call_id, [_question(one, at) for at, one in enumerate(questions)], None, pointer)
        elif block.name == secrets.STORING:
            asked = value_of(block.arguments)
            if isinstance(asked, dict) and asked.get("action") == "request":
                words = text(asked.get("reason")) or text(asked.get("name")) or ""
                question = Question(id="secret", header=text(asked.get("name")), text=words, secret=True)
                self._ask(call_id, [question], True, pointer)

    def _ask(self, call_id: str, questions: list[Question], secret: bool | None, pointer: str) -> None:
        ids = [question.id for question in questions]
        if len(set(ids)) != len(ids):
            for index, question in enumerate(questions):
                question.id = str(index)
        record = InputRequest(
            request_id=call_id,
            id_source="derived",
            call_id=call_id,
            mode="questions",
            questions=questions,
            secret=secret,
            native=self._pen.native("call", pointer),
        )
        self._pen.revise(f"request {call_id}", record)
        if len(self._requests) < MOST_PENDING:
            self._requests[call_id] = (record, self._pen.ref("call", pointer))

    # -- at the result ------------------------------------------------------------------------------------------

    def returned(self, message: Message, details: Details, call_id: str | None, status: str) -> None:
        """Writes what a result tells of files, plans and answers."""
        tool = text(message.toolName)
        if call_id is None:
            return
        if tool in WRITERS:
            pointer = "/message/details" if message.details else "/message"
            self.changed(tool, details, call_id, status, pointer, "result")
        elif tool == PATCHER:
            self._patched(details, call_id, status)
        elif tool == PLANNER and status == "completed":
            self._plan(details, call_id)
        elif call_id in self._requests:
            self._answer(message.details, details, call_id)

    def changed(
        self,
        tool: Any,
        details: Details,
        call_id: str,
        status: str,
        pointer: str,
        role: str,
        path: str | None = None,
    ) -> None:
        """The file that ``write`` or ``edit`` changed."""
        asked = self._paths.pop(call_id, None)
        if path is None and asked is not None:
            path = asked[0]
        if status != "completed" or path is None or details.changed is False:
            return
        created = tool == "write" and details.created is True
        change = Change(path=self._pen.path(path), change="add" if created else "modify")
        if details.patch and not is_null(details.patch):
            change.patch = Patch(format="unified", value=details.patch)
        elif tool == "write" and details.changed is None:
            change.change = None  # older versions do not say whether the file was there
        record = FileChange(scope="call", call_id=call_id, state="applied", changes=[change])
        record.native = self._pen.native(role, pointer)
        if asked is not None:
            record.native.refs.append(asked[1])
        self._pen.write(record)

    def _patched(self, details: Details, call_id: str, status: str) -> None:
        summary = value_of(details.summary)
        if status != "completed" or not isinstance(summary, dict):
            return
        changes: list[Change] = []
        for member, change in (("added", "add"), ("modified", "modify"), ("deleted", "delete")):
            paths = summary.get(member)
            named = [path for path in (paths if isinstance(paths, list) else []) if isinstance(path, str)]
            changes += [Change(path=self._pen.path(path), change=change) for path in named]
        if changes:
            record = FileChange(scope="call", call_id=call_id, state="applied", changes=changes)
            record.native = self._pen.native("result", "/message/details/summary")
            self._pen.write(record)

    def _plan(self, details: Details, call_id: str) -> None:
        steps = value_of(details.plan)
        if not isinstance(steps, list):
            return
        entries = [
            PlanEntry(text=one["step"], status=text(one.get("status")))
            for one in steps
            if isinstance(one, dict) and isinstance(one.get("step"), str)
        ]
        if steps and not entries:
            return
        record = Plan(plan_id=PLAN, id_source="derived", call_id=call_id, entries=entries)
        record.native = self._pen.native("result", "/message/details/plan")
        self._pen.revise(f"plan {PLAN}", record)

    def _answer(self, raw: Raw, details: Details, call_id: str) -> None:
        before, ref = self._requests.pop(call_id)
        status = self._statuses.get(details.status) if isinstance(details.status, str) else None
        record = InputRequest(
            request_id=call_id,
            id_source="derived",
            call_id=before.call_id,
            mode=before.mode,
            questions=before.questions,
            secret=before.secret,
            status=status,
            native=self._pen.native("result", "/message/details"),
        )
        assert record.native is not None
        record.native.refs.append(ref)
        keep(record.native, status=text(details.status) if status is None else None)
        if status == "answered" and not before.secret:
            record.answers = _answers(before.questions or [], secrets.answers_of(raw)) or None
        if any(question.secret for question in record.questions or ()) and status == "answered":
            self._pen.capture(record, "answers", "redacted", reason="a secret was asked for")
        self._pen.revise(f"request {call_id}", record)


def _question(value: dict[str, Any], index: int) -> Question:
    options = value.get("options")
    offered = [
        QuestionOption(
            label=one["label"], value=text(one.get("value")), description=text(one.get("description"))
        )
        for one in (options if isinstance(options, list) else [])
        if isinstance(one, dict) and isinstance(one.get("label"), str)
    ]
    multi = value.get("multiSelect")
    return Question(
        id=secrets.question_id(value, index),
        header=text(value.get("header")),
        text=value["question"] if isinstance(value.get("question"), str) else "",
        options=offered or None,
        multi_select=multi if isinstance(multi, bool) else None,
        secret=True if secrets.is_secret(value) else None,
    )


def _answers(questions: list[Question], given: dict[str, list[str]]) -> list[Answer]:
    """Answers by question: an offered label is chosen, anything else was typed."""
    found = []
    for question in questions:
        values = given.get(question.id)
        if not values or question.secret:
            continue
        options = question.options or []
        labels = {option.label: option.value or option.label for option in options}
        chosen = [labels[value] for value in values if value in labels]
        typed = [value for value in values if value not in labels]
        first = Answer(question_id=question.id, selected=chosen or None, text=typed[0] if typed else None)
        found.append(first)
        found += [Answer(question_id=question.id, text=more) for more in typed[1:]]
    return found
