"""Garbage is collected between keys, and what stays is set aside."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path

import pytest
from tests.tui.driving import Driven, drive
from tests.tui.test_keys import session
from tests.tui.test_keys import stream as write

from callsheet.faces.tui import pauses
from callsheet.faces.tui.pauses import IDLE, Pauses


class Held:
    """Something that only a collection lets go."""

    def __init__(self) -> None:
        self.itself = self


def test_everything_is_collected_in_a_pause_and_not_between_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(pauses, "monotonic", lambda: now)
    before, kept = gc.get_threshold(), Pauses()
    kept.begin()
    try:
        assert gc.get_freeze_count() > 0
        held = Held()
        gone = weakref.ref(held)
        gc.collect(0)
        gc.collect(1)  # it is not young any more
        del held
        kept.pressed()
        kept.settle()
        kept.look()
        assert gone() is not None
        now += IDLE + 0.1
        kept.look()
        assert gone() is None
        assert gc.get_freeze_count() > 0
    finally:
        kept.end()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_what_was_set_aside_is_collected_once_it_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(pauses, "monotonic", lambda: now)
    kept = Pauses()
    held = Held()
    gone = weakref.ref(held)
    kept.begin()
    try:
        del held
        gc.collect()
        assert gone() is not None
        kept.settle()
        now += IDLE + 0.1
        kept.look()
        assert gone() is None
    finally:
        kept.end()


def test_the_interpreter_is_left_as_it_was_found(tmp_path: Path) -> None:
    before, gave_way = gc.get_threshold(), sys.getswitchinterval()

    async def test(on: Driven) -> None:
        await on.read()
        assert gc.get_threshold()[2] > before[2]
        assert sys.getswitchinterval() < gave_way

    drive(write(tmp_path, session(1)), test)
    assert gc.get_threshold() == before
    assert sys.getswitchinterval() == gave_way
