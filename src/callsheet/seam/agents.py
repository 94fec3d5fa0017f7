"""What is installed, what it can do, and what is wanted of it.

Owns the outcome of looking at an agent (``Qualified``), as variants that carry their evidence, and the wish and
launch of a session. A flag that nobody tried is ``Untried``, not a no.

Must never know: how a process is started.
"""

from __future__ import annotations

from msgspec import Struct


class Can(Struct, frozen=True, tag=True):
    """The agent can do something.

    Attributes:
        name: steer, interrupt, resume, model, mode, permissions, questions, raw_events, … (open).
        evidence: What shows it: a version that was tried, a word of its handshake.
    """

    name: str
    evidence: str


class Cannot(Struct, frozen=True, tag=True):
    """The agent cannot do something, and what shows it."""

    name: str
    evidence: str


class Untried(Struct, frozen=True, tag=True):
    """Nobody knows whether this version can."""

    name: str
    evidence: str


Ability = Can | Cannot | Untried


class Installed(Struct, frozen=True, kw_only=True, tag=True):
    """An agent that can be started.

    Attributes:
        command: What starts it, found on this machine.
        version: As it states it itself.
        evidence: What it printed.
        abilities: What it can do.
    """

    command: tuple[str, ...]
    version: str | None
    evidence: str
    abilities: tuple[Ability, ...] = ()


class Missing(Struct, frozen=True, tag=True):
    """There is no such agent here.

    Attributes:
        looked_for: Names and places that were tried.
    """

    looked_for: tuple[str, ...]


class Unusable(Struct, frozen=True, kw_only=True, tag=True):
    """Something is there, and it cannot be used."""

    command: tuple[str, ...]
    version: str | None = None
    reason: str


Qualified = Installed | Missing | Unusable


class Wish(Struct, frozen=True, kw_only=True):
    """What a person wants of a session; what is absent is left to the agent's own settings (decision 14).

    Attributes:
        cwd: Absolute folder.
        model: The model asked for; the effective one is what the agent reports, another fact.
        mode: Permission mode, in the agent's own word.
        resume: Native id of a session to go on with.
        version: Version of the installed agent, where known.
        at: Where the agent listens, if somebody else has started it: it may be on another machine.
    """

    cwd: str
    model: str | None = None
    mode: str | None = None
    resume: str | None = None
    version: str | None = None
    at: str | None = None


class Launch(Struct, frozen=True, kw_only=True):
    """How the agent is started.

    Attributes:
        arguments: What follows its command.
        environment: Variables that are added.
        switches: The reporting switches among them, each as it is written, for the session record (decision 14).
    """

    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    switches: tuple[str, ...] = ()
