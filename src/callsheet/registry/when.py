"""Conditions over native JSON: the ``when`` tables of a registry.

Owns JSON pointers (``/a/0/b`` from the native unit's root, ``./a`` from the cited part) and the closed list of tests:
a literal (equality of value and type), ``{present = bool}``, ``{one_of = [...]}``, ``{not = test}``, ``{type = …}``
with one or more of string, object, array, number, boolean, null, joined by ``|``, and ``{prefix = …}`` for ids that a
harness makes. There is no test on prose.
"""

from __future__ import annotations

from typing import Any

Conditions = dict[str, Any]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
"""What a pointer that leads nowhere yields; differs from JSON null."""


def follow(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901), or ``MISSING``."""
    if pointer in ("", "/", "."):
        return value
    for step in pointer.lstrip(".").lstrip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            if name not in value:
                return MISSING
            value = value[name]
        elif isinstance(value, list):
            # A pointer may come from a stream: no digits that int() refuses, no second spelling of an index.
            if not (name.isascii() and name.isdigit()) or len(name) > 15 or (name[0] == "0" and name != "0"):
                return MISSING
            if int(name) >= len(value):
                return MISSING
            value = value[int(name)]
        else:
            return MISSING
    return value


def json_type(value: Any) -> str:
    """The JSON type of a decoded value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "object"
    return "number"


def matches(when: Conditions, native: Any, block: Any = None) -> bool:
    """Whether every condition holds."""
    return all(
        holds(test, follow(block if pointer.startswith(".") else native, pointer))
        for pointer, test in when.items()
    )


def holds(test: Any, value: Any) -> bool:
    """Whether one test holds for the value a pointer gave."""
    if not isinstance(test, dict):
        return value is not MISSING and json_type(value) == json_type(test) and bool(value == test)
    for name, wanted in test.items():
        if name == "present":
            good = (value is not MISSING) is wanted
        elif name == "one_of":
            good = any(holds(one, value) for one in wanted)
        elif name == "type":
            good = value is not MISSING and json_type(value) in wanted.split("|")
        elif name == "prefix":
            good = isinstance(value, str) and value.startswith(wanted)
        elif name == "not":
            good = not holds(wanted, value)
        else:
            raise ValueError(f"unknown test {name!r}")
        if not good:
            return False
    return True
