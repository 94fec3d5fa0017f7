"""``python -m callsheet.testing.toy_agent --version 1|2 SCRIPT``."""

from __future__ import annotations

import argparse
import sys

from callsheet.testing.toy_agent import ToyAgent, load, names
from callsheet.testing.toy_agent.script import BadScript


def main() -> int:
    """Runs the toy on standard input and output."""
    parser = argparse.ArgumentParser(
        prog="python -m callsheet.testing.toy_agent", description="A scripted ACP agent."
    )
    parser.add_argument(
        "--version", type=int, choices=(1, 2), default=2, help="newest protocol version it speaks"
    )
    parser.add_argument("script", help=f"a file, or one of: {', '.join(names())}")
    given = parser.parse_args()
    try:
        script = load(given.script)
    except BadScript as error:
        print(f"toy_agent: {error}", file=sys.stderr)
        return 2
    ToyAgent(given.version, script, sys.stdin.buffer, sys.stdout.buffer).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
