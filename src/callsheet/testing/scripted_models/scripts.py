"""Scripts for models that take whole responses: which script answers a request, and how far each was played.

A request is answered by the first script whose mark stands in a user's words. A request that offers no tools is the
agent's own business and takes nothing from a script.

Must never know: sockets, files, any one agent or API.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from callsheet.testing.scripted_models.responses import Response, Say, respond


class Asked(Struct, frozen=True):
    """A request that came: which script answered it, and its body."""

    script: str
    body: dict[str, Any]


class Scripted(Struct):
    """A model with a script for each conversation.

    Attributes:
        scripts: Mark to script; the mark that stands in a user's words, the empty one for all others.
        asked: Every request, in order.
    """

    scripts: Mapping[str, Sequence[Response]]
    asked: list[Any] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)
    _serial: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: Any = field(default_factory=threading.Lock)

    def mark_in(self, told: Any) -> str:
        """The mark of the script that what users said asks for."""
        words = json.dumps(told, ensure_ascii=False)
        return next((mark for mark in self.scripts if mark and mark in words), "")

    def answer(self, asked: Asked, aside: Response) -> tuple[Response, int]:
        """Keeps a request; gives what is said to it, and its number.

        Args:
            asked: The request.
            aside: What is said to one that offers no tools.
        """
        with self._lock:
            self.asked.append(asked)
            number = next(self._serial)
            if not asked.body.get("tools"):
                return aside, number
            script = self.scripts.get(asked.script, ())
            at = self._positions.get(asked.script, 0)
            self._positions[asked.script] = at + 1
            if at >= len(script):
                return respond(Say(f"(the script {asked.script!r} has no response {at + 1})")), number
            return script[at], number
