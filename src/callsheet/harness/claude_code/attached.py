"""Other files in a session's folder: ``tool-results/`` (whole outputs, MCP attachments) and whatever lies there.

Owns: keeping each of them whole as a blob, which of them a result points at (by the session's folder and the name,
or by the name and the size that was told), and the records of those that
nothing points at. Only names inside the session's own folder are opened, never a path that an agent wrote.

Must never know: records but the unmapped ones for lonely files.
"""

from __future__ import annotations

from pathlib import PurePath, PureWindowsPath
from typing import NamedTuple

from callsheet.harness._port import Desk
from callsheet.harness._port.pen import amount
from callsheet.harness.claude_code.shapes import text
from callsheet.harness.claude_code.tooluse import Report
from callsheet.records import BlobRef, Capture, Native, Ref, SourceEntry, Unmapped

KIND = "claude-code-tool-result"
FOLDER = "tool-results"


class Persisted(NamedTuple):
    """The whole output behind a shortened one."""

    size: int | None
    blob: BlobRef | None
    reason: str | None
    ref: Ref | None


class _Kept(NamedTuple):
    session: str
    folder: str
    source: SourceEntry
    blob: BlobRef
    ref: Ref


class Attached:
    """The files beside one session, each read once.

    Attributes:
        sources: Their source entries.
        refs: A ref to the whole of each.
    """

    def __init__(self, desk: Desk, files: tuple[str, ...]) -> None:
        self._kept: list[_Kept] = []
        self._outputs: dict[str, list[_Kept]] = {}
        self._pointed_at: set[str] = set()
        for path in files:
            kept = _keep(desk, path)
            if kept is not None:
                self._kept.append(kept)
                if kept.folder == FOLDER:
                    self._outputs.setdefault(PurePath(path).name, []).append(kept)
        self.sources = [kept.source for kept in self._kept]
        self.refs = [kept.ref for kept in self._kept]

    def persisted(self, report: Report) -> Persisted | None:
        """The whole output that a result says was put into a file; None when it says nothing of the kind."""
        path = text(report.persistedOutputPath)
        if path is None:
            return None
        told = amount(report.persistedOutputSize)
        size = told if isinstance(told, int) else None
        kept = self._output(PureWindowsPath(path), size)
        if kept is None:
            return Persisted(size, None, "the file with the whole output is not there", None)
        return Persisted(size, kept.blob, None, kept.ref)

    def _output(self, told: PureWindowsPath, size: int | None) -> _Kept | None:
        """The file that a path means, which an agent wrote on its own machine: the session's folder may lie elsewhere.

        Another session's file may have the same name, and is not it.
        """
        named = self._outputs.get(told.name, [])
        near = [kept for kept in named if told.parts[-3:-1] == (kept.session, kept.folder)]
        return next(iter(near or [kept for kept in named if kept.blob.size == size]), None)

    def cited(self, ref: Ref) -> None:
        """Takes note that a record cites a file: it needs no record of its own."""
        self._pointed_at.add(ref.source)

    def lonely(self) -> list[Unmapped]:
        """Records for the files that no record cites so far, so that none is lost."""
        return [
            Unmapped(
                native_type=kept.folder,
                native=Native(refs=[kept.ref]),
                capture={"value": Capture(state="external", blob=kept.blob)},
            )
            for kept in self._kept
            if kept.source.id not in self._pointed_at
        ]


def _keep(desk: Desk, path: str) -> _Kept | None:
    try:
        source = desk.source(path, KIND)
        blob = desk.keep(source, "text/plain" if path.endswith(".txt") else None)
    except OSError as error:
        if error.filename is None or str(error.filename) != path:
            raise  # it is the blob that cannot be written
        desk.diagnose("missing_file", f"{path}: {error.strerror or error}")
        return None
    ref = Ref(
        source=source.id,
        offset=0,
        bytes=blob.size,
        sha256=blob.blob.removeprefix("sha256:"),
        role="file",
    )
    folder = PurePath(path).parent
    return _Kept(folder.parent.name, folder.name, source, blob, ref)
