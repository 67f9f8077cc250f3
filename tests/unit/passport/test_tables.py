"""The rows of a claim are those of the table whose digest it names, where that comes with certkit."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit import canonical, passport, workflow
from certkit.passport import agreement, sealed, tables
from certkit.passport.statement import Predicate
from tests.support import build
from tests.support.making import ISSUER, KEY, NOW, issued, of_bundle, runs, sealed_bundle, trust

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LATER = NOW + timedelta(days=1)


def verified(document: dict[str, Any]) -> passport.Verification:
    data = canonical.line(sealed.seal(canonical.canonical(document), KEY))
    return passport.verify(data, trust=trust(), at=LATER)


def rows(document: dict[str, Any]) -> dict[str, Any]:
    return {row["id"]: row for row in document["predicate"]["criteria"]}


def test_the_tables_are_those_of_the_packaged_profiles() -> None:
    profiles = [workflow.load_profile(name) for name in workflow.packaged_profiles()]
    assert {key: table["id"] for key, table in tables.packaged().items()} == {
        one.digest: one.id for one in profiles
    }


@pytest.mark.parametrize("name", workflow.packaged_profiles())
def test_every_claim_under_a_packaged_profile_has_its_rows(name: str, tmp_path: Path) -> None:
    strong = build.strong()
    for made in (
        passport.issue(
            build.judged(strong, name),
            strong,
            issuer=ISSUER,
            key=KEY,
            not_before=NOW,
            not_after=NOW + passport.VALIDITY,
        ),
        of_bundle(sealed_bundle(tmp_path / "some"), profile=name),
        of_bundle(sealed_bundle(tmp_path / "none", runs(successes=0)), profile=name),
    ):
        found = passport.verify(made.to_json(), trust=trust(), at=LATER)
        assert found.verdict == "verified", found.deciding


def easy(document: dict[str, Any]) -> None:
    """Claim Tier 3 by one row that nobody can miss."""
    row = rows(document)["r_op"]
    bounded = {"status": "met", "bound": "0.100000", "confidence": "0.990000"}
    easily = {"operator": ">=", "threshold": "0.000001", "table": "met", "bounded": bounded}
    row["tiers"] = dict.fromkeys("123", easily)
    document["predicate"]["criteria"] = [row]
    judged = document["predicate"]["assessment"]
    judged |= {"tier": 3, "table": {"tier": 3}, "bounded": {"tier": 3}, "status": "met", "binding": []}


def test_an_easier_table_under_a_known_digest_is_refused() -> None:
    document = canonical.loads(issued().payload)
    easy(document)
    assert agreement.disagreement(msgspec.convert(document, passport.Statement)) is None
    found = verified(document)
    assert (found.verdict, found.exit_code) == ("rejected", 1)
    assert found.deciding is not None
    assert (found.deciding.id, found.deciding.code) == ("types", "passport.statement")


def test_rows_of_a_table_that_is_not_at_hand_are_said_not_to_be_checked() -> None:
    document = canonical.loads(issued().payload)
    easy(document)
    judged = document["predicate"]["assessment"]["profile"]
    judged["digest"] = "sha256:" + "0" * 64
    found = verified(document)
    assert found.verdict == "verified"
    assert any(item.startswith("criteria: whether they are those") for item in found.not_checked)
    known = passport.verify(issued().to_json(), trust=trust(), at=LATER)
    assert not any(item.startswith("criteria:") for item in known.not_checked)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a criterion left out": (
        lambda d: d["predicate"]["criteria"].remove(rows(d)["pei"]),
        "its criteria are not those of profile hb-eval-2026: pei, which it leaves out",
    ),
    "a criterion more": (
        lambda d: d["predicate"]["criteria"].append(rows(d)["pei"] | {"id": "other"}),
        "its criteria are not those of profile hb-eval-2026: other, which the profile does not have",
    ),
    "another threshold": (
        lambda d: rows(d)["r_op"]["tiers"]["3"].update(threshold="0.900000"),
        "criterion r_op of profile hb-eval-2026 asks for > 0.950000 at Tier 3, and here for > 0.900000",
    ),
    "another operator": (
        lambda d: rows(d)["r_op"]["tiers"]["3"].update(operator=">="),
        "criterion r_op of profile hb-eval-2026 asks for > 0.950000 at Tier 3, and here for >= 0.950000",
    ),
    "a tier left out": (
        lambda d: rows(d)["r_op"]["tiers"].pop("2"),
        "criterion r_op of profile hb-eval-2026 asks for > 0.800000 at Tier 2, and here for nothing",
    ),
    "another metric": (
        lambda d: rows(d)["pei"].update(metric="frr"),
        "criterion pei of profile hb-eval-2026 is on pei, and here on frr",
    ),
    "a row that is no longer provisional, or now is": (
        lambda d: rows(d)["pei"].update(provisional=not rows(d)["pei"]["provisional"]),
        "criterion pei of profile hb-eval-2026 is called provisional in one of the two",
    ),
    "another drift margin": (
        lambda d: rows(d)["r_op"].update(drift_margin="0.900000"),
        "criterion r_op of profile hb-eval-2026 has another drift margin than 0.900000",
    ),
    "less confidence": (
        lambda d: rows(d)["r_op"]["tiers"]["3"]["bounded"].update(confidence="0.500000"),
        "criterion r_op at Tier 3 is bounded with less confidence than 0.99",
    ),
    "a lower bound above the value": (
        lambda d: rows(d)["r_op"]["tiers"]["1"]["bounded"].update(bound="1.000001"),
        "criterion r_op at Tier 1 has a lower bound above its value",
    ),
    "another reading": (
        lambda d: d["predicate"]["assessment"]["profile"].update(reading="bounded"),
        "the bounded reading decides, and the table reading under profile hb-eval-2026",
    ),
    "another name": (
        lambda d: d["predicate"]["assessment"]["profile"].update(id="hb-eval-2027"),
        "it names profile hb-eval-2027 with the digest of hb-eval-2026",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_the_tables_is_named(name: str) -> None:
    change, words = CHANGES[name]
    document = canonical.loads(issued().payload)
    assert tables.disagreement(typed(document)) is None
    changed = copy.deepcopy(document)
    change(changed)
    assert tables.disagreement(typed(changed)) == words


def test_a_tier_that_the_table_does_not_have_is_named() -> None:
    document = canonical.loads(issued().payload)
    tiers = rows(document)["r_op"]["tiers"]
    tiers["4"] = copy.deepcopy(tiers["3"])
    said = tables.disagreement(typed(document))
    assert said is not None
    assert "criterion r_op of profile hb-eval-2026 asks for" in said
    assert "at Tier 4" in said


def test_a_row_without_a_bound_is_held_to_the_table_all_the_same() -> None:
    document = canonical.loads(issued().payload)
    tier = rows(document)["r_op"]["tiers"]["1"]
    tier["bounded"] = None
    assert tables.disagreement(typed(document)) is None
    tier["threshold"] = "0.100000"
    assert tables.disagreement(typed(document)) is not None


def typed(document: dict[str, Any]) -> Predicate:
    return msgspec.convert(document["predicate"], Predicate)
