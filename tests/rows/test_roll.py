"""The rows by position: the same rows, in the same order, as a reader from top to bottom gets."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from callsheet.library.opening import Reading, open_sessions
from callsheet.rows import Roll, Sheet, View, nested_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
VIEWS = {
    "sheet": View(harness=False),
    "json": View(),
    "audit": View(audit=True),
    "thoughts": View(thoughts=True),
}


def checked(source: Path, view: View) -> int:
    """Holds every session of a source against its rows from top to bottom; how many rows there were."""

    def fail(words: str) -> None:
        raise AssertionError(words)

    rows = 0
    with open_sessions(str(source), Reading(view=view, outlined=True), on_failure=fail) as sessions:
        for session in sessions:
            with session.sheets() as sheets:

                def sheet_of(name: str, held: dict[str, Sheet] = sheets) -> nullcontext[Sheet]:
                    return nullcontext(held[name])

                expected = [
                    (item.depth, msgspec.json.encode(item.row))
                    for item in nested_rows(session.main, session.streams, sheet_of)
                ]
                roll = Roll(session.main, sheets)
                told = [(roll.kind(at), roll.state(at)) for at in range(len(roll))]
                found = [roll.nested(at) for at in range(len(roll))]
                assert [(item.depth, msgspec.json.encode(item.row)) for item in found] == expected
                assert told == [(item.row.kind, item.row.state) for item in found]
                rows += len(found)
    return rows


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_a_roll_has_the_rows_of_a_sheet(example: str, view: View) -> None:
    assert checked(EXAMPLES / example, view)
