"""Drift entries that lie or are left out are found, in a registry and in the tree exported from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from certkit.ground.progress import SILENT
from certkit.registry.admission import inspect
from certkit.registry.drifts import compared, logged
from certkit.registry.export import export
from tests.support.lineages import clustered, issue, log, new, policy
from tests.support.standings import found, silently

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.entry import Drift

GOOD, WORSE, STILL = (
    issue(number, summary=clustered(successes)) for number, successes in enumerate((900, 600, 600), start=1)
)


@pytest.fixture
def truth() -> Drift:
    told = compared([GOOD.to_json(), WORSE.to_json()])
    assert told is not None
    made = logged(WORSE.passport_id, told)
    assert made is not None
    assert (made.result, made.earlier, made.passport_id) == ("DRIFTED", GOOD.passport_id, WORSE.passport_id)
    return made


@pytest.mark.parametrize(
    "lie",
    [
        {"result": "IDENTITY_CHANGED"},
        {"result": "STABLE"},
        {"rows": ()},
        {"rows": ("frr",)},
    ],
)
def test_a_drift_entry_that_lies_is_found(tmp_path: Path, truth: Drift, lie: dict[str, object]) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    trust = policy(new(folder))
    log(folder, GOOD)
    silently(folder, WORSE, structs.replace(truth, **lie))
    export(folder, out, passports=True, progress=SILENT)
    for place in (folder, out):
        assert found(place, trust) == [("entry 2", "registry.drift")]


def test_a_true_one_is_not_and_is_missed_where_it_is_left_out(tmp_path: Path, truth: Drift) -> None:
    trust = policy(new(tmp_path / "told"))
    log(tmp_path / "told", GOOD)
    silently(tmp_path / "told", WORSE, truth)
    assert found(tmp_path / "told", trust) == []
    trust = policy(new(tmp_path / "silent"))
    log(tmp_path / "silent", GOOD)
    silently(tmp_path / "silent", WORSE)
    assert found(tmp_path / "silent", trust) == [("entry 1", "registry.drift")]


def test_one_where_the_passports_show_none_or_said_twice_is_found(tmp_path: Path, truth: Drift) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, GOOD)
    silently(folder, WORSE, truth, truth)
    of_third = structs.replace(truth, earlier=WORSE.passport_id, passport_id=STILL.passport_id)
    silently(folder, STILL, of_third)
    assert found(folder, trust) == [("entry 3", "registry.drift"), ("entry 5", "registry.drift")]


def test_only_neighbours_are_compared(tmp_path: Path, truth: Drift) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, GOOD)
    log(folder, WORSE)
    silently(folder, STILL, structs.replace(truth, passport_id=STILL.passport_id))
    assert found(folder, trust) == [("entry 4", "registry.drift")]


def test_where_a_passport_cannot_be_had_nothing_is_said_of_its_drift(tmp_path: Path, truth: Drift) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    trust = policy(new(folder))
    log(folder, GOOD)
    silently(folder, WORSE, structs.replace(truth, result="STABLE"))
    export(folder, out, passports=False, progress=SILENT)
    assert found(out, trust) == []
    assert "drifted as the entries tell" in inspect(out, trust=trust).not_shown[-1]
    for path in (folder / "blobs").glob("*/*"):
        if path.read_bytes() == GOOD.to_json():
            path.unlink()
    assert found(folder, trust) == [("entry 0", "registry.blob-missing")]
