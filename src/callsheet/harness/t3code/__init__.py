"""T3 Code: state databases of both generations (see notes.md beside this file).

``layout`` lists the threads and says what is read of which table, ``rows`` is the first pass (secrets, ids used twice),
``new`` (V2) and ``old`` (V1) turn a thread's rows into records over what ``thread`` shares, with ``new_calls`` and
``old_calls`` for the calls; ``terminals`` reads the transcripts beside the database.
``registry/t3code.toml`` holds the tables.
"""

from __future__ import annotations

from callsheet.harness.t3code.stored import T3CODE

__all__ = ["T3CODE"]
