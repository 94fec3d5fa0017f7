"""Forms on the screen: what is typed is seen, every field says what it takes, and what does not fit is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from callsheet.faces.tui.ask_panel import AskPanel
from callsheet.faces.tui.asks import Ask
from callsheet.live.forms import Field, Misfit, fields_of
from callsheet.seam import Declined, FormAsked, FormFilled

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "color": {
            "type": "string",
            "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}],
        },
        "size": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
        "pin": {"type": "string", "format": "password"},
    },
    "required": ["name"],
}


def asked(schema: Any = SCHEMA) -> FormAsked:
    return FormAsked(request_id="f", title="Who are you?", schema=Raw(msgspec.json.encode(schema)))


class Only(App[None]):
    """The panel alone."""

    def __init__(self) -> None:
        super().__init__()
        self.panel = AskPanel("plain")
        self.given: list[AskPanel.Given] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_ask_panel_given(self, event: AskPanel.Given) -> None:
        self.given.append(event)

    @property
    def text(self) -> str:
        return "\n".join(strip.text.rstrip() for strip in self.screen._compositor.render_strips())


async def typed(pilot: Pilot[None], words: str) -> None:
    await pilot.press(*words, "enter")
    await pilot.pause()


def drive(test: Callable[[Only, Pilot[None]], Awaitable[None]], size: tuple[int, int]) -> None:
    async def run() -> None:
        app = Only()
        async with app.run_test(size=size) as pilot:
            app.panel.put([asked()])
            app.panel.enter()
            await pilot.pause()
            await test(app, pilot)

    asyncio.run(run())


@pytest.mark.parametrize("size", [(80, 30), (60, 24)])
def test_a_form_is_seen_and_typed(size: tuple[int, int]) -> None:
    async def test(app: Only, pilot: Pilot[None]) -> None:
        assert "Your name (1 of 5):\nrequired\n" in app.text
        assert app.query_one("#answer", Input).region.height == 1
        await typed(pilot, "")
        assert "an answer is required here" in app.text
        await pilot.press(*"Ada")
        await pilot.pause()
        assert "Ada" in app.text
        await typed(pilot, "")
        assert "an answer is required" not in app.text
        assert "r (Red) | b (Blue)" in app.text
        await typed(pilot, "green")
        assert "none of the values" in app.text
        app.query_one("#answer", Input).value = "Red"
        await typed(pilot, "")
        await typed(pilot, "12")
        await typed(pilot, '["x"]')
        await pilot.press(*"hunter2")
        await pilot.pause()
        assert "hunter2" not in app.text
        assert "•" * 7 in app.text
        await typed(pilot, "")
        (given,) = app.given
        assert isinstance(given.answer, FormFilled)
        assert msgspec.json.decode(given.answer.content) == {
            "name": "Ada",
            "color": "r",
            "size": 12,
            "tags": ["x"],
            "pin": "hunter2",
        }

    drive(test, size)


def test_a_form_with_a_required_field_can_be_declined() -> None:
    async def test(app: Only, pilot: Pilot[None]) -> None:
        assert "Ctrl+D: decline" in app.text
        await pilot.press("ctrl+d")
        await pilot.pause()
        assert [given.answer for given in app.given] == [Declined()]

    drive(test, (80, 30))


def test_what_a_field_takes_is_said() -> None:
    name, color, size, tags, pin = fields_of(asked())
    assert (name.label, name.required) == ("Your name", True)
    assert color.wants() == "may stay empty · one of: r (Red) | b (Blue)"
    assert size.wants() == "may stay empty · a whole number"
    assert "x | y" in tags.wants()
    assert (pin.label, pin.secret, pin.take(" a ")) == ("pin", True, " a ")
    assert list(fields_of(asked({"properties": {"a": {"type": ["x"], "enum": [1, None]}}}))) == [
        Field(name="a", label="a", kind=["x"], values=((1, None), (None, None)))
    ]


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"type": "integer"}, "x"),
        ({"type": "integer"}, "true"),
        ({"type": "boolean"}, "1"),
        ({"type": "array"}, "x"),
        ({"type": "array", "items": {"enum": ["x"]}}, '["z"]'),
        ({"enum": ["x"]}, "y"),
    ],
)
def test_what_does_not_fit_is_refused_with_words(about: Any, text: str) -> None:
    (field,) = fields_of(asked({"properties": {"a": about}}))
    with pytest.raises(Misfit):
        field.take(text)
    ask = Ask(asked({"properties": {"a": about}}))
    assert ask.type(text) is None
    assert ask.problem
