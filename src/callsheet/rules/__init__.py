"""The rules: what a finished stream or bundle has to keep, one small function per rule.

``RULES`` is the table of the 42 rules of the tool records, ``PROFILE`` that of the envelope's own codes.
``check_stream`` and ``check_bundle`` yield findings, which are values: a stream may be as hostile as it
likes, checking it never fails.

Must never know: harnesses, audit, native sources.
"""

from __future__ import annotations

from callsheet.rules.bundle import check_bundle
from callsheet.rules.finding import Checked, Finding, Problem
from callsheet.rules.stream import StreamCheck, check_stream, told
from callsheet.rules.table import ALL, PROFILE, RULES, Rule

__all__ = [
    "ALL",
    "PROFILE",
    "RULES",
    "Checked",
    "Finding",
    "Problem",
    "Rule",
    "StreamCheck",
    "check_bundle",
    "check_stream",
    "told",
]
