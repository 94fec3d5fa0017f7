"""A session of an agent's database with the sessions of its agents, one stream each.

Owns: opening the databases, which rows of the shared one belong to which session, a session's cold archive, the links
between parent and child.

Must never know: what an entry says.
"""

from __future__ import annotations

from callsheet.errors import SourceError
from callsheet.harness._port import Desk
from callsheet.harness._port.cells import Cell, Damage, row_ref
from callsheet.harness._port.schema import look
from callsheet.harness._port.units import Hole, Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.openclaw import layout, shelf
from callsheet.harness.openclaw.feed import EVENTS, Feed, Transcript
from callsheet.harness.openclaw.layout import KIND, Member, Parts
from callsheet.harness.openclaw.reader import Reader, head, turn_words, write_head
from callsheet.harness.openclaw.results import Asked
from callsheet.harness.openclaw.shapes import text
from callsheet.harness.openclaw.shelf import Around, StateRow
from callsheet.harness.openclaw.survey import Survey, surveys_of
from callsheet.harness.openclaw.trajectory import NO_TRANSCRIPT, TABLE, Trajectory, hide_answers
from callsheet.records import Gap, Native, Parent, Ref, SourceEntry
from callsheet.records.bundle import stream_id
from callsheet.registry import load


class Family:
    """Reads them."""

    def __init__(self, parts: Parts, desk: Desk, veil: Veil) -> None:
        assert parts.database is not None
        self.desk = desk
        self.veil = veil
        self.parts = parts
        self.registry = load(KIND)
        self.path = parts.database
        self.agent_sources = [shelf.open_agent(desk, self.path, member) for member in parts.members]
        look(desk, self.agent_sources[0], self.registry, "agent")
        self.state: SourceEntry | None = None
        if parts.state is not None:
            keys = list(dict.fromkeys(member.key for member in parts.members if member.key))
            ids = [member.session_id for member in parts.members]
            try:
                self.state = desk.database(parts.state, KIND, shelf.state_selections(list(keys), ids))
                look(desk, self.state, self.registry, "state")
            except SourceError as error:
                desk.diagnose("state_unread", f"{parts.state}: {error.message}")
        self.traces: dict[str, list[SourceEntry]] = {}
        for session, path in parts.traces:
            try:
                self.traces.setdefault(session, []).append(desk.source(path, KIND))
            except OSError as error:
                desk.diagnose("missing_file", f"{path}: {error.strerror or error}")
        self._taken: set[int] = set()

    def read(self) -> None:
        """Writes the streams."""
        streams: dict[str, str] = {
            member.key: stream_id(member.session_id)
            for member in self.parts.members
            if member.key and member.current
        }
        desk, veil = self.desk, self.veil
        rows = [shelf.around(veil, source) for source in self.agent_sources]
        feeds = [self._feeds(source, around) for source, around in zip(self.agent_sources, rows, strict=True)]
        transcripts = [
            (Transcript(veil, told), _leaf(around)) for (told, _), around in zip(feeds, rows, strict=True)
        ]
        beside = [*self.agent_sources, *([self.state] if self.state is not None else [])]
        beside += [source for sources in self.traces.values() for source in sources]
        traces = [
            Trajectory(
                veil,
                [Feed(source, TABLE), *(Feed(one) for one in self.traces.get(member.session_id, []))],
            )
            for member, source in zip(self.parts.members, self.agent_sources, strict=True)
        ]
        archives = [feed.source for told, _ in feeds for feed in told]
        given = hide_answers(traces, [], beside + archives, veil)
        surveys = surveys_of(transcripts, beside, keep_reasoning=desk.keep_reasoning)
        given |= hide_answers(traces, surveys, beside + archives, veil)
        if given or any(survey.secrets_given for survey in surveys):
            rows = [shelf.around(veil, source) for source in self.agent_sources]
        for index in range(len(self.parts.members)):
            traces[index].look(keep_reasoning=desk.keep_reasoning)
            self._member(
                index,
                transcripts[index][0],
                surveys[index],
                rows[index],
                feeds[index][1],
                streams,
                traces[index],
            )
            traces[index].forget()

    def _member(
        self,
        index: int,
        transcript: Transcript,
        survey: Survey,
        around: Around,
        lost: list[Gap],
        streams: dict[str, str],
        trajectory: Trajectory,
    ) -> None:
        desk, veil = self.desk, self.veil
        member, source = self.parts.members[index], self.agent_sources[index]
        version = text(around.get(shelf.META, "app_version"))
        rows, others = self._rows(member, survey)
        approvals = self._asked(rows)
        sources = [feed.source for feed in transcript.feeds]
        if source not in sources:
            sources.insert(0, source)
        sources += self.traces.get(member.session_id, [])
        if self.state is not None:
            sources.append(self.state)
        with desk.stream(member.session_id, member.parent) as stream:
            runs = _runs(rows, turn_words(self.registry))
            reader = Reader(
                desk, veil, transcript, survey, stream, version, approvals, streams, trajectory, runs
            )
            record = head(member.session_id, sources, survey, version)
            record.roots = reader.roots or None
            record.title = record.title or text(around.get(shelf.NODES, "label"))
            record.title = record.title or text(around.get(shelf.NODES, "display_name"))
            record.forked_from = text(around.get(shelf.NODES, "fork_source_session_id")) or record.forked_from
            if member.parent is not None:
                record.parent = Parent(session=stream_id(member.parent))
            write_head(reader, record, around.refs + _named(transcript, survey, around) + others)
            for gap in lost:
                stream.write(gap)
            if trajectory.size and not lost and not len(survey.tree):
                desk.diagnose("missing_transcript", NO_TRANSCRIPT, source)
            reader.body()
            if self.state is not None:
                for row in rows:
                    reader.row(self.state, row)
                if index == 0:
                    self._damages(reader)

    def _asked(self, rows: list[StateRow]) -> dict[str, Asked]:
        """Approval requests by the call that they are about."""
        found: dict[str, Asked] = {}
        for row in rows:
            call_id, status = text(row.values.get("source_tool_call_id")), text(row.values.get("status"))
            if row.cell.table == shelf.APPROVALS and call_id and status and self.state is not None:
                found[call_id] = Asked(status, row_ref(self.state, row.cell, "approval"))
        return found

    def _damages(self, reader: Reader) -> None:
        assert self.state is not None
        for row in shelf.state_rows(self.veil, self.state):
            if isinstance(row, Damage):
                reader.pen.broken(self.state, row)

    def _feeds(self, source: SourceEntry, around: Around) -> tuple[list[Feed], list[Gap]]:
        """The session's cold archive, if it has one, then its rows."""
        name = text(around.get(shelf.COLD, "archive_name"))
        if name is None:
            return [Feed(source, EVENTS)], []
        ref = next(ref for ref in around.refs if ref.role == "cold")
        gap = Gap(reason="missing_file", source=source.id, native=Native(refs=[ref]))
        if around.get(shelf.COLD, "storage") != "file":
            self.desk.diagnose("missing_file", "the session's archive stands inside the database", source)
            return [Feed(source, EVENTS)], [gap]
        path = layout.cold_archive(self.path, name)
        try:
            archive = self.desk.source(path, KIND)
        except OSError as error:
            self.desk.diagnose("missing_file", f"{path}: {error.strerror or error}", source)
            return [Feed(source, EVENTS)], [gap]
        return [Feed(archive), Feed(source, EVENTS)], []

    def _rows(self, member: Member, survey: Survey) -> tuple[list[StateRow], list[Ref]]:
        """Rows of the shared database that belong to this session, and refs to those that belong to others.

        A row names a session key, which several sessions may share: a call, run or process that this one knows
        decides, then which session the key stood for when the row was made.
        """
        own: list[StateRow] = []
        others: list[Ref] = []
        if self.state is None:
            return own, others
        for row in shelf.state_rows(self.veil, self.state):
            if isinstance(row, Damage) or row.cell.number in self._taken:
                continue
            if _is_own(row, member, survey):
                self._taken.add(row.cell.number)
                own.append(row)
            elif member is self.parts.members[-1]:
                others.append(row_ref(self.state, row.cell, "elsewhere"))
        return own, others


def _named(transcript: Transcript, survey: Survey, around: Around) -> list[Ref]:
    """Where neither a row about the session nor a head names it: the first of its entries, whose row does."""
    if survey.head is not None or any(ref.role == "window" for ref in around.refs):
        return []
    for found in transcript.units():
        if isinstance(found.unit, Unit | Hole) and isinstance(found.unit.line, Cell):
            return [row_ref(found.source, found.unit.line, "member")]
    return []


def _runs(rows: list[StateRow], words: dict[str, str]) -> frozenset[str]:
    """Runs that rows of the shared database tell of."""
    told = (row.values for row in rows if row.cell.table == shelf.AUDIT)
    found = (text(values.get("run_id")) for values in told if text(values.get("status")) in words)
    return frozenset(run for run in found if run is not None)


def _leaf(around: Around) -> str | None:
    rebuild = around.get(shelf.INDEX, "needs_rebuild")
    return None if rebuild else text(around.get(shelf.INDEX, "leaf_event_id"))


def _is_own(row: StateRow, member: Member, survey: Survey) -> bool:
    values = row.values
    session = text(values.get("session_id")) or text(values.get("source_session_id"))
    if session is not None:
        return session == member.session_id
    if row.key != member.key:
        return False
    call_id, run = values.get("source_tool_call_id"), values.get("source_run_id")
    if isinstance(call_id, str) and survey.knows_call(call_id):
        return True
    if isinstance(run, str) and hash(run) in survey.runs:
        return True
    if text(values.get("source_id")) in survey.starts:
        return True
    made = values.get("created_at_ms", values.get("created_at"))
    return member.current and (not isinstance(made, int) or made >= member.since)
