"""Comparing what a record says with what a source says.

Owns equality of JSON values (by type and value, ``U+FFFD`` standing for an unpaired surrogate), the places where two
values differ, walking pointers with ``*``, places of units as numbers, and exact JSON texts (ASR-035).

Must never know: records, registries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from callsheet.audit.finding import Path
from callsheet.registry.via import json_text
from callsheet.registry.when import MISSING, Conditions, follow, holds
from callsheet.wire.lossless import has_lone_surrogate, without_lone_surrogates


def agree(value: Any, native: Any) -> bool:
    """Whether a record's value is the native one, however deeply they are nested."""
    left = [(value, native)]
    while left:
        one, other = left.pop()
        if isinstance(one, list):
            if not isinstance(other, list) or len(one) != len(other):
                return False
            left += zip(one, other, strict=True)
        elif isinstance(one, dict):
            if not isinstance(other, dict) or len(one) != len(other):
                return False
            if one.keys() != other.keys():
                other = {without_lone_surrogates(name): item for name, item in other.items()}
            if one.keys() != other.keys():
                return False
            left += [(item, other[name]) for name, item in one.items()]
        elif not _is_same(one, other):
            return False
    return True


def _is_same(value: Any, native: Any) -> bool:
    """Whether two values that hold no others are one."""
    if isinstance(value, str):
        if not isinstance(native, str):
            return False
        return value == native or (has_lone_surrogate(native) and value == without_lone_surrogates(native))
    if isinstance(value, bool) or isinstance(native, bool) or value is None or native is None:
        return value is native
    if isinstance(value, int | float | Decimal):
        return isinstance(native, int | float | Decimal) and _is_same_number(value, native)
    return False


def _is_same_number(value: float | Decimal, native: float | Decimal) -> bool:
    """Whether two numbers are one; a double stands for every text that is read as it."""
    if isinstance(value, Decimal) != isinstance(native, Decimal) and float in (type(value), type(native)):
        return float(value) == float(native)
    return value == native


def differences(value: Any, native: Any, path: Path = ()) -> Iterator[tuple[Path, Any, str]]:
    """Leaves of a record's value that differ from the native one: path, value, what stands there instead."""
    if agree(value, native):
        return
    if isinstance(value, dict) and isinstance(native, dict) and value:
        fresh = False
        for name, item in value.items():
            for found in differences(item, native.get(name, MISSING), (*path, name)):
                fresh = True
                yield found
        if not fresh:  # only members are missing here
            yield path, value, f"the source has more: {_short(native)}"
        return
    if isinstance(value, list) and isinstance(native, list) and value:
        fresh = False
        for index, item in enumerate(value):
            other = native[index] if index < len(native) else MISSING
            for found in differences(item, other, (*path, index)):
                fresh = True
                yield found
        if not fresh:
            yield path, value, f"the source has more: {_short(native)}"
        return
    if isinstance(value, dict | list) and value and native is MISSING:
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from differences(item, MISSING, (*path, name))
        return
    yield path, value, "nothing stands there" if native is MISSING else f"the source says {_short(native)}"


def _short(value: Any, most: int = 100) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = without_lone_surrogates(text)
    return text if len(text) <= most else text[:most] + "…"


def lead(value: Any, pointer: str) -> Any:
    """The value at a pointer; a step into a text goes into the JSON text that it is."""
    found = follow(value, pointer)
    if found is not MISSING:
        return found
    for step in pointer.lstrip("/").split("/"):
        value = follow(json_text(value) if isinstance(value, str) else value, f"/{step}")
        if value is MISSING:
            break
    return value


def above(pointer: str, relative: str) -> str:
    """The pointer that a relative one (``../a``, ``../../a``) names, seen from another; empty steps stay."""
    base = pointer
    while relative.startswith("../"):
        base, relative = base.rpartition("/")[0], relative[3:]
    return f"{base}/{relative}"


def at(root: Any, base: str, part: Any, pointer: str) -> Any:
    """The value at one pointer of a condition on a part: from the root, the part, or what the part stands in."""
    if pointer.startswith("../"):
        return follow(root, above(base, pointer))
    return follow(part if pointer.startswith(".") else root, pointer)


def fits(when: Conditions, root: Any, base: str, part: Any) -> bool:
    """Whether every condition holds on a part, whose pointer in its unit is ``base``."""
    return all(holds(test, at(root, base, part, pointer)) for pointer, test in when.items())


def walk(value: Any, pointer: str, bound: tuple[int, ...], base: str = "") -> Iterator[tuple[str, Any]]:
    """The values at a pointer with ``*``: each with its pointer without.

    Args:
        value: Where it starts.
        pointer: The pointer, without a leading dot.
        bound: Positions that the first ``*`` stand for; a further one runs over all elements.
        base: Pointer of ``value`` itself.
    """
    head, star, rest = pointer.partition("/*")
    found = lead(value, head) if head else value
    if not star:
        if found is not MISSING:
            yield base + head, found
        return
    if not isinstance(found, list):
        return
    if bound:
        if bound[0] < len(found):
            yield from walk(found[bound[0]], rest, bound[1:], f"{base}{head}/{bound[0]}")
        return
    for index, item in enumerate(found):
        yield from walk(item, rest, (), f"{base}{head}/{index}")


_INDEX_BITS = 18
_MOST = (1 << _INDEX_BITS) - 1


def unit_index(pointer: Any) -> int:
    """The positions in lists that a pointer goes through, the last two as one number; 0 where it has none."""
    found = 0
    for step in pointer.split("/") if isinstance(pointer, str) else ():
        if step.isascii() and step.isdigit() and len(step) < 10:
            found = (found & _MOST) << _INDEX_BITS | min(int(step), _MOST)
    return found


def unit_key(line: int, index: int) -> int:
    """A unit's place as one number: 1-based line, and the positions in its lists."""
    return line << 2 * _INDEX_BITS | index


def line_of(key: int) -> int:
    """The line in a unit's place."""
    return key >> 2 * _INDEX_BITS


def last_index(key: int) -> int:
    """The position in its own list, in a unit's place."""
    return key & _MOST


class _Pairs(list[tuple[str, Any]]):
    """An object with its keys as written."""


def _pairs(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return MISSING


def text_pairs(line: bytes, pointer: str) -> list[tuple[str, Any]]:
    """The members of the object at a pointer of a line, as often as they are written."""
    value = _pairs(line.decode("utf-8", "replace"))
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = (
            next((item for key, item in value if key == name), MISSING)
            if isinstance(value, _Pairs)
            else MISSING
        )
    return value if isinstance(value, _Pairs) else []


def is_text_of(text: Any, line: bytes, pointer: str) -> bool:
    """Whether a text is the JSON text of what stands at a pointer of a line: every key and digit of it (ASR-254)."""
    value = _part(line, pointer)
    return isinstance(text, str) and value is not MISSING and bool(_pairs(text) == value)


def is_list_of(text: str, places: list[tuple[bytes, str]]) -> bool:
    """Whether a text is a JSON list of what stands at some pointers of some lines, to every key and digit."""
    values = [_part(line, pointer) for line, pointer in places]
    return MISSING not in values and bool(_pairs(text) == values)


def _part(line: bytes, pointer: str) -> Any:
    """What stands at a pointer of a line, with the keys and digits of its text; ``MISSING`` where nothing does."""
    value = _pairs(line.decode("utf-8", "replace"))
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, _Pairs):
            value = next((item for key, item in reversed(value) if key == name), MISSING)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value
