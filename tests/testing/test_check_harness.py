"""The kit finds what an adapter does wrong: a toy adapter that keeps its word, and one broken twin per promise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import pytest

from callsheet.harness._port import Desk, Folder, Session
from callsheet.records import (
    Agent,
    BlobRef,
    Capture,
    Gap,
    Native,
    Record,
    Ref,
    ToolCall,
    ToolResult,
    text_part,
)
from callsheet.records import Session as SessionRecord
from callsheet.testing.check_harness import Flaw, check_bundle_files, check_harness
from callsheet.testing.desk import Files
from callsheet.wire.blobs import digest
from callsheet.wire.lines import Line

DATA = (
    b"".join(
        json.dumps(line).encode() + b"\n"
        for line in (
            {"toy": 1, "call": "c1", "name": "Run Me", "out": "all\n\ngood"},
            {"toy": 1, "call": "c2", "name": "Other", "out": "x" * 200},
        )
    )
    + b"{torn"
)


class Toy:
    """An adapter of one-line calls with their results. ``spoil`` changes what it is about to write."""

    kind = "toy"

    def __init__(self, spoil: Callable[[Record, Desk], Record | None] = lambda record, _: record) -> None:
        self._spoil = spoil

    def recognises(self, name: str, head: bytes) -> bool:
        return head.startswith(b'{"toy"')

    def sessions(self, path: str, folder: Folder) -> list[Session]:
        files = [path] if folder.is_file(path) else folder.files(path, "**/*.toy")
        return [Session("toy", PurePosixPath(file).stem, file, None, (file,)) for file in files]

    def places(self, environ: dict[str, str], home: str) -> list[str]:
        return []

    def read(self, session: Session, desk: Desk) -> None:
        source = desk.source(session.main, "toy")
        with desk.stream(session.native_id) as stream:
            head = SessionRecord(format="callsheet/1", agent=Agent(name="toy"), sources=[source])
            records: list[Record] = [head]
            for line in desk.lines(source):
                records += list(self._of(line, source.id))
            for record in records:
                made = self._spoil(record, desk)
                if made is not None:
                    stream.write(made)

    def _of(self, line: Line, source: str) -> list[Record]:
        def native(role: str) -> Native:
            sha = digest(line.data)
            place = {"line": line.number, "offset": line.offset, "bytes": len(line.data)}
            return Native(refs=[Ref(source=source, sha256=sha, role=role, **place)])  # type: ignore[arg-type]

        try:
            value = msgspec.json.decode(line.data)
        except msgspec.DecodeError:
            return [Gap(reason="torn_tail", source=source, line=line.number, native=native("gap"))]
        call = ToolCall(
            call_id=value["call"], call_id_source="native", name=value["name"], native=native("call")
        )
        result = ToolResult(
            call_id=value["call"], linkage="exact", status="completed", native=native("result")
        )
        result.content = [text_part(value["out"])]
        return [call, result]


def flaws(spoil: Callable[[Record, Desk], Record | None] | None = None, **files: bytes) -> list[Flaw]:
    adapter = Toy(spoil) if spoil else Toy()
    return check_harness(
        adapter, Files({"/in/a.toy": DATA, **{f"/in/{name}": data for name, data in files.items()}}), "/in"
    )


def test_an_honest_adapter_has_no_flaws() -> None:
    assert flaws() == []


def test_a_single_file_on_disk_is_checked_alike(tmp_path: Path) -> None:
    (tmp_path / "a.toy").write_bytes(DATA)
    assert check_harness(Toy(), tmp_path / "a.toy") == []


def changed(kind: type[Any], **members: Any) -> Callable[[Record, Desk], Record | None]:
    def spoil(record: Record, _desk: Desk) -> Record | None:
        if isinstance(record, kind):
            for name, value in members.items():
                setattr(record, name, value)
        return record

    return spoil


def changed_ref(**members: Any) -> Callable[[Record, Desk], Record | None]:
    def spoil(record: Record, _desk: Desk) -> Record | None:
        if isinstance(record, ToolCall) and record.native:
            for name, value in members.items():
                setattr(record.native.refs[0], name, value)
        return record

    return spoil


def without(kind: type[Any]) -> Callable[[Record, Desk], Record | None]:
    return lambda record, _desk: None if isinstance(record, kind) else record


def naming_a_lost_blob(record: Record, desk: Desk) -> Record | None:
    if isinstance(record, ToolResult):
        lost = BlobRef(blob="sha256:" + "0" * 64, size=9)
        record.capture = {"raw": Capture(state="external", blob=lost)}
    return record


def saying_the_wrong_size(record: Record, desk: Desk) -> Record | None:
    if isinstance(record, ToolResult):
        blob = desk.blob(b"four")
        record.capture = {"raw": Capture(state="external", blob=BlobRef(blob=blob.blob, size=5))}
    return record


@pytest.mark.parametrize(
    ("spoil", "kind", "word"),
    [
        (changed(ToolCall, name="run_me"), "evidence", "run_me"),
        (changed(ToolCall, call_id="c9"), "evidence", "c9"),
        (changed(ToolResult, content=[text_part("all good")]), "evidence", "all good"),
        (changed(ToolResult, call_id="c9"), "evidence", "c9"),
        (changed(ToolResult, content=None), "rule", "ASR-259"),
        (changed(ToolCall, call_id_source="guessed"), "rule", "ASR-250"),
        (changed(ToolCall, native=None), "ref", "cites no native place"),
        (changed_ref(sha256="0" * 64), "ref", "digest"),
        (changed_ref(offset=1), "ref", "digest"),
        (changed_ref(bytes=10**6), "ref", "beyond the end"),
        (changed_ref(line=3), "ref", "does not lie on line 3"),
        (changed_ref(line=99), "ref", "does not lie on line 99"),
        (changed_ref(source="s9"), "ref", "unknown source"),
        (without(Gap), "lost", "line 3: 5 bytes"),
        (naming_a_lost_blob, "blob", "no such blob"),
        (saying_the_wrong_size, "blob", "no such blob"),
    ],
)
def test_each_broken_promise_is_found(spoil: Any, kind: str, word: str) -> None:
    found = flaws(spoil)
    assert [flaw for flaw in found if flaw.kind == kind and word in flaw.what], found


def test_a_lost_line_in_the_middle_is_named() -> None:
    def spoil(record: Record, _desk: Desk) -> Record | None:
        lost = isinstance(record, ToolCall | ToolResult) and record.call_id == "c1"
        return None if lost else record

    assert [flaw.what.partition(":")[0] for flaw in flaws(spoil) if flaw.kind == "lost"] == ["line 1"]


def test_a_file_that_no_session_reads_is_found() -> None:
    assert [flaw for flaw in flaws(None, **{"b.other": DATA}) if flaw.kind == "lost"]


def test_an_adapter_that_remembers_is_found() -> None:
    seen: list[int] = []

    def spoil(record: Record, _desk: Desk) -> Record | None:
        if isinstance(record, SessionRecord):
            seen.append(1)
            record.title = f"reading {len(seen)}"
        return record

    assert {flaw.kind for flaw in flaws(spoil)} == {"unstable"}


def test_an_adapter_that_looks_at_chunks_is_found() -> None:
    class Peeking(Toy):
        def read(self, session: Session, desk: Desk) -> None:
            self._size = getattr(desk, "_chunk", 0)
            super().read(session, desk)

        def _of(self, line: Line, source: str) -> list[Record]:
            records = super()._of(line, source)
            records[0].ts = f"2026-01-01T00:00:{self._size % 60:02}Z"
            return records

    found = check_harness(Peeking(), Files({"/in/a.toy": DATA}), "/in")
    assert any(flaw.kind == "unstable" and "chunks" in flaw.what for flaw in found)


def test_modes_and_blob_names_of_a_bundle_are_checked(tmp_path: Path) -> None:
    from callsheet.library.importing import import_session

    (tmp_path / "a.toy").write_bytes(DATA)
    adapter = Toy(saying_nothing_wrong)
    (session,) = adapter.sessions(str(tmp_path / "a.toy"), Files({str(tmp_path / "a.toy"): DATA}))
    bundle = import_session(adapter, session, tmp_path / "out").bundle
    assert list(check_bundle_files(bundle)) == []
    (blob,) = [path for path in bundle.rglob("*") if path.is_file() and "blobs" in path.parts]
    blob.write_bytes(b"other")
    blob.chmod(0o644)
    assert {flaw.kind for flaw in check_bundle_files(bundle)} == {"blob", "open", "rule"}


def saying_nothing_wrong(record: Record, desk: Desk) -> Record | None:
    if isinstance(record, ToolResult):
        record.capture = {"raw": Capture(state="external", blob=desk.blob(b"more", "text/plain"))}
    return record
