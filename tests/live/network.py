"""Real agents are run where there is nothing but loopback: in a network namespace of their own, where that can be had.

``isolated`` moves this process into one, before anything has started a thread. Where it cannot, it says why.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

NEW_USER, NEW_NET = 0x10000000, 0x40000000
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1
_REQUEST = struct.Struct("16sh14x")


def isolated() -> str | None:
    """Leaves the network; returns None, or why that could not be done."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no network namespaces"
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (NEW_NET, NEW_NET | NEW_USER):
        if libc.unshare(flags) == 0:
            break
    else:
        return os.strerror(ctypes.get_errno())
    if flags & NEW_USER:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    _bring_up(b"lo")
    return None


def _bring_up(name: bytes) -> None:
    """Brings an interface up: a new namespace has loopback, and it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        _, flags = _REQUEST.unpack(fcntl.ioctl(made, GET_FLAGS, _REQUEST.pack(name, 0)))
        fcntl.ioctl(made, SET_FLAGS, _REQUEST.pack(name, flags | UP))
