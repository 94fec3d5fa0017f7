"""Writes a made-up Claude Code session file of any size, shaped like real ones, for benchmarks.

    python benchmarks/make_session.py OUT [--mb 200 | --calls 100000] [--version 2.1.200] [--long-line MB]

The mix of tools, the members of each line and their lengths follow public session files; the words are made up.
Since 2.1.300 a session also holds records of its own requests: ``--version 2.1.332`` writes them too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from pathlib import Path
from typing import Any, TextIO

SESSION = "11111111-1111-4111-8111-111111111111"
CWD = "/home/dev/acme-app"
WORDS = [
    "the",
    "parser",
    "reads",
    "a",
    "line",
    "and",
    "returns",
    "its",
    "fields",
    "or",
    "an",
    "error",
    "when",
    "empty",
    "text",
    "comes",
    "in",
    "from",
    "tests",
]


def compact(value: Any) -> str:
    """JSON as Claude Code writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def canonical_digest(value: Any) -> str:
    """The digest under which a request names a message."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Maker:
    """Writes lines and keeps count."""

    def __init__(self, out: TextIO, version: str) -> None:
        self.out = out
        self.version = version
        self.requests = tuple(map(int, version.split("."))) >= (2, 1, 300)
        self.random = random.Random(7)
        self.number = 0
        self.size = 0
        self.parent: str | None = None
        self.request: str | None = None
        self.sent = 0

    def write(self, value: dict[str, Any]) -> None:
        """Appends a line."""
        line = compact(value) + "\n"
        self.size += len(line.encode())
        self.out.write(line)

    def uuid(self) -> str:
        """The next record id."""
        self.number += 1
        digest = hashlib.md5(str(self.number).encode(), usedforsecurity=False).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:]}"

    def time(self) -> str:
        """The time of the next record."""
        second = self.number // 20
        return (
            f"2026-11-{1 + second // 86400 % 28:02}T{second // 3600 % 24:02}:{second // 60 % 60:02}:"
            f"{second % 60:02}.{self.number % 1000:03}Z"
        )

    def text(self, size: int) -> str:
        """Made-up words of about so many characters."""
        words, length = [], 0
        while length < size:
            word = self.random.choice(WORDS)
            words.append(word if self.random.random() > 0.08 else word + "\n")
            length += len(word) + 1
        return " ".join(words)

    def envelope(self, uuid: str) -> dict[str, Any]:
        """The members that every message line has."""
        found = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": CWD,
            "sessionId": SESSION,
            "version": self.version,
            "gitBranch": "main",
            "uuid": uuid,
            "timestamp": self.time(),
        }
        self.parent = uuid
        return found

    def prompt(self) -> None:
        """A line that a person typed."""
        message = {"role": "user", "content": self.text(120)}
        self.write(
            self.envelope(self.uuid()) | {"type": "user", "message": message, "permissionMode": "default"}
        )

    def assistant(self, block: dict[str, Any], message_id: str) -> str:
        """A line with one block of a model message."""
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": 1312,
            "cache_read_input_tokens": 48211 + self.number,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1312},
            "output_tokens": 211,
            "service_tier": "standard",
        }
        message = {
            "model": "claude-sonnet-4-5",
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        uuid = self.uuid()
        line = self.envelope(uuid) | {
            "type": "assistant",
            "message": message,
            "requestId": f"req_{message_id}",
        }
        if self.request:
            line["requestRef"] = self.request
        self.write(line)
        return uuid

    def result(self, call_id: str, call: str, content: str, use: Any, error: bool = False) -> None:
        """The line of a result and, in newer versions, the request that carried it."""
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if error or (isinstance(use, dict) and "stdout" in use):
            block["is_error"] = error
        line = self.envelope(self.uuid()) | {"type": "user", "message": {"role": "user", "content": [block]}}
        line |= {"toolUseResult": use, "sourceToolAssistantUUID": call}
        if self.requests:
            line["permissionDecision"] = {"decision": "accept", "source": "config", "reasonType": "mode"}
        self.write(line)
        if self.requests:
            self.write_request(block)

    def write_request(self, block: dict[str, Any]) -> None:
        """The reminder, the sent copy and the request that carries the last result (2.1.300 and later)."""
        tokens = f"<total_tokens>{15_000_000 - self.number} tokens left</total_tokens>"
        reminder = f"<system-reminder>\n{tokens}\n</system-reminder>"
        attachment = {"type": "total_tokens_reminder", "text": tokens}
        line = self.envelope(self.uuid()) | {"attachment": attachment, "type": "attachment"}
        self.write(line | {"rendered": [{"content": reminder}], "renderedRole": "system"})
        sent = {"content": [block | {"content": f"{block['content']}\n\n{reminder}"}], "role": "user"}
        digest = canonical_digest(sent)
        self.write({"type": "api-request-blob", "sessionId": SESSION, "hash": digest, "message": sent})
        base, self.request = self.request, self.uuid()
        request: dict[str, Any] = {"type": "api-request", "sessionId": SESSION, "id": self.request}
        request |= {
            "timestamp": self.time(),
            "version": self.version,
            "querySource": "sdk",
            "keep": self.sent,
        }
        request |= {"base": base} if base else {}
        self.write(request | {"tail": [canonical_digest({"of": self.request}), digest]})
        self.sent += 2

    def call(self) -> None:
        """One tool call with its result, and now and then words around it."""
        number = self.number
        call_id = f"toolu_{number:024}"
        message_id = f"msg_{number:024}"
        if self.random.random() < 0.2:
            self.assistant({"type": "text", "text": self.text(200)}, message_id)
        if self.random.random() < 0.05:
            self.prompt()
        kind = self.random.random()
        path = f"{CWD}/src/module_{number % 97}.py"
        if kind < 0.45:
            asked: dict[str, Any] = {
                "command": f"pytest -q tests/test_{number % 97}.py",
                "description": "Run tests",
            }
            output = self.text(self.random.choice((40, 200, 900, 3000)))
            failed = self.random.random() < 0.1
            call = self.assistant(
                {"type": "tool_use", "id": call_id, "name": "Bash", "input": asked}, message_id
            )
            use: Any = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            if failed:
                use = f"Error: Exit code 1\n{output}"
            self.result(call_id, call, f"Exit code 1\n{output}" if failed else output, use, failed)
        elif kind < 0.75:
            body = self.text(self.random.choice((800, 3000, 9000)))
            call = self.assistant(
                {"type": "tool_use", "id": call_id, "name": "Read", "input": {"file_path": path}}, message_id
            )
            lines = body.split("\n")
            file = {
                "filePath": path,
                "content": body,
                "numLines": len(lines),
                "startLine": 1,
                "totalLines": len(lines),
            }
            numbered = "\n".join(f"{index:6}→{line}" for index, line in enumerate(lines, 1))
            self.result(call_id, call, numbered, {"type": "text", "file": file})
        elif kind < 0.9:
            old, new = self.text(120), self.text(140)
            asked = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
            call = self.assistant(
                {"type": "tool_use", "id": call_id, "name": "Edit", "input": asked}, message_id
            )
            hunk = {"oldStart": 3, "oldLines": 4, "newStart": 3, "newLines": 4}
            hunk["lines"] = [f"-{old}", f"+{new}"]  # type: ignore[assignment]
            use = {"filePath": path, "oldString": old, "newString": new, "originalFile": self.text(3000)}
            use |= {"structuredPatch": [hunk], "userModified": False, "replaceAll": False}
            self.result(call_id, call, f"The file {path} has been updated.", use)
        else:
            asked = {"pattern": "def parse", "output_mode": "files_with_matches"}
            call = self.assistant(
                {"type": "tool_use", "id": call_id, "name": "Grep", "input": asked}, message_id
            )
            names = [f"src/module_{index}.py" for index in range(number % 20)]
            use = {"mode": "files_with_matches", "filenames": names, "numFiles": len(names)}
            self.result(call_id, call, f"Found {len(names)} files\n" + "\n".join(names), use)


def make(path: Path, *, mb: float = 0, calls: int = 0, version: str = "2.1.200", long_line: float = 0) -> int:
    """Writes the file; returns the number of calls in it."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        maker = Maker(out, version)
        maker.prompt()
        made = 0
        while maker.size < mb * 1_000_000 or made < calls:
            maker.call()
            made += 1
        if long_line:
            maker.assistant({"type": "text", "text": "x" * int(long_line * 1_000_000)}, "msg_long")
        maker.assistant({"type": "text", "text": "Done."}, "msg_last")
    return made


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=0)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--version", default="2.1.200")
    parser.add_argument("--long-line", type=float, default=0)
    args = parser.parse_args()
    made = make(args.out, mb=args.mb, calls=args.calls, version=args.version, long_line=args.long_line)
    print(f"{args.out}: {made} calls, {args.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
