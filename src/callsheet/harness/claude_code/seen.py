"""What is known of a session's calls when a line of it is read.

Owns the questions that the writers of calls, results and companions ask. For a stored file the survey answers them,
which has read it to the end; for frames the fold does, which knows only what came before.

Must never know: who answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from callsheet.harness.claude_code.deliveries import Delivery
from callsheet.harness.claude_code.mcp_servers import Servers
from callsheet.harness.claude_code.replies import CallPlace


class Sent(Protocol):
    """Which requests carried which results."""

    @property
    def present(self) -> bool:
        """Whether the source records requests at all."""

    def delivery(self, offset: int, index: int) -> Delivery | None:
        """The request that carried the result block at a place."""


class Seen(Protocol):
    """Calls of one source."""

    mcp: Servers
    mcp_calls: dict[str, tuple[str, str] | None]

    @property
    def evidence(self) -> Sent:
        """What the source's own requests prove."""

    def duplicates(self, call_id: str) -> Sequence[Any]:
        """The several calls with this native id; empty when there is at most one."""

    def sole(self, call_id: str | None) -> str | None:
        """The native id, unless it stands on several calls: then it names none of them."""

    def derived_id(self, call_id: str, uuid: str | None) -> str | None:
        """The derived id of the call on the record ``uuid``, where the source tells several such calls apart."""

    def free_id(self, wanted: str) -> str:
        """An id made for a call without one, other than every native id."""

    def is_taken(self, call_id: str) -> bool:
        """Whether an id that no call has is, or may be, one made for a call."""

    def answered(self, call_id: str, uuid: str | None) -> CallPlace | None:
        """The call that a result answers, as far as it is certain."""

    def contradicts(self, call_id: str, call: CallPlace, uuid: str | None) -> bool:
        """Whether a result names another record than that of its only call."""

    def reply_follows(self, line: int, sidechain: bool, call: CallPlace | None) -> bool:
        """Whether a reply of the model stands after a result."""
