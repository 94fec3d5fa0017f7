"""Changed files in the shapes in which sources supply them, made anew for the audit.

Owns: an object by path, a list of paths, a git diff cut into its files, the headers of a patch text, and native paths
under the session's roots.

Must never know: importers, how a call went.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from callsheet.audit.case import Case
from callsheet.audit.cite import Cite
from callsheet.registry.facts import Fact
from callsheet.registry.via import file_url
from callsheet.registry.when import MISSING, follow

_PLAIN = re.compile(r"^--- .*\n\+\+\+ .*\n@@ ", re.MULTILINE)
_WORDS = {"add": "add", "update": "modify", "delete": "delete"}
_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_PATCH = {"*** Add File: ": "add", "*** Update File: ": "modify", "*** Delete File: ": "delete"}
_MOVE = "*** Move to: "


def path_ref(value: Any, roots: dict[str, str]) -> Any:
    """A native path or ``file:`` URL under the longest of the session's roots; outside every root it is ``host``."""
    if not isinstance(value, str):
        return MISSING
    local = file_url(value)
    value = local if isinstance(local, str) else value
    for name, root in sorted(roots.items(), key=lambda item: -len(item[1])):
        if value == root:
            return {"root": name, "path": "."}
        for slash in ("/", "\\"):
            folder = root.rstrip(slash) + slash
            if value.startswith(folder):
                return {"root": name, "path": value[len(folder) :]}
    return {"root": "host", "path": value}


def changes(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Changed files: an object by path, or a list of ``{path, kind}``."""
    native, roots = values[0], case.ledger.head.roots
    found = []
    if isinstance(native, dict):
        found = [_change(path, one, roots) for path, one in native.items()]
    elif isinstance(native, list):
        for one in native:
            path = follow(one, "/path")
            if isinstance(path, str) and path:
                found.append(_listed(path, one, roots))
    return _bare(case, found) or MISSING


def _listed(path: str, one: Any, roots: dict[str, str]) -> dict[str, Any]:
    """One of a list: ``{path, kind}``, or ``{path, kind: {type, move_path}, diff}``."""
    kind = follow(one, "/kind")
    word = kind.get("type") if isinstance(kind, dict) else kind
    made = {"path": path_ref(path, roots), **_kind(word)}
    moved = follow(kind, "/move_path")
    if isinstance(moved, str) and moved:
        made |= {"oldPath": made["path"], "path": path_ref(moved, roots), "change": "move"}
    text = follow(one, "/diff")
    if isinstance(text, str):
        made["patch"] = {"format": "full_text" if word in ("add", "delete") else "unified", "value": text}
    return made


def _kind(kind: Any) -> dict[str, Any]:
    return {"change": _WORDS.get(kind, kind)} if isinstance(kind, str) else {}


def _change(path: str, change: Any, roots: dict[str, str]) -> dict[str, Any]:
    change = change if isinstance(change, dict) else {}
    kind = change.get("type")
    if not isinstance(kind, str) and len(change) == 1:
        kind, change = next(iter(change.items()))
        change = change if isinstance(change, dict) else {}
    made = {"path": path_ref(path, roots), **_kind(kind)}
    if isinstance(change.get("move_path"), str) and change["move_path"]:
        made |= {"oldPath": made["path"], "path": path_ref(change["move_path"], roots), "change": "move"}
    for member, form in (("unified_diff", "unified"), ("content", "full_text")):
        if isinstance(change.get(member), str):
            made["patch"] = {"format": form, "value": change[member]}
            break
    return made


def _bare(case: Case, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The changes without patches, where these stand in a blob."""
    captures = case.record.get("capture")
    if not isinstance(captures, dict) or "changes" not in captures:
        return found
    said = case.record.get("changes")
    if isinstance(said, list) and any(isinstance(one, dict) and "patch" in one for one in said):
        return found
    return [{name: value for name, value in one.items() if name != "patch"} for one in found]


def files_by_kind(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """Files in lists by what was done to them: ``added``, ``modified``, ``deleted``."""
    lists = values[0] if isinstance(values[0], dict) else {}
    found = [
        {"path": path_ref(path, case.ledger.head.roots), "change": change}
        for member, change in (("added", "add"), ("modified", "modify"), ("deleted", "delete"))
        for path in (lists[member] if isinstance(lists.get(member), list) else ())
        if isinstance(path, str)
    ]
    return found or MISSING


def moved(_case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """``move`` where a change names the path that a file was moved to, else its own word."""
    return "move" if isinstance(values[0], str) and values[0] else values[1]


def diff(case: Case, _cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The files of a git diff, each with its own part of it."""
    text = values[0]
    if not isinstance(text, str):
        return MISSING
    starts = [hit.start() for hit in _FILE.finditer(text)]
    found = []
    for start, end in pairwise([*starts, len(text)]):
        part = text[start:end]
        made = _of_part(part, case.ledger.head.roots)
        if made is not None:
            found.append({**made, "patch": {"format": "git", "value": part}})
    if not starts and text.startswith("--- ") and len(_PLAIN.findall(text)) == 1:
        made = _of_part(f"\n{text}", case.ledger.head.roots)
        found = [{**made, "patch": {"format": "unified", "value": text}}] if made is not None else []
    return _bare(case, found) if found or not text.strip() else MISSING


def _of_part(part: str, roots: dict[str, str]) -> dict[str, Any] | None:
    head = part.split("\n@@", 1)[0].split("\n")
    told = {line.partition(" ")[0] if line[:4] in ("--- ", "+++ ") else line: line[4:] for line in head[1:]}
    names = [line.removeprefix("rename from ") for line in head if line.startswith("rename from ")]
    moved = [line.removeprefix("rename to ") for line in head if line.startswith("rename to ")]
    if names and moved:
        return {
            "path": path_ref(moved[0], roots),
            "change": "move",
            "oldPath": path_ref(names[0], roots),
        }
    added = any(line.startswith("new file mode ") for line in head) or told.get("---") == "/dev/null"
    gone = any(line.startswith("deleted file mode ") for line in head) or told.get("+++") == "/dev/null"
    side = told.get("---" if gone else "+++", "")
    if side[:2] in ("a/", "b/"):
        path = side[2:]
    else:
        both = head[0].removeprefix("diff --git ")
        path = both[2 : (len(both) - 1) // 2]
        if both != f"a/{path} b/{path}" or not path:
            return None
    return {"path": path_ref(path, roots), "change": "delete" if gone else "add" if added else "modify"}


def patch_text(case: Case, cite: Cite, _fact: Fact, values: list[Any]) -> Any:
    """The files that the headers of a patch text name; a relative path starts from the thread's folder."""
    text = values[0]
    lines = text.strip().split("\n") if isinstance(text, str) else []
    if not lines or lines[0].strip() != "*** Begin Patch":
        return MISSING
    found: list[dict[str, Any]] = []
    folders = [*dict.fromkeys([*case.scan(cite).folders, *case.ledger.head.roots.values(), ""])]
    said = case.record.get("changes")
    for folder in folders:
        found = list(_patched(lines[1:], folder, case.ledger.head.roots))
        if found == said:
            break
    return found or MISSING


def _patched(lines: list[str], folder: str, roots: dict[str, str]) -> Iterator[dict[str, Any]]:
    last: dict[str, Any] | None = None
    for line in lines:
        if line.startswith("*** End Patch"):
            break
        head = next((head for head in _PATCH if line.startswith(head)), None)
        if head is not None:
            if last is not None:
                yield last
            last = {"path": _under(line[len(head) :].strip(), folder, roots), "change": _PATCH[head]}
        elif line.startswith(_MOVE) and last is not None and "oldPath" not in last:
            moved = _under(line[len(_MOVE) :].strip(), folder, roots)
            last = {"path": moved, "change": "move", "oldPath": last["path"]}
    if last is not None:
        yield last


def _under(path: str, folder: str, roots: dict[str, str]) -> Any:
    if path.startswith(("/", "\\")) or path[1:3] in (":\\", ":/") or not folder:
        return path_ref(path, roots)
    slash = "\\" if "\\" in folder and "/" not in folder else "/"
    return path_ref(folder.rstrip("/\\") + slash + path.removeprefix("./"), roots)
