"""Answers to requests, key by key: what a person may choose, tick, type and refuse."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from callsheet.faces.tui.asks import Ask
from callsheet.paint import plain
from callsheet.records import Option, Question, QuestionOption
from callsheet.seam import (
    Answered,
    Cancelled,
    Chosen,
    Declined,
    FormAsked,
    FormFilled,
    Permission,
    Questions,
    UrlAsked,
    UrlOpened,
)


def permission(**more: Any) -> Permission:
    options = tuple(
        Option(option_id=name, name=name.replace("_", " "), kind=name)
        for name in ("allow_once", "allow_always", "reject_once")
    )
    return Permission(request_id="p", title="Run it?", options=options, **more)


def questions(*asked: Question) -> Questions:
    return Questions(request_id="q", questions=asked)


def colour(**more: Any) -> Question:
    options = [QuestionOption(label="red"), QuestionOption(label="green"), QuestionOption(label="blue")]
    return Question(id="c", text="Which colour?", options=options, **more)


def shown(ask: Ask, width: int = 60) -> str:
    return "\n".join(plain(line) for line in ask.lines(width))


def test_every_option_is_offered_in_order() -> None:
    ask = Ask(permission(command="rm -rf build", reason="the build is stale"))
    assert shown(ask).split("\n") == [
        "? Run it?",
        "rm -rf build",
        "the build is stale",
        "▌ 1  allow once",
        "  2  allow always",
        "  3  reject once",
    ]
    assert ask.choose(1) == Chosen("allow_always")
    ask.move(-1)
    assert ask.choose() == Chosen("allow_once")
    ask.move(-1)
    assert ask.choose() == Chosen("reject_once")
    assert ask.choose(7) is None
    assert ask.decline() == Cancelled()


def test_words_go_with_the_options_that_take_them() -> None:
    ask = Ask(permission(takes_words=frozenset({"reject_once"})))
    assert ask.choose(0) == Chosen("allow_once")
    assert ask.choose(2) is None
    assert "Words for the agent" in shown(ask)
    assert ask.back()
    ask.choose(2)
    assert ask.type(" use make ") == Chosen("reject_once", "use make")
    ask = Ask(permission(takes_words=frozenset({"reject_once"})))
    ask.choose(2)
    assert ask.type("") == Chosen("reject_once", None)


def test_questions_are_asked_one_after_another() -> None:
    ask = Ask(questions(colour(header="Colour"), Question(id="n", text="How many?")))
    assert "? Colour: Which colour?" in shown(ask)
    assert "question 1 of 2" in shown(ask)
    assert ask.choose(1) is None
    assert ask.typing
    assert ask.type("three") == Answered({"c": (("green",), None), "n": ((), "three")})


def test_several_can_be_ticked() -> None:
    ask = Ask(questions(colour(multi_select=True)))
    ask.tick()
    ask.tick(2)
    ask.tick(1)
    ask.tick(1)
    assert "[x] red" in shown(ask)
    assert "[ ] green" in shown(ask)
    assert ask.choose() == Answered({"c": (("red", "blue"), None)})


def test_other_words_only_where_they_are_taken() -> None:
    assert Ask(questions(colour())).takes_text
    assert not Ask(questions(colour(allow_other=False))).takes_text
    ask = Ask(questions(colour()))
    ask.typing = True
    assert ask.type("") is None
    assert ask.type("mauve") == Answered({"c": ((), "mauve")})
    assert ask.decline() == Declined()


def form(schema: Any, **more: Any) -> FormAsked:
    return FormAsked(request_id="f", title="Fill it in", schema=Raw(msgspec.json.encode(schema)), **more)


def test_a_form_is_typed_member_by_member() -> None:
    members = {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer"},
        "pin": {"type": "string", "format": "password"},
        "size": {"enum": ["s", "m"]},
    }
    ask = Ask(form({"type": "object", "properties": members}))
    assert "Your name (1 of 4):" in shown(ask)
    secrets = [ask.is_secret]
    for text in (" Ada ", "36"):
        assert ask.type(text) is None
        secrets.append(ask.is_secret)
    assert secrets == [False, False, True]
    assert ask.type(" 12 ") is None
    assert "size (4 of 4):\nmay stay empty · one of: s | m" in shown(ask)
    answer = ask.type("")
    assert isinstance(answer, FormFilled)
    assert msgspec.json.decode(answer.content) == {"name": "Ada", "age": 36, "pin": " 12 "}


def test_a_form_without_an_answer_is_declined() -> None:
    assert Ask(form({"properties": {"a": {}}})).type("") == Declined()
    assert Ask(form("no schema")).type("x") == Declined()


def test_a_url_is_only_said() -> None:
    ask = Ask(UrlAsked(request_id="u", title="Sign in", url="https://example.org/\x1b[2J"))
    assert "https://example.org/␛[2J" in shown(ask)
    assert ask.choose(0) == UrlOpened()
    assert ask.choose(1) == Declined()


def test_what_an_agent_asks_is_harmless_and_bounded() -> None:
    ask = Ask(permission(command="\x1b]0;evil\x07\n" + "x\n" * 500, description="\u202eevil"))
    text = shown(ask, 20)
    assert text.replace("\n", "").isprintable()
    assert "more lines" in text
    assert len(text.split("\n")) < 20


def test_an_option_says_what_it_does_where_its_name_does_not() -> None:
    options = (
        Option(option_id="a", name="Allow", kind="allow_once"),
        Option(option_id="b", name="touch seen", kind="allow_always"),
        Option(option_id="c", kind="reject_once"),
        Option(option_id="d", name="Later"),
        Option(option_id="e"),
    )
    asked = Permission(request_id="q", title="touch seen", options=options)
    assert Ask(asked).options == ["Allow", "allow always: touch seen", "reject once", "Later", "e"]
