"""The bar and the session pane say what a source last reported of its use, of stored sessions too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tui.driving import CLAUDE, Driven, drive
from tests.tui.test_keys import call, result, stream


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ({"contextUsed": 1200, "contextWindow": 200000}, "context 1,200/200,000"),
        ({"contextWindow": 272000}, "window 272,000"),
        ({"percent": 3}, "3%"),
        ({"counts": [{"name": "input_tokens", "value": 108}]}, "last response: input_tokens 108"),
    ],
)
def test_a_stored_session_says_it_in_the_bar(tmp_path: Path, usage: dict[str, object], words: str) -> None:
    records = [call(1), result(1), {"type": "usage", "scope": "inference", **usage}, call(2)]

    async def test(on: Driven) -> None:
        await on.read()
        assert words in on.lines[-1]

    drive(stream(tmp_path, records), test)


def test_the_session_pane_says_all_of_it() -> None:
    async def test(on: Driven) -> None:
        await on.read()
        assert "last response: input_tokens" in on.lines[-1]
        await on.press("s")
        for words in (
            "usage as last reported",
            "session so far:",
            "totalCostUSD 0.0034",
            "cache_read_input_tokens 1,000",
        ):
            assert words in on.text

    drive(CLAUDE / "858837b5-8915-443b-bfa2-93fd580a1421.jsonl", test, size=(160, 40))


@pytest.mark.parametrize(("wide", "count"), [(60, 1), (80, 1), (100, 2), (140, 3), (160, 4)])
def test_the_bar_leaves_out_whole_counts(tmp_path: Path, wide: int, count: int) -> None:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    counts = [{"name": name, "value": 1234} for name in names]
    records = [call(1), result(1), {"type": "usage", "scope": "inference", "counts": counts}, call(2)]
    whole = [f"{name} 1,234" for name in names]

    async def test(on: Driven) -> None:
        await on.read()
        said = on.lines[-1].partition("last response: ")[2].split(" · ")
        assert said == [*whole[:count], "1/2"]

    drive(stream(tmp_path, records), test, size=(wide, 24))
