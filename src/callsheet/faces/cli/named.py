"""What a person names: a file, a folder, or ``-`` for standard input; never nothing.

An empty name is what an unset variable of a shell leaves; read as a path it would be the folder one is in.
"""

from __future__ import annotations

import click


class Named(click.ParamType[str]):
    """A name that is not empty."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is."""
        if not value:
            self.fail("the name is empty", param, ctx)
        return value
