"""The conformance kit: cases as data, a runner for any implementation, and check_reader() for any reader.

Owns the shape of a case file (``CaseFile``; ``conformance/schema.json`` is generated from it), the search
for the kit's folder, the comparison of an answer with what a case expects, and the line protocol with an
implementation that runs as another process (described for everybody in ``conformance/README.md``).

Must never know: how callsheet itself answers (``conformance_server`` does).
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from callsheet.errors import UsageError

PROTOCOL = "callsheet-conformance/1"
Json = dict[str, Any]
Task = Literal["validate", "read", "audit"]


class Expected(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A finding that a case expects; in a bundle with the stream's id.

    Attributes:
        rule: Code of the rule.
        record: Id of the record.
        path: JSON pointer to the member.
        stream: Id of the stream in a bundle.
        also: Of a producer case: other codes that ask for the evidence of the same member.
    """

    rule: str
    record: str | None
    path: str
    stream: str | None = None
    also: list[str] = []


class Reading(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """What a reader has to answer; only the members that stand in the case are compared. Records by their id.

    Attributes:
        pairs: ``[call, result]``, each in its latest record.
        dangling: Calls without a paired result.
        orphans: Results whose call is not there, or that are linked to none.
        ambiguous: Results that could answer more than one call, or share their call with another result.
        unresolved: Permissions without a decision.
        decisions: How many approval decisions there are.
        providers: Call to its provider, or null.
        requested_by: Call to who requested it, or null.
        outcomes: Call to its status, ``unknown`` when dangling.
        terminals: Result to the terminal that it read, or null.
    """

    pairs: list[tuple[str, str]] | msgspec.UnsetType = msgspec.UNSET
    dangling: list[str] | msgspec.UnsetType = msgspec.UNSET
    orphans: list[str] | msgspec.UnsetType = msgspec.UNSET
    ambiguous: list[str] | msgspec.UnsetType = msgspec.UNSET
    unresolved: list[str] | msgspec.UnsetType = msgspec.UNSET
    decisions: int | msgspec.UnsetType = msgspec.UNSET
    providers: dict[str, Json | None] | msgspec.UnsetType = msgspec.UNSET
    requested_by: dict[str, str | None] | msgspec.UnsetType = msgspec.UNSET
    outcomes: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    terminals: dict[str, str | None] | msgspec.UnsetType = msgspec.UNSET


class Expect(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a case expects: all findings, in any order, and for reader cases the reading."""

    valid: bool
    findings: list[Expected]
    reading: Reading | None = None


class BundleStream(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One stream of a bundle."""

    id: str
    parent: str | None = None
    stream: list[Json | str]


class CaseBundle(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A bundle: its streams, and blobs by name as base64."""

    streams: list[BundleStream]
    blobs: dict[str, str] | None = None


class NativeLines(Struct, kw_only=True, forbid_unknown_fields=True):
    """A native source, line by line, each line's exact text."""

    id: str
    kind: str
    path: str
    lines: list[str]


class NativeSide(Struct, kw_only=True, forbid_unknown_fields=True):
    """The native sources of a producer case."""

    sources: list[NativeLines]


class Case(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One case. It has exactly one of ``stream``, ``streamBase64``, ``bundle`` and ``native``.

    Attributes:
        description: What is special about it.
        section: Part of the specification that it belongs to.
        stream: Lines: an object is a record in any layout, a string the exact text of a line.
        streamBase64: A stream as its exact bytes.
        bundle: Several streams and blobs.
        native: Native sources of a producer case.
        records_true: Records that a producer may write for them.
        records_false: Records with one lie; ``expect`` names it.
        expect: What has to be found; of a producer case in ``records_false``.
    """

    description: str
    section: str
    stream: list[Json | str] | None = None
    streamBase64: str | None = None  # noqa: N815 (the file's own spelling)
    bundle: CaseBundle | None = None
    native: NativeSide | None = None
    records_true: list[Json] | None = None
    records_false: list[Json] | None = None
    expect: Expect


class CaseFile(Struct, kw_only=True, forbid_unknown_fields=True):
    """The cases of one rule."""

    rule: str
    roles: list[Literal["stream", "producer", "reader"]]
    asks: str
    cases: list[Case]


def find_kit(folder: Path | None = None) -> Path:
    """The folder of the kit: the one given, or what came with the package or lies in its repository.

    Raises:
        UsageError: There is no kit there.
    """
    here = Path(__file__).resolve().parent
    places = [folder] if folder else [here / "kit", here.parents[2] / "conformance", Path("conformance")]
    for place in places:
        if (place / "rules").is_dir():
            return place
    raise UsageError(
        f"no conformance kit in {places[0] if folder else 'the package; name its folder with --kit'}"
    )


def load_kit(folder: Path) -> list[CaseFile]:
    """Every case file of a kit, rules first, then the envelope's codes.

    Raises:
        UsageError: A file is no case file.
    """
    found = []
    for path in [*sorted((folder / "rules").glob("*.json")), *sorted((folder / "envelope").glob("*.json"))]:
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=CaseFile))
        except (msgspec.DecodeError, OSError) as error:
            raise UsageError(f"{path}: {error}") from None
    return found


def case_schema() -> Json:
    """JSON Schema of a case file."""
    schema = msgspec.json.schema(CaseFile)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def stream_bytes(lines: Sequence[Json | str]) -> bytes:
    """The bytes of a stream as a case gives it."""
    texts = [
        line if isinstance(line, str) else json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        for line in lines
    ]
    return "".join(f"{text}\n" for text in texts).encode()


class Question(NamedTuple):
    """What one case asks of an implementation.

    Attributes:
        name: ``<rule>/<number of the case, from 0>``, with ``/true`` for a producer's true records.
        task: What the implementation has to do.
        request: The request without id and task.
        expect: What it has to answer.
        about: What is special about the case.
    """

    name: str
    task: Task
    request: Json
    expect: Expect
    about: str


def questions(files: Sequence[CaseFile]) -> Iterator[Question]:
    """Everything a kit asks, case by case."""
    for file in files:
        for number, case in enumerate(file.cases):
            name = f"{file.rule}/{number}"
            if case.native is not None:
                sources = msgspec.to_builtins(case.native.sources)
                for suffix, records, expect in (
                    ("/true", case.records_true, Expect(valid=True, findings=[])),
                    ("", case.records_false, case.expect),
                ):
                    text = stream_bytes(records or []).decode()
                    asked = {"sources": sources, "stream": {"text": text}}
                    yield Question(name + suffix, "audit", asked, expect, case.description)
                continue
            request = _request(case)
            yield Question(name, "validate", request, case.expect, case.description)
            if case.expect.reading is not None:
                yield Question(name, "read", request, case.expect, case.description)


def _request(case: Case) -> Json:
    if case.bundle is not None:
        streams = [
            {"id": one.id, "parent": one.parent, "text": stream_bytes(one.stream).decode()}
            for one in case.bundle.streams
        ]
        return {"bundle": {"streams": streams, "blobs": case.bundle.blobs or {}}}
    if case.streamBase64 is not None:
        return {"stream": {"base64": case.streamBase64}}
    return {"stream": {"text": stream_bytes(case.stream or []).decode()}}


def request_bytes(stream: Json) -> bytes:
    """The bytes of a stream in a request: ``text`` or ``base64``."""
    return base64.b64decode(stream["base64"]) if "base64" in stream else str(stream["text"]).encode()


def difference(question: Question, answer: Mapping[str, Any]) -> str | None:
    """What is wrong with an answer, in words; None when it is as expected."""
    if question.task == "read":
        return _reading_difference(question.expect.reading, answer.get("reading"))
    found = answer.get("findings")
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        return "the answer has no findings, an array of objects"
    if question.task == "audit" and question.expect.findings:
        return _lie_difference(question.expect.findings, found)
    members = ("rule", "record", "path", "stream")
    got = sorted(_words(*(one.get(member) for member in members)) for one in found)
    wanted = sorted(_words(one.rule, one.record, one.path, one.stream) for one in question.expect.findings)
    if got == wanted:
        return None
    missing, extra = _without(wanted, got), _without(got, wanted)
    return "; ".join(
        [*(f"not found: {one}" for one in missing), *(f"found, but not expected: {one}" for one in extra)]
    )


def _lie_difference(lies: list[Expected], found: list[Mapping[str, Any]]) -> str | None:
    """Which lies no finding names: at the member or inside it. One lie may be seen at other members as well."""

    def names(one: Mapping[str, Any], lie: Expected) -> bool:
        path = one.get("path")
        return (
            one.get("rule") in (lie.rule, *lie.also)
            and one.get("record") == lie.record
            and isinstance(path, str)
            and (path == lie.path or path.startswith(f"{lie.path}/"))
        )

    missed = [lie for lie in lies if not any(names(one, lie) for one in found)]
    return (
        "; ".join(f"not found: {_words(lie.rule, lie.record, lie.path)}" for lie in missed)
        if missed
        else None
    )


def _words(rule: Any, record: Any, path: Any, stream: Any = None) -> str:
    """A finding, as ``ASR-250 at "r1" "/callId"``."""
    place = f" of stream {json.dumps(stream, ensure_ascii=False)}" if stream is not None else ""
    named = [json.dumps(one, ensure_ascii=False) for one in (record, path)]
    return f"{rule} at {' '.join(named)}{place}"


def _without(these: list[str], those: list[str]) -> list[str]:
    left = list(those)
    return [one for one in these if one not in left or left.remove(one)]  # type: ignore[func-returns-value]


def _reading_difference(reading: Reading | None, answer: Any) -> str | None:
    if not isinstance(answer, Mapping):
        return "the answer has no reading, an object"
    for member, wanted in msgspec.to_builtins(reading).items():
        got = answer.get(member)
        same = (
            isinstance(got, list) and sorted(map(_json, got)) == sorted(map(_json, wanted))
            if isinstance(wanted, list)
            else got == wanted
        )
        if not same:
            return f"{member} is {_json(got)}, expected {_json(wanted)}"
    return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


class Outcome(NamedTuple):
    """How one question went: passed, failed or skipped, and why; and what the case is about."""

    name: str
    task: Task
    state: Literal["passed", "failed", "skipped"]
    about: str
    why: str = ""


class Implementation:
    """An implementation that runs as another process and answers one JSON line a request.

    Args:
        command: Program and arguments.
        patience: Seconds to wait for an answer.

    Raises:
        UsageError: It cannot be started, or does not answer the greeting.
    """

    def __init__(self, command: Sequence[str], patience: float = 30.0) -> None:
        self._patience = patience
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise UsageError(f"{command[0]}: {error.strerror}") from None
        threading.Thread(target=self._listen, daemon=True).start()
        greeting = self.ask({"id": "hello", "do": "hello", "protocol": PROTOCOL})
        if isinstance(greeting, str):
            self.close()
            raise UsageError(f"{command[0]} does not answer the greeting: {greeting}")
        self.name = str(greeting.get("implementation", command[0]))
        does = greeting.get("does")
        self.does = [str(task) for task in does] if isinstance(does, list) else []

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def ask(self, request: Json) -> Json | str:
        """Sends a request; the answer, or in words why there is none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            while True:
                line = self._answers.get(timeout=self._patience)
                if line is None:
                    return f"it ended with exit code {self._process.wait()}"
                answer = json.loads(line)
                if isinstance(answer, dict) and answer.get("id") == request["id"]:
                    return answer
        except queue.Empty:
            return f"no answer within {self._patience:g} s"
        except OSError:
            return "it does not take requests any more"
        except ValueError:
            return "its answer is no JSON"

    def close(self) -> None:
        """Ends the process."""
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                pass  # it ended before it took the last request
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def run_kit(command: Sequence[str], files: Sequence[CaseFile], patience: float = 30.0) -> Iterator[Outcome]:
    """Puts every question of a kit to an implementation.

    Args:
        command: How to start it.
        files: The kit.
        patience: Seconds to wait for each answer.

    Yields:
        One outcome a question. What the implementation does not do is skipped.

    Raises:
        UsageError: The implementation cannot be started.
    """
    implementation = Implementation(command, patience)
    try:
        for question in questions(files):
            name, task, about = question.name, question.task, question.about
            if task not in implementation.does:
                yield Outcome(name, task, "skipped", about, f"{implementation.name} does not {task}")
                continue
            answer = implementation.ask({"id": name, "do": task, **question.request})
            if isinstance(answer, str):
                yield Outcome(name, task, "failed", about, answer)
            elif "skip" in answer:
                yield Outcome(name, task, "skipped", about, str(answer["skip"]))
            else:
                why = difference(question, answer)
                yield Outcome(name, task, "failed" if why else "passed", about, why or "")
    finally:
        implementation.close()


def check_reader(read: Callable[[bytes], Mapping[str, Any]], kit: Path | None = None) -> int:
    """Runs every reader case against a reader.

    Args:
        read: Takes a whole stream as bytes and answers with a reading (members as in ``Reading``, camelCase).
        kit: Folder of the kit; found by itself when None.

    Returns:
        How many cases were run.

    Raises:
        AssertionError: One line for each case that reads differently.
    """
    wrong, count = [], 0
    for question in questions(load_kit(find_kit(kit))):
        if question.task == "read":
            count += 1
            why = difference(question, {"reading": read(request_bytes(question.request["stream"]))})
            if why:
                wrong.append(f"{question.name} ({question.about}): {why}")
    if wrong:
        raise AssertionError("\n".join(wrong))
    return count
