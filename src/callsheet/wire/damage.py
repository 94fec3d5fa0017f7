"""Whole JSON values inside a damaged line.

Owns: what can be had from a line that is no single JSON value. Two records fused without their LF (``}{``), a
record followed by NUL bytes, a byte-order mark before the first record. Only values that are complete are given
back, each with its place; every byte that belongs to none is reported as a hole. Nothing is repaired or guessed.

Must never know: records, files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


class Piece(NamedTuple):
    """A complete JSON object found in a damaged line, or (``reason`` set) a hole between objects.

    Attributes:
        start: Byte offset inside the line.
        data: The bytes.
        reason: Empty for an object; else ``nul``, ``torn_tail`` or ``bad_json``.
    """

    start: int
    data: bytes
    reason: str = ""


def _refuse(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is no JSON", name, 0)


def _pass_over(_digits: str) -> None:
    """A number of any length; only where it ends matters here."""


_scan = json.JSONDecoder(strict=True, parse_constant=_refuse, parse_int=_pass_over, parse_float=_pass_over)


def salvage(
    line: bytes, *, ended: bool = True, unit: Callable[[dict[str, Any]], bool], most: int = 1000
) -> list[Piece]:
    """Takes a line that is no single JSON value apart.

    Args:
        line: The line without its LF, valid UTF-8 (others are one ``bad_utf8`` gap, the caller's affair).
        ended: False when the file ended before the LF: an unfinished last object is then ``torn_tail``.
        unit: Says whether an object found after a hole is a record of its own (and not a part of the torn one).
        most: Objects to take at most; what follows is one hole.

    Returns:
        Objects and holes in order; together they cover every byte of the line that is not white space.
    """
    text = line.decode("utf-8")
    pieces: list[Piece] = []
    at = 0
    byte = 0
    size = len(text)

    def advance(to: int) -> bytes:
        nonlocal at, byte
        data = text[at:to].encode("utf-8")
        at = to
        byte += len(data)
        return data

    while at < size:
        char = text[at]
        if char in " \t\r\n\ufeff":
            advance(at + 1)
            continue
        start = byte
        if char == "\0":
            to = at
            while to < size and text[to] == "\0":
                to += 1
            pieces.append(Piece(start, advance(to), "nul"))
            continue
        if char == "{" and len(pieces) < most:
            try:
                _, to = _scan.raw_decode(text, at)
            except (json.JSONDecodeError, RecursionError):
                to = -1
            if to > 0:
                pieces.append(Piece(start, advance(to)))
                continue
        # A hole: up to the next place where a whole object or a NUL run begins.
        to = _next_start(text, at + 1, unit) if len(pieces) < most else size
        last = to >= size
        pieces.append(Piece(start, advance(to), "torn_tail" if last and not ended else "bad_json"))
    return pieces


def _next_start(text: str, at: int, unit: Callable[[dict[str, Any]], bool]) -> int:
    nul = text.find("\0", at)
    end = nul if nul >= 0 else len(text)
    tries = 0
    to = text.find('{"', at, end)
    while to >= 0 and tries < 64:
        tries += 1
        try:
            value, _ = _scan.raw_decode(text, to)
        except (json.JSONDecodeError, RecursionError):
            to = text.find('{"', to + 1, end)
            continue
        if isinstance(value, dict) and unit(value):
            return to
        to = text.find('{"', to + 1, end)
    return end
