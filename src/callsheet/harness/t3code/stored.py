"""The adapter: a thread of T3 Code's state database with the threads that it started.

Owns the sources (one per thread), the roots of a thread (its worktree, else its project's folder), the choice between
the two generations.

Must never know: pairing.
"""

from __future__ import annotations

from callsheet.errors import SourceError
from callsheet.harness._port import Desk, Folder, Session
from callsheet.harness._port.schema import look
from callsheet.harness._port.veil import Veil
from callsheet.harness.t3code import layout
from callsheet.harness.t3code.layout import KIND, Parts
from callsheet.harness.t3code.new import NewThread
from callsheet.harness.t3code.old import OldThread
from callsheet.harness.t3code.pen import text
from callsheet.harness.t3code.rows import Row, Survey, rows
from callsheet.harness.t3code.terminals import Terminals
from callsheet.records import SourceEntry
from callsheet.records.bundle import stream_id
from callsheet.registry import load


class T3Code:
    """The adapter (``harness._port.Stored``)."""

    kind = KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file is a state database of T3 Code."""
        return layout.recognises(name, head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The threads of a database or folder."""
        return layout.sessions(path, folder)

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """Where this user's threads lie."""
        return layout.places(environ, home)

    def driven(self, session: Session, folder: Folder) -> list[tuple[str, str]]:
        """The sessions of the agents underneath, by kind and id."""
        return layout.driven(session.parts, folder)

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one thread with those that it started."""
        parts: Parts = session.parts
        if parts.wrong is not None:
            raise SourceError(parts.wrong, path=session.main)
        veil = Veil(desk)
        sources = [desk.database(parts.database, KIND, layout.selections(thread)) for thread in parts.threads]
        look(desk, sources[0], load(KIND), "v2" if parts.threads[0].new else "v1")
        terminals = [
            Terminals(desk, [one for one in parts.transcripts if one.thread_id == thread.thread_id])
            for thread in parts.threads
        ]
        surveys = [Survey(desk, veil, source) for source in sources]
        # What was given to one thread as a secret may stand in another, or on a terminal.
        everything = [*sources, *(source for one in terminals for source in one.sources)]
        for value in dict.fromkeys(value for survey in surveys for value in survey.secret_values):
            veil.secret(value, everything)
        streams = {thread.thread_id: stream_id(thread.thread_id) for thread in parts.threads}
        for thread, source, survey, shells in zip(parts.threads, sources, surveys, terminals, strict=True):
            with desk.stream(thread.thread_id, thread.parent) as stream:
                kind = NewThread if thread.new else OldThread
                writer = kind(desk, veil, source, thread, survey, stream, _roots(veil, source), streams)
                writer.terminals = shells
                writer.write()
                shells.write(veil, stream)


def _roots(veil: Veil, source: SourceEntry) -> dict[str, str]:
    worktree = project = None
    for table in (layout.PROJECTS, layout.THREADS, layout.OLD_THREADS):
        for row in rows(veil, source, table):
            if isinstance(row, Row):
                project = text(row.value.get("workspace_root")) or project
                worktree = text(row.value.get("worktreePath", row.value.get("worktree_path"))) or worktree
    found = {"worktree": worktree, "project": project}
    return {name: path for name, path in found.items() if path}


T3CODE = T3Code()
