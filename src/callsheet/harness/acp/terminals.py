"""Terminals: agent-owned (v2), client-owned (v1), and the display terminals that v1 agents send in ``_meta``.

Owns the state of every terminal (command, folder, bytes so far, exit), its snapshots as ``terminal`` records
(ASR-271), and what a call's result may say of the terminal that it names (ASR-290). Bytes are joined before
they are decoded: a chunk may end inside a character. An exit status that is there but empty says nothing about
how the process ended.

Must never know: which call a terminal belongs to by anything but the call's own content.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

from msgspec import Raw, Struct, field

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.parts import ABSENT, is_null, items_of, members_of, text_of, value_of
from callsheet.harness._port.pen import Pen
from callsheet.harness.acp.held import CITED_MOST, REVISIONS_MOST, as_role, native_of, revise_at
from callsheet.records import BlobRef, Exec, Inherited, Ref, Terminal, TerminalOutput

OUTPUT_MOST = 8 << 20
"""Bytes of a terminal that are kept; what comes after is counted, not kept."""
NOT_KEPT = "more output than is kept of a terminal; the frames hold the rest"
_EXIT_LOW, _EXIT_HIGH = -(1 << 31), (1 << 32) - 1


class State(Struct):
    """One terminal."""

    terminal_id: str
    command: str | list[str] | None = None
    cwd: str | None = None
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    shown: bool = False
    ended: bool = False
    status: str = "running"
    exit_code: int | None = None
    signal: str | None = None
    call_id: str | None = None
    refs: list[Ref] = []
    keep: dict[str, Ref] = {}
    revisions: int = 0
    dirty: bool = False
    ts: str | None = None
    inherited: Inherited | None = None

    def put(self, data: bytes) -> None:
        """Appends bytes, as far as they are kept."""
        self.shown = True
        self.size += len(data)
        self.data += data[: max(0, OUTPUT_MOST - len(self.data))]

    def snapshot(self, data: bytes) -> None:
        """Replaces the output."""
        self.data.clear()
        self.size = 0
        self.put(data)


class Terminals:
    """The terminals of one session."""

    def __init__(self, pen: Pen) -> None:
        self._pen = pen
        self._all: dict[str, State] = {}
        self._wanted: dict[str, tuple[str, Ref]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def state(self, name: str, role: str, pointer: str) -> State:
        """The terminal of a name, with the frame at hand among those that its next record cites."""
        state = self._all.get(name)
        if state is None:
            state = self._all[name] = State(terminal_id=name, inherited=self._pen.inherited)
            if name in self._wanted:
                state.call_id, ref = self._wanted[name]
                state.refs.append(ref)
        state.refs.append(self._pen.ref(role, pointer))
        state.dirty = True
        state.ts = self._pen.ts
        self._pen.cited()
        return state

    # -- what frames say ----------------------------------------------------------------------------------------

    def update(self, update: dict[str, Raw], pointer: str) -> bool:
        """v2 ``terminal_update``: an upsert; False when it names no terminal."""
        name = text_of(update.get("terminalId", ABSENT))
        if not name:
            return False
        state = self.state(name, "terminal", pointer)
        for member, raw in update.items():
            cleared = is_null(raw)
            if member == "command":
                state.command = None if cleared else text_of(raw) or state.command
            elif member == "cwd":
                state.cwd = None if cleared else text_of(raw) or state.cwd
            elif member == "output":
                data = b"" if cleared else decoded(members_of(raw).get("data", ABSENT))
                if data is not None:
                    state.snapshot(data)
            elif member == "exitStatus" and not cleared:
                self._exit(state, raw)
        self._settle(state)
        return True

    def chunk(self, update: dict[str, Raw], pointer: str) -> bool:
        """v2 ``terminal_output_chunk``: more bytes."""
        name = text_of(update.get("terminalId", ABSENT))
        data = decoded(update.get("data", ABSENT))
        if not name or data is None:
            return False
        state = self.state(name, "output", pointer)
        state.put(data)
        self._settle(state)
        return True

    def created(self, name: str, params: Raw, pointer: str, request: Ref) -> None:
        """v1 ``terminal/create`` was answered: the client runs a command."""
        asked = members_of(params)
        state = self.state(name, "terminal", pointer)
        state.refs += as_role([request], "create")
        command = text_of(asked.get("command", ABSENT))
        arguments = [text_of(item) for item in items_of(asked.get("args", ABSENT))]
        if command is not None:
            state.command = (
                [command, *(one for one in arguments if one is not None)] if arguments else command
            )
        state.cwd = text_of(asked.get("cwd", ABSENT))
        self._settle(state)

    def answered(self, name: str, method: str, result: Raw, pointer: str) -> bool:
        """v1 answers of the client about one of its terminals."""
        if name not in self._all:
            return False
        told = members_of(result)
        state = self.state(name, "output", pointer)
        if method == "terminal/output":
            words = text_of(told.get("output", ABSENT))
            if words is not None:
                state.snapshot(words.encode("utf-8", "replace"))
            status = told.get("exitStatus", ABSENT)
            if status and not is_null(status):
                self._exit(state, status)
        elif method == "terminal/wait_for_exit":
            self._exit(state, result)
        self._settle(state)
        return True

    def of_meta(self, meta: Raw, pointer: str) -> None:
        """v1 display terminals: ``terminal_info``, ``terminal_output(_delta)``, ``terminal_exit`` in ``_meta``."""
        for key, told in members_of(meta).items():
            if not key.startswith("terminal_"):
                continue
            members = members_of(told)
            name = text_of(members.get("terminal_id", ABSENT))
            if not name:
                continue
            state = self.state(name, "terminal", f"{pointer}/_meta/{key}")
            words = text_of(members.get("data", ABSENT))
            if key == "terminal_info":
                state.cwd = text_of(members.get("cwd", ABSENT)) or state.cwd
            elif key in ("terminal_output", "terminal_output_delta") and words is not None:
                # Both append: what a call prints comes in pieces, and agents of either word send it once.
                state.put(words.encode("utf-8", "replace"))
            elif key == "terminal_exit":
                self._exit(state, told, code="exit_code")
            self._settle(state)

    def belongs(self, name: str, call_id: str, ref: Ref) -> None:
        """A call's content names a terminal: a recorded link."""
        (ref,) = as_role([ref], "link")
        state = self._all.get(name)
        self._wanted.setdefault(name, (call_id, ref))
        if state is not None and state.call_id is None:
            state.call_id = call_id
            state.refs.append(ref)
            state.dirty = True

    def _exit(self, state: State, raw: Raw, code: str = "exitCode") -> None:
        if state.exit_code is not None or state.signal is not None:
            return  # a process ends once
        told = members_of(raw)
        number = value_of(told.get(code, ABSENT))
        signal = value_of(told.get("signal", ABSENT))
        state.ended = True
        state.exit_code = exit_code(number)
        state.signal = signal if isinstance(signal, str) and signal else None
        if state.signal:
            state.status = "killed"
        else:
            state.status = "exited" if state.exit_code is not None else "unknown"

    # -- records ------------------------------------------------------------------------------------------------

    def _settle(self, state: State) -> None:
        if not state.revisions or state.ended or len(state.refs) > CITED_MOST:
            self._write(state)

    def settle(self, last: bool = False) -> None:
        """Writes every terminal that changed since its last record."""
        for state in self._all.values():
            if state.dirty and (last or state.revisions < REVISIONS_MOST):
                self._write(state, last=True)

    def _write(self, state: State, last: bool = False) -> None:
        if not last and state.revisions >= REVISIONS_MOST and len(state.refs) <= CITED_MOST:
            return
        pen = self._pen
        record = Terminal(
            terminal_id=state.terminal_id,
            id_source="native",
            call_id=state.call_id,
            command=state.command,
            status=state.status,
            exit_code=state.exit_code,
            signal=state.signal,
        )
        if state.cwd:
            record.cwd = pen.path(state.cwd)
        if state.shown:
            text, blob = shown(pen, bytes(state.data))
            record.output = TerminalOutput(text=text, blob=blob)
            if state.size > len(state.data):
                pen.capture(record, "output", "truncated", size=state.size, reason=NOT_KEPT)
        for ref in state.refs:
            state.keep[ref.role or ""] = ref
        record.native = native_of([*state.keep.values(), *state.refs])
        record.native.inherited = state.inherited
        revise_at(pen, f"terminal {state.terminal_id}", record, state.ts)
        state.refs = []
        state.dirty = False
        state.revisions += 1

    def exec_of(self, names: list[str]) -> tuple[Exec | None, list[Ref], BlobRef | None]:
        """What a result may say of the one terminal that its call names, the frames that say so, and long output."""
        known = [self._all[name] for name in dict.fromkeys(names) if name in self._all]
        if len(known) != 1:
            return None, [], None
        state = known[0]
        if state.dirty and state.refs:
            self._write(state)
        pen = self._pen
        told = Exec(command=state.command, terminal_id=state.terminal_id)
        if state.cwd:
            told.cwd = pen.path(state.cwd)
        blob = None
        if state.ended:
            told.exit_code, told.signal = state.exit_code, state.signal
            if state.shown and state.size == len(state.data):
                told.output, blob = shown(pen, bytes(state.data))
        return told, list(state.keep.values()), blob


def shown(pen: Pen, data: bytes) -> tuple[str | None, BlobRef | None]:
    """Output as text where it is short, as a blob where it is long or no UTF-8."""
    text = data.decode("utf-8", "replace")
    if len(data) > INLINE_MOST:
        return None, pen.desk.blob(data, "text/plain")
    exact = text.encode("utf-8", "replace") == data
    return text, None if exact else pen.desk.blob(data, "application/octet-stream")


def decoded(raw: Raw) -> bytes | None:
    """The bytes of a base64 member; None when it is none."""
    words = text_of(raw)
    try:
        return b64decode(words, validate=True) if words is not None else None
    except (binascii.Error, ValueError):
        return None


def exit_code(value: Any) -> int | None:
    """A number that can be an exit code (ASR-260)."""
    return value if type(value) is int and _EXIT_LOW <= value <= _EXIT_HIGH else None
