"""What the command line does with odd names, closed streams, altered bundles and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard

from callsheet.faces.cli.terminal import write_json
from callsheet.library.importing import Imported, import_sources

EXAMPLES = Path(__file__).parents[2] / "examples"
SESSION = EXAMPLES / "claude-code/projects/-home-dev-acme-app/858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
CALLSHEET = [sys.executable, "-m", "callsheet"]


def ran(*args: Any, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*CALLSHEET, *args], capture_output=True, check=False, timeout=60, **more)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (one,) = import_sources([SESSION], tmp_path / "out")
    assert isinstance(one, Imported)
    return one.bundle


def findings(path: Path) -> tuple[int, list[tuple[str, str]]]:
    done = ran("validate", path, "--json")
    assert not done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, [(one["rule"], one["path"]) for one in told]


# -- altered bundles -----------------------------------------------------------------------------------------------


def test_a_bundle_as_it_was_written_is_clean(bundle: Path) -> None:
    assert findings(bundle) == (0, [])


def test_an_altered_stream_is_found(bundle: Path) -> None:
    (stream,) = (bundle / "streams").iterdir()
    altered = stream.read_bytes().replace(b"Same id twice", b"Some id twice")
    assert altered != stream.read_bytes()
    stream.write_bytes(altered)
    assert findings(bundle) == (1, [("P-REF", "/streams/0/sha256")])


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (zstandard.compress(SESSION.read_bytes().replace(b"Same id", b"Some id")), "sha256"),
        (zstandard.compress(SESSION.read_bytes() + b"more"), "native"),
        (zstandard.compress(SESSION.read_bytes()[:100]), "size"),
        (zstandard.compress(SESSION.read_bytes())[:100], "native"),
        (b"no zstd", "native"),
        (None, "native"),
    ],
)
def test_an_altered_native_copy_is_found(bundle: Path, data: bytes | None, path: str) -> None:
    copy = bundle / "native" / "s0.zst"
    if data is None:
        copy.unlink()
    else:
        copy.write_bytes(data)
    assert findings(bundle) == (1, [("P-REF", f"/sources/0/{path}")])


def test_a_masked_copy_has_a_digest_of_its_own(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["sources"][0]["masked"] = 1
    (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (bundle / "native" / "s0.zst").write_bytes(
        zstandard.compress(SESSION.read_bytes().replace(b"Same id", b"*******"))
    )
    assert findings(bundle) == (0, [])


def test_a_linked_folder_of_a_bundle_is_not_followed(bundle: Path, tmp_path: Path) -> None:
    for name in ("streams", "native"):
        (bundle / name).rename(tmp_path / name)
        (bundle / name).symlink_to(tmp_path / name)
    assert findings(bundle) == (1, [("P-REF", "/streams/0/file"), ("P-REF", "/sources/0/native")])


@pytest.mark.parametrize(
    ("member", "path"),
    [({"streams": []}, "/streams"), ({"streams": [{"id": "a", "file": "a\0b"}]}, "/streams/0/file")],
)
def test_a_manifest_without_a_stream_that_can_be_read(
    bundle: Path, member: dict[str, Any], path: str
) -> None:
    (bundle / "manifest.json").write_text(json.dumps({"format": "callsheet/1", **member}), encoding="utf-8")
    assert findings(bundle) == (1, [("P-REF", path)])
    shown = ran("show", bundle)
    assert shown.returncode == 2
    assert shown.stderr.count(b"\n") == 1


# -- names and streams ---------------------------------------------------------------------------------------------


def test_a_place_that_is_no_text(tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"o\xff")
    try:
        out.mkdir()
    except OSError:
        pytest.skip("this file system takes no such name")
    done = ran("import", SESSION, "--out", out, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["bundle"].startswith(str(tmp_path / "o\ufffd"))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for command in ("validate", "show", "import"):
        done = ran(command, tmp_path / "pipe.jsonl")
        assert done.returncode == 2, command
        assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("command", ["validate", "show", "import"])
def test_a_closed_standard_input_is_no_empty_one(command: str) -> None:
    done = ran(command, "-", preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"callsheet: -: is closed\n"


def test_json_has_nothing_that_a_terminal_obeys(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    loud = "a\x7f\x80\x9b\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069z é 漢 😀"
    write_json(json.dumps({"text": loud}, ensure_ascii=False).encode())
    sys.stdout.flush()
    out = capfdbinary.readouterr().out
    assert json.loads(out) == {"text": loud}
    text = out.decode()
    assert "é 漢 😀" in text
    assert not set(loud) - set("a z é漢😀") & set(text)


# -- signals -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "s.jsonl"
    with path.open("wb") as file:
        for number in range(150_000):
            file.write(
                b'{"type":"user","uuid":"u%d","sessionId":"s","message":{"role":"user","content":"hi"}}\n'
                % number
            )
    return path


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("command", ["import", "show"])
def test_what_is_stopped_leaves_nothing(tmp_path: Path, large: Path, command: str, name: str) -> None:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    args = [large, "--out", out] if command == "import" else [large]
    process = subprocess.Popen(
        [*CALLSHEET, command, *args],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    deadline = time.monotonic() + 30
    # What is stopped before it began would prove nothing.
    while not list((out if command == "import" else scratch).glob("**/*.part")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    assert process.wait(timeout=30) == {"SIGTERM": 143, "SIGHUP": 129, "SIGINT": 130}[name]
    assert not list(scratch.iterdir())
    assert not list(out.glob("*"))


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from callsheet.faces.cli.signals import stopping_tidily\n"
        "with stopping_tidily():\n"
        "    print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, callable(signal.getsignal(signal.SIGTERM)))\n"
        "print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["True", "True", "True"]
