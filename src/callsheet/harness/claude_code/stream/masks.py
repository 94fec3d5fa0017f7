"""What a live connection may write of its frames: without answers to secret questions (ASR-283).

Must never know: files, records.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness.claude_code.stream.asks import WAITING_MOST, secrets_in, words_in
from callsheet.wire.masks import hidden, masked, spellings


class Secrets:
    """Which parts of frames are answers to secret questions; frames come in their order."""

    def __init__(self) -> None:
        self._asked: dict[str, dict[str, Raw]] = {}

    def of(self, frame: dict[str, Raw], *, from_agent: bool) -> list[Raw]:
        """The secret parts of a frame.

        Args:
            frame: Its members.
            from_agent: Who sent it.
        """
        kind = text_of(frame.get("type", ABSENT))
        if kind == "control_request" and from_agent:
            request = members_of(frame.get("request", ABSENT))
            name = text_of(frame.get("request_id", ABSENT))
            if text_of(request.get("subtype", ABSENT)) == "elicitation" and name is not None:
                while len(self._asked) >= WAITING_MOST:
                    self._asked.pop(next(iter(self._asked)))
                self._asked[name] = {member: Raw(bytes(raw)) for member, raw in request.items()}
        elif kind == "control_response" and not from_agent:
            response = members_of(frame.get("response", ABSENT))
            asked = self._asked.pop(text_of(response.get("request_id", ABSENT)) or "", None)
            if asked is not None:
                content = members_of(response.get("response", ABSENT)).get("content", ABSENT)
                whole, names = secrets_in(asked)
                answers = members_of(content)
                if whole:
                    return [content] if content else []
                return [answers[name] for name in names if name in answers]
        return []


class Masks:
    """Masks the frames of one connection, in their order."""

    def __init__(self) -> None:
        self._secrets = Secrets()
        self._forms: list[bytes] = []

    def masked(self, data: bytes, *, from_agent: bool) -> bytes:
        """A frame as it may be written; of the same length, and JSON if it was."""
        for part in self._secrets.of(members_of(Raw(data)), from_agent=from_agent):
            text = bytes(part)
            if len(text) > 2:
                data = data.replace(text, hidden(text))
            for word in words_in(value_of(part)):
                forms = {*self._forms, *spellings(word)}
                self._forms = sorted(forms, key=lambda form: (-len(form), form))
        return masked(data, self._forms)[0] if self._forms else data
