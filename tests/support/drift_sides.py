"""Two sides of a drift test, from tallies in cells and clusters."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from msgspec import structs

from certkit.assessment.drift.standing import Part, Standing, Watched
from certkit.assessment.reliability import CellRuns, Moments

if TYPE_CHECKING:
    from collections.abc import Iterable


Cells = dict[tuple[str, str], dict[str, tuple[int, int]]]
CENTS = Fraction(5, 100)


def row(
    metric: str,
    pairs: Iterable[tuple[int, int]],
    scale: int = 1,
    *,
    domain: str | None = None,
    condition: str | None = None,
) -> Moments:
    """The integers of clusters given as (y, n)."""
    listed = list(pairs)
    return Moments(
        metric=metric,
        domain=domain,
        condition=condition,
        scale=scale,
        y=sum(y for y, _ in listed),
        n=sum(n for _, n in listed),
        k=len(listed),
        yy=sum(y * y for y, _ in listed),
        yn=sum(y * n for y, n in listed),
        nn=sum(n * n for _, n in listed),
    )


def merged(cells: Cells, domain: str | None, condition: str | None) -> list[tuple[int, int]]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (d, c), clusters in cells.items():
        if domain in {None, d} and condition in {None, c}:
            for name, (y, n) in clusters.items():
                sums[name][0] += y
                sums[name][1] += n
    return [(y, n) for y, n in sums.values()]


def side(cells: Cells, *more: Moments, nominal: int = 4, **changes: Any) -> Standing:
    """A standing whose fault runs are `cells`; `more` are rows of other metrics."""
    domains, conditions = ({name[i] for name in cells} for i in (0, 1))
    found = [
        row("r_op", pairs, domain=d, condition=c)
        for d, c in product([None, *sorted(domains)], [None, *sorted(conditions)])
        if (pairs := merged(cells, d, c))
    ]
    runs = [
        CellRuns(domain=d, condition=c, runs=sum(n for _, n in clusters.values()))
        for (d, c), clusters in cells.items()
    ]
    if nominal:
        runs += [CellRuns(domain=d, condition="nominal", runs=nominal) for d in sorted(domains)]
    base = Standing(
        lineage="-/a",
        version="1",
        identity="one",
        components=(Part(role="model", name="m", version="1", digest="d"),),
        evidence=str(changes.pop("evidence", id(cells))),
        origin="measured",
        tier=1,
        profile_id="p",
        profile_digest="sha256:p",
        criteria=(
            Watched(id="r_op", metric="r_op", margin=CENTS, judged=True),
            *(
                Watched(
                    id=metric, metric=metric, margin=Fraction(1, 4) if metric == "ti" else CENTS, judged=True
                )
                for metric in dict.fromkeys(one.metric for one in more)
            ),
        ),
        methodology="trajectory",
        success_rule="rule",
        judge="j (f)",
        cascade_definition="simultaneous",
        memory_observable=True,
        runs=tuple(runs),
        moments=(*found, *more),
    )
    return structs.replace(base, **changes)


def even(
    rate: Fraction, *, clusters: int = 60, size: int = 10, names: str = ""
) -> dict[str, tuple[int, int]]:
    """Clusters around a mean rate: half of them one success above it, half one below."""
    middle = int(rate * size)
    return {f"{names}{i}": (middle + (1 if i % 2 else -1), size) for i in range(clusters)}


def both(metric: str, pairs: list[tuple[int, int]], scale: int = 1) -> tuple[Moments, Moments]:
    """A row over everything, and that of its only domain."""
    return row(metric, pairs, scale), row(metric, pairs, scale, domain="d")


def one(rate: Fraction, *more: Moments, **changes: Any) -> Standing:
    return side({("d", "x_f"): even(rate)}, *more, **changes)


HIGH, LOW = Fraction(8, 10), Fraction(6, 10)
