"""The bytes that are used are those that the manifest lists: a file that is swapped meanwhile is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.assessment.bundles import assess_bundles, bundle_facts
from certkit.bundle.folder import Bundle, open_bundle
from certkit.bundle.writer import BundleWriter, seal
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError
from certkit.probes.running import generate_probes
from certkit.summary.lines import record_lines
from certkit.summary.runs import list_tasks
from certkit.summary.summarise import summarise
from tests.support import bundles
from tests.support.bundles import lines, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECORDS = "records/a.jsonl"
GOOD = lines([run(1), run(2)])
OTHER = GOOD.replace(b"success", b"failure")
"""Of the same size, and no less valid."""


def bundle(tmp_path: Path, *, sealed: bool = True) -> Path:
    root = bundles.write(tmp_path / "b", {"a.jsonl": GOOD})
    if sealed:
        seal(root)
    return root


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(CertkitError) as caught:
        act()
    assert caught.value.code == "bundle.file-changed"
    return str(caught.value)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("read", [summarise, list_tasks, lambda opened: [*record_lines(opened)]])
def test_records_that_are_swapped_after_opening_are_refused(
    tmp_path: Path, read: Callable[[Bundle], object], *, sealed: bool
) -> None:
    root = bundle(tmp_path, sealed=sealed)
    opened = open_bundle(root, defer_records=True)
    (root / RECORDS).write_bytes(OTHER)
    message = refused(lambda: read(opened))
    assert RECORDS in message
    since = "sealing" if sealed else "opening"
    assert f"changed after {since}; expected sha256 {opened.by_path[RECORDS]['sha256']}" in message


def test_records_that_are_swapped_between_two_readings_are_refused(tmp_path: Path) -> None:
    root = bundle(tmp_path)
    opened = open_bundle(root)
    summarise(opened)
    (root / RECORDS).write_bytes(OTHER)
    refused(lambda: [*record_lines(opened)])


def test_a_swapped_file_is_refused_as_changed_whatever_is_wrong_with_its_lines(tmp_path: Path) -> None:
    root = bundle(tmp_path)
    opened = open_bundle(root, defer_records=True)
    (root / RECORDS).write_bytes(GOOD.replace(b"success", b"sucsess"))
    refused(lambda: summarise(opened))


@pytest.mark.parametrize("deferred", [True, False])
def test_records_of_another_size_are_refused_at_opening(tmp_path: Path, *, deferred: bool) -> None:
    root = bundle(tmp_path)
    (root / RECORDS).write_bytes(GOOD + GOOD)
    message = refused(lambda: open_bundle(root, defer_records=deferred))
    assert f"({len(GOOD):,} bytes)" in message


def test_records_are_hashed_at_opening_or_when_they_are_read(tmp_path: Path) -> None:
    root = bundle(tmp_path)
    (root / RECORDS).write_bytes(OTHER)
    open_bundle(root, defer_records=True)
    refused(lambda: open_bundle(root))
    refused(lambda: assess_bundles(root))


@pytest.mark.parametrize(
    ("path", "good", "other"),
    [
        (
            "calibration/judge.jsonl",
            b'{"item":"1","rater":"j","score":1}\n',
            b'{"item":"1","rater":"j","score":0}\n',
        ),
        ("traces/rules.json", b'{"memory_tools":["a"]}', b'{"memory_tools":["b"]}'),
    ],
)
def test_what_summarising_reads_beside_records_may_not_be_swapped(
    tmp_path: Path, path: str, good: bytes, other: bytes
) -> None:
    writer = BundleWriter(tmp_path / "b")
    writer.add(run(1), ("messages", b'{"messages": []}'))
    writer.write(path, good)
    writer.describe({"agent": {"name": "a", "version": "1"}, "protocol": {"origin": "measured"}})
    opened = writer.seal()
    (tmp_path / "b" / path).write_bytes(other)
    assert path in refused(lambda: summarise(opened))


def test_a_swapped_trace_is_refused(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b")
    writer.add(run(1), ("messages", b'{"messages": []}'))
    writer.describe({"agent": {"name": "a", "version": "1"}, "protocol": {"origin": "measured"}})
    opened = writer.seal()
    [trace] = (tmp_path / "b" / "traces").iterdir()
    other = BundleWriter(tmp_path / "other")
    other.add(run(1), ("messages", b'{"messages": [{"role": "assistant"}]}'))
    other.close()
    [swapped] = (tmp_path / "other" / "traces").iterdir()
    swapped.replace(trace)
    assert trace.name in refused(lambda: summarise(opened))


def test_swapped_commitments_are_refused(tmp_path: Path) -> None:
    generate_probes(tmp_path / "b", instances=1)
    writer = BundleWriter(tmp_path / "b")
    writer.describe({"agent": {"name": "a", "version": "1"}, "protocol": {"origin": "measured"}})
    opened = writer.seal()
    summary = summarise(opened)
    inventory = tmp_path / "b" / "integrity" / "inventory.json"
    inventory.write_bytes(inventory.read_bytes() + b" ")
    assert "integrity/inventory.json" in refused(lambda: bundle_facts(opened, summary))


def test_a_file_that_was_added_after_opening_is_not_read(tmp_path: Path) -> None:
    opened = open_bundle(bundle(tmp_path))
    (opened.root / "late.json").write_bytes(canonical.line({}))
    with pytest.raises(InputError) as caught:
        opened.read("late.json", limit=100)
    assert caught.value.code == "bundle.file-unlisted"


def test_a_file_is_read_up_to_a_limit_and_hashed_to_its_end(tmp_path: Path) -> None:
    opened = open_bundle(bundle(tmp_path))
    assert opened.read(RECORDS, limit=len(GOOD)) == GOOD
    with pytest.raises(InputError) as caught:
        opened.read(RECORDS, limit=len(GOOD) - 1)
    assert caught.value.code == "json.too-large"
    (opened.root / RECORDS).write_bytes(GOOD + b"\n")
    refused(lambda: opened.read(RECORDS, limit=3))
