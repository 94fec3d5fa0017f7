"""The lists inside ``docs/reference/facts.md`` that the code has, for those who write a registry.

Owns: the conversions (``registry.via``), the tables (``audit.tables``) and the leaves without evidence, each put
between its marks on a page that is otherwise written by hand. ``callsheet.testing.silences`` writes it with its own.

Must never know: any one harness.
"""

from __future__ import annotations

import re

from callsheet.audit.tables import TABLES
from callsheet.registry.via import PURE, VIAS
from callsheet.testing.lies import UNCHECKED

_NEEDS: dict[str, str] = {
    "slice": "What stands between a tag and its end in a text (`tag`), or in that tag inside a wrapped text.",
    "join": "Several texts joined (`sep`); one that is missing is left out.",
    "derived_id": "`<native id>#<record id>`; of one pointer alone `#<record id>`; with `#` the index behind it.",
    "table": "A table makes it (`table`, below).",
    "parts": "Content parts of texts and blocks, in their order; base64 data is held against the blob.",
    "path": "A path under the longest of the session's roots, else `host`.",
    "base64": "Bytes of a base64 text (inside `parts`).",
    "exact_text": "The JSON text itself, every key and digit of it (ASR-254).",
    "index": "The position of the element in its list, as text.",
    "file": "The blob of the source that has this file name.",
}


def filled(text: str) -> str:
    """The page with its lists as the code has them."""
    said = {name: (function.__doc__ or "") for name, function in PURE.items()} | _NEEDS
    lists = {
        "unchecked": [f"- `{path}`: {why}" for path, why in UNCHECKED.items()],
        "conversions": ["| via | gives |", "|---|---|", *_rows({name: said[name] for name in sorted(VIAS)})],
        "tables": [
            "| table | gives |",
            "|---|---|",
            *_rows({name: table.__doc__ or "" for name, table in TABLES.items()}),
        ],
    }
    for name, lines in lists.items():
        marked = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        inside = "".join(f"{line}\n" for line in lines)
        text = marked.sub(lambda found, inside=inside: found[1] + inside + found[2], text)  # type: ignore[misc]
    return text


def _rows(said: dict[str, str]) -> list[str]:
    return [f"| `{name}` | {_line(text)} |" for name, text in said.items()]


def _line(text: str) -> str:
    text = text.strip().split("\n\n")[0].replace("\n", " ")
    return re.sub(" +", " ", text).replace("``", "`").replace("|", "\\|")
