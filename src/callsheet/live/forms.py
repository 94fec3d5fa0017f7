"""The fields of a form that an agent asks for: what each is called, what it takes, and whether a typed line is that.

Owns what is read of the form's schema. Nothing else of it is checked here: the agent has the last word.

Must never know: screens, protocols.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from callsheet.live.answers import typed_value
from callsheet.seam import FormAsked

MOST_VALUES = 12
"""Allowed values that are named."""

_KINDS: dict[object, tuple[tuple[type, ...], str]] = {
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list,), 'a list, as ["one", "two"]'),
}


class Misfit(Exception):
    """What was typed does not fit the field; the text says why."""


class Field(Struct, frozen=True):
    """One field of a form.

    Attributes:
        name: Its key in the answer.
        label: Its title, else its name.
        about: Its description.
        kind: The type in the schema.
        values: The values it may take, each with its title; empty where the schema names none.
        required: Whether the schema requires it.
        secret: Whether what is typed must not be shown.
    """

    name: str
    label: str
    about: str | None = None
    kind: object = None
    values: tuple[tuple[Any, str | None], ...] = ()
    required: bool = False
    secret: bool = False

    def wants(self) -> str:
        """What may be typed, in words."""
        if self.values:
            shown = [_value_words(value, title) for value, title in self.values[:MOST_VALUES]]
            more = len(self.values) - MOST_VALUES
            words = " | ".join([*shown, *([f"… {more} more"] if more > 0 else [])])
            words = f"{_KINDS['array'][1]}, of: {words}" if self.kind == "array" else f"one of: {words}"
        else:
            words = _KINDS[self.kind][1] if isinstance(self.kind, str) and self.kind in _KINDS else ""
        need = "required" if self.required else "may stay empty"
        return f"{need} · {words}" if words else need

    def take(self, text: str) -> Any:
        """The value of a typed line that is not empty.

        Raises:
            Misfit: It is no value that the field takes.
        """
        words = text if self.secret else text.strip()
        for value, title in self.values if self.kind != "array" else ():
            if words in (_words(value), title):
                return value
        value = typed_value(words, self.kind)
        kinds, wanted = _KINDS.get(self.kind, ((), "")) if isinstance(self.kind, str) else ((), "")
        is_truth = isinstance(value, bool) and bool not in kinds
        if kinds and (is_truth or not isinstance(value, kinds)):
            raise Misfit(f"this does not fit: {wanted}")
        if self.values:
            allowed = [one for one, _ in self.values]
            if any(one not in allowed for one in (value if isinstance(value, list) else [value])):
                raise Misfit("this is none of the values that are allowed")
        return value


def fields_of(request: FormAsked) -> Iterator[Field]:
    """The fields of a form, in the order of its schema; none where the schema cannot be read."""
    try:
        schema = msgspec.json.decode(request.schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if not isinstance(schema, dict):
        return
    members, required = schema.get("properties"), schema.get("required")
    for name, about in (members if isinstance(members, dict) else {}).items():
        about = about if isinstance(about, dict) else {}
        items = about.get("items")
        title, description = about.get("title"), about.get("description")
        yield Field(
            name=name,
            label=title if isinstance(title, str) and title.strip() else name,
            about=description if isinstance(description, str) and description.strip() else None,
            kind=about.get("type"),
            values=tuple(_values(items if isinstance(items, dict) else about)),
            required=isinstance(required, list) and name in required,
            secret=request.secret or about.get("format") == "password",
        )


def _values(about: dict[str, Any]) -> Iterator[tuple[Any, str | None]]:
    plain, names = about.get("enum"), about.get("enumNames")
    if isinstance(plain, list):
        for at, value in enumerate(plain):
            name = names[at] if isinstance(names, list) and at < len(names) else None
            yield value, name if isinstance(name, str) else None
        return
    for key in ("oneOf", "anyOf"):
        choices = about.get(key)
        if isinstance(choices, list) and all(isinstance(one, dict) and "const" in one for one in choices):
            for one in choices:
                title = one.get("title")
                yield one["const"], title if isinstance(title, str) else None


def _words(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _value_words(value: Any, title: str | None) -> str:
    words = _words(value)
    return f"{words} ({title})" if title and title != words else words
