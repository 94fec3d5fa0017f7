"""The adapter: a transcript file, a session of a database, or what the shared database tells of a lost one.

Owns the three ways into a session. One bundle holds a session with the sessions of its agents.

Must never know: pairing.
"""

from __future__ import annotations

from callsheet.errors import SourceError
from callsheet.harness._port import Desk, Folder, Session
from callsheet.harness._port.cells import Damage, row_ref
from callsheet.harness._port.schema import look
from callsheet.harness._port.veil import Veil
from callsheet.harness.openclaw import layout, shelf
from callsheet.harness.openclaw.family import Family
from callsheet.harness.openclaw.feed import Feed, Transcript
from callsheet.harness.openclaw.layout import KIND, Parts
from callsheet.harness.openclaw.reader import Reader, head, write_head
from callsheet.harness.openclaw.survey import Survey, surveys_of
from callsheet.harness.openclaw.trajectory import NO_TRANSCRIPT, Trajectory, hide_answers
from callsheet.records import Ref
from callsheet.registry import load


class OpenClaw:
    """The adapter (``harness._port.Stored``)."""

    kind = KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file begins like a transcript, or is one of OpenClaw's databases."""
        return layout.recognises(name, head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The sessions of a file, a database or a folder."""
        return layout.sessions(path, folder)

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """Where this user's sessions lie."""
        return layout.places(environ, home)

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one session."""
        parts: Parts = session.parts
        if parts.wrong is not None:
            raise SourceError(parts.wrong, path=session.main)
        veil = Veil(desk)
        if parts.file is not None or (parts.traces and not parts.members):
            _read_file(session.native_id, parts, desk, veil)
        elif parts.members:
            Family(parts, desk, veil).read()
        else:
            _read_state(session.native_id, parts, desk, veil)


def _read_file(native_id: str, parts: Parts, desk: Desk, veil: Veil) -> None:
    """A transcript, its trajectory, or both."""
    own = [desk.source(parts.file, KIND)] if parts.file is not None else []
    traces = [desk.source(file, KIND) for _, file in parts.traces]
    transcript = Transcript(veil, [Feed(source) for source in own])
    trajectory = Trajectory(veil, [Feed(source) for source in traces])
    hide_answers([trajectory], [], own + traces, veil)
    (survey,) = surveys_of([(transcript, None)], traces, keep_reasoning=desk.keep_reasoning)
    hide_answers([trajectory], [survey], own + traces, veil)
    trajectory.look(keep_reasoning=desk.keep_reasoning)
    with desk.stream(native_id) as stream:
        reader = Reader(desk, veil, transcript, survey, stream, None, {}, {}, trajectory)
        record = head(survey.session_id or native_id, own + traces, survey, None)
        record.roots = reader.roots or None
        # Where no line says whose transcript this is, the file's name does.
        named = (
            [] if survey.session_id else [Ref(source=own[0].id, role="member")] if own else trajectory.heads()
        )
        write_head(reader, record, named)
        if not own:
            desk.diagnose("missing_transcript", NO_TRANSCRIPT, traces[0])
        reader.body()


def _read_state(native_id: str, parts: Parts, desk: Desk, veil: Veil) -> None:
    """Rows of a shared database whose transcripts are not there."""
    assert parts.state is not None
    source = desk.database(parts.state, KIND, shelf.state_selections(list(parts.keys), []))
    registry = load(KIND)
    look(desk, source, registry, "state")
    transcript = Transcript(veil, [])
    survey = Survey(transcript, None, keep_reasoning=desk.keep_reasoning)
    with desk.stream(native_id) as stream:
        reader = Reader(desk, veil, transcript, survey, stream, None, {}, {}, Trajectory(veil, []))
        keyed = [
            row_ref(source, row.cell, "keyed")
            for row in shelf.state_rows(veil, source)
            if isinstance(row, shelf.StateRow) and row.key
        ]
        write_head(reader, head(native_id, [source], survey, None), keyed[:1])
        desk.diagnose(
            "missing_session",
            "the shared database tells of this session, its transcript is not there",
            source,
        )
        for row in shelf.state_rows(veil, source):
            if isinstance(row, Damage):
                reader.pen.broken(source, row)
            else:
                reader.row(source, row)


OPENCLAW = OpenClaw()
