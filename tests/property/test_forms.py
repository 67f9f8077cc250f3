"""The same records say the same as JSON lines, as Parquet, as Arrow and as CSV: sums, faults, refusals."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings

from certkit.record import arrow, parquet
from certkit.record.columns import Columns
from tests.support import breaking, bundles, forms

if TYPE_CHECKING:
    from tests.support.strategies import Run

IN_CELLS = {"record.type", "record.unknown-field"}
"""Faults that a CSV does not have: its cells have no types, and columns of other names are left out."""


@settings(max_examples=14, deadline=None)  # 'python -m tests.fuzz --forms' draws thousands
@given(forms.files())
def test_columns_say_what_the_lines_say(listed: list[Run]) -> None:
    forms.differs(listed)


@settings(max_examples=20, deadline=None)
@given(breaking.broken_records())
def test_a_broken_record_is_refused_as_csv_too(broken: breaking.Broken) -> None:
    if broken.code in IN_CELLS:
        return
    with tempfile.TemporaryDirectory() as folder:
        assert forms.refused_as_csv(Path(folder), [broken.record])


def test_the_drawn_files_reach_the_columns(tmp_path: Path) -> None:
    records = bundles.campaign(300)
    assert forms.parquet(tmp_path / "a.parquet", records)
    [block] = parquet.blocks(tmp_path / "a.parquet", shown="a")
    assert isinstance(block, Columns)
    forms.as_arrow(tmp_path / "a.parquet")
    [block] = arrow.blocks(tmp_path / "a.arrow", shown="a")
    assert isinstance(block, Columns)
    bad = [*records, records[0] | {"run_id": "other", "trial": -1}]
    assert forms.parquet(tmp_path / "b.parquet", bad)
    [lines] = parquet.blocks(tmp_path / "b.parquet", shown="b")
    assert isinstance(lines, bytes)
