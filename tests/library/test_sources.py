"""Sources that are not what they seem: links, streams of callsheet's own, what may not be read, what vanishes."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness import HARNESSES
from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.library import importing, workbench
from callsheet.library.folders import DiskFolder, is_stream
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.records.bundle import Bundle

EXAMPLES = Path(__file__).parents[2] / "examples"
SESSION = EXAMPLES / "claude-code/projects/-home-dev-acme-app/858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
OTHER = "958837b5-8915-443b-bfa2-93fd580a1421"


@pytest.fixture(autouse=True)
def no_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLSHEET_DEBUG", raising=False)


def told(path: Path, out: Path) -> tuple[list[Imported], list[Failure]]:
    found = list(import_sources([path], out))
    return (
        [one for one in found if isinstance(one, Imported)],
        [one for one in found if isinstance(one, Failure)],
    )


def other_session(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(SESSION.read_bytes().replace(SESSION.stem.encode(), OTHER.encode()))
    return path


# -- streams of callsheet's own ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [adapter.kind for adapter in HARNESSES])
def test_no_adapter_reads_a_stream_in_a_folder(tmp_path: Path, kind: str) -> None:
    """A bundle without its manifest, and streams under the names that the agents give their files."""
    sources = [path for path in EXAMPLES.iterdir() if path.is_dir()]
    written, _ = told(sources[0].parent / "claude-code", tmp_path / "out")
    more = [one for source in sources for one in told(source, tmp_path / "out")[0]]
    home = tmp_path / "home"
    for number, one in enumerate([*written, *more]):
        (one.bundle / "manifest.json").unlink(missing_ok=True)
        for stream in (one.bundle / "streams").iterdir():
            for name in (
                f"sessions/rollout-2026-01-01T00-00-00-{stream.stem}",
                f"agent-{number}",
                stream.stem,
            ):
                place = home / f"{number}" / f"{name}.jsonl"
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(stream, place)
    for folder in (home, tmp_path / "out"):
        found = list(import_sources([folder], tmp_path / "again", kind=kind))
        assert all(isinstance(one, Failure) for one in found)
        streams = [
            one for one in found if isinstance(one, Failure) and "stream of callsheet's own" in one.message
        ]
        assert len(streams) == len(list(folder.glob("**/*.jsonl")))


@pytest.mark.parametrize(
    ("head", "is_own"),
    [
        (b'{"type":"session","seq":0,"id":"r0","format":"callsheet/1"}\n', True),
        (b'\xef\xbb\xbf{ "format": "callsheet/2", "type": "session" }\n', True),
        (b'{"type":"tool_call","seq":1}\n{"type":"session","format":"callsheet/1"}\n', True),
        (b"torn\n" + b'{"type":"session","format":"callsheet/1","title":"' + b"x" * 100, True),
        (
            b'{"type":"user","message":{"content":"{\\"type\\":\\"session\\",\\"format\\":\\"callsheet/1\\"}"}}\n',
            False,
        ),
        (b'{"type":"user","toolUseResult":{"type":"session","format":"callsheet/1"}}\n', False),
        (b'{"type":"session","format":"other/1"}\n', False),
        (b"", False),
    ],
)
def test_a_stream_is_told_by_its_session_record(head: bytes, is_own: bool) -> None:
    assert is_stream(head) is is_own


# -- links ---------------------------------------------------------------------------------------------------------


def test_a_linked_folder_below_the_place_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    (secret / "tool-results").mkdir(parents=True)
    (secret / "tool-results" / "secret.txt").write_text("secret", encoding="utf-8")
    (secret / "subagents").mkdir()
    (secret / "subagents" / "agent-a1.jsonl").write_bytes(SESSION.read_bytes())
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(SESSION, folder)
    (folder / SESSION.stem).symlink_to(secret)
    for number, source in enumerate((folder, folder / SESSION.name)):
        ((one,), failures) = told(source, tmp_path / f"out{number}")
        assert not failures
        manifest = Bundle(one.bundle).manifest
        assert [source.path for source in manifest.sources] == [str(folder / SESSION.name)]
        assert [stream.id for stream in manifest.streams] == [SESSION.stem]


def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    shutil.copy(SESSION, tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "link.jsonl").symlink_to(SESSION)
    assert len(told(tmp_path / "link", tmp_path / "out")[0]) == 1
    assert len(told(tmp_path / "link.jsonl", tmp_path / "out2")[0]) == 1
    assert DiskFolder(tmp_path / "link").files(str(tmp_path / "link"), "*.jsonl")


# -- what may not be read ------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    shutil.copytree(SESSION.parent, folder / "good")
    closed = other_session(folder / "closed" / f"{OTHER}.jsonl").parent
    unreadable = other_session(folder / "file" / f"{OTHER}.jsonl")
    closed.chmod(0)
    unreadable.chmod(0)
    try:
        written, failures = told(folder, tmp_path / "out")
    finally:
        closed.chmod(0o700)
    assert written
    assert {failure.path: failure.message for failure in failures} == {
        str(closed): "Permission denied",
        str(unreadable): "Permission denied",
    }


def test_errors_of_a_search_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "in"
    other_session(folder / "closed" / f"{OTHER}.jsonl")
    shutil.copy(SESSION, folder)
    walk = os.walk

    def refused(top: Any, onerror: Any = None, **more: Any) -> Iterator[Any]:
        for at, folders, files in walk(top, onerror=onerror, **more):
            if at.endswith("closed"):
                onerror(PermissionError(13, "Permission denied", at))
            else:
                yield at, folders, files

    monkeypatch.setattr("callsheet.library.folders.os.walk", refused)
    written, failures = told(folder, tmp_path / "out")
    assert [one.session for one in written] == [SESSION.stem]
    assert [(one.path, one.message) for one in failures] == [(str(folder / "closed"), "Permission denied")]


@pytest.mark.parametrize("name", ["x" * 300, "gone", "nul\0name"])
def test_a_name_that_cannot_be_costs_nothing_else(tmp_path: Path, name: str) -> None:
    found = list(import_sources([tmp_path / name, SESSION], tmp_path / "out"))
    assert [type(one) for one in found] == [Failure, Imported]


def test_an_unexpected_error_is_a_failure_of_one_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    other_session(folder / f"{OTHER}.jsonl")
    shutil.copy(SESSION, folder)
    read = type(CLAUDE_CODE).read

    def broken(self: Any, session: Any, desk: Any) -> None:
        if session.native_id == OTHER:
            raise ZeroDivisionError("of\ntwo lines")
        read(self, session, desk)

    monkeypatch.setattr(type(CLAUDE_CODE), "read", broken)
    written, (failure,) = told(folder, tmp_path / "out")
    assert [one.session for one in written] == [SESSION.stem]
    assert failure.path == str(folder / f"{OTHER}.jsonl")
    assert failure.message.startswith(
        "not read: ZeroDivisionError: of two lines (a bug in callsheet; CALLSHEET_DEBUG"
    )
    assert [path.name for path in (tmp_path / "out").iterdir()] == [SESSION.stem]
    monkeypatch.setenv("CALLSHEET_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        told(folder, tmp_path / "out")


def test_an_adapter_that_cannot_search_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("sessions")

    shutil.copy(SESSION, tmp_path / "in.jsonl")
    (tmp_path / "in").mkdir()
    shutil.copy(SESSION, tmp_path / "in")
    other = next(adapter for adapter in HARNESSES if adapter.kind == "codex")
    monkeypatch.setattr(type(other), "sessions", broken)
    written, (failure,) = told(tmp_path / "in", tmp_path / "out")
    assert [one.session for one in written] == [SESSION.stem]
    assert "KeyError: 'sessions'" in failure.message


# -- where bundles lie ---------------------------------------------------------------------------------------------


def test_relative_names_mean_the_same_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundles = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(SESSION, tmp_path / name / "s.jsonl")
        monkeypatch.chdir(tmp_path / name)
        ((one,), _) = told(Path("s.jsonl"), Path("../out"))
        bundles.add(one.bundle.name)
        (source,) = Bundle(one.bundle).manifest.sources
        assert source.path == str(tmp_path / name / "s.jsonl")
    assert len(bundles) == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == bundles


def test_two_imports_at_once_keep_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both look for a place before either has one, unless they do so one after the other."""
    gate = threading.Barrier(2, timeout=10)
    read = type(CLAUDE_CODE).read

    def together(self: Any, session: Any, desk: Any) -> None:
        read(self, session, desk)
        gate.wait()

    monkeypatch.setattr(type(CLAUDE_CODE), "read", together)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(SESSION, tmp_path / name / "s.jsonl")
    done: list[Imported] = []
    threads = [
        threading.Thread(target=lambda name=name: done.extend(told(tmp_path / name, tmp_path / "out")[0]))
        for name in ("a", "b")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.bundle for one in done}) == 2
    kept = {Bundle(path).manifest.sources[0].path for path in (tmp_path / "out").iterdir()}
    assert kept == {str(tmp_path / name / "s.jsonl") for name in ("a", "b")}


@pytest.mark.parametrize("manifest", [b'{"name":"my extension"}', b'{"format":"zip/2"}', b"no json", None])
def test_what_is_no_bundle_is_not_replaced(tmp_path: Path, manifest: bytes | None) -> None:
    there = tmp_path / "out" / SESSION.stem
    there.mkdir(parents=True)
    (there / "precious").write_text("mine", encoding="utf-8")
    if manifest is not None:
        (there / "manifest.json").write_bytes(manifest)
    written, (failure,) = told(SESSION, tmp_path / "out")
    assert not written
    assert "not replaced" in failure.message
    assert (there / "precious").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in (tmp_path / "out").iterdir()] == [SESSION.stem]


def test_a_stop_between_two_renames_loses_no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(SESSION, tmp_path / "out")
    rename = Path.rename

    def stopped(self: Path, target: Any) -> Path:
        if self.name.endswith(".part"):
            raise SystemExit(143)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(SystemExit):
        told(SESSION, tmp_path / "out")
    (left,) = (tmp_path / "out").iterdir()
    assert Bundle(left).manifest.streams


# -- what changes while it is read ---------------------------------------------------------------------------------


def test_a_source_that_shrinks_meanwhile_is_told_as_it_was_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / SESSION.name
    shutil.copy(SESSION, source)
    read = type(CLAUDE_CODE).read

    def then_shrinks(self: Any, session: Any, desk: Any) -> None:
        read(self, session, desk)
        os.truncate(source, 1000)

    monkeypatch.setattr(type(CLAUDE_CODE), "read", then_shrinks)
    ((one,), _) = told(source, tmp_path / "out")
    assert "changed_source" in {diagnostic.code for diagnostic in one.diagnostics}
    (kept,) = Bundle(one.bundle).manifest.sources
    assert kept.size == 1000


def test_diagnostics_of_one_kind_are_counted_beyond_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "TOLD_MOST", 3)
    source = tmp_path / SESSION.name
    source.write_bytes(SESSION.read_bytes() + b"torn {\n" * 10)
    ((one,), _) = told(source, tmp_path / "out")
    bad = [diagnostic for diagnostic in one.diagnostics if diagnostic.code == "bad_json"]
    assert [diagnostic.count for diagnostic in bad] == [None, None, None, 7]
    kept = json.loads((one.bundle / "manifest.json").read_bytes())["diagnostics"]
    assert kept[-1] == {"code": "bad_json", "message": "and 7 more", "count": 7}


def test_names_without_text_are_ids_all_the_same(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    line = b'{"type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hi"}}\n'
    try:
        (tmp_path / name).write_bytes(line)
    except OSError:
        pytest.skip("this file system takes no such name")
    ((one,), _) = told(tmp_path / name, tmp_path / "out")
    assert one.session == "caf\ufffd"
    assert importing.find_sessions(tmp_path / name, None)
