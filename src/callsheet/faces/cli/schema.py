"""``callsheet schema [TYPE]``: the JSON Schema of a record type, or of any line of a stream.

Must never know: the shapes (``callsheet.rules.schema`` does).
"""

from __future__ import annotations

import json
import sys

import click


@click.command()
@click.argument("kind", metavar="[TYPE]", required=False)
def schema(kind: str | None) -> int:
    """Print the JSON Schema of a record type, or of any line of a stream.

    \b
    Examples:
      callsheet schema tool_result > tool_result.schema.json
      callsheet schema | jq '.properties.type.examples'

    Exit code 0: printed; 2: no such record type.
    """  # noqa: D301
    from callsheet.errors import UsageError
    from callsheet.faces.cli.terminal import write_json
    from callsheet.records import TYPES
    from callsheet.rules.schema import record_schema, stream_schema

    if kind is not None and kind not in TYPES:
        raise UsageError(f"no record type {kind!r}; there are {', '.join(TYPES)}")
    found = stream_schema() if kind is None else record_schema(kind)
    sys.stdout.flush()
    write_json(json.dumps(found, indent=2, ensure_ascii=False).encode())
    return 0
