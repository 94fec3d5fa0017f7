"""A damaged source: it is read without an exception, breaks no rule, and every fact of it has evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from callsheet.audit import audit_bundle
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle

Record = dict[str, Any]


def held(path: Path, out: Path, kind: str | None = None) -> list[Record]:
    """The records of a source, in the order of its streams, after rules and evidence were held against them."""
    found: list[Record] = []
    for made in import_sources([path], out, kind=kind):
        assert not isinstance(made, Failure), made
        bundle = Bundle(made.bundle)
        broken = list(check_bundle(bundle))
        assert not broken, broken
        unfounded = list(audit_bundle(bundle))
        assert not unfounded, unfounded
        for entry in bundle.manifest.streams:
            with bundle.open(entry.file) as file:
                found += [json.loads(line) for line in file]
    assert found
    return found
