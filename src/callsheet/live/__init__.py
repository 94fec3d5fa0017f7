"""The live shell: agents that run, recorded while they do.

``qualify`` finds an agent and asks its version, ``process`` is the agent's process with all its descendants,
``address`` says where one listens that somebody else has started, ``connection`` is the way to it (``websocket`` where
it is one); both are a ``transport``.
``recorder`` writes the bundle while the turn runs, ``channel`` is what a reader gets of it, ``session`` joins them
to an adapter's driver, ``opening`` opens one, ``reports`` is what it gives back, ``answers`` is the port through which
requests are answered, ``forms`` is what a form asks for, ``lending`` lends files and terminals to agents that use
their client's, ``recovery`` finishes what a recorder that was killed left behind. ``tap`` records an agent that
somebody else talks to.

Must never know: any one agent's protocol, how a turn is drawn.
"""

from callsheet.live.address import Address
from callsheet.live.answers import AnswerPort, Policy
from callsheet.live.limits import Limits
from callsheet.live.opening import open_session
from callsheet.live.qualify import prepare
from callsheet.live.recovery import recover
from callsheet.live.reports import Closed, Turn, Unopened
from callsheet.live.session import Session

__all__ = [
    "Address",
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
