"""Other agents that a thread started: their states, as the source words them.

Must never know: threads' files, results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from callsheet.harness._port.pen import Pen
from callsheet.harness.codex.executions import Execution
from callsheet.harness.codex.shapes import exact_value, text_of
from callsheet.records import Subagent
from callsheet.registry import Registry

STARTED = "started"
"""The kind of activity whose call started the agent; any other call only has to do with it."""


class Agents:
    """Writes what one stream's records say of other agents.

    Args:
        pen: The stream's pen.
        registry: Has the table of states.
        streams: The stream of each agent that has one.
        single: Gives back a call id that only one call has, for any other None.
    """

    def __init__(
        self,
        pen: Pen,
        registry: Registry,
        streams: dict[str, str],
        single: Callable[[str], str | None],
    ) -> None:
        self._pen = pen
        self._streams = streams
        self._single = single
        self._states: dict[str, Subagent] = {}
        self._words = {(row.source, row.value): row.then for row in registry.terminal_status}

    def activity(self, members: dict[str, Raw], call_id: str | None, pointer: str) -> None:
        """An agent was started by a call, or ended."""
        agent_id = text_of(members.get("agent_thread_id", Raw()))
        if agent_id:
            kind = exact_value(members.get("kind", Raw()))
            status = self.state("SubAgentActivity", kind)
            call_id = call_id if kind == STARTED else None
            self.write(agent_id, call_id, text_of(members.get("agent_path", Raw())), status, "item", pointer)

    def of_activity(self, agent_id: Any, path: Any, kind: Any, call_id: Any, pointer: str) -> bool:
        """The same, as the app server tells it; False where it names no agent."""
        if not isinstance(agent_id, str) or not agent_id:
            return False
        status = self.state("SubAgentActivity", kind)
        self.write(
            agent_id,
            call_id if isinstance(call_id, str) and kind == STARTED else None,
            path if isinstance(path, str) and path else None,
            status,
            "agent",
            pointer,
        )
        return True

    def of_item(self, item_id: Any, receivers: Any, states: Any, pointer: str, *, spawned: bool) -> None:
        """The agents of a ``collabAgentToolCall`` of the app server."""
        told = states if isinstance(states, dict) else {}
        for agent_id in receivers if isinstance(receivers, list) else ():
            if isinstance(agent_id, str) and (spawned or agent_id in told):
                call_id = item_id if spawned and isinstance(item_id, str) else None
                self.write(
                    agent_id,
                    call_id,
                    None,
                    self.state("agents_states", told.get(agent_id)),
                    "agents",
                    pointer,
                )

    def of_call(self, execution: Execution, spawned: bool) -> None:
        """What an item about other agents says of each of them."""
        members = execution.members
        states = exact_value(members.get("agents_states", Raw()))
        receivers = exact_value(members.get("receiver_thread_ids", Raw()))
        states = states if isinstance(states, dict) else {}
        for agent_id in receivers if isinstance(receivers, list) else ():
            if isinstance(agent_id, str) and (spawned or agent_id in states):
                call_id = execution.call_id if spawned else None
                self.write(
                    agent_id,
                    call_id,
                    None,
                    self.state("agents_states", states.get(agent_id)),
                    execution.role,
                    execution.pointer,
                )

    def of_event(self, execution: Execution) -> None:
        """What an event up to 0.146 says of another agent."""
        members = execution.members
        agent_id = text_of(members.get("new_thread_id", Raw())) or text_of(
            members.get("receiver_thread_id", Raw())
        )
        if not agent_id:
            return
        name = text_of(members.get("new_agent_nickname", Raw()))
        spawned = execution.kind == "collab_agent_spawn_end"
        state = self.state("agents_states", exact_value(members.get("status", Raw())))
        self.write(
            agent_id, execution.call_id if spawned else None, name, state, execution.role, execution.pointer
        )

    def state(self, source: str, value: Any) -> str:
        """The state that a native word stands for, by the registry; some states are an object of one member."""
        word = next(iter(value), None) if isinstance(value, dict) else value
        if isinstance(value, dict) and isinstance(value.get("status"), str):
            word = value["status"]
        return self._words.get((source, word), "unknown") if isinstance(word, str) else "unknown"

    def write(
        self,
        agent_id: str,
        call_id: str | None,
        name: str | None,
        status: str,
        role: str,
        pointer: str | None,
    ) -> None:
        """Writes an agent's first or next state."""
        before = self._states.get(agent_id)
        if before is not None and status == "unknown":
            status = before.status or "unknown"
        record = Subagent(
            agent_id=agent_id,
            call_id=(before.call_id if before else None) or (self._single(call_id) if call_id else None),
            stream=self._streams.get(agent_id),
            name=name or (before.name if before else None),
            status=status,
            native=self._pen.native(role, pointer),
        )
        self._states[agent_id] = record
        self._pen.revise(f"agent {agent_id}", record)

    def known(self, agent_id: str) -> Subagent | None:
        """What this thread's records say of an agent."""
        return self._states.get(agent_id)
