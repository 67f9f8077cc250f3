"""A lineage has one spelling: another is refused, and an audit lists those that were logged before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import MismatchError
from certkit.registry.ledger import Ledger
from certkit.registry.state import spelling
from tests.support import lineages
from tests.support import registries as build
from tests.support.registries import LOG_KEY, STRANGER

if TYPE_CHECKING:
    from pathlib import Path

SPELT = (
    "Lab/agent",
    "lab/ag\u00adent",
    "lab/agent\u200b",
    "lab /agent",
    "\uff4cab/agent",
    "l\u0430b/ag\u0415nt",
    "lab/\u03b1gent",
    "lab/\u00e1gent",
    "l-ab/agent.",
)


@pytest.mark.parametrize("lineage", SPELT)
def test_another_spelling_is_no_new_lineage(tmp_path: Path, lineage: str) -> None:
    build.filled(tmp_path / "r", 1)
    with pytest.raises(MismatchError, match="holds 'lab/agent'") as caught:
        build.append(tmp_path / "r", build.passport(1, lineage=lineage))
    assert caught.value.code == "registry.lineage"
    assert build.append(tmp_path / "r", build.passport(1)).index == 1, "nothing was added"


def test_another_name_is_a_new_lineage(tmp_path: Path) -> None:
    build.filled(tmp_path / "r", 1)
    for number, lineage in enumerate(("lab/agent-2", "labs/agent", "-/agent"), 1):
        assert build.append(tmp_path / "r", build.passport(number, lineage=lineage)).index == number


def test_a_spelling_that_nobody_trusted_logged_blocks_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = lineages.policy(build.new(folder))
    with build.opened(folder) as registry:
        append = partial(registry.append, check=build.check, log_key=LOG_KEY, at=build.AT)
        append(build.passport(0, lineage="lab/Agent"), submitter=STRANGER)
        done = append(build.passport(1), submitter=lineages.KEY, trust=trust)
    assert (done.index, done.new) == (1, True)


def test_an_audit_lists_spellings_that_were_logged_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vkey = build.filled(tmp_path / "r", 1)
    build.append(tmp_path / "r", build.passport(1, lineage="lab/other"))
    assert not build.audited(tmp_path / "r", vkey).notes
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "alike", lambda _self, _lineage: None)
        build.append(tmp_path / "r", build.passport(2, lineage="Lab/Agent"))
    report = build.audited(tmp_path / "r", vkey)
    assert report.total == 0
    assert report.notes == ("the lineages 'lab/agent', 'Lab/Agent' differ in spelling alone",)
    assert build.append(tmp_path / "r", build.passport(3, lineage="Lab/Agent")).new, "it is no new one"


def test_provider_and_name_are_spelt_apart() -> None:
    assert spelling("Lab / Agent") == spelling("lab/agent") != spelling("labagent")
