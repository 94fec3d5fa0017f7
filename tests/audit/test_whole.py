"""Lies about more than one leaf, what is read as evidence, and what happens when evidence is gone."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.audit.conftest import Forged

from callsheet.audit import Finding, Totals, audit_bundle
from callsheet.audit.finding import COUNT, REF
from callsheet.records.bundle import Bundle
from callsheet.registry import HARNESSES, load
from callsheet.registry.via import VIAS
from callsheet.wire.blobs import digest

Records = list[dict[str, Any]]


def of(records: Records, kind: str, **members: Any) -> list[dict[str, Any]]:
    return [one for one in records if one["type"] == kind and members.items() <= one.items()]


def named(found: list[Finding], record: dict[str, Any]) -> set[str]:
    return {one.path for one in found if one.record == record["id"]}


def renumbered(records: Records) -> Records:
    """The records as a liar would number them: ids and revisions fit again."""
    ids = {one["id"]: f"r{number}" for number, one in enumerate(records)}
    for number, one in enumerate(records):
        one["seq"], one["id"] = number, f"r{number}"
        if "supersedes" in one:
            one["supersedes"] = ids.get(one["supersedes"], one["supersedes"])
    return records


def test_swapped_results(forged: Forged) -> None:
    records = forged.records()
    one, other = of(records, "tool_result", callId="c-run")[0], of(records, "tool_result", callId="c-glob")[0]
    one["callId"], other["callId"] = other["callId"], one["callId"]
    forged.write(records)
    found = forged.findings()
    assert "/callId" in named(found, one)
    assert "/callId" in named(found, other)
    assert {found.rule for found in found if found.path == "/callId"} == {"ASR-262"}


def test_swapped_contents(forged: Forged) -> None:
    records = forged.records()
    one, other = of(records, "tool_result", callId="c-run")[0], of(records, "tool_result", callId="c-bad")[0]
    one["content"], other["content"] = other["content"], one["content"]
    forged.write(records)
    found = forged.findings()
    assert named(found, one) == named(found, other) == {"/content/0/text"}


@pytest.mark.parametrize("kind", ["tool_call", "tool_result", "reasoning"])
def test_a_record_left_out(forged: Forged, kind: str) -> None:
    records = forged.records()
    gone = of(records, kind)[-1]
    records.remove(gone)
    forged.write(renumbered(records))
    line = gone["native"]["refs"][0]["line"]
    assert [
        (one.rule, one.line) for one in forged.findings() if one.path == "/sources/s0" and one.line == line
    ]


def test_every_record_left_out_shows(forged: Forged) -> None:
    """Whatever stands alone for a native line leaves that line without a record."""
    records = forged.records()
    cited = [ref["line"] for one in records[1:] for ref in one["native"]["refs"] if "line" in ref]
    alone = [
        one
        for one in records[1:]
        if one["type"] not in ("tool_call", "tool_result")
        and "supersedes" not in one
        and any(
            ref.get("source") == "s0" and cited.count(ref.get("line")) == 1 for ref in one["native"]["refs"]
        )
    ]
    assert len(alone) > 20
    for gone in alone:
        kept = [copy.deepcopy(one) for one in records if one is not gone]
        forged.write(renumbered(kept))
        lines = {ref.get("line") for ref in gone["native"]["refs"]}
        assert [one for one in forged.findings() if one.rule == COUNT and one.line in lines], gone


def test_a_result_told_twice(forged: Forged) -> None:
    records = forged.records()
    twin = copy.deepcopy(of(records, "tool_result", callId="c-run")[0])
    forged.write(renumbered([*records, twin]))
    assert "/native/refs/0/pointer" in named(forged.findings(), twin)


def test_a_result_made_up_for_a_dangling_call(forged: Forged) -> None:
    records = forged.records()
    call = of(records, "tool_call", callId="c-raw")[0]
    ref = {**call["native"]["refs"][0], "role": "result"}
    made_up = {
        "type": "tool_result",
        "seq": len(records),
        "id": f"r{len(records)}",
        "ts": call["ts"],
        "native": {"refs": [ref]},
        "callId": "c-raw",
        "linkage": "exact",
        "status": "completed",
        "capture": {"content": {"state": "absent"}},
    }
    forged.write([*records, made_up])
    found = forged.findings()
    assert "/callId" in named(found, made_up)
    assert COUNT in {one.rule for one in found if one.record == made_up["id"]}


def test_a_record_that_cites_nothing(forged: Forged) -> None:
    records = forged.records()
    result = of(records, "tool_result", callId="c-run")[0]
    nothing: tuple[Any, ...] = ({}, {"refs": []}, None)
    for native in nothing:
        result["native"] = native
        forged.write(records)
        assert "/native/refs" in named(forged.findings(), result)


def test_an_id_that_is_another_records(forged: Forged) -> None:
    records = forged.records()
    for one, name in ((records[5], records[9]["id"]), (records[20], "own"), (records[21], "own")):
        one["id"] = name
    forged.write(records)
    assert {(found.line, found.path) for found in forged.findings() if found.path == "/id"} == {
        (6, "/id"),
        (10, "/id"),
        (22, "/id"),
    }


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("exec", {"exitCode": 0}),
        ("durationMs", 12),
        ("startedAt", "2026-11-30T10:00:00.000Z"),
        ("displayContent", [{"type": "text", "text": "a"}]),
        ("permission", {"decision": "allow_once", "decidedBy": "user"}),
        ("provider", {"kind": "builtin", "identity": "exact"}),
        ("_meta", {"callsheet/x": 1}),
        ("unknownMember", 1),
    ],
)
def test_a_member_made_up(forged: Forged, member: str, value: Any) -> None:
    records = forged.records()
    result = of(records, "tool_result", callId="c-half")[0]
    assert member not in result
    result[member] = value
    forged.write(records)
    assert any(path.startswith(f"/{member}") for path in named(forged.findings(), result))


@pytest.mark.parametrize("kind", ["tool_call", "terminal", "hook"])
def test_members_made_up_on_others(forged: Forged, kind: str) -> None:
    records = forged.records()
    record = of(records, kind)[0]
    for member in ("title", "startedAt", "awaited", "handlerKind", "signal", "parentCallId", "locations"):
        record[member] = "x"
    forged.write(records)
    assert len(named(forged.findings(), record)) == 7


def test_a_blob_with_other_bytes(forged: Forged) -> None:
    records = forged.records()
    result = of(records, "tool_result", callId="c-pic")[0]
    name = result["content"][0]["blob"]["blob"].removeprefix("sha256:")
    path = forged.folder / "blobs" / "sha256" / name[:2] / name[2:]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert "/content/0/blob/blob" in named(forged.findings(), result)
    path.unlink()
    assert "/content/0/blob/blob" in named(forged.findings(), result)


def test_an_external_blob_with_another_value(forged: Forged) -> None:
    records = forged.records()
    record = next(
        one for one in records if one.get("capture", {}).get("value", {}).get("state") == "external"
    )
    data = b'{"something": "else"}'
    name = digest(data)
    path = forged.folder / "blobs" / "sha256" / name[:2] / name[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    record["capture"]["value"]["blob"] = {
        "blob": f"sha256:{name}",
        "size": len(data),
        "mimeType": "application/json",
    }
    forged.write(records)
    assert "/capture/value/state" in named(forged.findings(), record)


def test_a_manifest_that_fits_no_stream(forged: Forged) -> None:
    forged.manifest["streams"][0]["records"] += 1
    forged.manifest["streams"][1]["sha256"] = "0" * 64
    forged.save()
    assert [(one.path, one.rule) for one in forged.findings()] == [
        ("/streams/0/records", REF),
        ("/streams/1/sha256", REF),
    ]


# -- what is read as evidence --------------------------------------------------------------------------------------


def moved(forged: Forged) -> None:
    """The sources are gone: the manifest and the session records name a place where nothing is."""
    for number in range(len(forged.manifest["streams"])):
        records = forged.records(number)
        for one in records[0]["sources"]:
            one["path"] = f"/gone{one['path']}"
        forged.write(records, number)
    for one in forged.manifest["sources"]:
        one["path"] = f"/gone{one['path']}"
    forged.save()


def test_the_copy_serves_when_the_source_is_gone(forged: Forged) -> None:
    moved(forged)
    totals = Totals()
    found = list(audit_bundle(Bundle(forged.folder), totals))
    assert found == []
    assert set(totals.used.values()) == {"copy"}
    assert totals.facts > 2000


def test_a_copy_with_other_bytes_is_no_evidence(forged: Forged) -> None:
    import zstandard

    moved(forged)
    path = forged.folder / "native" / "s0.zst"
    text = zstandard.ZstdDecompressor().decompress(path.read_bytes(), max_output_size=1 << 26)
    for other in (text.replace(b"Go on.", b"Go off"), text[:-1], text + b"\n", b""):
        path.write_bytes(zstandard.ZstdCompressor().compress(other))
        found = forged.findings()
        assert [one.path for one in found] == ["/sources/s0"]
        assert "copy cannot be read" in found[0].message
    path.write_bytes(b"no zstd")
    assert [one.path for one in forged.findings()] == ["/sources/s0"]


def test_without_source_and_copy_nothing_is_said(forged: Forged) -> None:
    moved(forged)
    for one in forged.manifest["sources"]:
        one.pop("native")
    forged.save()
    totals = Totals()
    found = list(audit_bundle(Bundle(forged.folder), totals))
    assert {one.record for one in found} == {None}
    assert len(found) == len(forged.manifest["sources"])
    assert totals.unread == totals.records


def test_a_source_that_changed_is_not_read(forged: Forged, native: Path) -> None:
    path = Path(forged.manifest["sources"][0]["path"])
    assert path.is_file()
    true = path.read_bytes()
    try:
        path.write_bytes(true.replace(b"Go on.", b"Go off"))
        totals = Totals()
        assert list(audit_bundle(Bundle(forged.folder), totals)) == []
        assert totals.used["s0"] == "copy"
    finally:
        path.write_bytes(true)


def test_what_is_no_file_is_not_opened(forged: Forged, tmp_path: Path) -> None:
    import os

    moved(forged)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    forged.manifest["sources"][0]["path"] = str(pipe)
    forged.save()
    found = forged.findings()
    assert "/sources/0/path" in {one.path for one in found}
    totals = Totals()
    list(audit_bundle(Bundle(forged.folder), totals))
    assert totals.used["s0"] == "copy"


def test_masked_places_are_read_in_the_copy_alone(forged: Forged) -> None:
    for one in forged.manifest["sources"]:
        one["masked"] = 1
    forged.save()
    totals = Totals()
    assert list(audit_bundle(Bundle(forged.folder), totals)) == []
    assert set(totals.used.values()) == {"copy"}
    for one in forged.manifest["sources"]:
        one.pop("native")
    forged.save()
    totals = Totals()
    assert {one.path[:9] for one in audit_bundle(Bundle(forged.folder), totals)} == {"/sources/"}
    assert set(totals.used.values()) == {"none"}


def test_an_agent_that_no_registry_knows(forged: Forged) -> None:
    records = forged.records()
    records[0]["agent"]["name"] = "nobody"
    forged.write(records)
    assert [one.path for one in forged.findings() if one.stream == forged.manifest["streams"][0]["id"]] == [
        "/agent/name"
    ]


# -- the registries ------------------------------------------------------------------------------------------------


def test_every_table_has_a_name_of_its_own() -> None:
    from callsheet.audit import tables

    groups = [group for name, group in vars(tables).items() if isinstance(group, dict) and name != "TABLES"]
    names = [name for group in groups if set(group) <= set(tables.TABLES) for name in group]
    assert len(names) > 50
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", HARNESSES)
def test_facts_speak_the_closed_language(name: str) -> None:
    from callsheet.audit.tables import TABLES
    from callsheet.registry.when import holds

    registry = load(name)
    for fact in registry.fact:
        assert fact.via in VIAS, fact
        assert (fact.via == "table") == (fact.table is not None), fact
        assert fact.table is None or fact.table in TABLES, fact
        for pointer in fact.pointers:
            named = pointer in ("", "#", "@path", "@stem", "@folder", "@table") or pointer.startswith(
                ("@key/", "@line/")
            )
            assert named or pointer[0] in "./", fact
        for test in fact.when.values():
            holds(test, None)
    facts = {
        json.dumps([one.record, one.role, one.member, one.pointer, one.via, str(one)])
        for one in registry.fact
    }
    assert len(facts) == len(registry.fact), "an entry stands twice"
