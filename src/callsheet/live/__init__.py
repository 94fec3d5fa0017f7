"""The live shell: agents that run, recorded while they do.

``qualify`` finds an agent and asks its version, ``process`` is the agent's process with all its descendants,
``recorder`` writes the bundle while the turn runs, ``channel`` is what a reader gets of it, ``session`` joins them
to an adapter's driver, ``answers`` is the port through which requests are answered, ``lending`` lends files and
terminals to an agent that works through its client, ``recovery`` finishes what a recorder that was killed left behind.

Must never know: any one agent's protocol, how a turn is drawn.
"""

from callsheet.live.answers import AnswerPort, Policy
from callsheet.live.limits import Limits
from callsheet.live.qualify import prepare
from callsheet.live.recovery import recover
from callsheet.live.session import Closed, Session, Turn, Unopened, open_session

__all__ = [
    "AnswerPort",
    "Closed",
    "Limits",
    "Policy",
    "Session",
    "Turn",
    "Unopened",
    "open_session",
    "prepare",
    "recover",
]
