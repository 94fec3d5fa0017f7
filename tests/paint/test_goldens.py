"""Every kind of row in every state at every width, as text: what the painter makes is kept, and read by people.

``pytest --regold`` writes ``goldens/`` anew; read the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from tests.paint.test_text import is_harmless

from callsheet.paint import Look, coloured, line_width, paint_row, plain
from callsheet.records import Patch, Provider
from callsheet.rows import ROW_KINDS, ChangeShown, Count, Output, PermissionShown, Row, RowKind, State
from callsheet.rows.row import STATES

GOLDENS = Path(__file__).parent / "goldens"
WIDTHS = (20, 40, 80, 120)
HOSTILE = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \u202eevil\u202c a\tb\r"
LONG = "\n".join(f"line {number} of the output, which is rather long in places" for number in range(1, 15))

TITLES: dict[RowKind, str] = {
    "read": "/home/dev/app/src/parser.py",
    "search": "def parse.*empty",
    "command": "cargo test -p parser --all-features\nsecond line \x1b[2J [b]markup[/b] `tick`",
    "file_change": "/home/dev/app/src/a_rather_long_name_of_a_module.py",
    "web": "https://example.org/a/path?with=questions",
    "mcp_tool": "漢字のタイトル 👩‍👩‍👧 é́ ok",
    "subagent": "look for callers",
    "other": "Frobnicate",
    "message": "Here is what I found.",
    "thought": "The parser fails on empty lines",
    "request": "rm -rf build",
    "hook": "PreToolUse: check.sh",
    "terminal": "npm run dev",
    "plan": "3 steps",
    "notice": "context compacted (auto)",
}


def row_of(kind: RowKind, state: State) -> Row:
    """A row with what rows of its kind and state usually have."""
    row = Row(row="r1", kind=kind, state=state, title=TITLES[kind], record="r1")
    call = kind not in ("message", "thought", "hook", "terminal", "plan", "notice")
    if call:
        row.name, row.call_id, row.requested_by = "Tool", "c1", "model"
        row.pairing = "dangling" if state in ("running", "unconfirmed") else "paired"
        row.input = Raw(msgspec.json.encode({"note": "more \x1b[8minput", "count": 3}))
        row.more_input = ["/note", "/count"]
        row.not_recorded = ["content", "exec.exitCode"] if kind == "command" else ["content"]
    if call and state in ("completed", "declined"):
        decision = "allow_once" if state == "completed" else "reject_once"
        row.permissions = [PermissionShown(decision=decision, decided_by="user")]
    if kind == "command" and state in ("completed", "failed"):
        row.exit_code, row.duration_ms = (0 if state == "completed" else 101), 4_900
        row.not_recorded = ["content"]
    if state == "failed":
        row.error = f"it went wrong: {HOSTILE}"
    if state not in ("declined", "cancelled") and kind != "file_change":
        member = "preview" if state == "running" else "content"
        row.output = Output(text=f"{HOSTILE}\n{LONG}", truncated=state == "running", member=member)
    if kind == "file_change":
        value = Raw(msgspec.json.encode("@@ -1,2 +1,2 @@\n same\n-old \x1b[31m\n+new\t漢字\n"))
        change = "applied" if state == "completed" else "proposed"
        row.changes = [
            ChangeShown(
                path=row.title, kind="modify", state=change, patch=Patch(format="unified", value=value)
            )
        ]
    if kind == "mcp_tool":
        row.provider = Provider(kind="mcp", identity="exact", server="files", tool="read")
    if kind == "read":
        row.count = Count(value=1_204, unit="lines")
    if kind == "message":
        row.author = "model"
    return row


def sheet(width: int) -> Iterator[str]:
    look = Look(width=width, tick=0)
    for kind in ROW_KINDS:
        for state in STATES:
            yield f"=== {kind}, {state}"
            yield from (plain(line) for line in paint_row(row_of(kind, state), look))
    yield "=== a thought that begins"
    thought = Row(
        row="r", kind="thought", state="running", title="", record="r", output=Output(text="", truncated=True)
    )
    yield from (plain(line) for line in paint_row(thought, look))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_kind_and_state(width: int, regold: bool) -> None:
    path = GOLDENS / f"{width}.txt"
    found = "\n".join(sheet(width)) + "\n"
    if regold:
        GOLDENS.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ROW_KINDS)
def test_no_line_is_wider_or_does_anything(kind: RowKind, width: int) -> None:
    more: list[dict[str, Any]] = [{}, {"full": True}, {"audit": True}]
    for state in STATES:
        for options in more:
            for depth in (0, 3, 9):
                for line in paint_row(row_of(kind, state), Look(width=width, **options), depth):
                    assert line_width(line) <= width
                    assert is_harmless(plain(line))
                    assert set(coloured(line)) - set("\x1b") <= set(plain(line) + " [0123456789;m")
