"""Diagnostics in words: what an importer found worth saying about its sources, for people.

Owns a sentence for every code that callsheet's importers use; a code that is not here is said as it stands.
A diagnostic is never a fact of the session.

Must never know: importers; how a sheet is laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from callsheet.records.bundle import Diagnostic

SENTENCES: dict[str, str] = {
    "ambiguous_delivery": "what was sent is known, but not which stored result it is",
    "bad_json": "a line is no JSON",
    "bad_utf8": "a line is no UTF-8",
    "changed_source": "the source changed while it was read",
    "damaged_table": "a table of the database is damaged",
    "database_read": "how the database was read",
    "decider_contradicted": "what the source says of who decided contradicts itself",
    "denial_contradicted": "a call is called allowed and denied; the recorded decision counts",
    "fork_unmarked": "this session is a fork, and what it copied is not marked",
    "link_contradicted": "a result's own link contradicts its call id, so they are not paired",
    "many_sessions": "there are more sessions than are read",
    "many_threads": "there are more threads than get a stream of their own",
    "masked": "what must not be kept was masked before it was written",
    "missing_file": "a file is not there, or cannot be read",
    "missing_parent": "an entry follows one that is not there",
    "missing_session": "a session that this one builds on is not there",
    "missing_table": "a table of the database is not there",
    "missing_transcript": "a trajectory has no transcript beside it",
    "newer_schema": "the database is newer than any that was seen",
    "nul": "a part of the file was never written: it is all zeros",
    "provider_missing": "the own session of the agent underneath is not on this machine",
    "provider_unread": "the own session of the agent underneath could not be read",
    "recovered": "the recorder was stopped before it could finish",
    "recovered_anew": "another version of callsheet recorded this, and reads it otherwise",
    "repeated_entry": "an entry is stored twice, and counts once",
    "repeated_line": "a line is stored twice, and counts once",
    "request_contradicts": "a recorded request contradicts itself, and proves nothing",
    "request_unreadable": "a recorded request cannot be read, and proves nothing",
    "rewind": "the chat was rewound; what it dropped is kept",
    "same_agent": "two files are about one agent; one of them is read",
    "same_session": "two files are about one session; each has its bundle",
    "shared_decision": "one line holds several results and one decision; it is given to none",
    "source_shrank": "the source is shorter than at an earlier import; that import is kept",
    "state_unread": "the agent's own state could not be read",
    "task_contradicted": "a task is said to be an agent and a process; it is taken for neither",
    "terminal_again": "a process has the id of an earlier one",
    "times_contradict": "a duration does not fit between its start and its end",
    "too_deep": "a line is nested too deeply to be read",
    "too_large": "a file is too large to be one of the kind its name says",
    "torn_tail": "the last line is not complete",
    "torn_zstd": "the compressed file ends too early",
    "trajectory_differs": "a trajectory and its transcript tell one call differently",
    "unknown_columns": "the database has columns that were never seen",
    "unknown_tables": "the database has tables that were never seen",
    "unknown_version": "this version of the protocol is not known",
}
"""A sentence for each code."""


def doubt_words(doubt: Diagnostic, paths: Mapping[str, str]) -> str:
    """One diagnostic in words: where, what it means, and the importer's own message.

    Args:
        doubt: The diagnostic.
        paths: Paths of the sources by id.
    """
    place = PurePath(paths.get(doubt.source, doubt.source)).name if doubt.source is not None else ""
    if doubt.line is not None:
        place += f":{doubt.line}"
    sentence = SENTENCES.get(doubt.code, doubt.code)
    said = [word for word in (place, sentence, doubt.message) if word]
    return ": ".join(said)
