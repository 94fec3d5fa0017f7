"""What a live connection may write of its frames: without answers to secret questions and raw chain of thought.

Must never know: files, records.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness.codex.app_server.shapes import frame_in
from callsheet.harness.codex.app_server.survey import Secrets
from callsheet.wire.masks import hidden, masked, spellings


class Masks:
    """Masks the frames of one connection, in their order."""

    def __init__(self) -> None:
        self._secrets = Secrets(keep_reasoning=False)
        self._forms: list[bytes] = []

    def masked(self, data: bytes, *, from_server: bool) -> bytes:
        """A frame as it may be written; of the same length, and JSON if it was."""
        frame = frame_in(Raw(data), from_server=from_server)
        if frame is not None:
            found = self._secrets.of(frame)
            for part in found.parts:
                text = bytes(part)
                if len(text) > 2:
                    data = data.replace(text, hidden(text))
            for word in found.words:
                forms = {*self._forms, *spellings(word)}
                self._forms = sorted(forms, key=lambda form: (-len(form), form))
        return masked(data, self._forms)[0] if self._forms else data
