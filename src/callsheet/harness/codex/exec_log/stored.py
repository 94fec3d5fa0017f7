"""The adapter of ``exec --json`` logs: one log is one session.

Owns the session record, the second pass, and the promise that every unit becomes at least one record or is a gap.

Must never know: pairing.
"""

from __future__ import annotations

from callsheet.harness._port import Desk, Folder, Session
from callsheet.harness._port.pen import Pen
from callsheet.harness._port.units import Hole, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.exec_log import layout
from callsheet.harness.codex.exec_log.events import Events
from callsheet.harness.codex.exec_log.items import Items
from callsheet.harness.codex.exec_log.shapes import LogLine, head_of_item, reading
from callsheet.harness.codex.exec_log.survey import Survey
from callsheet.harness.codex.shapes import text
from callsheet.records import FORMAT, Agent, Native, Ref, SourceEntry
from callsheet.records import Session as SessionRecord
from callsheet.registry import load


class CodexExec:
    """The adapter (``harness._port.Stored``)."""

    kind = layout.KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file's first lines are those of a log."""
        del name  # any name will do
        return layout.recognises(head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The log at a path, or every log below it."""
        return layout.sessions(path, folder)

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """A log lies wherever its caller put it."""
        del environ, home
        return []

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one log."""
        registry = load("codex")
        veil = Veil(desk)
        source = desk.source(session.main, layout.KIND)
        survey = Survey(veil, source, registry, keep_reasoning=desk.keep_reasoning)
        roots = {"project": survey.workdir} if survey.workdir else {}
        with desk.stream(session.native_id) as stream:
            pen = Pen(desk, veil, stream, roots)
            refs = [pen.place(survey.place, "meta")] if survey.place is not None else []
            if survey.named is not None:
                refs.append(pen.place(survey.named[0], "meta", survey.named[1]))
            stream.write(
                SessionRecord(
                    format=FORMAT,
                    agent=Agent(name="codex"),
                    native_session_id=session.native_id,
                    sources=[source],
                    roots=roots or None,
                    native=Native(refs=refs or [Ref(source=source.id, role="member")]),
                )
            )
            _Second(pen, survey, Items(pen, survey, registry), Events(pen, survey, registry)).body(source)


class _Second:
    """The second pass."""

    def __init__(self, pen: Pen, survey: Survey, items: Items, events: Events) -> None:
        self._pen = pen
        heads = (survey.place, survey.named[0] if survey.named is not None else None)
        self._heads = {place.offset for place in heads if place is not None}
        self._items = items
        self._events = events

    def body(self, source: SourceEntry) -> None:
        """Writes the records of every unit."""
        for unit in native_units(self._pen.veil.lines(source), reading):
            if isinstance(unit, Hole):
                self._pen.gap(source, unit)
                continue
            self._pen.take(source, unit)
            self._unit(unit)

    def _unit(self, unit: Unit[LogLine]) -> None:
        pen, line = self._pen, unit.native
        if line is None:
            pen.unmapped(None)
            return
        if isinstance(line.type, str):
            self._items.line(line)
        elif line.msg:
            self._events.line(line)
        elif line.prompt:
            self._events.prompt(line.prompt)
        elif line.workdir is not None:
            self._events.header()
        if unit.line.offset + unit.start in self._heads:
            pen.cited()  # by the session record
        if not pen.written:
            pen.unmapped(_native_type(line))


def _native_type(line: LogLine) -> str | None:
    """The type of a line that nothing maps, with its item's or message's own."""
    kind = text(line.type) or ("msg" if line.msg else None)
    inner = text(head_of_item(line.item or line.msg).type) if line.item or line.msg else None
    return "/".join(one for one in (kind, inner) if one) or None


CODEX_EXEC = CodexExec()
