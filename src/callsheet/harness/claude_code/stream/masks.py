"""What a live connection may write of its frames: without answers to secret questions (ASR-283).

Must never know: files, records.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port import masks
from callsheet.harness._port.masks import Hidden
from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness.claude_code.stream.asks import WAITING_MOST, secrets_in, words_in


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


class Masks(masks.Masks):
    """Masks the frames of one connection, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets = Secrets()

    def hides(self, frame: Raw, *, from_agent: bool) -> Hidden:
        """Answers to secret questions."""
        parts = self._secrets.of(members_of(frame), from_agent=from_agent)
        return Hidden(parts, [word for part in parts for word in words_in(value_of(part))])
