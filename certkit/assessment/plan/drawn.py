"""Evidence that is drawn from what is expected of an agent: `DRAWS` bundles at once, as kinds see them.

A task has a rank between 0 and 1, the same for all its runs, and a chance of success that is the quantile of
a Beta law with that rank: its mean is what is expected under the condition, its spread the ICC. Runs are then
binomial, so that a task's share is Beta-binomial. Runs are dealt to the tasks in turn, by condition.

Success has one rank a task, so that domains, conditions and the two sides of a difference are correlated.
Every other metric has a rank of its own: a correlation with success is ignored, so the joint power tends to
be too low. A count is a sum of yes-or-no trials, enough to reach its mean. A value with an upper limit is
at either end, which spreads most.
"""

from __future__ import annotations

from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.series import conditions
from certkit.assessment.plan.design import DRAWS, SEED
from certkit.ground.errors import UsageError
from certkit.record.record import SINGLE_FAULTS, Condition
from certkit.record.schedule import NOMINAL_SHARE
from certkit.summary.tasks import Shared, TaskSums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from certkit.assessment.plan.design import Design
    from certkit.summary.tasks import Tasks

    Floats = NDArray[np.float64]

_RANKS: Final = 4096
"""Equally likely ranks that a task may have."""
_HAIR: Final = 1e-9
"""What rounding may add to a rate."""
_FEW: Final = 5
"""Trials of a task up to which they are drawn one by one."""


class Rates:
    """The expected success of every condition in every domain; raises `UsageError` where it cannot be."""

    def __init__(self, design: Design, expect: Mapping[str, Fraction]) -> None:
        rate = _value(expect, "r_op")
        self.known = rate is not None
        self.domains: list[dict[str, float]] = []
        if rate is None:
            return
        weakest = _value(expect, "domain_min")
        base = self._conditions(design, expect, rate)
        for mean in _spread(rate, weakest, design.domains):
            self.domains.append({name: _share(value + mean - rate, name) for name, value in base.items()})

    @staticmethod
    def _conditions(design: Design, expect: Mapping[str, Fraction], rate: float) -> dict[str, float]:
        """Return the success of each condition, so that r_op, attacks and cascade penalty are as expected.

        With s the success under single faults that are no attack, all rates are lines in s, and so is r_op.
        """
        mix = {name: float(share) for name, share in design.fault_mix.items()}
        attacked, gap = _value(expect, "adversarial_resistance"), _value(expect, "cascade_penalty")
        single = [name for name in mix if name in SINGLE_FAULTS]
        weight = sum(mix[name] for name in single)
        fixed = mix.get(Condition.ADVERSARIAL, 0.0) if attacked is not None else 0.0
        drop = 0.0 if gap is None else gap / 100
        # mean of single faults = (fixed·attacked + (weight − fixed)·s)/weight
        slope = (weight - fixed) / weight if weight else 1.0
        offset = fixed * (attacked or 0.0) / weight if weight else 0.0
        lines: dict[str, tuple[float, float]] = {
            **dict.fromkeys(mix, (0.0, 1.0)),
            **({} if attacked is None else {Condition.ADVERSARIAL: (attacked, 0.0)}),
            Condition.CASCADE: (offset - drop, slope),
        }
        lines = {name: lines[name] for name in mix}
        total = sum(mix[name] * line[0] for name, line in lines.items())
        steep = sum(mix[name] * line[1] for name, line in lines.items())
        s = (rate - total) / steep if steep else rate
        rates = {name: a + b * s for name, (a, b) in lines.items()}
        nominal = _value(expect, "c_nom")
        if nominal is None:
            less = _value(expect, "gap")
            nominal = rate if less is None else rate + less / 100
        rates[Condition.NOMINAL] = nominal
        for name, value in rates.items():
            _share(value, name)
        return {str(name): value for name, value in rates.items()}


def _value(expect: Mapping[str, Fraction], metric: str) -> float | None:
    return float(expect[metric]) if metric in expect else None


def _share(value: float, name: str) -> float:
    if not -_HAIR <= value <= 1 + _HAIR:
        raise UsageError(
            "usage.option", f"the expectations would need a success of {100 * value:.1f} % under {name}"
        )
    return min(max(value, 0.0), 1.0)


def _spread(rate: float, weakest: float | None, domains: int) -> list[float]:
    """Return the weakest domain, then the others, which are as good as makes up the mean."""
    low = rate if weakest is None else weakest
    others = (domains * rate - low) / (domains - 1) if domains > 1 else rate
    if not low <= others + 1e-12 or others > 1 + 1e-9 or (domains == 1 and low != rate):
        raise UsageError(
            "usage.option",
            f"domain_min: a weakest of {domains} at {low:g} does not fit r_op {rate:g} over all",
        )
    return [low, *[min(others, 1.0)] * (domains - 1)]


def dealt(share: float, tasks: int, first: int = 0) -> NDArray[np.int64]:
    """Return how many runs each task has, `share` on average, dealt in turn from the task `first` on."""
    count = ceil(share * tasks - _HAIR)
    runs: NDArray[np.int64] = np.bincount((first + np.arange(count)) % tasks, minlength=tasks)
    return runs


class Drawn:
    """`DRAWS` bundles with so many tasks in every domain; sums are arrays with one entry a draw."""

    anytime = False
    labelled = None

    def __init__(self, design: Design, expect: Mapping[str, Fraction], rates: Rates, tasks: int) -> None:
        self.design, self.per_domain = design, tasks
        self.domains: Sequence[str] = [f"domain-{number + 1:03}" for number in range(design.domains)]
        self._expect = expect
        self._rng = np.random.Generator(np.random.PCG64(SEED))
        share = NOMINAL_SHARE / (1 - NOMINAL_SHARE)
        self.runs = {str(Condition.NOMINAL): dealt(design.runs_per_task * share, tasks)}
        first = 0
        for name, part in design.fault_mix.items():
            self.runs[str(name)] = dealt(float(part) * design.runs_per_task, tasks, first)
            first += int(self.runs[str(name)].sum())
        self._won = self._successes(rates) if rates.known else {}
        self._known: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        self._sums: dict[tuple[str, str | None], TaskSums | None] = {}

    @property
    def total(self) -> int:
        """Runs in all."""
        return self.design.domains * sum(int(runs.sum()) for runs in self.runs.values())

    def forget(self) -> None:
        """Let go of the draws, once every row was judged on them."""
        self._won, self._known, self._sums = {}, {}, {}

    def _successes(self, rates: Rates) -> dict[str, NDArray[np.int64]]:
        """Return the successes by condition: draws × domains × tasks."""
        rank = self._ranks((DRAWS, self.design.domains, self.per_domain))
        won, chances = {}, dict[tuple[float, ...], "Floats"]()
        for name, runs in self.runs.items():
            means = tuple(domain[name] for domain in rates.domains)
            if means not in chances:
                tables = [_quantiles(mean, self.design.icc) for mean in means]
                chances[means] = np.stack([table[rank[:, d]] for d, table in enumerate(tables)], axis=1)
            won[name] = _binomial(self._rng, runs, chances[means])
        return won

    def _values(self, series: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return y and n (draws × domains × tasks) of a series, None where none is expected."""
        if series not in self._known:
            names = conditions(series, self.runs)
            if not names:
                return None
            n = np.broadcast_to(
                sum(self.runs[name] for name in names), (self.design.domains, self.per_domain)
            )
            if series in _SUCCESS:
                if not self._won:
                    return None
                self._known[series] = _total([self._won[name] for name in names]), n
            elif series in self._expect:
                self._known[series] = self._field(series, n)
            else:
                return None
        return self._known[series]

    def _field(self, series: str, n: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        spec, expected = CATALOGUE[series], self._expect[series]
        low = spec.low
        if series == "irs":
            n = _total([self._won[name] for name in conditions(series, self.runs)])
        room = ceil(expected) or 1 if spec.high is None else spec.high - low
        mean = float((expected - low) / room)
        shape = (DRAWS, *np.shape(n)[-2:])
        chance = _quantiles(mean, self.design.icc)[self._ranks(shape)]
        trials = n * int(room) if spec.high is None else n
        y = _binomial(self._rng, trials, chance)
        return (y if spec.high is None else y * int(room) + n * int(low)), n

    def _ranks(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return self._rng.integers(0, _RANKS, shape)

    def tasks(self, series: str, domain: str | None = None) -> Tasks:
        """Never asked: a plan is not made for bounds that hold at any time."""
        raise NotImplementedError

    def sums(self, series: str, domain: str | None = None) -> TaskSums | None:
        """Return the sums of every draw, None where nothing is expected or no run is planned."""
        if (series, domain) not in self._sums:
            self._sums[series, domain] = self._summed(series, domain)
        return self._sums[series, domain]

    def _summed(self, series: str, domain: str | None) -> TaskSums | None:
        values = self._values(series)
        if values is None:
            return None
        y, n = values
        if domain is not None:
            at = self.domains.index(domain)
            y, n = y[:, at], n[..., at, :]
        y, n = y.reshape(DRAWS, -1).astype(np.float64), np.broadcast_to(n, y.shape).reshape(DRAWS, -1)
        n = n.astype(np.float64)
        x = np.divide(y, n, out=np.zeros_like(y), where=n > 0)
        return TaskSums(
            scale=1,
            k=np.count_nonzero(n, axis=1),
            n=np.maximum(n.sum(axis=1), 1),
            y=y.sum(axis=1),
            yy=(y * y).sum(axis=1),
            yn=(y * n).sum(axis=1),
            nn=(n * n).sum(axis=1),
            x=x.sum(axis=1),
            xx=(x * x).sum(axis=1),
            most=x.max(axis=1),
        )

    def shared(self, first: str, second: str) -> Shared:
        """Return the products of two series over the tasks that carry both."""
        values_a, values_b = self._values(first), self._values(second)
        assert values_a is not None  # noqa: S101 - asked after the sums
        assert values_b is not None  # noqa: S101 - the same
        columns = [np.broadcast_to(v, values_a[0].shape).reshape(DRAWS, -1) for v in (*values_a, *values_b)]
        both = (columns[1] > 0) & (columns[3] > 0)
        ya, na, yb, nb = (np.where(both, column, 0).astype(np.float64) for column in columns)
        xa, xb = (np.divide(y, n, out=np.zeros_like(y), where=both) for y, n in ((ya, na), (yb, nb)))
        pairs = {"xx": (xa, xb), "yy": (ya, yb), "yn": (ya, nb), "ny": (na, yb), "nn": (na, nb)}
        return Shared(
            k=both.sum(axis=1),
            x_a=xa.sum(axis=1),
            x_b=xb.sum(axis=1),
            **{name: (a * b).sum(axis=1) for name, (a, b) in pairs.items()},
        )


_SUCCESS: Final = frozenset({"c_nom", "r_op", "single", "cascade", "adversarial_resistance"})
"""Series that are shares of successes: what r_op is expected to be says what they are."""


def _total(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    total: NDArray[np.int64] = np.sum(parts, axis=0)
    return total


@cache
def _quantiles(mean: float, icc: float) -> Floats:
    """Return the quantiles of a Beta law with this mean and intraclass correlation, one for each rank."""
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    if icc == 0 or mean in {0.0, 1.0}:
        return np.full(_RANKS, mean)
    size = (1 - icc) / icc
    quantiles: Floats = betaincinv(mean * size, (1 - mean) * size, (np.arange(_RANKS) + 0.5) / _RANKS)
    return quantiles


def _binomial(rng: np.random.Generator, runs: NDArray[np.int64], chance: Floats) -> NDArray[np.int64]:
    """Return binomial draws; few trials are drawn one by one, which is many times quicker."""
    most = int(runs.max())
    if most > _FEW:
        return rng.binomial(runs, chance)
    won = np.zeros(chance.shape, np.int64)
    for trial in range(most):
        won += (rng.random(chance.shape) < chance) & (runs > trial)
    return won
