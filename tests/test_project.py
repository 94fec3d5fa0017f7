"""The house rules that no other tool checks.

Each test holds a promise of CONTRIBUTING.md or README.md against the files themselves.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "callsheet"
MODULES = sorted(SOURCE.rglob("*.py"))
CORE = {"click", "msgspec", "wcwidth", "zstandard"}

# Bytes of other programs, which name the machines they came from.
NATIVE = ("examples/claude-code/", "examples/codex/", "tests/native/", "conformance/")
HOME_OF_SOMEONE = re.compile(r"(?:/home/(?!dev/|you/|user/)[\w.-]+|/Users/(?!you/|user/)[\w.-]+|/root)/")
PACKAGE_HOST = re.compile(r"https?://[^\s\"'<>)]*/simple\b|https?://files\.[\w.-]+")


def tracked() -> list[Path]:
    """Files that git would put into a commit; outside a clone there is nothing to check."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def texts() -> list[tuple[str, str]]:
    """Name and content of every tracked file that we wrote ourselves."""
    found = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(NATIVE):
            try:
                found.append((name, path.read_text(encoding="utf-8")))
            except UnicodeDecodeError:
                continue  # a binary file has no words
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_module_says_what_it_owns_and_stays_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "no module docstring"
    assert text.count("\n") <= 600, "a file of more than 600 lines does more than one thing"


def test_modules_are_not_named_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
    assert [path for path in SOURCE.rglob("*") if path.stem in vague] == []


def test_every_folder_of_modules_is_a_package() -> None:
    # import-linter doesn't see a folder without __init__.py: its modules would escape the contracts.
    assert [path for path in MODULES if not (path.parent / "__init__.py").exists()] == []


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_tracked_files_name_no_machine() -> None:
    # A short path (/src, /app) is a word like any other; a longer one can only be this machine's.
    own = [str(path) for path in (ROOT, Path.home()) if len(path.parts) > 2]
    wrong = [
        f"{name}: {hit}"
        for name, text in texts()
        for hit in [*HOME_OF_SOMEONE.findall(text), *(word for word in own if word in text)]
    ]
    assert wrong == []


def test_tracked_files_name_no_package_host_but_pypi() -> None:
    allowed = ("https://pypi.org/simple", "https://files.pythonhosted.org")
    wrong = [
        f"{name}: {hit}"
        for name, text in texts()
        for hit in PACKAGE_HOST.findall(text)
        if not hit.startswith(allowed)
    ]
    assert wrong == []


def needs() -> dict[str, dict[str, str]]:
    """Per extra (the core is ``""``): what pyproject.toml asks for, name to version range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {"": project["dependencies"], **project["optional-dependencies"]}
    split = re.compile(r"([\w.-]+)(.*)")
    return {
        extra: {found[1]: found[2] for need in wanted if (found := split.fullmatch(need))}
        for extra, wanted in listed.items()
    }


def test_the_core_needs_four_libraries() -> None:
    assert set(needs()[""]) == CORE


def test_the_lock_file_locks_what_the_project_asks_for() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    (own,) = (package for package in lock["package"] if package["name"] == "callsheet")
    locked = {
        (entry.get("marker", "").removeprefix("extra == ").strip("'"), entry["name"]): entry["specifier"]
        for entry in own["metadata"]["requires-dist"]
    }
    wanted = {(extra, name): rest for extra, names in needs().items() for name, rest in names.items()}
    assert locked == wanted


@pytest.mark.parametrize("module", ["callsheet", "callsheet.faces.cli"])
def test_importing_loads_no_library_outside_the_core(module: str) -> None:
    path = SOURCE.joinpath(*module.split(".")[1:])
    if not (path / "__init__.py").exists() and not path.with_suffix(".py").exists():
        pytest.skip(f"{module} does not exist yet")
    code = (
        f"import sys; before = set(sys.modules); import {module}\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - set(sys.stdlib_module_names)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    # zstandard's binding may bring cffi along.
    assert set(run.stdout.split()) - CORE - {"callsheet", "cffi", "_cffi_backend"} == set()


@pytest.mark.parametrize("module", ["callsheet.faces.tui.app", "callsheet.library.importing"])
def test_importing_loads_no_adapter_before_one_is_needed(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('callsheet.harness.')))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {name.split(".")[2] for name in run.stdout.split()} <= {"_port"}


def test_importing_callsheet_is_quick() -> None:
    code = "import time; t = time.perf_counter(); import callsheet; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(3)
    ]
    assert min(runs) < 0.1
