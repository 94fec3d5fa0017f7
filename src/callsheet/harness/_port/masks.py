"""What a live connection may write of its frames: nothing that must not be kept (ASR-283, decision 11).

Owns the masking of single frames, in their order: parts are hidden where they stand, words wherever they come again.
Which these are the protocol says.

Must never know: files, records.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from callsheet.harness._port.parts import whole_text
from callsheet.wire.masks import hidden, masked, spellings


class Hidden(Struct):
    """What a frame holds that must not be kept.

    Attributes:
        parts: JSON values whose strings are hidden where they stand.
        words: Values that nothing may hold from here on.
    """

    parts: list[Raw] = []
    words: list[str] = []


class Masks:
    """Masks the frames of one connection."""

    def __init__(self) -> None:
        self._forms: list[bytes] = []

    def hides(self, frame: Raw, *, from_agent: bool) -> Hidden:
        """What is to be hidden of a frame; frames come in their order."""
        raise NotImplementedError

    def masked(self, frame: bytes, /, *, from_agent: bool) -> bytes:
        """A frame as it may be written; JSON if it was, and of the same length unless it held half a character."""
        clean = whole_text(frame)
        found = self.hides(Raw(clean), from_agent=from_agent)
        for text in (bytes(part) for part in found.parts):
            frame = clean = clean.replace(text, hidden(text)) if len(text) > 2 else clean
        for word in found.words:
            forms = {*self._forms, *spellings(word)}
            self._forms = sorted(forms, key=lambda form: (-len(form), form))
        return masked(frame, self._forms)[0] if self._forms else frame
