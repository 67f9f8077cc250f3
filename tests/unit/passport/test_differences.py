"""A signed judgement beside the one that is made anew: what is exact is compared for equality.

Bounds and the two metrics that are probabilities or scores in doubles may differ by 1e-8 between machines.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from certkit.passport.differences import judgement_difference
from tests.support import passports

INEXACT = {"posterior", "csi"}
JUDGED = passports.specimen().assessment
ROWS = {
    kind: [
        place
        for place, row in enumerate(JUDGED.criteria)
        if (row.metric in INEXACT) == (kind == "inexact") and row.margin is not None
    ]
    for kind in ("exact", "inexact")
}


def told(part: str, place: int, **changed: Any) -> str | None:
    """Return the difference that is found where a row states something else."""
    rows = list(getattr(JUDGED, part))
    rows[place] = structs.replace(rows[place], **changed)
    return judgement_difference(structs.replace(JUDGED, **{part: tuple(rows)}), JUDGED)


def test_there_are_rows_of_both_kinds() -> None:
    assert {JUDGED.criteria[place].metric for place in ROWS["inexact"]} == INEXACT
    assert len({JUDGED.criteria[place].metric for place in ROWS["exact"]}) > 5


@pytest.mark.parametrize("by", [1e-6, -1e-6, 1e-9, -1e-9])
def test_the_margin_and_the_value_of_an_exact_row_are_compared_for_equality(by: float) -> None:
    for place in ROWS["exact"]:
        row = JUDGED.criteria[place]
        assert row.margin is not None
        assert (told("criteria", place, margin=row.margin + by) or "").startswith(
            f"criteria[{place}].margin: "
        )
        assert row.value is not None
        assert (told("criteria", place, value=row.value + by) or "").startswith(f"criteria[{place}].value: ")
    for place, core in enumerate(JUDGED.core):
        if core.id not in INEXACT and core.value is not None:
            assert (told("core", place, value=core.value + by) or "").startswith(f"core[{place}].value: ")


def test_a_bound_may_differ_in_its_last_digits() -> None:
    bounded = [(place, row.bounded) for place, row in enumerate(JUDGED.criteria) if row.bounded]
    limits = [(place, own, own.bound) for place, own in bounded if own.bound is not None]
    assert limits
    for place, own, bound in limits:
        for by in (5e-10, -5e-10):
            assert told("criteria", place, bounded=structs.replace(own, bound=bound + by)) is None
        further = told("criteria", place, bounded=structs.replace(own, bound=bound + 2e-8)) or ""
        assert further.startswith(f"criteria[{place}].bounded.bound: ")
        for name in ("confidence", "k", "n"):
            changed = structs.replace(own, **{name: (getattr(own, name) or 0) + 1e-9})
            assert f"bounded.{name}: " in (told("criteria", place, bounded=changed) or "")


def test_the_value_and_the_margin_of_an_inexact_row_may_differ_in_their_last_digits() -> None:
    for place in ROWS["inexact"]:
        row = JUDGED.criteria[place]
        for name in ("value", "margin"):
            stated = getattr(row, name)
            assert told("criteria", place, **{name: stated + 5e-9}) is None
            further = told("criteria", place, **{name: stated + 2e-8}) or ""
            assert further.startswith(f"criteria[{place}].{name}: ")
