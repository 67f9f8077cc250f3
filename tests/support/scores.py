"""The trust score of a logged lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.registry.history import reading
from certkit.registry.past import past
from certkit.registry.score import score
from tests.support.lineages import NOW
from tests.support.standings import DAY

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.score import Past, Score


LINEAGE = "-/courier"


def asked(folder: Path, lineage: str = LINEAGE) -> Past:
    with reading(folder) as whole:
        return past(whole.history(lineage), whole.passport)


def scored(folder: Path, days: float, lineage: str = LINEAGE) -> Score:
    return score(asked(folder, lineage), at=NOW + days * DAY)


def valued(folder: Path, days: float) -> float:
    value = scored(folder, days).value
    assert value is not None
    return value
