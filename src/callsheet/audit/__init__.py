"""The audit: a bundle held against its native sources, without the importer's help.

``audit_bundle`` yields every fact that has no evidence; ``Audit`` answers for a single record. A fact has evidence
when the registry's ``[[fact]]`` entry for its member finds that very value in the native lines that the record
cites, or a table of the registry makes it of them. What the lines hold is read anew; no importer code takes part.

Must never know: harness, rules, rows.
"""

from callsheet.audit.bundle import Audit, Totals, audit_bundle
from callsheet.audit.explain import Explained, Explanation, explain
from callsheet.audit.finding import Claim, Evidence, Finding
from callsheet.audit.stream import StreamAudit

__all__ = [
    "Audit",
    "Claim",
    "Evidence",
    "Explained",
    "Explanation",
    "Finding",
    "StreamAudit",
    "Totals",
    "audit_bundle",
    "explain",
]
