"""What an option is called where it is offered."""

from __future__ import annotations

import pytest

from callsheet.records import Option
from callsheet.rows.talk import option_words


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (Option(option_id="accept", kind="allow_once"), "allow once"),
        (Option(option_id="a", name="Allow once", kind="allow_once"), "Allow once"),
        (Option(option_id="allow_once", kind="allow_once"), "allow once"),
        # A rule that is kept for good is not to be taken for the command of this once.
        (Option(option_id="rule", name="echo hello", kind="allow_always"), "allow always: echo hello"),
        (Option(option_id="odd", name="Odd"), "Odd"),
        (Option(option_id="odd"), "odd"),
    ],
)
def test_an_option_says_what_it_does(option: Option, words: str) -> None:
    assert option_words(option) == words
