"""Reading what an agent stored, in a process of its own.

``python -m callsheet.faces.tui.reading SOURCE OUT [settled]`` writes a bundle for each session below OUT, without
copies of the sources. What is wrong is one line on stderr. With ``settled``, a line that is still being written is
left for the next time.

Must never know: the screen.
"""

from __future__ import annotations

import sys
from pathlib import Path

from callsheet.errors import CallsheetError
from callsheet.library.importing import find_sessions, import_session


def command(source: Path, out: Path, *, settled: bool) -> list[str]:
    """The command that does it."""
    return [sys.executable, "-m", __name__, str(source), str(out), *(["settled"] if settled else [])]


def main(source: str, out: str, *how: str) -> int:
    """Imports every session of a source; the exit code is that of ``import``."""
    try:
        sessions = find_sessions(Path(source), None)
    except CallsheetError as error:
        sys.stderr.write(f"{error}\n")
        return 2
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
