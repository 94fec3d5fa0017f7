"""Import speed and memory, against ``json.loads`` per line over the same file in the same run.

    python benchmarks/import_session.py [--mb 200] [--calls 100000]

Makes its files anew (``make_session.py``, ``make_rollout.py``), so the figures are of made-up sessions with the line
lengths of real ones.
For each file: the seconds of ``json.loads`` per line and of the import (all records, refs and digests; the native copy
timed apart), each the best of ``--runs``, and their ratio. Then the peak memory of whole processes, the time until
``import callsheet`` is done, and what the hashing alone would cost.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make_rollout
import make_session

from callsheet.library.importing import Failure, import_sources


def best(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of several runs."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def parse_all(path: Path) -> None:
    """``json.loads`` on every line."""
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def digest_all(path: Path) -> None:
    """The least that the three digests cost: every line, the source, and a stream of about the same size."""
    source, stream = hashlib.sha256(), hashlib.sha256()
    with path.open("rb") as file:
        for line in file:
            hashlib.sha256(line).hexdigest()
            source.update(line)
            stream.update(line)


def bring_in(path: Path, out: Path, native: bool) -> None:
    """One import into an empty folder."""
    shutil.rmtree(out, ignore_errors=True)
    for told in import_sources([path], out, native=native):
        if isinstance(told, Failure):
            raise SystemExit(f"{told.path}: {told.message}")


PEAK = """
import sys
from pathlib import Path
from callsheet.library.importing import import_sources
for _ in import_sources([Path(sys.argv[1])], Path(sys.argv[2]), native=False):
    pass
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_mb(path: Path, out: Path) -> float:
    """Peak memory, in MB, of a process that imports one file (Linux only)."""
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path), str(out)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) / 1024


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=float, default=200)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        out = home / "out"
        session, rollout, size = make_session.make, make_rollout.make, {"mb": args.mb}
        files: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
            "2 MB": (session, {"mb": 2}),
            f"{args.mb:g} MB, 2.1.200": (session, size),
            f"{args.mb:g} MB, 2.1.332 (with request records)": (session, {**size, "version": "2.1.332"}),
            f"{args.calls:,} calls": (session, {"calls": args.calls}),
            "lines of 10 MB": (session, {"mb": 2, "long_line": 10}),
            f"{args.mb:g} MB, Codex 0.50": (rollout, {**size, "version": "0.50.0"}),
            f"{args.mb:g} MB, Codex 0.163 (paginated)": (rollout, {**size, "version": "0.163.0"}),
        }
        heads = f"{'json.loads':>12}{'import':>9}{'ratio':>7}{'digests':>9}{'copy':>7}{'peak MB':>9}"
        print(f"{'file':46}{'MB':>6}{'lines':>9}{heads}")
        path = home / "session.jsonl"
        for name, (make, shape) in files.items():
            make(path, **shape)
            with path.open("rb") as file:
                lines = sum(1 for _ in file)
            parsed = best(lambda: parse_all(path), args.runs)
            brought = best(lambda: bring_in(path, out, native=False), args.runs)
            copied = best(lambda: bring_in(path, out, native=True), 1) - brought
            hashed = best(lambda: digest_all(path), args.runs)
            large = path.stat().st_size / 1e6
            print(
                f"{name:46}{large:6.0f}{lines:9,}{parsed:11.2f}s{brought:8.2f}s{parsed / brought:7.2f}{hashed:8.2f}s"
                f"{copied:6.2f}s{peak_mb(path, out):9.0f}",
                flush=True,
            )
    started = best(lambda: subprocess.run([sys.executable, "-c", "import callsheet"], check=True), 5)
    bare = best(lambda: subprocess.run([sys.executable, "-c", ""], check=True), 5)
    print(f"import callsheet: {(started - bare) * 1000:.0f} ms above a bare interpreter")


if __name__ == "__main__":
    main()
