"""Packed text comes out as it went in, piece by piece; a torn file gives what came before the damage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from callsheet.wire.inflate import Torn, head_of, inflate, is_compressed

DATA = b"".join(b'{"line": %d}\n' % number for number in range(5000))


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def until_torn(pieces: Iterator[bytes]) -> tuple[bytes, str]:
    """What came out, and what was wrong then."""
    found = bytearray()
    try:
        for piece in pieces:
            found += piece
    except Torn as torn:
        return bytes(found), str(torn)
    return bytes(found), ""


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 500))
def test_frames_one_after_another(parts: list[bytes], size: int) -> None:
    packed = b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)
    assert b"".join(inflate(chunks(packed, size))) == b"".join(parts)


@pytest.mark.parametrize("cut", [1, 10, 1000])
def test_a_cut_file_gives_what_there_is(cut: int) -> None:
    packed = zstandard.ZstdCompressor(level=1).compress(DATA * 20)
    found, why = until_torn(inflate(chunks(packed[:-cut], 100)))
    assert why
    assert (DATA * 20).startswith(found)


def test_rubbish_behind_a_frame_is_torn() -> None:
    packed = zstandard.ZstdCompressor().compress(DATA) + b"rubbish"
    found, why = until_torn(inflate([packed]))
    assert why
    assert found == DATA


def test_a_bomb_is_stopped() -> None:
    bomb = zstandard.ZstdCompressor(level=19).compress(b"\0" * (64 << 20))
    assert len(bomb) < 10_000
    found, why = until_torn(inflate([bomb], most=1 << 20))
    assert why.startswith("inflates to more than")
    assert len(found) < 64 << 20


@pytest.mark.parametrize("size", [10, 5000])
def test_the_head_of_a_file_is_the_head_of_its_text(size: int) -> None:
    packed = zstandard.ZstdCompressor().compress(DATA)
    assert is_compressed(packed)
    assert head_of(packed, size) == head_of(DATA, size) == DATA[:size]
    assert DATA.startswith(head_of(packed[:200], size))
    assert head_of(b"\x28\xb5\x2f\xfdxx", 10) == b""
