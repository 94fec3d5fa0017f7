"""The seam between a live agent and those who watch it: what can happen in a turn, and what can be said to it.

``events`` are what a reader gets: records as they settle, and previews, which are bounded, replace the one before
and are no records. ``requests`` are what the agent asks and how it is answered. ``turns`` is how a turn ends, and the
receipt of a control. ``agents`` is what is installed and what it can do. ``driver`` is the contract of an adapter:
a protocol as a state machine, without I/O and without a clock.

Vocabulary only. Must never know: harnesses, processes, how anything is drawn.
"""

from callsheet.seam.agents import (
    Ability,
    Can,
    Cannot,
    Installed,
    Launch,
    Missing,
    Qualified,
    Untried,
    Unusable,
    Wish,
)
from callsheet.seam.driver import Driver, Ended, Opened, Reply, Send, Step
from callsheet.seam.events import (
    CallPreview,
    Event,
    MessagePreview,
    Noted,
    OutputPreview,
    Recorded,
    RequestClosed,
    RequestOpened,
    ThoughtPreview,
    TurnChanged,
    TurnState,
)
from callsheet.seam.requests import (
    Answer,
    Answered,
    Cancelled,
    Chosen,
    Declined,
    FormAsked,
    FormFilled,
    Permission,
    Questions,
    UrlAsked,
    UrlOpened,
    Waiting,
)
from callsheet.seam.turns import (
    Accepted,
    Completed,
    Failed,
    Interrupted,
    Lost,
    NotStarted,
    Receipt,
    Rejected,
    TurnResult,
)

__all__ = [
    "Ability",
    "Accepted",
    "Answer",
    "Answered",
    "CallPreview",
    "Can",
    "Cancelled",
    "Cannot",
    "Chosen",
    "Completed",
    "Declined",
    "Driver",
    "Ended",
    "Event",
    "Failed",
    "FormAsked",
    "FormFilled",
    "Installed",
    "Interrupted",
    "Launch",
    "Lost",
    "MessagePreview",
    "Missing",
    "NotStarted",
    "Noted",
    "Opened",
    "OutputPreview",
    "Permission",
    "Qualified",
    "Questions",
    "Receipt",
    "Recorded",
    "Rejected",
    "Reply",
    "RequestClosed",
    "RequestOpened",
    "Send",
    "Step",
    "ThoughtPreview",
    "TurnChanged",
    "TurnResult",
    "TurnState",
    "Untried",
    "Unusable",
    "UrlAsked",
    "UrlOpened",
    "Waiting",
    "Wish",
]
