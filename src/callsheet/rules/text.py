"""What a line's text says beyond its value: numbers that do not fit, keys that repeat, lone surrogates.

Owns the reading of one line for the finding lane: quick where the text is plain, exact where something in
it does not survive every reader (ASR-032, ASR-035). Values that lose something come back as marked values
(``Inexact``, ``Repeated``), so that their place can be named afterwards.

Must never know: records, rules; only JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from callsheet.rules.finding import Json, Problem, shown, step
from callsheet.wire.lossless import MAX_SAFE, NotJson, has_lone_surrogate, number_fits

_HIGH = 4000


def fraction(text: str) -> float:
    """A fraction of a JSON text, for the ``float_hook`` of a decoder.

    Raises:
        ValueError: It does not fit (ASR-032). Up to 15 digits always fit.
    """
    if (len(text) > 15 or "e" in text or "E" in text) and not number_fits(text):
        raise ValueError("number does not fit")
    return float(text)


_fast = msgspec.json.Decoder(float_hook=fraction).decode
_encode = msgspec.json.Encoder().encode

RUN = bytes(48 if 48 <= byte < 58 else 58 if chr(byte) in ":,[ \t\r\n-" else 97 for byte in range(256))
"""Translation that makes a long integer outside strings visible: ``LONG_INTEGER in text.translate(RUN)``."""
LONG_INTEGER = b":" + b"0" * 16


class Inexact(float):
    """A fraction that no double holds; ``text`` is what stands in the line."""

    text: str = ""


class Repeated(dict[str, Any]):
    """An object with a key that stands in it more than once."""

    keys_twice: tuple[str, ...] = ()


def hides_a_key(text: bytes, encoded: bytes) -> bool:
    """Whether encoding what was decoded from a text may have lost a member.

    Every member has one colon, and encoding never writes a colon that was an escape; so equal counts prove
    that each member of the text is still there.
    """
    return text.count(b":") != encoded.count(b":") or b"\\u003" in text


def read_object(data: bytes) -> tuple[Json, bool]:
    """Reads one line as a JSON object.

    Returns:
        The object, and whether ``text_problems`` has to look at it.

    Raises:
        NotJson: No JSON, no UTF-8, too deep, or no object.
    """
    try:
        value = _fast(data)
        exact = LONG_INTEGER not in data.translate(RUN) and not hides_a_key(data, _encode(value))
    except (msgspec.DecodeError, ValueError, RecursionError):
        exact = False
        value = None
    if not exact:
        value = _exactly(data)
    if not isinstance(value, dict):
        raise NotJson(f"the line is {shown(value)}, not an object", "bad_json")
    return value, not exact


def _exactly(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8", "bad_utf8", error.start) from None
    try:
        return json.loads(
            text, parse_constant=_refuse, parse_int=_integer, parse_float=_fraction, object_pairs_hook=_pairs
        )
    except RecursionError:
        raise NotJson("nested too deeply", "too_deep") from None
    except json.JSONDecodeError as error:
        reason = "nul" if "\0" in text else "bad_json"
        raise NotJson(f"{error.msg}, at character {error.pos + 1}", reason, error.pos) from None


def _refuse(name: str) -> Any:
    raise NotJson(f"{name} is no JSON", "bad_json")


def _integer(text: str) -> int:
    # int() refuses more than 4,300 digits; of such a number only matters that it is too large.
    return int(text) if len(text) < _HIGH else int(text[:_HIGH])


def _fraction(text: str) -> float:
    if number_fits(text):
        return float(text)
    value = Inexact(text)
    value.text = text
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    twice = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
    marked = Repeated(found)
    marked.keys_twice = tuple(dict.fromkeys(twice))
    return marked


def text_problems(value: Any, path: str = "") -> Iterator[Problem]:
    """Every place of a decoded line whose text does not survive every reader."""
    stack: list[tuple[str, Any]] = [(path, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, str):
            if has_lone_surrogate(item):
                yield Problem(at, "the string holds half of a surrogate pair, which is no character")
        elif isinstance(item, dict):
            if isinstance(item, Repeated):
                for key in item.keys_twice:
                    yield Problem(
                        step(at, key), f"the member {shown(key)} stands more than once in its object"
                    )
            for key in item:
                if has_lone_surrogate(key):
                    yield Problem(step(at, key), "the member's name holds half of a surrogate pair")
            stack.extend((step(at, key), item[key]) for key in reversed(item))
        elif isinstance(item, list):
            stack.extend((step(at, index), item[index]) for index in range(len(item) - 1, -1, -1))
        elif isinstance(item, Inexact):
            yield Problem(at, f"the number {item.text[:40]} is not the one that a reader gets (ASR-032)")
        elif isinstance(item, int) and not isinstance(item, bool) and abs(item) > MAX_SAFE:
            yield Problem(
                at, f"the integer {shown(item)} lies outside ±(2^53-1), so readers round it (ASR-032)"
            )
