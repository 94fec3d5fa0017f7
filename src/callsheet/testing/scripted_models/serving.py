"""A server for a scripted model: HTTP on loopback, one thread a request.

Owns ``Model`` (what a provider's API has to give), ``Served`` (what goes back, with its pauses; ``json_answer`` makes
one) and ``serving``, which runs a model while a test does.

Must never know: any provider's API.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from msgspec import Struct

LOOPBACK = "127.0.0.1"
BODY_MOST = 64 << 20
"""Bytes of a request that are read."""


class Pause(Struct, frozen=True):
    """A pause in a stream of events, in seconds."""

    seconds: float


class Served(Struct, frozen=True):
    """What a server sends back.

    Attributes:
        status: HTTP status.
        type: Media type.
        parts: Bytes to send, and pauses between them.
    """

    status: int
    type: str
    parts: Iterator[bytes | Pause]


def json_answer(status: int, value: Any) -> Served:
    """An answer that is one JSON value."""
    return Served(status, "application/json", iter([json.dumps(value).encode()]))


class Model(Protocol):
    """A provider's API, as far as an agent uses it."""

    def serve(self, method: str, path: str, data: bytes) -> Served | None:
        """Answers a request; None for a path that there is not. Called from several threads."""


@contextmanager
def serving(model: Model) -> Iterator[str]:
    """Runs a model on loopback; gives its base URL, without a path."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: Any) -> None:
            """Requests are the model's to keep."""

        def _answer(self) -> None:
            size = min(int(self.headers.get("content-length") or 0), BODY_MOST)
            served = model.serve(self.command, self.path, self.rfile.read(size))
            self.close_connection = True
            try:
                if served is None:
                    self.send_error(404)
                    return
                self.send_response(served.status)
                self.send_header("content-type", served.type)
                self.send_header("connection", "close")
                self.end_headers()
                for part in served.parts:
                    if isinstance(part, Pause):
                        if over.wait(part.seconds):
                            return
                    else:
                        self.wfile.write(part)
                        self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the agent does not listen any more

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="scripted model", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
