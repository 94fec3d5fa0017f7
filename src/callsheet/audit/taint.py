"""The search for values that a bundle must not hold (ASR-283).

Owns looking for them, in every spelling, in all that a bundle is made of: records, manifest, blobs, native copies, any
other file. Words, numbers and file names that are our own are no copy of a value that happens to be equal. No finding
shows a value.

Must never know: why a value must not be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from callsheet.audit.finding import Finding, Path, pointer_of
from callsheet.errors import CallsheetError
from callsheet.records.bundle import MANIFEST, Bundle
from callsheet.records.stream import stream_lines
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import Torn, inflate
from callsheet.wire.lines import split_lines
from callsheet.wire.lossless import NotJson, decode
from callsheet.wire.masks import SHORTEST_KEY, spellings

RULE = "ASR-283"
TOLD = 100
"""Places that are told one by one."""
OURS = frozenset(
    [
        "type",
        "seq",
        "id",
        "ts",
        "supersedes",
        "callIdSource",
        "idSource",
        "linkage",
        "status",
        "kind",
        "author",
    ]
) | frozenset(["mode", "scope", "form", "requestedBy", "state", "capture", "format", "records"])
"""Members whose values are our own words: a secret that is such a word is not copied there."""
NATIVE = frozenset(["input", "raw", "answers", "response", "value", "native", "_meta"])
"""Members that hold native JSON, where a number may be the answer; other numbers are counts and times."""
PLACES = frozenset(["source", "line", "offset", "bytes", "sha256", "role", "pointer", "table", "column"])
"""Members of a ref that say where something stands."""
NAMES = frozenset(["path", "sha256", "blob", "file", "native", "encoding"])
"""Members of a source or blob that name files."""


class Search:
    """Looks for values in everything that a bundle holds."""

    def __init__(self, values: dict[str, tuple[str, str]]) -> None:
        self._askers: dict[bytes, tuple[str, str]] = {}
        for value, asker in values.items():
            for form in spellings(value):
                self._askers.setdefault(form, asker)
        self._forms = sorted(self._askers, key=len, reverse=True)
        self._numbers = values
        self._longest = max(map(len, self._forms), default=0)

    def _in(self, data: bytes, least: int = 0) -> tuple[str, str] | None:
        """Who asked for a value that stands in these bytes."""
        return next((self._askers[form] for form in self._forms if len(form) >= least and form in data), None)

    def bundle(self, bundle: Bundle) -> Iterator[Finding]:
        """Every place in every file."""
        streams = {entry.file: entry.id for entry in bundle.manifest.streams}
        copies = {entry.native: entry.id for entry in bundle.manifest.sources if entry.native is not None}
        for name in bundle.names():
            try:
                if name == MANIFEST:
                    yield from self._document(bundle.read(name))
                elif name in streams:
                    with bundle.open(name) as file:
                        for line in stream_lines(file):
                            yield from self._record(line.data, streams[name], line.number)
                elif name in copies:
                    with bundle.open(name) as file:
                        yield from self._copy(read_chunks(file), copies[name])
                else:
                    with bundle.open(name) as file:
                        yield from self._bytes(read_chunks(file), name)
            except (OSError, KeyError, CallsheetError) as error:
                yield Finding(None, f"/{name}", None, RULE, f"cannot be searched for secrets: {error}")

    def _record(self, data: bytes, stream: str, number: int) -> Iterator[Finding]:
        if self._in(data) is None:
            return
        try:
            record = decode(data)
        except NotJson:
            record = None
        if not isinstance(record, dict):
            asker = self._in(data)
            assert asker is not None
            yield Finding(None, "", None, RULE, _message(asker, "the line"), stream, number)
            return
        name = record.get("id")
        for path, asker in self._leaves(record, ()):
            if not _is_ours(path):
                yield Finding(
                    name if isinstance(name, str) else None,
                    pointer_of(path),
                    None,
                    RULE,
                    _message(asker, "it"),
                    stream,
                    number,
                )

    def _document(self, data: bytes) -> Iterator[Finding]:
        if self._in(data) is None:
            return
        for path, asker in self._leaves(decode(data), ()):
            if path[-1] not in NAMES and path[0] not in OURS:
                yield Finding(None, pointer_of(path), None, RULE, _message(asker, "the manifest"))

    def _copy(self, packed: Iterable[bytes], source: str) -> Iterator[Finding]:
        try:
            for line in split_lines(inflate(packed)):
                asker = self._in(line.data)
                if asker is not None:
                    message = _message(asker, "the bundle's copy of the source")
                    yield Finding(None, f"/sources/{source}", None, RULE, message, line=line.number)
        except Torn:
            pass  # what came out before the damage was searched; the source is a finding of its own

    def _bytes(self, chunks: Iterable[bytes], name: str) -> Iterator[Finding]:
        tail = b""
        for chunk in chunks:
            window = tail + chunk
            asker = self._in(window)
            if asker is not None:
                yield Finding(None, f"/{name}", None, RULE, _message(asker, "the file"))
                return
            tail = window[-self._longest :]

    def _leaves(self, value: Any, path: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
        """Every leaf and member name in which a value stands."""
        stack: list[tuple[Path, Any]] = [(path, value)]
        while stack:
            at, item = stack.pop()
            if isinstance(item, dict):
                for name, inner in reversed(item.items()):
                    asker = self._in(name.encode("utf-8", "surrogatepass"), SHORTEST_KEY)
                    if asker is not None:
                        yield (*at, name), asker
                    stack.append(((*at, name), inner))
            elif isinstance(item, list):
                stack.extend(((*at, index), inner) for index, inner in reversed(list(enumerate(item))))
            elif isinstance(item, str):
                asker = self._in(item.encode("utf-8", "surrogatepass"))
                if asker is not None:
                    yield at, asker
            elif isinstance(item, int | float | Decimal) and at[0] in NATIVE and str(item) in self._numbers:
                yield at, self._numbers[str(item)]


def _is_ours(path: Path) -> bool:
    """Whether a member of a record is a word or a number of our own."""
    if path[0] in OURS or path[0] == "sources" or path[-1] in ("blob", "sha256"):
        return True
    return path[:2] == ("native", "refs") and path[-1] in PLACES


def _message(asker: tuple[str, str], what: str) -> str:
    record, stream = asker
    return f"{what} holds the answer to a secret that {record} of stream {stream} asked for"
