"""A session with a live agent: the way to it, its driver and its recorder joined, turn after turn.

Owns: opening (handshake), turns (one ordered stream of events, then exactly one result and nothing after it),
controls and their receipts, the open requests and who answers them, and the end: bounded, idempotent, with a report
apart from any turn's result. What the agent sends is read and recorded whatever the reader does. If nothing can be
recorded any more, the agent is stopped: nothing runs without a record. One that is not ours can only be asked to
break off what it does. Timeouts bound mechanics only.

Must never know: the protocol, how anything is drawn.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine, Iterable
from pathlib import Path
from typing import Any

from callsheet.errors import DEBUG, reason_of
from callsheet.harness._port.attested import Exit, Hangup, LastPreview, OwnFact, TurnEnd
from callsheet.live.answers import AnswerPort
from callsheet.live.channel import Channel
from callsheet.live.lending import Lender
from callsheet.live.limits import Limits
from callsheet.live.recorder import Recorder
from callsheet.live.reports import Closed, Turn, end_of
from callsheet.live.streams import Spot, Written
from callsheet.live.transport import Cut, NotRead, Transport
from callsheet.records import ToolResult
from callsheet.seam import (
    Accepted,
    Answer,
    Cancelling,
    Driver,
    Ended,
    Event,
    Lost,
    Noted,
    NotStarted,
    Opened,
    OutputPreview,
    Receipt,
    Recorded,
    Rejected,
    Reply,
    RequestClosed,
    RequestOpened,
    Send,
    Serve,
    Serving,
    Step,
    TurnChanged,
    TurnResult,
    TurnState,
    Waiting,
)
from callsheet.wire.masks import Cover

OUTPUTS_MOST = 256
"""Running calls whose last output is kept in mind."""
PAUSE = 50
"""Lines after which others get a turn while an agent floods."""


class Session:
    """An open session. Close it, or use it as an async context manager.

    Attributes:
        opened: What the agent said of itself.
        bundle: The bundle that is being recorded.
    """

    def __init__(
        self,
        driver: Driver,
        recorder: Recorder,
        transport: Transport,
        *,
        limits: Limits,
        port: AnswerPort | None,
        secrets: Iterable[str] = (),
    ) -> None:
        self.opened = Opened()
        self.bundle = recorder.folder
        self._driver = driver
        self._recorder = recorder
        self._transport = transport
        self._cover = Cover()
        for secret in secrets:
            self._cover.secret(secret)
        self._limits = limits
        self._port = port
        self._channel = self._new_channel()
        self._turn: Turn | None = None
        self._state: TurnState | None = None
        self._lender = Lender(Path(driver.wish.cwd))
        self._open: dict[str, Waiting] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._outputs: dict[str, OutputPreview] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._problems: list[str] = []
        self._gone = False
        self._broken: str | None = None
        self._cut_off = False
        self._refusal: str | None = None
        self._is_opened = asyncio.Event()
        self._closing: asyncio.Task[Closed] | None = None
        self._syncing = asyncio.create_task(self._sync_often())
        self._pumping = asyncio.create_task(self._pump())

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # -- turns and controls -------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Waiting]:
        """The requests that wait for an answer."""
        return list(self._open.values())

    @property
    def ours(self) -> bool:
        """Whether we started the agent: it ends with the session."""
        return self._transport.ours

    @property
    def pid(self) -> int | None:
        """Process id of the agent, and of its process group; None for one that is not ours."""
        return self._transport.pid

    @property
    def main_stream(self) -> str | None:
        """Id of the session's own stream in the bundle, once it has one."""
        return self._recorder.main

    def start(self, prompt: str) -> Turn:
        """Starts a turn. One that cannot start has the result ``NotStarted``."""
        if self._turn is not None:
            return self._refused("another turn is running")
        if self._is_over:
            return self._refused(self._broken or "the agent is gone")
        turn = self._turn = Turn(self._channel)
        self._change("starting")
        self._do(self._driver.start, prompt)
        return turn

    def _refused(self, reason: str) -> Turn:
        channel = self._new_channel()
        channel.finish(NotStarted(reason))
        return Turn(channel)

    def answer(self, request_id: str, answer: Answer, *, by: str) -> Receipt:
        """Answers one open request.

        Args:
            request_id: Which.
            answer: The answer.
            by: Who gives it: ``user`` or ``policy``.
        """
        if request_id not in self._open:
            return Rejected("the request is not open any more")
        return self._control(lambda: self._driver.answer(request_id, answer), by)

    def steer(self, text: str) -> Receipt:
        """Adds words to the running turn."""
        return self._control(lambda: self._driver.steer(text))

    def interrupt(self) -> Receipt:
        """Asks the agent to break off. It counts only when the agent confirms it: the turn's result says so."""
        receipt = self._control(self._driver.interrupt)
        if isinstance(receipt, Accepted) and self._turn is not None:
            self._change("interrupting")
            self._later(self._remind(self._turn))
        return receipt

    def cancel_call(self, call: str) -> Receipt:
        """Asks the agent to cancel one call, or the process that it left running; the turn goes on.

        Args:
            call: Its id in the records.
        """
        driver = self._driver
        if not isinstance(driver, Cancelling):
            return Rejected("the agent's protocol has no way to cancel one call")
        return self._control(lambda: driver.cancel_call(call), in_turn=False)

    def _control(self, ask: Any, by: str | None = None, *, in_turn: bool = True) -> Receipt:
        if self._is_over:
            return Rejected(self._broken or "the agent is gone")
        if in_turn and self._turn is None:
            return Rejected("no turn is running")
        try:
            reply: Reply = ask()
            self._apply(reply.steps, by)
        except Exception as error:
            self._break(error)
            return Rejected(self._broken or "")
        return reply.receipt

    async def _remind(self, turn: Turn) -> None:
        await asyncio.sleep(self._limits.acknowledge)
        if self._turn is turn:
            seconds = self._limits.acknowledge
            self._channel.preview(Noted(f"the agent has not confirmed the interrupt after {seconds:g} s"))

    async def rest(self) -> AsyncIterator[Event]:
        """What came after the last turn; ends when the session is closed."""
        while (event := await self._channel.next()) is not None:
            yield event

    # -- what the agent sends -----------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        return self._gone or self._broken is not None or self._closing is not None

    def _new_channel(self) -> Channel:
        return Channel(self._limits, self._read)

    def _read(self, spot: Spot) -> bytes:
        return self._recorder.read(spot)

    async def _pump(self) -> None:
        try:
            await self._read_all()
        except Exception as error:
            self._break(error)
        try:
            await asyncio.wait_for(self._transport.wait(), self._limits.leave)
        except TimeoutError:
            await self._transport.end()  # it closed its output and stays: nobody can talk to it
        self._do(self._leave)

    async def _read_all(self) -> None:
        async for lines in self._transport.chunks():
            for number, line in enumerate(lines):
                if self._broken is None:
                    self._do(self._receive, line)
                if number % PAUSE == PAUSE - 1:
                    self._do(self._give)
                    await asyncio.sleep(0)
            self._do(self._give)

    def _receive(self, line: bytes | Cut) -> list[Step]:
        if isinstance(line, Cut):
            kept = self._masked(line.head, from_agent=True)
            self._recorder.frame(line.head, kept, from_agent=True, omitted=line.size - len(line.head))
            return []
        if not line.strip():
            return []
        kept = self._masked(line, from_agent=True)
        self._recorder.frame(line, kept, from_agent=True)
        return self._driver.receive(line)

    def _masked(self, frame: bytes, *, from_agent: bool) -> bytes:
        """A frame as it may be written."""
        return self._cover.over(0, self._driver.mask(frame, from_agent=from_agent))

    def _leave(self) -> list[Step]:
        """The agent is gone: what it leaves open ends here."""
        if self._gone:
            return []
        self._gone = True
        outcome = self._transport.outcome()
        if isinstance(outcome, Hangup):
            # The agent lives on with what it was sent: of a turn nobody can say that nothing of it runs.
            end = (Lost if self._turn is not None else NotStarted)(end_of(outcome))
            steps = [
                Ended(end) if isinstance(step, Ended) else step for step in self._driver.gone(None, None)
            ]
        else:
            steps = self._driver.gone(outcome.code, outcome.signal)
        ended = next((step for step in steps if isinstance(step, Ended)), None)
        self._recorder.own(outcome)
        if self._turn is not None:
            if ended is None:
                ended = Ended(Lost(end_of(outcome)))
                steps = [*steps, ended]
            self._testify(ended.result)
        self._give()
        self._publish(self._recorder.close())
        return steps

    def _do(self, work: Any, *arguments: Any) -> None:
        """Does a step of the conversation; whatever fails in it on our side ends the session."""
        if self._broken is not None:
            return
        try:
            steps = work(*arguments)
            if steps:
                self._apply(steps)
        except Exception as error:
            self._break(error)

    def _give(self) -> None:
        """Writes what was taken, and gives out what is written."""
        self._publish(self._recorder.flush())

    def _publish(self, written: Iterable[Written]) -> None:
        for one in written:
            if isinstance(one.record, ToolResult):
                self._outputs.pop(one.record.call_id or "", None)
            self._channel.record(one)

    def _apply(self, steps: Iterable[Step], by: str | None = None) -> None:
        for step in steps:
            if isinstance(step, Send):
                kept = self._masked(step.frame, from_agent=False)
                who = step.answered_by or by
                self._recorder.frame(step.frame, kept, from_agent=False, answered_by=who)
                self._give()
                self._transport.send(step.frame)
            elif isinstance(step, Opened):
                self.opened = step
                self._is_opened.set()
            elif isinstance(step, Ended):
                self._give()
                self._end(step.result)
                if not self._is_opened.is_set() and isinstance(step.result, NotStarted):
                    self._refusal = step.result.reason
                    self._is_opened.set()
            elif isinstance(step, Serve):
                self._later(self._serve(step))
            elif not isinstance(step, Recorded):
                self._give()
                self._event(step)

    async def _serve(self, wanted: Serve) -> None:
        """Lends the agent a file or a terminal, while everything else goes on."""
        outcome = await self._lender.serve(wanted)
        if isinstance(self._driver, Serving) and not self._is_over:
            self._do(self._driver.served, wanted.key, outcome)

    def _event(self, event: Event) -> None:
        if isinstance(event, TurnChanged):
            self._change(event.state)
            return
        if isinstance(event, OutputPreview):
            if event.call not in self._outputs and len(self._outputs) >= OUTPUTS_MOST:
                self._outputs.pop(next(iter(self._outputs)))
            self._outputs[event.call] = event
        self._channel.preview(event)
        if isinstance(event, RequestOpened):
            self._open[event.request.request_id] = event.request
            self._change("waiting")
            if self._port is not None:
                self._asking[event.request.request_id] = self._later(self._ask(self._port, event.request))
        elif isinstance(event, RequestClosed):
            self._forget(event.request_id)
            if not self._open and self._state == "waiting":
                self._change("running")
        elif self._state == "starting":
            self._change("running")

    def _change(self, state: TurnState) -> None:
        if self._turn is not None and state != self._state:
            self._state = state
            self._channel.preview(TurnChanged(state))

    def _forget(self, request_id: str) -> None:
        self._open.pop(request_id, None)
        asking = self._asking.pop(request_id, None)
        if asking is not None and asking is not asyncio.current_task():
            asking.cancel()

    async def _ask(self, port: AnswerPort, request: Waiting) -> None:
        try:
            answer = await port.answer(request)
        except Exception as error:
            self._problem(f"the answer to {request.request_id} failed: {_words(error)}")
            return
        if answer is not None:
            receipt = self.answer(request.request_id, answer, by=port.by)
            if isinstance(receipt, Rejected) and request.request_id in self._open:
                self._channel.preview(Noted(f"the answer was not taken: {receipt.reason}"))

    # -- ends ---------------------------------------------------------------------------------------------------

    def _end(self, result: TurnResult) -> None:
        """The turn has ended; what follows belongs to the next one."""
        turn, channel = self._turn, self._channel
        if turn is None:
            return
        for request_id in list(self._open):
            channel.preview(RequestClosed(request_id, "ended"))
            self._forget(request_id)
        if not self._gone:
            self._testify(result)
            self._give()
        self._change("settled")
        self._turn = self._state = None
        self._channel = self._new_channel()
        self._later(self._finish(channel, result))

    def _testify(self, result: TurnResult) -> None:
        """Writes down what no frame of the agent tells: last outputs of calls without a result, an end unseen."""
        for call, output in self._outputs.items():
            if self._recorder.is_open(call):
                self._own(LastPreview(call_id=call, output=output.text, omitted_bytes=output.omitted_bytes))
        self._outputs.clear()
        if isinstance(result, Lost | NotStarted):
            name = "lost" if isinstance(result, Lost) else "not_started"
            self._own(TurnEnd(result=name, reason=result.reason))

    def _own(self, fact: OwnFact) -> None:
        self._recorder.own(fact)

    async def _finish(self, channel: Channel, result: TurnResult) -> None:
        try:
            await asyncio.to_thread(self._recorder.sync)
        except OSError as error:
            self._problem(f"the recording may not be on the disk: {reason_of(error)}")
        channel.finish(result)

    def _wind_up(self) -> None:
        """Writes the end of a session that broke on our side, as far as that can be done."""
        if self._cut_off:
            self._testify(Lost(self._broken or ""))
        self._own(self._transport.outcome())
        self._publish(self._recorder.close())

    def _break(self, error: Exception) -> None:
        """Nothing can be recorded, or understood, any more: the agent is stopped."""
        if self._broken is not None:
            return
        self._broken = _words(error)
        self._problem(self._broken)
        running = self._turn is not None
        if self._turn is not None:
            self._cut_off = True
            self._turn = self._state = None
            self._channel.finish(Lost(self._broken))
            self._channel = self._new_channel()
        for request_id in list(self._open):
            self._forget(request_id)
        self._later(self._stop(running))
        if os.environ.get(DEBUG):
            raise error

    async def _stop(self, running: bool) -> None:
        if running and not self.ours:
            self._ask_off()
        await self._transport.end()

    def _ask_off(self) -> None:
        """Asks an agent that cannot be ended to break off, though that can be recorded no more."""
        try:
            for step in self._driver.interrupt().steps:
                if isinstance(step, Send):
                    self._transport.send(step.frame)
        except Exception as error:
            self._problem(f"the agent could not be asked to break off: {_words(error)}")

    def _problem(self, words: str) -> None:
        self._problems.append(words)

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _sync_often(self) -> None:
        while True:
            await asyncio.sleep(self._limits.sync)
            try:
                await asyncio.to_thread(self._recorder.sync)
            except OSError as error:
                self._break(error)

    async def close(self) -> Closed:
        """Ends the session, the agent and all it started; bounded, and the same report however often it is asked.

        An agent that is not ours is asked to break off a running turn, and then left alone.
        """
        if self._closing is None:
            leaving = None if self.ours else self._turn
            if leaving is not None:
                self.interrupt()
            self._closing = asyncio.create_task(self._close(leaving))
        return await asyncio.shield(self._closing)

    async def _close(self, leaving: Turn | None) -> Closed:
        if leaving is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(leaving.result(), self._limits.leave)
        self._do(self._driver.close)
        how = await self._transport.end()
        await self._lender.close()
        await self._pumping
        self._do(self._leave)
        for task in list(self._asking.values()):
            task.cancel()
        self._syncing.cancel()
        await asyncio.gather(self._syncing, return_exceptions=True)
        reminders = [task for task in self._tasks if not task.done()]
        await asyncio.wait(reminders, timeout=self._limits.drain) if reminders else None
        for task in reminders:
            task.cancel()
        await asyncio.gather(*reminders, return_exceptions=True)
        try:
            if self._broken is not None:
                self._wind_up()
            self._channel.finish(None)
            await asyncio.to_thread(self._recorder.seal)
        except Exception as error:
            # It stays as it is, and is finished when it is read.
            self._problem(f"the recording was not finished: {_words(error)}")
        self._channel.finish(None)
        self._recorder.release()
        outcome = self._transport.outcome()
        return Closed(
            bundle=self.bundle,
            how=how,
            exit_code=outcome.code if isinstance(outcome, Exit) else None,
            signal=outcome.signal if isinstance(outcome, Exit) else None,
            stderr=self._transport.stderr,
            reach=self._transport.reach,
            problems=tuple(self._problems),
        )

    async def opening(self) -> str | None:
        """Waits for the handshake; returns why it failed, or None."""
        self._do(self._driver.open)
        waiting = asyncio.ensure_future(self._is_opened.wait())
        await asyncio.wait(
            {waiting, self._pumping}, timeout=self._limits.handshake, return_when=asyncio.FIRST_COMPLETED
        )
        if waiting.done():
            return self._refusal
        waiting.cancel()
        if self._broken is not None:
            return self._broken
        if self._pumping.done():
            return end_of(self._transport.outcome())
        return f"no session after {self._limits.handshake:g} s"


def _words(error: Exception) -> str:
    if isinstance(error, NotRead):
        return str(error)
    if isinstance(error, OSError):
        return f"the recording failed: {reason_of(error)}"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{' '.join(what.split())[:300]} (a bug in callsheet; {DEBUG}=1 shows where)"
