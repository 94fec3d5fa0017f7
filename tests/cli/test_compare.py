"""callsheet compare: exit codes, both forms of output, and what cannot be compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from callsheet.faces.cli import main
from callsheet.library.importing import Failure, import_sources
from callsheet.paint.cells import width

EXAMPLES = Path(__file__).parents[2] / "examples"
SESSION = "5dd2e94d-807f-4903-b8e4-2497aa981da8"
STORED = EXAMPLES / "claude-code" / "projects" / "-home-dev-acme-app" / f"{SESSION}.jsonl"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (made,) = import_sources([STORED], tmp_path_factory.mktemp("out"))
    assert not isinstance(made, Failure)
    return made.bundle


@pytest.fixture
def other(bundle: Path, tmp_path: Path) -> Path:
    """The bundle with one status, one name and one id changed, and a decision left out."""
    folder = Path(shutil.copytree(bundle, tmp_path / "other"))
    path = folder / "streams" / f"{SESSION}.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    results = [record for record in records if record["type"] == "tool_result"]
    results[0]["status"] = "interrupted"
    results[0].pop("permission", None)
    calls = [record for record in records if record["type"] == "tool_call"]
    calls[1]["name"] = "\x1b[31m<b>Bash</b>\u202e\n漢字"
    calls[-1]["callId"] = "toolu_another"
    calls[-1]["input"] = {"command": "something else"}
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["compare", *map(str, words)])
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


def test_a_bundle_and_its_source(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, bundle, STORED)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].endswith("0 only left · 0 only right · nothing contradicts")
    assert all(line.startswith("= ") for line in out.splitlines()[3:-2])


def test_what_differs(bundle: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, bundle, other)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert "    result.status:" in lines
    at = lines.index("    result.status:")
    assert lines[at + 2] == "      right interrupted"
    assert any(line.startswith("    only left  decision.decision") for line in lines)
    assert any(line.startswith("< ") and line.endswith("only left") for line in lines)
    assert any(line.startswith("> ") and line.endswith("only right") for line in lines)
    assert "2 contradictions" in lines[-1]


def test_lines_fit_and_nothing_acts_on_the_terminal(
    bundle: Path, other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, other, bundle)
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert all(width(line) <= 80 for line in out.splitlines())
    assert "漢字" in out


def test_json_is_a_call_a_line(bundle: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, bundle, other, "--json")
    assert code == 1
    calls = [json.loads(line) for line in out.splitlines()]
    told = {one["path"]: one for call in calls for one in call.get("contradicts", [])}
    assert told["result.status"]["right"] == "interrupted"
    assert set(told) == {"result.status", "call.name"}
    alone = [call for call in calls if "left" not in call or "right" not in call]
    assert [call["why"] for call in alone] == ["not_there", "not_there"]
    assert all(call["matchedBy"] == "callId" for call in calls if call not in alone)


def test_a_log_and_the_thread_of_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    log = EXAMPLES / "codex" / "exec" / "mcp-0.171.0.jsonl"
    (thread,) = (
        path
        for path in (EXAMPLES / "codex" / "sessions").rglob("*.jsonl")
        if json.loads(log.read_text().splitlines()[0])["thread_id"] in path.name
    )
    code, out, _ = run(capsys, log, thread)
    assert code == 0
    assert "matched by input" in out
    assert "nothing contradicts" in out


def test_what_cannot_be_compared(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        (bundle, tmp_path / "nowhere"),
        (bundle, STORED.parent),
        ("-", "-"),
        (bundle,),
        (EXAMPLES / "README.md", bundle),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert err.startswith("callsheet: ")
        assert err.count("\n") == 1


OTHER = STORED.with_name("858837b5-8915-443b-bfa2-93fd580a1421.jsonl")


def test_two_sessions_are_called_so_before_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, STORED, OTHER)
    assert (code, err) == (1, "")
    head = "".join(out.splitlines()[2:4])
    assert head.startswith("not two readings of one session")
    assert SESSION in head
    assert OTHER.stem in head
    code, out, err = run(capsys, STORED, OTHER, "--json")
    assert code == 1
    assert err.startswith("callsheet: not two readings of one session")
    assert all("agree" in line or "why" in line for line in map(json.loads, out.splitlines()))


def test_the_words_fit_where_there_is_little_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = run(capsys, STORED, OTHER)
    assert max(map(width, out.splitlines())) <= 40
