"""Text with a record of its own that a request carries inside a tool result.

Owns: the index of such texts (reminders and hook context that attachments render, words of the user), and
the cut of them out of a sent text. Claude Code appends them to the last result of a message, each trimmed,
with an empty line before it. A piece is cut only where it stands, to the letter, between such joints; what
has no record of its own stays content (ASR-259, decision 7). Nothing here reads a text for its meaning, its
tags included.

Bounded: of a text only its length and hash are kept. The hash is Python's own, keyed anew in every process,
so no file can be made to collide.

Must never know: records, lines, requests.
"""

from __future__ import annotations

JOINT = "\n\n"
BLANKS = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's ``trim`` takes off; ``str.strip`` takes another set."""

_HEAD = 24
_LENGTHS = 512
_TRIES = 256  # joints inside one text, at most
_STEPS = 20_000  # of the search in one sent text; what it leaves stays content

Ranges = tuple[tuple[int, int], ...]
"""Half-open ranges in ascending order: of characters in a text, of parts in an array."""


class OwnTexts:
    """Every text seen so far that stands in a record of its own."""

    def __init__(self) -> None:
        self._texts: dict[int, bool] = {}  # hash of a text: whether an attachment rendered it
        self._lengths: dict[int, tuple[int, ...]] = {}  # hash of a text's head: lengths, newest first
        self._short: tuple[int, ...] = ()  # lengths of texts that are no longer than a head
        self._longest = 0

    def add(self, text: str, *, rendered: bool) -> None:
        """Takes a text in; a blank one is no text.

        Args:
            text: All of it.
            rendered: It is an attachment's rendering. Such a text may be cut off wherever a sent text ends
                with it; a user's words (which can be as short as ``ok``) only after a known result.
        """
        text = text.strip(BLANKS)
        if not text:
            return
        size = len(text)
        key = hash(text)
        self._texts[key] = rendered or self._texts.get(key, False)
        if rendered:
            self._longest = max(self._longest, size)
        if size <= _HEAD:
            if size not in self._short:
                self._short = (size, *self._short)
            return
        head = hash(text[:_HEAD])
        known = self._lengths.get(head, ())
        if size not in known:
            self._lengths[head] = (size, *known[: _LENGTHS - 1])

    def __contains__(self, text: str) -> bool:
        return hash(text.strip(BLANKS)) in self._texts

    def rendered(self, text: str) -> bool:
        """Whether an attachment rendered this text."""
        return self._texts.get(hash(text.strip(BLANKS)), False)

    def _lengths_at(self, text: str, start: int) -> tuple[int, ...]:
        """Lengths of the own texts that may stand at ``start``."""
        return (*self._lengths.get(hash(text[start : start + _HEAD]), ()), *self._short)

    def _longest_at(self, text: str, start: int, sizes: tuple[int, ...]) -> int:
        """Length of the longest own text that stands at ``start`` and ends at a joint or the end, else 0."""
        longest = 0
        for size in sizes:
            end = start + size
            if (
                longest < size
                and (end == len(text) or text.startswith(JOINT, end))
                and hash(text[start:end]) in self._texts
            ):
                longest = size
        return longest

    def left(self, text: str, start: int) -> Ranges:
        """What of ``text[start:]`` has no record of its own.

        Args:
            text: A sent text whose first ``start`` characters are the result itself.
            start: Where the appended pieces begin, each after a joint (the first of an empty result has
                none).

        Returns:
            Ranges of ``text``, joints of cut pieces not among them; empty when all of it is own text.
        """
        if text.startswith(JOINT, start) and hash(text[start + len(JOINT) :]) in self._texts:
            return ()
        left: list[tuple[int, int]] = []
        at = start
        steps = 0
        while at < len(text):
            joint = len(JOINT) if text.startswith(JOINT, at) else 0
            sizes = self._lengths_at(text, at + joint) if joint or at == 0 else ()
            steps += 1 + len(sizes)
            size = self._longest_at(text, at + joint, sizes)
            if size:
                at += joint + size
                continue
            end = text.find(JOINT, at + max(joint, 1)) if steps < _STEPS else -1
            end = len(text) if end < 0 else end
            if left and left[-1][1] == at:
                left[-1] = (left[-1][0], end)
            else:
                left.append((at, end))
            at = end
        return tuple(left)

    def end(self, text: str) -> int:
        """Where the run of rendered texts at the end of ``text`` begins, with the joint before it."""
        end = at = len(text)
        tries = 0
        while (at := text.rfind(JOINT, 0, at)) >= 0 and end - at - len(JOINT) <= self._longest:
            if self._texts.get(hash(text[at + len(JOINT) : end])):
                end = at
                tries = 0
            elif (tries := tries + 1) > _TRIES:
                break
        return 0 if self._texts.get(hash(text[:end])) else end
