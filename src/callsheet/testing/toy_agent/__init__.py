"""A toy agent of the Agent Client Protocol, versions 1 and 2: it plays a script, and has no model.

    python -m callsheet.testing.toy_agent --version 2 turn

It is a whole agent in little: the handshake, opening, loading and resuming sessions, modes and options, prompts,
cancels and requests of its own. What it says in a turn is its script: ``scripts/*.json`` beside this file (by name),
or any file of that form. ``script.py`` tells the steps of a script, ``agent.py`` plays them; read these
two to write an agent.

It is there to test clients, so some scripts are rude on purpose: ``bad`` breaks every rule that an agent can break.
"""

from callsheet.testing.toy_agent.agent import ToyAgent
from callsheet.testing.toy_agent.script import Script, load, names

__all__ = ["Script", "ToyAgent", "load", "names"]
