"""The other end of our app-server client: says what a server would."""

from __future__ import annotations

from typing import Any

from callsheet.harness.codex import CODEX_AGENT
from callsheet.harness.codex.app_server.client import Client
from callsheet.seam import Chosen, RequestOpened, Step, Wish
from tests.native.codex.frames import CWD, THREAD, TURN
from tests.native.peers import SECRET_FORM, Peer

COMMAND = "item/commandExecution/requestApproval"
QUESTIONS = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"


class Server(Peer):
    """The other end."""

    allow = Chosen("accept")
    opens = "a thread"

    def __init__(self, wish: Wish | None = None, client: Client | None = None) -> None:
        super().__init__(client or CODEX_AGENT.driver(wish or Wish(cwd=CWD)))

    def say(self, **frame: Any) -> list[Step]:
        return self.hear(frame)

    def reply(self, **result: Any) -> list[Step]:
        return self.say(id=self.last["id"], result=result)

    def tell(self, method: str, **params: Any) -> list[Step]:
        return self.say(method=method, params={"threadId": THREAD, "turnId": TURN, **params})

    def opened(self) -> list[Step]:
        self.reply(userAgent="callsheet/0.163.0 (Linux)")
        return self.reply(thread={"id": THREAD, "cliVersion": "0.163.0"}, model="demo")

    def refuse(self) -> list[Step]:
        return self.say(id=self.last["id"], error={"code": -32600, "message": "no such thing"})

    def taken(self) -> list[Step]:
        turn = {"id": TURN, "status": "inProgress"}
        self.say(id=next(one["id"] for one in self.sent if one["method"] == "turn/start"), result={"turn": turn})
        return self.tell("turn/started", turn=turn)

    def ended(self, status: str, error: Any = None) -> list[Step]:
        return self.tell("turn/completed", turn={"id": TURN, "status": status, "error": error})

    def end(self, **more: Any) -> list[Step]:
        return self.tell("turn/completed", turn={"id": TURN, "status": "completed", "error": None, **more})

    def broken_off(self) -> list[Step]:
        return self.ended("interrupted")

    def ask(self, number: Any, method: str, **params: Any) -> Any:
        (*_, opened) = self.say(
            id=number, method=method, params={"threadId": THREAD, "turnId": TURN, **params}
        )
        return opened.request if isinstance(opened, RequestOpened) else opened

    def may(self, number: int) -> str:
        self.ask(number, COMMAND, itemId=f"c{number}", command="ls")
        return str(number)

    def form(self, number: int) -> str:
        form = {"serverName": "x", "mode": "form", "message": "Key?", "_meta": None}
        self.ask(number, ELICITATION, **form, requestedSchema=SECRET_FORM)
        return str(number)

    def withdraw(self, number: int) -> list[Step]:
        return self.tell("serverRequest/resolved", requestId=number)

    def undecided(self, frame: dict[str, Any]) -> bool:
        if "error" in frame:
            return "nobody decides" in frame["error"]["message"]
        return bool(frame["result"] == {"action": "cancel", "content": None, "_meta": None})
