"""What both formats of a log share: the ids of items, and the result of an execution.

Owns the id of a call (the item's own in the first run, derived in later ones, where item ids begin again, ASR-250), the
linkage of its result (decision 3), and what an execution gives a result. Nothing in a log says what the model got.

Must never know: lines.
"""

from __future__ import annotations

from typing import NamedTuple

from callsheet.harness._port.pen import Pen
from callsheet.harness.codex.calltable import CALL, ITEM
from callsheet.harness.codex.exec_log.survey import Survey, key_of
from callsheet.harness.codex.executions import Execution, provider_of, put_error, put_exec, structured
from callsheet.harness.codex.results import Statuses, put_raw
from callsheet.records import ToolResult
from callsheet.registry import Registry

NOT_TOLD = "an exec log does not tell what the model got"


class Identity(NamedTuple):
    """An item's id, and the call id that it stands for.

    Attributes:
        key: What the survey counts it under.
        native: As written.
        call_id: The call's id.
        source: ``native`` or ``derived``.
    """

    key: str
    native: str
    call_id: str
    source: str


def identity(run: int, item_id: str) -> Identity:
    """The identity of an item of a run; the first run is 0."""
    if run == 0:
        return Identity(item_id, item_id, item_id, "native")
    return Identity(key_of(run, item_id), item_id, f"{item_id}#{run + 1}", "derived")


class Outcomes:
    """Writes results."""

    def __init__(self, pen: Pen, survey: Survey, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._statuses = Statuses(registry, None)

    def single(self, named: Identity) -> str | None:
        """The call id, unless several calls have it."""
        return named.call_id if self._survey.calls.count(CALL, named.key) <= 1 else None

    def ends(self, named: Identity) -> bool:
        """Whether the log holds an end of this item."""
        return self._survey.calls.count(ITEM, named.key) > 0

    def begins(self, named: Identity) -> bool:
        """Whether the log holds a start of this item."""
        return self._survey.calls.count(CALL, named.key) > 0

    def result(self, execution: Execution, named: Identity | None) -> ToolResult:
        """The result of an execution, not yet written."""
        pen, fields = self._pen, execution.fields
        native = pen.native(execution.role, execution.pointer)
        record = ToolResult(linkage="none", status=self._statuses.of(execution.words), native=native)
        if named is not None and self.single(named) is None:
            record.linkage, record.native_call_id = "ambiguous", named.native
        elif named is not None:
            record.linkage = "exact" if named.source == "native" else "derived"
            record.call_id = named.call_id
            record.native_call_id = named.native if named.source == "derived" else None
        put_exec(pen, record, fields)
        record.provider = provider_of(fields)
        put_error(record, fields)
        pen.capture(record, "content", "absent", reason=NOT_TOLD)
        put_raw(pen, record, None, structured(execution))
        return record
