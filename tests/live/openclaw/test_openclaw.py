"""The real OpenClaw against a scripted model: what its databases become is what the model was sent, and who decided."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.live.npm import NODE, OPENCLAW
from tests.live.openclaw.house import House, held, living, plain, sent, shell

from callsheet.registry import load
from callsheet.testing.scripted_models.messages import Asked, Message, Use, say

MISSING = [one.name for one in (NODE, OPENCLAW) if not one.path.exists()]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not fetched (tests/live/npm.py): {', '.join(MISSING)}"
)

MakeHouse = Callable[..., AbstractContextManager[House]]


@pytest.fixture
def house(home: Path, tmp_path: Path) -> MakeHouse:
    return lambda script, **settings: living(home, tmp_path, script, **settings)


def poll(asked: Asked) -> Message:
    """Looks at the process that was started last."""
    (*_, name) = re.findall(r"\(session ([a-z-]+), pid", json.dumps(asked.body))
    return say(Use("toolu_poll", "process", {"action": "poll", "sessionId": name, "timeout": 15_000}))


def test_commands_files_and_processes(house: MakeHouse) -> None:
    script = [
        say("Let me look.", shell("toolu_ok", "echo hello")),
        say(shell("toolu_three", "echo before >&2; printf 'line1\\nline2\\n'; exit 3")),
        say(Use("toolu_write", "write", {"path": "notes.txt", "content": "alpha\nbeta\n"})),
        say(
            Use(
                "toolu_edit", "edit", {"path": "notes.txt", "edits": [{"oldText": "beta", "newText": "BETA"}]}
            )
        ),
        say(Use("toolu_read", "read", {"path": "notes.txt"}), Use("toolu_lost", "read", {"path": "missing"})),
        say(Use("toolu_none", "frobnicate", {"x": 1})),
        say(shell("toolu_long", "python3 -c \"print('x' * 150_000)\"")),
        say(shell("toolu_late", "echo tick; sleep 1; echo tock; exit 4", background=True)),
        say(shell("toolu_wait", "sleep 3")),
        poll,
        say("Done."),
    ]
    with house(script) as at:
        at.run()
        sheet = held(at)
    results, calls = sheet.results(), sheet.calls()
    assert (
        set(results)
        == set(calls)
        == {
            f"toolu_{name}"
            for name in (
                "ok",
                "three",
                "write",
                "edit",
                "read",
                "lost",
                "none",
                "long",
                "late",
                "wait",
                "poll",
            )
        }
    )
    assert {name.removeprefix("toolu_"): one["status"] for name, one in results.items()} == dict.fromkeys(
        ("ok", "three", "write", "edit", "read", "long", "late", "wait", "poll"), "completed"
    ) | {"lost": "failed", "none": "failed"}
    assert (results["toolu_ok"]["exec"]["exitCode"], results["toolu_three"]["exec"]["exitCode"]) == (0, 3)
    # OpenClaw takes the call of a tool that it does not have out of its transcript.
    assert (calls["toolu_none"]["title"], "name" in calls["toolu_none"]) == ("frobnicate", False)
    assert [name for name, one in results.items() if "content" not in one] == ["toolu_long"]
    assert all(one["startedAt"] <= one["completedAt"] for one in results.values())
    changes = [one["changes"][0] for one in sheet.last("file_change")]
    assert [(one["path"]["path"], one["change"]) for one in changes] == [
        ("notes.txt", "add"),
        ("notes.txt", "modify"),
    ]
    (terminal,) = sheet.last("terminal")
    assert (terminal["callId"], terminal["status"], terminal["exitCode"]) == ("toolu_late", "exited", 4)
    assert results["toolu_poll"]["exec"]["terminalId"] == terminal["terminalId"]
    (turn,) = sheet.last("turn")
    assert turn["status"] == "completed"


@pytest.mark.parametrize("window", [8_000, 100_000])
def test_nothing_is_content_that_a_context_window_cut(house: MakeHouse, window: int) -> None:
    """What OpenClaw sends whole with this window, and what it cuts; the scripted usage proves the least window."""
    (rule,) = [one for one in load("openclaw").content if one.budgets]
    least, most = rule.budgets[0][1], dict(rule.budgets)[window]
    sizes = {"short": least - 100, "fits": most - 1, "long": 2 * most}
    script: list[Any] = [
        say(shell(f"toolu_{name}", f"python3 -c \"print('x' * {size})\"")) for name, size in sizes.items()
    ]
    script.append(say(shell("toolu_wide", f"python3 -c \"print('\\u6c49' * {most})\"")))
    script.append(say("Done."))
    with house(script, window=window) as at:
        at.run()
        sheet = held(at)
        got = {name: plain(content)[0] for name, content in sent(at.model).items()}
    assert [name for name, one in sheet.results().items() if "content" in one] == ["toolu_short"]
    # The budget is the one that OpenClaw keeps to.
    assert got["toolufits"] == "x" * sizes["fits"]
    assert len(got["toolulong"]) < sizes["long"]
    assert len(got["tooluwide"]) < most


def test_approvals_and_answers_through_the_gateway(house: MakeHouse) -> None:
    asks = {
        "questions": [
            {
                "id": "which",
                "header": "Which",
                "question": "Which one?",
                "options": [{"label": "This"}, {"label": "That"}],
            }
        ]
    }
    script = [
        say(shell("toolu_yes", "mkdir -p out")),
        say(shell("toolu_no", "rm -rf ./out")),
        say(Use("toolu_ask", "ask_user", asks)),
        say("Done."),
    ]
    with house(script, mode="ask") as at:
        at.ask(["allow-once", "deny"], {"which": ["That"]})
        sheet = held(at)
    assert at.cwd.joinpath("out").is_dir()
    results = sheet.results()
    assert [results[f"toolu_{name}"]["status"] for name in ("yes", "no", "ask")] == [
        "completed",
        "denied",
        "completed",
    ]
    permissions = {one["subject"]["callId"]: one for one in sheet.last("permission")}
    assert [permissions[f"toolu_{name}"]["decision"] for name in ("yes", "no")] == [
        "allow_once",
        "reject_once",
    ]
    for one in permissions.values():
        assert one["decidedBy"] == "user"
        assert re.fullmatch("[0-9a-f]{64}", one["decider"]["device"])
    # What waited for leave did not run while it waited, and what was refused never ran.
    assert "startedAt" not in results["toolu_yes"]
    assert "completedAt" in results["toolu_yes"]
    assert {"startedAt", "completedAt"} & set(results["toolu_no"]) == set()
    (asked,) = sheet.last("input_request")
    assert asked["answers"] == [{"questionId": "which", "selected": ["That"]}]
