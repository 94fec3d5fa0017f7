"""Records that a trajectory adds to a session: times of calls, runs, and what no transcript holds.

Owns: the times on results of the transcript (a call that waited for leave was not running when its tool was asked),
runs as turns, calls and results that the trajectory alone tells of, and the words about a trajectory that contradicts
the transcript. Nothing of the two is merged: a result of the transcript keeps its own status, arguments and texts.

Must never know: how entries become records.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Raw

from callsheet.harness._port.parts import is_null
from callsheet.harness._port.units import Hole
from callsheet.harness.openclaw.pen import TreePen, keep
from callsheet.harness.openclaw.shapes import text
from callsheet.harness.openclaw.survey import Survey
from callsheet.harness.openclaw.trajectory import (
    BEGAN,
    CALL,
    ENDED,
    RESULT,
    About,
    At,
    Event,
    Trajectory,
    about,
    began_with,
    is_ours,
)
from callsheet.records import Error, ToolCall, ToolResult, Turn
from callsheet.registry import Registry
from callsheet.wire import lossless

NO_NAME = "a trajectory holds the name that OpenClaw's tool policy goes by, not the one that was asked for"
CUT = "OpenClaw masks and cuts what it writes to a trajectory, and does not say where"
NOT_SENT = "a trajectory holds no text as it was sent"
ALIASES = {"bash": "exec", "apply-patch": "apply_patch", "cron": "automations"}
"""Tools that OpenClaw's policy knows by another name."""
WENT_WELL = frozenset({"completed"})
WENT_WRONG = frozenset({"failed", "denied"})


class Traced:
    """Writes what the trajectory of one session tells."""

    def __init__(
        self, pen: TreePen, survey: Survey, registry: Registry, trajectory: Trajectory, runs: frozenset[str]
    ) -> None:
        self._pen = pen
        self._survey = survey
        self._trajectory = trajectory
        self._tools = registry.tools()
        self._runs = runs
        rows = [row for row in registry.terminal_status if row.source == "trajectory"]
        self._words = {(row.entity, row.value or ""): row.then for row in rows}

    # -- beside the records of a transcript ---------------------------------------------------------------------

    def called(self, record: ToolCall, native_id: Any) -> None:
        """Cites where a call of the transcript was handed to its tool."""
        at = self._trajectory.call(native_id) if self._is_one(native_id) else None
        if at is None:
            return
        assert record.native is not None
        record.native.refs.append(self._trajectory.claim(at, "called"))
        if record.name is not None and at.name is not None and at.name != _as_policy(record.name):
            self._differs(at, f"the trajectory names the tool {at.name!r}, the transcript {record.name!r}")

    def timed(self, record: ToolResult, native_id: Any, *, waited: bool) -> None:
        """Gives a result of the transcript the times that only the trajectory has.

        Args:
            record: The result.
            native_id: The id of its call.
            waited: The call had to wait for leave: when it really began is not recorded.
        """
        trajectory, native = self._trajectory, record.native
        if not self._is_one(native_id) or self._survey.results_of(native_id) != 1:
            return
        began, ended = trajectory.call(native_id), trajectory.result(native_id)
        assert native is not None
        if ended is not None:
            native.refs.append(trajectory.claim(ended, "returned"))
            contrary = {True: WENT_WRONG, False: WENT_WELL}
            if isinstance(ended.told, bool) and record.status in contrary[ended.told]:
                told = "went well" if ended.told else "failed"
                self._differs(
                    ended, f"the trajectory says that the call {told}, the transcript {record.status}"
                )
        if record.status == "denied" or native.synthetic is True or record.started_at or record.completed_at:
            return  # it did not run, or tells its times itself
        record.completed_at = ended.ts if ended is not None else None
        if began is not None and not waited and began.ts is not None:
            record.started_at = began.ts
            native.refs.append(trajectory.ref(began, "called"))
        self._fit(record, ended or began)

    def _fit(self, record: ToolResult, at: At | None) -> None:
        """Takes times back that cannot be (ASR-261), and says so."""
        start, end = _moment(record.started_at), _moment(record.completed_at)
        if start is None or end is None or at is None:
            return
        span, took = (end - start) * 1000, record.duration_ms or 0
        if span < 0 or took > span + 1:
            what = "an end before its start" if span < 0 else f"{span:.0f} ms for what took {took} ms"
            self._differs(at, f"the trajectory tells {what}: its times are left out")
            record.started_at = record.completed_at = None

    def ran(self, record: Turn, run: str) -> None:
        """Cites where a run of the shared database began and ended, and says with which model."""
        assert record.native is not None
        for at in self._trajectory.run(run):
            if at.place in self._trajectory.claimed:
                continue
            ended = isinstance(at.told, str)
            record.native.refs.append(self._trajectory.claim(at, "ended" if ended else "began"))
            if not ended:
                keep(record.native, **at.told)
            elif self._words.get(("turn", at.told)) != record.status != "running":
                self._differs(
                    at, f"the trajectory says that run {run} was {at.told}, its row {record.status}"
                )

    def _is_one(self, native_id: Any) -> bool:
        return isinstance(native_id, str) and not self._survey.is_shared(native_id)

    def _differs(self, at: At, message: str) -> None:
        self._pen.desk.diagnose("trajectory_differs", message, at.source, at.line)

    # -- what it alone tells ------------------------------------------------------------------------------------

    def body(self) -> None:
        """Writes the records of every event that no other record cites."""
        pen = self._pen
        pen.dead = False
        for source, unit in self._trajectory.units():
            if isinstance(unit, Hole):
                pen.gap(source, unit)
                continue
            if (source.id, unit.line.number) in self._trajectory.claimed:
                continue
            event = unit.native
            pen.take(source, unit, event.ts if event is not None else None)
            if event is not None and is_ours(event):
                self._event(event, about(event))
            if not pen.written:
                pen.unmapped(text(event.type) if event is not None else None)

    def _event(self, event: Event, told: About) -> None:
        if event.type == CALL:
            self._call(told)
        elif event.type == RESULT:
            self._result(told)
        elif event.type in (BEGAN, ENDED):
            self._run(event, told)

    def lost(self, call_id: Any) -> None:
        """Writes the call that a result of the transcript answers, where only the trajectory has it."""
        if not isinstance(call_id, str) or self._survey.knows_call(call_id):
            return
        at = self._trajectory.call(call_id)
        if at is None or at.place in self._trajectory.claimed:
            return
        unit = self._trajectory.unit(at)
        self._pen.dead = False
        self._pen.take(at.source, unit, at.ts)
        if unit.native is not None:
            self._trajectory.claimed.add(at.place)
            self._call(about(unit.native))

    def _call(self, told: About) -> None:
        call_id = told.toolCallId
        if not isinstance(call_id, str) or self._survey.knows_call(call_id):
            return
        pen = self._pen
        record = ToolCall(call_id=call_id, call_id_source="native", native=pen.native("traced", "/data"))
        name = text(told.name)
        tool = self._tools.get(name) if name is not None else None
        record.kind = tool.kind if tool is not None else None
        record.title = name
        pen.capture(record, "name", "absent", reason=NO_NAME)
        self._put_input(record, told.args)
        pen.write(record)

    def _put_input(self, record: ToolCall, raw: Raw) -> None:
        pen = self._pen
        if not raw or is_null(raw):
            pen.capture(record, "input", "absent")
            return
        exact = pen.exact("/data/args")
        data = bytes(raw) if exact is None else exact.encode()
        if lossless.lossless(data):
            record.input = Raw(data)
            pen.capture(record, "input", "truncated", reason=CUT)
        else:
            record.input_text = data.decode()
            pen.capture(record, "inputText", "truncated", reason=CUT)

    def _result(self, told: About) -> None:
        call_id = told.toolCallId
        if not self._is_one(call_id) or self._survey.results_of(call_id):
            return
        pen = self._pen
        status = {True: "completed", False: "failed"}[told.success] if _is_flag(told) else "unknown"
        record = ToolResult(linkage="exact", status=status, native=pen.native("traced", "/data"))
        assert record.native is not None
        began = self._trajectory.call(call_id)
        if self._trajectory.calls_of(call_id) > 1:
            record.native_call_id, record.linkage = call_id, "ambiguous"
        else:
            record.call_id = call_id
            if began is not None and began.ts is not None:
                record.started_at = began.ts
                record.native.refs.append(self._trajectory.ref(began, "called"))
        record.completed_at = pen.ts
        pen.capture(record, "content", "absent", reason=NOT_SENT)
        if (
            told.result
            and not is_null(told.result)
            and pen.inline(record, "raw", told.result, "/data/result")
        ):
            record.raw = told.result
            if "raw" not in (record.capture or {}):
                pen.capture(record, "raw", "truncated", reason=CUT)
        self._fit(record, began)
        pen.write(record)

    def _run(self, event: Event, told: About) -> None:
        run = text(event.runId)
        if run is None:
            return
        pen = self._pen
        if run in self._runs:
            # The turn that a row of the shared database makes cites it, if it can be cited.
            here = (pen.source.id, pen.unit.line.number)
            if any(at.place == here for at in self._trajectory.run(run)):
                pen.cited()
            return
        began = event.type == BEGAN
        word = self._words.get(("turn", told.status)) if isinstance(told.status, str) else None
        record = Turn(turn_id=run, status="running" if began else word or "unknown")
        record.native = pen.native("began" if began else "ended", "")
        if began:
            keep(record.native, **began_with(event, told))
        else:
            record.reason = text(told.stopReason)
            failure = text(told.promptError)
            record.error = Error(message=failure) if failure else None
        pen.revise(f"turn {run}", record)


def _is_flag(told: About) -> bool:
    return isinstance(told.success, bool)


def _as_policy(name: str) -> str:
    """The name by which OpenClaw's tool policy knows a tool."""
    plain = name.strip().lower()
    return ALIASES.get(plain, plain)


def _moment(value: str | None) -> float | None:
    return datetime.fromisoformat(value).timestamp() if value is not None else None
