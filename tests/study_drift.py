"""A simulation of `drift` and `chain` themselves: how often they flag, find, and say STABLE.

    python -m tests.study_drift              # 2,000 pairs for each correlation, about seven minutes

Each side has 5 domains × 20 clusters × 10 fault runs and a quarter as many nominal ones. A cluster has a
beta-distributed chance of success whose intraclass correlation is given, in the mean that of its domain; old
and new draw their clusters anew from the same law, as if every evaluation took new tasks of the same kinds.
The runs of a cluster are spread over five conditions by lot, the same lot on both sides. The other rows
follow from the same runs: grades of recovery from successes, intentional recovery, efficiency, traceability
and violations with an effect of the cluster of their own.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs

from certkit.assessment.drift import drift
from certkit.assessment.drift.chain import chain
from certkit.assessment.drift.standing import Part, Standing, Watched
from certkit.assessment.reliability import CellRuns, Moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

DOMAINS: Final = ("banking", "healthcare", "logistics", "robotics", "travel")
CONDITIONS: Final = ("adversarial", "cascade", "context_corruption", "stochastic", "tool_failure")
RATES: Final = (0.80, 0.83, 0.85, 0.87, 0.90)
CLUSTERS: Final = 20
RUNS: Final = 10
NOMINAL: Final = 50
CENTS: Final = Fraction(5, 100)
MARGINS: Final = {
    "r_op": CENTS,
    "pei": CENTS,
    "irs": CENTS,
    "frr": CENTS,
    "ti": Fraction(1, 4),
    "violations": CENTS,
    "adversarial_resistance": CENTS,
}
EMPTY: Final = Standing(
    lineage="-/agent",
    version="1",
    identity="sha256:" + "1" * 64,
    components=(Part(role="model", name="m", digest="sha256:" + "2" * 64),),
    evidence="",
    origin="measured",
    tier=2,
    profile_id="hb-eval-2026",
    profile_digest="sha256:" + "3" * 64,
    criteria=tuple(
        Watched(id=name, metric=name, margin=margin, judged=True) for name, margin in MARGINS.items()
    ),
    methodology="trajectory",
    success_rule=None,
    judge=None,
    cascade_definition="simultaneous",
    memory_observable=True,
    runs=(),
    moments=(),
)


class Shares(NamedTuple):
    """Of so many pairs: the share with any row WORSE, r_op overall among them, and the share STABLE."""

    flagged: float
    overall: float
    stable: float


def moments(
    key: tuple[str, str | None, str | None], y: Integers, n: Integers, scale: int = 1
) -> Moments | None:
    """Return the integers of a row from y and n per cluster, None where it has no run."""
    y, n = y[n > 0], n[n > 0]
    if not n.size:
        return None
    return Moments(
        metric=key[0],
        domain=key[1],
        condition=key[2],
        scale=scale,
        y=int(y.sum()),
        n=int(n.sum()),
        k=int(n.size),
        yy=int(y @ y),
        yn=int(y @ n),
        nn=int(n @ n),
    )


def side(rng: np.random.Generator, mix: Integers, *, icc: float, loss: float, name: str) -> Standing:
    """Draw one side. `mix` (domain × cluster × run) numbers the conditions, `loss` is taken off each rate."""
    shape = mix.shape
    chance = _chances(rng, np.array(RATES) - loss, icc)
    success = (rng.random(shape) < chance[:, :, None]).astype(np.int64)
    grade = success * rng.choice(np.array([10, 7, 4]), size=shape, p=[0.85, 0.1, 0.05])
    own = _chances(rng, np.full(len(RATES), 0.85), icc)
    intended = success * (rng.random(shape) < own[:, :, None])
    everything = (*shape[:2], shape[2] + NOMINAL // CLUSTERS)
    spread = rng.normal(0, icc**0.5, shape[:2])[:, :, None]
    noise = spread + rng.normal(0, (1 - icc) ** 0.5, everything)
    pei = np.clip(0.85 + 0.12 * noise, 0, 1) * 10**6
    ti = np.clip(np.rint(4.2 + 0.7 * rng.permuted(noise, axis=2)), 1, 5) * 1000
    violations = rng.poisson(0.12 * np.exp(0.5 * spread), everything)
    nominal = (rng.random((*shape[:2], NOMINAL // CLUSTERS)) < 0.95).astype(np.int64)
    ones = np.ones_like
    found = [
        *_rows("c_nom", nominal, ones(nominal)),
        *_rows("r_op", success, ones(success)),
        *_cells(success, mix),
        *_rows("frr", grade, ones(grade), 10),
        *_rows("pei", np.rint(pei).astype(np.int64), ones(violations), 10**6),
        *_rows("irs", intended, success),
        *_rows("ti", ti.astype(np.int64), ones(violations), 1000),
        *_rows("violations", violations, ones(violations)),
        *_rows("adversarial_resistance", success * (mix == 0), (mix == 0).astype(np.int64)),
    ]
    runs = [
        CellRuns(domain=domain, condition=condition, runs=int((mix[d] == c).sum()))
        for d, domain in enumerate(DOMAINS)
        for c, condition in enumerate(CONDITIONS)
    ]
    runs += [CellRuns(domain=domain, condition="nominal", runs=nominal[0].size) for domain in DOMAINS]
    return structs.replace(EMPTY, evidence=name, runs=tuple(runs), moments=tuple(filter(None, found)))


def _chances(rng: np.random.Generator, rates: NDArray[np.float64], icc: float) -> NDArray[np.float64]:
    """Draw a chance for every cluster of every domain."""
    if icc == 0:
        return np.repeat(rates[:, None], CLUSTERS, axis=1)
    size = 1 / icc - 1
    return rng.beta(rates[:, None] * size, (1 - rates[:, None]) * size, (len(rates), CLUSTERS))


def _rows(metric: str, y: Integers, n: Integers, scale: int = 1) -> Iterator[Moments | None]:
    by_cluster = y.sum(axis=2), n.sum(axis=2)
    yield moments((metric, None, None), by_cluster[0].ravel(), by_cluster[1].ravel(), scale)
    for number, domain in enumerate(DOMAINS):
        yield moments((metric, domain, None), by_cluster[0][number], by_cluster[1][number], scale)


def _cells(success: Integers, mix: Integers) -> Iterator[Moments | None]:
    for number, condition in enumerate(CONDITIONS):
        here = (mix == number).astype(np.int64)
        y, n = (success * here).sum(axis=2), here.sum(axis=2)
        yield moments(("r_op", None, condition), y.ravel(), n.ravel())
        for d, domain in enumerate(DOMAINS):
            yield moments(("r_op", domain, condition), y[d], n[d])


def pairs(count: int, *, seed: int, icc: float, loss: float) -> Iterator[tuple[Standing, Standing]]:
    """Draw pairs of sides, the new one with `loss`."""
    rng = np.random.Generator(np.random.PCG64(seed))
    even = np.arange(CLUSTERS * RUNS) % len(CONDITIONS)

    for _ in range(count):
        mix = np.stack([rng.permutation(even).reshape(CLUSTERS, RUNS) for _ in DOMAINS])
        yield (
            side(rng, mix, icc=icc, loss=0.0, name="old"),
            side(rng, mix, icc=icc, loss=loss, name="new"),
        )


def study(count: int, *, seed: int, icc: float, loss: float = 0.0) -> Shares:
    """Return how `drift` answers `count` pairs."""
    flagged = overall = stable = 0
    for old, new in pairs(count, seed=seed, icc=icc, loss=loss):
        found = drift(old, new)
        flagged += any(row.flagged for row in found.behaviour)
        overall += found.behaviour[0].flagged
        stable += found.result == "STABLE"
    return Shares(flagged / count, overall / count, stable / count)


HISTORIES: Final[dict[str, tuple[float, ...]]] = {
    "no change": (0.85,) * 10,
    "10 pp at the fourth": (0.85,) * 3 + (0.75,) * 7,
    "1 pp every time": tuple(0.85 - 0.01 * step for step in range(10)),
}


def accused(count: int, rates: tuple[float, ...], *, seed: int, icc: float) -> float:
    """Return the share of histories with these rates in which `chain` sees a decline."""
    rng = np.random.Generator(np.random.PCG64(seed))
    found = 0
    for _ in range(count):
        history = []
        for number, rate in enumerate(rates):
            chance = _chances(rng, np.full(len(DOMAINS), rate), icc).ravel()
            y, n = rng.binomial(RUNS, chance), np.full(chance.size, RUNS)
            keys: tuple[tuple[str, str | None, str | None], ...] = (
                ("r_op", None, None),
                ("r_op", "d", "cascade"),
            )
            history.append(
                structs.replace(
                    EMPTY,
                    evidence=str(number),
                    runs=(CellRuns(domain="d", condition="cascade", runs=int(n.sum())),),
                    moments=tuple(filter(None, (moments(key, y, n) for key in keys))),
                )
            )
        found += chain(history)[-1].declined
    return found / count


def main() -> None:
    """Print the table of the documentation."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{count:,} pairs    any row flagged   r_op flagged   STABLE")
    for loss in (0.0, 0.1):
        for seed, icc in enumerate((0.0, 0.1, 0.2), start=1):
            shares = study(count, seed=seed, icc=icc, loss=loss)
            print(
                f"loss {loss:.2f} ICC {icc:.1f}  {shares.flagged:12.1%} {shares.overall:14.1%}"
                f" {shares.stable:10.1%}"
            )
    for name, rates in HISTORIES.items():
        declined = [accused(300, rates, seed=7, icc=icc) for icc in (0.0, 0.1)]
        print(f"history: {name:<22} ICC 0 {declined[0]:7.1%}   ICC .1 {declined[1]:7.1%}")


if __name__ == "__main__":
    main()
