"""The import engine: native sources in, bundles out.

Owns: guessing the kind by content, the order of sessions, and what is said to the person of each: whatever
goes wrong with one session, or with one adapter's search, is a ``Failure`` of one line, and the others go on.
A session's bundle is built beside its final place and renamed into it, so an interrupted import leaves nothing
half-written.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from callsheet import harness
from callsheet.errors import DEBUG, SourceError, UsageError
from callsheet.harness._port import Session, Stored
from callsheet.library.folders import DiskFolder, is_folder, is_own, is_stream, open_regular
from callsheet.library.providers import Covered, Providers, read_under
from callsheet.library.shelf import fuller_place, locked, place_for, publish
from callsheet.library.workbench import Workbench, printable
from callsheet.records.bundle import Diagnostic, stream_id
from callsheet.wire.database import is_database
from callsheet.wire.files import private_folder
from callsheet.wire.lines import CHUNK

UNFIT = "fits no known kind of session (see: callsheet harnesses)"
"""What is said of a file that is none of ours."""
Progress = Callable[[str, int, int], None]
"""Called with the session's main path, bytes read so far, bytes to read (both passes counted)."""


class Imported(msgspec.Struct, kw_only=True):
    """What became of one session (the command line prints it with ``--json``).

    Attributes:
        calls: Its calls, those of its subagents among them.
        agent_calls: Those of its subagents.
    """

    session: str
    kind: str
    bundle: Path
    stream: str
    records: int
    calls: int
    agent_calls: int = msgspec.field(name="agentCalls", default=0)
    gaps: int
    diagnostics: list[Diagnostic] = []


class Failure(msgspec.Struct, kw_only=True):
    """A source that gave no session; the others went on."""

    path: str
    message: str
    line: int | None = None


class Found(msgspec.Struct, kw_only=True):
    """Where this user's agents keep sessions."""

    kind: str
    path: Path
    sessions: int


def adapter_for(kind: str) -> Stored:
    """The adapter of a kind.

    Raises:
        UsageError: No such kind.
    """
    for adapter in harness.HARNESSES:
        if adapter.kind == kind:
            return adapter
    known = ", ".join(adapter.kind for adapter in harness.HARNESSES)
    raise UsageError(f"unknown kind {kind!r} (known: {known})")


def find_sessions(path: Path, kind: str | None) -> list[tuple[Stored, Session]]:
    """The sessions of a file or folder.

    Raises:
        SourceError: Nothing there, not readable, or a file that fits no kind.
    """
    found, failures = search(path, kind, DiskFolder(path))
    if not found:
        raise SourceError(failures[0].message, path=failures[0].path, line=failures[0].line)
    return found


def search(
    path: Path, kind: str | None, folder: DiskFolder
) -> tuple[list[tuple[Stored, Session]], list[Failure]]:
    """The sessions of a file or folder, and what went wrong while they were looked for."""
    adapters = [adapter_for(kind)] if kind else list(harness.HARNESSES)
    found: list[tuple[Stored, Session]] = []
    failures: list[Failure] = []
    claimed: set[str] = set()
    try:
        if is_folder(path):
            if is_own(path):
                raise SourceError("is a bundle of callsheet's own (see: callsheet show)", path=str(path))
        else:
            adapters = _fitting(path, kind, adapters)
    except SourceError as error:
        return [], [failure_of(error, str(path))]
    for adapter in adapters:
        try:
            sessions = adapter.sessions(str(path), folder)
        except Exception as error:
            failures.append(failure_of(error, str(path)))
            continue
        # A file that two adapters would read belongs to the first of them, as it does when it is given alone.
        sessions = [one for one in sessions if one.main not in claimed]
        claimed.update(one.main for one in sessions)
        found += [(adapter, session) for session in sessions]
    if not found and not failures:
        why = folder.unreadable.get(str(path), "no sessions found in this folder")
        failures.append(Failure(path=printable(str(path)), message=why))
    return found, failures


def _fitting(path: Path, kind: str | None, adapters: list[Stored]) -> list[Stored]:
    """The adapters that read a file: the one that was asked for, else the first that recognises it."""
    try:
        with open_regular(path) as file:
            head = file.read(CHUNK)
    except FileNotFoundError:
        raise SourceError("no such file or folder", path=str(path)) from None
    except (OSError, ValueError) as error:
        raise SourceError(getattr(error, "strerror", None) or str(error), path=str(path)) from None
    if is_stream(head):
        raise SourceError(_unfit(head), path=str(path))
    if kind is None:
        if is_database(head):
            # The pages with its schema may stand anywhere in it.
            head += "\n".join(DiskFolder(path).tables(str(path))).encode("utf-8", "replace")
        adapters = [adapter for adapter in adapters if adapter.recognises(path.name, head)][:1]
    if not adapters:
        raise SourceError(_unfit(head), path=str(path))
    return adapters


def failure_of(error: Exception, path: str) -> Failure:
    """What became of a source that was not read, in one line; with ``CALLSHEET_DEBUG`` a bug shows where it is."""
    if isinstance(error, SourceError):
        return Failure(path=printable(error.path or path), message=error.message, line=error.line)
    if isinstance(error, UsageError) or os.environ.get(DEBUG):
        raise error
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    message = f"not read: {' '.join(what.split())[:300]} (a bug in callsheet; {DEBUG}=1 shows where)"
    return Failure(path=printable(path), message=message)


def import_session(
    adapter: Stored,
    session: Session,
    out: Path,
    *,
    native: bool = True,
    keep_reasoning: bool = False,
    settled: bool = False,
    progress: Progress | None = None,
    providers: Providers | None = None,
) -> Imported:
    """Imports one session into ``out/<stream id>``.

    ``settled``: without a line that is still being written. With ``providers``, the sessions of the agents underneath
    it stand in the same bundle.

    Raises:
        SourceError: The session cannot be read.
    """
    # Names of files may hold anything; an id is text.
    session = session._replace(native_id=printable(session.native_id))
    name = stream_id(session.native_id)
    # Named before it is made: whenever this is stopped, what is to be cleared away has a name.
    part = out / f".{name[:40]}.{secrets.token_hex(4)}.part"

    def step(done: int, total: int) -> None:
        if progress is not None:
            progress(session.main, done, total)

    wanted = providers.under(adapter, session) if providers is not None else []
    desk = Workbench(part, keep_reasoning=keep_reasoning, settled=settled, progress=step)
    hidden: list[str] = []
    try:
        _make(part, out)
        while True:
            adapter.read(session, Covered(desk, hidden) if hidden else desk)
            calls, agent_calls = desk.calls, desk.agent_calls
            read_under(desk, wanted, hidden)
            told = [value for value in desk.secrets if value not in hidden]
            if not wanted or not told:
                break
            # What one of them calls a secret may stand in another that was read before: all are read again.
            hidden += told
            desk.release()
            shutil.rmtree(part)
            part.mkdir(mode=0o700)
            desk = Workbench(part, keep_reasoning=keep_reasoning, settled=settled, progress=step)
        if not desk.streams:
            raise SourceError("holds no records", path=session.main)
        main = name if any(entry.id == name for entry in desk.streams) else desk.streams[0].id
        copies = desk.copies(native=native)
        # Another import may have taken the place since this one began.
        with locked(out):
            final = place_for(out / name, session.main)
            if final.name != name:
                desk.diagnose(
                    "same_session", f"another file of this session is in {name}: {printable(session.main)}"
                )
            fuller = fuller_place(final, copies)
            if fuller is not None:
                desk.diagnose(
                    "source_shrank", f"an earlier import had more of it, and is kept as {fuller.name}"
                )
            desk.close(main, copies)
            publish(part, final, fuller)
    except OSError as error:
        raise SourceError(error.strerror or str(error), path=str(error.filename or session.main)) from None
    finally:
        desk.release()
        shutil.rmtree(part, ignore_errors=True)
    return Imported(
        session=session.native_id,
        kind=session.kind,
        bundle=final,
        stream=main,
        records=desk.records,
        calls=calls,
        agent_calls=agent_calls,
        gaps=desk.gaps,
        diagnostics=desk.diagnostics,
    )


def _make(part: Path, out: Path) -> None:
    try:
        private_folder(out)
        part.mkdir(mode=0o700)
    except OSError as error:
        raise SourceError(f"cannot write there: {error.strerror or error}", path=str(out)) from None


def import_sources(
    paths: list[Path],
    out: Path,
    *,
    kind: str | None = None,
    native: bool = True,
    keep_reasoning: bool = False,
    progress: Progress | None = None,
    providers: Providers | None = None,
) -> Iterator[Imported | Failure]:
    """Imports every session of every path; a source that fails is a ``Failure`` and the others go on."""
    seen: set[tuple[str, str, str]] = set()
    for path in paths:
        folder = DiskFolder(path)
        found, failures = search(path, kind, folder)
        yield from failures
        taken = {file for _, session in found for file in (session.main, *session.files)}
        for adapter, session in found:
            key = (session.kind, session.native_id, os.path.realpath(session.main))
            if key in seen:
                continue
            seen.add(key)
            try:
                yield import_session(
                    adapter,
                    session,
                    out,
                    native=native,
                    keep_reasoning=keep_reasoning,
                    progress=progress,
                    providers=providers,
                )
            except Exception as error:
                yield failure_of(error, session.main)
        if is_folder(path):
            yield from _left(path, folder, taken | {failure.path for failure in failures})


def _left(path: Path, folder: DiskFolder, taken: set[str]) -> Iterator[Failure]:
    """What of a folder no adapter took: files that look as if they were meant, and what could not be read."""
    if is_own(path):
        return
    for file in folder.files(str(path), "**/*.jsonl"):
        if file not in taken and file not in folder.unreadable:
            yield Failure(path=printable(file), message=_unfit(_head(file)))
    for file, why in folder.unreadable.items():
        if file not in taken:
            yield Failure(path=printable(file), message=why)


def _head(file: str) -> bytes:
    try:
        with open_regular(Path(file)) as opened:
            return opened.read(CHUNK)
    except OSError:
        return b""


def _unfit(head: bytes) -> str:
    if is_stream(head):
        return "is a stream of callsheet's own (see: callsheet show)"
    return UNFIT if head else "the file is empty"


def discover(environ: Mapping[str, str], home: Path) -> list[Found]:
    """Where the agents of this user keep sessions, and how many are there."""
    found = []
    for place, kind in places_of(environ, home):
        sessions = adapter_for(kind).sessions(str(place), DiskFolder(place))
        found.append(Found(kind=kind, path=place, sessions=len(sessions)))
    return found


def places_of(environ: Mapping[str, str], home: Path) -> list[tuple[Path, str]]:
    """Folders where the agents of this user keep sessions, each with the kind of these."""
    return [
        (Path(place), adapter.kind)
        for adapter in harness.HARNESSES
        for place in adapter.places(dict(environ), str(home))
        if is_folder(Path(place))
    ]


__all__ = [
    "UNFIT",
    "Failure",
    "Found",
    "Imported",
    "Providers",
    "adapter_for",
    "discover",
    "failure_of",
    "find_sessions",
    "import_session",
    "import_sources",
    "places_of",
    "search",
]
