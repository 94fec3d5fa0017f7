"""How fast a stream is checked, beside ``json.loads`` of the same lines in the same run.

    python benchmarks/validate.py [--mb 40] [--rounds 3]

Streams are made here: a session record, then turns of a message, calls and their results with references to
native lines, 1 to 2 KB a record. ``own`` is written as callsheet writes it; ``foreign`` has the same
records with spaces after colons and commas; ``extended`` has an unknown member on every record, which the
fast lane does not prove; ``broken`` has one finding in every record. Figures are megabytes a CPU second,
best of the rounds; ``x json`` is the ratio to json.loads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from callsheet.rules import check_stream
from callsheet.wire.lines import split_lines

Json = dict[str, Any]
TEXT = "warning: unused variable `x` in src/parser/lib.rs:42, started at 12:30\n    let x = [1, 2, 3];\n"


def refs(line: int, *roles: str) -> Json:
    """Provenance of a record."""
    return {
        "refs": [
            {
                "source": "s0",
                "line": line + number,
                "offset": line * 911,
                "bytes": 911,
                "sha256": hashlib.sha256(f"{line}{role}".encode()).hexdigest(),
                "role": role,
                "pointer": "/message/content/0",
            }
            for number, role in enumerate(roles)
        ]
    }


def records(size: int) -> Iterator[Json]:
    """Records of a plain session, about ``size`` bytes as JSON."""
    source = {"id": "s0", "kind": "claude-code", "path": "/home/dev/session.jsonl"}
    yield {"type": "session", "format": "callsheet/1", "sources": [source], "roots": {"app": "/home/dev/app"}}
    written = line = 0
    while written < size:
        line += 3
        when = f"2026-10-26T{line // 3600 % 24:02}:{line // 60 % 60:02}:{line % 60:02}.254Z"
        call = f"toolu_{line:012}"
        turn: list[Json] = [
            {
                "type": "message",
                "ts": when,
                "native": refs(line, "message"),
                "author": "model",
                "content": [{"type": "text", "text": TEXT * 6}],
            },
            {
                "type": "tool_call",
                "ts": when,
                "inferenceId": f"msg_{line}",
                "native": refs(line, "call"),
                "callId": call,
                "callIdSource": "native",
                "name": "Bash",
                "kind": "execute",
                "requestedBy": "model",
                "input": {"command": "cargo test -p parser", "timeout": 120000, "description": TEXT * 4},
            },
            {
                "type": "tool_result",
                "ts": when,
                "native": refs(line, "result", "item"),
                "callId": call,
                "linkage": "exact",
                "status": "completed",
                "content": [{"type": "text", "text": TEXT * 6}],
                "raw": {"stdout": TEXT * 4, "stderr": "", "interrupted": False, "ratio": 0.75},
                "exec": {"cwd": {"root": "app", "path": "."}, "exitCode": 0},
                "durationMs": 412,
                "permission": {"decision": "allow_once", "decidedBy": "policy"},
            },
        ]
        written += 1350 * len(turn)
        yield from turn


def stream(size: int, *, spaced: bool = False, extra: Json | None = None) -> bytes:
    """A stream as bytes."""
    separators = (", ", ": ") if spaced else (",", ":")
    lines = []
    for number, record in enumerate(records(size)):
        whole = {"type": record.pop("type"), "seq": number, "id": f"r{number}", **record, **(extra or {})}
        lines.append(json.dumps(whole, separators=separators, ensure_ascii=False).encode())
    return b"\n".join(lines) + b"\n"


def best(run: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the quickest round."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def load(lines: list[bytes]) -> None:
    """What the check is measured against."""
    for line in lines:
        json.loads(line)


def count(data: bytes) -> int:
    """Findings of a stream."""
    return sum(1 for _ in check_stream(split_lines([data])))


KINDS: dict[str, Json] = {
    "own": {},
    "foreign": {"spaced": True},
    "extended": {"extra": {"vendor": {"a": 1}}},
    "broken": {"extra": {"idSource": "guessed"}},
}


def main() -> None:
    """Measures every kind and prints a line for each."""
    parser = argparse.ArgumentParser(description="How fast a stream is checked.")
    parser.add_argument("--mb", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(f"{'stream':10} {'records':>9} {'MB':>5} {'json.loads':>11} {'validate':>9} {'x json':>7} findings")
    for name, how in KINDS.items():
        data = stream(args.mb * 1_000_000, **how)
        lines = data.splitlines()
        loads = best(partial(load, lines), args.rounds)
        check = best(partial(count, data), args.rounds)
        mb = len(data) / 1e6
        speeds = f"{mb / loads:>11.0f} {mb / check:>9.0f} {loads / check:>7.2f}"
        print(f"{name:10} {len(lines):>9,} {mb:>5.0f} {speeds} {count(data):>8,}")


if __name__ == "__main__":
    main()
