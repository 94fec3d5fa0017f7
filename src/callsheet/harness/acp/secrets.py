"""Answers to secret questions, kept out of everything that is written (ASR-283).

Owns the masking of a live connection's frames before they reach the disk: the answer in the frame that carries it, and
from then on the same words wherever an agent repeats them, also inside the base64 of a terminal's output.

Must never know: what makes a value secret, files.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

from msgspec import Raw

from callsheet.harness._port.parts import value_of
from callsheet.wire.masks import hidden, masked, spellings

_DATA = re.compile(rb'("data"\s*:\s*")([A-Za-z0-9+/]+={0,2})(")')


class Secrets:
    """The secrets of one connection."""

    def __init__(self) -> None:
        self._forms: list[bytes] = []
        self._waiting: dict[bytes, bytes] = {}

    def sent(self, frame: bytes, values: list[Raw]) -> None:
        """A frame that will be sent holds secret values."""
        if not values:
            return
        clean = frame
        for raw in values:
            clean = clean.replace(bytes(raw), hidden_value(bytes(raw)))
            for word in words_of(value_of(raw)):
                self._forms += spellings(word)
        self._forms = sorted(set(self._forms), key=lambda form: (-len(form), form))
        self._waiting[frame] = clean

    def masked(self, frame: bytes, *, from_agent: bool) -> bytes:
        """A frame as it may be written."""
        if not self._forms:
            return self._waiting.pop(frame, frame) if self._waiting and not from_agent else frame
        clean = frame if from_agent else self._waiting.pop(frame, frame)
        clean, _ = masked(clean, self._forms)
        return _DATA.sub(self._in_data, clean) if b'"data"' in clean else clean

    def _in_data(self, found: re.Match[bytes]) -> bytes:
        try:
            told = b64decode(found.group(2), validate=True)
        except ValueError:
            return found.group()
        clean = told
        for form in self._forms:
            clean = clean.replace(form, b"*" * len(form))
        return found.group() if clean == told else found.group(1) + b64encode(clean) + found.group(3)


def hidden_value(raw: bytes) -> bytes:
    """A secret JSON value of the same length and shape: texts as asterisks, a bare number as null."""
    if raw[:1] in (b'"', b"{", b"["):
        return hidden(raw)
    return b"null".ljust(len(raw)) if len(raw) >= 4 else b"0".rjust(len(raw))


def words_of(value: object) -> list[str]:
    """The texts of an answer; numbers as they are written, true and false are no secret."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [word for item in value.values() for word in words_of(item)]
    if isinstance(value, list):
        return [word for item in value for word in words_of(item)]
    return [str(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []
