"""A folder as it is told to an agent, recorded and compared: one spelling, wherever it was typed.

Must never know: the protocol, what the folder is for.
"""

from __future__ import annotations

import os
from pathlib import Path


def plainly(folder: str | Path) -> Path:
    """A folder as an absolute path without ``..``; where ``..`` leads from a symbolic link, the system says.

    Args:
        folder: As it was typed; it need not exist.
    """
    path = Path(folder).absolute()
    return Path(os.path.realpath(path)) if ".." in path.parts else path
