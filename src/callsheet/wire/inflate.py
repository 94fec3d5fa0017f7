"""Zstandard text as bytes to read: its head without the rest, or the whole of it piece by piece.

Owns: recognising a compressed file by its first bytes, bounded decompression, and the rule that a torn or broken file
gives what came out before the damage.

Must never know: what the bytes mean.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

MAGIC = b"\x28\xb5\x2f\xfd"
MOST = 1 << 36
"""Bytes at most that a file may inflate to."""
_WINDOW = 1 << 27


def is_compressed(head: bytes) -> bool:
    """Whether a file begins like a Zstandard frame."""
    return head.startswith(MAGIC)


def head_of(head: bytes, size: int) -> bytes:
    """The first bytes of a text, given the first bytes of its file, compressed or not."""
    if not is_compressed(head):
        return head[:size]
    import zstandard  # only where it is needed: most files are plain

    reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
        io.BytesIO(head), read_across_frames=True
    )
    pieces = bytearray()
    try:
        while len(pieces) < size and (piece := reader.read(min(65536, size - len(pieces)))):
            pieces += piece
    except zstandard.ZstdError:
        pass  # the head ends inside a frame: what came out is what there is
    return bytes(pieces)


class Torn(Exception):
    """The compressed file is cut or broken, or inflates beyond measure; what came before was given."""


def inflate(chunks: Iterable[bytes], most: int = MOST) -> Iterator[bytes]:
    """Decompresses consecutive frames.

    Raises:
        Torn: After everything that could be had.
    """
    import zstandard

    size = 0
    step = 1 << 8  # few bytes may be a lot of text: a run of 128 KiB takes four
    machine = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    current = machine.decompressobj()
    fed = False
    try:
        for chunk in chunks:
            for at in range(0, len(chunk), step):
                data = chunk[at : at + step]
                while data:
                    piece = current.decompress(data)
                    fed = True
                    size += len(piece)
                    if piece:
                        yield piece
                    if size > most:
                        raise Torn(f"inflates to more than {most} bytes")
                    data = b""
                    if current.eof:
                        data, fed = current.unused_data, False
                        current = machine.decompressobj()
    except zstandard.ZstdError as error:
        raise Torn(str(error)) from None
    if fed:
        raise Torn("the compressed file ends inside a frame")
