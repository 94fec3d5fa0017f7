"""Logs of frames as sources (kind ``claude-code-stream``).

Owns: answers to secret questions, which the fold must not see.

Must never know: what a frame means.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness._port.logs import FrameLogs
from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness._port.units import Hole, native_units, unit_of
from callsheet.harness._port.veil import Veil
from callsheet.harness.claude_code.stream.asks import words_in
from callsheet.harness.claude_code.stream.fold import Fold
from callsheet.harness.claude_code.stream.masks import Secrets
from callsheet.harness.claude_code.stream.shapes import CONTROL, frame_of, is_frame, reading
from callsheet.records import SourceEntry

KIND = "claude-code-stream"


def hide_secrets(veil: Veil, source: SourceEntry) -> int:
    """Hides answers to secret questions from the fold and the copy (ASR-283); returns how many units there are."""
    secrets = Secrets()
    count = 0
    for unit in native_units(veil.lines(source), reading):
        count += 1
        frame = None if isinstance(unit, Hole) else frame_of(unit)
        if frame is None or frame.kind not in CONTROL:
            continue
        for raw in secrets.of(frame.members(), from_agent=frame.from_agent):
            at = frame.unit.data.find(bytes(raw))
            if at >= 0:
                veil.hide(source, frame.unit.line.offset + frame.unit.start + at, len(raw))
            for word in words_in(value_of(raw)):
                veil.secret(word, [source])
    return count


def session_named(line: bytes) -> str | None:
    """The session that a frame of the agent names."""
    unit = unit_of(line, reading) if is_frame(line) else None
    if unit is None or unit.native is None:
        return None
    members = members_of(unit.native.frame or Raw(line))
    return text_of(members.get("session_id", ABSENT)) if "uuid" in members else None


def fold_of(desk: Desk, veil: Veil, source: SourceEntry) -> Fold | None:
    """The first pass over a log, which hides secrets, and the fold."""
    return Fold(desk, veil, [source]) if hide_secrets(veil, source) else None


CLAUDE_CODE_STREAM = FrameLogs(
    kind=KIND, is_frame=is_frame, named=session_named, fold=fold_of, by_session=False
)
