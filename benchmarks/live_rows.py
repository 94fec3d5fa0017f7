"""Measures rows that go on, and the screen that shows them, while events come.

    python benchmarks/live_rows.py [--calls 30000] [--rate 1000] [--seconds 6] [--before 20000]

The rows of a made-up run of many calls are fed with records and previews, first as fast as they are taken, then at a
steady rate to a screen on which keys are pressed. Beside the time by the clock stands the time that the program ran,
which others on the machine do not lengthen.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from callsheet.faces.tui.app import Workbench
from callsheet.faces.tui.live_screen import LiveScreen
from callsheet.faces.tui.running import Running, Wanted
from callsheet.records import Record, decode
from callsheet.rows.live import LiveRows
from callsheet.seam import CallPreview, Event, OutputPreview, Recorded, ThoughtPreview, TurnChanged, Wish
from callsheet.testing.fake import FAKE


class Run:
    """A made-up run: its events, and its records to be read again."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def fetch(self, _: str, number: int) -> Record:
        """A record again."""
        found = decode(self.records[number])
        assert isinstance(found, Record)
        return found

    def _record(self, **members: object) -> Event:
        number = len(self.records)
        self.records.append(msgspec.json.encode({"seq": number, "id": f"r{number}", **members}))
        return Recorded("main", self.fetch("main", number))

    def events(self, calls: int) -> Iterator[Event]:
        """A call is announced, recorded, speaks four times, and has a result."""
        yield TurnChanged("running")
        yield self._record(type="session", format="callsheet/1", agent={"name": "claude-code"})
        for number in range(calls):
            call = f"c{number}"
            command = {"command": f"make part{number}"}
            yield CallPreview(call=call, name="Bash", input=msgspec.json.encode(command).decode())
            yield self._record(
                type="tool_call", callId=call, callIdSource="native", name="Bash", input=command
            )
            text = ""
            for line in range(4):
                text += f"line {line} of part {number}\n"
                yield OutputPreview(call=call, text=text)
            content = [{"type": "text", "text": text}]
            yield self._record(
                type="tool_result", callId=call, linkage="exact", status="completed", content=content
            )


class Watch:
    """Milliseconds by the clock, and of the program itself."""

    def __init__(self) -> None:
        self._whole: list[float] = []
        self._busy: list[float] = []

    def __len__(self) -> int:
        return len(self._whole)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measures what is done meanwhile."""
        whole, busy = time.perf_counter(), time.process_time()
        yield
        self._whole.append((time.perf_counter() - whole) * 1000)
        self._busy.append((time.process_time() - busy) * 1000)

    def tell(self, name: str) -> None:
        """Prints a line of figures."""
        words = []
        for label, times in (("all", sorted(self._whole)), ("busy", sorted(self._busy))):
            p95, last = times[min(int(len(times) * 0.95), len(times) - 1)], times[-1]
            words.append(f"{label} {times[len(times) // 2]:6.2f} / {p95:6.2f} / {last:6.2f}")
        print(f"{name:34} ms, median / p95 / most:  {'   '.join(words)}   of {len(self)}")


def fast(calls: int) -> None:
    """Rows alone."""
    run = Run()
    rows = LiveRows(run.fetch)
    count, taken = 0, Watch()
    begin = time.perf_counter()
    for event in run.events(calls):
        rows.apply(event)
        count += 1
        if count % 33 == 0:
            with taken.running():
                rows.take()
    seconds = time.perf_counter() - begin
    print(f"{count:,} events, {len(rows):,} rows in {seconds:.1f} s: {count / seconds:,.0f} events a second")
    taken.tell("what changed in 33 events")


async def shown(rate: int, seconds: float, before: int) -> None:
    """A screen that follows, with keys, behind some calls that were there before."""
    run = Run()
    running = Running(Wanted(agent=FAKE, wish=Wish(cwd="/"), out=Path("/nowhere")))
    running.rows = LiveRows(run.fetch)
    events = run.events(10**9)
    while len(running.rows) < before:
        running.rows.apply(next(events))
    running.rows.take()
    screens: list[LiveScreen] = []

    class Fed(LiveScreen):
        def _read(self) -> None:  # type: ignore[override]
            from callsheet.faces.tui.stored import Shown

            self.show(Shown(rows=running.rows))
            self.sheet.following = True

    def first(looks: str) -> LiveScreen:
        screens.append(Fed(running, looks=looks))
        return screens[0]

    app = Workbench(first, looks="dark")
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause(0.5)
        screen = screens[0]
        draws, keys = Watch(), Watch()
        begin = time.perf_counter()
        given = 0
        while (now := time.perf_counter()) < begin + seconds:
            due = int((now - begin) * rate) - given
            screen._events += [next(events) for _ in range(max(due, 0))]
            given += max(due, 0)
            with draws.running():
                screen._draw_events()
            if len(draws) % 10 == 0:
                with keys.running():
                    screen.action_move(-1 if len(draws) % 20 else 1)
                    screen._on_timer_update()
            await asyncio.sleep(1 / 30)
        print(f"{given:,} events at {rate:,} a second, {len(screen.sheet):,} rows on the screen")
        draws.tell("an update of the screen's rows")
        keys.tell("a key, and the screen drawn anew")
        anew = Watch()
        for state in ("settled", "running") * 5:
            thought = ThoughtPreview(key="k", text="what a turn leaves unsettled goes with it")
            screen._events = [*itertools.islice(events, 7), thought, TurnChanged(state)]
            with anew.running():
                screen._draw_events()
        anew.tell("a turn that ends or begins")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"memory {memory:.0f} MB (with the made-up run)")


def main() -> None:
    """Runs both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=30_000)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--before", type=int, default=20_000)
    asked = parser.parse_args()
    fast(asked.calls)
    asyncio.run(shown(asked.rate, asked.seconds, asked.before))


if __name__ == "__main__":
    main()
