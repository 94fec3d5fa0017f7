"""Pairing: which revisions are one entity, which result answers which call, what belongs to a call.

The only room that pairs. ``Pairing`` is fed every record of a stream once, in stream order, and keeps ids
and places, never records; afterwards it answers for each record where it belongs. It pairs by identifiers
alone (ASR-262 to 266): never by position, never by ``nativeCallId``, never by name.

Must never know: harnesses, rows, files.
"""

from callsheet.pairing.index import NOWHERE, Pairing, Place, Reason, call_id_of, provider_of
from callsheet.pairing.tally import Tally, tally
from callsheet.pairing.words import Linkage, Reach, Verdict

__all__ = [
    "NOWHERE",
    "Linkage",
    "Pairing",
    "Place",
    "Reach",
    "Reason",
    "Tally",
    "Verdict",
    "call_id_of",
    "provider_of",
    "tally",
]
