"""The help of every command: examples, exit codes, 80 columns; and the page that holds all of it.

``pytest --regold`` writes ``docs/commands.md`` anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from callsheet.faces.cli import COMMANDS, cli

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = """# Commands

What `--help` prints of each command, as the program has it.
"""


def commands() -> Iterator[tuple[str, click.Command]]:
    for name, place in COMMANDS.items():
        module, _, attribute = place.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        yield f"callsheet {name}", command
        if isinstance(command, click.Group):
            yield from ((f"callsheet {name} {one}", inner) for one, inner in command.commands.items())


def help_of(name: str, command: click.Command) -> str:
    *above, own = name.split()
    parent = click.Context(cli, info_name=" ".join(above), **cli.context_settings)
    context = click.Context(command, parent, info_name=own, terminal_width=80, **command.context_settings)
    return re.sub(" +\n", "\n", command.get_help(context))


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_the_help_of_a_command(name: str) -> None:
    text = help_of(name, ALL[name])
    assert all(len(line) <= 80 for line in text.splitlines())
    assert re.search(r"^  Examples?:\n    .*\bcallsheet ", text, re.MULTILINE)
    assert re.search(r"^  Exit code \d", text, re.MULTILINE)
    options = [one for one in ALL[name].params if isinstance(one, click.Option)]
    assert all(one.help for one in options)


def test_the_page_of_all_commands(regold: bool) -> None:
    parts = [f"\n## {name}\n\n```text\n{help_of(name, command)}\n```\n" for name, command in ALL.items()]
    page = HEAD + "".join(parts)
    if regold:
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page
