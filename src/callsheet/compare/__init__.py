"""Two readings of one run, held against each other call by call: what one has and the other lacks, what contradicts.

``compare`` yields a ``Compared`` for every call of either reading. A ``Side`` is a reading: the streams of a session,
wherever they came from. Calls are matched by what identifies them, never by position; one that cannot be matched is
told as such. ``strangers`` says when two readings are not of one session at all.

Must never know: harnesses, files (streams are opened by who asks), how a comparison is drawn.
"""

from callsheet.compare.differences import Compared, Contradicted, Lacking, compare
from callsheet.compare.match import By, Match, Why, match
from callsheet.compare.session import Strangers, strangers
from callsheet.compare.side import Call, Side

__all__ = [
    "By",
    "Call",
    "Compared",
    "Contradicted",
    "Lacking",
    "Match",
    "Side",
    "Strangers",
    "Why",
    "compare",
    "match",
    "strangers",
]
