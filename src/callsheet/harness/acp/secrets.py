"""Answers to secret questions, kept out of everything that is written (ASR-283).

Owns the masking of a connection's frames, both directions in the order in which they pass: a form that asks for a
secret is remembered by its id, the answer is masked in the frame that carries it, and from then on the same words
wherever an agent repeats them, also inside the base64 of a terminal's output. It only watches: a client and a recorder
that stands between two others use it alike.

Must never know: files, who answers.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, members_of, part_at, value_of
from callsheet.harness._port.rpc import Id
from callsheet.harness.acp.shapes import frames_in
from callsheet.wire import lossless
from callsheet.wire.masks import hidden, masked, spellings

_DATA = re.compile(rb'("data"\s*:\s*")([A-Za-z0-9+/]+={0,2})(")')
_ASK = b"elicitation"
ASKED_MOST = 1000
"""Forms that are remembered until they are answered."""


class Secrets:
    """The secrets of one connection."""

    def __init__(self) -> None:
        self._forms: list[bytes] = []
        self._asked: dict[Id | None, tuple[bool, frozenset[str]]] = {}

    def masked(self, frame: bytes, *, from_agent: bool) -> bytes:
        """A frame as it may be written."""
        if from_agent:
            if _ASK in frame or b"\\u" in frame:
                self._ask(frame)
        elif self._asked:
            frame = self._answer(frame)
        if not self._forms:
            return frame
        clean, _ = masked(frame, self._forms)
        return _DATA.sub(self._in_data, clean) if b'"data"' in clean else clean

    def _ask(self, data: bytes) -> None:
        for frame in frames_in(data, from_agent=True):
            if frame.method != "elicitation/create" or frame.id is None:
                continue
            params = members_of(frame.params)
            whole, names = secrets_of(params)
            if whole or names:
                while len(self._asked) >= ASKED_MOST:
                    self._asked.pop(next(iter(self._asked)))
                fields = set(members_of(part_at(params.get("requestedSchema", ABSENT), "properties")))
                self._asked[frame.id] = (whole or names == fields, frozenset(names))

    def _answer(self, data: bytes) -> bytes:
        if b"\\u" in data and not lossless.readable(data):
            data = lossless.clean_text(data)  # else a secret with half a character would not be found again
        clean = data
        for frame in frames_in(data, from_agent=False):
            if frame.method is not None or frame.id not in self._asked:
                continue
            whole, names = self._asked.pop(frame.id)
            content = members_of(frame.result).get("content", ABSENT)
            if not content:
                continue
            secret = (
                [content] if whole else [raw for name, raw in members_of(content).items() if name in names]
            )
            for raw in secret:
                clean = clean.replace(bytes(raw), hidden_value(bytes(raw)))
                for word in words_of(value_of(raw)):
                    self._forms += spellings(word)
        self._forms = sorted(set(self._forms), key=lambda form: (-len(form), form))
        return clean

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
