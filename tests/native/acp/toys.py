"""The toy agent as a process, and our client on its pipes: a live run without the shell."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Raw

from callsheet.seam import (
    Answer,
    Cancelled,
    Chosen,
    Ended,
    FormAsked,
    FormFilled,
    NotServed,
    Opened,
    Permission,
    RequestOpened,
    Send,
    Serve,
    Served,
    Step,
    UrlAsked,
    UrlOpened,
    Waiting,
    Wish,
)
from tests.native.acp.playing import Play


def first_of_all(waiting: Waiting) -> Answer:
    """The first option, a full form, and yes."""
    if isinstance(waiting, Permission):
        return Chosen(waiting.options[0].option_id) if waiting.options else Cancelled()
    if isinstance(waiting, FormAsked):
        return FormFilled(Raw(b'{"name":"me"}'))
    return UrlOpened() if isinstance(waiting, UrlAsked) else Cancelled()


Serves = Callable[[Serve], Served | NotServed]


def nothing_here(serve: Serve) -> NotServed:
    return NotServed("nothing here", "missing")


def run_toy(
    version: int,
    script: str,
    cwd: Path,
    *,
    answers: Callable[[Waiting], Answer] = first_of_all,
    serves: Serves = nothing_here,
    cancel_at: bytes | None = None,
    wish: Wish | None = None,
    prompt: str = "Go.",
    cancels: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Play:
    """A whole turn with the toy; the last step is its end.

    Args:
        version: Newest version that the toy speaks.
        script: What it plays.
        cwd: The session's folder.
        answers: Answers what it asks.
        serves: Serves its files and terminals.
        cancel_at: Bytes of a line at which the turn is cancelled.
        wish: The wish, if not just the folder.
        prompt: The prompt.
        cancels: Calls that are cancelled by themselves, as soon as the agent offers it.
        before: Words before the toy's command.
    """
    command = [*before, sys.executable, "-m", "callsheet.testing.toy_agent", "--version", str(version), script]
    play = Play(wish or Wish(cwd=str(cwd)))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        todo = list(play.steps)
        cancelled: set[str] = set()
        while not play.of(Ended):
            while todo:
                todo += _done(play, todo.pop(0), process, answers, serves, prompt)
            if play.of(Ended):
                break
            line = process.stdout.readline()
            if not line:
                code = process.wait(30)
                todo += play.take(play.client.gone(code, None))
                continue
            todo += play.hear(line.rstrip(b"\n"))
            if cancel_at is not None and cancel_at in line:
                todo += play.take(play.client.interrupt().steps)
            for call in cancels:
                reply = play.client.cancel_call(call) if call not in cancelled else None
                if reply is not None and reply.steps:
                    cancelled.add(call)
                    todo += play.take(reply.steps)
        process.stdin.close()
        process.wait(30)
    return play


def _done(
    play: Play,
    step: Step,
    process: subprocess.Popen[bytes],
    answers: Callable[[Waiting], Answer],
    serves: Serves,
    prompt: str,
) -> list[Step]:
    if isinstance(step, Send):
        assert process.stdin is not None
        process.stdin.write(step.frame + b"\n")
        process.stdin.flush()
    elif isinstance(step, Opened):
        return play.start(prompt)
    elif isinstance(step, Serve):
        return play.take(play.client.served(step.key, serves(step)))
    elif isinstance(step, RequestOpened):
        reply = play.client.answer(step.request.request_id, answers(step.request))
        return play.take(reply.steps)
    return []
