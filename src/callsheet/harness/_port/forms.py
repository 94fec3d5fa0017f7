"""Forms that an agent asks a person to fill in: what in them is secret (ASR-283).

Owns the marks of a secret: ``format: password`` and ``writeOnly`` in a form's schema, and members of a vendor's
``_meta``. The same for every protocol that carries MCP elicitations.

Must never know: records.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port.parts import ABSENT, members_of, text_of

SECRET_MARKS = ("isSecret", "is_secret", "secret")
"""Members of a vendor's ``_meta`` that mark a value as secret when true."""


def _is_marked(raw: Raw) -> bool:
    """Whether a part's ``_meta`` marks it as a secret, in whatever vendor's corner."""
    for vendor in members_of(raw).values():
        told = members_of(vendor)
        if any(bytes(told.get(name, ABSENT)) == b"true" for name in SECRET_MARKS):
            return True
    return False


def secrets_of(members: dict[str, Raw]) -> tuple[bool, set[str]]:
    """Whether an elicitation asks for a secret as a whole, and which members of its form do."""
    whole = _is_marked(members.get("_meta", ABSENT))
    found: set[str] = set()
    schema = members_of(members.get("requestedSchema", ABSENT))
    for name, raw in members_of(schema.get("properties", ABSENT)).items():
        told = members_of(raw)
        if (
            text_of(told.get("format", ABSENT)) == "password"
            or bytes(told.get("writeOnly", ABSENT)) == b"true"
            or _is_marked(told.get("_meta", ABSENT))
        ):
            found.add(name)
    return whole, found
