"""What is installed: the program of an agent, found and asked for its version.

Owns the look into PATH, the time limit on the question, and who reads the answer (the adapter). Nothing of a
session is started here.

Must never know: what a version means.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from callsheet.errors import reason_of
from callsheet.harness._port.live import LiveAgent
from callsheet.live.limits import Limits
from callsheet.live.process import Process
from callsheet.seam import Missing, Qualified, Unusable

PRINTED_MOST = 64 << 10
"""Bytes of an answer that are read."""


def found_command(agent: LiveAgent, command: Sequence[str] | None) -> tuple[str, ...] | Missing:
    """The command that starts an agent: the one that was given, or the first of its programs in PATH."""
    wanted = [tuple(command)] if command else [(name,) for name in agent.programs]
    for one in wanted:
        path = shutil.which(one[0])
        if path is not None:
            return (str(Path(path).absolute()), *one[1:])
    places = "PATH" if os.environ.get("PATH") else "an empty PATH"
    return Missing(tuple(f"{one[0]} (in {places})" if "/" not in one[0] else one[0] for one in wanted))


async def prepare(
    agent: LiveAgent,
    command: Sequence[str] | None = None,
    *,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Qualified:
    """Finds an agent and asks its version.

    Args:
        agent: The adapter.
        command: What starts it; else its programs are looked for in PATH.
        limits: How long it may take to answer.
    """
    found = found_command(agent, command)
    if isinstance(found, Missing):
        return found
    question = agent.ask_version()
    if not question:
        return agent.qualify(found, "")
    with tempfile.TemporaryDirectory(prefix="callsheet-") as nowhere:
        try:
            process = await Process.start((*found, *question), cwd=nowhere, environment={}, limits=limits)
        except OSError as error:
            return Unusable(command=found, reason=reason_of(error))
        printed = bytearray()

        async def read() -> None:
            async for lines in process.chunks():
                for line in lines:
                    printed.extend((line if isinstance(line, bytes) else line.head) + b"\n")
                del printed[PRINTED_MOST:]
            await process.wait()

        try:
            await asyncio.wait_for(read(), limits.version)
            late = False
        except TimeoutError:
            late = True
        finally:
            await process.end()
    words = printed.decode("utf-8", "replace").strip()
    if late:
        return Unusable(command=found, reason=f"no answer to {' '.join(question)} in {limits.version:g} s")
    if process.exit_code != 0:
        last = (process.stderr.strip() or words).splitlines()
        how = f"exit code {process.exit_code}" if process.signal is None else process.signal
        return Unusable(
            command=found,
            reason=f"{' '.join(question)} ended with {how}" + (f": {last[-1][:200]}" if last else ""),
        )
    return agent.qualify(found, words or process.stderr.strip())
