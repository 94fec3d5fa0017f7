"""Writes a made-up Codex rollout of any size, shaped like real ones, for benchmarks.

    python benchmarks/make_rollout.py OUT [--mb 200] [--version 0.163.0]

The mix of lines, their members and their lengths follow public rollouts; the words are made up. From 0.148 on the file
is paginated: lines have ordinals, and items tell how calls were executed.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any, TextIO

THREAD = "01a20000-0000-7000-8000-000000000001"
CWD = "/home/dev/acme-app"
WORDS = (
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
)


class Maker:
    """Writes lines and keeps count."""

    def __init__(self, out: TextIO, version: str) -> None:
        self.out = out
        self.version = version
        self.paginated = tuple(int(part) for part in version.split(".")[:2]) >= (0, 148)
        self.random = random.Random(7)
        self.number = 0
        self.size = 0
        self.responses = 0

    def line(self, kind: str, payload: dict[str, Any]) -> None:
        """Writes one line."""
        second, value = self.number // 20, {"timestamp": ""}
        value["timestamp"] = (
            f"2026-11-{1 + second // 86400 % 28:02}T{second // 3600 % 24:02}:{second // 60 % 60:02}:"
        )
        value["timestamp"] += f"{second % 60:02}.{self.number % 1000:03}Z"
        line = {
            **value,
            **({"ordinal": self.number} if self.paginated else {}),
            "type": kind,
            "payload": payload,
        }
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
        self.number += 1
        self.size += len(text.encode())
        self.out.write(text)

    def text(self, size: int) -> str:
        """Words of at least this many characters."""
        pieces: list[str] = []
        length = 0
        while length < size:
            words = " ".join(self.random.choice(WORDS) for _ in range(12))
            pieces.append(words)
            length += len(words) + 1
        return "\n".join(pieces)

    def item(self, item: dict[str, Any], kind: str = "item_completed") -> None:
        """Writes what an execution says."""
        at = 1_796_000_000_000 + self.number * 50
        payload = {"type": kind, "thread_id": THREAD, "turn_id": "t1", "item": item}
        self.line("event_msg", {**payload, "started_at_ms": at, "completed_at_ms": at + 40})

    def usage(self) -> None:
        """Writes what one response cost."""
        self.responses += 1
        counts = {"input_tokens": 12_000 + self.responses, "cached_input_tokens": 9_000, "output_tokens": 400}
        counts |= {"reasoning_output_tokens": 200, "total_tokens": 12_400 + self.responses}
        if self.paginated:
            record = {
                "thread_id": THREAD,
                "turn_id": "t1",
                "response_id": f"resp_{self.responses}",
                "usage": counts,
            }
            self.line(
                "token_usage_record", {**record, "turn_token_usage": counts, "thread_token_usage": counts}
            )
        info = {"total_token_usage": counts, "last_token_usage": counts, "model_context_window": 258_400}
        self.line("event_msg", {"type": "token_count", "info": info, "rate_limits": None})

    def response(self) -> None:
        """One response of the model: thoughts, a call, what came of it."""
        summary = f"**Looking**\n\n{self.text(300)}"
        reasoning = {"type": "reasoning", "id": f"rs_{self.number}", "encrypted_content": "Z" * 1200}
        self.line("response_item", {**reasoning, "summary": [{"type": "summary_text", "text": summary}]})
        call_id = f"call_{self.number:024}"
        command = "cd src && " + self.text(80).replace("\n", " ")
        if self.random.random() < 0.15:
            self.patch(call_id)
        else:
            arguments = json.dumps({"cmd": command, "workdir": CWD, "yield_time_ms": 10_000})
            call = {
                "type": "function_call",
                "id": f"fc_{self.number}",
                "name": "exec_command",
                "call_id": call_id,
            }
            self.line("response_item", {**call, "arguments": arguments})
            self.usage()
            output = self.text(int(self.random.expovariate(1 / 3500)) + 20)
            if self.paginated:
                item = {
                    "type": "CommandExecution",
                    "id": call_id,
                    "process_id": "40462",
                    "status": "completed",
                }
                item |= {"command": ["/bin/bash", "-lc", command], "cwd": f"file://{CWD}", "exit_code": 0}
                item |= {
                    "parsed_cmd": [{"type": "unknown", "cmd": command}],
                    "source": "unified_exec_startup",
                }
                item |= {"aggregated_output": output[:65536], "duration": {"secs": 0, "nanos": 7_621_000}}
                self.item(item)
            head = "Chunk ID: cc753c\nWall time: 0.0076 seconds\nProcess exited with code 0\nOutput:\n"
            given = {"type": "function_call_output", "call_id": call_id, "output": head + output}
            self.line("response_item", given)

    def patch(self, call_id: str) -> None:
        """Writes a patch, its output and how it went."""
        body = "".join(f"+{line}\n" for line in self.text(900).split("\n"))
        words = f"*** Begin Patch\n*** Update File: src/lib.rs\n@@\n{body}*** End Patch\n"
        call = {"type": "custom_tool_call", "status": "completed", "call_id": call_id, "name": "apply_patch"}
        self.line("response_item", {**call, "input": words})
        self.usage()
        change = {
            f"{CWD}/src/lib.rs": {
                "type": "update",
                "unified_diff": f"@@ -1 +1,9 @@\n{body}",
                "move_path": None,
            }
        }
        done = "Success. Updated the following files:\nM src/lib.rs\n"
        told = {"changes": change, "status": "completed", "stdout": done, "stderr": ""}
        if self.paginated:
            self.item({"type": "FileChange", "id": call_id, **told})
        else:
            self.line(
                "event_msg",
                {"type": "patch_apply_end", "call_id": call_id, "turn_id": "t1", "success": True, **told},
            )
        self.line(
            "response_item",
            {"type": "custom_tool_call_output", "call_id": call_id, "output": f"Exit code: 0\n{done}"},
        )

    def turn(self) -> None:
        """A prompt and all that followed."""
        prompt = self.text(200)
        self.line("event_msg", {"type": "task_started", "turn_id": "t1", "model_context_window": 258_400})
        self.line("turn_context", {"turn_id": "t1", "cwd": CWD, "approval_policy": "never", "model": "demo"})
        content = [{"type": "input_text", "text": prompt}]
        self.line("response_item", {"type": "message", "role": "user", "content": content})
        self.line("event_msg", {"type": "user_message", "message": prompt, "images": []})
        for _ in range(12):
            self.response()
        words = self.text(600)
        self.line("event_msg", {"type": "agent_message", "message": words})
        said = [{"type": "output_text", "text": words}]
        self.line("response_item", {"type": "message", "role": "assistant", "content": said})
        self.usage()
        self.line(
            "event_msg",
            {"type": "task_complete", "turn_id": "t1", "last_agent_message": words, "duration_ms": 9},
        )


def make(path: Path, *, mb: float, version: str = "0.163.0") -> None:
    """Writes the file."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        maker = Maker(out, version)
        meta = {"id": THREAD, "timestamp": "2026-11-01T00:00:00.000Z", "cwd": CWD, "originator": "codex_exec"}
        mode = {"history_mode": "paginated"} if maker.paginated else {}
        maker.line("session_meta", {**meta, "cli_version": version, "source": "exec", **mode})
        while maker.size < mb * 1e6:
            maker.turn()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=200)
    parser.add_argument("--version", default="0.163.0")
    wanted = parser.parse_args()
    make(wanted.out, mb=wanted.mb, version=wanted.version)


if __name__ == "__main__":
    main()
