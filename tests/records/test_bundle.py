"""A bundle opened for reading: folder or zip, honest or hostile."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.errors import SourceError
from callsheet.records import FORMAT
from callsheet.records.bundle import (
    Bundle,
    Manifest,
    StreamEntry,
    is_bundle,
    stream_id,
    streams_below,
    write_manifest,
)
from callsheet.wire.blobs import BlobStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "bundle"
    write_manifest(made, Manifest(format=FORMAT, streams=[StreamEntry(id="s", file="streams/s.jsonl")]))
    (made / "streams").mkdir()
    (made / "streams" / "s.jsonl").write_bytes(b"{}\n" * 3)
    BlobStore(made).put(b"blob")
    return made


def zipped(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder.parent / "packed"), "zip", folder))


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_both_forms_are_read_alike(folder: Path, form: str) -> None:
    path = folder if form == "folder" else zipped(folder)
    assert is_bundle(path)
    bundle = Bundle(path)
    assert [entry.id for entry in bundle.manifest.streams] == ["s"]
    with bundle.open("streams/s.jsonl") as file:
        assert file.seek(3) == 3
        assert file.read() == b"{}\n{}\n"
    name = BlobStore(folder).put(b"blob")
    assert bundle.blob(name) == b"blob"
    with pytest.raises((OSError, KeyError)):
        bundle.blob("sha256:" + "0" * 64)
    with pytest.raises(ValueError, match="not a blob name"):
        bundle.blob("sha256:../../manifest.json")


HOSTILE = [
    "/etc/passwd",
    "../x",
    "a/../../x",
    "..",
    "",
    ".",
    "a\\..\\x",
    "C:\\x",
    "streams/../../x",
    "a\0b",
    "//x",
]


@pytest.mark.parametrize("form", ["folder", "zip"])
@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_lead_out_open_nothing(folder: Path, form: str, name: str) -> None:
    (folder.parent / "x").write_bytes(b"secret")
    bundle = Bundle(folder if form == "folder" else zipped(folder))
    with pytest.raises((SourceError, OSError, KeyError)), bundle.open(name):
        pass


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_links_out_of_the_bundle_open_nothing(folder: Path) -> None:
    (folder.parent / "secret").mkdir()
    (folder.parent / "secret" / "s.jsonl").write_bytes(b"secret")
    (folder / "streams" / "s.jsonl").unlink()
    (folder / "streams" / "s.jsonl").symlink_to(folder.parent / "secret" / "s.jsonl")
    with pytest.raises(SourceError), Bundle(folder).open("streams/s.jsonl"):
        pass
    (folder / "linked").symlink_to(folder.parent / "secret")
    with pytest.raises(SourceError), Bundle(folder).open("linked/s.jsonl"):
        pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_pipe_in_a_bundle_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "streams" / "pipe.jsonl")
    with pytest.raises((SourceError, OSError)), Bundle(folder).open("streams/pipe.jsonl"):
        pass


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"{",
        b'{"format":"callsheet/2"}',
        b'{"format":7}',
        b"\xff",
        b"[" * 100_000,
        b'{"format":"callsheet/1","streams":[7]}',
    ],
)
def test_a_broken_manifest_is_one_clear_error(folder: Path, text: bytes) -> None:
    (folder / "manifest.json").write_bytes(text)
    for path in (folder, zipped(folder)):
        with pytest.raises(SourceError) as caught:
            Bundle(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_is_no_bundle(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "file.zip"
    file.write_bytes(b"PK\x03\x04 not really")
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (file, empty, tmp_path / "missing"):
        assert not is_bundle(path)
        with pytest.raises(SourceError):
            Bundle(path)


def test_a_damaged_zip_is_one_clear_error(folder: Path) -> None:
    path = zipped(folder)
    data = bytearray(path.read_bytes())
    at = data.find(b"manifest.json") + len(b"manifest.json")
    data[at : at + 20] = os.urandom(20)
    path.write_bytes(bytes(data))
    with pytest.raises(SourceError):
        Bundle(path)


def test_a_zip_of_another_program_is_one_clear_error(tmp_path: Path, folder: Path) -> None:
    """Encrypted, or packed in a way that this Python does not know."""
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", (folder / "manifest.json").read_bytes())
    for offset, value in ((6, 1), (8, 99)):
        data = bytearray(path.read_bytes())
        central = data.find(b"PK\x01\x02")
        data[offset] = value
        data[central + offset + 2] = value
        odd = tmp_path / f"odd{offset}.zip"
        odd.write_bytes(bytes(data))
        with pytest.raises(SourceError):
            Bundle(odd)


def test_the_manifest_keeps_what_a_reader_needs(folder: Path) -> None:
    text = (folder / "manifest.json").read_bytes()
    assert text.endswith(b"}\n")
    whole: dict[str, Any] = msgspec.json.decode(text)
    assert whole["format"] == FORMAT
    assert whole["streams"][0] == {"id": "s", "file": "streams/s.jsonl"}


@given(st.text(max_size=80))
def test_stream_ids_are_safe_names(native_id: str) -> None:
    name = stream_id(native_id)
    assert 0 < len(name) <= 64
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert stream_id(name) == name


def test_session_ids_that_are_safe_stay() -> None:
    assert stream_id("a-B_9") == "a-B_9"
    assert stream_id("a/b") != "a/b"
    assert len(stream_id("\ud800")) == 64


def test_the_streams_below_one() -> None:
    def entries(*pairs: tuple[str, str | None]) -> list[StreamEntry]:
        return [StreamEntry(id=name, file=name, parent=parent) for name, parent in pairs]

    tree = entries(("c", "b"), ("b", "a"), ("a", None), ("other", None), ("d", "gone"), ("e", "other"))
    assert streams_below(tree, "a") == ["c", "b", "a"]
    assert streams_below(tree, "b") == ["c", "b"]
    assert streams_below(entries(("a", "b"), ("b", "a"), ("c", "c"), ("d", None)), "d") == ["d"]
    assert streams_below(entries(("a", "b"), ("b", "a")), "a") == ["a", "b"]
