"""What a plan is made for: runs of a task, domains, mix of faults, and what is expected of the agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.profile import Reading, exact
from certkit.ground.document import Count, Part, Positive, Share
from certkit.ground.errors import UsageError
from certkit.record.schedule import EVEN_MIX, FAULTS, MAX_DOMAINS, NOMINAL_SHARE, mix_complaint

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_ATTEMPT: Final = 1000
MAX_RUNS_PER_TASK: Final = 1000
RUNS_PER_TASK: Final = 5
"""Runs of a task under faults, unless stated: one under each of the five conditions of [26]."""
ICC: Final = 0.3
"""How much runs of one task are taken to correlate where nothing is measured."""
SEED: Final = 26
DRAWS: Final = 2000

_EXPECTATION: Final = re.compile(r"([a-z0-9_]{1,40})=([+-]?(?:\d{1,12}\.?\d{0,12}|\.\d{1,12}))")


class Design(Part, frozen=True, kw_only=True):
    """What a schedule is made for.

    `fault_mix` is the share of each condition among the fault runs. A task has `runs_per_task` runs under
    faults, whose outcomes correlate by `icc`. `power` is wanted of every row.
    """

    reading: Reading
    domains: Positive
    icc: Share
    power: Share
    attempt: Positive
    runs_per_task: Positive
    nominal_share: Share = NOMINAL_SHARE
    fault_mix: Annotated[Mapping[str, Fraction], Meta(extra_json_schema={"propertyNames": {"enum": FAULTS}})]
    draws: Positive = DRAWS
    seed: Count = SEED


def design(
    reading: Reading,
    *,
    domains: int = 5,
    icc: float = ICC,
    power: float = 0.8,
    attempt: int = 1,
    runs_per_task: int = RUNS_PER_TASK,
    fault_mix: dict[str, float] | None = None,
) -> Design:
    """Return a design; raises `UsageError` ``usage.option`` for what cannot be."""
    mix = dict(EVEN_MIX if fault_mix is None else fault_mix)
    complaint = None
    if not 1 <= domains <= MAX_DOMAINS:
        complaint = f"domains: expected 1 to {MAX_DOMAINS}, found {domains}"
    elif not 0 <= icc < 1:
        complaint = f"icc: expected 0 to below 1, found {icc:g}"
    elif not 0 < power < 1:
        complaint = f"power: expected more than 0 and less than 1, found {power:g}"
    elif not 1 <= attempt <= MAX_ATTEMPT:
        complaint = f"attempt: expected 1 to {MAX_ATTEMPT:,}, found {attempt:,}"
    elif not 1 <= runs_per_task <= MAX_RUNS_PER_TASK:
        complaint = f"runs_per_task: expected 1 to {MAX_RUNS_PER_TASK:,}, found {runs_per_task:,}"
    else:
        complaint = mix_complaint(mix)
    if complaint:
        raise UsageError("usage.option", complaint)
    return Design(
        reading=reading,
        domains=domains,
        icc=icc,
        power=power,
        attempt=attempt,
        runs_per_task=runs_per_task,
        fault_mix={name: exact(float(mix[name])) for name in FAULTS if mix.get(name)},
    )


def expectations(texts: Iterable[str]) -> dict[str, Fraction]:
    """Return what is expected of each metric, in its unit, from texts like ``r_op=.88,frr=.9``.

    Raises `UsageError` ``usage.option`` for anything else, for a metric that is named twice, and for values
    that the metric cannot have.
    """
    expected: dict[str, Fraction] = {}
    for text in ",".join(texts).split(","):
        match = _EXPECTATION.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                "usage.option", f"expectation {text.strip()[:40]!r} is not METRIC=VALUE", hint="r_op=.88"
            )
        metric, value = match.groups()
        if metric in expected:
            raise UsageError("usage.option", f"two expectations of {metric}")
        expected[metric] = Fraction(value)
        if complaint := _complaint(metric, expected[metric]):
            raise UsageError("usage.option", complaint)
    return expected


def _complaint(metric: str, value: Fraction) -> str | None:
    spec = CATALOGUE.get(metric)
    if spec is None:
        return None  # which metrics a tier knows is told with the tier
    low, high = spec.low, spec.high
    if low <= value and (high is None or value <= high):
        return None
    ends = f"{float(low):g} or more" if high is None else f"{float(low):g} to {float(high):g}"
    return f"{metric}: expected values are {ends}, found {float(value):g}"
