"""Addresses: what is one, what of it may be seen, and where secrets may go."""

from __future__ import annotations

import pytest

from callsheet.errors import UsageError
from callsheet.live import Address
from callsheet.live.address import shown_address


@pytest.mark.parametrize(
    ("text", "shown", "port", "path"),
    [
        ("ws://127.0.0.1:4500", "ws://127.0.0.1:4500", 4500, ""),
        ("ws://127.0.0.1:4500/acp", "ws://127.0.0.1:4500/acp", 4500, "/acp"),
        ("WS://Example.org", "ws://example.org", 80, ""),
        ("wss://example.org/a/b", "wss://example.org/a/b", 443, "/a/b"),
        ("wss://[::1]:9/x", "wss://[::1]:9/x", 9, "/x"),
        ("tcp://localhost:3000", "tcp://localhost:3000", 3000, ""),
        ("unix:///run/agent @1.sock", None, None, None),
        ("unix:///run/agent@1.sock", "unix:///run/agent@1.sock", None, "/run/agent@1.sock"),
        ("wss://me:hunter22@example.org/x", "wss://***@example.org/x", 443, "/x"),
        ("ws://localhost/x?key=hunter22&b", "ws://localhost/x?key=***&***", 80, "/x"),
    ],
)
def test_an_address(text: str, shown: str | None, port: int | None, path: str | None) -> None:
    if shown is None:
        with pytest.raises(UsageError, match="no blanks"):
            Address.parse(text)
        return
    address = Address.parse(text)
    assert (address.shown, address.port, address.path) == (shown, port, path)
    assert "hunter22" not in repr(address.shown)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("4500", "no address"),
        ("http://localhost:1", "no address"),
        ("ws://", "name the host"),
        ("ws://:4500", "name the host"),
        ("ws://me:hunter22@localhost:port", "not readable"),
        ("ws://me:hunt/er22@localhost:1", "not readable"),
        ("ws://localhost:99999", "not readable"),
        ("ws://[::1:4", "not readable"),
        ("tcp://localhost", "name the port"),
        ("tcp://localhost:1/x", "no place for a path"),
        ("tcp://me:hunter22@localhost:1", "no place for a path"),
        ("ws://localhost:1/#x", "no fragment"),
        ("ws://local\thost:1", "no blanks"),
        ("ws://lücalhost:1", "ASCII"),
        ("unix://", "name the socket's file"),
        ("ws://me:hunter22@example.org/", "to this machine only"),
    ],
)
def test_no_address(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        Address.parse(text)
    assert "hunt" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "ws://127.0.0.1:1",
        "ws://127.9.9.9:1",
        "ws://[::1]:1",
        "ws://localhost:1",
        "wss://example.org",
        "unix:///s",
    ],
)
def test_a_token_goes_where_nobody_reads_it(text: str) -> None:
    assert Address.parse(text, token="t0ken-9f3c").secrets == ("t0ken-9f3c",)


@pytest.mark.parametrize(
    "text", ["ws://example.org", "ws://10.0.0.1:1", "ws://localhost.example.org", "tcp://localhost:1"]
)
def test_a_token_goes_nowhere_else(text: str) -> None:
    with pytest.raises(UsageError) as error:
        Address.parse(text, token="t0ken-9f3c")
    assert "t0ken" not in str(error.value)


@pytest.mark.parametrize("token", ["", "two words", "line\r\nX-More: 1", "tökén"])
def test_a_token_that_cannot_be_sent(token: str) -> None:
    with pytest.raises(UsageError, match="token"):
        Address.parse("ws://localhost:1", token=token)


def test_what_is_no_address_is_shown_as_it_is() -> None:
    assert shown_address("claude --acp") == "claude --acp"
    assert shown_address("ws://a:b@c@host/x?y=z") == "ws://***@host/x?y=***"
