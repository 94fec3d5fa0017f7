"""Pieces of a message that is being written (``stream_event`` frames, only with partial messages switched on).

Owns: which pieces belong to which content block, and the model's own text of a call's arguments, put together from
them (ASR-254). The completed block replaces its pieces: its record cites them, and nothing of them is written twice.
Pieces of a block that is never completed are kept unmapped. What is held is bounded.

Must never know: the records that blocks become.
"""

from __future__ import annotations

from msgspec import Raw, Struct, field

from callsheet.harness._port.parts import ABSENT, members_of, text_of, whole_number_of
from callsheet.harness._port.pen import Pen
from callsheet.harness.claude_code.shapes import CALLS, NativeBlock
from callsheet.harness.claude_code.stream.shapes import Frame
from callsheet.records import Ref, SourceEntry

HELD_BYTES = 8 << 20
"""Bytes of frames that are held for blocks which are not complete."""
HELD_MOST = 20_000
"""Frames of one block that its record cites."""
KINDS = {"text": ("text",), "thinking": ("thinking", "redacted_thinking")}


class Block(Struct):
    """One block that is being written."""

    kind: str
    id: str | None
    held: list[tuple[SourceEntry, Frame]] = field(default_factory=list)
    refs: list[Ref] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    size: int = 0
    whole: bool = True


class Pieces:
    """The blocks of one stream's current message."""

    def __init__(self, pen: Pen) -> None:
        self._pen = pen
        self._blocks: dict[int, Block] = {}
        self._size = 0

    def take(self, source: SourceEntry, frame: Frame) -> bool:
        """Takes a frame in; False when it belongs to no block, or there is no room for it: it is unmapped then."""
        event = members_of(frame.native.event)
        kind = text_of(event.get("type", ABSENT))
        index = whole_number_of(event.get("index", ABSENT))
        if kind == "message_start":
            self.flush()
            return False
        if kind == "content_block_start" and index is not None:
            told = members_of(event.get("content_block", ABSENT))
            block = Block(
                text_of(told.get("type", ABSENT)) or "",
                text_of(told.get("id", ABSENT)),
            )
            self._let_go(self._blocks.get(index))
            self._blocks[index] = block
            return self._hold(block, source, frame)
        if kind == "content_block_delta" and index in self._blocks:
            assert index is not None
            block = self._blocks[index]
            piece = text_of(members_of(event.get("delta", ABSENT)).get("partial_json", ABSENT))
            if not self._hold(block, source, frame):
                block.whole = False
                return False
            if piece is not None:
                block.texts.append(piece)
            return True
        return False

    def _hold(self, block: Block, source: SourceEntry, frame: Frame) -> bool:
        size = len(frame.unit.data)
        if self._size + size > HELD_BYTES or len(block.held) >= HELD_MOST:
            return False
        self._size += size
        block.size += size
        block.held.append((source, frame))
        block.refs.append(self._pen.ref("piece"))
        self._pen.cited()
        return True

    def complete(self, block: NativeBlock) -> tuple[list[Ref], bytes | None]:
        """The pieces of a completed block: refs to them, and the arguments of a call as the model wrote them."""
        wanted = KINDS.get(str(block.type), (str(block.type),))
        for index, one in self._blocks.items():
            same = one.id == block.id if block.type in CALLS else one.kind in wanted
            if same and one.kind in wanted:
                del self._blocks[index]
                self._size -= one.size
                own = "".join(one.texts).encode("utf-8", "surrogatepass") if one.whole and one.texts else None
                return one.refs, own
        return [], None

    def flush(self) -> None:
        """Keeps what was never completed, unmapped."""
        for block in self._blocks.values():
            self._let_go(block)
        self._blocks.clear()

    def _let_go(self, block: Block | None) -> None:
        if block is None:
            return
        self._size -= block.size
        pen = self._pen
        unit, source, ts, written = pen.unit, pen.source, pen.ts, pen.written
        for held_in, frame in block.held:
            pen.take(held_in, frame.unit, frame.ts)
            pen.unmapped("stream_event", Raw(frame.unit.readable()))
        pen.take(source, unit, ts)
        pen.written = written
