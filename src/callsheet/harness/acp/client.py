"""A client's half of one connection, as a state machine (``seam.Serving``).

Owns: the negotiation (version 2 is asked for, version 1 accepted, in one request that both understand), opening a
session, setting what was wished for, prompts and their end in both versions, cancelling, and the ids of both
directions, which count apart. What the agent asks of a person is in ``waiting``, what it uses of its client in
``lent``, what it shows while a turn runs in ``previews``. A request that we do not know is answered with 'method not
found', a notification or an update that we do not know with nothing.

Must never know: records, files, clocks.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port import client
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of, whole_number_of
from callsheet.harness._port.rpc import CANCELLED, INVALID, Frame, Id, id_of, message_of
from callsheet.harness._port.rpc_client import RpcClient
from callsheet.harness.acp.cancelling import Cancelling
from callsheet.harness.acp.fold import agent_of
from callsheet.harness.acp.lent import METHODS, Lent
from callsheet.harness.acp.offers import SETTINGS, Offer, offers_of
from callsheet.harness.acp.previews import Previews
from callsheet.harness.acp.secrets import Secrets
from callsheet.harness.acp.shapes import frames_in
from callsheet.harness.acp.waiting import ASKS, RPC, Requests
from callsheet.registry import load
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
    NotServed,
    NotStarted,
    Opened,
    Rejected,
    Reply,
    RequestClosed,
    Send,
    Served,
    Step,
    TurnChanged,
    TurnResult,
    Untried,
    Wish,
)

NEWEST = 2
OLDEST = 1
CLIENT = {"name": "callsheet", "title": "callsheet"}
ELICITATION: dict[str, Any] = {"form": {}, "url": {}}
"""What this client can ask a person; a URL is shown, never opened."""
NOT_TAKEN = frozenset({-32600, -32601, -32602, -32000, -32002})
"""Errors of a v1 prompt that say that it was never taken: a bad request, no login, no such session."""
LOGIN_WANTED = -32000
UNSUPPORTED = -32022
"""The error for a version of the protocol that the agent does not speak."""


class Turn(client.Turn):
    """The turn that runs.

    Attributes:
        accepted: v2: the prompt was answered.
        running: The agent showed that it is at work.
    """

    accepted: bool = False
    running: bool = False


class Client(RpcClient[Turn]):
    """The driver of one connection.

    Args:
        wish: What is wanted of the session.
        arguments: Arguments that make the agent's program speak the protocol.
        client_version: Our version, for the handshake.
        lends: Offers an agent of version 1 our files and terminals: one that can do without works as it always does.
    """

    rpc = RPC

    def __init__(
        self, wish: Wish, arguments: tuple[str, ...] = (), client_version: str = "0", *, lends: bool = True
    ) -> None:
        super().__init__(wish)
        self._requests: Requests = Requests()
        self._previews: Previews = Previews()
        self._masks: Secrets = Secrets()
        self._lends = lends
        self._arguments = arguments
        self._info = {**CLIENT, "version": client_version}
        self._version = NEWEST
        self._asked_for = NEWEST
        self._refusal = ABSENT
        self._agent: tuple[str, str | None] | None = None
        self._abilities: list[Ability] = []
        self._logins: list[str] = []
        self._session: str | None = None
        self._offers: dict[str, Offer] = {}
        self._lent = Lent()
        self._cancelling = Cancelling()
        self._ends = {
            row.value: row.then
            for row in load("acp").terminal_status
            if row.entity == "turn" and row.source == "stopReason"
        }

    # -- opening ------------------------------------------------------------------------------------------------

    def launch(self) -> Launch:
        """The program's own arguments; no switch is set."""
        return Launch(arguments=self._arguments)

    def open(self) -> list[Step]:
        """Asks for version 2, in words that version 1 understands too."""
        params = {
            "protocolVersion": NEWEST,
            "info": self._info,
            "capabilities": {"elicitation": ELICITATION},
            "clientInfo": self._info,
            "clientCapabilities": self._abilities_of_ours(),
        }
        return [self._request("initialize", params, self._initialized)]

    def _abilities_of_ours(self) -> dict[str, Any]:
        """What this client can do, in version 1's words."""
        files = {"readTextFile": self._lends, "writeTextFile": self._lends}
        return {"fs": files, "terminal": self._lends, "elicitation": ELICITATION}

    def _initialized(self, frame: Frame) -> list[Step]:
        if frame.error:
            if self._asked_for == OLDEST:
                # An agent of version 2 alone refuses the older one by its number: why it refused before says more.
                only_newer = whole_number_of(members_of(frame.error).get("code", ABSENT)) == UNSUPPORTED
                why = self._refusal if only_newer else frame.error
                return self._unopened("the agent refused the handshake", why)
            self._asked_for, self._refusal = OLDEST, Raw(bytes(frame.error))
            old = {
                "protocolVersion": OLDEST,
                "clientInfo": self._info,
                "clientCapabilities": self._abilities_of_ours(),
            }
            return [self._request("initialize", old, self._initialized)]
        result = members_of(frame.result)
        version = whole_number_of(result.get("protocolVersion", ABSENT))
        if version not in (OLDEST, NEWEST):
            said = version if version is not None else "none"
            return self._no_session(f"the agent speaks version {said} of the protocol, callsheet 1 and 2")
        self._version = self._previews.version = version
        self._agent = agent_of(result)
        for item in items_of(result.get("authMethods", ABSENT)):
            name = text_of(members_of(item).get("methodId" if version > 1 else "id", ABSENT))
            self._logins += [name] if name else []
        way = self._ways_to_resume(result)
        self._abilities = self._abilities_of(result, bool(way))
        place: dict[str, Any] = {"cwd": self.wish.cwd, "mcpServers": []}
        if self.wish.resume is None:
            return [self._request("session/new", place, self._session_said)]
        if not way:
            return self._no_session("the agent does not say that it can go on with a session")
        self._session = self.wish.resume
        return [self._request(way, {"sessionId": self.wish.resume, **place}, self._session_said)]

    def _ways_to_resume(self, result: dict[str, Raw]) -> str | None:
        """The request that goes on with a session: the one without a replay, if there is a choice."""
        if self._version > 1:
            return "session/resume" if "session" in members_of(result.get("capabilities", ABSENT)) else None
        told = members_of(result.get("agentCapabilities", ABSENT))
        if mark(members_of(told.get("sessionCapabilities", ABSENT)).get("resume", ABSENT)) == b"{":
            return "session/resume"
        return "session/load" if bytes(told.get("loadSession", ABSENT)) == b"true" else None

    def _abilities_of(self, result: dict[str, Raw], resumes: bool) -> list[Ability]:
        shown = f"version {self._version} of the protocol"
        found: list[Ability] = [Can("interrupt", shown), Can("permissions", shown), Can("questions", shown)]
        found.append(Can("resume", "its handshake") if resumes else Cannot("resume", "its handshake"))
        steering = members_of(members_of(result.get("_meta", ABSENT)).get("steering", ABSENT))
        if steering:
            found.append(
                Untried("steer", "_meta.steering in its handshake; the protocol has no request for it")
            )
        else:
            found.append(Cannot("steer", shown))
        return found

    def _session_said(self, frame: Frame) -> list[Step]:
        if frame.error:
            what = (
                "the agent opened no session"
                if self.wish.resume is None
                else "the agent did not go on with it"
            )
            return self._unopened(what, frame.error)
        result = members_of(frame.result)
        if self.wish.resume is None:
            self._session = text_of(result.get("sessionId", ABSENT))
            if not self._session:
                return self._no_session("the agent opened a session without an id")
        self._offers = offers_of(result, self._version)
        return self._set(list(SETTINGS))

    def _set(self, settings: list[str]) -> list[Step]:
        """Sets what was wished for, one thing after the other, and says that the session is open."""
        while settings:
            setting = settings.pop(0)
            wanted = self.wish.mode if setting == "mode" else self.wish.model
            offer = self._offers.get(setting)
            if wanted is None:
                continue
            if offer is None:
                return self._no_session(f"the agent offers no choice of a {setting}")
            if wanted not in offer.choices:
                return self._no_session(f"no {setting} {wanted}; offered: {', '.join(offer.choices)}")
            params = {"sessionId": self._session, **offer.params, offer.member: wanted}

            def done(frame: Frame, name: str = setting, value: str = wanted) -> list[Step]:
                if frame.error:
                    return self._unopened(f"the agent did not set the {name} {value}", frame.error)
                told = offers_of(members_of(frame.result), self._version)
                was = self._offers[name]
                self._offers |= told or {name: msgspec.structs.replace(was, current=value)}
                return self._set(settings)

            return [self._request(offer.method, params, done)]
        self._opened = True
        name, version = self._agent or (None, None)
        model = self._offers.get("model")
        for setting in SETTINGS:
            known = setting in self._offers
            self._abilities.append(
                Can(setting, "its session offers a choice")
                if known
                else Cannot(setting, "its session offers none")
            )
        return [
            Opened(
                session=self._session,
                agent=name,
                version=version,
                model=model.current if model is not None else None,
                abilities=tuple(self._abilities),
            )
        ]

    def _unopened(self, what: str, error: Raw = ABSENT) -> list[Step]:
        told = members_of(error)
        if whole_number_of(told.get("code", ABSENT)) == LOGIN_WANTED and self._logins:
            what += f"; it wants a login first ({', '.join(self._logins)})"
        said = message_of(error)
        return self._no_session(f"{what}: {said}" if said else what)

    # -- turns --------------------------------------------------------------------------------------------------

    def start(self, prompt: str) -> list[Step]:
        """Sends a prompt."""
        turn = self._turn = Turn()

        def said(frame: Frame) -> list[Step]:
            return self._prompt_answered(frame, turn) if self._turn is turn else []

        params = {"sessionId": self._session, "prompt": [{"type": "text", "text": prompt}]}
        return [TurnChanged("starting"), self._request("session/prompt", params, said)]

    def _prompt_answered(self, frame: Frame, turn: Turn) -> list[Step]:
        if frame.error:
            code = whole_number_of(members_of(frame.error).get("code", ABSENT))
            message = message_of(frame.error)
            if code == CANCELLED:
                return self._end(Interrupted(str(code)))
            untaken = code in NOT_TAKEN if self._version == 1 else True
            if untaken and not turn.running:
                return self._end(NotStarted(message or f"error {code}"))
            return self._end(Failed(message, None if code is None else str(code)))
        turn.accepted = True
        result = members_of(frame.result)
        if self._version > 1 and "stopReason" not in result:
            return []
        return self._end(self._result(result))

    def _result(self, said: dict[str, Raw]) -> TurnResult:
        """How a turn ended, by the agent's word for it."""
        reason = text_of(said.get("stopReason", ABSENT))
        failure = said.get("error", ABSENT)
        status = "failed" if members_of(failure) else self._ends.get(reason)
        if status == "completed":
            return Completed(reason)
        if status == "interrupted":
            return Interrupted(reason)
        if status == "failed":
            return Failed(message_of(failure), reason)
        word = "no word for it" if reason is None else f"a word that is not known: {reason}"
        return Lost(f"the agent ended the turn with {word}")

    def _state(self, update: dict[str, Raw]) -> list[Step]:
        """v2: what the agent is at."""
        turn = self._turn
        state = text_of(update.get("state", ABSENT))
        if turn is None:
            return []
        if state in ("running", "requires_action"):
            turn.running = True
            return self._changed(
                "waiting" if state == "requires_action" or self._requests.open else "running"
            )
        # A snapshot of before the prompt may come after it: it ends nothing.
        if state == "idle" and (turn.running or (turn.accepted and "stopReason" in update)):
            return self._end(self._result(update))
        return []

    # -- what the agent sends -----------------------------------------------------------------------------------

    def receive(self, frame: bytes) -> list[Step]:
        """One line of the agent."""
        return [step for one in frames_in(frame, from_agent=True) for step in self._frame(one)]

    def _notified(self, method: str, params: dict[str, Raw]) -> list[Step]:
        if method == "session/update":
            return self._updated(params)
        if method == "$/cancel_request":
            return self._taken_back(id_of(params.get("requestId", ABSENT)))
        return []

    def _updated(self, params: dict[str, Raw]) -> list[Step]:
        update = members_of(params.get("update", ABSENT))
        name = text_of(update.get("sessionUpdate", ABSENT)) or ""
        session = text_of(params.get("sessionId", ABSENT))
        if self._version > 1 and session:
            self._cancelling.told(session, name, update)
        if session != self._session or not self._opened:
            return []  # another agent's session, or a replay
        if name == "state_update":
            return self._state(update) if self._version > 1 else []
        steps: list[Step] = []
        if self._turn is not None and self._version == 1:
            self._turn.running = True
            steps += self._changed("waiting" if self._requests.open else "running")
        if name == "config_option_update":
            self._offers |= offers_of(update, self._version)
        if self._turn is None:
            return steps
        return [*steps, *self._previews.update(name, update)]

    def _waiting(self) -> int:
        return super()._waiting() + len(self._lent)

    def _asked(self, frame: Frame) -> list[Step]:
        if frame.method in METHODS and self._version == 1 and self._lends:
            return self._lent.asked(frame)
        if frame.method not in ASKS:
            return [self._not_found(frame)]
        ask = self._requests.asked(frame, self._session)
        if ask is None:
            return [self._refused(frame, INVALID, "the request is not understood")]
        return self._asks(ask)

    def _taken_back(self, number: Id | None) -> list[Step]:
        """The agent does not wait for an answer any more; the protocol wants one all the same."""
        lent = self._lent.taken_back(number)
        return lent or self._withdrawn(lambda ask: id_of(ask.wire) == number, "cancelled", answers=True)

    def served(self, key: str, outcome: Served | NotServed) -> list[Step]:
        """Answers a file or terminal request."""
        if self._over:
            return []
        steps, read = self._lent.served(key, outcome)
        return steps if read is None else [*steps, *self._previews.read(*read)]

    # -- controls -----------------------------------------------------------------------------------------------

    def steer(self, text: str) -> Reply:
        """The protocol has no request for it."""
        del text
        return Reply(Rejected("the protocol has no way to add words to a running turn"))

    def _break_off(self, turn: Turn) -> list[Step]:
        """Cancels the turn: every open request is answered 'cancelled', as the protocol demands."""
        del turn
        steps: list[Step] = [Send(RPC.notification("session/cancel", sessionId=self._session))]
        for ask in self._requests.all():
            steps += [Send(ask.unanswered), RequestClosed(ask.key, "answered", "cancelled")]
        return steps

    def cancel_call(self, call: str) -> Reply:
        """Cancels one call, or the terminal that it shows, where the agent offers that."""
        asked = self._cancelling.request(call)
        if asked is None:
            return Reply(Rejected("the agent does not offer to cancel this call"))

        def done(frame: Frame) -> list[Step]:
            return self._unless("the call was not cancelled", message_of(frame.error)) if frame.error else []

        return Reply(Accepted(), (self._request(asked.method, asked.params, done),))

    def gone(self, exit_code: int | None, signal: str | None) -> list[Step]:
        """The agent's process has ended."""
        self._lent.clear()
        return super().gone(exit_code, signal)
