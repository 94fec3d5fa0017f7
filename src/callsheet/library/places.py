"""Where things of this user lie: the data folder for bundles.

Must never know: what is in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def bundles_folder() -> Path:
    """The folder for bundles: in ``$XDG_DATA_HOME``, or where the platform keeps such data."""
    named = os.environ.get("XDG_DATA_HOME")
    if named and Path(named).is_absolute():
        data = Path(named)
    elif sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        data = Path.home() / ".local" / "share"
    return data / "callsheet" / "bundles"
