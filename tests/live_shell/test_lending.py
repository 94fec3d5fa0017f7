"""What is lent to an agent stays inside the session's folder, and ends with the session."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from callsheet.live.lending import METHODS, TERMINALS_MOST, Lender
from callsheet.seam import NotServed, Serve, Served

Ask = Callable[..., Awaitable[Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "app"
    made.mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    return made


def play(folder: Path, work: Callable[[Ask], Awaitable[None]]) -> None:
    """Runs some requests in one session, and closes it."""

    async def run() -> None:
        lender = Lender(folder)

        async def ask(method: str, /, **params: Any) -> Any:
            outcome = await lender.serve(
                Serve(key="k", method=method, params=Raw(json.dumps(params).encode()))
            )
            return msgspec.json.decode(outcome.result) if isinstance(outcome, Served) else outcome

        try:
            await asyncio.wait_for(work(ask), 20)
        finally:
            await lender.close()
            await lender.close()

    asyncio.run(run())


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_file_is_written_and_read_by_lines(folder: Path) -> None:
    async def work(ask: Ask) -> None:
        path = str(folder / "new" / "deep" / "a.txt")
        assert await ask("fs/write_text_file", path=path, content="one\ntwo\u2028\r\nthree") == {}
        assert Path(path).read_bytes() == "one\ntwo\u2028\r\nthree".encode()
        assert await ask("fs/read_text_file", path=path) == {"content": "one\ntwo\u2028\r\nthree"}
        assert await ask("fs/read_text_file", path=path, line=2) == {"content": "two\u2028\r\nthree"}
        assert await ask("fs/read_text_file", path=path, line=2, limit=1) == {"content": "two\u2028\r\n"}
        assert await ask("fs/read_text_file", path=path, limit=1) == {"content": "one\n"}
        assert await ask("fs/read_text_file", path=path, line=9) == {"content": ""}
        assert await ask("fs/write_text_file", path=path, content="x") == {}
        assert Path(path).read_text() == "x"

    play(folder, work)


def test_links_inside_are_followed_and_links_out_are_not(folder: Path, tmp_path: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "a.txt").write_text("inside")
    (folder / "in").symlink_to(folder / "real")
    (folder / "out").symlink_to(tmp_path)
    (folder / "file").symlink_to(tmp_path / "secret.txt")
    (folder / "new").symlink_to(tmp_path / "made.txt")
    (folder / "loop").symlink_to(folder / "loop")

    async def work(ask: Ask) -> None:
        assert await ask("fs/read_text_file", path=str(folder / "in" / "a.txt")) == {"content": "inside"}
        for path in ("out/secret.txt", "file", "new", "out/app/real/../../secret.txt", "loop"):
            for method, more in (("fs/read_text_file", {}), ("fs/write_text_file", {"content": "x"})):
                told = await ask(method, path=str(folder / path), **more)
                assert isinstance(told, NotServed), path
                assert told.kind in ("refused", "failed")
        assert (tmp_path / "secret.txt").read_text() == "outside"
        assert not (tmp_path / "made.txt").exists()
        # The folder itself may be reached over a link.
        assert await ask("fs/read_text_file", path=str(folder / "out" / "app" / "real" / "a.txt")) == {
            "content": "inside"
        }

    play(folder, work)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/passwd", "refused"),
        ("{folder}/../secret.txt", "refused"),
        ("{folder}/x/../../secret.txt", "refused"),
        ("{folder}/x/../a", "refused"),
        ("{folder}-next-door/a", "refused"),
        ("relative.txt", "invalid"),
        ("", "invalid"),
        (None, "invalid"),
        (7, "invalid"),
        ("{folder}/nul\0byte", "invalid"),
        ("{folder}", "invalid"),
        ("{folder}/none.txt", "missing"),
        ("{folder}/folder", "invalid"),
        ("{folder}/fifo", "invalid"),
        ("{folder}/latin1.txt", "failed"),
        ("{folder}/a.txt/b", "refused"),
    ],
)
def test_what_is_not_read_and_why(folder: Path, path: Any, kind: str) -> None:
    (folder / "folder").mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "latin1.txt").write_bytes(b"caf\xe9")
    os.mkfifo(folder / "fifo")

    async def work(ask: Ask) -> None:
        told = await ask(
            "fs/read_text_file", path=path.format(folder=folder) if isinstance(path, str) else path
        )
        assert isinstance(told, NotServed)
        assert told.kind == kind, told.reason
        assert "\n" not in told.reason

    play(folder, work)


def test_a_missing_file_is_said_so_that_agents_know_it(folder: Path) -> None:
    async def work(ask: Ask) -> None:
        told = await ask("fs/read_text_file", path=str(folder / "none.txt"))
        assert told.reason == f"Resource not found: {folder}/none.txt (No such file or directory)"

    play(folder, work)


@pytest.mark.parametrize("step", ["sub", "sub/a.txt"])
def test_a_link_that_is_exchanged_meanwhile_is_not_followed(
    step: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("inside")
    outside = tmp_path / "elsewhere" / "sub"
    outside.mkdir(parents=True)
    (outside / "a.txt").write_text("outside")
    real = Lender._inside

    def late(self: Lender, path: Any) -> tuple[str, ...]:
        steps = real(self, path)
        (folder / step).rename(folder / "old")
        (folder / step).symlink_to(outside.parent / step)
        return steps

    monkeypatch.setattr(Lender, "_inside", late)

    async def work(ask: Ask) -> None:
        told = await ask("fs/read_text_file", path=str(folder / "sub" / "a.txt"))
        assert isinstance(told, NotServed)
        assert told.kind == "refused"

    play(folder, work)


@pytest.mark.parametrize("params", [b"7", b"null", b"[", b'{"path":"\\ud800"}'])
@pytest.mark.parametrize("method", [*METHODS, "fs/delete"])
def test_params_of_any_shape_are_refused(folder: Path, method: str, params: bytes) -> None:
    outcome = asyncio.run(Lender(folder).serve(Serve(key="k", method=method, params=Raw(params))))
    assert isinstance(outcome, NotServed)


def test_odd_numbers_and_contents_are_refused(folder: Path) -> None:
    (folder / "a.txt").write_text("a")

    async def work(ask: Ask) -> None:
        path = str(folder / "a.txt")
        for wrong in ({"line": 0}, {"line": "1"}, {"limit": -1}, {"limit": True}):
            assert isinstance(await ask("fs/read_text_file", path=path, **wrong), NotServed)
        assert isinstance(await ask("fs/write_text_file", path=path, content=7), NotServed)
        assert (folder / "a.txt").read_text() == "a"

    play(folder, work)


# -- terminals ------------------------------------------------------------------------------------------------------


def test_a_command_runs_in_the_folder_and_its_end_is_told(folder: Path) -> None:
    async def work(ask: Ask) -> None:
        made = await ask(
            "terminal/create", command="pwd; echo $TOY >&2; exit 3", env=[{"name": "TOY", "value": "né"}]
        )
        assert await ask("terminal/wait_for_exit", **made) == {"exitCode": 3, "signal": None}
        told = await ask("terminal/output", **made)
        assert told == {
            "output": f"{os.path.realpath(folder)}\nné\n",
            "truncated": False,
            "exitStatus": {"exitCode": 3, "signal": None},
        }
        assert await ask("terminal/release", **made) == {}
        assert (await ask("terminal/output", **made)).kind == "missing"

    play(folder, work)


def test_arguments_are_passed_as_they_are(folder: Path) -> None:
    (folder / "sub").mkdir()

    async def work(ask: Ask) -> None:
        made = await ask(
            "terminal/create", command="printf", args=["%s|", "$HOME", "a b"], cwd=str(folder / "sub")
        )
        await ask("terminal/wait_for_exit", **made)
        assert (await ask("terminal/output", **made))["output"] == "$HOME|a b|"

    play(folder, work)


def test_output_is_cut_at_its_front_and_at_a_character(folder: Path) -> None:
    async def work(ask: Ask) -> None:
        made = await ask("terminal/create", command="printf 'aéééé'", outputByteLimit=5)
        await ask("terminal/wait_for_exit", **made)
        told = await ask("terminal/output", **made)
        assert (told["output"], told["truncated"]) == ("éé", True)

    play(folder, work)


def test_a_command_is_killed_with_all_that_it_started(folder: Path) -> None:
    async def work(ask: Ask) -> None:
        made = await ask("terminal/create", command="trap '' TERM; sleep 300 & echo $!; wait; sleep 300")
        while not (said := (await ask("terminal/output", **made))["output"]).endswith("\n"):
            await asyncio.sleep(0.02)
        waiting = asyncio.ensure_future(ask("terminal/wait_for_exit", **made))
        assert await ask("terminal/kill", **made) == {}
        assert await waiting == {"exitCode": None, "signal": "SIGKILL"}
        assert (await ask("terminal/output", **made))["exitStatus"]["signal"] == "SIGKILL"
        assert await ask("terminal/release", **made) == {}
        assert gone(int(said))

    play(folder, work)


def test_what_still_runs_ends_with_the_session(folder: Path) -> None:
    pids: list[int] = []

    async def work(ask: Ask) -> None:
        made = await ask("terminal/create", command="echo $$; exec sleep 300")
        while not (said := (await ask("terminal/output", **made))["output"]).endswith("\n"):
            await asyncio.sleep(0.02)
        pids.append(int(said))

    play(folder, work)
    assert gone(pids[0])


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"command": ""}, "invalid"),
        ({"command": 7}, "invalid"),
        ({"command": "ls", "args": "a"}, "invalid"),
        ({"command": "ls", "args": [7]}, "invalid"),
        ({"command": "ls", "env": [{"name": "A=B", "value": ""}]}, "invalid"),
        ({"command": "ls", "env": [7]}, "invalid"),
        ({"command": "ls", "cwd": "/"}, "refused"),
        ({"command": "ls", "cwd": "sub"}, "invalid"),
        ({"command": "ls", "cwd": "{folder}/none"}, "missing"),
        ({"command": "no-such-program", "args": ["a"]}, "missing"),
    ],
)
def test_what_is_not_started_and_why(folder: Path, params: dict[str, Any], kind: str) -> None:
    async def work(ask: Ask) -> None:
        if "cwd" in params:
            params["cwd"] = params["cwd"].format(folder=folder)
        told = await ask("terminal/create", **params)
        assert isinstance(told, NotServed)
        assert told.kind == kind, told.reason

    play(folder, work)


def test_terminals_are_bounded(folder: Path) -> None:
    async def work(ask: Ask) -> None:
        for _ in range(TERMINALS_MOST):
            assert "terminalId" in await ask("terminal/create", command="true")
        assert isinstance(await ask("terminal/create", command="true"), NotServed)

    play(folder, work)
