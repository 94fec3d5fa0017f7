"""Frame logs of this protocol as sources.

Must never know: what a frame means.
"""

from __future__ import annotations

from callsheet.harness._port import Desk
from callsheet.harness._port.logs import FrameLogs
from callsheet.harness._port.parts import ABSENT, members_of, text_of
from callsheet.harness._port.units import unit_of
from callsheet.harness._port.veil import Veil
from callsheet.harness.acp.fold import Fold
from callsheet.harness.acp.shapes import frames_of, log_reading, says_acp
from callsheet.harness.acp.survey import Survey
from callsheet.records import SourceEntry

KIND = "acp"


def session_named(line: bytes) -> str | None:
    """The session that a line names."""
    unit = unit_of(line, log_reading)
    for frame in frames_of(unit) if unit is not None else ():
        for part in (frame.params, frame.result):
            name = text_of(members_of(part).get("sessionId", ABSENT))
            if name:
                return name
    return None


def fold_of(desk: Desk, veil: Veil, source: SourceEntry) -> Fold | None:
    """The first pass over a log, and the fold that knows what it found."""
    survey = Survey(veil, source)
    known = survey.run()
    return Fold(desk, veil, [source], known) if survey.units else None


ACP = FrameLogs(kind=KIND, is_frame=says_acp, named=session_named, fold=fold_of)
