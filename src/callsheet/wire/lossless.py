"""JSON that survives: which text may stand as a value, and which must stay text (ASR-032, ASR-035).

Owns the fast lane (msgspec) and the slow lane (the standard library), and the question between them: does decoding
and encoding this text lose anything? A text is lossless when its integers lie within ±(2^53-1), every fraction is
finite and equals the shortest text of its double, no object repeats a key, and no string holds an unpaired
surrogate. The fast lane proves it without a Python-level walk: the compact form of the text equals the encoding of
its decoded value, and no run of digits is long enough to hide an integer that does not fit.

Must never know: records, files.
"""

from __future__ import annotations

import json
import re
import struct
from decimal import Decimal
from typing import Any

import msgspec

MAX_SAFE = (1 << 53) - 1
"""Largest integer magnitude that every reader keeps (ASR-032)."""

_LONG_DIGITS = re.compile(rb"[0-9]{16}")
_LONE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
"""One escape in a string; a surrogate without its partner is the group."""
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(decimal_format="number").encode
_compact = msgspec.json.format
_first = struct.Struct("c").unpack_from


class NotJson(ValueError):
    """The text is no JSON value.

    Attributes:
        offset: Byte offset of the failure in the text, where known, else -1.
        reason: ``bad_json``, ``bad_utf8``, ``too_deep`` or ``nul``.
    """

    def __init__(self, message: str, reason: str, offset: int = -1) -> None:
        super().__init__(message)
        self.reason = reason
        self.offset = offset


def mark(text: bytes | msgspec.Raw) -> bytes:
    """The first byte of a JSON text, which tells its type; empty when there is none."""
    return _first(text)[0] if len(text) else b""


def decode(text: bytes) -> Any:
    """Decodes one JSON text, fast lane first, the standard library where that refuses.

    The slow lane reads unpaired surrogates, which the fast lane refuses. Integers of any size come back exact, and
    there fractions too: as ``Decimal`` where a double would change them.
    ``NaN`` and ``Infinity`` are no JSON and are refused in both lanes.

    Raises:
        NotJson: With the reason a ``gap`` record needs.
    """
    try:
        return _decode_any(text)
    except RecursionError:
        raise NotJson("nested too deeply", "too_deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _slow(text)


def decode_values(text: bytes) -> Any:
    """Decodes one JSON text with every object as the list of its values, so that a member written twice gives both.

    Raises:
        NotJson: As for ``decode``.
    """
    return _slow(text, lambda pairs: [value for _, value in pairs])


def _refuse_constant(name: str) -> Any:
    raise NotJson(f"{name} is no JSON", "bad_json")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson("not UTF-8", "bad_utf8", error.start) from None


def _slow(data: bytes, pairs: Any = None, number: Any = None) -> Any:
    text = _text(data)
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            object_pairs_hook=pairs,
            parse_int=number or _int,
            parse_float=number or _fraction,
        )
    except RecursionError:
        raise NotJson("nested too deeply", "too_deep") from None
    except json.JSONDecodeError as error:
        reason = "nul" if "\0" in text else "bad_json"
        raise NotJson(error.msg, reason, len(text[: error.pos].encode("utf-8", "surrogatepass"))) from None


def _int(text: str) -> int | Decimal:
    # int() refuses more than 4,300 digits; Decimal keeps them exactly.
    return int(text) if len(text) < 4000 else Decimal(text)


def _fraction(text: str) -> float | Decimal:
    # The slow lane is for texts that are kept exactly: what a double changes stays as it was written.
    return float(text) if number_fits(text) else Decimal(text)


def lossless(text: bytes) -> bool:
    """Says whether a JSON text may stand as a value in a record.

    Args:
        text: One JSON value, already known to parse.

    Returns:
        True when nothing is lost by decoding and encoding it: numbers fit (ASR-032), no key repeats, no surrogate
        stands alone. Escapes and white space may differ.
    """
    if text[:1] == b"{":
        try:
            if _plainly_lossless(text):
                return True
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
    if not _LONG_DIGITS.search(text):
        try:
            if _encode(_decode_any(text)) == _compact(text, indent=-1):
                return True
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the slow lane below decides
    try:
        value = _slow(text, _pairs, _number)
    except NotJson:
        return False
    return not (b"\\u" in text and has_lone(value))


def number_fits(text: str) -> bool:
    """Says whether the JSON number ``text`` survives in every reader (ASR-032)."""
    if text.lstrip("-").isdigit():
        return len(text) < 18 and abs(int(text)) <= MAX_SAFE
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        return False
    return len(text) < 400 and Decimal(text) == Decimal(repr(value))


def _number(text: str) -> int:
    if not number_fits(text):
        raise NotJson("number does not fit", "bad_json")
    return 0


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJson("key repeats", "bad_json")
    return found


def has_lone(value: Any) -> bool:
    """Whether any string in a decoded value holds a surrogate without its partner."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _LONE.search(item):
                return True
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
    return False


_DIGITS = bytes(48 if 48 <= i < 58 else 101 if i in b"eE" else 43 if i in b"+-" else 32 for i in range(256))
_LONG = b"0" * 16
"""Digits, as ``_DIGITS`` shows them, of an integer that may not fit."""
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_CONTAINERS = (b"{", b"[")
_SMALL = 1024
"""Bytes up to which a whole text is decoded and encoded: Python looks at the members of longer ones."""
_TINY = 4
"""Bytes of a scalar other than a string that no reader can get wrong, whatever they are."""
_SHORT_SCALAR = re.compile(rb"-?[0-9]{1,15}|true|false|null").fullmatch
"""A scalar other than a string that no reader can get wrong."""
_DEEP = 8


def fits(text: bytes | msgspec.Raw, deep: int = 0) -> bool:
    """``lossless`` for a text that the fast lane has read (it refuses unpaired surrogates), and cheaper.

    For texts that stand in a record as their own bytes: every number survives (ASR-032), and no object has a member
    twice, of which one reader would see the first and another the last. Long strings, most of what agents write, are
    passed over whole.
    """
    first = mark(text)
    if first == b'"':
        return True
    if first not in _CONTAINERS or deep > _DEEP:
        # A scalar, white space in front, or nested deeply.
        return _digits_fit(bytes(text)) and (b"{" not in bytes(text) or _survives(bytes(text)))
    try:
        if len(text) <= _SMALL and _is_canonical(bytes(text)):
            return True
        if first == b"{":
            members = _members(text)
            if _tight_length(members) != len(text):
                return _fits_loosely(bytes(text), deep)
            parts = list(members.values())
        else:
            parts = _items(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _survives(bytes(text))  # a key that the fast lane refuses
    for part in parts:
        first = _first(part)[0]
        if first == b'"':
            continue
        if first in _CONTAINERS:
            if not fits(part, deep + 1):
                return False
        elif len(part) > _TINY and not _SHORT_SCALAR(part) and not _digits_fit(bytes(part)):
            return False
    return True


def _tight_length(members: dict[str, msgspec.Raw]) -> int:
    """The length of an object of these members without white space, escapes in keys, or a member written twice."""
    names = len("".join(members).encode())
    return 1 + max(1, names + sum(map(len, members.values())) + 4 * len(members))


def _fits_loosely(text: bytes, deep: int) -> bool:
    """``fits`` for an object with white space or escapes in keys, or one that has a member twice."""
    tight = _compact(text, indent=-1)
    return fits(tight, deep) if len(tight) < len(text) else _survives(text)


def _survives(text: bytes) -> bool:
    try:
        _slow(text, _pairs, _number)
    except NotJson:
        return False
    return True


def _is_canonical(text: bytes) -> bool:
    """Whether the encoder would write a text just as it stands, and no run of digits can be too long an integer."""
    return _LONG not in text.translate(_DIGITS) and _encode(_decode_any(text)) == text


def _digits_fit(text: bytes) -> bool:
    shape = text.translate(_DIGITS)
    if not (_LONG in shape or b"0e000" in shape or b"0e+000" in shape):
        return True
    try:
        _slow(text, None, _number)
    except NotJson:
        return False
    return True


def _plainly_lossless(text: bytes) -> bool:
    """The fastest proof of ``lossless``: an object without white space, escapes in keys or containers in it.

    Its length is the sum of its members' lengths; a repeated key would leave a rest.
    """
    members = _members(text)
    for value in members.values():
        if _first(value)[0] != b'"' and not _SHORT_SCALAR(value):
            return False
    return _tight_length(members) == len(text)


def has_lone_surrogate(text: str) -> bool:
    """Says whether a string holds a surrogate without its partner."""
    return _LONE.search(text) is not None


def readable(text: bytes) -> bool:
    """Whether the fast lane reads a JSON text; it refuses unpaired surrogates, which few readers take."""
    try:
        _decode_any(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def without_lone_surrogates(text: str) -> str:
    """The string with U+FFFD in place of each unpaired surrogate; the exact text belongs in a blob."""
    return _LONE.sub("\ufffd", text)


def clean_text(text: bytes) -> bytes:
    """The JSON text with the escape of U+FFFD for that of each unpaired surrogate, so that every reader takes it.

    Every other byte stays what it is and where it is.
    """
    return _ESCAPE.sub(_clean_escape, text)


def _clean_escape(found: re.Match[bytes]) -> bytes:
    return found.group() if found.group(1) is None else b"\\ufffd"


def encode_clean(value: Any) -> bytes:
    """JSON of a decoded value with U+FFFD for each unpaired surrogate, so that every reader takes it."""
    return _encode(without_lone(value))


def exact_text(value: Any) -> str:
    """JSON text of a decoded value in ASCII, unpaired surrogates as the escapes they were."""
    if isinstance(value, dict):
        members = [f"{json.dumps(key)}:{exact_text(item)}" for key, item in value.items()]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join([exact_text(item) for item in value]) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def without_lone(value: Any) -> Any:
    """A decoded value with U+FFFD in place of each unpaired surrogate."""
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list):
        return [without_lone(item) for item in value]
    if isinstance(value, dict):
        return {without_lone_surrogates(key): without_lone(item) for key, item in value.items()}
    return value
