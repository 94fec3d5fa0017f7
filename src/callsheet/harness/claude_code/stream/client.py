"""A host's half of one connection, as a state machine (``seam.Driver``).

Owns: how the agent is started, the handshake, turns and their ends, steering and interrupting, and the ids of our own
requests. What the agent asks is in ``waiting``, what it shows while a turn runs in ``previews``. A control request
that we do not know is answered with an error, any other frame that we do not know with nothing.

Must never know: records, files, clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port import client
from callsheet.harness._port.client import OPEN_MOST, TOO_MANY
from callsheet.harness._port.parts import (
    ABSENT,
    items_of,
    members_of,
    text_of,
    value_of,
    whole_number_of,
    whole_text,
)
from callsheet.harness.claude_code.stream.masks import Masks
from callsheet.harness.claude_code.stream.previews import Previews
from callsheet.harness.claude_code.stream.waiting import Requests, failure
from callsheet.registry import load
from callsheet.registry.versions import in_ranges
from callsheet.seam import (
    Ability,
    Accepted,
    Answer,
    Can,
    Cancelled,
    Completed,
    Failed,
    Interrupted,
    Launch,
    Lost,
    NotStarted,
    Opened,
    Permission,
    Questions,
    Rejected,
    Reply,
    Send,
    Step,
    TurnChanged,
    TurnResult,
    Wish,
)

STREAMING = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")
SWITCHES = ("--verbose", "--include-partial-messages")
"""Reporting switches of every version (decision 14)."""
HOOKS = "--include-hook-events"
HOOKS_SINCE = ">=2.1.332"
"""Versions that were seen to take it; an older one may refuse to start with it."""
ASKING = ("--permission-prompt-tool", "stdio")
"""Without it nobody can be asked; it reports requests, and decides none."""
PREFIX = "callsheet-"
"""How ids of our own requests begin."""
OWN_TURN = "human"
"""Origin of a turn that a prompt began; any other began by itself, when a task in the background ended."""


class Turn(client.Turn):
    """The turn that runs.

    Attributes:
        begun: The agent has taken the prompt.
    """

    begun: bool = False


class Client(client.Client[Turn]):
    """The driver of one connection.

    Args:
        wish: What is wanted of the session.
    """

    def __init__(self, wish: Wish) -> None:
        super().__init__(wish)
        self._requests: Requests = Requests()
        self._previews: Previews = Previews()
        self._masks: Masks = Masks()
        self._session: str | None = None
        self._version = wish.version
        self._ends = [row for row in load("claude-code").terminal_status if row.entity == "turn"]

    # -- opening ------------------------------------------------------------------------------------------------

    def launch(self) -> Launch:
        """The agent over its standard streams; nothing of its settings is changed but what was wished for."""
        wish = self.wish
        hooks = (HOOKS,) if wish.version is not None and in_ranges(HOOKS_SINCE, wish.version) else ()
        wanted: list[str] = []
        for name, value in (
            ("--model", wish.model),
            ("--permission-mode", wish.mode),
            ("--resume", wish.resume),
        ):
            wanted += [name, value] if value is not None else []
        switches = (*SWITCHES, *hooks)
        asking = " ".join(ASKING)
        return Launch(arguments=(*STREAMING, *switches, *ASKING, *wanted), switches=(*switches, asking))

    def open(self) -> list[Step]:
        """The handshake."""
        return [self._control({"subtype": "initialize", "hooks": None}, self._initialized)]

    def _initialized(self, response: dict[str, Raw]) -> list[Step]:
        if text_of(response.get("subtype", ABSENT)) != "success":
            said = text_of(response.get("error", ABSENT))
            return self._no_session(f"the agent refused the handshake{f': {said}' if said else ''}")
        self._opened = True
        return [self._says_who()]

    def _says_who(self, model: str | None = None) -> Opened:
        shown = f"control protocol of {self._version}" if self._version else "its answer to initialize"
        names = ("interrupt", "steer", "resume", "model", "mode", "permissions", "questions", "forms")
        abilities: tuple[Ability, ...] = tuple(Can(name, shown) for name in names)
        return Opened(
            session=self._session,
            agent="claude-code",
            version=self._version,
            model=model,
            abilities=abilities,
        )

    # -- turns --------------------------------------------------------------------------------------------------

    def start(self, prompt: str) -> list[Step]:
        """Starts a turn."""
        self._turn = Turn()
        return [TurnChanged("starting"), self._prompt(prompt)]

    def _prompt(self, words: str) -> Send:
        message = {"role": "user", "content": words}
        told = {
            "type": "user",
            "message": message,
            "parent_tool_use_id": None,
            "session_id": self._session or "",
        }
        return Send(msgspec.json.encode(told))

    def _ended(self, frame: dict[str, Raw]) -> list[Step]:
        """A result frame ends our turn, unless the agent began it by itself, or has more of our words to work on."""
        turn = self._turn
        if turn is None:
            return []
        origin = text_of(members_of(frame.get("origin", ABSENT)).get("kind", ABSENT))
        queued = whole_number_of(frame.get("queued_turn_count", ABSENT)) or 0
        if (origin is not None and origin != OWN_TURN) or (queued > 0 and not turn.interrupted):
            return []
        return self._end(self._result(frame))

    def _result(self, frame: dict[str, Raw]) -> TurnResult:
        reason = text_of(frame.get("terminal_reason", ABSENT)) or text_of(frame.get("subtype", ABSENT))
        status = next(
            (
                row.then
                for row in self._ends
                if (row.pointer or "").removeprefix("/") in frame
                and value_of(frame[(row.pointer or "").removeprefix("/")]) == row.value
            ),
            None,
        )
        words = next((text_of(one) for one in items_of(frame.get("errors", ABSENT))), None)
        match status:
            case "completed":
                return Completed(reason)
            case "interrupted":
                return Interrupted(reason)
            case "failed":
                return Failed(words or text_of(frame.get("result", ABSENT)), reason)
            case _:
                return Lost(f"the agent ended the turn with a word that is not known: {reason}")

    def _unended(self, turn: Turn, why: str) -> TurnResult:
        return Lost(why) if turn.begun else NotStarted(f"{why}, and never took the prompt")

    # -- what the agent sends -----------------------------------------------------------------------------------

    def receive(self, frame: bytes) -> list[Step]:
        """One line of the agent."""
        members = members_of(Raw(whole_text(frame)))
        match text_of(members.get("type", ABSENT)):
            case "control_response":
                response = members_of(members.get("response", ABSENT))
                return self._heard(text_of(response.get("request_id", ABSENT)), response)
            case "control_request":
                return self._asked(members)
            case "control_cancel_request":
                name = text_of(members.get("request_id", ABSENT))
                return self._withdrawn(lambda ask: ask.wire == name, "cancelled")
            case "result":
                return self._ended(members)
            case "system":
                return self._told(members)
            case "stream_event" if self._turn is not None:
                return [*self._changed("running"), *self._previews.piece(members)]
            case "tool_progress" if self._turn is not None:
                return list(self._previews.runs(members))
            case _:
                return []

    def _told(self, members: dict[str, Raw]) -> list[Step]:
        subtype = text_of(members.get("subtype", ABSENT))
        if subtype == "init":
            self._session = text_of(members.get("session_id", ABSENT)) or self._session
            self._version = text_of(members.get("claude_code_version", ABSENT)) or self._version
            if self._turn is not None:
                self._turn.begun = True
            return [self._says_who(text_of(members.get("model", ABSENT))), *self._changed("running")]
        if self._turn is None:
            return []
        if subtype == "task_started" and value_of(members.get("is_backgrounded", ABSENT)) is False:
            return list(self._previews.runs(members))
        if subtype == "api_retry":
            return list(self._previews.retries(members))
        return []

    def _asked(self, members: dict[str, Raw]) -> list[Step]:
        name = text_of(members.get("request_id", ABSENT))
        request = members_of(members.get("request", ABSENT))
        if name is None:
            return []
        if len(self._requests.open) >= OPEN_MOST:
            return [Send(failure(name, TOO_MANY))]
        ask = self._requests.asked(name, request)
        if ask is None:
            subtype = text_of(request.get("subtype", ABSENT))
            return [Send(failure(name, f"callsheet has no answer to {subtype}"))]
        return self._asks(ask)

    # -- controls -----------------------------------------------------------------------------------------------

    def answer(self, request_id: str, answer: Answer) -> Reply:
        """Answers an open request; a permission or question that is cancelled breaks the turn off."""
        ask = self._requests.open.get(request_id)
        if (
            ask is not None
            and isinstance(answer, Cancelled)
            and isinstance(ask.waiting, Permission | Questions)
        ):
            return self.interrupt()
        return super().answer(request_id, answer)

    def steer(self, text: str) -> Reply:
        """Adds words to the running turn: the agent takes them up between two requests to its model."""
        turn = self._turn
        if turn is None or turn.interrupted:
            return Reply(Rejected("no turn is running"))
        return Reply(Accepted(), (self._prompt(text),))

    def _break_off(self, turn: Turn) -> list[Step]:
        """Asks the agent; it takes open requests back itself."""
        del turn

        def said(response: dict[str, Raw]) -> list[Step]:
            if text_of(response.get("subtype", ABSENT)) == "success":
                return []
            return self._unless("the agent did not stop", text_of(response.get("error", ABSENT)))

        return [self._control({"subtype": "interrupt"}, said)]

    # -- frames -------------------------------------------------------------------------------------------------

    def _control(self, request: dict[str, Any], then: Callable[[dict[str, Raw]], list[Step]]) -> Send:
        self._count += 1
        name = f"{PREFIX}{self._count}"
        self._expect(name, then)
        told = {"type": "control_request", "request_id": name, "request": request}
        return Send(msgspec.json.encode(told))
