"""Logs of app-server frames as sources: each thread of a connection has a stream of its own.

Must never know: what a frame means.
"""

from __future__ import annotations

from callsheet.harness._port import Desk
from callsheet.harness._port.logs import FrameLogs
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.app_server.fold import Fold
from callsheet.harness.codex.app_server.layout import KIND, frame_on, is_frame, thread_named
from callsheet.harness.codex.app_server.survey import survey
from callsheet.records import SourceEntry


def named(line: bytes) -> str | None:
    """The thread that a line names."""
    frame = frame_on(line)
    return thread_named(frame) if frame is not None else None


def fold_of(desk: Desk, veil: Veil, source: SourceEntry) -> Fold | None:
    """The first pass over a log, which hides what must not be kept, and the fold."""
    found = survey(desk, veil, source)
    return Fold(desk, veil, [source], found.origins) if found.units else None


CODEX_APP_SERVER = FrameLogs(kind=KIND, is_frame=is_frame, named=named, fold=fold_of)
