"""Making a bundle: all or nothing, or line by line over many sittings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import RECORD_FILE, BundleWriter, new_bundle, record_line, seal
from certkit.ground import canonical
from certkit.ground.errors import InputError, UsageError
from certkit.record.trace import TracePacker
from certkit.summary.summarise import summarise
from tests.support.bundles import run

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST: dict[str, Any] = {"agent": {"name": "a", "version": "1"}, "protocol": {"origin": "measured"}}
LOG = ("messages", b'{"messages": [{"role": "assistant"}]}')


def test_a_new_bundle_is_there_when_the_block_ends(tmp_path: Path) -> None:
    with new_bundle(tmp_path / "b") as bundle:
        bundle.add(run(1))
        bundle.write("attested/survey.txt", b"yes")
        bundle.describe(MANIFEST)
        sealed = bundle.seal()
        assert not (tmp_path / "b").exists()
    opened = open_bundle(tmp_path / "b")
    assert opened.facts.digest == sealed.facts.digest
    assert list(opened.by_path) == ["attested/survey.txt", RECORD_FILE]
    assert summarise(opened).records == 1


class SomeError(Exception):
    pass


def test_an_exception_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted() -> None:
        with new_bundle(tmp_path / "b") as bundle:
            bundle.add(run(1), LOG)
            raise SomeError

    with pytest.raises(SomeError):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_a_folder_with_something_in_it_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").touch()
    with pytest.raises(UsageError) as caught, new_bundle(tmp_path / "b"):
        pass
    assert caught.value.code == "file.exists"
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["mine"]


def test_a_record_names_the_trace_file_that_holds_its_log(tmp_path: Path) -> None:
    with new_bundle(tmp_path / "b") as bundle:
        bundle.add(run(1), LOG)
        bundle.add(run(2))
        bundle.add(run(3) | {"x_score": 0.5}, LOG)
        bundle.describe(MANIFEST)
    [trace] = (tmp_path / "b" / "traces").iterdir()
    digest = f"sha256:{trace.name.partition('.')[0]}"
    rows = [canonical.loads(line) for line in (tmp_path / "b" / RECORD_FILE).read_bytes().splitlines()]
    assert rows == [run(1) | {"trace": digest}, run(2), run(3) | {"x_score": 0.5, "trace": digest}]
    assert summarise(open_bundle(tmp_path / "b")).traces.enclosed == 2


def test_records_begin_again_after_they_were_closed(tmp_path: Path) -> None:
    bundle = BundleWriter(tmp_path / "b")
    for number in (1, 2):
        bundle.add(run(number))
        bundle.close()
    assert (tmp_path / "b" / RECORD_FILE).read_bytes() == record_line(run(2))


def test_a_value_that_json_has_not_is_no_record(tmp_path: Path) -> None:
    with BundleWriter(tmp_path / "b") as bundle:
        with pytest.raises(ValueError, match="JSON"):
            bundle.add(run(1) | {"quality_factor": float("nan")})
        bundle.add(run(2))
    assert (tmp_path / "b" / RECORD_FILE).read_bytes() == record_line(run(2))


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "con", "a\\b"])
def test_no_file_leaves_the_folder(tmp_path: Path, path: str) -> None:
    bundle = BundleWriter(tmp_path / "b")
    for act in (lambda: bundle.write(path, b""), lambda: bundle.appending(path), lambda: bundle.resume(path)):
        with pytest.raises(InputError) as caught:
            act()
        assert caught.value.code == "bundle.path-unsafe"
    assert not list(tmp_path.iterdir())


def test_a_manifest_of_another_form_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        BundleWriter(tmp_path / "b").describe(MANIFEST | {"agent": {"name": "a"}}, code="import.source")
    assert caught.value.code == "import.source"
    assert not (tmp_path / "b").exists()


def test_a_run_that_was_killed_goes_on_behind_its_last_whole_line(tmp_path: Path) -> None:
    """As a runner does: a line for each run, a trace for each, and the seal at the end."""
    with new_bundle(tmp_path / "b") as begun:
        begun.describe(MANIFEST)
    for number in (1, 2):
        bundle = BundleWriter(tmp_path / "b")
        bundle.resume(RECORD_FILE)
        with bundle.appending(RECORD_FILE) as append:
            packer = TracePacker()
            packer.add(str(number), *LOG)
            append(record_line(run(number) | {"trace": bundle.enclose(packer)}))
            assert (tmp_path / "b" / RECORD_FILE).read_bytes().count(b"\n") == number
            append(record_line(run(9))[:-5])  # the kill
        (tmp_path / "b" / ".bundle.json.abc").touch()
    bundle.resume(RECORD_FILE)
    summary = summarise(bundle.seal())
    assert (summary.records, summary.traces.enclosed) == (2, 2)


def test_an_attempt_is_declared_by_sealing_again(tmp_path: Path) -> None:
    with new_bundle(tmp_path / "b") as bundle:
        bundle.add(run(1))
        bundle.describe(MANIFEST)
        first = bundle.seal()
    again = seal(tmp_path / "b", attempt=2)
    assert (first.manifest.protocol.attempt, again.manifest.protocol.attempt) == (None, 2)
    assert open_bundle(tmp_path / "b").facts.digest == again.facts.digest != first.facts.digest
