"""User and assistant lines: messages, calls, results, reasoning.

Owns: the way of each content block to its record, who wrote a message (the registry's ``[[line]]`` table), and the
commands that a person ran with ``!`` (a call and a result in the harness's own tags, linked by ``parentUuid``).

Must never know: what stands on other lines.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from callsheet.harness._port.pen import Pen, amount, raw_json
from callsheet.harness.claude_code import blocks
from callsheet.harness.claude_code.asides import Asides
from callsheet.harness.claude_code.calls import NOTHING, Told, tool_call
from callsheet.harness.claude_code.events import Events, Lines
from callsheet.harness.claude_code.results import Results
from callsheet.harness.claude_code.seen import Seen
from callsheet.harness.claude_code.shapes import (
    CALLS,
    NativeBlock,
    NativeLine,
    is_text,
    mark,
    raw_block,
    text,
    value_of,
)
from callsheet.harness.claude_code.verdicts import says_of_one
from callsheet.records import Exec, Message, Part, Reasoning, ToolCall, ToolResult
from callsheet.registry import Registry
from callsheet.registry.via import tags, wrapped_in

SMALL = (
    "isCompactSummary",
    "origin",
    "isMeta",
    "rowSource",
    "promptSource",
    "isSidechain",
    "entrypoint",
    "framed",
    "isReplay",
)
"""Members that the ``[[line]]`` rows of user lines name."""
BANGS = 256
"""Commands of a person whose output has not come yet."""


class Talk:
    """Writes the records of user and assistant lines."""

    def __init__(
        self,
        pen: Pen,
        survey: Seen,
        registry: Registry,
        lines: Lines,
        events: Events,
        results: Results,
        asides: Asides,
    ) -> None:
        self._pen = pen
        self._survey = survey
        self._lines = lines
        self._events = events
        self._results = results
        self._asides = asides
        self._tools = registry.tools()
        self._bangs: OrderedDict[str, str] = OrderedDict()
        self.noticed: set[str] = set()
        """Task ids of notifications that reached the conversation."""

    # -- assistant ----------------------------------------------------------------------------------------------

    def assistant(self, line: NativeLine) -> None:
        """An assistant line: usually one content block of a model message."""
        message = line.message
        if message is None:
            return
        author = "harness" if line.isApiErrorMessage is True or message.model == "<synthetic>" else "model"
        inference = text(message.id)
        content = message.content
        if type(content) is list:
            for index, block in enumerate(content):
                if block.type in CALLS:
                    call_id = tool_call(
                        self._pen, block, index, line, inference, self._survey, self._tools, self.told(block)
                    )
                    self._asides.after_call(block, call_id, index, line.isSidechain is True)
                else:
                    self._said(line, block, index, author, inference)
        elif type(content) is str:
            self._write_message(author, blocks.parts(content, self._pen.desk), "/message/content", inference)
        self._events.usage(message)

    def told(self, block: NativeBlock) -> Told:
        """What is known of a call beside its block."""
        del block
        return NOTHING

    def _said(
        self, line: NativeLine, block: NativeBlock, index: int, author: str, inference: str | None
    ) -> None:
        kind = block.type
        pointer = f"/message/content/{index}"
        if kind == "text" and mark(block.text) == b'"':
            self._write_message(author, [blocks.text_part(block.text)], pointer, inference)
        elif kind in ("thinking", "redacted_thinking"):
            self._reasoning(line, block, pointer, inference)
        else:
            raw = raw_block(self._pen.unit.data, index)
            if kind in ("image", "document"):
                self._write_message(author, [blocks.part(value_of(raw), self._pen.desk)], pointer, inference)
            else:
                self._pen.unmapped(f"assistant#{kind}" if text(kind) else "assistant", raw, pointer)

    def _reasoning(self, line: NativeLine, block: NativeBlock, pointer: str, inference: str | None) -> None:
        record = Reasoning(
            inference_id=inference,
            duration_ms=amount(line.thinkingDurationMs),
            native=self._pen.native("message", pointer),
        )
        if block.type == "redacted_thinking":
            self._pen.capture(record, "content", "redacted", reason="encrypted by the model's provider")
        elif is_text(block.thinking):
            record.content = [blocks.text_part(block.thinking)]
            self._exact(record, f"{pointer}/thinking")
        else:
            self._pen.capture(record, "content", "absent")
        self._pen.write(record)

    def _write_message(
        self, author: str, content: list[Part], pointer: str, inference: str | None = None
    ) -> None:
        record = Message(
            author=author,
            content=content,
            message_id=inference,
            inference_id=inference,
            native=self._pen.native("message", pointer),
        )
        self._exact(record, pointer)
        self._pen.write(record)

    def _exact(self, record: Message | Reasoning, pointer: str) -> None:
        """Text with unpaired surrogates is readable inline and exact in a blob (ASR-035)."""
        exact = self._pen.exact(pointer)
        if exact is not None and "\\ud" in exact.lower():
            blob = self._pen.desk.blob(exact.encode(), "application/json")
            self._pen.capture(record, "content", "external", blob=blob)

    # -- user ---------------------------------------------------------------------------------------------------

    def user(self, line: NativeLine) -> None:
        """A user line: a result, a prompt, or words that the harness put there."""
        message = line.message
        if message is None:
            return
        content = message.content
        if type(content) is str:
            self._prompt(line, content, "/message/content", text(message.id))
            return
        if type(content) is not list:
            return
        results = (
            [0]
            if len(content) == 1 and content[0].type == "tool_result"
            else [index for index, block in enumerate(content) if block.type == "tool_result"]
        )
        if len(results) > 1 and says_of_one(line):
            self._pen.desk.diagnose(
                "shared_decision",
                "a decision stands on a line with several results: it is taken for none of them",
                self._pen.source,
                self._pen.unit.line.number,
            )
        for index in results:
            block = content[index]
            record, use, verdict, call = self._results.result(line, block, index, len(results) == 1)
            self._asides.after_result(record, use, verdict, call)
        if len(results) < len(content):
            rest = [index for index, block in enumerate(content) if block.type != "tool_result"]
            values = [value_of(raw_block(self._pen.unit.data, index)) for index in rest]
            if len(values) == 1:
                only = content[rest[0]]
                said = values[0]["text"] if only.type == "text" and is_text(only.text) else values
                self._prompt(line, said, f"/message/content/{rest[0]}", text(message.id))
            else:
                self._prompt(line, values, "/message/content", text(message.id))

    def _prompt(self, line: NativeLine, content: Any, pointer: str, message_id: str | None) -> None:
        tag = wrapped_in(content) if isinstance(content, str) else None
        native = {name: value for name in SMALL if (value := getattr(line, name)) is not None}
        for rule in self._lines.of("user", native, tag):
            if rule.becomes == "compaction":
                self._events.summary(content)
            elif rule.becomes == "message":
                record = Message(
                    author=rule.author or "user",
                    content=blocks.parts(content, self._pen.desk),
                    message_id=message_id,
                    native=self._pen.native("message", pointer),
                )
                self._exact(record, pointer)
                if text(line.permissionMode):
                    record.meta = {"callsheet/permissionMode": line.permissionMode}
                self._pen.write(record)
            elif rule.becomes == "terminal" and isinstance(content, str):
                self.notice(content)
            elif rule.becomes == "tool_call" and isinstance(content, str):
                self._bang(line, content)
            elif rule.becomes == "tool_result" and isinstance(content, str):
                self._bang_output(line, content)

    def notice(self, words: str) -> None:
        """A task notification that reached the conversation."""
        found = tags(words)
        if found.get("task-id"):
            self.noticed.add(found["task-id"])
        self._asides.notified(found)

    # -- commands of a person -----------------------------------------------------------------------------------

    def _bang(self, line: NativeLine, content: str) -> None:
        uuid = text(line.uuid)
        command = _between(content, "bash-input")
        if uuid is None or command is None:
            self._write_message("user", blocks.parts(content, self._pen.desk), "/message/content")
            return
        record = ToolCall(
            call_id=self._survey.free_id(f"#{uuid}"),
            call_id_source="derived",
            requested_by="user",
            input=raw_json({"command": command}),
            native=self._pen.native("bang", "/message/content"),
        )
        self._pen.capture(record, "name", "absent", reason="a command typed with `!` names no tool")
        self._pen.write(record)
        self._bangs[uuid] = record.call_id
        if len(self._bangs) > BANGS:
            self._bangs.popitem(last=False)

    def _bang_output(self, line: NativeLine, content: str) -> None:
        parent = text(line.parentUuid)
        call_id = self._bangs.pop(parent, None) if parent else None
        record = ToolResult(
            call_id=call_id,
            linkage="derived" if call_id else "none",
            status="unknown",
            exec=Exec(stdout=_between(content, "bash-stdout"), stderr=_between(content, "bash-stderr")),
            raw=raw_json(content),
            native=self._pen.native("bang", "/message/content"),
        )
        self._pen.capture(
            record, "content", "absent", reason="it goes to the model as the person's words, not as a result"
        )
        self._pen.write(record)


def _between(content: str, tag: str) -> str | None:
    """What stands between a tag and its last end."""
    start = content.find(f"<{tag}>")
    end = content.rfind(f"</{tag}>")
    return content[start + len(tag) + 2 : end] if 0 <= start < end else None
