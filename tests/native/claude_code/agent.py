"""The other end of our host of Claude Code: says what the agent would."""

from __future__ import annotations

from typing import Any

from callsheet.harness.claude_code import CLAUDE_CODE_AGENT
from callsheet.harness.claude_code.stream.client import Client
from callsheet.seam import Chosen, RequestOpened, Step, Wish
from tests.native.peers import CWD, SECRET_FORM, Peer

SESSION = "5e551011-0000-4000-8000-0000000000cc"


class Agent(Peer):
    """The other end."""

    allow = Chosen("allow")

    def __init__(self, wish: Wish | None = None, client: Client | None = None) -> None:
        self._count = 0
        super().__init__(client or CLAUDE_CODE_AGENT.driver(wish or Wish(cwd=CWD)))

    def say(self, **frame: Any) -> list[Step]:
        return self.hear(frame)

    def told(self, **frame: Any) -> list[Step]:
        """A frame of the session."""
        self._count += 1
        return self.say(**{"session_id": SESSION, "uuid": f"{self._count:08}-0000-4000-8000-000000000000", **frame})

    def reply(self, subtype: str = "success", **members: Any) -> list[Step]:
        told = {"subtype": subtype, "request_id": self.last["request_id"], **members}
        return self.say(type="control_response", response=told)

    def opened(self) -> list[Step]:
        return self.reply(response={})

    def refuse(self) -> list[Step]:
        return self.reply("error", error="no such thing")

    def taken(self) -> list[Step]:
        return self.init()

    def init(self, session: str = SESSION) -> list[Step]:
        told = {"claude_code_version": "2.1.332", "model": "sonnet", "cwd": CWD, "mcp_servers": []}
        return self.told(type="system", subtype="init", session_id=session, **told)

    def ask(self, name: str, **request: Any) -> Any:
        (*_, opened) = self.say(type="control_request", request_id=name, request=request)
        return opened.request if isinstance(opened, RequestOpened) else opened

    def permission(self, name: str, **more: Any) -> Any:
        told = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "c1"}
        return self.ask(name, **{**told, **more})

    def may(self, number: int) -> str:
        self.permission(f"q{number}", tool_use_id=f"c{number}")
        return f"q{number}"

    def form(self, number: int) -> str:
        self.ask(f"q{number}", subtype="elicitation", message="Key?", requested_schema=SECRET_FORM)
        return f"q{number}"

    def withdraw(self, number: int) -> list[Step]:
        return self.say(type="control_cancel_request", request_id=f"q{number}")

    def end(self, **members: Any) -> list[Step]:
        return self.told(type="result", **{"subtype": "success", "is_error": False, **members})

    def broken_off(self) -> list[Step]:
        return self.end(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools")

    def undecided(self, frame: dict[str, Any]) -> bool:
        response = frame["response"]
        if response["subtype"] == "error":
            return "nobody decides" in response["error"]
        return bool(response["response"] == {"action": "cancel"})
