"""Packages from npm that tests against real agents run or read: fetched before pytest leaves the network.

    python tests/live/npm.py

installs each into a folder of its own below the virtual environment, pinned. Where npm is missing, or a package cannot
be had, it says so and ends with 0: the tests that need it are skipped, and say why.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(sys.prefix) / "npm"
PATIENCE = 600


class Package(NamedTuple):
    """A package, pinned.

    Attributes:
        name: Its name on npm.
        version: Its version.
        file: A file of it that must be there.
    """

    name: str
    version: str
    file: str

    @property
    def folder(self) -> Path:
        """Where its modules are."""
        return FOLDER / self.name.split("/")[-1] / self.version / "node_modules"

    @property
    def path(self) -> Path:
        """The file that must be there."""
        return self.folder / self.name / self.file


_ARCH = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
    platform.machine().lower(), "none"
)
_SYSTEM = f"{sys.platform}-{_ARCH}"

SDK = Package("@agentclientprotocol/sdk", "2.4.0", "schema/v2/schema.json")
NODE = Package(f"node-{_SYSTEM}", "24.21.0", "bin/node")
CLAUDE = Package("@agentclientprotocol/claude-agent-acp", "0.101.0", "dist/index.js")
OPENCODE = Package(f"opencode-{_SYSTEM}", "1.18.33", "bin/opencode")
CODEX = Package("@agentclientprotocol/codex-acp", "2.6.0", "dist/index.js")
GEMINI = Package("@google/gemini-cli", "0.61.0", "bundle/gemini.js")
OPENCLAW = Package("openclaw", "2026.9.6", "openclaw.mjs")
WS = Package("ws", "8.23.0", "wrapper.mjs")
PACKAGES = (SDK, NODE, CLAUDE, OPENCODE, CODEX, GEMINI, OPENCLAW, WS)


def fetch(package: Package) -> str | None:
    """Installs a package unless it is there; returns why that failed."""
    if package.path.exists():
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    made = package.folder.parent
    made.mkdir(parents=True, exist_ok=True)
    wanted = f"{package.name}@{package.version}"
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(made), wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"npm install {wanted} took more than {PATIENCE} s"
    if package.path.exists():
        return None
    shutil.rmtree(made, ignore_errors=True)
    words = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    return f"npm install {wanted}: {words[0] if words else f'{package.file} is not in it'}"


def main() -> int:
    """Fetches everything."""
    for package in PACKAGES:
        print(f"tests/live: {package.name} {package.version}", flush=True)
        problem = fetch(package)
        if problem is not None:
            print(f"tests/live: MISSING: {problem}; what needs it will be skipped", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
