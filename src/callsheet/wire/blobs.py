"""Bytes kept under their own digest.

Owns: the layout ``blobs/sha256/<2 hex>/<62 hex>`` and the rule that a blob is whole on disk before anything names
it. Equal bytes are written once.

Must never know: records, what the bytes mean.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from callsheet.wire.files import AtomicFile, private_folder


def digest(data: bytes) -> str:
    """SHA-256 of ``data`` as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def blob_path(folder: Path, name: str) -> Path:
    """Where a blob lies.

    Args:
        folder: The bundle.
        name: ``sha256:<64 hex digits>``.

    Raises:
        ValueError: The name is no blob name (nothing of it ever reaches the file system).
    """
    kind, _, hexed = name.partition(":")
    if kind != "sha256" or len(hexed) != 64 or not set(hexed) <= set("0123456789abcdef"):
        raise ValueError(f"not a blob name: {name!r}")
    return folder / "blobs" / "sha256" / hexed[:2] / hexed[2:]


class BlobStore:
    """Writes blobs of one bundle."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[bytes] = set()

    def put(self, data: bytes) -> str:
        """Keeps bytes and returns their name, ``sha256:<hex>``."""
        hashed = hashlib.sha256(data)
        name = f"sha256:{hashed.hexdigest()}"
        key = hashed.digest()
        if key in self._known:
            return name
        path = blob_path(self._folder, name)
        if not path.exists():
            with AtomicFile(path) as file:
                file.write(data)
        self._known.add(key)
        return name

    def put_stream(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keeps bytes that come in pieces, without holding them.

        Returns:
            Their name and how many they are.
        """
        hashed = hashlib.sha256()
        size = 0
        # The name is only known at the end.
        handle, part = tempfile.mkstemp(prefix=".", suffix=".part", dir=private_folder(self._folder))
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                    hashed.update(chunk)
                    size += len(chunk)
            name = f"sha256:{hashed.hexdigest()}"
            path = blob_path(self._folder, name)
            if hashed.digest() not in self._known and not path.exists():
                private_folder(path.parent)
                Path(part).replace(path)
        finally:
            Path(part).unlink(missing_ok=True)
        self._known.add(hashed.digest())
        return name, size
