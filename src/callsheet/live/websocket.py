"""Frames as the messages of a WebSocket: one message, one frame (RFC 6455).

Owns the opening handshake, messages that come in pieces, pongs, and the closing handshake, by the protocol machine of
the library ``websockets``, which does no I/O. No extensions (nothing is compressed), no redirections, no ``Origin``.
This is the only place that knows the library: it is an extra.

Must never know: sockets, what a message means.
"""

from __future__ import annotations

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus, PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import WebSocketURI

from callsheet.harness._port.attested import Hangup
from callsheet.live.address import Address
from callsheet.live.transport import Cut, Unreachable

MESSAGE = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
GOING = 1000
"""The code with which we close: done."""
_WORDS = {
    401: "it wants a token, or another one",
    403: "it does not let us in",
    404: "nothing listens at this path",
}


class WebSocket:
    """One connection's framing (``connection.Framing``).

    Args:
        address: Where it leads.
        most: Bytes of the longest message; a longer one ends the connection.
    """

    def __init__(self, address: Address, most: int) -> None:
        uri = WebSocketURI(
            secure=address.scheme == "wss",
            host=address.host or "localhost",
            port=address.port or 80,
            path=address.path if address.host is not None else "/",
            query=address.query,
            username=address.user[0] if address.user is not None else None,
            password=address.user[1] if address.user is not None else None,
        )
        self._most = most
        self._token = address.token
        self._protocol = ClientProtocol(uri, max_size=most)
        self._pieces: list[bytes] = []
        self.opened = False

    def hello(self) -> bytes:
        """The request that opens it."""
        request = self._protocol.connect()
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token}"
        self._protocol.send_request(request)
        return self.replies()

    def feed(self, data: bytes) -> list[bytes | Cut]:
        """The messages that are whole now.

        Raises:
            Unreachable: The other side does not open the connection.
        """
        self._protocol.receive_data(data)
        return self._taken()

    def eof(self) -> list[bytes | Cut]:
        """Nothing comes any more.

        Raises:
            Unreachable: The connection was not open yet.
        """
        self._protocol.receive_eof()
        return self._taken()

    def _taken(self) -> list[bytes | Cut]:
        out: list[bytes | Cut] = []
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                if event.opcode in MESSAGE:
                    self._pieces.append(bytes(event.data))
                    if event.fin:
                        out.append(b"".join(self._pieces))
                        self._pieces.clear()
            elif isinstance(event, Response) and self._protocol.handshake_exc is None:
                self.opened = True
        if self._protocol.handshake_exc is not None:
            raise Unreachable(_refusal(self._protocol.handshake_exc))
        return out

    def replies(self) -> bytes:
        """What the protocol itself has to say now."""
        return b"".join(self._protocol.data_to_send())

    def wrap(self, frame: bytes) -> bytes:
        """A frame as it is sent; nothing when the connection is closing."""
        if not self.over:
            self._protocol.send_text(frame)
        return self.replies()

    def bye(self) -> bytes:
        """What closes it from our side."""
        if self.opened and not self.over:
            self._protocol.send_close(GOING)
        return self.replies()

    @property
    def over(self) -> bool:
        """Whether no message will come any more."""
        return self.opened and (
            self._protocol.close_rcvd is not None or self._protocol.parser_exc is not None
        )

    def hangup(self) -> Hangup:
        """How it was closed, when it was not by us."""
        closed, failed = self._protocol.close_rcvd, self._protocol.parser_exc
        if closed is not None:
            return Hangup(by="agent", code=int(closed.code), reason=closed.reason or None)
        if isinstance(failed, PayloadTooBig):
            return Hangup(by="client", reason=f"a message had more than {self._most:,} bytes")
        if failed is None or isinstance(failed, EOFError):
            return Hangup(reason="it ended without a word")
        return Hangup(by="client", reason=f"the agent broke the WebSocket protocol: {failed}")


def _refusal(error: BaseException) -> str:
    """Why a connection was not opened."""
    if isinstance(error, InvalidStatus):
        code = error.response.status_code
        if 300 <= code < 400:
            return f"it refers to another place, which is not followed (HTTP {code})"
        words = _WORDS.get(code, "no WebSocket is opened here")
        return f"{words} (HTTP {code})"
    if isinstance(error, InvalidHandshake) and not isinstance(error, InvalidMessage):
        return f"no WebSocket: {error}"
    return "it does not speak HTTP"
