"""An address at which an agent listens: read, checked, and shown without what is secret in it.

Owns ``Address``. Credentials go out over TLS, to this machine, or not at all. Nothing is guessed: a host that is not
named is an error, an address without TLS stays without, and a redirection is not followed.

Must never know: protocols, sockets.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from callsheet.errors import UsageError

SCHEMES = ("ws", "wss", "tcp", "unix")
HIDDEN = "***"
_PORTS = {"ws": 80, "wss": 443}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


class Address(Struct, frozen=True, kw_only=True):
    """Where an agent listens.

    Attributes:
        scheme: ``ws``, ``wss``, ``tcp`` or ``unix``.
        host: Name or number of a host; None for a socket of the file system.
        port: Its port.
        path: The socket's file, or the resource that is asked for.
        query: What follows the resource; it may be secret.
        user: A name, and the password, that the address brought.
        token: What is sent as a bearer token.
    """

    scheme: str
    host: str | None = None
    port: int | None = None
    path: str = ""
    query: str = ""
    user: tuple[str, str] | None = None
    token: str | None = None

    @property
    def shown(self) -> str:
        """The address as it may be seen and written down: no user, no password, no values of a query."""
        if self.host is None:
            return f"{self.scheme}://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{HIDDEN}@" if self.user is not None else ""
        port = "" if self.port == _PORTS.get(self.scheme) else f":{self.port}"
        return f"{self.scheme}://{user}{host}{port}{self.path}{_veiled(self.query)}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written down, wherever it turns up again."""
        return tuple(one for one in (self.token, *(self.user or ())[1:]) if one)

    @classmethod
    def parse(cls, text: str, *, token: str | None = None) -> Address:
        """Reads an address.

        Args:
            text: ``ws://HOST[:PORT][/PATH]``, ``wss://…``, ``tcp://HOST:PORT`` or ``unix://PATH``.
            token: A bearer token to send.

        Raises:
            UsageError: It is none, or would give a secret away.
        """
        found = _SCHEME.match(text)
        scheme = found.group(1).lower() if found is not None else ""
        if found is None or scheme not in SCHEMES:
            raise _wrong(text, f"no address; one begins with {', '.join(f'{one}://' for one in SCHEMES)}")
        if any(sign <= " " or sign == "\x7f" for sign in text):
            raise _wrong(text, "an address has no blanks and no control characters")
        if token is not None and _HEADER_SAFE.fullmatch(token) is None:
            raise _wrong(text, "the token is empty, or has characters that cannot be sent")
        if scheme == "unix":
            if found.end() == len(text):
                raise _wrong(text, "name the socket's file")
            return cls(scheme=scheme, path=str(Path(text[found.end() :]).absolute()), token=token)
        if not text.isascii():
            raise _wrong(text, "an address is written in ASCII (percent-encoded)")
        address = cls._of_host(scheme, text, token)
        if (token is not None or address.user is not None) and not address._is_safe:
            raise _wrong(text, f"over {scheme}:// secrets go to this machine only; wss:// is for others")
        return address

    @classmethod
    def _of_host(cls, scheme: str, text: str, token: str | None) -> Address:
        try:
            split = urlsplit(text)
            host, port, user = split.hostname, split.port or _PORTS.get(scheme), _user_of(split)
        except ValueError:
            raise _wrong(text, "the host or the port is not readable") from None
        if not host:
            raise _wrong(text, "name the host (this machine is localhost)")
        if port is None:
            raise _wrong(text, "name the port")
        if split.fragment:
            raise _wrong(text, "an address has no fragment (#)")
        if scheme == "tcp" and (split.path or split.query or user is not None or token is not None):
            raise _wrong(text, "tcp:// has a host and a port, and no place for a path, a user or a token")
        if user is not None and token is not None:
            raise _wrong(text, "a user and a token cannot both be sent")
        return cls(
            scheme=scheme,
            host=host,
            port=port,
            path=split.path,
            query=split.query,
            user=user,
            token=token,
        )

    @property
    def _is_safe(self) -> bool:
        """Whether what is sent can be read by nobody in between."""
        return self.scheme == "wss" or self.is_here

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine."""
        if self.host is None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def shown_address(text: str) -> str:
    """A text that may be an address, without what may be secret in it; rather too little than too much of it."""
    found = _SCHEME.match(text)
    if found is None:
        return text
    rest = text[found.end() :]
    if "@" in rest:
        rest = f"{HIDDEN}@{rest.rpartition('@')[2]}"
    place, mark, query = rest.partition("?")
    return found.group() + place + (_veiled(query) if mark else "")


def _veiled(query: str) -> str:
    """A query without its values."""
    if not query:
        return ""
    return "?" + "&".join(
        f"{name}={HIDDEN}" if mark else HIDDEN
        for name, mark, _ in (piece.partition("=") for piece in query.split("&"))
    )


def _user_of(split: SplitResult) -> tuple[str, str] | None:
    if split.username is None:
        return None
    return unquote(split.username), unquote(split.password or "")


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(f"{shown_address(text)}: {why}")
