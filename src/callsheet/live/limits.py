"""How long mechanics may take, and how much is held in memory.

Nothing here bounds what an agent thinks, what a tool runs or how long a person takes to answer.
"""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds of the live shell; times in seconds, sizes in bytes.

    Attributes:
        version: A program's answer to the question for its version.
        connect: What a connection to an agent at an address may take.
        handshake: From the start of the process, or the connection, to the open session.
        acknowledge: From an interrupt to the word that it has not been confirmed yet.
        leave: What a closing agent gets to go by itself, and again after it was asked to (SIGTERM); and what one
            that is not ours gets to break off a turn, and to close the connection.
        drain: What is waited for the end of the output of a process that is gone.
        sync: At most this long is what was written not on the disk for certain.
        line: A longer line of the agent's output is no frame; its beginning is kept.
        window: Settled records that a slow reader finds in memory; older ones are read from the disk again.
        previews: Previews that wait for a slow reader.
        unread: What may wait to be read by the agent; one that does not read it is stopped.
        stderr: The tail of what the agent writes to its standard error.
    """

    version: float = 20.0
    connect: float = 10.0
    handshake: float = 90.0
    acknowledge: float = 10.0
    leave: float = 3.0
    drain: float = 1.0
    sync: float = 0.15
    line: int = 256 << 20
    window: int = 512
    previews: int = 512
    unread: int = 256 << 20
    stderr: int = 64 << 10
