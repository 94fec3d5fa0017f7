"""Readings in the making: streams as lists of records, and what comes of holding two against each other."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pytest

from callsheet.compare import Compared, Side, compare

Json = dict[str, Any]
Streams = list[Json] | dict[str, list[Json]]


def side(streams: Streams, blobs: dict[str, bytes] | None = None) -> Side:
    """A reading of some streams, each given as its records; the envelope is added."""
    given = streams if isinstance(streams, dict) else {"main": streams}
    data = {}
    for name, records in given.items():
        lines = [json.dumps({"seq": at, "id": f"r{at}", **record}) for at, record in enumerate(records)]
        data[name] = "".join(f"{line}\n" for line in lines).encode()

    @contextmanager
    def opened(name: str) -> Iterator[BinaryIO]:
        yield io.BytesIO(data[name])

    return Side({name: name for name in data}, opened, (blobs or {}).__getitem__)


def call(name: str | None, call_id: str = "toolu_1", **members: Any) -> Json:
    found = {"type": "tool_call", "callId": call_id, "callIdSource": "native", **members}
    return found if name is None else {**found, "name": name}


def result(call_id: str = "toolu_1", **members: Any) -> Json:
    return {"type": "tool_result", "callId": call_id, "linkage": "exact", "status": "completed", **members}


Held = Callable[..., list[Compared]]


@pytest.fixture
def held() -> Held:
    """Holds two readings against each other."""

    def run(left: Streams, right: Streams, blobs: dict[str, bytes] | None = None) -> list[Compared]:
        with side(left, blobs) as one, side(right) as other:
            return list(compare(one, other))

    return run
