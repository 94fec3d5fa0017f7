"""Processes that outlive their call, as far as frames tell of their life.

Owns: the terminal that a list of background terminals or an interaction names, its end when the item ends, and the
end of an item after its turn, which shows that its process went on. The number that Codex gives a process is its own,
so it is the terminal's id. A process whose call waits for it has no record here.

Must never know: results, outputs.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from callsheet.harness._port.parts import ABSENT, items_of, members_of, text_of
from callsheet.harness._port.pen import Pen
from callsheet.harness.codex.app_server.shapes import Item
from callsheet.harness.codex.executions import exit_code, local_path
from callsheet.harness.codex.shapes import string, text
from callsheet.records import Native, Ref, Terminal


class Process(Struct):
    """A process of a running call."""

    call_id: str
    last: Terminal | None = None
    over: bool = False


class Terminals:
    """The processes of one thread."""

    def __init__(self, pen: Pen) -> None:
        self._pen = pen
        self._all: dict[str, Process] = {}
        self._turns: set[str] = set()

    def begun(self, item: Item, call_id: str) -> None:
        """A command begins; some are told their process at once."""
        process = text(item.process_id)
        if process is not None and item.type == "commandExecution" and not self._ended(process):
            known = self._all.get(process)
            self._all[process] = Process(call_id, known.last if known is not None else None)

    def turn_over(self, turn: str | None) -> None:
        """A turn has ended."""
        if all(process.over for process in self._all.values()):
            self._turns.clear()
        elif turn is not None:
            self._turns.add(turn)

    def listed(self, result: Raw, pointer: str) -> bool:
        """The server lists the processes that run in the background."""
        found = False
        for number, raw in enumerate(items_of(members_of(result).get("data", ABSENT))):
            members = members_of(raw)
            process, call_id = (text_of(members.get(name, ABSENT)) for name in ("processId", "itemId"))
            if process and call_id and not self._ended(process):
                found = True
                record = self._record(process, call_id, "listed", f"{pointer}/data/{number}")
                record.command = text_of(members.get("command", ABSENT)) or record.command
                cwd = text_of(members.get("cwd", ABSENT))
                record.cwd = local_path(self._pen, cwd) if cwd else record.cwd
                self._write(process, call_id, record)
        return found

    def touched(self, params: dict[str, Raw], pointer: str) -> bool:
        """Something was typed into a process, or read from it."""
        process, call_id = (text_of(params.get(name, ABSENT)) for name in ("processId", "itemId"))
        if not process or not call_id or self._ended(process):
            return False
        self._write(process, call_id, self._record(process, call_id, "touched", pointer))
        return True

    def _ended(self, process: str) -> bool:
        """Whether its end is told: its last record stands, also if a later process gets its number."""
        known = self._all.get(process)
        return known is not None and known.over and known.last is not None

    def _record(self, process: str, call_id: str, role: str, pointer: str) -> Terminal:
        """The next snapshot: what an earlier one said stays (ASR-271)."""
        record = Terminal(terminal_id=process, id_source="native", call_id=call_id, status="running")
        known = self._all.get(process)
        if known is not None and known.last is not None:
            record.command, record.cwd = known.last.command, known.last.cwd
        record.native = self._pen.native(role, pointer)
        return record

    def _write(self, process: str, call_id: str, record: Terminal) -> None:
        self._all.setdefault(process, Process(call_id)).last = record
        self._pen.revise(f"terminal {process}", record)

    def ended(self, item: Item, turn: str | None, ref: Ref) -> str | None:
        """A command has ended; returns its terminal, if it has one."""
        process = text(item.process_id)
        if process is None:
            return None
        known = self._all.get(process)
        late = turn is not None and turn in self._turns
        if known is None or known.over:
            return None
        known.over = True
        if not (known.last is not None or late):
            return None
        code = exit_code(item.exit_code)
        record = Terminal(
            terminal_id=process,
            id_source="native",
            call_id=string(item.id),
            command=text(item.command) or (known.last.command if known.last is not None else None),
            # A negative one is none: Codex ended the process itself.
            status="exited" if code is not None and code >= 0 else "unknown",
            exit_code=code,
        )
        cwd = text(item.cwd)
        before = known.last.cwd if known.last is not None else None
        record.cwd = local_path(self._pen, cwd) if cwd else before
        record.native = Native(refs=[ref])
        self._write(process, record.call_id or "", record)
        return process
