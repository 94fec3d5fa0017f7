"""session: the first record of a stream: which agent, which sources, which roots (profile, 'Companion records')."""

from __future__ import annotations

from callsheet.records._shapes import Record, Shape

FORMAT = "callsheet/1"
"""Name of the stream and bundle format."""


class Agent(Shape, kw_only=True):
    """The agent that wrote the source; ``version`` as the source states it (the last one seen, if several)."""

    name: str
    version: str | None = None


class SourceEntry(Shape, kw_only=True):
    """A native source that this stream was made from. ``size`` in bytes.

    ``encoding`` names how the file is packed (``zstd``); size, digest and every offset are those of the text inside.
    """

    id: str
    kind: str
    path: str
    size: int | None = None
    sha256: str | None = None
    encoding: str | None = None


class Parent(Shape, kw_only=True):
    """The session (and call) that this stream's agent was started from."""

    session: str
    call_id: str | None = None


class Session(Record, tag="session", kw_only=True):
    """Head of a stream."""

    format: str
    agent: Agent | None = None
    native_session_id: str | None = None
    sources: list[SourceEntry] | None = None
    roots: dict[str, str] | None = None
    title: str | None = None
    parent: Parent | None = None
    forked_from: str | None = None
    ts_meaning: str | None = None
