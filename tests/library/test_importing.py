"""What the import engine does with sources that shrink, have odd names, or are callsheet's own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from callsheet.library.importing import Failure, Imported, import_sources

SESSION = Path(__file__).parents[2] / (
    "examples/claude-code/projects/-home-dev-acme-app/858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
)


def one(path: Path, out: Path) -> Imported:
    """The only session of a source."""
    (told,) = import_sources([path], out, native=False)
    assert isinstance(told, Imported), told
    return told


def test_a_source_that_shrank_does_not_replace_what_it_held(tmp_path: Path) -> None:
    source = tmp_path / SESSION.name
    shutil.copy(SESSION, source)
    first = one(source, tmp_path / "out")
    source.write_bytes(b"".join(SESSION.read_bytes().splitlines(keepends=True)[:25]))
    second = one(source, tmp_path / "out")
    assert second.bundle == first.bundle
    assert second.calls < first.calls
    (said,) = [one.message for one in second.diagnostics if one.code == "source_shrank"]
    kept = [path for path in (tmp_path / "out").iterdir() if path != second.bundle]
    assert [path.name for path in kept] == [said.split()[-1]]
    stream = (kept[0] / "streams" / f"{first.stream}.jsonl").read_text(encoding="utf-8")
    assert sum(json.loads(line)["type"] == "tool_call" for line in stream.splitlines()) == first.calls
    third = one(source, tmp_path / "out")
    assert [one.code for one in third.diagnostics] == [
        one.code for one in second.diagnostics if one.code != "source_shrank"
    ]
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_source_that_grew_replaces_its_bundle(tmp_path: Path) -> None:
    source = tmp_path / SESSION.name
    source.write_bytes(b"".join(SESSION.read_bytes().splitlines(keepends=True)[:25]))
    one(source, tmp_path / "out")
    shutil.copy(SESSION, source)
    told = one(source, tmp_path / "out")
    assert told.calls == 3
    assert [path.name for path in (tmp_path / "out").iterdir()] == [told.stream]


def test_a_name_that_is_no_text_costs_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(SESSION, folder / "good.jsonl")
    odd = os.fsdecode(b"b\xff.jsonl")
    try:
        (folder / odd).write_bytes(SESSION.read_bytes().replace(b"858837b5", b"958837b5"))
    except OSError:
        pytest.skip("this file system takes no such name")
    told = list(import_sources([folder], tmp_path / "out", native=False))
    assert [type(one) for one in told] == [Imported, Imported]
    paths = [
        source["path"]
        for one in told
        if isinstance(one, Imported)
        for source in json.loads((one.bundle / "manifest.json").read_bytes())["sources"]
    ]
    assert sorted(Path(path).name for path in paths) == ["b\ufffd.jsonl", "good.jsonl"]


def test_bundles_and_streams_are_no_sources(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bundle = one(SESSION, out).bundle
    for path, said in (
        (bundle, "bundle"),
        (next((bundle / "streams").iterdir()), "stream"),
        (out, "no sessions"),
    ):
        (told,) = import_sources([path], tmp_path / "again")
        assert isinstance(told, Failure)
        assert said in told.message
    assert not (tmp_path / "again").exists()
