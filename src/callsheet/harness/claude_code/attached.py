"""Files beside a session: ``<id>/tool-results/`` (whole outputs and MCP attachments).

Owns: which of them a result points at, reading them once as sources of their own, and those that nothing points at.
Only names inside the session's own folder are opened, never a path that an agent wrote.

Must never know: records but the unmapped ones for lonely files.
"""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import NamedTuple

from msgspec import Raw

from callsheet.harness._port import Desk
from callsheet.harness.claude_code.pen import number
from callsheet.harness.claude_code.shapes import text
from callsheet.harness.claude_code.tooluse import tool_use
from callsheet.records import BlobRef, Capture, Native, Ref, SourceEntry, Unmapped

KIND = "claude-code-tool-result"


class Persisted(NamedTuple):
    """The whole output behind a shortened one."""

    size: int | None
    blob: BlobRef | None
    reason: str | None


class Attached:
    """The files of one session's ``tool-results`` folder."""

    def __init__(self, desk: Desk, files: tuple[str, ...]) -> None:
        self._desk = desk
        self._files = {PurePosixPath(path).name: path for path in reversed(files)}
        self._read: dict[str, tuple[SourceEntry, BlobRef] | None] = {}

    def persisted(self, raw: Raw) -> Persisted | None:
        """The whole output that a result says was put into a file; None when it says nothing of the kind."""
        if b'"persistedOutputPath"' not in bytes(raw):
            return None
        use = tool_use(raw)
        path = text(use.persistedOutputPath)
        if path is None:
            return None
        size = number(use.persistedOutputSize)
        found = self._whole(PureWindowsPath(path).name)
        reason = None if found else "the file with the whole output is not there"
        return Persisted(size if isinstance(size, int) else None, found[1] if found else None, reason)

    def _whole(self, name: str) -> tuple[SourceEntry, BlobRef] | None:
        if name not in self._read:
            path = self._files.get(name)
            self._read[name] = self._take(path) if path else None
        return self._read[name]

    def _take(self, path: str) -> tuple[SourceEntry, BlobRef] | None:
        try:
            source = self._desk.source(path, KIND)
            data = self._desk.whole(source)
        except OSError as error:
            self._desk.diagnose("missing_file", f"{path}: {error.strerror or error}")
            return None
        mime = "text/plain" if path.endswith(".txt") else None
        return source, self._desk.blob(data, mime)

    def lonely(self) -> list[Unmapped]:
        """Records for the files that no result of any stream pointed at, so that none is lost."""
        found = []
        for name in sorted(self._files):
            if name in self._read:
                continue
            taken = self._whole(name)
            if taken is None:
                continue
            source, blob = taken
            ref = Ref(
                source=source.id,
                offset=0,
                bytes=blob.size,
                sha256=blob.blob.removeprefix("sha256:"),
                role="file",
            )
            found.append(
                Unmapped(
                    native_type="tool-results",
                    native=Native(refs=[ref]),
                    capture={"value": Capture(state="external", blob=blob)},
                )
            )
        return found
