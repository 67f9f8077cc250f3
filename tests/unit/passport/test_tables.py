"""The rows of a claim are those of the table whose digest it names, where that comes with certkit."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit import workflow
from certkit.ground import canonical
from certkit.passport import bounds, derived, payload, sealed, statement
from certkit.passport.issuing import VALIDITY, issue
from certkit.passport.statement import Predicate, Statement
from certkit.passport.verification import verify
from tests.support import build
from tests.support.agreeing import agree
from tests.support.making import ISSUER, KEY, NOW, issued, of_bundle, runs, sealed_bundle, trust

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from certkit.passport.opening import Verification

LATER = NOW + timedelta(days=1)


def verified(document: dict[str, Any]) -> Verification:
    data = canonical.line(sealed.seal(canonical.canonical(document), KEY))
    return verify(data, trust=trust(), at=LATER)


def rows(document: dict[str, Any]) -> dict[str, Any]:
    return {row["id"]: row for row in document["predicate"]["criteria"]}


@pytest.mark.parametrize("name", workflow.packaged_profiles())
@pytest.mark.parametrize("known_by", ["id", "digest"])
def test_a_packaged_profile_is_found_by_its_id_and_by_its_digest(name: str, known_by: str) -> None:
    profile = workflow.load_profile(name)
    named = {"id": "house-rule", "digest": "sha256:" + "0" * 64} | {known_by: getattr(profile, known_by)}
    table = payload.packaged(statement.Profile(**named, reading="table"))
    assert table is not None
    assert table["id"] == profile.id


@pytest.mark.parametrize("name", workflow.packaged_profiles())
def test_every_claim_under_a_packaged_profile_has_its_rows(name: str, tmp_path: Path) -> None:
    strong = build.strong()
    for made in (
        issue(
            build.judged(strong, name),
            strong,
            issuer=ISSUER,
            key=KEY,
            not_before=NOW,
            not_after=NOW + VALIDITY,
        ),
        of_bundle(sealed_bundle(tmp_path / "some"), profile=name),
        of_bundle(sealed_bundle(tmp_path / "none", runs(successes=0)), profile=name),
    ):
        found = verify(made.to_json(), trust=trust(), at=LATER)
        assert found.verdict == "verified", found.deciding


def easy(document: dict[str, Any]) -> None:
    """Claim Tier 3 by one row that nobody can miss."""
    row = rows(document)["r_op"]
    easily = {"operator": ">=", "threshold": "0.000001", "table": "met"}
    row["tiers"] = dict.fromkeys("123", easily)
    document["predicate"]["criteria"] = [row]
    judged = document["predicate"]["assessment"]
    judged |= {"tier": 3, "table": {"tier": 3}, "bounded": {"tier": 0}, "status": "met", "binding": []}
    agree(document)


def test_an_easier_table_under_a_known_digest_is_refused() -> None:
    document = canonical.loads(issued().payload)
    easy(document)
    easier = msgspec.convert(document, Statement)
    assert derived.rebuilt(easier.predicate) == easier
    found = verified(document)
    assert (found.verdict, found.exit_code) == ("rejected", 1)
    assert found.deciding is not None
    assert (found.deciding.id, found.deciding.code) == ("types", "passport.statement")


def test_rows_of_a_table_that_is_not_at_hand_are_said_not_to_be_checked() -> None:
    document = canonical.loads(issued().payload)
    easy(document)
    judged = document["predicate"]["assessment"]["profile"]
    judged |= {"id": "house-rule", "digest": "sha256:" + "0" * 64}
    agree(document)
    found = verified(document)
    assert found.verdict == "verified"
    assert any(item.startswith("criteria: whether they are those") for item in found.not_checked)
    known = verify(issued().to_json(), trust=trust(), at=LATER)
    assert not any(item.startswith("criteria:") for item in known.not_checked)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a criterion left out": (
        lambda d: d["predicate"]["criteria"].remove(rows(d)["pei"]),
        "criteria pei: claimed nothing, hb-eval-2026 has {",
    ),
    "a criterion more": (
        lambda d: d["predicate"]["criteria"].append(rows(d)["pei"] | {"id": "other"}),
        "criteria other: claimed {",
    ),
    "another threshold": (
        lambda d: rows(d)["r_op"]["tiers"]["3"].update(threshold="0.900000"),
        "criteria r_op tiers 3 2: claimed 0.900000, hb-eval-2026 has 0.950000",
    ),
    "another operator": (
        lambda d: rows(d)["r_op"]["tiers"]["3"].update(operator=">="),
        "criteria r_op tiers 3 1: claimed >=, hb-eval-2026 has >",
    ),
    "a tier left out": (
        lambda d: rows(d)["r_op"]["tiers"].pop("2"),
        "criteria r_op tiers 2: claimed nothing, hb-eval-2026 has [",
    ),
    "another metric": (
        lambda d: rows(d)["pei"].update(metric="frr"),
        "criteria pei metric: claimed frr, hb-eval-2026 has pei",
    ),
    "a row that is no longer provisional, or now is": (
        lambda d: rows(d)["pei"].update(provisional=not rows(d)["pei"]["provisional"]),
        "criteria pei provisional: claimed ",
    ),
    "another drift margin": (
        lambda d: rows(d)["r_op"].update(drift_margin="0.900000"),
        "criteria r_op margin: claimed 0.900000, hb-eval-2026 has 0.050000",
    ),
    "less confidence": (
        lambda d: rows(d)["r_op"]["tiers"]["3"]["bounded"].update(confidence="0.500000"),
        "criteria r_op tiers 3 3: claimed 0.500000,",
    ),
    "another reading": (
        lambda d: d["predicate"]["assessment"]["profile"].update(reading="bounded"),
        "profile 3: claimed bounded, hb-eval-2026 has table",
    ),
    "another digest": (
        lambda d: d["predicate"]["assessment"]["profile"].update(digest="sha256:" + "0" * 64),
        "profile 2: claimed sha256:0000",
    ),
    "another name": (
        lambda d: d["predicate"]["assessment"]["profile"].update(id="hb-eval-2027"),
        "profile 1: claimed hb-eval-2027, hb-eval-2026 has hb-eval-2026",
    ),
    "a name in other letters": (
        lambda d: d["predicate"]["assessment"]["profile"].update(id="hb-ev\u0430l-2026"),
        "profile 1: claimed hb-ev\u0430l-2026, hb-eval-2026 has hb-eval-2026, in letters that look alike",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_the_tables_is_named(name: str) -> None:
    change, words = CHANGES[name]
    document = canonical.loads(issued().payload)
    assert differences(document) == []
    changed = copy.deepcopy(document)
    change(changed)
    assert differences(changed)[0].startswith(words)


def test_a_tier_that_the_table_does_not_have_is_named() -> None:
    document = canonical.loads(issued().payload)
    tiers = rows(document)["r_op"]["tiers"]
    tiers["4"] = copy.deepcopy(tiers["3"])
    assert differences(document)[0].startswith("criteria r_op tiers 4: claimed [")


def test_a_row_without_a_bound_is_none_of_the_table() -> None:
    document = canonical.loads(issued().payload)
    rows(document)["r_op"]["tiers"]["1"]["bounded"] = None
    assert differences(document)[0].startswith("criteria r_op tiers 1 3: claimed None")


def differences(document: dict[str, Any]) -> list[str]:
    predicate = msgspec.convert(document["predicate"], Predicate)
    rows = [bounds.Row(predicate, criterion) for criterion in predicate.criteria]
    return [*payload.profile_differences(predicate, rows)]
