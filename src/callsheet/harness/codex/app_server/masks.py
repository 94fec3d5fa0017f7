"""What a live connection may write of its frames: without answers to secret questions and raw chain of thought.

Must never know: files, records.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port import masks
from callsheet.harness._port.masks import Hidden
from callsheet.harness._port.rpc import frame_in
from callsheet.harness.codex.app_server.survey import Secrets


class Masks(masks.Masks):
    """Masks the frames of one connection, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets = Secrets(keep_reasoning=False)

    def hides(self, frame: Raw, *, from_agent: bool) -> Hidden:
        """Answers to secret questions, and raw chain of thought."""
        found = frame_in(frame, from_agent=from_agent)
        return self._secrets.of(found) if found is not None else Hidden()
