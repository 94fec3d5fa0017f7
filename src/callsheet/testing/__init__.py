"""Public kits for tests: check_reader() against the conformance cases, Hypothesis strategies for records.

Kits are found in their own modules and imported on use, so that no test library is loaded with this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callsheet.testing.conformance import check_reader as check_reader

_KITS = {"check_reader": "callsheet.testing.conformance"}


def __getattr__(name: str) -> Any:
    if name not in _KITS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_KITS[name]), name)


__all__ = ["check_reader"]
