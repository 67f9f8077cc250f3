"""Whose file an entry names: no other passport is read as the one that it logs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from certkit.passport import keys
from certkit.passport.trust import Trust, TrustedKey
from certkit.registry import log as store
from certkit.registry.audit import inspect
from certkit.registry.entry import Claims, Revocation, Stored, read, timestamp
from certkit.registry.fold import is_of
from certkit.registry.reader import reading, show
from certkit.registry.writer import checker
from tests.support.lineages import KEY, NOW, clustered, issue, log, new, policy
from tests.support.passports import evaluation, issued
from tests.support.registries import STRANGER, notice
from tests.support.standings import drafted, issued_in, slip, stored

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport

LINEAGE = "-/courier"


def rules() -> Trust:
    other = TrustedKey(pem=keys.public_pem(STRANGER.public_key()))
    return policy().with_issuer("Other Lab", other)


def another_agents() -> Passport:
    """A faultless passport of another agent, by the same issuer."""
    judged = evaluation(clustered(1000), digest=f"sha256:{7:064x}")
    agent = structs.replace(judged.facts.agent, name="other-agent")
    return issued(structs.replace(judged, facts=structs.replace(judged.facts, agent=agent)))


def logged(folder: Path, file: Passport, claims: Claims, key: PrivateKey, origin: str) -> None:
    """Log claims as whoever keeps the log could, beside whatever file."""
    data = file.to_json()
    store.store_blob(folder, data)
    its = Stored(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    slip(
        folder, drafted("passport", LINEAGE, claims, key, passport=its, log=origin, issued_at=timestamp(NOW))
    )


def claimed(one: Passport, attempt: int = 1) -> Claims:
    return Claims.of(checker(rules())(one.to_json(), NOW), attempt)


def test_a_passport_of_another_lineage_is_none_of_this_one(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, one := issue(1, summary=clustered(600)))
    logged(folder, other := another_agents(), claimed(other, 2), KEY, vkey.name)
    for trust in (None, rules()):
        assert [its.claims.passport_id for its in issued_in(folder, trust)] == [one.passport_id]
    assert "registry.claims" in {its.code for its in inspect(folder, trust=policy(vkey)).findings}


@pytest.mark.parametrize("first", [True, False])
def test_an_id_beside_another_passports_file_makes_nobody_its_issuer(tmp_path: Path, *, first: bool) -> None:
    """Nor is the other file read as that passport's, wherever the entry stands."""
    folder = tmp_path / "r"
    vkey = new(folder)
    one = issue(1)
    theirs = issue(2, key=STRANGER)
    if not first:
        log(folder, one)
    logged(folder, theirs, claimed(one), STRANGER, vkey.name)
    if first:
        log(folder, one)
    slip(
        folder,
        drafted(
            "revoke", LINEAGE, Revocation(passport_id=one.passport_id, reason="evidence-false"), STRANGER
        ),
    )
    for trust in (None, rules()):
        (its,) = issued_in(folder, trust)
        assert its.file.sha256 == hashlib.sha256(one.to_json()).hexdigest()
    assert issued_in(folder, rules())[0].ending is None


@pytest.mark.parametrize("named", ["lineage", "id"])
def test_a_file_that_is_another_passport_does_not_count(tmp_path: Path, named: str) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, issue(1))
    other = another_agents() if named == "lineage" else issue(2)
    claims = claimed(other if named == "lineage" else issue(3), 2)
    logged(folder, other, claims, KEY, vkey.name)
    with reading(folder) as its:
        view = show(its, "courier", at=NOW, trust=rules())
    assert ([row.index for row in view.history], view.left_out) == ([0], [1])


def test_what_is_no_passport_is_nobodys(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, one := issue(1))
    found = read(stored(folder, 0))
    assert is_of(one.to_json(), found)
    assert not is_of(b"{}", found)
    slip(folder, drafted("plan", LINEAGE, notice("x")))
    assert not is_of(one.to_json(), read(stored(folder, 1)))
