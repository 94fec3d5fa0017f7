"""The adapters, one package per agent. ``HARNESSES`` lists them; adding one is one line here.

An adapter turns native facts into records with their evidence. It never pairs, never looks at another adapter.
"""

from __future__ import annotations

from callsheet.harness._port import Stored
from callsheet.harness._port.live import LiveAgent
from callsheet.harness.acp import ACP, ACP_AGENTS
from callsheet.harness.claude_code import CLAUDE_CODE, CLAUDE_CODE_AGENT, CLAUDE_CODE_STREAM
from callsheet.harness.codex import CODEX, CODEX_AGENT, CODEX_APP_SERVER, CODEX_EXEC
from callsheet.harness.gemini import GEMINI
from callsheet.harness.openclaw import OPENCLAW
from callsheet.harness.opencode import OPENCODE
from callsheet.harness.t3code import T3CODE

HARNESSES: tuple[Stored, ...] = (
    *(OPENCLAW, T3CODE, ACP, GEMINI, OPENCODE),
    *(CODEX, CODEX_EXEC, CODEX_APP_SERVER),
    CLAUDE_CODE_STREAM,
    CLAUDE_CODE,
)
"""Every adapter of stored files, in the order in which a file is offered to them."""

LIVE: tuple[LiveAgent, ...] = (CLAUDE_CODE_AGENT, CODEX_AGENT, *ACP_AGENTS)
"""Every agent that can be run through callsheet."""
