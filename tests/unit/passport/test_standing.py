"""A passport gives the same standing as its evidence, and impossible integers are refused."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit import assessment, evidence, workflow
from certkit.assessment.drift.standing import standing as of_bundle
from certkit.errors import CertkitError
from certkit.passport import payload
from certkit.passport import statement as st
from certkit.passport.standing import carries_margins, standing
from tests.support import bundles
from tests.unit.passport import making

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return making.sealed_bundle(tmp_path / "bundle")


def stated(root: Path) -> st.Statement:
    return payload.read(making.of_bundle(root).payload)


def with_sums(statement: st.Statement, change: Callable[[st.Sums], st.Sums | None]) -> st.Statement:
    """The statement with its integers changed; None takes a row out."""
    predicate = statement.predicate
    found = tuple(filter(None, map(change, predicate.profile_of_reliability.sums)))
    profile = structs.replace(predicate.profile_of_reliability, sums=found)
    return structs.replace(statement, predicate=structs.replace(predicate, profile_of_reliability=profile))


def without_margins(statement: st.Statement) -> st.Statement:
    criteria = tuple(structs.replace(row, drift_margin=None) for row in statement.predicate.criteria)
    return structs.replace(statement, predicate=structs.replace(statement.predicate, criteria=criteria))


def test_a_passport_stands_where_its_evidence_stands(root: Path) -> None:
    bundle = evidence.open_bundle(root)
    summary = evidence.summarise(bundle)
    judged = assessment.assess(summary, bundle.facts, workflow.load_profile("hb-eval-2026"))
    assert standing(stated(root)) == of_bundle(judged, summary)


def test_margins_are_carried_in_the_unit_of_the_metric(root: Path) -> None:
    found = {row.id: row.drift_margin for row in stated(root).predicate.criteria}
    assert (found["r_op"], found["ti"], found["cascade_penalty"]) == ("0.050000", "0.250000", "5.000000")
    assert found["posterior"] is None
    assert carries_margins(stated(root))


def test_a_passport_without_margins_takes_them_from_its_own_profile_alone(root: Path) -> None:
    bare = without_margins(stated(root))
    assert not carries_margins(bare)
    assert {row.margin for row in standing(bare).criteria} == {None}
    own, other = (workflow.load_profile(name) for name in ("hb-eval-2026", "hb-eval-2025"))
    assert standing(bare, own) == standing(stated(root))
    assert standing(bare, other) == standing(bare)


def test_a_margin_of_the_passport_counts_before_the_profile(root: Path) -> None:
    statement = stated(root)
    criteria = tuple(
        structs.replace(row, drift_margin="0.010000" if row.id == "r_op" else row.drift_margin)
        for row in statement.predicate.criteria
    )
    changed = structs.replace(statement, predicate=structs.replace(statement.predicate, criteria=criteria))
    found = standing(changed, workflow.load_profile("hb-eval-2026"))
    assert next(row.margin for row in found.criteria if row.id == "r_op") == Fraction(1, 100)


def changed(metric: str, /, **fields: Any) -> Callable[[st.Sums], st.Sums]:
    return lambda row: structs.replace(row, **fields) if row.metric == metric else row


IMPOSSIBLE: dict[str, tuple[Callable[[st.Sums], st.Sums | None], str]] = {
    "no clusters": (changed("r_op", k=0), "no runs give"),
    "more clusters than runs": (changed("r_op", k=10**6), "no runs give"),
    "no scale": (changed("violations", scale=0), "no runs give"),
    "more successes than runs": (changed("r_op", y=10**6), "no runs give"),
    "less than the least that a run shows": (
        changed("violations", metric="ti", scale=1000, y=0, yy="0", yn="0"),
        "no runs give the integers of ti",
    ),
    "no squares": (changed("r_op", yy="0"), "no runs give"),
    "a variance below 0": (changed("r_op", yn="1000000"), "no runs give"),
    "squares without end": (changed("r_op", nn="9" * 5000), "larger than counts can give"),
    "a row left out": (
        lambda row: None if row.metric == "r_op" and row.domain is None and not row.condition else row,
        "do not add up",
    ),
    "a cell left out": (lambda row: None if row.condition and row.domain else row, "not over the fault runs"),
    "runs that no domain has": (
        lambda row: (
            structs.replace(row, n=row.n + 1, nn=str(int(row.nn) + 99))
            if row.metric == "violations" and row.domain is None
            else row
        ),
        "do not add up",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_integers_that_no_runs_give_are_refused(root: Path, name: str) -> None:
    change, words = IMPOSSIBLE[name]
    with pytest.raises(CertkitError, match=words) as caught:
        standing(with_sums(stated(root), change))
    assert (caught.value.code, caught.value.exit_code) == ("passport.statement", 1)


def test_a_row_twice_and_a_negative_margin_are_refused(root: Path) -> None:
    statement = stated(root)
    sums = statement.predicate.profile_of_reliability.sums
    profile = structs.replace(statement.predicate.profile_of_reliability, sums=(*sums, sums[0]))
    twice = structs.replace(
        statement, predicate=structs.replace(statement.predicate, profile_of_reliability=profile)
    )
    with pytest.raises(CertkitError, match="occurs twice"):
        standing(twice)
    criteria = (structs.replace(statement.predicate.criteria[0], drift_margin="-0.100000"),)
    below = structs.replace(statement, predicate=structs.replace(statement.predicate, criteria=criteria))
    with pytest.raises(CertkitError, match="below 0"):
        standing(below)


def test_rows_of_a_later_writer_are_left_aside(root: Path) -> None:
    statement = stated(root)
    profile = statement.predicate.profile_of_reliability
    violations = next(row for row in profile.sums if row.metric == "violations")
    more = (
        structs.replace(violations, metric="later"),
        structs.replace(violations, domain="d", condition="adversarial"),
    )
    later = structs.replace(
        statement,
        predicate=structs.replace(
            statement.predicate,
            profile_of_reliability=structs.replace(profile, sums=(*profile.sums, *more)),
        ),
    )
    assert standing(later) == standing(statement)


def test_a_bundle_without_runs_has_a_standing(tmp_path: Path) -> None:
    empty = making.sealed_bundle(tmp_path / "empty", [bundles.run(0)])
    assert {row.metric for row in standing(stated(empty)).moments} == {"c_nom"}


def test_fewer_clusters_than_the_sizes_of_clusters_need_are_refused(root: Path) -> None:
    """k clusters of n runs in all have Σn_c² ≥ n²/k (Cauchy and Schwarz); all else is possible here."""

    def one_cluster(row: st.Sums) -> st.Sums:
        return structs.replace(row, k=1, yy=str(row.y**2), yn="0") if row.metric == "r_op" else row

    changed_sums = with_sums(stated(root), one_cluster).predicate.profile_of_reliability.sums
    whole = next(row for row in changed_sums if row.metric == "r_op" and not (row.domain or row.condition))
    assert whole.n <= int(whole.nn) < whole.n**2
    with pytest.raises(CertkitError, match="no runs give"):
        standing(with_sums(stated(root), one_cluster))
