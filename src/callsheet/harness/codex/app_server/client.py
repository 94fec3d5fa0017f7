"""A client's half of one connection, as a state machine (``seam.Driver``).

Owns: the handshake, opening or going on with a thread, turns and their ends, steering and interrupting, and the ids
of our own requests. What the server asks of a person is in ``waiting``, what it shows while a turn runs in
``previews``. A request that we do not know is answered with 'method not found', a notification that we do not know
with nothing.

Must never know: records, files, clocks.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Raw

from callsheet.harness._port import client
from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of, whole_text
from callsheet.harness._port.rpc import Frame, frame_in, id_of, message_of
from callsheet.harness._port.rpc_client import RpcClient
from callsheet.harness.codex.app_server.masks import Masks
from callsheet.harness.codex.app_server.previews import Previews
from callsheet.harness.codex.app_server.waiting import RPC, Requests
from callsheet.harness.codex.talk import error_of
from callsheet.seam import (
    Ability,
    Accepted,
    Can,
    Cannot,
    Completed,
    Failed,
    Interrupted,
    Launch,
    Lost,
    NotStarted,
    Opened,
    Rejected,
    Reply,
    Send,
    Step,
    TurnChanged,
    TurnResult,
    Wish,
)

APPROVALS = frozenset({"untrusted", "on-request", "on-failure", "never"})
SANDBOXES = frozenset({"read-only", "workspace-write", "danger-full-access"})
"""Words for a mode: when the server asks, or what a command may touch."""
SWITCHES = ("initialize: capabilities.experimentalApi = true", "thread/start: experimentalRawEvents = true")
"""The reporting switches that are set (decision 14): the server then reports raw response items."""
_VERSION = re.compile(r"/(\d+\.\d+[\w.+-]*)")


class Turn(client.Turn):
    """The turn that runs.

    Attributes:
        id: Its id, once the server told it.
    """

    id: str | None = None


class Client(RpcClient[Turn]):
    """The driver of one connection.

    Args:
        wish: What is wanted of the session.
        client_version: Our version, for the handshake.
    """

    session_word = "a thread"
    rpc = RPC

    def __init__(self, wish: Wish, client_version: str = "0") -> None:
        super().__init__(wish)
        self._requests: Requests = Requests()
        self._previews: Previews = Previews()
        self._masks: Masks = Masks()
        self._info = {"name": "callsheet", "title": "callsheet", "version": client_version}
        self._version: str | None = None
        self._thread: str | None = None
        self._raw = wish.resume is None

    # -- opening ------------------------------------------------------------------------------------------------

    def launch(self) -> Launch:
        """The app server over its standard streams."""
        return Launch(arguments=("app-server",), switches=SWITCHES if self._raw else SWITCHES[:1])

    def open(self) -> list[Step]:
        """The handshake."""
        params = {"clientInfo": self._info, "capabilities": {"experimentalApi": True}}
        return [self._request("initialize", params, self._initialized)]

    def _initialized(self, frame: Frame) -> list[Step]:
        if frame.error:
            return self._unopened("the agent refused the handshake", frame.error)
        told = _VERSION.search(text_of(members_of(frame.result).get("userAgent", ABSENT)) or "")
        self._version = told.group(1) if told is not None else self.wish.version
        mode = self.wish.mode
        if mode is not None and mode not in APPROVALS | SANDBOXES:
            offered = ", ".join(sorted(APPROVALS | SANDBOXES))
            return self._no_session(f"no mode {mode}; offered: {offered}")
        return [Send(RPC.notification("initialized")), self._open_thread()]

    def _open_thread(self) -> Send:
        wish = self.wish
        params: dict[str, Any] = {"cwd": wish.cwd}
        if wish.model is not None:
            params["model"] = wish.model
        if wish.mode is not None:
            params["approvalPolicy" if wish.mode in APPROVALS else "sandbox"] = wish.mode
        if wish.resume is not None:
            # Its history is in the thread's own file already.
            params |= {"threadId": wish.resume, "excludeTurns": True}
            return self._request("thread/resume", params, self._thread_said)
        if self._raw:
            params["experimentalRawEvents"] = True
        return self._request("thread/start", params, self._thread_said)

    def _thread_said(self, frame: Frame) -> list[Step]:
        if frame.error:
            if self._raw:
                self._raw = False  # a version that does not know raw events
                return [self._open_thread()]
            what = "opened no thread" if self.wish.resume is None else "did not go on with the thread"
            return self._unopened(f"the agent {what}", frame.error)
        result = members_of(frame.result)
        thread = members_of(result.get("thread", ABSENT))
        self._thread = text_of(thread.get("id", ABSENT))
        if not self._thread:
            return self._no_session("the agent opened a thread without an id")
        self._opened = True
        return [
            Opened(
                session=self._thread,
                agent="codex",
                version=self._version,
                model=text_of(result.get("model", ABSENT)),
                abilities=self._abilities(),
            )
        ]

    def _abilities(self) -> tuple[Ability, ...]:
        shown = f"app server of {self._version}" if self._version else "app server"
        names = ("interrupt", "steer", "resume", "model", "mode", "permissions", "questions")
        raw = (
            Can("raw_events", "thread/start took experimentalRawEvents")
            if self._raw
            else Cannot("raw_events", "thread/resume has no switch for them, or thread/start refused it")
        )
        return (*(Can(name, shown) for name in names), raw)

    def _unopened(self, what: str, error: Raw) -> list[Step]:
        said = message_of(error)
        return self._no_session(f"{what}: {said}" if said else what)

    # -- turns --------------------------------------------------------------------------------------------------

    def start(self, prompt: str) -> list[Step]:
        """Starts a turn."""
        turn = self._turn = Turn()

        def said(frame: Frame) -> list[Step]:
            if self._turn is not turn:
                return []
            if frame.error:
                return self._end(NotStarted(message_of(frame.error) or "the agent did not start the turn"))
            return self._begun(members_of(frame.result))

        params = {"threadId": self._thread, "input": _input(prompt)}
        return [TurnChanged("starting"), self._request("turn/start", params, said)]

    def _begun(self, told: dict[str, Raw]) -> list[Step]:
        """The server names the turn; an interrupt that came before waits for that."""
        turn = self._turn
        name = text_of(members_of(told.get("turn", ABSENT)).get("id", ABSENT))
        if turn is None or turn.id is not None or not name:
            return []
        turn.id = name
        return self._break_off(turn) if turn.interrupted else []

    def _ended(self, told: dict[str, Raw]) -> list[Step]:
        turn = self._turn
        said = members_of(told.get("turn", ABSENT))
        name = text_of(said.get("id", ABSENT))
        if turn is None or (turn.id is not None and name != turn.id):
            return []
        status = text_of(said.get("status", ABSENT))
        error = value_of(said.get("error", ABSENT))
        return self._end(_result(status, error if isinstance(error, dict) else None))

    # -- what the server sends ----------------------------------------------------------------------------------

    def receive(self, frame: bytes) -> list[Step]:
        """One line of the server."""
        found = frame_in(Raw(whole_text(frame)), from_agent=True)
        return self._frame(found) if found is not None else []

    def _asked(self, frame: Frame) -> list[Step]:
        """A request of the server, of any thread of the connection."""
        ask = self._requests.asked(frame)
        return self._asks(ask) if ask is not None else [self._not_found(frame)]

    def _notified(self, method: str, params: dict[str, Raw]) -> list[Step]:
        if method == "serverRequest/resolved":
            number = id_of(params.get("requestId", ABSENT))
            return self._withdrawn(lambda ask: id_of(ask.wire) == number, "resolved")
        named = text_of(params.get("threadId", ABSENT))
        if self._turn is None or (named is not None and named != self._thread):
            return []  # another agent's thread, or noise between turns
        if method == "turn/started":
            return [*self._begun(params), *self._changed("running")]
        if method == "turn/completed":
            return self._ended(params)
        return list(self._previews.notice(method, params))

    # -- controls -----------------------------------------------------------------------------------------------

    def steer(self, text: str) -> Reply:
        """Adds words to the running turn."""
        turn = self._turn
        if turn is None or turn.interrupted:
            return Reply(Rejected("no turn is running"))
        if turn.id is None:
            return Reply(Rejected("the turn has not begun yet"))

        def said(frame: Frame) -> list[Step]:
            failed = "the agent did not take the words"
            return self._unless(failed, message_of(frame.error)) if frame.error else []

        params = {"threadId": self._thread, "expectedTurnId": turn.id, "input": _input(text)}
        return Reply(Accepted(), (self._request("turn/steer", params, said),))

    def _break_off(self, turn: Turn) -> list[Step]:
        """Asks the server, once it has named the turn; it settles open requests itself."""
        if turn.id is None:
            return []

        def said(frame: Frame) -> list[Step]:
            failed = "the agent did not stop"
            return self._unless(failed, message_of(frame.error)) if frame.error else []

        return [self._request("turn/interrupt", {"threadId": self._thread, "turnId": turn.id}, said)]


def _input(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def _result(status: str | None, error: dict[str, Any] | None) -> TurnResult:
    """How a turn ended, by the server's word for it."""
    if status == "completed" and error is None:
        return Completed(status)
    if status == "interrupted":
        return Interrupted(status)
    if status == "failed" or error is not None:
        told = error_of({**(error or {}), "codex_error_info": (error or {}).get("codexErrorInfo")})
        if told is None:
            return Failed(None, status)
        return Failed(told.message, str(told.code) if told.code is not None else status)
    return Lost(f"the agent ended the turn with a word that is not known: {status}")
