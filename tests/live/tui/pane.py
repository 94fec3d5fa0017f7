"""A pane of tmux with a program in it: what is on the screen, and keys; and what it left behind."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

TMUX = shutil.which("tmux")
SOURCE = Path(__file__).parents[3] / "src"


class Pane:
    """A program in a pane of tmux."""

    def __init__(self, folder: Path, *command: str, size: tuple[int, int] = (100, 36)) -> None:
        self._tmux = [TMUX or "tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        words = shlex.join(
            ["env", "-u", "COLUMNS", "-u", "LINES", f"PYTHONPATH={SOURCE}", "TERM=tmux-256color", *command]
        )
        columns, lines = map(str, size)
        self._do("new-session", "-d", "-x", columns, "-y", lines, f"{words}; echo ended with $?; sleep 60")

    def _do(self, *arguments: str) -> str:
        ran = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True)
        return ran.stdout

    @property
    def text(self) -> str:
        """What is on the screen."""
        return self._do("capture-pane", "-p")

    def until(self, *texts: str, seconds: float = 60) -> str:
        """Waits until all of some texts are on the screen."""
        end = time.monotonic() + seconds
        while any(text not in self.text for text in texts):
            assert time.monotonic() < end, f"{texts} never came:\n{self.text}"
            time.sleep(0.1)
        return self.text

    def press(self, *keys: str) -> None:
        """Presses keys, as tmux names them."""
        for key in keys:
            self._do("send-keys", key)
            time.sleep(0.2)

    def number_of(self, word: str) -> str:
        """The key of the first option that has a word."""
        found: re.Match[str] | None = None
        end = time.monotonic() + 10
        while found is None:
            assert time.monotonic() < end, f"no option {word}:\n{self.text}"
            found = re.search(rf"^▌? +([1-9])  .*{word}", self.text, re.MULTILINE)
        return found[1]

    def close(self) -> None:
        """Ends tmux and all in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


def records_of(out: Path) -> list[dict[str, Any]]:
    (bundle,) = [path for path in out.iterdir() if path.is_dir()]
    return [
        json.loads(line)
        for stream in (bundle / "streams").iterdir()
        for line in stream.read_text(encoding="utf-8").splitlines()
    ]
