"""The diff of a turn, as git writes it, cut into its files.

Owns: which file each part of a git diff is about (renames, new and deleted files, names that only the first line has)
and the part itself, which is kept as supplied.

Must never know: who made the diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from callsheet.harness._port.pen import raw_json
from callsheet.records import Change, Patch, PathRef

Named = Callable[[str], PathRef]
"""A path in a diff as a record names it."""

_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_PLAIN = re.compile(r"^--- .*\n\+\+\+ .*\n@@ ", re.MULTILINE)
_NO_FILE = "/dev/null"


def changes_of_diff(diff: str, named: Named) -> list[Change]:
    """The files of a git diff, each with its own part of it; the one file of a diff without git's headers."""
    starts = [found.start() for found in _FILE.finditer(diff)]
    found = []
    if not starts and len(_PLAIN.findall(diff)) == 1 and diff.startswith("--- "):
        change = _of_part(diff, named)
        if change is not None:
            change.patch = Patch(format="unified", value=raw_json(diff))
            found.append(change)
    for start, end in pairwise([*starts, len(diff)]):
        part = diff[start:end]
        change = _of_part(part, named)
        if change is not None:
            change.patch = Patch(format="git", value=raw_json(part))
            found.append(change)
    return found


def _of_part(part: str, named: Named) -> Change | None:
    told = dict(_headers(part))
    old, new = told.get("--- "), told.get("+++ ")
    if "rename from " in told and "rename to " in told:
        return Change(
            path=named(told["rename to "]),
            change="move",
            old_path=named(told["rename from "]),
        )
    if "deleted file mode " in told or new == _NO_FILE:
        kind = "delete"
    elif "new file mode " in told or old == _NO_FILE:
        kind = "add"
    else:
        kind = "modify"
    side = old if kind == "delete" else new
    path = side[2:] if side and side[:2] in ("a/", "b/") else _from_first(part)
    return Change(path=named(path), change=kind) if path else None


_HEADERS = ("--- ", "+++ ", "rename from ", "rename to ", "deleted file mode ", "new file mode ")


def _headers(part: str) -> Iterator[tuple[str, str]]:
    """The lines of a part before its first hunk."""
    for line in part.split("\n"):
        if line.startswith("@@"):
            return
        for head in _HEADERS:
            if line.startswith(head):
                yield head, line[len(head) :]


def _from_first(part: str) -> str | None:
    """The path in ``diff --git a/X b/X``, where both sides name the same file."""
    names = part.split("\n", 1)[0].removeprefix("diff --git ")
    half = (len(names) - 1) // 2
    first, second = names[:half], names[half + 1 :]
    same = first[:2] == "a/" and second[:2] == "b/" and first[2:] == second[2:]
    return first[2:] if same else None
