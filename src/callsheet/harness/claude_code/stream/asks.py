"""What the agent asks its host: permissions, questions and MCP elicitations of the control protocol.

Owns: permission records with the host's answer as their decision, the options that the protocol offers (allow, allow
with one of its suggestions or all of them, deny: derived ids, see the registry's notes), form requests, and which
calls were asked about. Who answered is not in the frames (ASR-270); what a host claims of it is no evidence.

Must never know: results.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.forms import secrets_of
from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.pen import Pen, raw_json
from callsheet.records import InputRequest, Native, Option, Permission, Ref, Subject
from callsheet.wire import lossless

ALLOW, DENY, ALL = "allow", "deny", "*"
KEPT = (
    "tool_name",
    "blocked_path",
    "decision_reason_type",
    "decision_reason_rule_source",
    "decision_reason_hook_event",
    "decision_reason_hook_source",
    "mcp_server",
    "server_policy_ask_only",
    "requires_user_interaction",
)
"""Members of a request that a permission has no place for."""
CLAIMED = ("decisionClassification", "interrupt", "updatedPermissions")
"""Members of an answer that a permission has no place for."""
ACTIONS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}
WAITING_MOST = 1000


class Open(Struct):
    """A request that waits."""

    kind: str
    members: dict[str, Raw]
    ref: Ref
    call_id: str | None = None


def scope_of(permissions: list[dict[str, Raw]]) -> str:
    """How far an allowance reaches: where the rules that come with it are kept says it."""
    if not permissions:
        return "allow_once"
    kept = {text_of(one.get("destination", ABSENT)) for one in permissions}
    return "allow_session" if kept == {"session"} else "allow_always"


def options_of(suggestions: Raw) -> list[Option]:
    """What the protocol lets a host answer, in its order: ids are derived from behaviour and position."""
    offered = [members_of(one) for one in items_of(suggestions)]
    names = [name_of(value_of(one)) for one in items_of(suggestions)]
    options = [Option(option_id=ALLOW, kind="allow_once")]
    if len(offered) > 1:
        options.append(Option(option_id=f"{ALLOW}:{ALL}", name="; ".join(names), kind=scope_of(offered)))
    for number, one in enumerate(offered):
        options.append(Option(option_id=f"{ALLOW}:{number}", name=names[number], kind=scope_of([one])))
    return [*options, Option(option_id=DENY, kind="reject_once")]


def name_of(suggestion: Any) -> str:
    """What a suggestion would keep: its rules, folders or mode, and where."""
    told = suggestion if isinstance(suggestion, dict) else {}
    what = []
    for rule in told["rules"] if _listed(told, "rules") else []:
        tool, content = (
            (rule.get("toolName"), rule.get("ruleContent")) if isinstance(rule, dict) else (None, None)
        )
        what.append(f"{tool}({content})" if isinstance(content, str) else str(tool))
    what += (
        [one for one in told["directories"] if isinstance(one, str)] if _listed(told, "directories") else []
    )
    what += [told["mode"]] if isinstance(told.get("mode"), str) else []
    words = ", ".join(what) or str(told.get("type"))
    kept = told.get("destination")
    return f"{words} ({kept})" if isinstance(kept, str) else words


def _listed(told: dict[str, Any], name: str) -> bool:
    return isinstance(told.get(name), list)


def chosen_of(answer: dict[str, Raw], suggestions: Raw) -> tuple[str | None, str | None]:
    """The option that an answer takes, and its decision; None where it is none of those."""
    behavior = text_of(answer.get("behavior", ABSENT))
    if behavior == DENY:
        return DENY, "reject_once"
    if behavior != ALLOW:
        return None, None
    taken = [bytes(one) for one in items_of(answer.get("updatedPermissions", ABSENT))]
    decision = scope_of([members_of(Raw(one)) for one in taken])
    if not taken:
        return ALLOW, decision
    offered = [value_of(one) for one in items_of(suggestions)]
    wanted = [value_of(Raw(one)) for one in taken]
    if len(offered) > 1 and wanted == offered:
        return f"{ALLOW}:{ALL}", decision
    if len(wanted) == 1 and wanted[0] in offered:
        return f"{ALLOW}:{offered.index(wanted[0])}", decision
    return None, decision


class Asks:
    """The requests of one stream.

    Args:
        pen: Writes them.
        denials: Takes the frames that record the refusal of a call.
    """

    def __init__(self, pen: Pen, denials: dict[str, tuple[Ref, ...]]) -> None:
        self._pen = pen
        self._denials = denials
        self.open: dict[str, Open] = {}
        self._calls: set[str] = set()

    def was_asked(self, call_id: str) -> bool:
        """Whether a request about a call was shown."""
        return call_id in self._calls

    def begin(self, name: str, kind: str, members: dict[str, Raw], call_id: str | None) -> None:
        """A request begins to wait."""
        while len(self.open) >= WAITING_MOST:
            self.open.pop(next(iter(self.open)))
        kept = {member: Raw(bytes(raw)) for member, raw in members.items()}
        self.open[name] = Open(kind, kept, self._pen.ref("request"), call_id)

    # -- permissions --------------------------------------------------------------------------------------------

    def permission(self, name: str, members: dict[str, Raw]) -> None:
        """``can_use_tool``: pending."""
        call_id = text_of(members.get("tool_use_id", ABSENT))
        self.begin(name, "permission", members, call_id)
        if call_id is not None:
            self._calls.add(call_id)
        record = self._permission(name, self.open[name])
        record.status = "pending"
        self._pen.revise(f"request {name}", record)

    def _permission(self, name: str, asked: Open, answer: Ref | None = None) -> Permission:
        members = asked.members
        record = Permission(
            request_id=name,
            id_source="native",
            title=text_of(members.get("display_name", ABSENT)) or text_of(members.get("tool_name", ABSENT)),
            description=text_of(members.get("description", ABSENT)),
            reason=text_of(members.get("decision_reason", ABSENT)),
            options=options_of(members.get("permission_suggestions", ABSENT)),
        )
        record.native = Native(refs=[asked.ref, *([answer] if answer is not None else [])])
        if asked.call_id is not None:
            record.subject = Subject(call_id=asked.call_id)
        self._extra(record, {member: members[member] for member in KEPT if member in members})
        return record

    def _extra(self, record: Permission, kept: dict[str, Raw]) -> None:
        size = sum(len(raw) for raw in kept.values())
        if kept and size <= INLINE_MOST and all(lossless.fits(bytes(raw)) for raw in kept.values()):
            assert record.native is not None
            record.native.extra = raw_json(kept)

    def _answered(self, name: str, asked: Open, response: dict[str, Raw]) -> None:
        """The host's answer; an error, or a behaviour that we do not know, leaves the request unresolved."""
        record = self._permission(name, asked, self._pen.ref("decision"))
        answer = members_of(response.get("response", ABSENT))
        chosen, record.decision = chosen_of(answer, asked.members.get("permission_suggestions", ABSENT))
        record.selected_option_id = chosen
        if record.decision is not None:
            record.status = "resolved"
        else:
            record.status = "pending"
        if record.decision == "reject_once":
            record.feedback = text_of(answer.get("message", ABSENT))
            if asked.call_id is not None:
                self._denials[asked.call_id] = (replace(asked.ref, role="asked"), self._pen.ref("denial"))
        kept = {member: asked.members[member] for member in KEPT if member in asked.members}
        kept |= {member: answer[member] for member in CLAIMED if member in answer}
        changed = answer.get("updatedInput", ABSENT)
        if changed and value_of(changed) != value_of(asked.members.get("input", ABSENT)):
            # What ran is not what the model asked for, and nothing else says so.
            kept["updatedInput"] = changed
        if "error" in response:
            kept["error"] = response["error"]
        self._extra(record, kept)
        self._pen.revise(f"request {name}", record)

    # -- elicitations -------------------------------------------------------------------------------------------

    def elicitation(self, name: str, members: dict[str, Raw]) -> None:
        """An MCP server asks through the agent: a form, or a URL that is never opened."""
        self.begin(name, "elicitation", members, None)
        record = self._form(name, self.open[name])
        record.status = "pending"
        self._pen.revise(f"request {name}", record)

    def _form(self, name: str, asked: Open, answer: Ref | None = None) -> InputRequest:
        members = asked.members
        schema = members.get("requested_schema", ABSENT)
        url = text_of(members.get("url", ABSENT))
        record = InputRequest(
            request_id=name,
            id_source="native",
            mode="url" if url is not None else "form",
            message=text_of(members.get("message", ABSENT)),
            url=url,
            native=Native(refs=[asked.ref, *([answer] if answer is not None else [])]),
        )
        if mark(schema) == b"{" and lossless.fits(bytes(schema)):
            record.requested_schema = schema
        whole, names = secrets_in(members)
        asked_for = members_of(members_of(schema).get("properties", ABSENT))
        if whole or (names and names == set(asked_for)):
            record.secret = True
        return record

    def _filled(self, name: str, asked: Open, response: dict[str, Raw]) -> None:
        record = self._form(name, asked, self._pen.ref("decision"))
        answer = members_of(response.get("response", ABSENT))
        record.status = ACTIONS.get(text_of(answer.get("action", ABSENT)) or "")
        content = answer.get("content", ABSENT)
        whole, names = secrets_in(asked.members)
        if content and not is_null(content):
            if whole or record.secret:
                self._pen.capture(record, "response", "redacted")
            else:
                self._put_response(record, content, names)
        self._pen.revise(f"request {name}", record)

    def _put_response(self, record: InputRequest, content: Raw, names: set[str]) -> None:
        given = content
        if names:
            self._pen.capture(
                record, "response", "redacted", reason="answers to secret questions are left out"
            )
            given = raw_json({name: raw for name, raw in members_of(content).items() if name not in names})
        if lossless.lossless(bytes(given)):
            record.response = value_of(given)
        elif not names:
            blob = self._pen.desk.blob(bytes(given), "application/json")
            self._pen.capture(record, "response", "external", blob=blob)

    # -- ends ---------------------------------------------------------------------------------------------------

    def answered(self, name: str, response: dict[str, Raw]) -> bool:
        """The host's response; False when it answers nothing that we know."""
        asked = self.open.get(name)
        if asked is None or asked.kind not in ("permission", "elicitation"):
            return False
        del self.open[name]
        (self._answered if asked.kind == "permission" else self._filled)(name, asked, response)
        return True

    def withdrawn(self, name: str) -> bool:
        """The agent takes a request back."""
        asked = self.open.get(name)
        if asked is None or asked.kind not in ("permission", "elicitation"):
            return False
        del self.open[name]
        record: Permission | InputRequest
        if asked.kind == "permission":
            record = self._permission(name, asked, self._pen.ref("cancel"))
            record.decision, record.status = "cancelled", "resolved"
        else:
            record = self._form(name, asked, self._pen.ref("cancel"))
            record.status = "cancelled"
        self._pen.revise(f"request {name}", record)
        return True


def secrets_in(members: dict[str, Raw]) -> tuple[bool, set[str]]:
    """Whether an elicitation asks for a secret as a whole, and which members of its form do."""
    schema = members.get("requested_schema", ABSENT)
    return secrets_of({**members, "requestedSchema": schema} if schema else members)


def words_in(value: Any) -> list[str]:
    """The texts of an answer; numbers as they are written, true and false are no secret."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [word for item in value.values() for word in words_in(item)]
    if isinstance(value, list):
        return [word for item in value for word in words_in(item)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return [msgspec.json.encode(value).decode()] if is_number else []
