"""Runs recorded live, held against the files that they left: nothing contradicts, and the page says the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from callsheet.compare import Side, compare, match, strangers
from callsheet.compare.facts import facts_of
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle

PAGE = Path(__file__).parents[2] / "docs" / "live-and-stored.md"


class Pairs(NamedTuple):
    """Captures of one agent that hold both readings.

    Attributes:
        title: Heading on the page.
        folders: Pattern of the folders that hold a live log, below the captures.
        log: The live log in such a folder.
        stored: The folder of the files, below that one or (with a slash before it) below the captures.
        least: Pairs that there are at least.
        kind: Kind of the log, where it is not to be guessed.
    """

    title: str
    folders: str
    log: str
    stored: tuple[str, ...]
    least: int
    kind: str | None = None


PAIRS = [
    Pairs(
        "Claude Code: stream-json both ways and the session file",
        "claude-code/*/*/stdio",
        "stdio.jsonl",
        ("projects",),
        40,
        "claude-code-stream",
    ),
    Pairs(
        "Claude Code: the output of a run and the session file",
        "claude-code/*/*/p*",
        "stdout.jsonl",
        ("projects",),
        50,
        "claude-code-stream",
    ),
    Pairs("Codex: the app server and the rollout", "codex/*/*/app", "frames.jsonl", ("codex_home",), 90),
    Pairs("Codex: the log of exec and the rollout", "codex/*/*/exec", "stdout.jsonl", ("codex_home",), 50),
    Pairs(
        "ACP: frames of OpenCode and of the Gemini CLI, and what these agents store",
        "acp/*",
        "frames.jsonl",
        ("/opencode-stored", "/gemini-stored"),
        20,
    ),
]


class Fact(NamedTuple):
    """What contradicts in some captures, and is a fact about the source.

    Attributes:
        where: Expression that the capture's name fits.
        path: The fact.
        why: In words, for the page.
    """

    where: str
    path: str
    why: str


FACTS = [
    Fact(
        r"claude-code/(2\.0|2\.1\.1\d\d)\S*/perm_user/stdio",
        "result.status",
        "Claude Code before 2.1.300: the file calls a refused call an error, and records no refusal",
    ),
    Fact(
        r"claude-code/2\.1\.200/(hooks_pre|perm_rules)/plain",
        "result.status",
        "Claude Code 2.1.200: the output of a run without requests says error, the file says what refused the call",
    ),
    Fact(
        r"claude-code/2\.1\.332/perm_user_interrupt/stdio",
        "result.status",
        "Claude Code: a refusal that also interrupts is stored as a call that did not run, without the refusal",
    ),
    Fact(
        r"claude-code/2\.1\.3\d\d/perm_user/stdio",
        "decision.decision",
        "Claude Code: an answer that also adds a rule for good is stored as a temporary allowance",
    ),
    Fact(
        r"claude-code/2\.1\.332/invalid_input/stdio",
        "call.input",
        "Claude Code: the file holds the arguments as the tool's schema made them, and large numbers rounded",
    ),
    *(
        Fact(
            r"acp/opencode-v1-parallel",
            path,
            "OpenCode: the file of one capture names its folder otherwise than its frames do",
        )
        for path in ("result.raw.error", "result.error.message")
    ),
]


def is_fact(name: str, path: str) -> bool:
    return any(re.fullmatch(one.where, name) and re.fullmatch(one.path, path) for one in FACTS)


def group(path: str) -> str:
    """A path without names of files, events and ids."""
    if path.startswith("result.raw"):
        return "result.raw"
    head, _, rest = path.partition(".")
    if head in ("changes", "question", "subagent", "terminal", "hook") and rest not in (
        "state",
        "status",
        "mode",
    ):
        last = rest.rpartition(".")[2] if "." in rest and head != "hook" else ""
        return f"{head}.*.{last}" if last else f"{head}.*"
    return "call.locations.*" if path.startswith("call.locations.") else path


def imported(path: Path, out: Path, kind: str | None = None) -> dict[str, Bundle]:
    """The bundles of a source, by session."""
    found = (one for one in import_sources([path], out, kind=kind) if isinstance(one, Imported))
    return {one.session: Bundle(one.bundle) for one in found}


def both(pairs: Pairs, captures: Path, out: Path) -> Iterator[tuple[str, Bundle, Bundle]]:
    """Name, live reading and stored reading of each pair."""
    shared: dict[str, Bundle] = {}
    for number, name in enumerate(pairs.stored):
        if name.startswith("/"):
            shared |= imported(captures / name[1:], out / f"stored{number}")
    for number, folder in enumerate(sorted(captures.glob(pairs.folders))):
        if not (folder / pairs.log).is_file():
            continue
        stored = shared or imported(folder / pairs.stored[0], out / f"{number}s")
        for session, live in imported(folder / pairs.log, out / f"{number}l", pairs.kind).items():
            if session in stored:
                yield folder.relative_to(captures).as_posix(), live, stored[session]


def side(bundle: Bundle) -> Side:
    return Side({entry.id: entry.file for entry in bundle.manifest.streams}, bundle.open, bundle.blob)


@pytest.mark.parametrize("pairs", PAIRS, ids=lambda pairs: pairs.folders)
def test_readings_agree_and_the_page_says_what_each_lacks(
    pairs: Pairs, shared: Path, tmp_path: Path, regold: bool
) -> None:
    has: dict[str, list[tuple[bool, bool]]] = {}
    contradicted = []
    count = 0
    for name, live, stored in both(pairs, shared / "captures", tmp_path):
        count += 1
        with side(live) as left, side(stored) as right:
            assert strangers(left, right) is None, name
            contradicted += [
                (name, told.path, told.left, told.right)
                for call in compare(left, right)
                for told in call.contradicts
                if not is_fact(name, told.path)
            ]
            for one in match(left.calls, right.calls):
                if one.left is not None and one.right is not None:
                    told = [
                        set(map(group, facts_of(*which))) for which in ((left, one.left), (right, one.right))
                    ]
                    for path in set.union(*told):
                        has.setdefault(path, []).append((path in told[0], path in told[1]))
    assert count >= pairs.least
    assert len(has["call.name"]) >= pairs.least // 2
    assert contradicted == []
    signs = {path: tuple(map(sign, zip(*pair, strict=True))) for path, pair in sorted(has.items())}
    rows = [f"| `{path}` | {' | '.join(pair)} |" for path, pair in signs.items() if pair != ("✓", "✓")]
    table = ["| fact | live | file |", "|---|---|---|", *rows]
    hold(pairs.title, table, regold)


def test_the_page_says_what_contradicts(regold: bool) -> None:
    paths: dict[str, list[str]] = {}
    for one in FACTS:
        paths.setdefault(one.why, []).append(f"`{one.path}`")
    hold("What contradicts", [f"- {why} ({', '.join(of)})." for why, of in paths.items()], regold)


def sign(had: tuple[bool, ...]) -> str:
    """Whether a reading has a fact wherever one of the two has it."""
    return "✓" if all(had) else "~" if any(had) else "·"


def hold(title: str, rows: list[str], regold: bool) -> None:
    """Compares one part of the page with what the captures show, or writes it anew."""
    section = "\n".join([f"## {title}", "", *rows, ""])
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if regold:
        text = text.replace(found[0], section + "\n") if found else f"{text}{section}\n"
        PAGE.write_text(text, encoding="utf-8", newline="\n")
        return
    assert found, f"the page has no section {title!r} (pytest --regold)"
    assert found[0].strip() == section.strip(), "the page differs (pytest --regold, and read the difference)"


def test_groups_leave_no_name_of_a_file() -> None:
    assert json.dumps(
        [
            group(path)
            for path in (
                "changes./a/b.c.patch",
                "changes.state",
                "hook.stop",
                "result.raw.a.b",
                "result.status",
                "subagent.a1.status",
                "call.locations./x.y",
                "question.What? Or.answer",
            )
        ]
    ) == json.dumps(
        [
            "changes.*.patch",
            "changes.state",
            "hook.*",
            "result.raw",
            "result.status",
            "subagent.*.status",
            "call.locations.*",
            "question.*.answer",
        ]
    )
