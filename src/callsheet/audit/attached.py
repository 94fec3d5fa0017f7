"""Files that lie beside a session, cited whole: what their names and their bytes say.

Owns: names that a file name holds in base64, and the bytes of a cited file as a text or a blob.

Must never know: importers, which harness it is.
"""

from __future__ import annotations

import base64
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from callsheet.registry.when import MISSING
from callsheet.wire.blobs import digest

if TYPE_CHECKING:
    from callsheet.audit.case import Case
    from callsheet.audit.cite import Cite
    from callsheet.registry.facts import Fact

_UNNAMED = "default"


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _is_named(case: Case, cite: Cite) -> bool:
    said = case.record.get("terminalId")
    stem = PurePath(cite.source.entry.path.replace("\\", "/")).name.removesuffix(".log")
    return isinstance(said, str) and bool(said) and stem.endswith(f"_{_encoded(said)}")


def encoded_name(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The name at the end of a file's name, in base64 as URLs have it; ``default`` where there is none."""
    return case.record.get("terminalId") if _is_named(case, cite) else _UNNAMED


def encoded_source(case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """Whether a file's name names what it is about."""
    return "native" if _is_named(case, cite) else "derived"


def cited_text(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The cited bytes as a text."""
    try:
        return cite.data.decode()
    except UnicodeDecodeError:
        return MISSING


def cited_blob(_case: Case, cite: Cite, _fact: Fact, _values: list[Any]) -> Any:
    """The blob of the cited bytes."""
    return {"blob": f"sha256:{digest(cite.data)}", "size": len(cite.data), "mimeType": "text/plain"}


FILES = {
    "encoded_name": encoded_name,
    "encoded_source": encoded_source,
    "cited_text": cited_text,
    "cited_blob": cited_blob,
}
"""Tables over whole files."""
