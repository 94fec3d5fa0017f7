"""Attachments, system lines and the rest: what stands between the messages.

Owns: the way of a line through the registry's ``[[line]]`` table, hooks, turns, compactions, usage, and messages that
the harness or a hook put into the conversation. What fits no row is ``unmapped`` and kept whole.

Must never know: calls and results.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from msgspec import Raw

from callsheet.harness._port.counts import counts_of
from callsheet.harness._port.pen import Pen, amount, number, raw_json
from callsheet.harness.claude_code import blocks
from callsheet.harness.claude_code.seen import Seen
from callsheet.harness.claude_code.shapes import NativeLine, NativeMessage, is_short, text, value_of
from callsheet.harness.claude_code.tooluse import exit_code
from callsheet.records import Compaction, Hook, Message, Notice, Part, Turn, Usage
from callsheet.registry import LineRule, Registry
from callsheet.registry.when import MISSING, follow, json_type, matches

USAGES = 4096
"""Model messages whose usage is remembered, so that it is written once per message."""


class Lines:
    """The registry's ``[[line]]`` table."""

    def __init__(self, registry: Registry) -> None:
        self._rules: dict[str, list[LineRule]] = {}
        for rule in registry.line:
            self._rules.setdefault(rule.type, []).append(rule)
        self._pointers = {
            kind: tuple({pointer for rule in rules for pointer in rule.when})
            for kind, rules in self._rules.items()
        }
        self._answers: dict[tuple[Any, ...], list[LineRule]] = {}

    def of(self, kind: str, native: dict[str, Any], tag: str | None = None) -> list[LineRule]:
        """The rows that apply to a line: its ``also`` rows and the first of the others."""
        pointers = self._pointers.get(kind)
        if pointers is None:
            return []
        # Conditions see nothing but scalars and types, so equal ones have equal answers.
        key = (kind, tag, *(_scalar(follow(native, pointer)) for pointer in pointers))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._ask(kind, native, tag)
            if len(self._answers) < 10_000 and is_short(key):
                self._answers[key] = answer
        return answer

    def _ask(self, kind: str, native: dict[str, Any], tag: str | None) -> list[LineRule]:
        found: list[LineRule] = []
        settled = False
        for rule in self._rules.get(kind, []):
            if (rule.tag is not None and rule.tag != tag) or (settled and not rule.also):
                continue
            if matches(rule.when, native):
                found.append(rule)
                settled = settled or not rule.also
        return found


class Events:
    """Writes the records of one stream's lines that are neither messages of user or model, nor results."""

    def __init__(self, pen: Pen, survey: Seen, registry: Registry, lines: Lines) -> None:
        self._pen = pen
        self._survey = survey
        self._lines = lines
        self._hook_status = {rule.type: rule.status for rule in registry.hook}
        self._hook_event = {rule.native: rule for rule in registry.hook_event}
        self._hooks_said: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._usages: OrderedDict[str, int] = OrderedDict()
        self._summaries = 0
        self._last_boundary: Compaction | None = None

    # -- attachments --------------------------------------------------------------------------------------------

    def attachment(self, line: NativeLine) -> list[str]:
        """Writes the records of an attachment; returns the words of the task notification in it, if there is one."""
        attached = value_of(line.attachment)
        attached = attached if isinstance(attached, dict) else {}
        kind = attached.get("type")
        native = {"attachment": attached}
        if line.rendered is not None:
            native["rendered"] = line.rendered
        notices: list[str] = []
        rows = self._lines.of(f"attachment/{kind}", native)
        if not rows:
            # A kind that no row knows by name: what is rendered is what the model was told all the same.
            unknown = "hook_*" if isinstance(kind, str) and kind.startswith("hook_") else "*"
            rows = self._lines.of(f"attachment/{unknown}", native)
        for rule in rows:
            if rule.becomes == "hook":
                self._hook(attached)
            elif rule.becomes == "message":
                self._told(rule.author or "harness", attached, line.rendered)
            elif rule.becomes == "notice":
                words = next((attached[key] for key in ("message", "content") if key in attached), None)
                self._notice(f"attachment/{kind}", words, raw_json(attached), "/attachment")
            elif rule.becomes == "terminal" and isinstance(attached.get("prompt"), str):
                notices.append(attached["prompt"])
        return notices

    def _told(self, author: str, attached: dict[str, Any], rendered: Any) -> None:
        """A message that an attachment carried: as rendered, else its own words."""
        content: list[Part] = []
        if isinstance(rendered, list):
            for item in rendered:
                said = item.get("content") if isinstance(item, dict) else None
                content.extend(blocks.parts(said, self._pen.desk))
        else:
            said = next((attached[key] for key in ("prompt", "text", "content") if key in attached), None)
            content = blocks.parts(said, self._pen.desk)
        if content:
            self._pen.write(Message(author=author, content=content, native=self._pen.native("message")))

    def _hook(self, attached: dict[str, Any]) -> None:
        blocking = attached.get("blockingError")
        blocking = blocking if isinstance(blocking, dict) else {}
        command = text(attached.get("command")) or text(blocking.get("command"))
        event = attached.get("hookEvent")
        known = self._hook_event.get(event) if isinstance(event, str) else None
        tool_use_id = text(attached.get("toolUseID"))
        said = blocking.get("blockingError", attached.get("response"))
        record = Hook(
            event=known.event if known else (text(event) or "unknown"),
            name=text(attached.get("hookName")),
            command=command,
            call_id=self._survey.sole(tool_use_id) if known and known.call else None,
            status=self._hook_status.get(str(attached.get("type"))),
            decision=_hook_decision(attached.get("decision")),
            exit_code=exit_code(attached.get("exitCode")),
            timed_out=attached["timedOut"] if isinstance(attached.get("timedOut"), bool) else None,
            stdout=attached["stdout"] if isinstance(attached.get("stdout"), str) else None,
            stderr=attached["stderr"] if isinstance(attached.get("stderr"), str) else None,
            output=blocks.parts(said, self._pen.desk) or None,
            duration_ms=amount(attached.get("durationMs")),
            native=self._pen.native("hook"),
        )
        if tool_use_id:
            self._hooks_said[(tool_use_id, command or "")] = None
            if len(self._hooks_said) > USAGES:
                self._hooks_said.popitem(last=False)
        self._pen.write(record)

    # -- system lines -------------------------------------------------------------------------------------------

    def system(self, line: NativeLine) -> None:
        """A system line, by its subtype."""
        kind = line.subtype if isinstance(line.subtype, str) else "None"
        native = {} if line.contextUsage is None else {"contextUsage": line.contextUsage}
        for rule in self._lines.of(f"system/{kind}", native):
            if rule.becomes == "turn":
                self._turn(line)
            elif rule.becomes == "compaction":
                self._boundary(line)
            elif rule.becomes == "hook":
                self._stop_hooks()
            elif rule.becomes == "usage":
                self._context_usage(line.contextUsage)
            elif rule.becomes == "notice":
                error = self._whole().get("error")
                value = None if error is None else raw_json(error)
                self._notice(f"system/{kind}", value_of(line.content), value, "/error")
            elif rule.becomes == "message":
                content = blocks.parts(value_of(line.content), self._pen.desk)
                if content:
                    author = rule.author or "harness"
                    self._pen.write(
                        Message(author=author, content=content, native=self._pen.native("message"))
                    )

    def _notice(self, native_type: str, words: Any, value: Raw | None, pointer: str) -> None:
        """What the person was told, or the harness noted: its words, else its members."""
        record = Notice(native_type=native_type, native=self._pen.native("notice"))
        content = blocks.parts(words, self._pen.desk) if isinstance(words, str | list) else []
        if content:
            record.content = content
        elif value is None:
            return
        elif self._pen.inline(record, "value", value, pointer):
            record.value = value
        self._pen.write(record)

    def _turn(self, line: NativeLine) -> None:
        if text(line.uuid):
            record = Turn(
                turn_id=line.uuid, id_source="derived", status="unknown", native=self._pen.native("turn")
            )
            record.duration_ms = amount(line.durationMs)
            self._pen.write(record)

    def _whole(self) -> dict[str, Any]:
        """The line at hand, decoded whole (rare lines only)."""
        unit = self._pen.unit
        data = unit.readable()
        value = value_of(Raw(data))
        return value if isinstance(value, dict) else {}

    def _boundary(self, line: NativeLine) -> None:
        whole = self._whole()
        name = "compactMetadata" if "compactMetadata" in whole else "microcompactMetadata"
        metadata = whole.get(name)
        record = Compaction(native=self._pen.native("boundary"))
        if isinstance(metadata, dict):
            record.trigger = text(metadata.get("trigger"))
            value = raw_json(metadata)
            if self._pen.inline(record, "before", value, f"/{name}"):
                record.before = value
        self._pen.write(record)
        self._last_boundary = record if line.subtype == "compact_boundary" else None

    def summary(self, content: Any) -> None:
        """The summary after a boundary: the same compaction, completed."""
        before = self._last_boundary
        record = Compaction(
            trigger=before.trigger if before else None,
            summary=blocks.parts(content, self._pen.desk),
            native=self._pen.native("message"),
        )
        if before is not None:
            record.before = before.before
            record.supersedes = before.id
            if before.native is not None and record.native is not None:
                record.native.refs.extend(before.native.refs)
        self._last_boundary = None
        self._pen.write(record)

    def _stop_hooks(self) -> None:
        whole = self._whole()
        infos = whole.get("hookInfos")
        for index, info in enumerate(infos if isinstance(infos, list) else []):
            if not isinstance(info, dict):
                continue
            command = text(info.get("command"))
            if (str(whole.get("toolUseID")), command or "") in self._hooks_said:
                continue  # this run has a line of its own
            record = Hook(
                event="stop",
                command=command,
                duration_ms=amount(info.get("durationMs")),
                native=self._pen.native("summary", f"/hookInfos/{index}"),
            )
            self._pen.write(record)

    def hook_progress(self, data: dict[str, Any], call_id: Any) -> None:
        """The start of a hook, as versions before 2.1.80 logged it; no outcome is recorded."""
        event = data.get("hookEvent")
        known = self._hook_event.get(event) if isinstance(event, str) else None
        record = Hook(
            event=known.event if known else (text(event) or "unknown"),
            name=text(data.get("hookName")),
            command=text(data.get("command")),
            call_id=self._survey.sole(text(call_id)) if known and known.call else None,
            status=self._hook_status.get("hook_progress"),
            native=self._pen.native("progress"),
        )
        self._pen.write(record)

    # -- usage --------------------------------------------------------------------------------------------------

    def usage(self, message: NativeMessage) -> None:
        """Usage once per model message; a later record of it that says otherwise is a revision."""
        if not message.usage:
            return
        raw = bytes(message.usage)
        message_id = text(message.id)
        if message_id is None:
            return
        mark = hash(raw)
        if self._usages.get(message_id) == mark:
            return
        counts = counts_of(value_of(message.usage))
        if not counts:
            return
        self._usages[message_id] = mark
        if len(self._usages) > USAGES:
            self._usages.popitem(last=False)
        record = Usage(
            scope="inference",
            counts=counts,
            inference_id=message_id,
            native=self._pen.native("message", "/message/usage"),
        )
        self._pen.revise(f"usage {message_id}", record)

    def _context_usage(self, value: Any) -> None:
        if not isinstance(value, dict):
            return
        window, used = number(value.get("raw_max_tokens")), number(value.get("total_tokens"))
        record = Usage(
            scope="session",
            context_window=window if isinstance(window, int) else None,
            context_used=used if isinstance(used, int) else None,
            percent=number(value.get("percentage")),
            native=self._pen.native("context", "/contextUsage"),
        )
        self._pen.write(record)

    def cost_state(self) -> None:
        """Totals of the session so far, as reported."""
        whole = self._whole()
        counts = counts_of(
            {key: value for key, value in whole.items() if key not in ("type", "sessionId", "uuid")}
        )
        if counts:
            record = Usage(
                scope="session", cumulative=True, counts=counts, native=self._pen.native("session")
            )
            self._pen.write(record)


def _scalar(value: Any) -> tuple[str, Any]:
    """A hashable stand-in for a value: itself for a scalar, its type for a container."""
    if value is MISSING:
        return ("missing", None)
    return (json_type(value), None if isinstance(value, dict | list) else value)


def _hook_decision(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("behavior")
    return value if isinstance(value, str) and value else None
