"""No source of a shared protocol or of a chat raises, none loses a line: real lines with members of any type.

The lines are those of frame logs, chats and stores with everything in them. Each is changed at random places: another
type, a number that no reader keeps, half a surrogate pair, a repeated key; lines are torn, doubled, out of order, with
anything between them. What comes of them keeps the rules, the source is not touched, and the audit of it never raises.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.native.acp.test_evidence import first_version, others, second_version
from tests.native.gemini import test_evidence as gemini
from tests.native.gemini.test_chats import HEAD
from tests.native.opencode import test_evidence as opencode
from tests.native.opencode.test_stores import INFO, database

from callsheet.audit import audit_bundle
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.records.stream import stream_lines
from callsheet.rules import Finding, check_stream

TAME = (
    "",
    "c1",
    "same",
    "u1",
    "m1",
    "completed",
    "failed",
    "user",
    "assistant",
    "tool",
    "sess_1",
    "t1",
    "AAEC",
)
"""Words that the sources have themselves."""
WILD = (
    *(
        "@",
        "cut \ud83d",
        "\x00",
        "\u2028",
        "session/update",
        "9" * 5000,
        "2026-11-30T10:00:00+25:00",
        "file://[",
    ),
    *("file:///x%00", "mcp__a__b", "~1", "/../../x", "C:\\x", "a" * 70000),
)
"""Words that no source should have."""
NUMBERS = (0, 1, 2, 2**53, 0.5)
HUGE = (-1, -(2**64), 10**400, 4294967296, -0.0, 1e308, 1e-400)


def values(wild: bool) -> st.SearchStrategy[Any]:
    """Values of any type; tame ones could stand in some source."""
    words = st.sampled_from((*TAME, *WILD) if wild else TAME)
    numbers = st.sampled_from((*NUMBERS, *HUGE) if wild else NUMBERS)
    return st.recursive(
        st.one_of(st.none(), st.booleans(), numbers, words),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
        max_leaves=5,
    )


JUNK = st.sampled_from(
    [
        b"",
        b"\r",
        b"{}",
        b"[]",
        b'"x"',
        b"null",
        b'{"type":"user"',
        b"\x00\x00\x00",
        b"\xff",
        b"}{",
        b"[" * 3000,
        b'[{"jsonrpc":"2.0","method":"x"},1]',
        b'{"$set":1}',
        b'{"dir":"agent","frame":[]}',
        b'{"$rewindTo":null}',
    ]
)


@cache
def lines(kind: str) -> list[Any]:
    """Lines of a log, entries of a chat, pieces of a session."""
    if kind == "acp":
        logs = [first_version(), second_version(), *others().values()]
        return [json.loads(line) for log in logs for line in log.lines]
    if kind == "gemini":
        return [
            HEAD,
            *(gemini.stripped(one) for one in gemini.whole()),
            {"$rewindTo": "m1"},
            {"$set": {"kind": "x"}},
        ]
    return [{"info": told, "parts": parts} for told, parts in opencode.whole()]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


@st.composite
def bent(draw: st.DrawFn, value: Any, wild: bool, most: int = 3) -> Any:
    """A value with some of its places changed."""
    for _ in range(draw(st.integers(0, most))):
        where = places(value)
        if where:
            value = changed(value, where[draw(st.integers(0, len(where) - 1))], draw(values(wild)))
    return value


def written(draw: st.DrawFn, value: Any, wild: bool, indent: int | None = None) -> bytes:
    """JSON text; a wild one has numbers that no reader keeps, and a key that is there twice now and then."""
    line = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent).encode("utf-8", "surrogatepass")
    line = line.replace(b'"@"', draw(st.sampled_from([b"1e400", b"-0.1e-999", b"9" * 4500])))
    if wild and draw(st.integers(0, 15)) == 0:
        line = line.replace(b'": ', b'": 1, "twice": 1, "twice": ', 1)
    return line


@st.composite
def log_lines(draw: st.DrawFn, kind: str, wild: bool) -> bytes:
    """A file of lines."""
    known = lines(kind)
    found: list[bytes] = []
    for _ in range(draw(st.integers(1, 8))):
        found.append(written(draw, draw(bent(known[draw(st.integers(0, len(known) - 1))], wild)), wild))
        if draw(st.integers(0, 4)) == 0:
            found.append(draw(JUNK))
        if draw(st.integers(0, 5)) == 0:
            found.append(found[draw(st.integers(0, len(found) - 1))])
    joints = [b"\n", b"\r\n", *([b""] if wild else [])]
    return draw(st.sampled_from(joints)).join(found) + draw(st.sampled_from([b"\n", b""]))


@st.composite
def documents(draw: st.DrawFn, kind: str, wild: bool) -> bytes:
    """A file that is one document; a wild one may be cut off."""
    known = lines(kind)
    picked = [known[draw(st.integers(0, len(known) - 1))] for _ in range(draw(st.integers(1, 4)))]
    whole = {**HEAD, "messages": picked} if kind == "gemini" else {"info": INFO, "messages": picked}
    data = written(draw, draw(bent(whole, wild, 4)), wild, draw(st.sampled_from([None, 1])))
    return (
        data[: draw(st.sampled_from([len(data), len(data), len(data) - 2, len(data) // 2]))] if wild else data
    )


def is_left_open(finding: Finding) -> bool:
    """What the importer does not settle: a key that the source repeats, in a value kept as its own text."""
    return finding.rule == "P-JSON" and finding.path.startswith(
        (
            "/value/",
            "/raw/",
            "/input/",
            "/content/",
            "/displayContent/",
            "/native/extra/",
            "/requestedSchema/",
            "/changes/",
        )
    )


def kept(kind: str, name: str, data: bytes) -> None:
    """Imports bytes; what comes of them keeps the rules, and what does not is one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        for made in import_sources([path], Path(folder) / "out", kind=kind):
            if isinstance(made, Failure):
                assert "\n" not in made.message
                continue
            bundle = Bundle(made.bundle)
            for entry in bundle.manifest.streams:
                with bundle.open(entry.file) as file:
                    found = [one for one in check_stream(stream_lines(file)) if not is_left_open(one)]
                assert not found, found
            list(audit_bundle(bundle))  # findings or none: no exception
        assert path.read_bytes() == data


LOOSE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("kind", ["acp", "gemini"])
@settings(LOOSE, max_examples=150)
@given(st.data())
def test_any_lines_are_read(kind: str, drawn: st.DataObject) -> None:
    kept(kind, "session-1.jsonl", drawn.draw(log_lines(kind, wild=True)))


@pytest.mark.parametrize("kind", ["gemini", "opencode"])
@settings(LOOSE, max_examples=100)
@given(st.data())
def test_any_documents_are_read(kind: str, drawn: st.DataObject) -> None:
    kept(kind, "session-1.json", drawn.draw(documents(kind, wild=True)))


@settings(LOOSE, max_examples=40)
@given(st.data())
def test_any_rows_are_read(drawn: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "opencode.db"
        database(path, opencode.whole())
        base = sqlite3.connect(path)
        for table, column in (("message", "data"), ("part", "data"), ("session", "title")):
            for name, text in base.execute(f"SELECT id, {column} FROM {table}").fetchall():
                if drawn.draw(st.integers(0, 6)) == 0:
                    value = json.loads(text) if table != "session" else text
                    data = json.dumps(drawn.draw(bent(value, wild=True))).replace('"@"', "1e400")
                    base.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", [data, name])
        base.commit()
        base.close()
        kept("opencode", "opencode.db", path.read_bytes())
