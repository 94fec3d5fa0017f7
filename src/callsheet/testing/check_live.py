"""What every adapter of a live agent must keep, whatever protocol it speaks.

Owns ``check_live_harness`` and the plays: for each, what the agent at the other end must do, and what has to come of it
on ours. An adapter brings a command for every play (a scripted server of its protocol), or says why its protocol has
none. What is wrong comes back as values:

- ``result``    a turn has another result than the play must have, or events after it
- ``control``   a control has another receipt than it must have
- ``close``     closing twice gives two reports, or leaves a process behind
- ``record``    a record was given out before it stood on the disk, or the bundle breaks a rule
- ``import``    importing the frame log gives other records than the live turn
- ``secret``    a marked secret stands somewhere in the bundle
- ``answer``    the record of a request does not say who answered, or a request that nobody decides gets no answer

Must never know: any one harness.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw

from callsheet.harness._port import Stored
from callsheet.harness._port.live import LiveAgent
from callsheet.library.importing import import_session
from callsheet.live import Address, Policy, Session, Unopened, open_session
from callsheet.live.recorder import LOG, NO_SESSION
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.seam import (
    Accepted,
    Answered,
    Chosen,
    Completed,
    Event,
    FormAsked,
    FormFilled,
    Interrupted,
    Lost,
    NotStarted,
    Permission,
    Questions,
    Receipt,
    Recorded,
    Rejected,
    RequestOpened,
    TurnResult,
    Wish,
)
from callsheet.testing.live_run import QUICK, Ran, found_at, run_turn
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import inflate

Way = Sequence[str] | Address
"""What starts an agent, or where it listens."""
SECRET = "sw0rdfish-9f3c"
"""What the plays answer to a secret question."""
ANSWERED = b'"answered_by":"policy"'
"""What stands in a frame log beside an answer that no person gave."""
PATIENCE, PAUSE = 20.0, 0.05
"""Seconds that an answer is waited for, and between two looks."""


Serving = Callable[[Sequence[str]], AbstractContextManager[str]]


class Flaw(NamedTuple):
    """Something an adapter must not do.

    Attributes:
        kind: Which promise is broken (see the module).
        play: In which play.
        what: What is wrong, one line.
    """

    kind: Literal["result", "control", "close", "record", "import", "secret", "answer"]
    play: str
    what: str


class Play(NamedTuple):
    """One play.

    Attributes:
        agent: What the agent must do.
        result: The result that the turn must have.
        run: Plays it, and says what else is wrong.
    """

    agent: str
    result: type[TurnResult]
    run: Callable[[LiveAgent, Way, Path], Awaitable[tuple[Ran, list[Flaw]]]]


class _Watch:
    """Does something at the right moment of a turn, and keeps the receipts."""

    def __init__(self, act: Callable[[Session, Event], Receipt | None]) -> None:
        self.receipts: list[Receipt] = []
        self._act = act

    async def __call__(self, session: Session, event: Event) -> None:
        receipt = self._act(session, event)
        if receipt is not None:
            self.receipts.append(receipt)


async def _plain(agent: LiveAgent, command: Way, out: Path) -> tuple[Ran, list[Flaw]]:
    return await run_turn(agent, command, out, port=Policy("reject")), []


async def _asks(agent: LiveAgent, command: Way, out: Path) -> tuple[Ran, list[Flaw]]:
    answered: list[str] = []

    def act(session: Session, event: Event) -> Receipt | None:
        if isinstance(event, RequestOpened) and isinstance(event.request, Permission):
            option = event.request.options[0].option_id
            answered.append(event.request.request_id)
            first = session.answer(event.request.request_id, Chosen(option), by="user")
            again = session.answer(event.request.request_id, Chosen(option), by="user")
            return first if isinstance(again, Rejected) else Rejected("answered twice")
        return None

    watch = _Watch(act)
    ran = await run_turn(agent, command, out, during=watch)
    flaws = [] if answered else [Flaw("control", "asks", "no permission was asked for")]
    flaws += [Flaw("control", "asks", str(one)) for one in watch.receipts if not isinstance(one, Accepted)]
    said = [record.get("decidedBy") for record in _records(ran.bundle) if record.get("decision")]
    if "user" not in said:
        flaws.append(Flaw("answer", "asks", f"a person answered, and the records say {said}"))
    return ran, flaws


async def _interrupted(agent: LiveAgent, command: Way, out: Path) -> tuple[Ran, list[Flaw]]:
    sent = False

    def act(session: Session, event: Event) -> Receipt | None:
        nonlocal sent
        if sent or not isinstance(event, Recorded) or event.record.seq < 2:
            return None
        sent = True
        return session.interrupt()

    watch = _Watch(act)
    ran = await asyncio.wait_for(run_turn(agent, command, out, during=watch), 60)
    flaws = [
        Flaw("control", "interrupted", str(one)) for one in watch.receipts if not isinstance(one, Accepted)
    ]
    return ran, flaws if sent else [Flaw("control", "interrupted", "nothing was recorded to interrupt")]


async def _deaf(agent: LiveAgent, command: Way, out: Path) -> tuple[Ran, list[Flaw]]:
    sent = False

    def act(session: Session, event: Event) -> Receipt | None:
        nonlocal sent
        if sent or not isinstance(event, Recorded) or event.record.seq < 2:
            return None
        sent = True
        receipt = session.interrupt()
        asyncio.get_running_loop().call_later(
            1.0, lambda: closing.append(asyncio.ensure_future(session.close()))
        )
        return receipt

    closing: list[asyncio.Future[Any]] = []
    ran = await asyncio.wait_for(run_turn(agent, command, out, during=_Watch(act)), 60)
    return ran, []


async def _secret(agent: LiveAgent, command: Way, out: Path) -> tuple[Ran, list[Flaw]]:
    asked: list[str] = []

    def act(session: Session, event: Event) -> Receipt | None:
        if not isinstance(event, RequestOpened):
            return None
        request = event.request
        asked.append(request.request_id)
        match request:
            case FormAsked():
                schema = msgspec.json.decode(request.schema)
                content = dict.fromkeys(schema.get("properties", {}), SECRET)
                answer: Any = FormFilled(Raw(msgspec.json.encode(content)))
            case Questions():
                answer = Answered({one.id: ((), SECRET) for one in request.questions})
            case Permission():
                answer = Chosen(request.options[0].option_id)
            case _:
                return None
        return session.answer(request.request_id, answer, by="user")

    watch = _Watch(act)
    ran = await run_turn(agent, command, out, during=watch)
    flaws = [] if asked else [Flaw("secret", "secret", "nothing was asked for")]
    flaws += [Flaw("control", "secret", str(one)) for one in watch.receipts if not isinstance(one, Accepted)]
    flaws += [Flaw("secret", "secret", f"stands in {name}") for name in _holding(ran.bundle, SECRET)]
    return ran, flaws


async def _late(agent: LiveAgent, command: Way, out: Path) -> tuple[Ran, list[Flaw]]:
    """Nobody is asked after the end of a turn: the agent is told so, and never gets leave."""

    async def after(session: Session) -> None:
        for _ in range(int(PATIENCE / PAUSE)):
            if ANSWERED in (session.bundle / LOG).read_bytes():
                return
            await asyncio.sleep(PAUSE)

    ran = await run_turn(agent, command, out, port=Policy("allow"), after=after)
    opened = Bundle(ran.bundle)
    with opened.open(opened.manifest.sources[0].native or "") as packed:
        log = b"".join(inflate(read_chunks(packed)))
    flaws = [] if ANSWERED in log else [Flaw("answer", "late", "the agent waits for an answer")]
    if any(isinstance(event, RequestOpened) for event in (*ran.events, *ran.late)):
        flaws.append(Flaw("answer", "late", "somebody was asked when no turn ran"))
    asked = [record for record in _records(ran.bundle) if record["type"] == "permission"]
    if not asked:
        flaws.append(Flaw("record", "late", "the request is not recorded"))
    for record in asked:
        if (
            record.get("decision", "cancelled") != "cancelled"
            or record.get("decidedBy", "policy") != "policy"
        ):
            said = f"{record.get('decision')} by {record.get('decidedBy')}"
            flaws.append(Flaw("answer", "late", f"nobody decided, and a record says {said}"))
    return ran, flaws


PLAYS: dict[str, Play] = {
    "completes": Play("says something, makes a call that succeeds, ends the turn", Completed, _plain),
    "asks": Play("asks for a permission, takes the answer, ends the turn", Completed, _asks),
    "interrupted": Play(
        "makes a call and waits; when it is interrupted, confirms that", Interrupted, _interrupted
    ),
    "deaf": Play("makes a call and waits; takes no notice of interrupts", Lost, _deaf),
    "crashes": Play("makes a call, and is killed before its result", Lost, _plain),
    "never_starts": Play("ends before its session is open", NotStarted, _plain),
    "secret": Play(
        "asks for a secret (and repeats it in a message, where it can), ends the turn", Completed, _secret
    ),
    "late": Play("ends the turn, then asks for a permission and waits for the answer", Completed, _late),
    "unknown": Play(
        "sends frames that nobody knows and lines that are no JSON, ends the turn", Completed, _plain
    ),
}
"""Every play, and what must come of it."""


def check_live_harness(
    agent: LiveAgent,
    commands: Mapping[str, Sequence[str] | str],
    folder: Path,
    *,
    stored: Stored | None = None,
    at: Serving | None = None,
) -> list[Flaw]:
    """Holds an adapter to its promises.

    Args:
        agent: The adapter.
        commands: For every play of ``PLAYS`` a command, or the reason (a text) why the protocol has no such thing.
        folder: Where to work.
        stored: The adapter that imports its frame logs; the one of its kind, if not given.
        at: Serves a command at an address, which it gives: the agent is then reached there, and not started.

    Returns:
        Flaws; none for an adapter that keeps its word here.

    Raises:
        ValueError: A play has neither command nor reason.
    """
    missing = set(PLAYS) - set(commands)
    if missing:
        raise ValueError(f"no command and no reason for {', '.join(sorted(missing))}")
    flaws: list[Flaw] = []
    for name, play in PLAYS.items():
        command = commands[name]
        if not isinstance(command, str):
            out = folder / name / "out"
            out.mkdir(parents=True)
            with at(command) if at is not None else nullcontext() as address:
                way = Address.parse(address) if address is not None else command
                flaws += asyncio.run(_checked(agent, name, play, way, out, stored))
    return flaws


async def _checked(
    agent: LiveAgent, name: str, play: Play, command: Way, out: Path, stored: Stored | None
) -> list[Flaw]:
    ran, flaws = await play.run(agent, command, out)
    if not isinstance(ran.result, play.result):
        flaws.append(Flaw("result", name, f"{ran.result}, not {play.result.__name__}"))
    if ran.unwritten:
        flaws.append(Flaw("record", name, f"given out before they were written: {ran.unwritten[:5]}"))
    if ran.closed is None and (ran.unopened is None or ran.unopened.bundle is None):
        return flaws
    for problem in ran.closed.problems if ran.closed is not None else ():
        flaws.append(Flaw("close", name, problem))
    flaws += [Flaw("record", name, str(one)) for one in check_bundle(Bundle(ran.bundle))]
    flaws += imports_alike(agent, ran.bundle, stored, name)
    flaws += await _after_close(agent, name, command, out.parent / "again")
    return flaws


async def _after_close(agent: LiveAgent, name: str, command: Way, out: Path) -> list[Flaw]:
    """Closing is idempotent, leaves no process, and every control is rejected afterwards."""
    session = await open_session(agent, found_at(command), Wish(cwd=str(out.parent)), out=out, limits=QUICK)
    if isinstance(session, Unopened):
        return []
    pid = session.pid
    turn = session.start("Do it.")
    first, second = await session.close(), await session.close()
    flaws = [] if first is second else [Flaw("close", name, "two reports")]
    result = await turn.result()
    if not isinstance(result, Lost | NotStarted | Completed | Interrupted):
        flaws.append(Flaw("result", name, f"closed in the middle of a turn: {result}"))
    controls = (session.interrupt(), session.steer("more"), session.answer("1", Chosen("1"), by="user"))
    flaws += [
        Flaw("control", name, f"{receipt} after the end")
        for receipt in controls
        if not isinstance(receipt, Rejected)
    ]
    if not isinstance(await session.start("again").result(), NotStarted):
        flaws.append(Flaw("result", name, "a turn began after the end"))
    if pid is None:
        kept = [] if first.how == "kept" else [Flaw("close", name, f"not ours, and it was {first.how}")]
        return flaws + kept
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return flaws
    return [*flaws, Flaw("close", name, "left a process behind")]


def imports_alike(agent: LiveAgent, bundle: Path, stored: Stored | None = None, play: str = "") -> list[Flaw]:
    """Whether importing the frame log of a recording gives the very records of the recording.

    Args:
        agent: The adapter.
        bundle: The recording.
        stored: The adapter that imports its frame logs; the one of its kind, if not given.
        play: Name for the flaws.
    """
    from callsheet.harness import HARNESSES

    stored = stored or next((one for one in HARNESSES if one.kind == agent.kind), None)
    if stored is None:
        return [Flaw("import", play, f"nothing imports frame logs of kind {agent.kind}")]
    with tempfile.TemporaryDirectory() as made:
        # What belongs to no session is named after the file.
        log = Path(made) / f"{NO_SESSION}.jsonl"
        opened = Bundle(bundle)
        with opened.open(opened.manifest.sources[0].native or "") as packed, log.open("wb") as out:
            for piece in inflate(read_chunks(packed)):
                out.write(piece)
        from callsheet.library.folders import DiskFolder

        (session,) = stored.sessions(str(log), DiskFolder(log))
        imported = import_session(stored, session, Path(made) / "out")
        live, again = _records(bundle), _records(imported.bundle)
        ours, theirs = _streams(opened), _streams(Bundle(imported.bundle))
    if ours != theirs:
        return [Flaw("import", play, f"streams {ours} live, {theirs} imported")]
    if len(live) != len(again):
        return [Flaw("import", play, f"{len(live)} records live, {len(again)} imported")]
    for one, other in zip(live, again, strict=True):
        if one != other:
            names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
            return [Flaw("import", play, f"{one.get('type')} {one.get('id')} differs in {', '.join(names)}")]
    return []


def _streams(bundle: Bundle) -> list[tuple[str, str | None, int | None]]:
    return [(entry.id, entry.parent, entry.records) for entry in bundle.manifest.streams]


def _records(bundle: Path) -> list[dict[str, Any]]:
    """All records of a bundle, without what the manifest knows better."""
    opened = Bundle(bundle)
    found: list[dict[str, Any]] = []
    for entry in opened.manifest.streams:
        for line in opened.read(entry.file).splitlines():
            record = msgspec.json.decode(line)
            record.pop("sources", None)
            found.append(record)
    return found


def _holding(bundle: Path, secret: str) -> list[str]:
    """Files of a bundle that hold a text, compressed ones looked into."""
    found = []
    for path in sorted(one for one in bundle.rglob("*") if one.is_file()):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = b"".join(inflate([data]))
        if secret.encode() in data:
            found.append(path.relative_to(bundle).as_posix())
    return found
