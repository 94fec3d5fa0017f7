"""Where rows stand on the screen: heights that are guessed and learned, and a reader who is never moved."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows.test_any_stream import SHUFFLED, stream
from tests.tui.driving import Driven, drive
from tests.tui.test_keys import call, result, said, session
from tests.tui.test_keys import stream as write
from textual.geometry import Region

from callsheet.faces.tui.heights import Heights
from callsheet.faces.tui.places import same_place
from callsheet.paint.cells import width
from callsheet.rows import Roll, Sheet, View

heights = st.lists(st.integers(0, 40), max_size=40)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=1500), st.data())
def test_heights_are_the_sums_of_a_list(values: list[int], data: st.DataObject) -> None:
    found, plain = Heights(values), list(values)
    for _ in range(8):
        at = data.draw(st.integers(0, len(plain) - 1))
        match data.draw(st.sampled_from(["put", "insert", "take"])):
            case "put":
                height = data.draw(st.integers(0, 9))
                assert found.put(at, height) == height - plain[at]
                plain[at] = height
            case "insert":
                at = data.draw(st.integers(0, len(plain)))
                found.insert(at, 7)
                plain.insert(at, 7)
            case _ if len(plain) > 1:
                found.take(at)
                del plain[at]
    assert list(found) == plain
    assert (len(found), found.total) == (len(plain), sum(plain))
    for at in data.draw(st.lists(st.integers(0, len(plain) - 1), max_size=6)):
        assert found[at] == plain[at]
        assert found.start(at) == sum(plain[:at])
        for inner in range(plain[at]):
            assert found.find(found.start(at) + inner) == (at, inner)


def test_heights_of_nothing() -> None:
    nothing = Heights()
    assert (nothing.total, nothing.find(3), nothing.start(0)) == (0, (0, 0), 0)
    nothing.insert(0, 4)
    assert (nothing.total, nothing.find(3)) == (4, (0, 3))
    with pytest.raises(IndexError):
        nothing[1]


@pytest.mark.parametrize("size", [(100, 30), (61, 17), (40, 24), (24, 10)])
def test_walking_shows_every_line_once_and_in_order(tmp_path: Path, size: tuple[int, int]) -> None:
    """However one goes through a session, what is on the screen are neighbouring lines of one long text."""
    source = write(tmp_path, session(6))

    async def test(on: Driven) -> None:
        await on.read()
        view = on.sheet
        whole: list[tuple[int, int]] = []
        for index in range(len(view)):
            whole += [(index, line) for line in range(len(view.lines_of(view.position(index))))]
        luck = random.Random(7)
        moves: list[Callable[[], None]] = [
            lambda: view.move(1),
            lambda: view.move(-1),
            lambda: view.turn_page(1),
            lambda: view.turn_page(-1),
            lambda: view.select(luck.randrange(len(view))),
            lambda: view.scroll_to(y=luck.randrange(200), animate=False, immediate=True),
            lambda: view.to_end(),
        ]
        for _ in range(60):
            luck.choice(moves)()
            seen = view._window()
            begin = whole.index(seen[0])
            assert seen == whole[begin : begin + len(seen)]
            assert len(seen) == min(view.page, len(whole))
        view.to_end()
        assert view._window()[-1] == whole[-1]
        view.select(0)
        assert view._window()[0] == whole[0]

    drive(source, test, size=size)


def test_every_line_that_changes_is_drawn_and_a_row_elsewhere_draws_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path, session(6))

    async def test(on: Driven) -> None:
        await on.read()
        view, luck = on.sheet, random.Random(11)
        dirty: set[int] = set()
        really = view.refresh

        def refresh(*regions: Region, **how: bool) -> object:
            dirty.update(y for region in regions or (view.size.region,) for y in region.line_range)
            return really(*regions, **how)

        def lines() -> list[list[object]]:
            return [list(view.render_line(y)) for y in range(view.page)]

        monkeypatch.setattr(view, "refresh", refresh)
        moves: list[Callable[[], None]] = [
            lambda: view.move(luck.choice((1, -1))),
            lambda: view.turn_page(luck.choice((1, -1))),
            lambda: view.select(luck.randrange(len(view))),
            lambda: view.scroll_to(y=luck.randrange(200), animate=False, immediate=True),
            lambda: view.changed([view.position(luck.randrange(len(view)))]),
            lambda: view.renewed(),
            lambda: view.toggle(),
            lambda: view.tick(),
            lambda: view.fold_all(),
            lambda: view.to_end(),
        ]
        for _ in range(80):
            before = lines()
            dirty.clear()
            luck.choice(moves)()
            changed = {y for y, (was, now) in enumerate(zip(before, lines(), strict=True)) if was != now}
            assert changed <= dirty
            await on.pilot.pause()
        view.select(0)
        await on.pilot.pause()
        dirty.clear()
        view.changed([view.position(len(view) - 1)])
        assert dirty == set()
        view.changed([view.position(1)])
        assert dirty == {y for y, (index, _) in enumerate(view._window()) if index == 1}

    drive(source, test)


def test_wide_and_joined_characters_fill_their_cells(tmp_path: Path) -> None:
    title = "漢字 👩‍👩‍👧 é e\u0301 🇩🇪 שלום مرحبا 한글 ✈️"
    source = write(tmp_path, [said("user", title), call(0, input={"command": title}), result(0, text=title)])

    async def test(on: Driven) -> None:
        await on.read()
        for strip in on.app.screen._compositor.render_strips():
            assert width(strip.text) == on.app.size.width, strip.text
        assert on.text.count("漢字") == 3

    for size in ((60, 20), (41, 20)):
        drive(source, test, size=size)


@pytest.mark.parametrize("size", [(20, 8), (5, 3), (200, 60)])
def test_odd_sizes_break_nothing(tmp_path: Path, size: tuple[int, int]) -> None:
    source = write(tmp_path, session(3))

    async def test(on: Driven) -> None:
        await on.read()
        await on.press(
            "j", "enter", "p", "e", "G", "z", "question_mark", "escape", "pageup", "slash", "escape"
        )
        await on.pilot.resize_terminal(80, 24)
        await on.press("j", "k")
        assert any(line.startswith("▌") for line in on.lines)

    drive(source, test, size=size)


def test_a_resize_keeps_the_row_where_it_was(tmp_path: Path) -> None:
    source = write(tmp_path, session(6))

    async def test(on: Driven) -> None:
        await on.read()
        for _ in range(5):
            await on.press("c")
        title = on.title
        for columns in (60, 120, 44, 100):
            await on.pilot.resize_terminal(columns, 30)
            await on.pilot.pause(0.1)
            assert on.title == title
            assert any(title[:20] in line for line in on.lines)

    drive(source, test)


def roll_of(records: list[dict[str, object]]) -> Roll:
    return Roll("s", {"s": Sheet(stream(records), outlined=True, view=View(harness=False))})


def test_the_place_is_found_again_in_another_reading() -> None:
    records = session(12)
    short, whole = roll_of(records[:60]), roll_of([records[0], said("harness", "x"), *records[1:]])
    for at in range(len(short)):
        place = same_place(short, at, whole)
        assert place is not None
        before, after = short.nested(at).row, whole.nested(place).row
        assert (before.title, before.kind) == (after.title, after.kind)
    assert same_place(short, None, whole) is None


@given(st.permutations(SHUFFLED), st.booleans(), st.booleans())
def test_a_roll_has_the_rows_of_any_stream(
    records: list[dict[str, object]], audit: bool, open_turn: bool
) -> None:
    sheet = Sheet(
        stream(records), outlined=True, provisional=open_turn, view=View(audit=audit, harness=False)
    )
    rows = list(sheet.rows())
    roll = Roll("s", {"s": sheet})
    assert [(roll.kind(at), roll.state(at)) for at in range(len(roll))] == [
        (row.kind, row.state) for row in rows
    ]
    assert [roll.nested(at).row.row for at in range(len(roll))] == [row.row for row in rows]
