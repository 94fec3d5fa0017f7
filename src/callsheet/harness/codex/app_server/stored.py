"""The adapter of app-server logs: one log is one session; each thread of the connection has a stream of its own.

Must never know: what a frame means.
"""

from __future__ import annotations

from contextlib import ExitStack

from callsheet.harness._port import Desk, Folder, Session, Stream
from callsheet.harness._port.attested import Attested
from callsheet.harness._port.fold import Settled
from callsheet.harness._port.units import Hole, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.app_server import layout
from callsheet.harness.codex.app_server.fold import Fold
from callsheet.harness.codex.app_server.survey import survey
from callsheet.records import Session as SessionRecord


class CodexAppServer:
    """The adapter (``harness._port.Stored``)."""

    kind = layout.KIND

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether one of a file's first lines is a frame of this protocol."""
        del name  # any name will do
        return layout.recognises(head)

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        """The log at a path, or every log below it."""
        return layout.sessions(path, folder)

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        """A log lies wherever its client put it."""
        del environ, home
        return []

    def read(self, session: Session, desk: Desk) -> None:
        """Imports one log."""
        source = desk.source(session.main, layout.KIND)
        veil = Veil(desk)
        if not survey(veil, source, keep_reasoning=desk.keep_reasoning):
            return
        fold = Attested(Fold(desk, veil, [source]))
        with ExitStack() as stack:
            streams: dict[str | None, Stream] = {}

            def write(settled: list[Settled]) -> None:
                for name, record in settled:
                    stream = streams.get(name)
                    if stream is None:
                        parent = record.parent if isinstance(record, SessionRecord) else None
                        above = parent.session if parent is not None else None
                        opened = desk.stream(name or session.native_id, above)
                        stream = streams[name] = stack.enter_context(opened)
                    stream.write(record)

            for unit in native_units(veil.lines(source), fold.reading):
                write(fold.gap(source, unit) if isinstance(unit, Hole) else fold.feed(source, unit))
            write(fold.close())


CODEX_APP_SERVER = CodexAppServer()
