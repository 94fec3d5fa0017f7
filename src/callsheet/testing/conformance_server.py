"""callsheet under the conformance runner: ``python -m callsheet.testing.conformance_server``.

Owns the answers that callsheet gives: ``validate`` from the room ``rules``, ``read`` from the room ``pairing``,
``audit`` from the room of that name, over a bundle that is made of the request in a temporary folder. One JSON
request a line on standard input, one answer a line on standard output.

Must never know: the cases.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import zstandard

from callsheet import __version__
from callsheet import audit as auditing
from callsheet.pairing import Pairing, provider_of
from callsheet.records import FORMAT, Permission, Record, Session, Terminal, ToolCall, ToolResult
from callsheet.records.bundle import Bundle, Manifest, NativeSource, StreamEntry, write_manifest
from callsheet.records.stream import Entry, read_stream, stream_lines
from callsheet.registry import of_session
from callsheet.rules import Finding, check_bundle, check_stream
from callsheet.testing.conformance import PROTOCOL, request_bytes, stream_bytes
from callsheet.wire.blobs import blob_path, digest

Json = dict[str, Any]


def validate(request: Json) -> Iterator[Finding]:
    """Findings of the stream or bundle in a request."""
    if "bundle" not in request:
        yield from check_stream(stream_lines(io.BytesIO(request_bytes(request["stream"]))))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "streams").mkdir()
        entries = []
        for number, stream in enumerate(request["bundle"]["streams"]):
            file = f"streams/{number}.jsonl"
            (folder / file).write_bytes(request_bytes(stream))
            entries.append(StreamEntry(id=stream["id"], file=file, parent=stream.get("parent")))
        for blob, text in request["bundle"].get("blobs", {}).items():
            path = blob_path(folder, blob)
            path.parent.mkdir(parents=True)
            path.write_bytes(request_bytes({"base64": text}))
        write_manifest(folder, Manifest(format=FORMAT, streams=entries))
        yield from check_bundle(Bundle(folder))


def unauditable(request: Json) -> str | None:
    """Why a stream cannot be audited: no registry says how the facts of its agent or sources come about."""
    first = next(iter(read_stream(io.BytesIO(request_bytes(request["stream"])))), None)
    head = first.record if isinstance(first, Entry) else None
    agent = head.agent if isinstance(head, Session) else None
    name = None if agent is None else agent.name
    found = of_session(name, [source["kind"] for source in request["sources"]])
    return None if found is not None else f"callsheet has no registry for the agent {name!r}"


def audit(request: Json) -> Iterator[auditing.Finding]:
    """Findings of a stream held against the native sources in a request.

    The bundle has a copy of every source, so that the path that the request gives for one is a name and no more.
    """
    data = request_bytes(request["stream"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "native").mkdir()
        (folder / "stream.jsonl").write_bytes(data)
        sources = []
        for number, source in enumerate(request["sources"]):
            text = stream_bytes(source["lines"])
            file = f"native/{number}.jsonl.zst"
            (folder / file).write_bytes(zstandard.compress(text))
            sources.append(
                NativeSource(
                    id=source["id"],
                    kind=source["kind"],
                    path=source["path"],
                    size=len(text),
                    sha256=digest(text),
                    native=file,
                )
            )
        stream = StreamEntry(id="stream", file="stream.jsonl", sha256=digest(data))
        write_manifest(folder, Manifest(format=FORMAT, streams=[stream], sources=sources))
        for finding in auditing.audit_bundle(Bundle(folder)):
            # The copies are the request's own sources, in clear: what they hold is no doing of the records.
            if not (finding.rule == "ASR-283" and finding.path.startswith("/sources/")):
                yield finding


def reading(stream: bytes) -> Json:
    """What callsheet reads in a stream: pairs, and what could not be paired (``conformance.Reading``)."""
    pairing = Pairing()
    records: list[Any] = []
    for entry in read_stream(io.BytesIO(stream)):
        if isinstance(entry, Entry):
            pairing.add(entry.record)
            records.append(entry.record)
        else:
            pairing.add_bad()
            records.append(None)

    def current(kind: type[Record]) -> list[int]:
        return [number for number in pairing.numbers(kind) if not pairing.is_superseded(number)]

    found: Json = {"pairs": [], "dangling": [], "orphans": [], "ambiguous": [], "providers": {}}
    found |= {"requestedBy": {}, "outcomes": {}, "terminals": {}}
    for number in current(ToolCall):
        call = records[number]
        answer = pairing.result(call.call_id)
        result = None if answer is None else records[answer]
        if result is None:
            found["dangling"].append(call.id)
        else:
            found["pairs"].append([call.id, result.id])
        provider = provider_of(call, result)
        found["providers"][call.id] = None if provider is None else msgspec.to_builtins(provider)
        found["requestedBy"][call.id] = call.requested_by
        found["outcomes"][call.id] = "unknown" if result is None else result.status
    terminals = {records[number].terminal_id: records[number].id for number in current(Terminal)}
    for number in current(ToolResult):
        result = records[number]
        word = pairing.pairing_of(number, result.call_id)
        if word != "paired":
            found["orphans" if word == "orphan" else "ambiguous"].append(result.id)
        terminal = result.exec.terminal_id if result.exec else None
        found["terminals"][result.id] = terminals.get(terminal)
    asked = [records[number] for number in current(Permission)]
    found["unresolved"] = [permission.id for permission in asked if permission.decision is None]
    compact = sum(records[number].permission is not None for number in current(ToolResult))
    found["decisions"] = sum(permission.decision is not None for permission in asked) + compact
    return found


def answer(request: Json) -> Json:
    """The answer to one request, without its id."""
    task = request.get("do")
    if task == "hello":
        return {
            "implementation": "callsheet",
            "version": __version__,
            "protocol": PROTOCOL,
            "does": ["validate", "read", "audit"],
        }
    if task == "validate":
        return {"findings": [msgspec.to_builtins(finding) for finding in validate(request)]}
    if task == "audit":
        why = unauditable(request)
        if why is not None:
            return {"skip": why}
        return {"findings": [msgspec.to_builtins(finding) for finding in audit(request)]}
    if task == "read":
        return {"reading": reading(request_bytes(request["stream"]))}
    return {"skip": f"callsheet does not {task}"}


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answers requests until the source ends."""
    for line in source:
        request = json.loads(line)
        sink.write(json.dumps({"id": request.get("id"), **answer(request)}).encode() + b"\n")
        sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
