"""Walks a decoded record along its strict type and names every member of the wrong type.

Owns the finding lane's half of ``shape``: one checker per type node, compiled once. It reports all wrong
members, each with its path, where a typed decoder stops at the first.

Must never know: what a member means, streams.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeGuard

from msgspec import Struct
from msgspec import inspect as ins

from callsheet.rules.finding import Problem, shown, step

Check = Callable[[Any, str, list[Problem]], None]

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|[+-]00:00)\Z"
)


def is_timestamp(value: Any) -> bool:
    """Whether a value is an RFC 3339 time in UTC, and its day exists."""
    found = _TIMESTAMP.match(value) if isinstance(value, str) else None
    if not found:
        return False
    try:
        datetime.fromisoformat(found.group(1))
    except ValueError:
        return False
    return True


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a JSON number (true and false are none)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a value is a JSON number written without fraction and exponent."""
    return isinstance(value, int) and not isinstance(value, bool)


def checker(kind: type[Struct]) -> Check:
    """The compiled walk of a strict struct type."""
    return _Compiler().node(ins.type_info(kind))


def _nothing(_value: Any, _path: str, _out: list[Problem]) -> None:
    return None


def _simple(good: Callable[[Any], bool], words: str) -> Check:
    def check(value: Any, path: str, out: list[Problem]) -> None:
        if not good(value):
            out.append(Problem(path, f"{shown(value)} stands where {words} belongs"))

    return check


class _Compiler:
    def __init__(self) -> None:
        self._structs: dict[type, Check] = {}

    def node(self, node: ins.Type) -> Check:
        if isinstance(node, ins.Metadata):
            return self._marked(node)
        if isinstance(node, ins.StrType):
            return _string(node)
        if isinstance(node, ins.IntType):
            return _integer(node)
        if isinstance(node, ins.FloatType):
            return _simple(is_number, "a number")
        if isinstance(node, ins.BoolType):
            return _simple(lambda value: isinstance(value, bool), "true or false")
        if isinstance(node, ins.LiteralType):
            return _literal(node.values)
        if isinstance(node, ins.ListType):
            return self._list(node)
        if isinstance(node, ins.DictType):
            return self._dict(node)
        if isinstance(node, ins.StructType):
            return self._struct(node)
        if isinstance(node, ins.UnionType):
            return self._union(node)
        if isinstance(node, ins.AnyType):
            return _nothing
        raise TypeError(f"no check for {node!r}")

    def _marked(self, node: ins.Metadata) -> Check:
        extra = node.extra_json_schema or {}
        if extra.get("format") == "date-time":
            return _simple(is_timestamp, "an RFC 3339 time in UTC")
        inner = self.node(node.type)
        if "minimum" not in extra:
            return inner
        low = extra["minimum"]

        def check(value: Any, path: str, out: list[Problem]) -> None:
            if is_number(value) and value < low:
                out.append(Problem(path, f"{shown(value)} is less than {low}"))
            else:
                inner(value, path, out)

        return check

    def _list(self, node: ins.ListType) -> Check:
        item = self.node(node.item_type)

        def check(value: Any, path: str, out: list[Problem]) -> None:
            if not isinstance(value, list):
                out.append(Problem(path, f"{shown(value)} stands where an array belongs"))
                return
            for index, one in enumerate(value):
                item(one, f"{path}/{index}", out)

        return check

    def _dict(self, node: ins.DictType) -> Check:
        item = self.node(node.value_type)

        def check(value: Any, path: str, out: list[Problem]) -> None:
            if not isinstance(value, dict):
                out.append(Problem(path, f"{shown(value)} stands where an object belongs"))
                return
            if item is not _nothing:
                for key, one in value.items():
                    item(one, step(path, key), out)

        return check

    def _struct(self, node: ins.StructType) -> Check:
        if node.cls in self._structs:
            return self._structs[node.cls]

        def check(value: Any, path: str, out: list[Problem]) -> None:
            if not isinstance(value, dict):
                out.append(Problem(path, f"{shown(value)} stands where an object belongs"))
                return
            for key, one in value.items():
                known = checks.get(key)
                if known is not None:
                    known(one, step(path, key), out)
            out.extend(
                Problem(step(path, key), f"the member {key} is missing") for key in needed if key not in value
            )

        self._structs[node.cls] = check
        checks = {field.encode_name: self.node(field.type) for field in node.fields}
        needed = tuple(field.encode_name for field in node.fields if field.required)
        return check

    def _union(self, node: ins.UnionType) -> Check:
        kinds = node.types
        if {type(kind) for kind in kinds} == {ins.IntType, ins.FloatType}:
            return _simple(is_number, "a number")
        checks = [(_json_type(kind), self.node(kind)) for kind in kinds]
        words = " or ".join(name for name, _ in checks)

        def check(value: Any, path: str, out: list[Problem]) -> None:
            for name, inner in checks:
                if _IS[name](value):
                    inner(value, path, out)
                    return
            out.append(Problem(path, f"{shown(value)} stands where {words} belongs"))

        return check


_IS: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "an integer": is_integer,
    "an array": lambda value: isinstance(value, list),
    "an object": lambda value: isinstance(value, dict),
}


def _json_type(node: ins.Type) -> str:
    if isinstance(node, ins.Metadata):
        return _json_type(node.type)
    names = {ins.StrType: "a string", ins.IntType: "an integer", ins.ListType: "an array"}
    return names.get(type(node), "an object")


def _string(node: ins.StrType) -> Check:
    pattern = re.compile(node.pattern) if node.pattern else None

    def check(value: Any, path: str, out: list[Problem]) -> None:
        if not isinstance(value, str):
            out.append(Problem(path, f"{shown(value)} stands where a string belongs"))
        elif pattern is not None and (not pattern.search(value) or value.endswith("\n")):
            out.append(Problem(path, f"{shown(value)} does not look like {node.pattern}"))
        elif node.min_length is not None and len(value) < node.min_length:
            out.append(Problem(path, "the string is empty"))

    return check


def _integer(node: ins.IntType) -> Check:
    low, high = node.ge, node.le

    def check(value: Any, path: str, out: list[Problem]) -> None:
        if not is_integer(value):
            out.append(Problem(path, f"{shown(value)} stands where an integer belongs"))
        elif (low is not None and value < low) or (high is not None and value > high):
            bounds = f"{low} or more" if high is None else f"between {low} and {high}"
            out.append(Problem(path, f"{shown(value)} is not {bounds}"))

    return check


def _literal(values: tuple[Any, ...]) -> Check:
    words = ", ".join(repr(value) for value in values)

    def check(value: Any, path: str, out: list[Problem]) -> None:
        if not isinstance(value, str) or value not in values:
            out.append(Problem(path, f"{shown(value)} is none of {words}"))

    return check


__all__ = ["Check", "checker", "is_integer", "is_number", "is_timestamp"]
