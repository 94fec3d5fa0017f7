"""callsheet audit: exit codes, both forms of output, and the explanation of a record."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from callsheet.faces.cli import main
from callsheet.library.importing import Failure, import_sources
from callsheet.wire.blobs import digest

EXAMPLE = Path(__file__).parents[2] / "examples" / "claude-code" / "projects" / "-home-dev-acme-app"
SESSION = "5dd2e94d-807f-4903-b8e4-2497aa981da8"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (made,) = import_sources([EXAMPLE / f"{SESSION}.jsonl"], tmp_path_factory.mktemp("out"))
    assert not isinstance(made, Failure)
    return made.bundle


@pytest.fixture
def lying(bundle: Path, tmp_path: Path) -> Path:
    """The bundle with one status changed."""
    folder = Path(shutil.copytree(bundle, tmp_path / "lying"))
    path = folder / "streams" / f"{SESSION}.jsonl"
    data = path.read_bytes().replace(b'"status":"denied"', b'"status":"failed"', 1)
    path.write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["streams"][0]["sha256"] = digest(data)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["audit", *map(str, words)])
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


def test_a_true_bundle(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, bundle)
    assert (code, err) == (0, "")
    assert "Every fact has evidence" in out
    assert run(capsys, bundle, "--json") == (0, "", "")


def test_a_zipped_bundle(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "bundle.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in bundle.rglob("*"):
            archive.write(path, path.relative_to(bundle))
    assert run(capsys, packed)[0] == 0


def test_a_lie_is_named(lying: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, lying, "--json")
    (found,) = map(json.loads, out.splitlines())
    assert code == 1
    assert found["path"] == "/status"
    assert found["value"] == "failed"
    assert found["rule"] == "ASR-258"
    assert found["record"].startswith("r")
    assert "denied" in found["message"]
    code, out, _ = run(capsys, lying)
    assert code == 1
    assert f"ASR-258 /status (record {found['record']})" in out


def test_a_line_without_a_record_is_named(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(bundle, tmp_path / "left-out"))
    path = folder / "streams" / f"{SESSION}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(one for one in lines if b'"type":"tool_call"' not in one))
    code, out, err = run(capsys, folder)
    assert (code, err) == (1, "")
    (first, *_) = [one for one in out.splitlines() if "no tool_call is made" in one]
    assert first.startswith(f"{folder}/manifest.json: P-COUNT /sources/s0: ")


def test_an_explanation(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = map(json.loads, (bundle / "streams" / f"{SESSION}.jsonl").read_bytes().splitlines())
    result = next(one for one in records if one["type"] == "tool_result" and one["status"] == "denied")
    line = result["native"]["refs"][0]["line"]
    code, out, _ = run(capsys, bundle, "--explain", result["id"])
    assert code == 0
    assert f"{SESSION}.jsonl:{line} (result)" in out
    assert '/status = "denied"' in out
    assert "[0] /permissionDecision/decision (table status)" in out
    assert "exec.signal:" in out  # what the source never records
    code, out, _ = run(capsys, bundle, "--explain", f"{SESSION}/{result['id']}", "--json")
    (told,) = map(json.loads, out.splitlines())
    facts = {fact["path"]: fact for fact in told["facts"]}
    assert facts["/status"]["pointer"] == "/permissionDecision/decision"
    assert facts["/status"]["native"] == '"reject"'
    assert {entry["member"] for entry in told["never"]} >= {"exec.exitCode", "startedAt"}


def test_an_explanation_of_a_lie(lying: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, lying, "--json")
    code, out, _ = run(capsys, lying, "--explain", json.loads(out)["record"])
    assert code == 1
    assert "NO EVIDENCE" in out


@pytest.mark.parametrize("words", [["r99999"], ["nobody/r1"], ["é\ud800"]])
def test_no_such_record(bundle: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, bundle, "--explain", *words)
    assert (code, out) == (2, "")
    assert err.startswith("callsheet: no record")
    assert err.count("\n") == 1


def test_what_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file", tmp_path / "none"):
        code, out, err = run(capsys, path)
        assert (code, out) == (2, "")
        assert err.startswith("callsheet: ")
        assert err.count("\n") == 1


def test_a_bundle_without_its_stream(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(bundle, tmp_path / "torn"))
    (folder / "streams" / f"{SESSION}.jsonl").unlink()
    code, _, err = run(capsys, folder)
    assert code == 2
    assert f"{folder / 'streams' / SESSION}.jsonl: no such file" in err
    assert err.count("\n") == 1
