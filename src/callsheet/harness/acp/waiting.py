"""What the agent asks of a person, and what answers it in the protocol's words.

Owns: permissions with every option as offered, forms and URLs, their ids (those of the records), and how each kind
takes an answer. 'Cancelled' is the protocol's word for a request that nobody decides.

Must never know: who answers, records, turns.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from callsheet.harness._port.asking import Ask, Asking, Fit, Told, action_of, elicited, option_in
from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, part_at, text_of
from callsheet.harness._port.rpc import Frame, Names, Rpc
from callsheet.harness.acp.asks import option_of
from callsheet.seam import Answer, Cancelled, FormAsked, Permission, Rejected, UrlAsked, Waiting

PERMISSION, ELICITATION = "session/request_permission", "elicitation/create"
ASKS = frozenset({PERMISSION, ELICITATION})
"""Methods by which an agent asks a person."""
NO_TITLE = "Permission"
RPC = Rpc(jsonrpc="2.0")
"""How frames are written."""


class Requests(Asking):
    """The requests of one connection."""

    def __init__(self) -> None:
        super().__init__(FITS, RPC.response)
        self._names: dict[str | None, Names] = {}

    def asked(self, frame: Frame, main: str | None) -> Ask | None:
        """A request; None when it cannot be understood.

        Args:
            frame: The request.
            main: The session that a request without one is about.
        """
        params = members_of(frame.params)
        if mark(frame.params) != b"{" or frame.id is None:
            return None
        session = text_of(params.get("sessionId", ABSENT)) or main
        key, _ = self._names.setdefault(session, Names()).of(frame.id, frame.params)
        number = Raw(bytes(frame.number))
        permission = frame.method == PERMISSION
        waiting = _permission(key, params) if permission else _elicitation(key, params)
        if waiting is None:
            return None
        nobody = CANCELLED if permission else action_of("cancel", None)
        return Ask(waiting=waiting, wire=number, unanswered=RPC.response(number, nobody))


# -- what is asked ----------------------------------------------------------------------------------------------


def _permission(key: str, params: dict[str, Raw]) -> Permission:
    subject = params.get("subject", ABSENT)
    call = members_of(params.get("toolCall", ABSENT)) or members_of(part_at(subject, "toolCall"))
    arguments = call.get("rawInput", ABSENT)
    command = text_of(part_at(subject, "command")) or text_of(part_at(arguments, "command"))
    title = text_of(params.get("title", ABSENT)) or text_of(call.get("title", ABSENT))
    return Permission(
        request_id=key,
        call=text_of(call.get("toolCallId", ABSENT)) or text_of(part_at(subject, "toolCallId")),
        title=title or NO_TITLE,
        command=command,
        description=text_of(params.get("description", ABSENT)),
        options=tuple(
            option
            for item in items_of(params.get("options", ABSENT))
            if (option := option_of(item)) is not None
        ),
        input=Raw(bytes(arguments)) if arguments else None,
    )


def _elicitation(key: str, params: dict[str, Raw]) -> Waiting | None:
    mode = text_of(params.get("mode", ABSENT)) or ("url" if "url" in params else "form")
    title = text_of(params.get("message", ABSENT)) or ""
    call = text_of(params.get("toolCallId", ABSENT))
    url = text_of(params.get("url", ABSENT))
    schema = params.get("requestedSchema", ABSENT)
    if mode == "url" and url:
        return UrlAsked(request_id=key, call=call, title=title, url=url)
    if mode != "form" or mark(schema) != b"{":
        return None
    whole, names = secrets_of(params)
    fields = set(members_of(part_at(schema, "properties")))
    secret = whole or (bool(names) and names == fields)
    return FormAsked(request_id=key, call=call, title=title, schema=Raw(bytes(schema)), secret=secret)


# -- what is answered -------------------------------------------------------------------------------------------

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
"""The answer to a permission that nobody decides."""


def _to_permission(ask: Ask, answer: Answer) -> Told:
    if isinstance(answer, Cancelled):
        return CANCELLED, "cancelled"
    chosen = option_in(ask, answer)
    if isinstance(chosen, Rejected):
        return chosen
    return {"outcome": {"outcome": "selected", "optionId": chosen}}, chosen


FITS: dict[type, Fit] = {Permission: _to_permission, **elicited()}
"""How each kind of request takes an answer."""
