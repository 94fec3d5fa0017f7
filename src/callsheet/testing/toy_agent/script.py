"""Scripts of the toy agent: what it does in a turn, step by step.

A script is a JSON object: ``about`` (a sentence), ``1`` and ``2`` (the steps in each version of the protocol; both may
be there), and ``replay`` (updates that are told again when a session is loaded). A step is an object with one of

- ``update``: a ``session/update``; ``in`` names another session
- ``notify`` and ``params``: any other notification
- ``ask`` and ``params``: a request to the client; its result is kept as ``keep``, and the script waits for it unless
  ``"wait": false``. ``"id"`` gives the request an id of your choice
- ``await``: waits for the result that was kept under this name, for ``cancel`` (the client cancels the turn), or
  for ``cancel of ID`` (it cancels this call, or terminal, alone)
- ``answer``: the prompt is answered with this result (v1: the turn's end), ``error``: with this error
- ``line``: bytes as they are, written as text, and a line end; ``bytes``: the same in base64, without a line end
- ``sleep``: seconds
- ``exit``: the process ends with this code; ``signal``: by this signal
- ``stderr``: a line on the standard error

Everywhere in it, the texts ``$session``, ``$cwd`` and ``$prompt`` stand for the session's id, its folder and the words
of the prompt, and ``$NAME.member`` for a member of a kept result.

A script is played anew in every turn. From the second turn on, its ids (of messages, calls, terminals, plans, agents)
get the number of the turn at their end: ``m1`` is ``m1-2`` then. Bytes of ``line`` and ``bytes`` stay as they are.

When the client cancels a turn whose script does not wait for that, the rest is left out, and the step that ends the
turn says ``cancelled``.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

Steps = list[dict[str, Any]]
STEPS = (
    "update",
    "notify",
    "ask",
    "await",
    "answer",
    "error",
    "line",
    "bytes",
    "sleep",
    "exit",
    "signal",
    "stderr",
)
"""What a step can be."""
CANCEL_OF = "cancel of "
"""Before the id of a call or a terminal: its own cancel is waited for."""
IDS = frozenset({"messageId", "toolCallId", "terminalId", "planId", "compactionId", "elicitationId"})
"""Members whose texts are ids of the script's own."""
SESSIONS = frozenset({"sessionId", "senderSessionId", "recipientSessionId"})
"""Members of an update whose texts name sessions; all but ``$session`` are the script's own."""


class BadScript(ValueError):
    """A script that cannot be played, and why."""


class Script(NamedTuple):
    """What the agent does in a turn.

    Attributes:
        about: What it shows.
        steps: The steps of each version of the protocol.
        replay: Updates that are told again when a session is loaded.
    """

    about: str
    steps: dict[int, Steps]
    replay: Steps


def names() -> list[str]:
    """The scripts that come with the toy."""
    folder = resources.files(__package__) / "scripts"
    return sorted(one.name.removesuffix(".json") for one in folder.iterdir() if one.name.endswith(".json"))


def load(name: str) -> Script:
    """A script by its name, or from a file.

    Raises:
        BadScript: There is none, or a step is not known.
    """
    if name in names():
        text = (resources.files(__package__) / "scripts" / f"{name}.json").read_text("utf-8")
    else:
        try:
            text = Path(name).read_text("utf-8")
        except OSError as error:
            raise BadScript(
                f"{name}: no such script ({', '.join(names())}), and no file: {error.strerror}"
            ) from None
    try:
        told = json.loads(text)
        steps = {version: told[str(version)] for version in (1, 2) if str(version) in told}
        script = Script(told.get("about", ""), steps, told.get("replay", []))
    except (ValueError, TypeError, AttributeError) as error:
        raise BadScript(f"{name}: not a script: {error}") from None
    for step in [one for some in steps.values() for one in some]:
        if sum(word in step for word in STEPS) != 1:
            raise BadScript(f"{name}: not a step: {json.dumps(step)[:100]}")
    return script


def filled(value: Any, words: dict[str, Any]) -> Any:
    """A part of a step with what its ``$`` words stand for."""
    if isinstance(value, str):
        if value.startswith("$") and value[1:] in words:
            return words[value[1:]]
        return value.replace("$cwd", words["cwd"])
    if isinstance(value, list):
        return [filled(one, words) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, words) for name, one in value.items()}
    return value


def numbered(step: dict[str, Any], turn: int) -> dict[str, Any]:
    """A step with the ids that it has in a turn: as they are written in the first, with its number later."""
    if turn < 2:
        return step
    mine = {name: _numbered(value, turn, IDS) for name, value in step.items()}
    if "update" in step:
        mine["update"] = _numbered(step["update"], turn, IDS | SESSIONS)
    if str(step.get("await")).startswith(CANCEL_OF):
        mine["await"] = _own(step["await"], turn)
    if "in" in step:
        mine["in"] = _own(step["in"], turn)
    return mine


def _numbered(value: Any, turn: int, names: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_numbered(one, turn, names) for one in value]
    if isinstance(value, dict):
        return {
            name: _own(one, turn) if name in names and isinstance(one, str) else _numbered(one, turn, names)
            for name, one in value.items()
        }
    return value


def _own(name: str, turn: int) -> str:
    """An id in a later turn; a ``$`` word stands for one that is not the script's."""
    return name if name.startswith("$") else f"{name}-{turn}"


def cancelled(step: dict[str, Any]) -> dict[str, Any] | None:
    """What is left of a step in a turn that was cancelled: v2's acceptance of the prompt, and the turn's end."""
    match step:
        case {"answer": {"messageId": _}}:
            return step
        case {"answer": {"stopReason": _}}:
            return {"answer": {"stopReason": "cancelled"}}
        case {"update": {"sessionUpdate": "state_update", "state": "idle", "stopReason": _}}:
            return {"update": {"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}}
        case _:
            return None


def waits_for_cancel(steps: Steps) -> bool:
    """Whether a script knows what it does when it is cancelled."""
    return any(step.get("await") == "cancel" for step in steps)
