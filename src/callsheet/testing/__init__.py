"""Public kits for tests: check_reader() against the conformance cases, check_live_harness() for live agents.

Kits are found in their own modules and imported on use, so that no test library is loaded with this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callsheet.testing.check_live import check_live_harness as check_live_harness
    from callsheet.testing.conformance import check_reader as check_reader

_KITS = {
    "check_live_harness": "callsheet.testing.check_live",
    "check_reader": "callsheet.testing.conformance",
}


def __getattr__(name: str) -> Any:
    if name not in _KITS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_KITS[name]), name)


__all__ = ["check_live_harness", "check_reader"]
