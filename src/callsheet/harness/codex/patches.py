"""The text of an ``apply_patch`` call, as far as it names files.

Owns the headers of the patch envelope (``*** Add File:``, ``*** Update File:``, ``*** Delete File:``, ``*** Move
to:``). Hunks are left alone: what a patch does to a file is only known from its execution.

Must never know: calls, results.
"""

from __future__ import annotations

from callsheet.harness._port.pen import Pen
from callsheet.records import Change, PathRef

BEGIN = "*** Begin Patch"
END = "*** End Patch"
MOVE = "*** Move to: "
_HEADERS = {"*** Add File: ": "add", "*** Update File: ": "modify", "*** Delete File: ": "delete"}


def proposed(pen: Pen, words: str, cwd: str | None) -> list[Change]:
    """The changes that a patch asks for; none when the text is no patch envelope.

    Args:
        pen: Knows the session's roots.
        words: The patch.
        cwd: The folder that its paths start from.
    """
    lines = words.strip().split("\n")
    if not lines or lines[0].strip() != BEGIN:
        return []
    found: list[Change] = []
    for line in lines[1:]:
        if line.startswith(END):
            break
        header = next((head for head in _HEADERS if line.startswith(head)), None)
        if header is not None:
            found.append(Change(path=_path(pen, line[len(header) :].strip(), cwd), change=_HEADERS[header]))
        elif line.startswith(MOVE) and found and found[-1].old_path is None:
            last = found[-1]
            last.old_path, last.path, last.change = (
                last.path,
                _path(pen, line[len(MOVE) :].strip(), cwd),
                "move",
            )
    return found


def _path(pen: Pen, path: str, cwd: str | None) -> PathRef:
    absolute = path.startswith(("/", "\\")) or path[1:3] in (":\\", ":/")
    if absolute or cwd is None:
        return pen.path(path)
    slash = "\\" if "\\" in cwd and "/" not in cwd else "/"
    return pen.path(cwd.rstrip("/\\") + slash + path.removeprefix("./"))
