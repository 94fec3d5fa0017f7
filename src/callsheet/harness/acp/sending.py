"""Frames that a client sends: requests, notifications, answers, refusals with their codes.

Must never know: what they are about.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, text_of

NOT_FOUND, INVALID, INTERNAL, CANCELLED, MISSING = -32601, -32602, -32603, -32800, -32002
"""Error codes of JSON-RPC, and of the protocol: a request that was cancelled, no such thing."""


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    """A frame that wants an answer."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: dict[str, Any]) -> bytes:
    """A frame that wants no answer."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})


def response(number: Raw, result: Any) -> bytes:
    """The answer to a request of the agent, under its id as it was written."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": result})


def refusal(number: Raw, code: int, message: str) -> bytes:
    """The error with which a request of the agent is refused."""
    error = {"code": code, "message": message}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error})


def message_of(error: Raw) -> str | None:
    """What a JSON-RPC error says."""
    return text_of(members_of(error).get("message", ABSENT))
