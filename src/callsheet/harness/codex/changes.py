"""Changed files, as executions of every generation supply them.

Owns their shapes: an object by path (``{type, content | unified_diff, move_path}``, in older events ``{add: {…}}``),
a list of ``{path, kind}`` (exec --json) or ``{path, kind: {type, move_path}, diff}`` (app server), and the diff of a
whole turn. Patches are taken as supplied, never made.

Must never know: how a call went.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port import gitdiff
from callsheet.harness._port.pen import Pen
from callsheet.harness.codex.executions import local_path
from callsheet.harness.codex.shapes import ABSENT, mark, members_of, parts_of, text_of
from callsheet.records import Change, FileChange, Native, Patch

STATES = {"completed": "applied", "denied": "declined"}
"""What became of changes, by the status of the result; anything else is unknown (a part may have been applied)."""

_WORDS = {"add": "add", "update": "modify", "delete": "delete"}


def changes_of(pen: Pen, raw: Raw) -> list[Change]:
    """Changed files as supplied, in any of their shapes.

    An object by path (``{type, content | unified_diff, move_path}``, or ``{add: {…}}`` in the older events), or a list
    of ``{path, kind}`` or of ``{path, kind: {type, move_path}, diff}``.
    """
    found = []
    for path, change in members_of(raw).items():
        found.append(_change(pen, path, members_of(change)))
    for item in parts_of(raw):
        members = members_of(item)
        named = text_of(members.get("path", ABSENT))
        if named:
            found.append(_listed(pen, named, members))
    return found


def _listed(pen: Pen, named: str, members: dict[str, Raw]) -> Change:
    told = members_of(members.get("kind", ABSENT))
    kind = text_of(told.get("type", ABSENT)) if told else text_of(members.get("kind", ABSENT))
    change = Change(path=local_path(pen, named), change=_WORDS.get(kind or "", kind))
    moved = text_of(told.get("move_path", ABSENT))
    if moved:
        change.old_path, change.path, change.change = change.path, local_path(pen, moved), "move"
    diff = members.get("diff", ABSENT)
    if mark(diff) == b'"':
        # Of a file that is added or deleted, the app server's diff is the file itself.
        whole = kind in ("add", "delete")
        change.patch = Patch(format="full_text" if whole else "unified", value=Raw(bytes(diff)))
    return change


def _change(pen: Pen, path: str, members: dict[str, Raw]) -> Change:
    kind = text_of(members.get("type", ABSENT))
    if kind is None and len(members) == 1:
        kind, inner = next(iter(members.items()))
        members = members_of(inner)
    change = Change(path=local_path(pen, path), change=_WORDS.get(kind or "", kind))
    moved = text_of(members.get("move_path", ABSENT))
    if moved:
        change.old_path, change.path, change.change = change.path, local_path(pen, moved), "move"
    diff, content = members.get("unified_diff"), members.get("content")
    if diff is not None and mark(diff) == b'"':
        change.patch = Patch(format="unified", value=diff)
    elif content is not None and mark(content) == b'"':
        change.patch = Patch(format="full_text", value=content)
    return change


def file_change(
    pen: Pen, raw: Raw, call_id: str | None, state: str, native: Native, pointer: str
) -> FileChange | None:
    """The record of the files that a call changed, or was to change; None where none is named.

    Args:
        pen: The stream's pen.
        raw: The changes.
        call_id: The call, where one call alone has this id.
        state: proposed, applied, declined or unknown.
        native: The record's provenance.
        pointer: Where the changes stand in the unit at hand.
    """
    changes = changes_of(pen, raw)
    if not changes:
        return None
    record = FileChange(scope="call", call_id=call_id, state=state, changes=changes, native=native)
    if not pen.inline(record, "changes", raw, pointer):
        for change in changes:
            change.patch = None
    return record


def changes_of_diff(pen: Pen, diff: str) -> list[Change]:
    """The files of a turn's diff."""
    return gitdiff.changes_of_diff(diff, lambda path: local_path(pen, path))
