"""Reading what an agent stored, in a process of its own.

``python -m callsheet.faces.tui.reading SOURCE OUT [settled] [kind=KIND] [stream=ID]`` writes a bundle for each session
below OUT, or only for the one whose stream is named, without copies of the sources. What is wrong is one line on
stderr. With ``settled``, a line that is still being written is left for the next time.

Must never know: the screen.
"""

from __future__ import annotations

import sys
from pathlib import Path

from callsheet.errors import CallsheetError
from callsheet.library.importing import find_sessions, import_session
from callsheet.records.bundle import stream_id


def command(
    source: Path, out: Path, *, settled: bool, kind: str | None = None, stream: str | None = None
) -> list[str]:
    """The command that does it."""
    how = ["settled"] if settled else []
    how += [mark + value for mark, value in ((_KIND, kind), (_STREAM, stream)) if value is not None]
    return [sys.executable, "-m", __name__, str(source), str(out), *how]


_KIND = "kind="
_STREAM = "stream="


def _told(how: tuple[str, ...], mark: str) -> str | None:
    return next((one.removeprefix(mark) for one in how if one.startswith(mark)), None)


def main(source: str, out: str, *how: str) -> int:
    """Imports the sessions of a source; the exit code is that of ``import``.

    A stream that no session is named after may be that of an agent within one: then all are imported.
    """
    try:
        sessions = find_sessions(Path(source), _told(how, _KIND))
    except CallsheetError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    wanted = _told(how, _STREAM)
    if any(stream_id(session.native_id) == wanted for _, session in sessions):
        sessions = [one for one in sessions if stream_id(one[1].native_id) == wanted]
    done = 0
    for adapter, session in sessions:
        try:
            import_session(adapter, session, Path(out), native=False, settled="settled" in how)
            done += 1
        except CallsheetError as error:
            sys.stderr.write(f"{error}\n")
    return 0 if done else 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
