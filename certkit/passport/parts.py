"""Whether the pooled bundles that a passport lists add up to its evidence, as far as the statement tells.

Their integers must add up to those of the whole, and the tier of each must be one that its own rate of
success allows. Everything else about a single bundle, and the order in which bundles stand, a replay tells.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from certkit.passport.agreement import allowed, differing, in_order
from certkit.passport.implied import NOMINAL
from certkit.passport.terms import rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.agreement import Compared
    from certkit.passport.statement import BundleClaim, Predicate


def disagreements(predicate: Predicate) -> Iterator[str]:
    """Yield how pooled bundles contradict each other or the whole; nothing where there is one bundle."""
    bundles = predicate.evidence.bundles
    if bundles is not None:
        yield from _impossible(predicate, bundles)
        yield from differing(_derived(predicate, bundles))


def _derived(predicate: Predicate, bundles: tuple[BundleClaim, ...]) -> Iterator[Compared]:
    """Yield the values of the whole and what the bundles give together."""
    from certkit.evidence.bundle.identity import accumulation_digest  # noqa: PLC0415 - most rest on one bundle

    evidence = predicate.evidence
    yield "digest of the evidence", evidence.digest, accumulation_digest([part.digest for part in bundles])
    for name in ("records", "nominal_runs", "fault_runs"):
        total = sum(getattr(part, name) for part in bundles)
        yield f"{name} of the evidence, over its bundles", getattr(evidence, name), total
    for number, part in enumerate(bundles, 1):
        rows = part.by_domain.values()
        by_domain = (sum(row.successes for row in rows), sum(row.n for row in rows))
        yield f"successes and fault runs of bundle {number}", (part.successes, part.fault_runs), by_domain
    yield from _by_domain(predicate, bundles)
    first = min((time for part in bundles if (time := part.dates.first_run)), default=None)
    last = max((time for part in bundles if (time := part.dates.last_run)), default=None)
    dates = predicate.scope.dates
    yield "first and last run of the scope", (dates.first_run, dates.last_run), (first, last)


def _by_domain(predicate: Predicate, bundles: tuple[BundleClaim, ...]) -> Iterator[Compared]:
    """Yield the successes and runs under faults of every domain."""
    stated: dict[str | None, tuple[int, int]] = {}
    for cell in predicate.profile_of_reliability.cells:
        if cell.condition != NOMINAL:
            for name in (None, cell.domain):
                y, n = stated.get(name, (0, 0))
                stated[name] = (y + cell.successes, n + cell.runs)
    successes, runs = Counter[str | None](), Counter[str | None]()
    for part in bundles:
        successes[None] += part.successes
        runs[None] += part.fault_runs
        for name, row in part.by_domain.items():
            successes[name] += row.successes
            runs[name] += row.n
    for domain in sorted(stated.keys() | runs.keys(), key=str):
        pooled = (successes[domain], runs[domain])
        yield f"successes and fault runs in {domain or 'all domains'}", stated.get(domain, (0, 0)), pooled


def _impossible(predicate: Predicate, bundles: tuple[BundleClaim, ...]) -> Iterator[str]:
    """Yield every statement about the bundles that is impossible for any evidence."""
    if len({part.digest for part in bundles}) != len(bundles):
        yield "a bundle is counted twice"
    for number, part in enumerate(bundles, 1):
        if part.nominal_runs + part.fault_runs > part.records:
            yield f"bundle {number} has more runs than records"
        if any(row.successes > row.n for row in part.by_domain.values()):
            yield f"bundle {number} has more successes than runs"
        if any(row.n == 0 for row in part.by_domain.values()):
            yield f"bundle {number} names a domain in which it has no runs under faults"
        if not in_order(part.dates):
            yield f"the times of the first and last run of bundle {number} do not agree"
        yield from _tiers(number, part, predicate)


def _tiers(number: int, part: BundleClaim, predicate: Predicate) -> Iterator[str]:
    """Yield the tiers of a bundle that no criterion has, or that its own rate of success rules out."""
    judged = {0, *(int(tier) for row in predicate.criteria for tier in row.tiers)}
    for reading in ("table", "bounded"):
        if (tier := getattr(part, reading).tier) not in judged:
            yield f"bundle {number} attains Tier {tier} under the {reading} reading, which no criterion has"
    attained = max(part.table.tier, part.bounded.tier)  # a row that is met by bounds is met by its value
    value = rate(part.successes, part.fault_runs)
    for criterion in predicate.criteria:
        for tier, row in criterion.tiers.items():
            if criterion.metric != "r_op" or int(tier) > attained:
                continue
            if value is None or not allowed(row, by=value, met=True):
                yield (
                    f"bundle {number} attains Tier {attained} with {part.successes:,} successes in"
                    f" {part.fault_runs:,} runs, and {criterion.id} asks for {row.threshold}"
                )
