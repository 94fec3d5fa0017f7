"""Private files, whole or absent, and blobs under their own digest."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.wire.blobs import BlobStore, blob_path, digest
from callsheet.wire.files import AtomicFile, private_folder

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@POSIX
def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with AtomicFile(tmp_path / "a" / "b" / "file") as file:
            file.write(b"x")
        BlobStore(tmp_path / "c").put(b"y")
    finally:
        os.umask(old)
    for path in tmp_path.rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


@POSIX
def test_folders_that_are_there_keep_their_modes(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    private_folder(there / "new")
    assert (mode(there), mode(there / "new")) == (0o755, 0o700)


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with AtomicFile(path, sync=True) as file:
        file.write(b"one ")
        assert not path.exists()
        file.write(b"two")
        assert (file.size, file.sha256) == (7, hashlib.sha256(b"one two").hexdigest())
    assert path.read_bytes() == b"one two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_nothing_appears_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with AtomicFile(path) as file:
            file.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_equal_bytes_are_one_blob(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    names = {store.put(b"same"), store.put(b"same"), BlobStore(tmp_path).put(b"same")}
    (name,) = names
    assert name == f"sha256:{digest(b'same')}"
    assert blob_path(tmp_path, name).read_bytes() == b"same"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize(
    "name",
    [
        "",
        "sha256:",
        "sha256:" + "a" * 63,
        "sha256:" + "A" * 64,
        "sha256:" + "g" * 64,
        "md5:" + "a" * 64,
        "a" * 64,
        "sha256:../" + "a" * 61,
        "sha256:" + "a" * 64 + "\n",
    ],
)
def test_a_name_that_is_none_reaches_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a blob name"):
        blob_path(tmp_path, name)


@given(st.text(max_size=80))
def test_blob_paths_never_leave_the_folder(name: str) -> None:
    for tried in (name, f"sha256:{name}"):
        try:
            path = blob_path(Path("/b"), tried)
        except ValueError:
            continue
        assert path.parts[:4] == ("/", "b", "blobs", "sha256")
        assert ".." not in path.parts
