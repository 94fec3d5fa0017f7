"""The page about rows, generated: what a line of ``show --json`` holds, and the signs of the sheet.

Owns how the page looks. Everything on it comes from the structs of ``rows`` and the tables of ``paint``.

Must never know: what a row means beyond those.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct
from msgspec import inspect as ins

from callsheet.paint.words import LABELS, MARKS
from callsheet.records import Patch, Provider
from callsheet.rows import (
    AgentShown,
    ChangeShown,
    Count,
    NativePlace,
    Output,
    PermissionShown,
    Reached,
    Remark,
    Row,
)
from callsheet.rows.row import KINDS, STATES
from callsheet.rules.meaning import MEANING

PARTS: tuple[type[Struct], ...] = (
    Count,
    Output,
    ChangeShown,
    PermissionShown,
    Reached,
    AgentShown,
    Remark,
    NativePlace,
    Provider,
    Patch,
)
"""What a row is made of."""

_ATTRIBUTE = re.compile(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", re.MULTILINE)
_SIGNS: dict[str, str] = {
    "▸": "what was asked",
    "│": "what came back: text of the source",
    "┆": "words of callsheet about what is not shown, or about what stands below; no agent can write there",
    "┊": "a row of an agent that a call started",
    ">": "the person",
    "*": "the model",
    "~": "a thought",
    "·": "anybody else's message, a notice, a process that exited without more",
}


def meanings(kind: type[Struct]) -> dict[str, str]:
    """What each member means, by its name in Python: of a record's shape by its table, else by the docstring."""
    if kind.__name__ in MEANING and kind in (Provider, Patch):
        info: Any = ins.type_info(kind)
        return {field.name: MEANING[kind.__name__][field.encode_name] for field in info.fields}
    found = _ATTRIBUTE.findall(kind.__doc__ or "")
    return {name: " ".join(text.split()).replace("``", "`") for name, text in found}


def _type(node: ins.Type) -> str:
    names: dict[type, str] = {
        ins.StrType: "string",
        ins.BoolType: "boolean",
        ins.FloatType: "number",
        ins.IntType: "integer",
        ins.DictType: "object",
    }
    match node:
        case ins.Metadata():
            return _type(node.type)
        case ins.ListType():
            return f"{_type(node.item_type)}[]"
        case ins.StructType():
            return f"[{node.cls.__name__}](#{node.cls.__name__.lower()})"
        case ins.LiteralType():
            return "string"
        case ins.UnionType():
            kinds = [one for one in node.types if not isinstance(one, (ins.NoneType, ins.CustomType))]
            if {type(one) for one in kinds} == {ins.IntType, ins.FloatType}:
                return "number"
            return " or ".join(_type(one) for one in kinds) or "any"
        case _:
            return names.get(type(node), "any")


def _table(kind: type[Struct]) -> list[str]:
    info: Any = ins.type_info(kind)
    words = meanings(kind)
    lines = ["| member | type | always | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{field.encode_name}` | {_type(field.type)} | {'yes' if field.required else ''} | {words[field.name]} |"
        for field in info.fields
    ]
    return lines


def row_page(note: str) -> str:
    """The page.

    Args:
        note: That it is generated.
    """
    lines = ["# Rows", "", note, ""]
    lines += [
        "`callsheet show SOURCE --json` prints a row a line, in JSON; `callsheet show SOURCE` draws the same rows.",
        "A row is a call with all that belongs to it, or what lies between calls. Absent members are left out.",
        "Later versions may add members; these keep their names and meanings.",
        "",
        *_table(Row),
        "",
        "## Kinds",
        "",
        "| `kind` | label | is |",
        "|---|---|---|",
        *(f"| `{kind}` | {LABELS[kind]} | {words} |" for kind, words in KINDS.items()),
        "",
        "## States",
        "",
        "| `state` | sign | when |",
        "|---|---|---|",
        *(f"| `{state}` | {MARKS[state][0]} | {words} |" for state, words in STATES.items()),
        "",
        "## Other signs",
        "",
        "| sign | stands before |",
        "|---|---|",
        *(f"| {sign} | {words} |" for sign, words in _SIGNS.items()),
        "",
        "## Made of",
    ]
    for part in PARTS:
        head = (part.__doc__ or "").strip().split("\n\n")[0].replace("``", "`").replace("\n", " ")
        lines += ["", f"### {part.__name__}", "", " ".join(head.split()), "", *_table(part)]
    return "\n".join(lines) + "\n"
