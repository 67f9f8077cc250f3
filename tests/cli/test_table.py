"""One rule of rounding on every screen, and colours that repeat the marks."""

from __future__ import annotations

from fractions import Fraction

import pytest
from rich.text import Text

from certkit.assessment.catalogue import Unit
from certkit.assessment.words import value_text
from certkit.cli.views.table import Asked, Cells, digits, table


@pytest.mark.parametrize(
    ("successes", "cell", "sentence"),
    [(726, "0.908", "90.8 %"), (710, "0.888", "88.8 %"), (1, "0.001", "0.1 %")],
)
def test_a_share_is_rounded_alike_in_table_and_sentence(successes: int, cell: str, sentence: str) -> None:
    share = Fraction(successes, 800)
    for value in (share, float(share)):
        assert (digits(value), value_text(value, Unit.FRACTION)) == (cell, sentence)


def test_a_value_is_not_rounded_onto_a_threshold_that_it_misses() -> None:
    assert digits(Fraction(79996, 100000), beside=[Fraction(4, 5)]) == "0.79996"
    assert digits(Fraction(4, 5), beside=[Fraction(4, 5)]) == "0.800"


def test_only_what_both_readings_meet_is_green_and_no_evidence_is_not_coloured_as_too_little() -> None:
    pairs = [("met", "met"), ("met", "insufficient"), ("insufficient", "insufficient"), ("not_tested", None)]
    asked = [Asked(">", 0.6, first, second) for first, second in pairs]
    rows = [Cells("r_op", "r_op", "0.7", "0.6", 9, asked)]
    row = [*table(rows, range(1, 5), reading="table", limit_tier=1, confidence=0.95)][2]
    assert isinstance(row, Text)
    styles = [str(span.style) for span in row.spans][1:]
    assert styles == ["green", "yellow", "yellow", "dim"]
