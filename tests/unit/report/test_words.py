"""Numbers are never rounded into a verdict."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certkit.assessment.catalogue import Unit
from certkit.ground.wording import listed, many
from certkit.report import words

SHARES = st.floats(min_value=0, max_value=1, allow_nan=False)


def number(text: str) -> Fraction:
    digits = text.replace("−", "-").split("\u00a0")[0]
    return Fraction(digits) / (100 if "%" in text else 1)


@given(SHARES, st.sampled_from([0.4, 0.6, 0.65, 0.8, 0.95]), st.sampled_from([Unit.FRACTION, Unit.INDEX]))
def test_a_value_on_one_side_of_a_threshold_is_printed_on_that_side(
    found: float, threshold: float, unit: Unit
) -> None:
    shown = number(words.value(found, unit, apart_from=threshold))
    exact = Fraction(repr(threshold))
    if abs(found - threshold) > 1e-9:
        assert (shown > exact, shown < exact) == (found > threshold, found < threshold)


@pytest.mark.parametrize(
    ("found", "beside", "shown"),
    [
        (0.79996, 0.8, "79.996\u00a0%"),
        (0.8, 0.8, "80.0\u00a0%"),
        (0.8003, 0.8, "80.03\u00a0%"),
        (0.5, None, "50.0\u00a0%"),
        (None, 0.8, "not measured"),
    ],
)
def test_as_many_digits_as_tell_value_and_threshold_apart(
    found: float | None, beside: float | None, shown: str
) -> None:
    assert words.value(found, Unit.FRACTION, apart_from=beside) == shown


@given(st.floats(min_value=-1, max_value=1, allow_nan=False))
def test_a_margin_keeps_its_sign(found: float) -> None:
    text = words.margin(found, Unit.INDEX)
    if abs(found) > 1e-11:
        assert text[0] == ("+" if found > 0 else "−")
        assert number(text) != 0


@given(SHARES)
def test_a_probability_is_never_printed_as_certain(p: float) -> None:
    assert words.value(p, Unit.PROBABILITY) not in {"1.0000", "0.0000"}


@pytest.mark.parametrize(
    ("operator", "asked", "unit", "shown"),
    [
        (">", 0.8, Unit.FRACTION, ">\u00a080\u00a0%"),
        (">=", 0.7, Unit.INDEX, "≥\u00a00.7"),
        ("<", 30, Unit.PP, "<\u00a030\u00a0points"),
        ("is", True, Unit.BOOLEAN, "yes"),
        (None, None, Unit.INDEX, "not specified"),
    ],
)
def test_a_threshold_reads_as_the_profile_wrote_it(
    operator: str | None, asked: float | None, unit: Unit, shown: str
) -> None:
    assert words.threshold(operator, asked, unit) == shown


def test_one_run_is_not_one_runs() -> None:
    assert [many(n, "run") for n in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.1, "10\u00a0%"), (1e-5, "0.001\u00a0%"), (1e-7, "1 in 10,000,000"), (2.5e-6, "2.5 in 1,000,000")],
)
def test_a_tolerable_rate_is_printed_without_powers_of_ten(share: float, said: str) -> None:
    assert words.rate(share) == said
