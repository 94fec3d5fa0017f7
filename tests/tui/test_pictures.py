"""The pictures of the documents are made by the program, and show what it shows."""

from __future__ import annotations

import asyncio
import html
import re
from pathlib import Path

import pytest
from tests.tui.driving import CLAUDE

from callsheet.faces.tui.app import screen_of
from callsheet.faces.tui.pictures import picture, stored_pictures
from callsheet.faces.tui.stored import Stored

DOCS = Path(__file__).parents[2] / "docs"


def text_of(path: Path) -> str:
    return html.unescape(re.sub("<[^>]*>", " ", path.read_text(encoding="utf-8"))).replace("\xa0", " ")


def test_a_picture_shows_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    source = CLAUDE / "858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
    asyncio.run(picture(path, screen_of(Stored(source)), "c"))
    for word in ("Claude Code 2.1.332", "echo first", "echo third", "3 calls"):
        assert word in text_of(path)


def test_the_pictures_of_stored_sessions_show_what_the_program_shows_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DOCS.parent)
    asyncio.run(stored_pictures(tmp_path))
    made = sorted(path.name for path in tmp_path.iterdir())
    assert len(made) == 7
    for name in made:
        again = "python -m callsheet.faces.tui.pictures"
        assert text_of(tmp_path / name) == text_of(DOCS / "pictures" / name), f"{name} is old ({again})"


def test_every_picture_of_the_page_is_there_and_says_what_it_shows() -> None:
    page = (DOCS / "workbench.md").read_text(encoding="utf-8")
    words = {
        "filter.svg": "only command",
        "session.svg": "usage as last reported",
        "light.svg": "Codex",
        "narrow.svg": "Codex",
        "sheet.svg": "8 calls",
        "evidence.svg": "/message/content/0/input",
        "live.svg": "allow_always",
        "sessions.svg": "sessions",
    }
    named = re.findall(r"\(pictures/([a-z]+\.svg)\)", page)
    assert sorted(named) == sorted(words)
    for name, word in words.items():
        assert word in text_of(DOCS / "pictures" / name), name
