"""Requests on a plain terminal: what a person reads, and what becomes of what is typed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw

from callsheet.faces.cli.asking import InOrder, TerminalPort
from callsheet.records.permission import Option
from callsheet.seam import Answer, Chosen, Declined, FormAsked, FormFilled, Permission, RequestOpened

FORM = {
    "type": "object",
    "properties": {
        "env": {
            "type": "string",
            "title": "Environment",
            "description": "Where it goes.",
            "enum": ["dev", "live"],
        },
        "count": {"type": "integer", "title": "How many"},
        "dry": {"type": "boolean"},
    },
    "required": ["env"],
}


class Typed(TerminalPort):
    """A terminal at which these lines are typed; keeps what was asked for."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines = list(lines)
        self.prompts: list[str] = []

    async def _read(self, prompt: str, *, hidden: bool = False) -> str:
        del hidden
        self.prompts.append(prompt)
        return self.lines.pop(0)


def answered(request: FormAsked | Permission, *lines: str) -> tuple[Answer | None, list[str]]:
    port = Typed(*lines)
    answer = asyncio.run(port.answer(request))
    assert port.lines == []
    return answer, port.prompts


def form(schema: Any = None) -> FormAsked:
    return FormAsked(request_id="f", title="Deploy?", schema=Raw(json.dumps(schema or FORM).encode()))


def test_a_form_is_asked_in_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    answer, prompts = answered(form(), "dev\n", "3\n", "true\n")
    assert answer == FormFilled(Raw(b'{"env":"dev","count":3,"dry":true}'))
    assert prompts == ["Environment: ", "How many: ", "dry: "]
    assert capsys.readouterr().err.splitlines() == [
        "? Deploy?",
        "  Where it goes.",
        "  required · one of: dev | live",
        "  may stay empty · a whole number",
        "  may stay empty · true or false",
    ]


def test_what_does_not_fit_is_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    answer, prompts = answered(form(), "prod\n", "live\n", "some\n", "\n", "\n")
    assert answer == FormFilled(Raw(b'{"env":"live"}'))
    assert prompts == ["Environment: ", "Environment: ", "How many: ", "How many: ", "dry: "]
    said = capsys.readouterr().err.splitlines()
    assert "  this is none of the values that are allowed (an empty line declines)" in said
    assert "  this does not fit: a whole number (an empty line leaves it out)" in said


def test_a_required_field_left_empty_is_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    answer, prompts = answered(form(), "\n", "dev\n", "\n", "\n")
    assert answer == FormFilled(Raw(b'{"env":"dev"}'))
    assert prompts == ["Environment: ", "Environment: ", "How many: ", "dry: "]
    err = capsys.readouterr().err
    assert "  this is required (another empty line declines the form)\n" in err
    assert "the form is declined" not in err


@pytest.mark.parametrize(
    "lines", [("\n", " \n"), ("prod\n", "\n"), ("",)], ids=["twice", "told", "end of input"]
)
def test_a_form_is_declined_in_words(lines: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(form(), *lines)[0] == Declined()
    assert capsys.readouterr().err.endswith("  the form is declined\n")


def test_nothing_of_a_form_reaches_the_terminal_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;x\x07"
    about = {"title": f"a{evil}", "description": f"b{evil}", "enum": [f"c{evil}"]}
    _, prompts = answered(form({"properties": {"x": about}}), "\n")
    assert "\x1b" not in capsys.readouterr().err + "".join(prompts)


def test_a_choice_that_is_none_is_told_what_would_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        Option(option_id="y", name="Yes", kind="allow_once"),
        Option(option_id="n", name="No", kind="reject_once"),
    )
    request = Permission(request_id="p", title="May I?", options=options)
    assert answered(request, "yes\n", "3\n", "2\n")[0] == Chosen("n", None)
    assert capsys.readouterr().err.count("a number from 1 to 2") == 2


def test_a_question_waits_for_what_is_older_and_holds_up_what_is_newer() -> None:
    request = Permission(request_id="p", title="May I?", options=(Option(option_id="y", kind="allow_once"),))

    async def run() -> None:
        port = Typed("1\n")
        order = InOrder(port)
        open_one = asyncio.create_task(order.answer(request))
        await asyncio.sleep(0)
        assert port.prompts == [], "what is older is not printed yet"
        held = asyncio.Event()
        asked = asyncio.Event()

        async def read(prompt: str, *, hidden: bool = False) -> str:
            del prompt, hidden
            asked.set()
            await held.wait()
            return "1\n"

        port._read = read  # type: ignore[method-assign]
        order.printed(RequestOpened(request))
        await asked.wait()
        assert order.terminal.locked(), "what is newer waits"
        held.set()
        assert await open_one == Chosen("y", None)
        assert not order.terminal.locked()

        withdrawn = asyncio.create_task(order.answer(request))
        held.clear()
        asked.clear()
        order.printed(RequestOpened(request))
        await asked.wait()
        withdrawn.cancel()
        await asyncio.wait({withdrawn})
        assert not order.terminal.locked(), "a question that is withdrawn holds up nothing"

    asyncio.run(asyncio.wait_for(run(), 30))
